//! The `sayso` command: parses the arguments, runs a subcommand and returns its exit code.

mod asp;
mod backup;
mod capture;
mod check;
mod cluster;
mod demo;
mod explain;
mod file;
mod gate;
mod hub_args;
mod listen;
mod log_args;
mod manifest;
mod migrate;
mod output;
mod page_assets;
mod replay;
mod reshard;
mod schema;
mod serve;
mod shell;
mod svg_text;
mod token;
mod usage;
mod validate;

use std::process::ExitCode;
use std::time::Instant;

use clap::{Parser, Subcommand};

/// Shown below the help of `sayso`.
const FIRST_STEPS: &str =
    "To start, run `sayso demo`; it needs no setup. `sayso COMMAND --help` describes a command.";

/// Nothing an AI agent does goes unheard, and nothing irreversible happens without your say-so.
#[derive(Parser)]
#[command(name = "sayso", version, color = clap::ColorChoice::Never, max_term_width = 100, after_help = FIRST_STEPS)]
struct Arguments {
    #[command(subcommand)]
    command: CliCommand,
    /// Print text without colours or redrawing. This is always on, so the flag has no effect.
    #[arg(long, global = true, display_order = 900)]
    plain: bool,
}

#[derive(Subcommand)]
enum CliCommand {
    /// Try everything on this machine: runs a hub, a scripted agent and a terminal listener.
    Demo(demo::Arguments),
    /// Listen to agents through a hub, and answer their questions.
    Listen(listen::Arguments),
    /// Run the hub that connects agents and listeners.
    Serve(serve::Arguments),
    /// Create, list and revoke access tokens for agents and listeners.
    #[command(subcommand)]
    Token(token::TokenCommand),
    /// See and change which node of a cluster serves agents and listeners.
    #[command(subcommand)]
    Cluster(cluster::ClusterCommand),
    /// Copy the data of a hub, running or stopped, to a new folder.
    Backup(backup::BackupArgs),
    /// Check a backup and put it into an empty data folder.
    Restore(backup::RestoreArgs),
    /// Give a hub's data folder more shards, which use more processor cores.
    Reshard(reshard::ReshardArgs),
    /// Move the journal of a stopped hub from its data folder into a Postgres database.
    Migrate(migrate::MigrateArgs),
    /// Connect a coding agent or MCP servers to sayso by editing their configuration.
    Setup(gate::setup::Arguments),
    /// Run your personal hub all the time, as a service of systemd.
    #[command(subcommand)]
    Service(gate::service::ServiceCommand),
    /// Check the installation: the hub, listeners, coding agents and speech.
    Doctor(gate::doctor::Arguments),
    /// Put a gate between an editor and an agent that speaks ACP: sayso acp -- AGENT.
    Acp(gate::acp::Arguments),
    /// Ask a person yes or no from a shell script. The exit code is 0 for yes and 1 for no.
    Ask(shell::AskArgs),
    /// Tell a person something from a shell script.
    Tell(shell::TellArgs),
    /// Put a gate in front of an MCP server: people hear what it does, and are asked before it changes anything.
    #[cfg(unix)]
    Mcp(gate::mcp::Arguments),
    /// Connect a coding agent: handle one event of its hooks. `sayso setup` configures it.
    Hook(gate::hook::Arguments),
    /// Check events, messages and recordings against the rules of AAEP.
    Validate(validate::Arguments),
    /// Check a running hub, or another producer of AAEP, by talking to it.
    Check(check::Arguments),
    /// Explain a rule that `sayso validate` reports.
    Explain(explain::Arguments),
    /// Record events and messages to a file, to check or replay them later.
    Capture(capture::Arguments),
    /// Replay a recording: in the terminal, to listeners, as a trace or as an SVG.
    Replay(replay::Arguments),
    /// Print the JSON Schemas of AAEP events and messages.
    Schema(schema::Arguments),
    /// Sign and verify producer manifests.
    #[command(subcommand)]
    Manifest(manifest::ManifestCommand),
    /// Run, trace and verify npayload ASP sessions between two agents.
    #[command(subcommand)]
    Asp(asp::AspCommand),
}

/// The exit code of a command. The numbers are part of the public interface.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ExitStatus {
    Success = 0,
    /// The command ran, and its result is negative: faults in the input, a refusal, or a no.
    Negative = 1,
    /// The command could not run.
    CannotRun = 2,
}

fn main() -> ExitCode {
    let started_at = Instant::now();
    if let Some(code) = gate::hook::run_if_requested(started_at) {
        return code;
    }
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return usage::report_usage_error(&error),
    };
    let result = match arguments.command {
        // The exit code of a gate is that of the program behind it.
        CliCommand::Acp(arguments) => {
            return gate::acp::run(&arguments).unwrap_or_else(|error| ExitCode::from(error.report() as u8));
        }
        CliCommand::Validate(arguments) => Ok(validate::run(&arguments)),
        CliCommand::Check(arguments) => check::run(&arguments),
        CliCommand::Explain(arguments) => explain::run(&arguments),
        CliCommand::Setup(arguments) => gate::setup::run(&arguments),
        CliCommand::Doctor(arguments) => gate::doctor::run(&arguments),
        CliCommand::Service(command) => gate::service::run(&command),
        CliCommand::Ask(arguments) => shell::ask(&arguments),
        CliCommand::Tell(arguments) => shell::tell(&arguments),
        CliCommand::Hook(arguments) => return gate::hook::run(&arguments, started_at),
        CliCommand::Schema(arguments) => schema::run(&arguments),
        CliCommand::Demo(arguments) => demo::run(&arguments),
        CliCommand::Serve(arguments) => serve::run(&arguments),
        CliCommand::Listen(arguments) => listen::run(&arguments),
        CliCommand::Capture(arguments) => capture::run(&arguments),
        CliCommand::Replay(arguments) => replay::run(&arguments),
        CliCommand::Backup(arguments) => backup::back_up(&arguments),
        CliCommand::Restore(arguments) => backup::restore(&arguments),
        CliCommand::Cluster(command) => cluster::run(&command),
        CliCommand::Reshard(arguments) => reshard::run(&arguments),
        CliCommand::Migrate(arguments) => migrate::run(&arguments),
        CliCommand::Token(command) => token::run(&command),
        CliCommand::Manifest(command) => manifest::run(&command),
        CliCommand::Asp(command) => asp::run(&command),
        // The exit code is that of the server.
        #[cfg(unix)]
        CliCommand::Mcp(arguments) => return gate::mcp::run(&arguments),
    };
    ExitCode::from(result.unwrap_or_else(file::CommandError::report) as u8)
}
