//! The gates: they connect existing agents to a hub without code.

#[cfg(unix)]
pub(crate) mod mcp;
