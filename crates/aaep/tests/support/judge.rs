//! What the core finds.

use std::collections::hash_map::DefaultHasher;
use std::hash::BuildHasherDefault;

use aaep::check::{Checked, Validator};
use aaep::json::Tape;
use aaep::recording::{Limits, Place, Recording, Sequence};
use aaep::rule::{Face, Finding, Findings, Severity};

/// Everything found in a recording, each with its line, counted from 1.
pub(crate) fn judge(texts: &[String], face: Face) -> Vec<(u64, Finding)> {
    let validator = Validator::new();
    let hasher = BuildHasherDefault::<DefaultHasher>::default();
    let mut recording = Recording::new(Sequence::Always, Limits::default(), hasher);
    let mut tape = Tape::default();
    let mut all = Vec::new();
    for (line, text) in (1..).zip(texts) {
        let mut findings = Findings::new(face);
        let place = Place { input: 0, line };
        match tape.read(text) {
            Err(error) => Validator::refuse(&error, &mut findings),
            Ok(doc) => match validator.check(&doc, &mut findings) {
                Checked::Event(step) => recording.event(&step.borrow(), place, &mut findings),
                Checked::Message(message) => recording.message(&message, place, &mut findings),
                _ => {}
            },
        }
        all.extend(findings.take().into_iter().map(|finding| (line, finding)));
    }
    all.extend(recording.finish().into_iter().map(|(place, finding)| (place.line, finding)));
    all
}

/// What is against the protocol, in the words of a report.
pub(crate) fn errors(texts: &[String], face: Face) -> Vec<String> {
    judge(texts, face)
        .into_iter()
        .filter(|(_, finding)| finding.severity == Severity::Error)
        .map(|(line, finding)| in_words(line, &finding))
        .collect()
}

pub(crate) fn in_words(line: u64, finding: &Finding) -> String {
    format!("line {line}: {} {} {}", finding.rule.id(), finding.pointer, finding.message())
}
