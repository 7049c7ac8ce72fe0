//! All texts of the demo agent. The texts about an action say that nothing real happens.
//!
//! - `session_start`: the first text of a session.
//! - `common`: texts that every scenario may use.
//! - `simple_answers`: a greeting, the possible requests, an explanation.
//! - `account`: the balance of the demo account.
//! - `confirmed_actions`: actions that need consent.
//! - `weather`: the weather, and the question about a place.
//! - `unsuccessful`: a missing tool, a hand-off, a cancellation.
//!
//! Placeholders stand for details of the request: `{amount}` is the number alone, such as 20; `{euros}` is the amount with its unit, such
//! as "20 euros"; `{recipient}` is the name of a person, and `{place}` that of a place.

mod account;
mod common;
mod confirmed_actions;
mod session_start;
mod simple_answers;
mod unsuccessful;
mod weather;

pub(super) use account::*;
pub(super) use common::*;
pub(super) use confirmed_actions::*;
pub(super) use session_start::session_start_phrase;
pub(super) use simple_answers::*;
pub(super) use unsuccessful::*;
pub(super) use weather::*;
