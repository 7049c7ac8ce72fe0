//! The gates: they connect existing agents to a hub without a line of code, and ask a person before anything dangerous
//! happens.
//!
//! A gate finds the hub with [`client::HubLocation`]. Whatever fails, the answer is never an unheard yes.
//!
//! - [`hook`]: the hooks of coding agents.
//! - [`description`]: how a tool call is put into words.
//! - [`risk`]: which tool calls are risky.

pub mod description;
pub mod hook;
pub mod risk;
