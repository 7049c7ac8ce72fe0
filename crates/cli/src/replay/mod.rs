//! `sayso replay`: a recording again, for ears, for listeners, for eyes.
//!
//! ```text
//!   validate::items ─▶ narrate: lines, at their times (pace)
//!                 ├──▶ serve: events, to everybody who subscribes
//!                 └──▶ judge ─▶ story ─▶ trace: a line a step, and the rules that it broke
//!                                   └──▶ svg: a picture of the same
//! ```

mod judge;
mod narrate;
mod pace;
mod serve;
mod story;
mod svg;
mod trace;

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use aaep::event::Verbosity;
use aaep::json::Tape;
use listen::Tastes;

use crate::Outcome;
use crate::file::Stop;
use crate::listen::{language, verbosity};
use crate::print::{in_words, printable, tell};
use crate::validate;
use crate::validate::items::Items;
use judge::Judge;
use pace::{Clock, Speed};
use story::{Broken, Story};
use svg::Picture;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// A recording: JSON Lines, as `sayso capture` writes them, or a JSON array. `-` is standard input.
    file: PathBuf,
    /// How fast: 1 is as it happened, 10 ten times as fast, max without any pause.
    #[arg(long, value_name = "N", default_value = "1", value_parser = Speed::parse)]
    speed: Speed,
    /// Prints the state-machine trace, a line a step, with every rule that a step breaks.
    #[arg(long, conflicts_with_all = ["speed", "listen"])]
    visualize: bool,
    /// Draws the sessions into this file: lanes for state, tools, output and questions, with times.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["speed", "listen"])]
    svg: Option<PathBuf>,
    /// Serves the recording to listeners at this address, as a hub would; each hears it from its start.
    #[arg(long, value_name = "ADDR")]
    listen: Option<String>,
    /// How much is said.
    #[arg(long, default_value = "normal", value_parser = verbosity())]
    verbosity: Verbosity,
    /// The languages to hear, the dearest first: --lang es,en
    #[arg(long = "lang", value_name = "TAG", value_delimiter = ',', default_value = "en", value_parser = language)]
    languages: Vec<String>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Outcome, Stop> {
    let done = match &arguments.listen {
        _ if arguments.visualize || arguments.svg.is_some() => drawn(arguments),
        Some(address) => serve::run(&arguments.file, address, arguments.speed).map(|()| Outcome::Good),
        None => told(arguments),
    };
    done.map_err(Stop::from)
}

fn told(arguments: &Arguments) -> Result<Outcome, String> {
    let name = name(&arguments.file);
    let input = open(&arguments.file)?;
    let tastes =
        Tastes { verbosity: arguments.verbosity.clone(), languages: arguments.languages.clone(), rate: None };
    let cannot = |error: io::Error| format!("cannot play {name}: {}", in_words(&error));
    let mut out = io::stdout().lock();
    narrate::preface(&mut out, &name).map_err(cannot)?;
    let heard = narrate::tell(input, tastes, &mut Clock::new(arguments.speed), &mut out).map_err(cannot)?;
    if heard.deaf {
        return Ok(Outcome::Good);
    }
    if !heard.unread.is_empty() {
        let lines: Vec<_> = heard.unread.iter().map(u64::to_string).collect();
        tell(&format!(
            "sayso: {name} has lines that could not be read and were left out: {}",
            lines.join(", ")
        ));
    }
    if heard.events == 0 {
        tell(&format!("sayso: there is no event in {name}"));
    }
    Ok(if heard.unread.is_empty() && heard.events > 0 { Outcome::Good } else { Outcome::Faults })
}

/// The trace, the picture, or both, in one pass.
fn drawn(arguments: &Arguments) -> Result<Outcome, String> {
    let name = name(&arguments.file);
    let mut items = Items::new(open(&arguments.file)?);
    let cannot = |error: io::Error| format!("cannot read {name}: {}", in_words(&error));
    let cannot_print = |error: io::Error| format!("cannot print the trace: {}", in_words(&error));
    let (mut judge, mut story, mut tape) = (Judge::new(), Story::default(), Tape::default());
    let mut out = BufWriter::new(io::stdout().lock());
    let mut picture = arguments.svg.is_some().then(Picture::default);
    let (mut errors, mut warnings, mut hears) = (0_u64, 0_u64, arguments.visualize);
    let mut count = |broken: &[Broken]| {
        let bad = broken.iter().filter(|broken| broken.is_error).count() as u64;
        errors += bad;
        warnings += broken.len() as u64 - bad;
    };
    while let Some(item) = items.next().map_err(cannot)? {
        let (checked, findings) = judge.take(&item, &mut tape);
        let moment = story.moment(item.line, &checked, &findings);
        count(&moment.broken);
        if hears {
            hears = trace::print(&mut out, &trace::lines(&moment)).map_err(cannot_print)?;
        }
        if let Some(picture) = &mut picture {
            picture.add(&moment);
        }
    }
    let events = judge.events;
    let (left, sessions) = judge.finish();
    let left: Vec<_> = left.iter().map(|(line, finding)| (*line, Broken::of(finding))).collect();
    for (line, broken) in &left {
        count(std::slice::from_ref(broken));
        if hears {
            hears = trace::print(&mut out, &trace::left(*line, broken)).map_err(cannot_print)?;
        }
    }
    if hears {
        let text = format!("{events} events, {sessions} sessions: {errors} errors, {warnings} warnings\n");
        trace::print(&mut out, &text).map_err(cannot_print)?;
        match out.flush() {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => return Err(cannot_print(error)),
            _ => {}
        }
    }
    if let (Some(picture), Some(path)) = (picture, &arguments.svg) {
        save(path, &picture.draw(&left))?;
    }
    Ok(if errors > 0 { Outcome::Faults } else { Outcome::Good })
}

fn save(path: &Path, picture: &str) -> Result<(), String> {
    std::fs::write(path, picture)
        .map_err(|error| format!("cannot write {}: {}", name(path), in_words(&error)))
}

fn name(path: &Path) -> String {
    if path.as_os_str() == "-" { "standard input".to_owned() } else { printable(&path.to_string_lossy()) }
}

fn open(path: &Path) -> Result<Box<dyn Read + Send>, String> {
    if path.as_os_str() == "-" {
        return Ok(Box::new(io::stdin()));
    }
    let file: Result<File, String> = validate::open(path);
    file.map(|file| Box::new(file) as Box<dyn Read + Send>)
        .map_err(|why| format!("cannot read {}: {why}", name(path)))
}
