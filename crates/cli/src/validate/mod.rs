//! `sayso validate`: checks whatever it is given, as it streams by.
//!
//! ```text
//!   split.rs            work.rs (every core)            order.rs (in order)          report.rs
//!   input ─▶ blocks ─▶ read, check each on its own ─▶ sessions, tokens, ids ─▶ a line a finding
//! ```

pub(crate) mod items;
mod order;
mod report;
mod split;
mod stream;
mod work;

use std::fs::File;
use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};

use aaep::check::{Checked, Validator};
use aaep::json::Tape;
use aaep::recording::{Limits, Sequence};
use aaep::rule::{Face, Findings, Rule};

use crate::Outcome;
use crate::print::{in_words, tell};
use order::Order;
use report::Report;

/// More threads than this only wait for each other, or cannot be had.
const MOST_JOBS: usize = 64;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Files of events and messages: JSON, a JSON array, JSON Lines, or a captured event stream. `-` or nothing is standard
    /// input.
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// One JSON object a finding, then one with the summary.
    #[arg(long)]
    json: bool,
    /// The tolerant face of a receiver: what is unknown or out of limits is a warning. Replies stay strict.
    #[arg(long)]
    receive: bool,
    /// Whether to judge the order of events: of sessions whose start is in the input, of all, or of none.
    #[arg(long, value_name = "WHEN", value_enum, default_value_t)]
    sequence: When,
    /// Leaves a rule out; may be given several times.
    #[arg(long, value_name = "RULE")]
    ignore: Vec<String>,
    /// Events longer than this are not read, and do not pass.
    #[arg(long, value_name = "BYTES", default_value_t = items::LONGEST)]
    max_event_bytes: usize,
    /// Sessions that may be open at once; the order of further ones is not judged, and that does not pass.
    #[arg(long, value_name = "N", default_value_t = Limits::default().open_sessions)]
    max_open_sessions: usize,
    /// Tools, outputs, questions and producers that may each be open at once in a session.
    #[arg(long, value_name = "N", default_value_t = Limits::default().open_in_session)]
    max_open_in_session: usize,
    /// Threads that check, at most 64; as many as there are cores if not said.
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
}

#[derive(Clone, Copy, Default, clap::ValueEnum)]
enum When {
    #[default]
    Auto,
    Always,
    Never,
}

impl Arguments {
    fn face(&self) -> Face {
        if self.receive { Face::Receive } else { Face::Strict }
    }

    fn sequence(&self) -> Sequence {
        match self.sequence {
            When::Auto => Sequence::Auto,
            When::Always => Sequence::Always,
            When::Never => Sequence::Never,
        }
    }

    fn limits(&self) -> Limits {
        Limits { open_sessions: self.max_open_sessions, open_in_session: self.max_open_in_session }
    }

    fn jobs(&self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get).min(16);
        self.jobs.unwrap_or_else(cores).clamp(1, MOST_JOBS)
    }
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let mut ignored = Vec::new();
    for id in &arguments.ignore {
        let Some(rule) = Rule::find(id) else {
            tell(&format!("sayso: {}", unknown_rule(id)));
            return Outcome::Failed;
        };
        ignored.push(rule);
    }
    let mut report = Report::new(arguments.json, ignored);
    let (mut failed, mut examined) = (false, false);
    let stdin = [PathBuf::from("-")];
    for file in if arguments.files.is_empty() { &stdin } else { arguments.files.as_slice() } {
        let read = examine(arguments, file, &mut report);
        failed |= !read;
        examined |= read;
        if report.is_deaf() {
            break;
        }
    }
    // Where nothing could be read there is nothing to sum up.
    if examined || report.has_counted() {
        report.summary();
    }
    if let Some(error) = report.lost() {
        tell(&format!("sayso: cannot write the findings: {}", in_words(error)));
        failed = true;
    }
    match (failed, report.has_errors()) {
        (true, _) => Outcome::Failed,
        (false, true) => Outcome::Faults,
        (false, false) => Outcome::Good,
    }
}

fn unknown_rule(id: &str) -> String {
    match Rule::all().find(|rule| rule.also().contains(&id)) {
        Some(rule) => format!("{id} is checked as {}; ignore that one", rule.id()),
        None => format!("there is no rule {id:?} that a recording can break"),
    }
}

/// Checks one input; says whether it could be read.
fn examine(arguments: &Arguments, file: &Path, report: &mut Report) -> bool {
    let name = crate::print::printable(&file.to_string_lossy());
    let input: Box<dyn Read + Send> = if name == "-" {
        if std::io::stdin().is_terminal() {
            tell("sayso: reading events from standard input; end with Ctrl-D");
        }
        Box::new(std::io::stdin())
    } else {
        match open(file) {
            Ok(file) => Box::new(file),
            Err(why) => {
                tell(&format!("sayso: cannot read {name}: {why}"));
                return false;
            }
        }
    };
    report.begin(&file.to_string_lossy());
    let order = Order::new(arguments.sequence(), arguments.limits(), arguments.face());
    match work::run(input, arguments.face(), arguments.max_event_bytes, arguments.jobs(), order, report) {
        Ok(()) => true,
        Err(error) => {
            tell(&format!("sayso: cannot read {name}: {}", in_words(&error)));
            false
        }
    }
}

/// What an item is, and which rules it breaks on its own.
pub(crate) fn check<'d>(
    bytes: &'d [u8],
    tape: &'d mut Tape,
    validator: &mut Validator,
    findings: &mut Findings,
) -> Checked<'d> {
    match std::str::from_utf8(bytes) {
        Err(error) => Validator::refuse_bytes(error.valid_up_to(), findings),
        Ok(text) => match tape.read(text) {
            Ok(doc) => return validator.check(&doc, findings),
            Err(error) => Validator::refuse(&error, findings),
        },
    }
    Checked::Nothing
}

pub(crate) fn open(file: &Path) -> Result<File, String> {
    let file = File::open(file).map_err(|error| in_words(&error))?;
    match file.metadata() {
        Ok(metadata) if metadata.is_dir() => Err("it is a folder".to_owned()),
        _ => Ok(file),
    }
}
