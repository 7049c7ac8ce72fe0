//! All integration tests of the hub, in one binary.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

mod agent_connections;
mod agent_manifests;
mod clock_jumps;
mod engine;
mod event_texts;
mod foreign_questions;
mod forgiving_agent_api;
mod handoffs;
mod hub_event_rules;
mod indistinguishable_replies;
mod late_listeners;
mod localized_messages;
mod metrics;
mod question_deadlines;
mod rate_under_load;
mod recovery;
mod refusal_reasons;
mod repeated_session_fields;
mod reported_ends;
mod request_limits;
mod retention;
mod session_lifecycle;
mod session_starts;
mod several_agents;
mod several_shards;
mod simulation;
mod state_rules;
mod streamed_output;
mod supplied_states;
mod support;
mod threats;
mod valid_tokens;
