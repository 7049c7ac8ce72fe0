//! The results of the check: findings as `sayso validate` prints them, and which parts were checked.

use std::path::{Path, PathBuf};

use aaep::json::{JsonWriter, write_object};
use aaep::rule::Severity;

use super::conversation::Conversation;
use crate::output::{describe_io_error, pluralize, print_stderr, printable};
use crate::validate::report::{ReportedFinding, ValidationReport};

/// Collects the results of the conversations.
pub(super) struct CheckReport {
    report: ValidationReport,
    is_json: bool,
    /// The address of the producer. Together with the name of a conversation, it is the file of a finding.
    url: String,
    /// The folder to which the conversations are written.
    folder: Option<PathBuf>,
    parts: Vec<CheckedPart>,
    /// The levels that the manifest claims.
    pub(super) claimed_levels: Vec<u64>,
}

/// One part of the check, and its result.
struct CheckedPart {
    name: &'static str,
    level: u8,
    errors: u64,
    outcome: CheckOutcome,
}

/// Whether a part could be checked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum CheckOutcome {
    Done,
    /// It was not checked, for this reason.
    NotRun(&'static str),
}

impl CheckReport {
    pub(super) fn new(is_json: bool, url: String, folder: Option<PathBuf>) -> Self {
        let report = ValidationReport::new(is_json);
        Self { report, is_json, url, folder, parts: Vec::new(), claimed_levels: Vec::new() }
    }

    /// Adds a conversation that has ended. `level` is the level whose requirements it examines.
    pub(super) fn add(&mut self, conversation: Conversation, level: u8, outcome: CheckOutcome) {
        let conversation = conversation.finish();
        let file = match &self.folder {
            Some(folder) => write_recording(folder, conversation.name, &conversation.lines),
            None => format!("{}#{}", self.url, conversation.name.replace(' ', "-")),
        };
        self.report.start_file(&file);
        let mut errors = 0;
        for finding in &conversation.findings {
            errors += u64::from(finding.severity == Severity::Error);
            self.report.add(&ReportedFinding {
                line: finding.line,
                rule: finding.rule,
                severity: finding.severity,
                pointer: &finding.pointer,
                message: &finding.message,
                event_id: finding.event_id.as_deref(),
            });
        }
        self.report.add_counts(conversation.events, conversation.sessions);
        self.add_part(conversation.name, level, errors, outcome);
    }

    /// Adds a part that was not checked.
    pub(super) fn skip(&mut self, name: &'static str, level: u8, reason: &'static str) {
        self.add_part(name, level, 0, CheckOutcome::NotRun(reason));
    }

    fn add_part(&mut self, name: &'static str, level: u8, errors: u64, outcome: CheckOutcome) {
        let part = CheckedPart { name, level, errors, outcome };
        if !self.is_json {
            print_stderr(&part.describe());
        }
        self.parts.push(part);
    }

    /// Whether an error was found.
    pub(super) fn has_errors(&self) -> bool {
        self.report.has_errors()
    }

    /// Prints the summary. Returns whether there was an error.
    pub(super) fn finish(mut self) -> bool {
        let details = write_object(|writer| {
            writer.key("claimed_levels").array(|writer| {
                for level in &self.claimed_levels {
                    writer.integer(i64::try_from(*level).unwrap_or_default());
                }
            });
            writer.key("parts").array(|writer| {
                for part in &self.parts {
                    writer.object(|writer| part.write(writer));
                }
            });
        });
        self.report.print_summary_with(Some(("check", &details)));
        if !self.is_json {
            for line in self.describe_levels() {
                print_stderr(&line);
            }
        }
        self.report.has_errors()
    }

    /// States for each level whether any finding speaks against it.
    fn describe_levels(&self) -> Vec<String> {
        let levels = self.parts.iter().map(|part| part.level).max().unwrap_or_default();
        (1..=levels)
            .map(|level| {
                let of_level = || self.parts.iter().filter(|part| part.level <= level);
                let errors: u64 = of_level().map(|part| part.errors).sum();
                let missing: Vec<_> = of_level()
                    .filter(|part| part.outcome != CheckOutcome::Done)
                    .map(|part| part.name)
                    .collect();
                let claim = if self.claimed_levels.contains(&u64::from(level)) { ", claimed" } else { "" };
                let result = if errors == 0 { "no errors".to_owned() } else { pluralize(errors, "error") };
                let missing = if missing.is_empty() {
                    String::new()
                } else {
                    format!("; not checked: {}", missing.join(", "))
                };
                format!("level {level}{claim}: {result}{missing}")
            })
            .collect()
    }
}

impl CheckedPart {
    fn describe(&self) -> String {
        let result = match self.outcome {
            CheckOutcome::NotRun(reason) => format!("not checked: {reason}"),
            CheckOutcome::Done if self.errors == 0 => "no errors".to_owned(),
            CheckOutcome::Done => pluralize(self.errors, "error"),
        };
        format!("{} (level {}): {result}", self.name, self.level)
    }

    fn write(&self, writer: &mut JsonWriter) {
        writer.key("name").text(self.name);
        writer.key("level").integer(i64::from(self.level));
        writer.key("is_checked").boolean(self.outcome == CheckOutcome::Done);
        writer.key("errors").integer(i64::try_from(self.errors).unwrap_or(i64::MAX));
        if let CheckOutcome::NotRun(reason) = self.outcome {
            writer.key("reason").text(reason);
        }
    }
}

/// Writes a conversation to a recording that `sayso validate` and `sayso replay` read. Returns its name.
fn write_recording(folder: &Path, name: &str, lines: &[String]) -> String {
    let path = folder.join(format!("{}.jsonl", name.replace(' ', "-")));
    let mut text = lines.join("\n");
    text.push('\n');
    if let Err(error) = std::fs::write(&path, text) {
        let path = printable(&path.to_string_lossy());
        print_stderr(&format!("sayso: cannot write {path}: {}", describe_io_error(&error)));
    }
    path.to_string_lossy().into_owned()
}
