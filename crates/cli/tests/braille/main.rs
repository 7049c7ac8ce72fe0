//! `sayso listen --braille` with the real brltty, whose virtual driver shows a display to the test.

#![cfg(unix)]
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test reports a failure by panicking"
)]

mod display_session;
mod virtual_display;
