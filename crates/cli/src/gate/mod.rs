//! The gates: commands that connect existing agents to a hub.

pub(crate) mod hook;
