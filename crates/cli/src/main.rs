//! The sayso command: arguments in, exit codes out.

mod asp;
mod capture;
mod demo;
mod file;
mod listen;
mod manifest;
mod page;
mod picture;
mod print;
mod replay;
mod schema;
mod serve;
mod token;
mod usage;
mod validate;
mod watching;
mod way;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// For who sees it for the first time.
const BEGIN: &str =
    "Begin with: sayso demo. It needs nothing else. `sayso COMMAND --help` says more about each.";

/// Nothing an AI agent does goes unheard, and nothing irreversible happens without your say-so.
#[derive(Parser)]
#[command(name = "sayso", version, color = clap::ColorChoice::Never, max_term_width = 100, after_help = BEGIN)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
    /// No colour, nothing that repaints; so it always is.
    #[arg(long, global = true, display_order = 900)]
    plain: bool,
}

#[derive(Subcommand)]
enum Command {
    /// The whole thing on this machine: a hub, a scripted assistant, and you, who hear it and answer.
    Demo(demo::Arguments),
    /// A person hears agents through a hub, and answers.
    Listen(listen::Arguments),
    /// The hub: agents speak to it, listeners hear and answer.
    Serve(serve::Arguments),
    /// Tokens: who may speak, hear and answer.
    #[command(subcommand)]
    Token(token::Command),
    /// Checks events, messages and whole recordings against every rule of AAEP.
    Validate(validate::Arguments),
    /// Writes down what agents say, to judge it and hear it again.
    Capture(capture::Arguments),
    /// Plays a recording: in the terminal, to listeners, as a trace or as a picture.
    Replay(replay::Arguments),
    /// Prints the JSON Schemas of AAEP's events and messages.
    Schema(schema::Arguments),
    /// Producer manifests and their signatures.
    #[command(subcommand)]
    Manifest(manifest::Command),
    /// npayload ASP: two agents negotiating, and what they leave behind.
    #[command(subcommand)]
    Asp(asp::Command),
}

/// How a command ended; the numbers are promises.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    Good = 0,
    /// The thing examined has faults.
    Faults = 1,
    /// The command could not run.
    Failed = 2,
}

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return usage::answer(&error),
    };
    let outcome = match arguments.command {
        Command::Validate(arguments) => Ok(validate::run(&arguments)),
        Command::Schema(arguments) => schema::run(&arguments),
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Serve(arguments) => serve::run(&arguments),
        Command::Listen(arguments) => listen::run(&arguments),
        Command::Capture(arguments) => capture::run(&arguments),
        Command::Replay(arguments) => replay::run(&arguments),
        Command::Token(command) => token::run(&command),
        Command::Manifest(command) => manifest::run(&command),
        Command::Asp(command) => asp::run(&command),
    };
    ExitCode::from(outcome.unwrap_or_else(file::Stop::tell) as u8)
}
