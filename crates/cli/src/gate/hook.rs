//! `sayso hook`: handles one hook event of a coding agent.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use gate::hook::{Gate, Harness, HookOptions};

use crate::usage;

/// Handle one hook event of a coding agent: read it from standard input, narrate it, and ask a person where the agent needs
/// permission.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Program that calls the hook.
    #[arg(value_name = "HARNESS", value_parser = parse_harness)]
    harness: Harness,
    /// Which calls a person must permit: only those for which the harness asks, the risky ones as well, or all. The default is
    /// requests for claude and codex, and risky for the others.
    #[arg(long, value_name = "WHICH", value_parser = parse_gate)]
    gate: Option<Gate>,
    /// Address of the hub. The default is the one in SAYSO_URL, or else the personal hub.
    #[arg(long, value_name = "URL")]
    hub: Option<String>,
    /// File that contains the access token. The default is the token in SAYSO_TOKEN.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Refuse a call if nobody can be asked. Otherwise the harness's own prompt remains.
    #[arg(long)]
    required: bool,
    /// Maximum number of seconds until the hook answers. It must be less than the harness's timeout for the hook.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(5..=86_400))]
    deadline: Option<u64>,
}

/// The command line of a hook, which is parsed without the other commands, because a hook must start fast.
#[derive(Parser)]
#[command(name = "sayso", color = clap::ColorChoice::Never, max_term_width = 100)]
struct HookCommandLine {
    #[command(subcommand)]
    command: HookCommand,
}

#[derive(clap::Subcommand)]
enum HookCommand {
    Hook(Arguments),
    /// Kill a hook that does not answer. For internal use.
    #[command(name = WATCHDOG, hide = true)]
    Watchdog(WatchdogArgs),
}

/// Name of the command that watches a hook.
const WATCHDOG: &str = "hook-watchdog";

#[derive(clap::Args)]
struct WatchdogArgs {
    /// Process of the hook.
    hook: i32,
    /// How many milliseconds the hook has left.
    time_left_ms: u64,
    /// Process of the shell that started the hook.
    #[arg(long)]
    shell: Option<i32>,
}

fn parse_harness(name: &str) -> Result<Harness, String> {
    Harness::parse(name).ok_or_else(|| {
        let names: Vec<_> = Harness::ALL.iter().map(|harness| harness.name()).collect();
        format!("the harnesses are {}", names.join(", "))
    })
}

fn parse_gate(name: &str) -> Result<Gate, &'static str> {
    Gate::parse(name).ok_or("write requests, risky or all")
}

/// Runs the command if the arguments of the process are those of a hook.
pub(crate) fn run_if_requested(started_at: Instant) -> Option<ExitCode> {
    let command = std::env::args_os().nth(1)?;
    if command != "hook" && command != WATCHDOG {
        return None;
    }
    Some(match HookCommandLine::try_parse() {
        Ok(HookCommandLine { command: HookCommand::Hook(arguments) }) => run(&arguments, started_at),
        Ok(HookCommandLine { command: HookCommand::Watchdog(arguments) }) => {
            let WatchdogArgs { hook, time_left_ms, shell } = arguments;
            gate::hook::watch(hook, shell, Duration::from_millis(time_left_ms));
            ExitCode::SUCCESS
        }
        // Only a request for help is not an error. A harness must get an answer in any case.
        Err(error) => {
            let code = usage::report_usage_error(&error);
            if error.use_stderr() { ExitCode::from(gate::hook::answer_usage_error()) } else { code }
        }
    })
}

/// Handles one event.
pub(crate) fn run(arguments: &Arguments, started_at: Instant) -> ExitCode {
    let token = match &arguments.token_file {
        // Without its token, the hook cannot reach the hub, and behaves as without a hub.
        Some(path) => {
            Some(std::fs::read_to_string(path).map(|text| text.trim().to_owned()).unwrap_or_default())
        }
        None => std::env::var("SAYSO_TOKEN").ok().filter(|token| !token.is_empty()),
    };
    let options = HookOptions {
        harness: arguments.harness,
        gate: arguments.gate,
        hub: arguments.hub.clone(),
        token,
        is_required: arguments.required,
        deadline: arguments.deadline.map(Duration::from_secs),
        state_folder: None,
        watchdog_command: watchdog_command(),
    };
    ExitCode::from(gate::hook::run(options, started_at))
}

/// Returns the command of the process that watches a hook, or nothing if the path of this program is not known.
fn watchdog_command() -> Vec<OsString> {
    std::env::current_exe().map(|program| vec![program.into(), WATCHDOG.into()]).unwrap_or_default()
}
