//! AAEP, the Agent Accessibility Event Protocol, as values and machines.
//!
//! By AAEP an AI agent tells a person's assistive technology what it does, and waits for consent. This crate knows the
//! protocol and nothing else: no sockets, no clock, no threads. Time and randomness come in as arguments.
//!
//! - [`event`]: the envelope and the twelve events as types, read without loss and written in the advised order.
//! - [`message`]: the handshake, the replies and the producer's manifest.
//! - [`rule`]: the rule book. Every finding anywhere in sayso names one of its rules.
//! - [`check`]: whether one event or message is lawful, in the strict face or the receiving one.
//! - [`secret`]: secrets in text for people, for the check and for redaction.
//! - [`session`]: whether events are lawful in their order, and what a session is waiting for.
//! - [`consent`]: open questions, whose answers count, and what they cover.
//! - [`recording`]: many sessions in one stream.
//! - [`shape`]: what one subscription hears of it all, and when.
//! - [`negotiate`]: what a subscriber asks for against what can be given, and the terms that hold; languages.
//! - [`manifest`]: signed manifests, made and checked.
//! - [`schema`]: the JSON Schemas of all of it.

pub mod check;
pub mod consent;
pub mod event;
mod fingerprint;
pub mod form;
mod id;
pub mod manifest;
pub mod message;
pub mod negotiate;
mod received;
pub mod record;
pub mod recording;
pub mod rule;
pub mod schema;
pub mod secret;
pub mod session;
pub mod shape;

pub use id::{EventId, IdError, OutputId, ReplyToken, SessionId, SubscriptionId, ToolCallId};
pub use received::Received;
pub use seal::{Random, Timestamp, TimestampError, UnixMillis, json};
