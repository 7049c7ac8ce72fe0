//! `sayso asp`, as whoever runs it sees it.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test says what went wrong by panicking"
)]

mod cards;
mod demo;
mod limits;
mod lines;
mod mutations;
mod odd_texts;
mod paths;
#[path = "../sayso/mod.rs"]
mod sayso;
mod streams;
mod talk;
mod trace;
mod xml;
