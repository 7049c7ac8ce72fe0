//! The sequential part: reports the workers' findings in order, and checks the rules that span several items.

use std::hash::RandomState;

use aaep::recording::{InputPosition, RecordingChecker, RecordingLimits, SequenceMode};
use aaep::rule::Findings;

use super::report::ValidationReport;
use super::workers::{CheckedBlock, CheckedKind};

/// Checks the order of events in one input.
pub(super) struct SequenceChecker {
    recording_checker: RecordingChecker<RandomState>,
    findings: Findings,
    /// Number of lines in the earlier blocks.
    lines_before: u64,
    events: u64,
}

impl SequenceChecker {
    /// `findings` determines which rules are checked.
    pub(super) fn new(sequence: SequenceMode, limits: RecordingLimits, findings: Findings) -> Self {
        let recording_checker = RecordingChecker::new(sequence, limits, RandomState::new());
        Self { recording_checker, findings, lines_before: 0, events: 0 }
    }

    pub(super) fn event_count(&self) -> u64 {
        self.events
    }

    pub(super) fn check_block(&mut self, block: &CheckedBlock, report: &mut ValidationReport) {
        for checked in &block.items {
            let line = self.lines_before + checked.line;
            let mut event_id = None;
            let position = InputPosition { input: 0, line };
            match &checked.kind {
                CheckedKind::Event(event) => {
                    self.events += 1;
                    let event = event.map(&mut |span| block.text(*span));
                    event_id = event.event_id;
                    self.recording_checker.check_event(&event, position, &mut self.findings);
                }
                CheckedKind::Message(message) => {
                    self.recording_checker.check_message(message, position, &mut self.findings);
                }
                CheckedKind::WithoutSession(id) => {
                    self.events += 1;
                    event_id = id.map(|id| block.text(id));
                }
                CheckedKind::InvalidReply(token) => {
                    self.recording_checker.note_invalid_reply(block.text(*token));
                }
                CheckedKind::Unreadable => {}
            }
            for finding in checked.findings.iter().chain(self.findings.list()) {
                report.add_finding(line, finding, event_id);
            }
            self.findings.take();
        }
        self.lines_before += block.lines;
    }

    pub(super) fn finish(mut self, report: &mut ValidationReport) {
        for (position, finding) in self.recording_checker.finish(&self.findings) {
            report.add_finding(position.line, &finding, None);
        }
        report.add_counts(self.events, self.recording_checker.session_count());
    }
}
