//! Checks a recording item by item and in order, on one thread, with the same rules as `sayso validate`.

use std::hash::RandomState;

use aaep::check::{CheckedDocument, Validator};
use aaep::json::Tape;
use aaep::recording::{InputPosition, RecordingChecker, RecordingLimits, SequenceMode};
use aaep::rule::{Finding, Findings, Rule, ValidationMode};

use crate::validate;
use crate::validate::item_reader::{MAX_ITEM_BYTES, RecordingItem};

pub(crate) struct ReplayChecker {
    validator: Validator,
    findings: Findings,
    recording_checker: RecordingChecker<RandomState>,
    pub(crate) events: u64,
    items: u64,
}

impl ReplayChecker {
    pub(crate) fn new() -> Self {
        Self {
            validator: Validator::new(),
            findings: Findings::new(ValidationMode::Strict),
            recording_checker: RecordingChecker::new(
                SequenceMode::Auto,
                RecordingLimits::default(),
                RandomState::new(),
            ),
            events: 0,
            items: 0,
        }
    }

    /// Does not check these rules.
    pub(crate) fn without(self, rules: &[Rule]) -> Self {
        Self { findings: self.findings.without(rules), ..self }
    }

    /// Checks an item by itself and in the sequence. Returns what it is, and the findings.
    pub(crate) fn check_item<'d>(
        &mut self,
        item: &'d RecordingItem,
        tape: &'d mut Tape,
    ) -> (CheckedDocument<'d>, Vec<Finding>) {
        self.items += 1;
        let checked = self.validate_item(item, tape);
        let position = InputPosition { input: 0, line: item.line };
        match &checked {
            CheckedDocument::Event(event) => {
                self.events += 1;
                self.recording_checker.check_event(&event.borrow(), position, &mut self.findings);
            }
            CheckedDocument::Message(message) => {
                self.recording_checker.check_message(message, position, &mut self.findings);
            }
            CheckedDocument::InvalidReply(token) => self.recording_checker.note_invalid_reply(token),
            CheckedDocument::EventWithoutSession(_) => self.events += 1,
            _ => {}
        }
        (checked, self.findings.take())
    }

    fn validate_item<'d>(&mut self, item: &'d RecordingItem, tape: &'d mut Tape) -> CheckedDocument<'d> {
        match &item.bytes {
            Ok(bytes) => validate::check_bytes(bytes, tape, &mut self.validator, &mut self.findings),
            Err(error) => {
                error.add_finding(MAX_ITEM_BYTES, &mut self.findings);
                CheckedDocument::NoEffect
            }
        }
    }

    /// Finishes the check. Returns a finding, with its line, for everything that is still open, and the number of sessions.
    pub(crate) fn finish(mut self) -> (Vec<(u64, Finding)>, u64) {
        if self.items == 0 {
            Validator::report_empty_input(&mut self.findings);
            return (self.findings.take().into_iter().map(|finding| (1, finding)).collect(), 0);
        }
        let unfinished = self
            .recording_checker
            .finish(&self.findings)
            .into_iter()
            .map(|(position, finding)| (position.line, finding))
            .collect();
        (unfinished, self.recording_checker.session_count())
    }
}
