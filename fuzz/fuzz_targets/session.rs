//! Whatever comes in whatever order, the session machine does not panic, and refusing leaves a session as it was.

#![no_main]

use std::hash::{BuildHasherDefault, DefaultHasher};

use aaep::check::{Checked, Validator};
use aaep::json::Tape;
use aaep::recording::{Limits, Place, Recording, Sequence};
use aaep::rule::{Face, Findings};
use aaep::session::Session;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let limits = Limits { open_sessions: 4, open_in_session: 8 };
    let hasher = BuildHasherDefault::<DefaultHasher>::default();
    let mut recording = Recording::new(Sequence::Always, limits, hasher);
    let mut guarded = Session::new("sess_1");
    let mut findings = Findings::new(Face::Receive);
    let validator = Validator::new();
    let mut tape = Tape::default();
    for line in text.lines().take(64) {
        let Ok(doc) = tape.read(line) else { continue };
        match validator.check(&doc, &mut findings) {
            Checked::Event(step) => {
                let step = step.borrow();
                recording.event(&step, Place::default(), &mut findings);
                let before = guarded.waiting_for();
                if guarded.admit(&step).is_err() {
                    assert_eq!(guarded.waiting_for(), before);
                }
            }
            Checked::Message(message) => recording.message(&message, Place::default(), &mut findings),
            _ => {}
        }
    }
    recording.finish();
});
