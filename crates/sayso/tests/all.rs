//! All tests of the crate but `redaction_log`, which sets the process's logger and so needs a process of its own.

#![cfg(feature = "embedded")]
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test says what went wrong by panicking"
)]

#[cfg(feature = "client")]
mod beside;
#[cfg(feature = "client")]
mod both;
#[cfg(feature = "client")]
mod client;
#[cfg(all(feature = "client", feature = "macros"))]
mod decorated;
#[cfg(feature = "client")]
mod examples;
#[cfg(feature = "client")]
mod frameworks;
mod here;
#[cfg(all(feature = "client", feature = "openai"))]
mod openai;
#[cfg(all(feature = "client", feature = "rig-http"))]
mod rig;
#[cfg(feature = "client")]
mod support;
#[cfg(feature = "client")]
mod surface;
