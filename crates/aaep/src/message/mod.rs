//! Messages: the handshake (chapter 5), replies (chapter 6), the producer's manifest (§5.10), and
//! the messages that sayso adds.

mod capabilities;
mod handshake;
mod manifest;
mod reply;

pub use capabilities::{Boundary, Capabilities, CognitiveLoad, ConformanceLevel, EventFilters};
pub(crate) use capabilities::{
    DEFAULT_BOUNDARIES, DEFAULT_INCLUDE, DEFAULT_LANGUAGE, DEFAULT_LEVEL, any_pattern_matches,
};
pub use handshake::{
    ReasonCode, SubscriptionAccepted, SubscriptionClose, SubscriptionRejected, SubscriptionRenegotiate,
    SubscriptionRequest,
};
pub use manifest::Manifest;
pub use reply::{
    ClarificationReply, ClarificationResponse, ConfirmationReply, DeadlineExtend, HandoffAcknowledge,
    HandoffReject, SessionStop,
};

use crate::event::{CORE_CONTEXT, Decision};
use crate::json::{Doc, Tape, write_object};
use crate::record::{Field, FieldType, decoded_members};
use crate::rule::{self, Rule};

pub(crate) const DECISION: FieldType = FieldType::Enum(Decision::VALUES);

macro_rules! messages {
    ($($(#[$doc:meta])* $name:ident = $type:literal, unknown members break $unknown_member_rule:expr;)*) => {
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

        /// The type of a message.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum MessageType {
            $($(#[$doc])* $name,)*
        }

        impl MessageType {
            /// All message types.
            pub const ALL: &'static [MessageType] = &[$(MessageType::$name),*];

            /// Parses the `type` member of a message.
            pub fn parse(text: &str) -> Option<Self> {
                match text {
                    $($type => Some(Self::$name),)*
                    _ => None,
                }
            }

            /// Returns the `type` member of the message.
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

            /// Returns the rule that an unknown member breaks; `None` if unknown members are
            /// allowed.
            pub(crate) fn unknown_member_rule(self) -> Option<Rule> {
                match self {
                    $(Self::$name => $unknown_member_rule,)*
                }
            }
        }

        impl Message {
            /// Parses a message. Returns `None` if it is not JSON, if its type is unknown, or if a
            /// required member is missing or invalid.
            pub fn parse(text: &str) -> Option<Self> {
                Self::read(&Tape::default().read(text).ok()?)
            }

            /// Like [`parse`](Self::parse), for a parsed document.
            pub fn read(doc: &Doc<'_>) -> Option<Self> {
                let root = doc.root();
                let message_type = MessageType::parse(&root.member("type")?.text()?)?;
                let is_type_or_context = |name: &str, value: &crate::json::JsonValue<'_>| {
                    name == "type"
                        || name == "@context"
                            && message_type == MessageType::Manifest
                            && value.text().is_some_and(|text| text == CORE_CONTEXT)
                };
                let members = decoded_members(root).filter(|(name, value)| !is_type_or_context(name, value));
                match message_type {
                    $(MessageType::$name => $name::read_members(members).map(Self::$name),)*
                }
            }

            /// Returns the type of the message.
            pub fn message_type(&self) -> MessageType {
                match self {
                    $(Self::$name(_) => MessageType::$name,)*
                }
            }

            /// Writes the message as compact JSON.
            pub fn to_json(&self) -> String {
                write_object(|writer| {
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
    /// §5.2: a subscriber requests a subscription with its capabilities.
    SubscriptionRequest = "subscription.request", unknown members break Some(rule::REQUEST_FORM);
    /// §5.4: the request is accepted on these terms.
    SubscriptionAccepted = "subscription.accepted", unknown members break Some(rule::ACCEPTED_FORM);
    /// §5.5: the request is rejected.
    SubscriptionRejected = "subscription.rejected", unknown members break Some(rule::REJECTED_FORM);
    /// §5.7: the subscriber requests other terms.
    SubscriptionRenegotiate = "subscription.renegotiate", unknown members break Some(rule::RENEGOTIATE_OR_CLOSE_FORM);
    /// §5.8: either side closes the subscription.
    SubscriptionClose = "subscription.close", unknown members break Some(rule::RENEGOTIATE_OR_CLOSE_FORM);
    /// §6.3: the person's decision.
    ConfirmationReply = "confirmation.reply", unknown members break Some(rule::CONFIRMATION_REPLY_FORM);
    /// §6.5: the person's answer.
    ClarificationReply = "clarification.reply", unknown members break Some(rule::CLARIFICATION_REPLY_FORM);
    /// §5.10: the capabilities of a producer.
    Manifest = "aaep:producer.manifest", unknown members break None;
    /// Added by sayso: the person needs more time.
    DeadlineExtend = "sayso:deadline.extend", unknown members break Some(rule::SAYSO_MESSAGE);
    /// Added by sayso: somebody takes over from the agent.
    HandoffAcknowledge = "sayso:handoff.acknowledge", unknown members break Some(rule::SAYSO_MESSAGE);
    /// Added by sayso: somebody refuses to take over from the agent.
    HandoffReject = "sayso:handoff.reject", unknown members break Some(rule::SAYSO_MESSAGE);
    /// Added by sayso: the person stops the agent.
    SessionStop = "sayso:session.stop", unknown members break Some(rule::SAYSO_MESSAGE);
}

impl MessageType {
    /// Returns whether messages of this type are checked strictly in every validation mode
    /// (§6.3.4). These are the replies, and the messages that sayso adds, which act like replies.
    pub(crate) fn is_always_strict(self) -> bool {
        matches!(
            self,
            Self::ConfirmationReply
                | Self::ClarificationReply
                | Self::DeadlineExtend
                | Self::HandoffAcknowledge
                | Self::HandoffReject
                | Self::SessionStop
        )
    }
}
