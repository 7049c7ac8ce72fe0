//! The gates, which connect existing agents to a hub without code, and the commands that install and check them.

pub(crate) mod acp;
pub(crate) mod doctor;
#[cfg(unix)]
pub(crate) mod mcp;
pub(crate) mod service;
pub(crate) mod setup;
