//! sayso's own capabilities of a subscription, `capabilities.sayso`: where it resumes, and whether it takes hand-offs.
//!
//! A closed subscription cannot be resumed (C-C17). A client that opens a new subscription can name the event to resume
//! after. The reply says whether the hub can resume there.

use aaep::json::{JsonValue, RawJson, Tape, TapeWriter};
use aaep::message::Capabilities;

/// The name of the extension that only this hub understands.
const EXTENSION_NAME: &str = "sayso";

/// The extension's content: what the client requests, or what the hub grants.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SaysoCapabilities {
    /// Whether the hub sends resume positions, on transports that do not send an id with each event. The JSON member is
    /// `positions`.
    pub(super) sends_resume_positions: bool,
    /// The event to resume after.
    pub(super) after: Option<Box<str>>,
    /// Whether the client can take over from agents. The JSON member is `handoffs`.
    pub(super) takes_handoffs: bool,
}

impl SaysoCapabilities {
    /// Takes the extension out of the AAEP capabilities.
    pub(super) fn take_from(capabilities: &mut Capabilities) -> Self {
        let Some(requested) = capabilities.other.take(EXTENSION_NAME) else { return Self::default() };
        let mut tape = Tape::default();
        tape.read(requested.as_str()).map(|doc| Self::read(&doc.root())).unwrap_or_default()
    }

    fn read(requested: &JsonValue<'_>) -> Self {
        let after = requested.member("after").and_then(|id| id.text());
        let is_true = |name| requested.member(name).and_then(|value| value.as_bool()) == Some(true);
        Self {
            sends_resume_positions: is_true("positions"),
            takes_handoffs: is_true("handoffs"),
            after: after.map(|id| id.into_owned().into_boxed_str()),
        }
    }

    /// Adds the extension to the granted capabilities, unless it is empty.
    pub(super) fn grant(&self, honored: &mut Capabilities) {
        if *self == Self::default() {
            return;
        }
        let mut granted = TapeWriter::default();
        granted.open_object();
        if self.sends_resume_positions {
            granted.key("positions");
            granted.boolean(true);
        }
        if let Some(after) = &self.after {
            granted.key("after");
            granted.text(after);
        }
        if self.takes_handoffs {
            granted.key("handoffs");
            granted.boolean(true);
        }
        granted.close_object();
        if let Ok(granted) = granted.doc() {
            honored.other.set(EXTENSION_NAME, RawJson::from_value(&granted.root()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_requested_only_by_the_value_true_and_a_grant_can_be_read_back() {
        for (requested, sends_resume_positions) in
            [(r#"{"positions":true}"#, true), (r#"{"positions":1}"#, false), ("{}", false)]
        {
            let mut capabilities = Capabilities::new();
            capabilities.other.set(EXTENSION_NAME, RawJson::parse(requested).unwrap());
            let sayso_capabilities = SaysoCapabilities::take_from(&mut capabilities);
            assert_eq!(
                sayso_capabilities,
                SaysoCapabilities { sends_resume_positions, ..SaysoCapabilities::default() },
                "{requested}"
            );
            sayso_capabilities.grant(&mut capabilities);
            assert_eq!(SaysoCapabilities::take_from(&mut capabilities), sayso_capabilities, "{requested}");
        }
    }
}
