//! `sayso mcp`: the gate in front of an MCP server.

mod child_process;
mod hostile;
mod input;
mod kill;
mod personal_hub;
mod questions;
mod support;
mod transparency;
mod url;
