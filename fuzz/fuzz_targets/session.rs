//! Fuzzes the session machine with events in any order. The machine must not panic, and a refused event must not change
//! which items are pending.

#![no_main]

use std::hash::{BuildHasherDefault, DefaultHasher};

use aaep::check::{CheckedDocument, Validator};
use aaep::json::Tape;
use aaep::recording::{InputPosition, RecordingChecker, RecordingLimits, SequenceMode};
use aaep::rule::{Findings, ValidationMode};
use aaep::session::SessionMachine;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let limits = RecordingLimits { max_open_sessions: 4, max_open_items_per_session: 8 };
    let hasher = BuildHasherDefault::<DefaultHasher>::default();
    let mut recording = RecordingChecker::new(SequenceMode::Always, limits, hasher);
    let mut session = SessionMachine::new("sess_1");
    let mut findings = Findings::new(ValidationMode::Receive);
    let validator = Validator::new();
    let mut tape = Tape::default();
    for line in text.lines().take(64) {
        let Ok(doc) = tape.read(line) else { continue };
        match validator.check(&doc, &mut findings) {
            CheckedDocument::Event(event) => {
                let event = event.borrow();
                recording.check_event(&event, InputPosition::default(), &mut findings);
                let before = session.pending_items();
                if session.try_apply(&event).is_err() {
                    assert_eq!(session.pending_items(), before);
                }
            }
            CheckedDocument::Message(message) => {
                recording.check_message(&message, InputPosition::default(), &mut findings);
            }
            _ => {}
        }
    }
    recording.finish(&findings);
});
