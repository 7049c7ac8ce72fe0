//! OpenTelemetry in: narrates what agents report over OTLP, after the fact.
//!
//! - `proto`, `json`: the messages of OTLP, as protobuf and as JSON.
//! - `message_count`: how many messages a request has, before it is decoded.
//! - `report`: what spans and log records say about agents, by the semantic conventions for generative AI.
//! - `session_table`: which session a report belongs to, and which reports are repeated.
//! - `event`: what listeners hear about a report, and why it never needs or states a consent.
//! - `service`: the HTTP service.
//!
//! Spans arrive when work has ended. They can be narrated, but nothing can be asked or stopped.

mod event;
mod json;
mod message_count;
mod proto;
mod report;
mod service;
mod session_table;

use std::time::Duration;

pub use service::OtlpService;

/// The limits of the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OtlpLimits {
    /// Maximum size of a request body, before and after decompression, in bytes.
    pub body_bytes: usize,
    /// Maximum number of spans or log records in one request. Further ones are rejected.
    pub records: usize,
    /// Maximum number of messages in one request: resources, scopes, records, attributes and values.
    pub messages: usize,
    /// Maximum number of open sessions. One more ends the quietest of the token that has the most.
    pub sessions: usize,
    /// Number of records that are remembered, to notice repeated ones.
    pub remembered_records: usize,
    /// How long a session without reports stays open.
    pub quiet_time: Duration,
}

impl Default for OtlpLimits {
    fn default() -> Self {
        Self {
            body_bytes: 4 * 1024 * 1024,
            records: 10_000,
            messages: 200_000,
            sessions: 256,
            remembered_records: 65_536,
            quiet_time: Duration::from_mins(1),
        }
    }
}
