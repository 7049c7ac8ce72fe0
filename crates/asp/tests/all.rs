//! All integration tests of the ASP crate, in one program.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test says what went wrong by panicking"
)]

mod bad_input;
mod cells;
mod ledger;
mod model;
mod participants;
mod session;
mod support;
mod transcript;
mod vectors;
