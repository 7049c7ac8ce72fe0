//! The log of violations: which rules the received events break (§3.11). It is for authors of agents, not for listeners.

use std::borrow::Cow;

use aaep::check::{CheckedDocument, Validator};
use aaep::json::Tape;
use aaep::rule::{Findings, ValidationMode};

use crate::sanitize;

/// Maximum number of violations that are logged for one event.
const MAX_PER_EVENT: usize = 16;

/// Checks what is received, as a tolerant receiver, and logs the violations. They have no other effect.
pub(super) struct ViolationLog {
    validator: Validator,
    tape: Tape,
    print: fn(&str),
}

impl ViolationLog {
    pub(super) fn new(print: fn(&str)) -> Self {
        Self { validator: Validator::new(), tape: Tape::default(), print }
    }

    /// Checks an event. Other messages, such as sayso's own about the stream, are not checked.
    pub(super) fn check(&mut self, text: &str) {
        let mut findings = Findings::new(ValidationMode::Receive);
        let event_id = match self.tape.read(text) {
            Err(error) => {
                Validator::report_syntax_error(&error, &mut findings);
                None
            }
            Ok(doc) => {
                if doc.root().member("event_id").is_none() && doc.root().member("session_id").is_none() {
                    return;
                }
                match self.validator.check(&doc, &mut findings) {
                    CheckedDocument::Event(event) => event.event_id.map(Cow::into_owned),
                    CheckedDocument::EventWithoutSession(id) => id.map(Cow::into_owned),
                    _ => None,
                }
            }
        };
        let name = event_id.as_deref().unwrap_or("an event without an id");
        let list = findings.list();
        for finding in list.iter().take(MAX_PER_EVENT) {
            let (severity, rule) = (finding.severity.as_str(), finding.rule.id());
            let line = format!("{name}: {severity} {rule} {}: {}", finding.pointer, finding.message());
            (self.print)(&sanitize(&line, true));
        }
        if let Some(more) = list.len().checked_sub(MAX_PER_EVENT).filter(|more| *more > 0) {
            (self.print)(&sanitize(&format!("{name}: {more} more"), true));
        }
    }
}
