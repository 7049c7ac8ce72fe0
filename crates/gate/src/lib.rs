//! The gates: they connect existing agents to a hub without a line of code, and ask a person before anything dangerous
//! happens.
//!
//! A gate finds the hub with [`client::HubLocation`]. Whatever fails, nothing is permitted that a person has not accepted.
//!
//! - [`hook`]: the hooks of coding agents.
//! - [`mcp`]: a gate in front of MCP servers.
//! - [`acp`]: a gate between an editor and an ACP agent.
//! - [`otlp`]: reports over OpenTelemetry.
//! - [`description`]: describes tool calls in words.
//! - [`phrases`]: the sentences of the gates, in three languages.
//! - [`risk`]: which tool calls are risky.
//! - [`child_process`]: the program behind a gate.
//! - [`setup`] and [`doctor`]: connect agents to sayso by editing their configuration, and check the installation.

pub mod acp;
pub mod child_process;
pub mod description;
pub mod doctor;
pub mod hook;
#[cfg(unix)]
pub mod mcp;
pub mod otlp;
pub mod phrases;
pub mod risk;
pub mod setup;
