//! Validation of single events and messages (§3.9). Every problem is reported as a finding with a
//! rule and a location.
//!
//! ```
//! use aaep::{check::Validator, json::Tape, rule::{ValidationMode, Findings}};
//! let validator = Validator::new();
//! let mut tape = Tape::default();
//! let mut findings = Findings::new(ValidationMode::Strict);
//! let doc = tape.read(r#"{"type":"subscription.close","subscription_id":"sub-1"}"#).unwrap();
//! validator.check(&doc, &mut findings);
//! assert_eq!(findings.list()[0].rule.id(), "AAEP-5.4s-1");
//! assert_eq!(findings.list()[0].pointer, "/subscription_id");
//! ```

mod event;
mod extension;
mod field_table;
mod interoperable_json;
mod members;
mod message;
mod path;
mod payload;
mod session_event;
mod spoken_text;
mod value;

use std::borrow::Cow;

pub(crate) use extension::SAYSO_EXTENSION;
pub(crate) use interoperable_json::is_interoperable;
pub use spoken_text::{has_mixed_direction, has_visible_character, is_invisible};

use crate::event::EventType;
use crate::json::{Doc, JsonKind, SyntaxError, SyntaxErrorKind};
use crate::message::{Message, MessageType};
use crate::rule::{self, Findings, ValidationMode};
use crate::session::SessionEvent;

/// Validates events and messages one at a time. It is stateless, so threads can share one
/// validator.
#[derive(Clone, Debug)]
pub struct Validator {
    versions: Vec<String>,
}

/// A checked document: the input for the checks of a session or a recording.
#[derive(Debug)]
#[non_exhaustive]
#[allow(clippy::large_enum_variant, reason = "nearly all are events, and they are destructured immediately")]
pub enum CheckedDocument<'d> {
    /// An event that names its session.
    Event(SessionEvent<Cow<'d, str>>),
    /// A message that is valid on its own. An invalid message has no effect (§6.3.4).
    Message(Box<Message>),
    /// An event without a session id, which therefore has no position in any session. Holds its
    /// event id, if present.
    EventWithoutSession(Option<Cow<'d, str>>),
    /// An invalid reply, which has no effect (§6.3.4). Holds its reply token.
    InvalidReply(Cow<'d, str>),
    /// Neither an event nor a message, or a message without effect.
    NoEffect,
}

impl Default for Validator {
    fn default() -> Self {
        Self::new()
    }
}

impl Validator {
    /// Creates a validator that knows the published versions 1.0.0 and 0.1.0-draft (C-A11).
    pub fn new() -> Self {
        Self { versions: vec!["1.0.0".to_owned(), "0.1.0-draft".to_owned()] }
    }

    /// Checks a parsed document. The findings are in the order of §3.9.
    pub fn check<'d>(&self, doc: &Doc<'d>, findings: &mut Findings) -> CheckedDocument<'d> {
        let first_finding = findings.len();
        let checked = self.dispatch(doc, findings);
        interoperable_json::check(doc, findings);
        findings.sort_from(first_finding);
        checked
    }

    /// Reports text that is not valid JSON.
    pub fn report_syntax_error(error: &SyntaxError, findings: &mut Findings) {
        let rule = match error.kind {
            SyntaxErrorKind::TooDeep | SyntaxErrorKind::TooLong => rule::CHECK_LIMITS,
            _ => rule::JSON,
        };
        findings.push(rule, String::new(), error.to_string());
    }

    /// Reports that only the first `valid_len` bytes are UTF-8.
    pub fn report_invalid_utf8(valid_len: usize, findings: &mut Findings) {
        findings.push(rule::UTF8, String::new(), format!("byte {} is not UTF-8", valid_len + 1));
    }

    /// Reports a text that starts with a byte-order mark.
    pub fn report_byte_order_mark(findings: &mut Findings) {
        findings.push(rule::UTF8, String::new(), "the text starts with a byte-order mark".to_owned());
    }

    /// Reports that a text was skipped because it is longer than `limit` bytes.
    pub fn report_oversize(limit: usize, findings: &mut Findings) {
        findings.push(rule::CHECK_LIMITS, String::new(), format!("longer than {limit} bytes, skipped"));
    }

    /// Reports a malformed JSON array of events.
    pub fn report_malformed_array(found: &str, findings: &mut Findings) {
        findings.push(rule::JSON, String::new(), found.to_owned());
    }

    /// Reports an empty input.
    pub fn report_empty_input(findings: &mut Findings) {
        findings.push(rule::OBJECT, String::new(), "the input is empty".to_owned());
    }

    fn dispatch<'d>(&self, doc: &Doc<'d>, findings: &mut Findings) -> CheckedDocument<'d> {
        let root = doc.root();
        if root.kind() != JsonKind::Object {
            findings.push(rule::OBJECT, String::new(), format!("found {}", root.kind().with_article()));
            return CheckedDocument::NoEffect;
        }
        let type_value = doc.type_value();
        let Some(name) = type_value.and_then(|value| value.text()) else {
            return self.check_event(doc, None, findings);
        };
        if let Some(event_type) = EventType::parse_core(&name) {
            return self.check_event(doc, Some(&event_type), findings);
        }
        match MessageType::parse(&name) {
            // A manifest with an event id is treated as an event of an unknown type (C-F3).
            Some(MessageType::Manifest) if root.member("event_id").is_some() => {
                self.check_event(doc, None, findings)
            }
            Some(kind) => Self::check_message(doc, kind, findings),
            None if message::looks_like_message_type(&name) && root.member("@context").is_none() => {
                findings.push(rule::MESSAGE_TYPE, "/type".to_owned(), format!("found {name:?}"));
                CheckedDocument::NoEffect
            }
            None => self.check_event(doc, None, findings),
        }
    }

    fn check_event<'d>(
        &self,
        doc: &Doc<'d>,
        core_type: Option<&EventType>,
        findings: &mut Findings,
    ) -> CheckedDocument<'d> {
        match event::check(doc, core_type, &self.versions, findings) {
            Some(session_event) => CheckedDocument::Event(session_event),
            None => {
                CheckedDocument::EventWithoutSession(doc.root().member("event_id").and_then(|id| id.text()))
            }
        }
    }

    fn check_message<'d>(doc: &Doc<'d>, kind: MessageType, findings: &mut Findings) -> CheckedDocument<'d> {
        let mode = findings.mode();
        if kind.is_always_strict() {
            findings.set_mode(ValidationMode::Strict);
        }
        let first_finding = findings.len();
        message::check(doc, kind, findings);
        findings.set_mode(mode);
        let is_valid =
            findings.list()[first_finding..].iter().all(|finding| finding.severity < rule::Severity::Error);
        match Message::read(doc) {
            Some(message) if is_valid => CheckedDocument::Message(Box::new(message)),
            _ if kind.is_always_strict() => {
                match doc.root().member("reply_token").and_then(|token| token.text()) {
                    Some(token) => CheckedDocument::InvalidReply(token),
                    None => CheckedDocument::NoEffect,
                }
            }
            _ => CheckedDocument::NoEffect,
        }
    }
}
