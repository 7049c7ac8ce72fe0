//! All that the assistant says. Nothing of it is done, and nothing here says that it was.
//!
//! - `started`: what a session says first.
//! - `common`: what every scene may say.
//! - `talk`: answers in words, and what can be asked for.
//! - `account`: the demonstration account.
//! - `errands`: what is asked before it is done.
//! - `weather`: the weather, and the question for a place.
//! - `endings`: scenes that end otherwise.
//!
//! What a request named stands in `{amount}`, `{whom}` and `{place}`.

mod account;
mod common;
mod endings;
mod errands;
mod started;
mod talk;
mod weather;

pub(super) use account::*;
pub(super) use common::*;
pub(super) use endings::*;
pub(super) use errands::*;
pub(super) use started::started;
pub(super) use talk::*;
pub(super) use weather::*;
