//! `sayso validate`, as whoever runs it sees it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

mod bad_input;
mod events;
mod layout;
mod limits;
mod options;
mod output;
#[path = "../sayso/mod.rs"]
mod sayso;
mod streams;
