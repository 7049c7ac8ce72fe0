//! The gates: they connect existing agents to a hub without a line of code, and ask a person before anything dangerous
//! happens.
//!
//! A gate finds the hub with [`client::HubLocation`]. Whatever fails, the answer is never an unheard yes.

pub mod acp;
pub mod child_process;
pub mod doctor;
#[cfg(unix)]
pub mod mcp;
pub mod setup;
