//! One line of a recording, as a list of members in order.

use std::fmt::Write;

use serde_json::Value;

/// The envelope members in the recommended order (§3.6). The payload follows, then `extensions`.
pub(crate) const ENVELOPE: [&str; 12] = [
    "@context",
    "aaep_version",
    "type",
    "event_id",
    "session_id",
    "sequence_number",
    "timestamp",
    "producer",
    "verbosity",
    "urgency",
    "localization_hints",
    "correlation_id",
];

/// The kind of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineKind {
    Started,
    Completed,
    Errored,
    Cancelled,
    State,
    Progress,
    ToolInvoked,
    ToolCompleted,
    Chunk,
    Confirmation,
    Clarification,
    Handoff,
    Extension,
    /// A reply to a confirmation.
    Decision,
    /// A reply to a clarification.
    Answer,
    Handshake,
}

impl LineKind {
    pub(crate) fn is_terminal(self) -> bool {
        matches!(self, LineKind::Completed | LineKind::Errored | LineKind::Cancelled)
    }

    pub(crate) fn is_critical(self) -> bool {
        matches!(
            self,
            LineKind::Errored | LineKind::Confirmation | LineKind::Clarification | LineKind::Handoff
        )
    }

    pub(crate) fn is_question(self) -> bool {
        matches!(self, LineKind::Confirmation | LineKind::Clarification)
    }

    pub(crate) fn is_reply(self) -> bool {
        matches!(self, LineKind::Decision | LineKind::Answer)
    }

    pub(crate) fn is_event(self) -> bool {
        !self.is_reply() && self != LineKind::Handshake
    }
}

/// An event, a reply or a message of the handshake.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecordingLine {
    members: Vec<(String, Value)>,
    /// Whether every non-ASCII character is written as an escape.
    pub(crate) escapes_non_ascii: bool,
}

impl RecordingLine {
    pub(crate) fn new(members: impl IntoIterator<Item = (&'static str, Value)>) -> Self {
        Self {
            members: members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
            escapes_non_ascii: false,
        }
    }

    pub(crate) fn kind(&self) -> LineKind {
        let name = self.text("type");
        let local = name
            .strip_prefix("aaep:")
            .or(name.strip_prefix("https://aaep-protocol.org/types/"))
            .unwrap_or(name);
        match local {
            "agent.session.started" => LineKind::Started,
            "agent.session.completed" => LineKind::Completed,
            "agent.session.errored" => LineKind::Errored,
            "agent.session.cancelled" => LineKind::Cancelled,
            "agent.state.changed" => LineKind::State,
            "agent.progress.updated" => LineKind::Progress,
            "agent.tool.invoked" => LineKind::ToolInvoked,
            "agent.tool.completed" => LineKind::ToolCompleted,
            "agent.output.streaming" => LineKind::Chunk,
            "agent.awaiting.confirmation" => LineKind::Confirmation,
            "agent.awaiting.clarification" => LineKind::Clarification,
            "agent.handoff.requested" => LineKind::Handoff,
            "confirmation.reply" => LineKind::Decision,
            "clarification.reply" => LineKind::Answer,
            message if message.starts_with("subscription.") => LineKind::Handshake,
            _ => LineKind::Extension,
        }
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.members.iter().map(|(name, _)| &**name)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        self.members.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// Returns the value at a JSON pointer.
    pub(crate) fn at(&self, pointer: &str) -> Option<&Value> {
        let (name, rest) = split_pointer(pointer);
        self.get(name)?.pointer(rest)
    }

    /// Returns the text of a member, or an empty string if it has none.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns the text at a JSON pointer.
    pub(crate) fn text_at(&self, pointer: &str) -> Option<&str> {
        self.at(pointer).and_then(Value::as_str)
    }

    pub(crate) fn number(&self, name: &str) -> Option<i64> {
        self.get(name).and_then(Value::as_i64)
    }

    pub(crate) fn flag(&self, name: &str) -> Option<bool> {
        self.get(name).and_then(Value::as_bool)
    }

    pub(crate) fn session(&self) -> &str {
        self.text("session_id")
    }

    pub(crate) fn agent(&self) -> &str {
        self.text_at("/producer/agent_id").unwrap_or_default()
    }

    /// Returns the timestamp in milliseconds since 30 April 2026, 00:00. It is parsed by hand because the crate's own
    /// parser is under test.
    pub(crate) fn millis(&self) -> i64 {
        let text = self.text("timestamp");
        let number = |from: usize, to: usize| {
            text.get(from..to).and_then(|digits| digits.parse().ok()).unwrap_or(0_i64)
        };
        let offset = if text.ends_with("+01:00") { 60 } else { 0 };
        let minutes = (number(8, 10) * 24 + number(11, 13)) * 60 + number(14, 16) - offset;
        (minutes * 60 + number(17, 19)) * 1000 + number(20, 23)
    }

    /// Sets a member, at its position in the recommended order.
    pub(crate) fn set(&mut self, name: &str, value: Value) {
        if let Some(member) = self.members.iter_mut().find(|(known, _)| known == name) {
            member.1 = value;
            return;
        }
        let index = self.members.iter().position(|(known, _)| rank(known) > rank(name));
        self.members.insert(index.unwrap_or(self.members.len()), (name.to_owned(), value));
    }

    pub(crate) fn remove(&mut self, name: &str) {
        self.members.retain(|(known, _)| known != name);
    }

    /// Sets the value at a JSON pointer, or removes it.
    pub(crate) fn change(&mut self, pointer: &str, value: Option<Value>) {
        let (name, rest) = split_pointer(pointer);
        let Some((parent, last)) = rest.rsplit_once('/') else {
            match value {
                Some(value) => self.set(name, value),
                None => self.remove(name),
            }
            return;
        };
        let member = self.members.iter_mut().find(|(known, _)| known == name);
        let Some(parent) = member.and_then(|(_, member)| member.pointer_mut(parent)) else { return };
        match (parent, value) {
            (Value::Object(object), Some(value)) => drop(object.insert(last.to_owned(), value)),
            (Value::Object(object), None) => drop(object.remove(last)),
            _ => {}
        }
    }

    pub(crate) fn to_json(&self) -> String {
        let members: Vec<_> =
            self.members.iter().map(|(name, value)| format!("{}:{value}", Value::from(&**name))).collect();
        let text = format!("{{{}}}", members.join(","));
        if self.escapes_non_ascii { escape(&text) } else { text }
    }
}

/// Splits a pointer into its first step and the rest.
fn split_pointer(pointer: &str) -> (&str, &str) {
    let inside = pointer.strip_prefix('/').unwrap_or(pointer);
    inside.find('/').map_or((inside, ""), |at| inside.split_at(at))
}

/// Returns the sort order of a member: the envelope first, then the payload, then `extensions`.
pub(crate) fn rank(name: &str) -> usize {
    let rank_after_envelope = if name == "extensions" { ENVELOPE.len() + 1 } else { ENVELOPE.len() };
    ENVELOPE.iter().position(|known| *known == name).unwrap_or(rank_after_envelope)
}

/// Returns the same JSON with every non-ASCII character as `\uXXXX`, as a surrogate pair where needed.
fn escape(text: &str) -> String {
    let mut out = String::new();
    for character in text.chars() {
        if character.is_ascii() {
            out.push(character);
        } else {
            for unit in character.encode_utf16(&mut [0; 2]) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        }
    }
    out
}
