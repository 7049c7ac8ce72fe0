//! Where a new subscription goes on: what its request asks in `capabilities.sayso`.
//!
//! A subscription that is over cannot be come back to (C-C17). Whoever makes a new one says after which event it goes on, and
//! the answer says whether that event is still known.

use aaep::json::{Raw, Scribe, Tape, Value};
use aaep::message::Capabilities;

/// The prefix of what is asked of this hub alone.
const PREFIX: &str = "sayso";

/// What is asked, or granted.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Onward {
    /// Whether it wants to know where it is, on wires that do not tell.
    pub(super) places: bool,
    /// The event after which it goes on.
    pub(super) after: Option<Box<str>>,
}

impl Onward {
    /// Takes it out of what AAEP itself asks or grants.
    pub(super) fn take(capabilities: &mut Capabilities) -> Self {
        let Some(asked) = capabilities.other.take(PREFIX) else { return Self::default() };
        let mut tape = Tape::default();
        tape.read(asked.as_str()).map(|doc| Self::read(&doc.root())).unwrap_or_default()
    }

    fn read(asked: &Value<'_>) -> Self {
        let after = asked.member("after").and_then(|id| id.text());
        Self {
            places: asked.member("places").and_then(|wanted| wanted.boolean()) == Some(true),
            after: after.map(|id| id.into_owned().into_boxed_str()),
        }
    }

    /// Puts it among what is granted; nothing where there is nothing.
    pub(super) fn grant(&self, honored: &mut Capabilities) {
        if *self == Self::default() {
            return;
        }
        let mut granted = Scribe::default();
        granted.open_object();
        if self.places {
            granted.key("places");
            granted.boolean(true);
        }
        if let Some(after) = &self.after {
            granted.key("after");
            granted.text(after);
        }
        granted.close_object();
        if let Ok(granted) = granted.doc() {
            honored.other.set(PREFIX, Raw::of(&granted.root()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_true_asks_for_places_and_what_was_granted_reads_back() {
        for (asked, places) in [(r#"{"places":true}"#, true), (r#"{"places":1}"#, false), ("{}", false)] {
            let mut capabilities = Capabilities::new();
            capabilities.other.set(PREFIX, Raw::parse(asked).unwrap());
            let onward = Onward::take(&mut capabilities);
            assert_eq!(onward, Onward { places, after: None }, "{asked}");
            onward.grant(&mut capabilities);
            assert_eq!(Onward::take(&mut capabilities), onward, "{asked}");
        }
    }
}
