//! `sayso asp demo`: runs a session between two agents in one process.
//!
//! - `actors`: the agents, their keys and cards, and the random source.
//! - `simulation`: delivers messages, advances the clock and narrates.
//! - `scenario`: the messages of each scenario.
//! - `network`: `--network`, two real nodes and a hub.

mod actors;
mod network;
mod scenario;
mod simulation;

use std::path::PathBuf;

use actors::{Actors, RandomSource};
use scenario::Scenario;
use seal::UnixMillis;

use super::transcript_file::{self, CommandError};
use crate::ExitStatus;
use crate::listen::AutoAnswer;
use crate::output::{print_stderr, print_stdout};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Scenario to run.
    #[arg(long, value_enum, value_name = "NAME", default_value_t = Scenario::Agreed)]
    scenario: Scenario,
    /// Write the messages to this file exactly as sent, one per line, and the agents' cards to a file next to it.
    #[arg(long, value_name = "FILE")]
    transcript: Option<PathBuf>,
    /// File for the agents' cards. Default: next to the transcript.
    #[arg(long, value_name = "FILE")]
    cards: Option<PathBuf>,
    /// Make the run reproducible: keys and ids are derived from this number, and the clock starts at a fixed time.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Run two real nodes and a hub on this machine. You are asked before the buyer commits.
    #[arg(long, conflicts_with_all = ["scenario", "seed"])]
    network: bool,
    /// With --network: handle every question automatically, without asking a person.
    #[arg(long, value_enum, value_name = "HOW", requires = "network")]
    auto: Option<AutoAnswer>,
    /// With --network: run without a hub, so that nobody is asked.
    #[arg(long, requires = "network", conflicts_with = "auto")]
    no_person: bool,
}

/// The simulated start time of every run with `--seed`.
const SEEDED_START: UnixMillis = UnixMillis::new(1_767_603_600_000);

pub(crate) fn run(arguments: &Arguments) -> Result<ExitStatus, CommandError> {
    if arguments.network {
        check_paths(arguments)?;
        return network::run(arguments);
    }
    let start = match arguments.seed {
        Some(_) => SEEDED_START,
        None => std::time::SystemTime::now().into(),
    };
    let mut random_source = arguments.seed.map_or(RandomSource::System, RandomSource::seeded);
    let result = Actors::new(&mut random_source).and_then(|actors| {
        let result = scenario::run_scenario(arguments.scenario, &actors, &mut random_source, start)?;
        Ok((actors, result))
    });
    let (actors, result) = result.map_err(|error| format!("the demo failed: {error}"))?;
    let mut lines = vec![
        "Two agents negotiate with npayload ASP. Every message is signed, carries a proof, and is linked to the one before it.".to_owned(),
        "Marisol's buyer wants menus in braille; the Braille Press prints them. The clock is simulated."
            .to_owned(),
    ];
    lines.extend(result.narration.iter().cloned());
    let hints = write_files(arguments, &actors, &result)?;
    let printed = print_stdout(&(lines.join("\n") + "\n"));
    for hint in &hints {
        print_stderr(hint);
    }
    Ok(printed)
}

/// Checks the paths of the requested files. Returns the path of the cards file.
fn check_paths(arguments: &Arguments) -> Result<Option<PathBuf>, CommandError> {
    let default_cards = arguments.transcript.as_ref().map(|path| path.with_extension("cards.json"));
    let cards = arguments.cards.as_ref().or(default_cards.as_ref());
    if [arguments.transcript.as_ref(), cards].into_iter().flatten().any(|path| path.as_os_str() == "-") {
        return Err(CommandError::cannot_run(
            "the transcript and the cards cannot be written to standard output",
        ));
    }
    if let (Some(transcript), Some(cards)) = (&arguments.transcript, cards)
        && transcript_file::is_same_file(transcript, cards)
    {
        return Err(CommandError::cannot_run("the transcript and the cards cannot be the same file"));
    }
    Ok(cards.cloned())
}

/// Writes the requested files. Returns hints for the user about these files.
fn write_files(
    arguments: &Arguments,
    actors: &Actors,
    result: &scenario::ScenarioResult,
) -> Result<Vec<String>, CommandError> {
    let lines = |messages: &[String]| messages.join("\n") + "\n";
    let cards = check_paths(arguments)?;
    let cards = cards.as_ref();
    let mut hints = Vec::new();
    let mut delegate_transcript = None;
    if let Some(path) = &arguments.transcript {
        transcript_file::write_file(path, &lines(&result.messages))?;
        if let Some(messages) = &result.delegate_messages {
            let path = path.with_extension("delegate.jsonl");
            transcript_file::write_file(&path, &lines(messages))?;
            delegate_transcript = Some(transcript_file::display_name(&path));
        }
    }
    if let Some(path) = cards {
        transcript_file::write_file(path, &actors.cards_json(result.delegate_messages.is_some()))?;
    }
    if let (Some(transcript), Some(cards)) = (&arguments.transcript, cards) {
        let (transcript, cards) =
            (transcript_file::display_name(transcript), transcript_file::display_name(cards));
        hints.push(format!("Check the transcript: sayso asp verify {transcript} --cards {cards}"));
        if matches!(arguments.scenario, Scenario::InvitationTimeout | Scenario::EscalationTimeout) {
            hints.push(
                "A transcript contains only messages, so verify will report this session as still open."
                    .to_owned(),
            );
        }
        hints.extend(delegate_transcript.map(|transcript| {
            format!("Check the delegate's session: sayso asp verify {transcript} --cards {cards}")
        }));
    }
    Ok(hints)
}
