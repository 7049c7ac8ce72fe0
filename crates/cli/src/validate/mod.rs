//! `sayso validate`: checks events and messages while reading them, in bounded memory.
//!
//! ```text
//!   splitter.rs         workers.rs (all cores)          sequence_checker.rs          report.rs
//!   input ─▶ blocks ─▶ read and check each item alone ─▶ sessions, tokens, ids ─▶ one line per finding
//!                                                                                 └─▶ finding_groups.rs: one line per rule
//! ```

mod event_stream;
mod finding_groups;
pub(crate) mod item_reader;
mod progress;
pub(crate) mod report;
mod sequence_checker;
mod splitter;
mod workers;

use std::fs::File;
use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::time::Instant;

use aaep::check::{CheckedDocument, Validator};
use aaep::json::Tape;
use aaep::recording::{RecordingLimits, SequenceMode};
use aaep::rule::{Findings, Rule, ValidationMode};

use crate::ExitStatus;
use crate::output::{describe_io_error, print_stderr};
use progress::ProgressReport;
use report::ValidationReport;
use sequence_checker::SequenceChecker;

/// Maximum number of threads. More would only contend with each other.
const MAX_JOBS: usize = 64;

#[derive(clap::Args)]
#[command(
    after_help = "`sayso explain RULE` says what a rule means. On a terminal, only the first three findings of each rule are printed."
)]
pub(crate) struct Arguments {
    /// Files with events and messages: JSON, a JSON array, JSON Lines, or a captured event stream. `-` or no file means standard
    /// input.
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Print each finding as a JSON object, and then the summary as a JSON object.
    #[arg(long)]
    json: bool,
    /// Check as a tolerant receiver: unknown members and exceeded limits are warnings. Replies are still checked strictly.
    #[arg(long)]
    receive: bool,
    /// In which sessions to check the order of events: those whose start is in the input (auto), all (always) or none (never).
    #[arg(long, value_name = "WHEN", value_enum, default_value_t)]
    sequence: SequenceArg,
    /// Do not check a rule. Can be repeated.
    #[arg(long, value_name = "RULE")]
    ignore: Vec<String>,
    /// Maximum size of an event. A larger event is skipped and reported as an error.
    #[arg(long, value_name = "BYTES", default_value_t = item_reader::MAX_ITEM_BYTES)]
    max_event_bytes: usize,
    /// Maximum number of sessions that are open at the same time. Further sessions are reported as an error, and their order is not checked.
    #[arg(long, value_name = "N", default_value_t = RecordingLimits::default().max_open_sessions)]
    max_open_sessions: usize,
    /// Maximum number of tools that are open at the same time in a session. The same limit applies to outputs, questions and producers.
    #[arg(long, value_name = "N", default_value_t = RecordingLimits::default().max_open_items_per_session)]
    max_open_in_session: usize,
    /// Number of threads, at most 64. Default: the number of cores, at most 16.
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
}

#[derive(Clone, Copy, Default, clap::ValueEnum)]
enum SequenceArg {
    #[default]
    Auto,
    Always,
    Never,
}

impl Arguments {
    fn validation_mode(&self) -> ValidationMode {
        if self.receive { ValidationMode::Receive } else { ValidationMode::Strict }
    }

    fn sequence_mode(&self) -> SequenceMode {
        match self.sequence {
            SequenceArg::Auto => SequenceMode::Auto,
            SequenceArg::Always => SequenceMode::Always,
            SequenceArg::Never => SequenceMode::Never,
        }
    }

    fn limits(&self) -> RecordingLimits {
        RecordingLimits {
            max_open_sessions: self.max_open_sessions,
            max_open_items_per_session: self.max_open_in_session,
        }
    }

    fn jobs(&self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get).min(16);
        self.jobs.unwrap_or_else(cores).clamp(1, MAX_JOBS)
    }
}

pub(crate) fn run(arguments: &Arguments) -> ExitStatus {
    let mut ignored = Vec::new();
    for id in &arguments.ignore {
        let Some(rule) = Rule::find(id) else {
            print_stderr(&format!("sayso: {}", describe_unknown_rule(id)));
            return ExitStatus::CannotRun;
        };
        ignored.push(rule);
    }
    let new_findings = || Findings::new(arguments.validation_mode()).without(&ignored);
    let mut report = ValidationReport::new(arguments.json);
    let (mut has_failed, mut has_read_file) = (false, false);
    let stdin = [PathBuf::from("-")];
    for file in if arguments.files.is_empty() { &stdin } else { arguments.files.as_slice() } {
        let was_read = validate_file(arguments, &new_findings, file, &mut report);
        has_failed |= !was_read;
        has_read_file |= was_read;
        if report.has_write_failed() {
            break;
        }
    }
    // If nothing could be read, there is nothing to summarize.
    if has_read_file || report.has_results() {
        report.print_summary();
    }
    if let Some(error) = report.write_error() {
        print_stderr(&format!("sayso: cannot write the findings: {}", describe_io_error(error)));
        has_failed = true;
    }
    match (has_failed, report.has_errors()) {
        (true, _) => ExitStatus::CannotRun,
        (false, true) => ExitStatus::Negative,
        (false, false) => ExitStatus::Success,
    }
}

fn describe_unknown_rule(id: &str) -> String {
    match Rule::all().find(|rule| rule.alias_ids().contains(&id)) {
        Some(rule) => format!("{id} is reported as {}; ignore that rule instead", rule.id()),
        None => format!("unknown rule {id:?}"),
    }
}

/// Checks one input. Returns whether it could be read.
fn validate_file(
    arguments: &Arguments,
    new_findings: &(impl Fn() -> Findings + Sync),
    file: &Path,
    report: &mut ValidationReport,
) -> bool {
    let name = crate::output::printable(&file.to_string_lossy());
    let mut total_bytes = None;
    let input: Box<dyn Read + Send> = if name == "-" {
        if std::io::stdin().is_terminal() {
            print_stderr("sayso: reading events from standard input; end with Ctrl-D");
        }
        Box::new(std::io::stdin())
    } else {
        match open_file(file) {
            Ok(file) => {
                total_bytes = file.metadata().ok().filter(std::fs::Metadata::is_file).map(|data| data.len());
                Box::new(file)
            }
            Err(error) => {
                print_stderr(&format!("sayso: cannot read {name}: {error}"));
                return false;
            }
        }
    };
    report.start_file(&file.to_string_lossy());
    let sequence_checker =
        SequenceChecker::new(arguments.sequence_mode(), arguments.limits(), new_findings());
    let mut progress = ProgressReport::new(std::io::stderr().is_terminal(), total_bytes, Instant::now());
    match workers::run_validation(
        progress.count(input),
        new_findings,
        arguments.max_event_bytes,
        arguments.jobs(),
        sequence_checker,
        report,
        &mut progress,
    ) {
        Ok(()) => true,
        Err(error) => {
            let name = crate::file::display_name(file);
            print_stderr(&format!("sayso: cannot read {name}: {}", describe_io_error(&error)));
            false
        }
    }
}

/// Checks one item on its own. Returns what the item is, and adds the rules that it breaks to `findings`.
pub(crate) fn check_bytes<'d>(
    bytes: &'d [u8],
    tape: &'d mut Tape,
    validator: &mut Validator,
    findings: &mut Findings,
) -> CheckedDocument<'d> {
    match std::str::from_utf8(bytes) {
        Err(error) => Validator::report_invalid_utf8(error.valid_up_to(), findings),
        Ok(text) => match tape.read(text) {
            Ok(doc) => return validator.check(&doc, findings),
            Err(error) => Validator::report_syntax_error(&error, findings),
        },
    }
    CheckedDocument::NoEffect
}

pub(crate) fn open_file(file: &Path) -> Result<File, String> {
    let file = File::open(file).map_err(|error| describe_io_error(&error))?;
    match file.metadata() {
        Ok(metadata) if metadata.is_dir() => Err("it is a folder".to_owned()),
        _ => Ok(file),
    }
}
