//! `sayso demo`, driven as a person does: by what it prints and what is typed.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test says what went wrong by panicking"
)]

mod bad_input;
mod ending;
mod run;
mod scenes;
mod typed;
mod welcome;
