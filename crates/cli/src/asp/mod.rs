//! The commands of `sayso asp`: keys and cards, a node and the sessions at it, a demo, and transcripts.

mod consent_check;
mod demo;
mod dispute;
mod endorse;
mod keygen;
mod narration;
mod node_client;
mod send;
mod show;
mod trace;
mod transcript_file;
mod trust;
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
    /// Open a session with another agent through a running node, and print its id.
    Invite(send::InviteArguments),
    /// Send a message in a session. The node signs and delivers it, and asks a person first if the policy requires it.
    Send(send::SendArguments),
    /// Describe a session, or list the open or the ended ones.
    Show(show::ShowArguments),
    /// Follow a session until it ends. The exit code is 1 if it failed.
    Watch(show::WatchArguments),
    /// Write the transcript of a session, in the format that sayso asp verify reads.
    Transcript(show::TranscriptArguments),
    /// Complain about the agreement of a session, and see or decide the complaints.
    #[command(subcommand)]
    Dispute(dispute::DisputeCommand),
    /// Say how much the node trusts an agent, and why.
    Trust(trust::Arguments),
    /// Sign an endorsement of another agent, for the operators of nodes that trust yours.
    Endorse(endorse::Arguments),
    /// Run a session between two agents on this machine, and describe what they do.
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
        AspCommand::Invite(arguments) => send::run_invite(arguments),
        AspCommand::Send(arguments) => send::run_send(arguments),
        AspCommand::Show(arguments) => show::run_show(arguments),
        AspCommand::Watch(arguments) => show::run_watch(arguments),
        AspCommand::Transcript(arguments) => show::run_transcript(arguments),
        AspCommand::Dispute(command) => dispute::run(command),
        AspCommand::Trust(arguments) => trust::run(arguments),
        AspCommand::Endorse(arguments) => endorse::run(arguments),
        AspCommand::Demo(arguments) => demo::run(arguments),
        AspCommand::Verify(arguments) => verify::run(arguments),
        AspCommand::Trace(arguments) => trace::run(arguments),
    }
}
