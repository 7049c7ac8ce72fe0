//! `sayso listen --speech`: what a dispatcher is told, what is done without one, and what is heard of it.

#![cfg(unix)]
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test says what went wrong by panicking"
)]

mod dispatcher;
#[path = "../serve/hub.rs"]
#[allow(dead_code, reason = "shared with the tests of `serve`")]
mod hub;
mod keys;
mod lost;
#[path = "../serve/messages.rs"]
#[allow(dead_code, reason = "shared with the tests of `serve`")]
mod messages;
mod order;
#[path = "../listen/person.rs"]
#[allow(dead_code, reason = "shared with the tests of `listen`")]
mod person;
mod sound;
mod studio;
mod tape;
