//! `sayso capture` and `sayso replay`: the real binary against the real hub, and recordings of the repository.

#![cfg(unix)]
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test says what went wrong by panicking"
)]

mod bad_input;
mod captured;
mod drawn;
mod lost;
mod onward;
mod recorder;
mod served;
mod told;

#[path = "../serve/hub.rs"]
#[allow(dead_code, reason = "shared with the tests of `serve`")]
mod hub;
#[path = "../serve/messages.rs"]
#[allow(dead_code, reason = "shared with the tests of `serve`")]
mod messages;
#[path = "../listen/person.rs"]
#[allow(dead_code, reason = "shared with the tests of `listen`")]
mod person;
#[path = "../sayso/mod.rs"]
#[allow(dead_code, reason = "shared by all tests of the binary")]
mod sayso;
#[path = "../asp/xml.rs"]
#[allow(dead_code, reason = "shared with the tests of `asp`")]
mod xml;
