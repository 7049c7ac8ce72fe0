//! All integration tests of the ASP crate, in one binary.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "a failed test panics")]

mod agent_cards;
mod bad_input;
mod consent;
mod disputes;
mod escrow;
mod message_pack;
mod model_checking;
mod participants;
mod published_vectors;
mod session;
mod support;
mod transcript;
mod transition_table;
mod trust;
