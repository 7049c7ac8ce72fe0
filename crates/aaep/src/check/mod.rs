//! Whether one event or message is lawful (§3.9): all findings, each with its rule and place, not only the first.
//!
//! ```
//! use aaep::{check::Validator, json::Tape, rule::{Face, Findings}};
//! let validator = Validator::new();
//! let mut tape = Tape::default();
//! let mut findings = Findings::new(Face::Strict);
//! let doc = tape.read(r#"{"type":"subscription.close","subscription_id":"sub-1"}"#).unwrap();
//! validator.check(&doc, &mut findings);
//! assert_eq!(findings.list()[0].rule.id(), "AAEP-5.4s-1");
//! assert_eq!(findings.list()[0].pointer, "/subscription_id");
//! ```

mod event;
mod extension;
mod members;
mod message;
mod path;
mod payload;
mod sound;
mod spoken;
mod step;
mod table;
mod value;

use std::borrow::Cow;

pub(crate) use extension::SAYSO;
pub(crate) use sound::is_sound;
pub use spoken::is_of_both_directions;

use crate::event::EventType;
use crate::json::{Doc, Kind, Problem, SyntaxError};
use crate::message::{Message, MessageType};
use crate::rule::{self, Face, Findings};
use crate::session::Step;

/// Checks events and messages, one at a time, each on its own. It holds no state: use one from many threads.
#[derive(Clone, Debug)]
pub struct Validator {
    versions: Vec<String>,
}

/// What was checked, ready for whoever looks at order.
#[derive(Debug)]
#[non_exhaustive]
#[allow(clippy::large_enum_variant, reason = "nearly all are events, and they are taken apart at once")]
pub enum Checked<'d> {
    /// An event that names its session.
    Event(Step<Cow<'d, str>>),
    /// A message that is lawful on its own; one that is not has no effect (§6.3.4).
    Message(Box<Message>),
    /// An event that does not name its session, so that it has no place in any order; its id, if it has one.
    Unplaced(Option<Cow<'d, str>>),
    /// A reply that is not lawful, and so has no effect (§6.3.4); the token that it names.
    VoidReply(Cow<'d, str>),
    /// Neither, or a message without effect.
    Nothing,
}

impl Default for Validator {
    fn default() -> Self {
        Self::new()
    }
}

impl Validator {
    /// Knows the published versions 1.0.0 and 0.1.0-draft (C-A11).
    pub fn new() -> Self {
        Self { versions: vec!["1.0.0".to_owned(), "0.1.0-draft".to_owned()] }
    }

    /// Checks what was read. Findings come in the order of §3.9.
    pub fn check<'d>(&self, doc: &Doc<'d>, findings: &mut Findings) -> Checked<'d> {
        let from = findings.len();
        let checked = self.dispatch(doc, findings);
        sound::check(doc, findings);
        findings.sort_from(from);
        checked
    }

    /// What is wrong with a text that is no JSON.
    pub fn refuse(error: &SyntaxError, findings: &mut Findings) {
        let rule = match error.problem {
            Problem::Depth | Problem::Length => rule::READABLE,
            _ => rule::JSON,
        };
        findings.push(rule, String::new(), error.to_string());
    }

    /// What is wrong with bytes that are no UTF-8, up to `valid` bytes of them.
    pub fn refuse_bytes(valid: usize, findings: &mut Findings) {
        findings.push(rule::UTF8, String::new(), format!("byte {} is not UTF-8", valid + 1));
    }

    /// What is wrong with a text that begins with a byte-order mark.
    pub fn refuse_mark(findings: &mut Findings) {
        findings.push(rule::UTF8, String::new(), "it begins with a byte-order mark".to_owned());
    }

    /// What is wrong with a text of more than `limit` bytes: it is not looked at.
    pub fn refuse_size(limit: usize, findings: &mut Findings) {
        findings.push(
            rule::READABLE,
            String::new(),
            format!("it is longer than {limit} bytes and was skipped"),
        );
    }

    /// What is wrong with the array around events.
    pub fn refuse_array(found: &str, findings: &mut Findings) {
        findings.push(rule::JSON, String::new(), found.to_owned());
    }

    /// What is wrong with an input in which there is nothing.
    pub fn refuse_empty(findings: &mut Findings) {
        findings.push(rule::OBJECT, String::new(), "the input is empty".to_owned());
    }

    fn dispatch<'d>(&self, doc: &Doc<'d>, findings: &mut Findings) -> Checked<'d> {
        let root = doc.root();
        if root.kind() != Kind::Object {
            findings.push(rule::OBJECT, String::new(), format!("found {}", root.kind().word()));
            return Checked::Nothing;
        }
        let type_value = doc.type_value();
        let Some(name) = type_value.and_then(|value| value.text()) else {
            return self.check_event(doc, None, findings);
        };
        if let Some(event_type) = EventType::core(&name) {
            return self.check_event(doc, Some(&event_type), findings);
        }
        match MessageType::of(&name) {
            // A manifest that claims to be an event is one of a type that does not exist (C-F3).
            Some(MessageType::Manifest) if root.member("event_id").is_some() => {
                self.check_event(doc, None, findings)
            }
            Some(kind) => Self::check_message(doc, kind, findings),
            None if message::looks_like_one(&name) && root.member("@context").is_none() => {
                findings.push(rule::MESSAGE_TYPE, "/type".to_owned(), format!("found {name:?}"));
                Checked::Nothing
            }
            None => self.check_event(doc, None, findings),
        }
    }

    fn check_event<'d>(
        &self,
        doc: &Doc<'d>,
        core: Option<&EventType>,
        findings: &mut Findings,
    ) -> Checked<'d> {
        match event::check(doc, core, &self.versions, findings) {
            Some(step) => Checked::Event(step),
            None => Checked::Unplaced(doc.root().member("event_id").and_then(|id| id.text())),
        }
    }

    fn check_message<'d>(doc: &Doc<'d>, kind: MessageType, findings: &mut Findings) -> Checked<'d> {
        let face = findings.face();
        if kind.is_reply() {
            findings.set_face(Face::Strict);
        }
        let from = findings.len();
        message::check(doc, kind, findings);
        findings.set_face(face);
        let lawful = findings.list()[from..].iter().all(|finding| finding.severity < rule::Severity::Error);
        match Message::read(doc) {
            Some(message) if lawful => Checked::Message(Box::new(message)),
            _ if kind.is_reply() => match doc.root().member("reply_token").and_then(|token| token.text()) {
                Some(token) => Checked::VoidReply(token),
                None => Checked::Nothing,
            },
            _ => Checked::Nothing,
        }
    }
}
