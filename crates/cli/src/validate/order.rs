//! The part that goes in order: what the workers found, and what the recording adds.

use std::hash::RandomState;

use aaep::recording::{Limits, Place, Recording, Sequence};
use aaep::rule::{Face, Findings};

use super::report::Report;
use super::work::{Block, Item};

/// Follows one input.
pub(super) struct Order {
    recording: Recording<RandomState>,
    findings: Findings,
    lines: u64,
    events: u64,
}

impl Order {
    pub(super) fn new(sequence: Sequence, limits: Limits, face: Face) -> Self {
        let recording = Recording::new(sequence, limits, RandomState::new());
        Self { recording, findings: Findings::new(face), lines: 0, events: 0 }
    }

    pub(super) fn block(&mut self, block: &Block, report: &mut Report) {
        for checked in &block.checked {
            let line = self.lines + checked.line;
            let mut event_id = None;
            let place = Place { input: 0, line };
            match &checked.item {
                Item::Event(step) => {
                    self.events += 1;
                    let step = step.map(&mut |span| block.text(*span));
                    event_id = step.event_id;
                    self.recording.event(&step, place, &mut self.findings);
                }
                Item::Message(message) => self.recording.message(message, place, &mut self.findings),
                Item::Unplaced(id) => {
                    self.events += 1;
                    event_id = id.map(|id| block.text(id));
                }
                Item::VoidReply(token) => self.recording.void_reply(block.text(*token)),
                Item::Nothing => {}
            }
            for finding in checked.findings.iter().chain(self.findings.list()) {
                report.finding(line, finding, event_id);
            }
            self.findings.take();
        }
        self.lines += block.lines;
    }

    pub(super) fn finish(mut self, report: &mut Report) {
        for (place, finding) in self.recording.finish() {
            report.finding(place.line, &finding, None);
        }
        report.count(self.events, self.recording.sessions());
    }
}
