//! AAEP, the Agent Accessibility Event Protocol, as values and machines.
//!
//! By AAEP an AI agent tells a person's assistive technology what it does, and waits for consent. This crate knows the
//! protocol and nothing else: no sockets, no clock, no threads. Time and randomness come in as arguments.
//!
//! - [`event`]: the envelope and the twelve events as types, read without loss and written in the advised order.
//! - [`message`]: the handshake, the replies and the producer's manifest.
//! - [`rule`]: the rule book. Every finding anywhere in sayso names one of its rules.
//! - [`check`]: whether one event or message is lawful, in the strict face or the receiving one.
//! - [`session`]: whether events are lawful in their order, and what a session is waiting for.
//! - [`recording`]: many sessions in one stream.
//! - [`schema`]: the JSON Schemas of all of it.

pub mod check;
pub mod event;
mod fingerprint;
pub mod form;
mod id;
pub mod message;
mod received;
pub mod record;
pub mod recording;
pub mod rule;
pub mod schema;
pub mod session;

pub use id::{EventId, IdError, OutputId, ReplyToken, SessionId, SubscriptionId, ToolCallId};
pub use received::Received;
pub use seal::{Random, Timestamp, TimestampError, json};
