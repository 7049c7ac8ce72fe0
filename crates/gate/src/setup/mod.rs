//! `sayso setup`: writes sayso into the configuration of other programs, and removes it again.
//!
//! - [`Harness`]: the coding agents whose hooks call `sayso hook`.
//! - [`McpClient`]: the programs whose MCP servers are started through `sayso mcp`.
//! - [`SetupPlan`]: a change to one file, which can be shown or applied.
//!
//! Every change is lossless (comments, order and everything else stays), atomic (a crash leaves the old or the new
//! file), idempotent, and reversible: an install record restores the file byte for byte if nobody
//! changed it since. Otherwise only the entries of sayso are removed. A file that cannot be parsed is never written.

mod advice;
mod command_words;
mod config_file;
mod config_folders;
mod error;
mod harness;
mod hook_entries;
mod install_record;
mod jsonc;
mod mcp_client;
mod mcp_json;
mod mcp_toml;
mod opencode_plugin;
mod owned_file;
mod plan;
mod program_version;
mod service_unit;
mod text_edits;

pub use advice::{CLAUDE_HOOK_ARGS, CLAUDE_ON_FAILURE, limits, unsupported_version, version_problem};
pub use config_file::{ConfigFile, MAX_CONFIG_BYTES};
pub use config_folders::ConfigFolders;
pub use error::SetupError;
pub use harness::{GATE_TIMEOUT_SECONDS, Harness, HookOptions, SetupScope};
pub use hook_entries::HookState;
pub use mcp_client::{McpClient, McpOptions, McpServer, McpServerState};
pub use plan::{
    SetupPlan, are_hooks_disabled, are_hooks_trusted, forbids_user_hooks, hook_state, mcp_servers,
};
pub use program_version::{InstalledVersion, Version, installed_version};
pub use service_unit::SERVICE_UNIT;

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic, reason = "a test reports a failure by panicking")]
mod tests;

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test reports a failure by panicking")]
mod mcp_tests;
