//! All integration tests of the crate except `redaction_log`, which sets the global logger and needs its own process.

#![cfg(feature = "embedded")]
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test reports a failure by panicking"
)]

#[cfg(feature = "client")]
mod agent_api_description;
#[cfg(feature = "client")]
mod agent_manifest;
#[cfg(feature = "client")]
mod attach_to_running_hub;
#[cfg(feature = "client")]
mod both_hub_kinds;
#[cfg(all(feature = "client", feature = "macros"))]
mod contract;
#[cfg(feature = "client")]
mod examples;
#[cfg(feature = "client")]
mod frameworks;
mod inline_dispatch;
#[cfg(all(feature = "client", feature = "openai"))]
mod openai;
#[cfg(feature = "client")]
mod public_api;
#[cfg(feature = "client")]
mod remote_hub;
#[cfg(all(feature = "client", feature = "rig-http"))]
mod rig;
#[cfg(feature = "client")]
mod support;
#[cfg(all(feature = "client", feature = "macros"))]
mod tool_and_middleware;
