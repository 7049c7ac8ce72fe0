//! `sayso asp endorse`: signs an endorsement of another agent.

use std::path::PathBuf;

use asp::AgentUri;
use asp::trust::SignedEndorsement;
use node::Identity;
use seal::Timestamp;

use super::keygen::parse_agent;
use crate::ExitStatus;
use crate::file::CommandError;
use crate::output::print_stdout;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The agent to endorse: its URI.
    #[arg(value_name = "AGENT", value_parser = parse_agent)]
    agent: AgentUri,
    /// Folder with the keys and the card of the agent that endorses.
    #[arg(long, value_name = "DIR")]
    identity: PathBuf,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitStatus, CommandError> {
    let identity =
        Identity::load(&arguments.identity).map_err(|error| CommandError::cannot_run(error.to_string()))?;
    if *identity.card.agent_id() == arguments.agent {
        return Err(CommandError::cannot_run("an agent cannot endorse itself"));
    }
    let now = Timestamp::from_unix_millis(wire::unix_now())
        .ok_or_else(|| CommandError::cannot_run("the clock is not usable"))?;
    let endorsement = SignedEndorsement::sign(&identity.card, &arguments.agent, now, &identity.keys)
        .map_err(|error| CommandError::cannot_run(error.to_string()))?;
    Ok(print_stdout(&format!("{}\n", endorsement.as_str())))
}
