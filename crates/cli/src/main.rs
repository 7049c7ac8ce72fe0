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
mod validate;
mod watching;
mod way;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Nothing an AI agent does goes unheard, and nothing irreversible happens without your say-so.
#[derive(Parser)]
#[command(name = "sayso", version, color = clap::ColorChoice::Never, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
    /// Plain output: no colour, nothing that repaints. sayso never does either; the flag is accepted everywhere.
    #[arg(long, global = true)]
    plain: bool,
}

#[derive(Subcommand)]
enum Command {
    /// Checks events, messages and whole recordings against every rule of AAEP.
    Validate(validate::Arguments),
    /// Prints the JSON Schemas of AAEP's events and messages.
    Schema(schema::Arguments),
    /// The whole thing on this machine: a hub, a scripted assistant, and you, who hear it and answer.
    Demo(demo::Arguments),
    /// The hub: agents speak to it, listeners hear and answer.
    Serve(serve::Arguments),
    /// A person hears agents through a hub, and answers.
    Listen(listen::Arguments),
    /// Writes down what agents say, to judge it and hear it again.
    Capture(capture::Arguments),
    /// Plays a recording: in the terminal, to listeners, as a trace or as a picture.
    Replay(replay::Arguments),
    /// Tokens: who may speak, hear and answer.
    Token(token::Arguments),
    /// Producer manifests and their signatures.
    Manifest(manifest::Arguments),
    /// npayload ASP: two agents negotiating, and what they leave behind.
    Asp(asp::Arguments),
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
    let arguments = Arguments::parse();
    let outcome = match arguments.command {
        Command::Validate(arguments) => validate::run(&arguments),
        Command::Schema(arguments) => schema::run(&arguments),
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Serve(arguments) => serve::run(&arguments),
        Command::Listen(arguments) => listen::run(&arguments),
        Command::Capture(arguments) => capture::run(&arguments),
        Command::Replay(arguments) => replay::run(&arguments),
        Command::Token(arguments) => token::run(&arguments),
        Command::Manifest(arguments) => manifest::run(&arguments),
        Command::Asp(arguments) => asp::run(&arguments),
    };
    ExitCode::from(outcome as u8)
}
