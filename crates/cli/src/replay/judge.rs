//! What the rules say of a recording, item by item: `sayso validate`'s own judgement, on one thread and in order.

use std::hash::RandomState;

use aaep::check::{Checked, Validator};
use aaep::json::Tape;
use aaep::recording::{Limits, Place, Recording, Sequence};
use aaep::rule::{Face, Finding, Findings};

use crate::validate;
use crate::validate::items::{Item, LONGEST};

pub(super) struct Judge {
    validator: Validator,
    findings: Findings,
    recording: Recording<RandomState>,
    pub(super) events: u64,
    items: u64,
}

impl Judge {
    pub(super) fn new() -> Self {
        Self {
            validator: Validator::new(),
            findings: Findings::new(Face::Strict),
            recording: Recording::new(Sequence::Auto, Limits::default(), RandomState::new()),
            events: 0,
            items: 0,
        }
    }

    /// What an item is, and which rules it breaks on its own and in its place.
    pub(super) fn take<'d>(&mut self, item: &'d Item, tape: &'d mut Tape) -> (Checked<'d>, Vec<Finding>) {
        self.items += 1;
        let checked = self.check(item, tape);
        let place = Place { input: 0, line: item.line };
        match &checked {
            Checked::Event(step) => {
                self.events += 1;
                self.recording.event(&step.borrow(), place, &mut self.findings);
            }
            Checked::Message(message) => self.recording.message(message, place, &mut self.findings),
            Checked::VoidReply(token) => self.recording.void_reply(token),
            Checked::Unplaced(_) => self.events += 1,
            _ => {}
        }
        (checked, self.findings.take())
    }

    fn check<'d>(&mut self, item: &'d Item, tape: &'d mut Tape) -> Checked<'d> {
        match &item.bytes {
            Ok(bytes) => validate::check(bytes, tape, &mut self.validator, &mut self.findings),
            Err(trouble) => {
                trouble.tell(LONGEST, &mut self.findings);
                Checked::Nothing
            }
        }
    }

    /// The recording is over: what is still open, with the line that it began on, and how many sessions there were.
    pub(super) fn finish(mut self) -> (Vec<(u64, Finding)>, u64) {
        if self.items == 0 {
            Validator::refuse_empty(&mut self.findings);
            return (self.findings.take().into_iter().map(|finding| (1, finding)).collect(), 0);
        }
        let left =
            self.recording.finish().into_iter().map(|(place, finding)| (place.line, finding)).collect();
        (left, self.recording.sessions())
    }
}
