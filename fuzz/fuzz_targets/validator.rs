//! Whatever the document, checking it does not panic, the receiving face is never stricter than the strict one, and
//! every finding can be told.

#![no_main]

use aaep::check::Validator;
use aaep::json::Tape;
use aaep::rule::{Face, Findings};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let mut tape = Tape::default();
    let Ok(doc) = tape.read(text) else { return };
    let validator = Validator::new();
    let [strict, receive] = [Face::Strict, Face::Receive].map(|face| {
        let mut findings = Findings::new(face);
        validator.check(&doc, &mut findings);
        findings
    });
    assert!(strict.has_error() || !receive.has_error(), "only a receiver refuses {text}");
    for finding in strict.list() {
        assert!(!finding.message().is_empty());
        assert!(finding.pointer.is_empty() || finding.pointer.starts_with('/'));
    }
    assert!(strict.list().windows(2).all(|pair| pair[0].rule.step() <= pair[1].rule.step()));
});
