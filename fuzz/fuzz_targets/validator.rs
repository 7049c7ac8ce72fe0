//! Fuzzes the validator with any document. The validator must not panic, and receive mode must not be stricter than strict
//! mode. Every finding must have a message, and findings must be sorted by validation step.

#![no_main]

use aaep::check::Validator;
use aaep::json::Tape;
use aaep::rule::{Findings, ValidationMode};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let mut tape = Tape::default();
    let Ok(doc) = tape.read(text) else { return };
    let validator = Validator::new();
    let [strict, receive] = [ValidationMode::Strict, ValidationMode::Receive].map(|mode| {
        let mut findings = Findings::new(mode);
        validator.check(&doc, &mut findings);
        findings
    });
    assert!(strict.has_error() || !receive.has_error(), "only receive mode rejects {text}");
    for finding in strict.list() {
        assert!(!finding.message().is_empty());
        assert!(finding.pointer.is_empty() || finding.pointer.starts_with('/'));
    }
    assert!(
        strict.list().windows(2).all(|pair| pair[0].rule.validation_step() <= pair[1].rule.validation_step())
    );
});
