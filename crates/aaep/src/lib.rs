//! AAEP, the Agent Accessibility Event Protocol, as types and state machines.
//!
//! With AAEP, an AI agent reports its work to a person's assistive technology and waits for consent. This crate
//! implements the protocol only: it has no sockets, no clock and no threads. Time and randomness are arguments.
//!
//! - [`event`]: the envelope and the twelve event types, parsed without loss and written in the recommended order.
//! - [`message`]: the handshake, the replies and the producer's manifest.
//! - [`rule`]: all validation rules. Every finding in sayso names a rule.
//! - [`check`]: validates one event or message, strictly or as a tolerant receiver.
//! - [`secret`]: finds and redacts secrets in text meant for people.
//! - [`session`]: validates the order of events and tracks what a session waits for.
//! - [`consent`]: open questions, their answers, and the actions that an answer covers.
//! - [`recording`]: validates many sessions in one stream.
//! - [`shaping`]: decides what one subscription receives, and when.
//! - [`negotiate`]: matches a subscriber's request with the producer's offer; selects languages.
//! - [`manifest`]: signs and verifies manifests.
//! - [`schema`]: the JSON Schemas of events and messages.
//! - [`grammar`]: the syntax of tool names, URIs, language tags and versions.
//! - [`record`]: members that have no field of their own, and other values that events and messages share.

pub mod check;
pub mod consent;
pub mod event;
mod fingerprint;
pub mod grammar;
mod id;
pub mod manifest;
pub mod message;
pub mod negotiate;
mod parsed_document;
pub mod record;
pub mod recording;
pub mod rule;
pub mod schema;
pub mod secret;
pub mod session;
pub mod shaping;

pub use id::{EventId, IdError, OutputId, ReplyToken, SessionId, SubscriptionId, ToolCallId};
pub use parsed_document::ParsedDocument;
pub use seal::{Random, Timestamp, TimestampError, UnixMillis, json};
