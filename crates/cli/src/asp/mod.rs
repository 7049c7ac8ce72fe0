//! `sayso asp`: runs a node, a demo session, and verifies or draws a transcript.

mod consent_check;
mod demo;
mod keygen;
mod narration;
mod trace;
mod transcript_file;
mod verify;

use clap::Subcommand;

use crate::ExitStatus;
use crate::file::CommandError;
use crate::serve::asp_node;

#[derive(Subcommand)]
pub(crate) enum AspCommand {
    /// Create an agent's identity: its keys and its signed card.
    Keygen(keygen::KeygenArguments),
    /// Check a card.
    #[command(subcommand)]
    Card(keygen::CardCommand),
    /// Run an agent's node: it negotiates with the nodes of other agents, and asks a person before a commitment binds.
    Serve(Box<asp_node::Arguments>),
    /// Run a session between two agents in one process, and describe what they do.
    Demo(demo::Arguments),
    /// Verify a transcript: hash chain, signatures, proofs, sequence, and every state transition.
    Verify(verify::Arguments),
    /// Show the states of a transcript, as text or as an SVG. Signatures are not checked.
    Trace(trace::Arguments),
}

pub(crate) fn run(command: &AspCommand) -> Result<ExitStatus, CommandError> {
    match command {
        AspCommand::Keygen(arguments) => keygen::run_keygen(arguments),
        AspCommand::Card(command) => keygen::run_card(command),
        AspCommand::Serve(arguments) => asp_node::run(arguments),
        AspCommand::Demo(arguments) => demo::run(arguments),
        AspCommand::Verify(arguments) => verify::run(arguments),
        AspCommand::Trace(arguments) => trace::run(arguments),
    }
}
