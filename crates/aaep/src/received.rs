//! What was received, beside the bytes that it came as.

use std::ops::Deref;

use crate::event::Event;
use crate::message::Message;

/// A value and the exact text that it was read from: the text is what is forwarded, hashed and signed, the value is what
/// is acted on.
///
/// ```
/// use aaep::{Received, message::Message};
/// let text = "{ \"type\": \"subscription.close\", \"subscription_id\": \"sub_1\" }";
/// let received = Received::<Message>::parse(text).unwrap();
/// assert_eq!(received.text(), text);
/// assert!(matches!(*received, Message::SubscriptionClose(_)));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Received<T> {
    text: Box<str>,
    value: T,
}

impl<T> Received<T> {
    /// The text as it was received, byte for byte.
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl Received<Event> {
    /// Reads an event and keeps its text; see [`Event::parse`].
    pub fn parse(text: impl Into<Box<str>>) -> Option<Self> {
        let text = text.into();
        let value = Event::parse(&text)?;
        Some(Self { text, value })
    }
}

impl Received<Message> {
    /// Reads a message and keeps its text; see [`Message::parse`].
    pub fn parse(text: impl Into<Box<str>>) -> Option<Self> {
        let text = text.into();
        let value = Message::parse(&text)?;
        Some(Self { text, value })
    }
}

impl<T> Deref for Received<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.value
    }
}

impl AsRef<Event> for Received<Event> {
    fn as_ref(&self) -> &Event {
        &self.value
    }
}
