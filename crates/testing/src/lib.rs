//! Helpers that the tests of several crates share. No released code depends on this crate.
//!
//! - [`cli`] runs the `sayso` binary until it exits. [`hub`] runs it as a hub, and [`terminal`] as a listener in a
//!   terminal.
//! - [`http`], [`websocket`] and [`unix`] are clients of a hub. [`messages`] has the messages that agents and listeners
//!   send.
//! - [`chromium`] drives a headless browser.
//! - [`postgres`] runs Postgres servers, and [`patroni`] a primary and a standby that Patroni manages.
//! - [`property`], [`random`] and [`hex`] support property tests, simulations and published test vectors.
//! - [`run_example!`] and [`example_with_listener!`] run documentation examples of the `sayso` crate.
//!   [`declare_test_listener!`] declares the listener for them, and [`mock_model`] is a mock model endpoint.
//! - [`asp_example!`] runs documentation examples of `sayso::asp`, and [`declare_test_nodes!`] declares the nodes for them.
//! - [`scripted_model`] is a model server for tests with real coding agents.
//! - [`published_data`] locates the data that AAEP's authors published.

#![allow(
    missing_docs,
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::missing_panics_doc,
    clippy::should_implement_trait,
    reason = "a failed test panics"
)]

pub mod chromium;
pub mod cli;
mod doc_example;
pub mod hex;
pub mod http;
pub mod hub;
pub mod messages;
pub mod mock_model;
#[cfg(unix)]
pub mod patroni;
#[cfg(unix)]
pub mod postgres;
#[cfg(unix)]
pub mod postgres_proxy;
pub mod property;
pub mod published_data;
pub mod random;
pub mod scripted_model;
mod stall;
pub mod tcp_link;
#[cfg(unix)]
pub mod terminal;
mod test_listener;
mod test_nodes;
#[cfg(unix)]
pub mod unix;
pub mod websocket;
