//! The output: one line per finding, and a summary.
//!
//! Programs parse standard output, so it contains nothing else. The groups of findings are for people and go to standard error,
//! before the summary. A person at a terminal sees both streams, so there only the first findings of each rule are printed.

use std::io::{BufWriter, Error, ErrorKind, IsTerminal, Stdout, Write};

use aaep::json::write_object;
use aaep::rule::{Finding, Severity};

use super::finding_groups::{FindingGroups, MAX_LISTED};
use crate::output::{escape_controls, pluralize, print_stderr, printable};

/// One finding, and where it is.
pub(crate) struct ReportedFinding<'a> {
    pub(crate) line: u64,
    pub(crate) rule: &'static str,
    pub(crate) severity: Severity,
    pub(crate) pointer: &'a str,
    pub(crate) message: &'a str,
    pub(crate) event_id: Option<&'a str>,
}

pub(crate) struct ValidationReport {
    out: BufWriter<Stdout>,
    is_json: bool,
    /// Whether a person reads standard error.
    is_stderr_terminal: bool,
    /// Whether only the first findings of each rule are printed. The groups on standard error then say what is missing.
    is_abridged: bool,
    groups: FindingGroups,
    file: String,
    events: u64,
    sessions: u64,
    errors: u64,
    warnings: u64,
    /// Whether a write has failed, for example because the reader of the output has closed the pipe.
    has_write_failed: bool,
    /// The first write error other than a closed pipe.
    write_error: Option<Error>,
}

impl ValidationReport {
    pub(crate) fn new(is_json: bool) -> Self {
        let out = BufWriter::with_capacity(64 * 1024, std::io::stdout());
        let is_stderr_terminal = std::io::stderr().is_terminal();
        Self {
            out,
            is_json,
            is_stderr_terminal,
            is_abridged: is_stderr_terminal && std::io::stdout().is_terminal(),
            groups: FindingGroups::default(),
            file: String::new(),
            events: 0,
            sessions: 0,
            errors: 0,
            warnings: 0,
            has_write_failed: false,
            write_error: None,
        }
    }

    /// Sets the file to which the following findings belong.
    pub(crate) fn start_file(&mut self, file: &str) {
        file.clone_into(&mut self.file);
    }

    pub(super) fn add_finding(&mut self, line: u64, finding: &Finding, event_id: Option<&str>) {
        self.add(&ReportedFinding {
            line,
            rule: finding.rule.id(),
            severity: finding.severity,
            pointer: &finding.pointer,
            message: &finding.message(),
            event_id,
        });
    }

    pub(crate) fn add(&mut self, finding: &ReportedFinding<'_>) {
        match finding.severity {
            Severity::Error => self.errors += 1,
            Severity::Warning => self.warnings += 1,
        }
        if self.is_json {
            return self.print(&self.format_json(finding));
        }
        let count = self.groups.add(finding.rule, finding.severity, &self.file, finding.line);
        if !self.is_abridged || count <= MAX_LISTED {
            self.print(&self.format_line(finding));
        }
    }

    /// Prints the groups of findings to stderr, if they help: if a rule was broken again and again, or to explain the rules to a
    /// person. Otherwise stderr stays empty.
    fn print_groups(&mut self) {
        let has_repetitions = self.groups.has_repetitions();
        self.flush();
        if self.has_write_failed || self.groups.is_empty() || !(has_repetitions || self.is_stderr_terminal) {
            return;
        }
        if has_repetitions {
            print_stderr("note: findings by rule:");
            for line in self.groups.lines() {
                print_stderr(&format!("note: {}", printable(&line)));
            }
            if self.is_abridged {
                let text = format!(
                    "only the first {MAX_LISTED} findings of each rule are printed above; write the output to a file to get all of them"
                );
                print_stderr(&format!("note: {text}"));
            }
        }
        if let Some(hint) = self.groups.hint() {
            print_stderr(&format!("note: {hint}"));
        }
    }

    fn format_line(&self, finding: &ReportedFinding<'_>) -> String {
        let ReportedFinding { line, rule, severity, pointer, message, .. } = finding;
        printable(&format!("{}:{line}: {} {rule} {pointer}: {message}", self.file, severity.as_str()))
    }

    fn format_json(&self, finding: &ReportedFinding<'_>) -> String {
        let text = write_object(|writer| {
            writer.key("file").text(&self.file);
            writer.key("line").integer(i64::try_from(finding.line).unwrap_or(i64::MAX));
            writer.key("severity").text(finding.severity.as_str());
            writer.key("rule").text(finding.rule);
            writer.key("pointer").text(finding.pointer);
            writer.key("message").text(finding.message);
            match finding.event_id {
                Some(id) => writer.key("event_id").text(id),
                None => writer.key("event_id").raw("null"),
            }
        });
        escape_controls(&text, |c| format!("\\u{c:04x}"))
    }

    /// Prints a note to stderr. Notes are not findings.
    pub(super) fn print_note(&mut self, text: &str) {
        self.flush();
        if !self.has_write_failed {
            print_stderr(&format!("note: {}: {text}", printable(&self.file)));
        }
    }

    pub(crate) fn add_counts(&mut self, events: u64, sessions: u64) {
        self.events += events;
        self.sessions += sessions;
    }

    pub(crate) fn print_summary(&mut self) {
        self.print_summary_with(None);
    }

    /// Prints the summary. `details` is the name and the JSON value of an additional member of the JSON summary.
    pub(crate) fn print_summary_with(&mut self, details: Option<(&str, &str)>) {
        self.print_groups();
        let Self { events, sessions, errors, warnings, .. } = *self;
        let text = if self.is_json {
            let details = details.map(|(name, json)| format!(",\"{name}\":{json}")).unwrap_or_default();
            format!(
                "{{\"summary\":{{\"events\":{events},\"sessions\":{sessions},\"errors\":{errors},\"warnings\":{warnings}{details}}}}}"
            )
        } else {
            format_summary([events, sessions, errors, warnings], std::io::stdout().is_terminal())
        };
        self.print(&text);
        self.flush();
    }

    pub(super) fn finding_count(&self) -> u64 {
        self.errors + self.warnings
    }

    /// Returns whether anything has been counted for the summary.
    pub(super) fn has_results(&self) -> bool {
        self.events + self.errors + self.warnings > 0
    }

    pub(crate) fn has_errors(&self) -> bool {
        self.errors > 0
    }

    pub(super) fn has_write_failed(&self) -> bool {
        self.has_write_failed
    }

    /// Returns the error that caused findings to be lost, if any. A closed pipe does not count.
    pub(crate) fn write_error(&self) -> Option<&Error> {
        self.write_error.as_ref()
    }

    pub(super) fn flush(&mut self) {
        let flushed = self.out.flush();
        self.record_write_failure(flushed);
    }

    fn print(&mut self, text: &str) {
        if !self.has_write_failed {
            let written = writeln!(self.out, "{text}");
            self.record_write_failure(written);
        }
    }

    fn record_write_failure(&mut self, written: std::io::Result<()>) {
        if let Err(error) = written {
            self.has_write_failed = true;
            if error.kind() != ErrorKind::BrokenPipe && self.write_error.is_none() {
                self.write_error = Some(error);
            }
        }
    }
}

/// Returns the closing line of a check: the numbers of events, sessions, errors and warnings. A person reads `1 session`; programs parse the
/// line, so for them it always has the same words.
pub(crate) fn format_summary(counts: [u64; 4], is_terminal: bool) -> String {
    let nouns = ["event", "session", "error", "warning"];
    let [events, sessions, errors, warnings] = std::array::from_fn(|at| {
        if is_terminal { pluralize(counts[at], nouns[at]) } else { format!("{} {}s", counts[at], nouns[at]) }
    });
    format!("{events}, {sessions}: {errors}, {warnings}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_has_singulars_for_people_and_one_form_for_programs() {
        let summary = |is_terminal| format_summary([1, 1, 1, 0], is_terminal);
        assert_eq!(summary(true), "1 event, 1 session: 1 error, 0 warnings");
        assert_eq!(summary(false), "1 events, 1 sessions: 1 errors, 0 warnings");
        assert_eq!(format_summary([2, 3, 0, 4], true), format_summary([2, 3, 0, 4], false));
    }
}
