//! The listening page in a real browser, against the real binary. `cargo xtask browser` installs what it needs and runs this.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test says what went wrong by panicking"
)]

mod answering;
mod controls;
mod harness;
mod hostile;
mod joining;
mod listening;
mod looks;
mod marks;
mod relay;
mod signing_in;
mod state;
mod structure;
mod tongues;
