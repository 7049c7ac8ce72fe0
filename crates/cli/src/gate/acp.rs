//! `sayso acp`: a gate between an editor and an agent that speaks the Agent Client Protocol.

use std::ffi::OsString;
use std::process::ExitCode;

use client::HubLocation;
use gate::acp::AcpOptions;

use crate::file::CommandError;
use crate::hub_args::{Credentials, build_runtime, complete_url};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Address of the hub. The default is the one in SAYSO_URL, or else your personal hub.
    #[arg(long, value_name = "URL")]
    hub: Option<String>,
    /// Narrate the agent's thoughts too.
    #[arg(long)]
    thoughts: bool,
    #[command(flatten)]
    credentials: Credentials,
    /// The agent's program and its arguments.
    #[arg(last = true, required = true, value_names = ["AGENT", "ARGS"])]
    agent: Vec<OsString>,
}

/// Runs the gate. The exit code is that of the agent.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, CommandError> {
    let hub = arguments.hub.as_deref().map(complete_url).transpose()?;
    let location = HubLocation::find(hub.as_deref()).map_err(|error| error.to_string())?;
    let Some((program, agent_arguments)) = arguments.agent.split_first() else {
        return Err(CommandError::cannot_run("name the agent's program after --"));
    };
    let options = AcpOptions {
        hub_url: location.url.to_string(),
        token: arguments.credentials.token()?,
        ca_file: arguments.credentials.ca.clone(),
        narrates_thoughts: arguments.thoughts,
        program: program.clone(),
        arguments: agent_arguments.to_vec(),
        guard_command: super::mcp::guard_command(),
    };
    let runtime = build_runtime(0)?;
    let result = runtime.block_on(gate::acp::run(options));
    // A thread still waits for the editor's next line. It must not delay the exit.
    runtime.shutdown_background();
    result.map(ExitCode::from).map_err(|error| CommandError::cannot_run(error.to_string()))
}
