//! `sayso asp demo`: two agents in one process, through the whole life of a session.
//!
//! - `cast`: who they are, and the randomness that makes them.
//! - `stage`: carries messages from one to the other, moves the clock, tells what happens.
//! - `scenario`: what they say to each other.

mod cast;
mod scenario;
mod stage;

use std::path::PathBuf;

use cast::{Cast, Source};
use scenario::Scenario;
use seal::UnixMillis;

use super::file::{self, Stop};
use crate::Outcome;
use crate::print::{print, tell};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// What happens between the two.
    #[arg(long, value_enum, value_name = "NAME", default_value_t = Scenario::Agreed)]
    scenario: Scenario,
    /// Writes the messages into this file as they were sent, one a line, and the cards beside it.
    #[arg(long, value_name = "FILE")]
    transcript: Option<PathBuf>,
    /// Where the agents' cards go; beside the transcript if not said.
    #[arg(long, value_name = "FILE")]
    cards: Option<PathBuf>,
    /// Makes the run the same every time: keys, names and times follow from the number.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
}

/// With a seed, every session begins on the same morning.
const SEEDED_START: UnixMillis = UnixMillis::new(1_767_603_600_000);

pub(crate) fn run(arguments: &Arguments) -> Result<Outcome, Stop> {
    let start = match arguments.seed {
        Some(_) => SEEDED_START,
        None => std::time::SystemTime::now().into(),
    };
    let mut source = arguments.seed.map_or(Source::System, Source::seeded);
    let played = Cast::new(&mut source).map_err(|error| error.to_string()).and_then(|cast| {
        let played = scenario::play(arguments.scenario, &cast, &mut source, start)?;
        Ok((cast, played))
    });
    let (cast, played) = played.map_err(|why| format!("the demo could not go on: {why}"))?;
    let mut lines = vec![
        "Two agents deal with each other by npayload ASP; every message is signed, proven and linked."
            .to_owned(),
        "Marisol's buyer wants menus in braille; the Braille Press prints them. The clock is simulated."
            .to_owned(),
    ];
    lines.extend(played.told.iter().cloned());
    let hints = write(arguments, &cast, &played)?;
    let printed = print(&(lines.join("\n") + "\n"));
    for hint in &hints {
        tell(hint);
    }
    Ok(printed)
}

/// Writes the files that were asked for; returns what to say about them.
fn write(arguments: &Arguments, cast: &Cast, played: &scenario::Played) -> Result<Vec<String>, Stop> {
    let lines = |messages: &[String]| messages.join("\n") + "\n";
    let beside = arguments.transcript.as_ref().map(|path| path.with_extension("cards.json"));
    let cards = arguments.cards.as_ref().or(beside.as_ref());
    if [arguments.transcript.as_ref(), cards].into_iter().flatten().any(|path| path.as_os_str() == "-") {
        return Err(Stop::failed("the transcript and the cards go into files, not to standard output"));
    }
    if let (Some(transcript), Some(cards)) = (&arguments.transcript, cards)
        && file::is_same(transcript, cards)
    {
        return Err(Stop::failed("the transcript and the cards cannot go into the same file"));
    }
    let mut hints = Vec::new();
    let mut delegate = None;
    if let Some(path) = &arguments.transcript {
        file::write(path, &lines(&played.messages))?;
        if let Some(messages) = &played.delegate {
            let path = path.with_extension("delegate.jsonl");
            file::write(&path, &lines(messages))?;
            delegate = Some(file::name(&path));
        }
    }
    if let Some(path) = cards {
        file::write(path, &cast.cards_json(played.delegate.is_some()))?;
    }
    if let (Some(transcript), Some(cards)) = (&arguments.transcript, cards) {
        let (transcript, cards) = (file::name(transcript), file::name(cards));
        hints.push(format!("Check it: sayso asp verify {transcript} --cards {cards}"));
        if matches!(arguments.scenario, Scenario::InvitationTimeout | Scenario::EscalationTimeout) {
            hints.push(
                "A transcript holds messages only: verify will call this session still open.".to_owned(),
            );
        }
        hints.extend(delegate.map(|delegate| {
            format!("Check the delegate's session: sayso asp verify {delegate} --cards {cards}")
        }));
    }
    Ok(hints)
}
