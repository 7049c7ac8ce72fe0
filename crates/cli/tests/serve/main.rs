//! `sayso serve`, driven as its users do: agents and listeners over HTTP, against the real binary.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test says what went wrong by panicking"
)]

mod abuse;
mod config;
mod crash;
mod hub;
mod killed;
mod life;
mod limits;
mod messages;
mod observe;
mod stdio;
mod tokens;
mod unix;
mod websocket;
