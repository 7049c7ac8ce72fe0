//! What is printed: a line a finding, and a line at the end.

use std::io::{BufWriter, Error, ErrorKind, Stdout, Write};

use aaep::json::object;
use aaep::rule::{Finding, Rule, Severity};

use crate::print::{harmless, printable, tell};

pub(super) struct Report {
    out: BufWriter<Stdout>,
    json: bool,
    ignored: Vec<Rule>,
    file: String,
    events: u64,
    sessions: u64,
    errors: u64,
    warnings: u64,
    /// Nobody reads what is printed any longer.
    deaf: bool,
    /// What was printed could not be written, though somebody may be waiting for it.
    lost: Option<Error>,
}

impl Report {
    pub(super) fn new(json: bool, ignored: Vec<Rule>) -> Self {
        let out = BufWriter::with_capacity(64 * 1024, std::io::stdout());
        Self {
            out,
            json,
            ignored,
            file: String::new(),
            events: 0,
            sessions: 0,
            errors: 0,
            warnings: 0,
            deaf: false,
            lost: None,
        }
    }

    /// From here on it is about this input.
    pub(super) fn begin(&mut self, file: &str) {
        file.clone_into(&mut self.file);
    }

    pub(super) fn finding(&mut self, line: u64, finding: &Finding, event_id: Option<&str>) {
        if self.ignored.contains(&finding.rule) {
            return;
        }
        match finding.severity {
            Severity::Error => self.errors += 1,
            Severity::Warning => self.warnings += 1,
        }
        let text = if self.json { self.object(line, finding, event_id) } else { self.line(line, finding) };
        self.print(&text);
    }

    fn line(&self, line: u64, finding: &Finding) -> String {
        let text = format!(
            "{}:{line}: {} {} {}: {}",
            self.file,
            finding.severity.word(),
            finding.rule.id(),
            finding.pointer,
            finding.message()
        );
        printable(&text)
    }

    fn object(&self, line: u64, finding: &Finding, event_id: Option<&str>) -> String {
        let text = object(|writer| {
            writer.key("file").text(&self.file);
            writer.key("line").integer(i64::try_from(line).unwrap_or(i64::MAX));
            writer.key("severity").text(finding.severity.word());
            writer.key("rule").text(finding.rule.id());
            writer.key("pointer").text(&finding.pointer);
            writer.key("message").text(&finding.message());
            match event_id {
                Some(id) => writer.key("event_id").text(id),
                None => writer.key("event_id").raw("null"),
            }
        });
        harmless(&text, |c| format!("\\u{c:04x}"))
    }

    /// Something worth knowing that is no finding.
    pub(super) fn note(&mut self, text: &str) {
        self.flush();
        if !self.deaf {
            tell(&format!("note: {}: {text}", printable(&self.file)));
        }
    }

    pub(super) fn count(&mut self, events: u64, sessions: u64) {
        self.events += events;
        self.sessions += sessions;
    }

    pub(super) fn summary(&mut self) {
        let Self { events, sessions, errors, warnings, .. } = *self;
        let text = if self.json {
            format!(
                "{{\"summary\":{{\"events\":{events},\"sessions\":{sessions},\"errors\":{errors},\"warnings\":{warnings}}}}}"
            )
        } else {
            // The form is a promise: programs read it, so it does not bend to "1 event".
            format!("{events} events, {sessions} sessions: {errors} errors, {warnings} warnings")
        };
        self.print(&text);
        self.flush();
    }

    /// Whether there is anything to sum up.
    pub(super) fn has_counted(&self) -> bool {
        self.events + self.errors + self.warnings > 0
    }

    pub(super) fn has_errors(&self) -> bool {
        self.errors > 0
    }

    pub(super) fn is_deaf(&self) -> bool {
        self.deaf
    }

    /// Why findings got lost, if they did; a reader that has heard enough is no loss.
    pub(super) fn lost(&self) -> Option<&Error> {
        self.lost.as_ref()
    }

    pub(super) fn flush(&mut self) {
        let flushed = self.out.flush();
        self.note_failure(flushed);
    }

    fn print(&mut self, text: &str) {
        if !self.deaf {
            let written = writeln!(self.out, "{text}");
            self.note_failure(written);
        }
    }

    fn note_failure(&mut self, written: std::io::Result<()>) {
        if let Err(error) = written {
            self.deaf = true;
            if error.kind() != ErrorKind::BrokenPipe && self.lost.is_none() {
                self.lost = Some(error);
            }
        }
    }
}
