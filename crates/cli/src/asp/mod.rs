//! `sayso asp`: runs a demo session, and verifies or draws a transcript.

mod consent_check;
mod demo;
mod narration;
mod trace;
mod transcript_file;
mod verify;

use clap::Subcommand;

use crate::ExitStatus;
use crate::file::CommandError;

#[derive(Subcommand)]
pub(crate) enum AspCommand {
    /// Run a session between two agents in one process, and describe what they do.
    Demo(demo::Arguments),
    /// Verify a transcript: hash chain, signatures, proofs, sequence, and every state transition.
    Verify(verify::Arguments),
    /// Show the states of a transcript, as text or as an SVG. Signatures are not checked.
    Trace(trace::Arguments),
}

pub(crate) fn run(command: &AspCommand) -> Result<ExitStatus, CommandError> {
    match command {
        AspCommand::Demo(arguments) => demo::run(arguments),
        AspCommand::Verify(arguments) => verify::run(arguments),
        AspCommand::Trace(arguments) => trace::run(arguments),
    }
}
