//! Two participants: whole lives, refusals that stand outside the machine (D6), races (D8), and bad networks.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test says what went wrong by panicking"
)]

#[path = "participants/life.rs"]
mod life;
#[path = "participants/network.rs"]
mod network;
#[path = "participants/pair.rs"]
mod pair;
#[path = "participants/races.rs"]
mod races;
#[path = "participants/refusals.rs"]
mod refusals;
mod support;
