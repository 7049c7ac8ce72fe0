//! A gate in front of an MCP server: `sayso mcp`.
//!
//! ```text
//!            stdin                      pipe
//!   host ─────────────▶ host pump ───────────────▶ server
//!        ◀───────────── server pump ◀─────────────
//!            stdout         │
//!                       GateCore ◀──▶ Narrator ◀──▶ hub
//! ```
//!
//! Two threads pass lines on, one in each direction. They never wait for the hub. `GateCore` decides what happens to each message.
//! Only a call that needs a question is held back; the narrator asks the person and, after a yes, has the core send it.
//!
//! - `message`, `outcome`, `describe`: what the gate reads in messages, and how it says it in words.
//! - `tools`, `trust`, `pins`: which tools need a question.
//! - `gate_core`: the state, without I/O.
//! - `shared`, `outbox`, `lines`: threads, ordered output and limited input.
//! - `hub_link`, `narrator`, `elicit`: the hub.
//! - `child`: the server as a child process.
//! - `http`: a server behind a URL.

mod describe;
mod elicit;
mod gate_core;
mod http;
mod hub_link;
mod lines;
mod message;
mod narrator;
mod outbox;
mod outcome;
mod param_headers;
mod pins;
mod shared;
mod stdio;
mod tools;
mod trust;

pub mod limits;

use std::ffi::OsString;

use client::Url;

pub use hub_link::HubAddress;
pub use stdio::{McpError, run};
pub use trust::{ServerTrust, TrustFileError};

/// The server behind the gate.
#[derive(Clone, Debug)]
pub enum ServerTarget {
    /// A program that speaks MCP on its standard input and output.
    Command(OsString, Vec<OsString>),
    /// A server behind this address that speaks streamable HTTP, with an access token if it needs one.
    Url(Url, Option<String>),
}

/// The options of the gate.
#[derive(Clone, Debug)]
pub struct GateOptions {
    /// The server.
    pub target: ServerTarget,
    /// The server's name, as people hear it.
    pub name: String,
    /// What the operator trusts.
    pub trust: ServerTrust,
    /// The hub.
    pub hub: HubAddress,
    /// Whether elicitations of the server are offered to listeners.
    pub elicit: bool,
    /// The command that runs [`crate::child_process::watch`], to which the group's id is appended.
    pub guard_command: Vec<OsString>,
}

/// Returns a name for a server that was given none: its package or program.
///
/// ```
/// let name = |words: &[&str]| gate::mcp::default_name(&words.iter().map(|word| word.into()).collect::<Vec<_>>());
/// assert_eq!(name(&["npx", "-y", "@modelcontextprotocol/server-filesystem@1.2", "/tmp"]), "server-filesystem");
/// assert_eq!(name(&["/usr/bin/git-mcp"]), "git-mcp");
/// ```
pub fn default_name(command: &[OsString]) -> String {
    const LAUNCHERS: [&str; 12] =
        ["npx", "uvx", "bunx", "pnpx", "node", "python", "python3", "uv", "bun", "deno", "pipx", "docker"];
    const SUBCOMMANDS: [&str; 5] = ["run", "dlx", "exec", "tool", "x"];
    let words: Vec<_> = command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let base = |word: &str| {
        let file = word.trim_end_matches('/').rsplit('/').next().unwrap_or(word).to_owned();
        let name = file.split('@').find(|part| !part.is_empty()).unwrap_or_default().to_owned();
        let stem =
            ["js", "mjs", "cjs", "ts", "py"].iter().find_map(|ext| name.strip_suffix(&format!(".{ext}")));
        stem.map_or(name.clone(), str::to_owned)
    };
    let program = words.first().map(|word| base(word)).unwrap_or_default();
    if !LAUNCHERS.contains(&program.as_str()) {
        return program;
    }
    let package =
        words.iter().skip(1).find(|word| !word.starts_with('-') && !SUBCOMMANDS.contains(&word.as_str()));
    package.map_or(program, |word| base(word))
}
