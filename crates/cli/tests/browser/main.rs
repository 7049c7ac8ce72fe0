//! The listening page in a real browser with the real binary. `cargo xtask browser` installs what these tests need and
//! runs them.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test reports a failure by panicking"
)]

mod answering;
mod controls;
mod diacritics;
mod display_modes;
mod driver_selftest;
mod handoffs;
mod hostile_producer;
mod languages;
mod late_join_and_reconnect;
mod listening_page;
mod page_state_checks;
mod sign_in;
mod tcp_relay;
mod timelines;
mod tree_outline;
