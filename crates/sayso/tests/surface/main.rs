//! The crate as its users see it: what it builds, what it documents and what it exports.

#![cfg(all(feature = "client", feature = "embedded"))]
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test says what went wrong by panicking"
)]

mod build;
mod dependencies;
mod documented;
mod exports;
mod fields;
#[allow(dead_code, reason = "shared with other tests")]
#[path = "../both/stage.rs"]
mod stage;
