//! `sayso listen`, driven in a pseudo-terminal against the real hub.

#![cfg(unix)]
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test says what went wrong by panicking"
)]

mod answers;
mod bare;
mod connection;
mod fake;
mod hostile;
#[path = "../serve/hub.rs"]
#[allow(dead_code, reason = "shared with the tests of `serve`")]
mod hub;
mod kept;
mod manifests;
#[path = "../serve/messages.rs"]
#[allow(dead_code, reason = "shared with the tests of `serve`")]
mod messages;
mod offers;
mod person;
mod scripts;
mod tongues;
mod whole;
