//! Where a new subscription goes on: what its request asks in `capabilities.sayso`.
//!
//! A subscription that is over cannot be come back to (C-C17). Whoever makes a new one says after which event it goes on, and
//! the answer says whether that event is still known.

use aaep::json::{Raw, Tape, Value, Writer};
use aaep::message::{Capabilities, Message};

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
    /// Takes it out of what is asked of AAEP.
    pub(super) fn take(wish: &mut Capabilities) -> Self {
        let Some(asked) = wish.other.take(PREFIX) else { return Self::default() };
        let mut tape = Tape::default();
        tape.read(asked.as_str()).map(|doc| Self::read(&doc.root())).unwrap_or_default()
    }

    /// What an answer has granted.
    pub(super) fn granted(accepted: &str) -> Self {
        match Message::parse(accepted) {
            Some(Message::SubscriptionAccepted(mut accepted)) => {
                Self::take(&mut accepted.honored_capabilities)
            }
            _ => Self::default(),
        }
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
        let mut writer = Writer::default();
        writer.open_object();
        if self.places {
            writer.key("places");
            writer.boolean(true);
        }
        if let Some(after) = &self.after {
            writer.key("after");
            writer.text(after);
        }
        writer.close_object();
        if let Ok(granted) = Raw::parse(&writer.finish()) {
            honored.other.set(PREFIX, granted);
        }
    }
}
