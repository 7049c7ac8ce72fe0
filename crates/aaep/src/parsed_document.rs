//! Parsed documents together with their original text.

use std::ops::Deref;

use crate::event::Event;
use crate::message::Message;

/// A parsed value and its exact source text. The text is forwarded, hashed and signed; the value is used for
/// processing.
///
/// ```
/// use aaep::{ParsedDocument, message::Message};
/// let text = "{ \"type\": \"subscription.close\", \"subscription_id\": \"sub_1\" }";
/// let received = ParsedDocument::<Message>::parse(text).unwrap();
/// assert_eq!(received.text(), text);
/// assert!(matches!(*received, Message::SubscriptionClose(_)));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ParsedDocument<T> {
    text: Box<str>,
    value: T,
}

impl<T> ParsedDocument<T> {
    /// Returns the text as received, byte for byte.
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl ParsedDocument<Event> {
    /// Parses an event and keeps its text; see [`Event::parse`].
    pub fn parse(text: impl Into<Box<str>>) -> Option<Self> {
        let text = text.into();
        let value = Event::parse(&text)?;
        Some(Self { text, value })
    }
}

impl ParsedDocument<Message> {
    /// Parses a message and keeps its text; see [`Message::parse`].
    pub fn parse(text: impl Into<Box<str>>) -> Option<Self> {
        let text = text.into();
        let value = Message::parse(&text)?;
        Some(Self { text, value })
    }
}

impl<T> Deref for ParsedDocument<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.value
    }
}

impl AsRef<Event> for ParsedDocument<Event> {
    fn as_ref(&self) -> &Event {
        &self.value
    }
}
