//! `sayso asp`: two agents negotiating, a transcript checked, a transcript drawn.

mod demo;
mod file;
mod story;
mod trace;
mod verify;

use clap::Subcommand;

use crate::Outcome;
use crate::file::Stop;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Runs two agents in one process through the life of a session and tells what they do.
    Demo(demo::Arguments),
    /// Checks a transcript: chain, signatures, proofs, sequence, and whether every step was lawful.
    Verify(verify::Arguments),
    /// Draws a transcript's states, as lines of text or as a picture. Signatures are not checked.
    Trace(trace::Arguments),
}

pub(crate) fn run(command: &Command) -> Result<Outcome, Stop> {
    match command {
        Command::Demo(arguments) => demo::run(arguments),
        Command::Verify(arguments) => verify::run(arguments),
        Command::Trace(arguments) => trace::run(arguments),
    }
}
