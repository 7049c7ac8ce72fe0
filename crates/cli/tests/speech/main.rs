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
mod keys;
mod lost;
mod order;
mod sound;
mod studio;
mod tape;
