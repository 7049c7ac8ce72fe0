//! Real coding agents with `sayso hook`, against a scripted model. `cargo xtask gates` installs them and runs these tests.
//!
//! A marker file shows whether a command was executed.

#![cfg(unix)]
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test reports a failure by panicking"
)]

mod acp;
mod claude;
mod fixture;
mod kills;
mod others;
mod screen;
mod screens;
mod transcripts;
