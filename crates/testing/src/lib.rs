//! What the tests of several crates share. Nothing that is shipped depends on it.
//!
//! - [`cli`] runs the binary `sayso` until it ends, [`hub`] runs it as a hub, [`terminal`] as a listener at a terminal.
//! - [`http`], [`websocket`] and [`unix`] are clients of a hub, [`messages`] are what agents and listeners send.
//! - [`chromium`] is a browser without a window.
//! - [`property`], [`random`] and [`hex`] serve property tests, simulations and published vectors.
//! - [`example!`] and [`heard!`] run the examples in the documentation of the crate `sayso`; [`person!`] listens there, [`model`]
//!   is a model's endpoint.
//! - [`published`] is the data that AAEP's authors published.

#![allow(
    missing_docs,
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::missing_panics_doc,
    clippy::should_implement_trait,
    reason = "a test says what went wrong by panicking"
)]

pub mod chromium;
pub mod cli;
mod example;
pub mod hex;
pub mod http;
pub mod hub;
pub mod messages;
pub mod model;
mod person;
pub mod property;
pub mod published;
pub mod random;
#[cfg(unix)]
pub mod terminal;
#[cfg(unix)]
pub mod unix;
pub mod websocket;
