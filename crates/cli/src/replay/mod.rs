//! `sayso replay`: replays a recording in the terminal, to listeners, as a trace or as an SVG.
//!
//! ```text
//!   validate::item_reader ─▶ narration: announcements at their times (playback_clock)
//!                       ├──▶ serve: events, to every subscriber
//!                       └──▶ checker ─▶ timeline ─▶ trace: one line per step, with the rules it broke
//!                                               └──▶ svg: a diagram of the same steps
//! ```

pub(crate) mod checker;
mod narration;
mod playback_clock;
mod serve;
mod svg;
mod timeline;
mod trace;

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};

use aaep::event::Verbosity;
use aaep::json::Tape;
use listen::Preferences;

use crate::ExitStatus;
use crate::file::CommandError;
use crate::listen::{parse_language_tag, verbosity_parser};
use crate::output::{describe_io_error, print_stderr, printable};
use crate::validate;
use crate::validate::item_reader::ItemReader;
use crate::validate::report::format_summary;
use checker::ReplayChecker;
use playback_clock::{PlaybackClock, Speed};
use svg::RecordingDiagram;
use timeline::{RuleViolation, TimelineBuilder};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Recording: JSON Lines as written by `sayso capture`, or a JSON array. `-` is standard input.
    file: PathBuf,
    /// Playback speed. 1 is real time, 10 is ten times as fast, and max has no pauses.
    #[arg(long, value_name = "N", default_value = "1", value_parser = Speed::parse)]
    speed: Speed,
    /// Print a state-machine trace: one line per step, with every rule that the step breaks.
    #[arg(long, conflicts_with_all = ["speed", "listen"])]
    visualize: bool,
    /// Draw the sessions as an SVG and write it to this file. The lanes show state, tools, output and questions.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["speed", "listen"])]
    svg: Option<PathBuf>,
    /// Serve the recording to listeners at this address, like a hub. Each listener gets the recording from the start.
    #[arg(long, value_name = "ADDR")]
    listen: Option<String>,
    /// How much detail to announce.
    #[arg(long, default_value = "normal", value_parser = verbosity_parser())]
    verbosity: Verbosity,
    /// Languages to hear, in order of preference. Example: --lang es,en
    #[arg(long = "lang", value_name = "TAG", value_delimiter = ',', default_value = "en", value_parser = parse_language_tag)]
    languages: Vec<String>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitStatus, CommandError> {
    let result = match &arguments.listen {
        _ if arguments.visualize || arguments.svg.is_some() => trace_and_draw(arguments),
        Some(address) => serve::run(&arguments.file, address, arguments.speed).map(|()| ExitStatus::Success),
        None => narrate_recording(arguments),
    };
    result.map_err(CommandError::from)
}

fn narrate_recording(arguments: &Arguments) -> Result<ExitStatus, String> {
    let name = display_name(&arguments.file);
    let input = open(&arguments.file)?;
    let preferences = Preferences {
        verbosity: arguments.verbosity.clone(),
        languages: arguments.languages.clone(),
        ..Preferences::default()
    };
    let io_error = |error: io::Error| format!("cannot play {name}: {}", describe_io_error(&error));
    let mut out = io::stdout().lock();
    narration::print_heading(&mut out, &name).map_err(io_error)?;
    let summary = narration::narrate(input, preferences, &mut PlaybackClock::new(arguments.speed), &mut out)
        .map_err(io_error)?;
    if summary.has_write_failed {
        return Ok(ExitStatus::Success);
    }
    if !summary.unreadable_lines.is_empty() {
        let lines: Vec<_> = summary.unreadable_lines.iter().map(u64::to_string).collect();
        print_stderr(&format!("sayso: skipped unreadable lines of {name}: {}", lines.join(", ")));
    }
    if summary.events == 0 {
        print_stderr(&format!("sayso: {name} contains no events"));
    }
    Ok(if summary.unreadable_lines.is_empty() && summary.events > 0 {
        ExitStatus::Success
    } else {
        ExitStatus::Negative
    })
}

/// Writes the trace, the SVG, or both, in one pass.
fn trace_and_draw(arguments: &Arguments) -> Result<ExitStatus, String> {
    let name = display_name(&arguments.file);
    let mut items = ItemReader::new(open(&arguments.file)?);
    let read_error = |error: io::Error| format!("cannot read {name}: {}", describe_io_error(&error));
    let print_error = |error: io::Error| format!("cannot print the trace: {}", describe_io_error(&error));
    let (mut checker, mut timeline) = (ReplayChecker::new(), TimelineBuilder::default());
    let (mut tape, mut text_tape) = (Tape::default(), Tape::default());
    let mut out = BufWriter::new(io::stdout().lock());
    let mut diagram = arguments.svg.is_some().then(RecordingDiagram::default);
    let (mut errors, mut warnings, mut is_tracing) = (0_u64, 0_u64, arguments.visualize);
    let mut count_violations = |violations: &[RuleViolation]| {
        let error_count = violations.iter().filter(|violation| violation.is_error).count() as u64;
        errors += error_count;
        warnings += violations.len() as u64 - error_count;
    };
    while let Some(item) = items.next().map_err(read_error)? {
        let (checked, findings) = checker.check_item(&item, &mut tape);
        let text = item.bytes.as_deref().ok().and_then(|bytes| std::str::from_utf8(bytes).ok());
        let document = text.and_then(|text| text_tape.read(text).ok()).map(|doc| doc.root());
        let entry = timeline.add_item(item.line, &checked, document, &findings);
        count_violations(&entry.violations);
        if is_tracing {
            is_tracing =
                trace::write_unless_closed(&mut out, &trace::format_entry(&entry)).map_err(print_error)?;
        }
        if let Some(diagram) = &mut diagram {
            diagram.add(&entry);
        }
    }
    let events = checker.events;
    let (unfinished, sessions) = checker.finish();
    let unfinished: Vec<_> =
        unfinished.iter().map(|(line, finding)| (*line, RuleViolation::from_finding(finding))).collect();
    for (line, violation) in &unfinished {
        count_violations(std::slice::from_ref(violation));
        if is_tracing {
            is_tracing = trace::write_unless_closed(&mut out, &trace::format_unfinished(*line, violation))
                .map_err(print_error)?;
        }
    }
    if is_tracing {
        let mut text = format_summary([events, sessions, errors, warnings], io::stdout().is_terminal());
        text.push('\n');
        trace::write_unless_closed(&mut out, &text).map_err(print_error)?;
        match out.flush() {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => return Err(print_error(error)),
            _ => {}
        }
    }
    if let (Some(diagram), Some(path)) = (diagram, &arguments.svg) {
        write_svg(path, &diagram.draw(&unfinished))?;
    }
    Ok(if errors > 0 { ExitStatus::Negative } else { ExitStatus::Success })
}

fn write_svg(path: &Path, diagram: &str) -> Result<(), String> {
    std::fs::write(path, diagram)
        .map_err(|error| format!("cannot write {}: {}", display_name(path), describe_io_error(&error)))
}

fn display_name(path: &Path) -> String {
    if path.as_os_str() == "-" { "standard input".to_owned() } else { printable(&path.to_string_lossy()) }
}

fn open(path: &Path) -> Result<Box<dyn Read + Send>, String> {
    if path.as_os_str() == "-" {
        return Ok(Box::new(io::stdin()));
    }
    let file: Result<File, String> = validate::open_file(path);
    file.map(|file| Box::new(file) as Box<dyn Read + Send>)
        .map_err(|error| format!("cannot read {}: {error}", display_name(path)))
}
