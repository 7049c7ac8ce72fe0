//! Messages: the handshake (chapter 5), replies (chapter 6), the producer's manifest (§5.10), and sayso's own two.

mod capabilities;
mod handshake;
mod manifest;
mod reply;

pub use capabilities::{Boundary, Capabilities, CognitiveLoad, EventFilters, Level};
pub(crate) use capabilities::{
    DEFAULT_BOUNDARIES, DEFAULT_INCLUDE, DEFAULT_LANGUAGE, DEFAULT_LEVEL, any_covers,
};
pub use handshake::{
    ReasonCode, SubscriptionAccepted, SubscriptionClose, SubscriptionRejected, SubscriptionRenegotiate,
    SubscriptionRequest,
};
pub use manifest::Manifest;
pub use reply::{ClarificationReply, ConfirmationReply, DeadlineExtend, Response, SessionStop};

use crate::event::{CORE_CONTEXT, Decision};
use crate::json::{Doc, Tape, object};
use crate::record::{Field, Shape, members_of};
use crate::rule::{self, Rule};

pub(crate) const DECISION: Shape = Shape::Word(Decision::WORDS);

macro_rules! messages {
    ($($(#[$doc:meta])* $name:ident = $type:literal, closed by $closed:expr;)*) => {
        /// A message of the protocol.
        ///
        /// ```
        /// use aaep::message::Message;
        /// let text = r#"{"type":"subscription.close","subscription_id":"sub_1"}"#;
        /// let message = Message::parse(text).unwrap();
        /// assert_eq!(message.to_json(), text);
        /// ```
        #[derive(Clone, Debug, PartialEq)]
        #[non_exhaustive]
        pub enum Message {
            $($(#[$doc])* $name($name),)*
        }

        /// Which message it is.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum MessageType {
            $($(#[$doc])* $name,)*
        }

        impl MessageType {
            /// All of them.
            pub const ALL: &'static [MessageType] = &[$(MessageType::$name),*];

            /// Reads the `type` member of a message.
            pub fn of(text: &str) -> Option<Self> {
                match text {
                    $($type => Some(Self::$name),)*
                    _ => None,
                }
            }

            /// The `type` member of the message.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $type,)*
                }
            }

            pub(crate) fn fields(self) -> &'static [Field] {
                match self {
                    $(Self::$name => $name::FIELDS,)*
                }
            }

            /// The rule that an unknown member breaks; nothing where any is allowed.
            pub(crate) fn closed(self) -> Option<Rule> {
                match self {
                    $(Self::$name => $closed,)*
                }
            }
        }

        impl Message {
            /// Reads a message; nothing if it is not JSON, of no known type, or lacks what its type requires.
            pub fn parse(text: &str) -> Option<Self> {
                Self::read(&Tape::default().read(text).ok()?)
            }

            /// Like [`parse`](Self::parse), of a text that has been read.
            pub fn read(doc: &Doc<'_>) -> Option<Self> {
                let root = doc.root();
                let message_type = MessageType::of(&root.member("type")?.text()?)?;
                let core = |name: &str, value: &crate::json::Value<'_>| {
                    name == "type"
                        || name == "@context"
                            && message_type == MessageType::Manifest
                            && value.text().is_some_and(|text| text == CORE_CONTEXT)
                };
                let members = members_of(root).filter(|(name, value)| !core(name, value));
                match message_type {
                    $(MessageType::$name => $name::read_members(members).map(Self::$name),)*
                }
            }

            /// Which message it is.
            pub fn message_type(&self) -> MessageType {
                match self {
                    $(Self::$name(_) => MessageType::$name,)*
                }
            }

            /// Writes the message, compact.
            pub fn to_json(&self) -> String {
                object(|writer| {
                if matches!(self, Self::Manifest(manifest) if manifest.other.get("@context").is_none()) {
                    writer.key("@context").text(CORE_CONTEXT);
                }
                writer.key("type").text(self.message_type().as_str());
                match self {
                    $(Self::$name(message) => message.write_members(writer),)*
                }
                })
            }
        }
    };
}

messages! {
    /// §5.2: a subscriber asks to be told, and says how.
    SubscriptionRequest = "subscription.request", closed by Some(rule::REQUEST_FORM);
    /// §5.4: it will be, on these terms.
    SubscriptionAccepted = "subscription.accepted", closed by Some(rule::ACCEPTED_FORM);
    /// §5.5: it will not be.
    SubscriptionRejected = "subscription.rejected", closed by Some(rule::REJECTED_FORM);
    /// §5.7: the subscriber asks for other terms.
    SubscriptionRenegotiate = "subscription.renegotiate", closed by Some(rule::RENEGOTIATE_FORM);
    /// §5.8: either side ends it.
    SubscriptionClose = "subscription.close", closed by Some(rule::RENEGOTIATE_FORM);
    /// §6.3: the person's decision.
    ConfirmationReply = "confirmation.reply", closed by Some(rule::CONFIRMATION_REPLY_FORM);
    /// §6.5: the person's answer.
    ClarificationReply = "clarification.reply", closed by Some(rule::CLARIFICATION_REPLY_FORM);
    /// §5.10: what a producer can do.
    Manifest = "aaep:producer.manifest", closed by None;
    /// Ours: the person needs more time.
    DeadlineExtend = "sayso:deadline.extend", closed by Some(rule::OUR_MESSAGE);
    /// Ours: the person stops the agent.
    SessionStop = "sayso:session.stop", closed by Some(rule::OUR_MESSAGE);
}

impl MessageType {
    /// Replies are checked strictly in both faces (§6.3.4), and so are our own messages, which act like them.
    pub(crate) fn is_reply(self) -> bool {
        matches!(
            self,
            Self::ConfirmationReply | Self::ClarificationReply | Self::DeadlineExtend | Self::SessionStop
        )
    }
}
