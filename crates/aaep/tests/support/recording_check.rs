//! The crate's findings for a recording.

use std::collections::hash_map::DefaultHasher;
use std::hash::BuildHasherDefault;

use aaep::check::{CheckedDocument, Validator};
use aaep::json::Tape;
use aaep::recording::{InputPosition, RecordingChecker, RecordingLimits, SequenceMode};
use aaep::rule::{Finding, Findings, Severity, ValidationMode};

/// Returns all findings in a recording, each with its line number, counted from 1.
pub(crate) fn check_recording(texts: &[String], mode: ValidationMode) -> Vec<(u64, Finding)> {
    let validator = Validator::new();
    let hasher = BuildHasherDefault::<DefaultHasher>::default();
    let mut recording = RecordingChecker::new(SequenceMode::Always, RecordingLimits::default(), hasher);
    let mut tape = Tape::default();
    let mut all = Vec::new();
    for (line, text) in (1..).zip(texts) {
        let mut findings = Findings::new(mode);
        let position = InputPosition { input: 0, line };
        match tape.read(text) {
            Err(error) => Validator::report_syntax_error(&error, &mut findings),
            Ok(doc) => match validator.check(&doc, &mut findings) {
                CheckedDocument::Event(event) => {
                    recording.check_event(&event.borrow(), position, &mut findings);
                }
                CheckedDocument::Message(message) => {
                    recording.check_message(&message, position, &mut findings);
                }
                _ => {}
            },
        }
        all.extend(findings.take().into_iter().map(|finding| (line, finding)));
    }
    let findings = Findings::new(mode);
    all.extend(recording.finish(&findings).into_iter().map(|(position, finding)| (position.line, finding)));
    all
}

/// Returns the protocol errors, formatted as in a report.
pub(crate) fn errors(texts: &[String], mode: ValidationMode) -> Vec<String> {
    check_recording(texts, mode)
        .into_iter()
        .filter(|(_, finding)| finding.severity == Severity::Error)
        .map(|(line, finding)| describe_finding(line, &finding))
        .collect()
}

pub(crate) fn describe_finding(line: u64, finding: &Finding) -> String {
    format!("line {line}: {} {} {}", finding.rule.id(), finding.pointer, finding.message())
}
