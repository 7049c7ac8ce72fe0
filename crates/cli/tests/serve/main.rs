//! `sayso serve`, driven as its users do: agents and listeners over HTTP, against the real binary.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test says what went wrong by panicking"
)]

mod abuse;
mod agent_api;
mod agent_ws;
mod crash;
mod hub;
mod killed;
mod life;
mod messages;
mod stdio;
mod tokens;
mod unix;
mod websocket;
