//! `sayso listen`, usually in a pseudo-terminal, with a real or a fake hub.

mod answers;
mod connection;
pub(crate) mod fake_hub;
mod hostile_producer;
mod json_and_auto;
mod languages;
mod manifests;
mod markdown;
mod negotiation;
mod nothing_persisted;
mod optional_fields;
mod own_messages;
mod producer_without_hub;
mod program;
mod recall;
mod transports;
mod whole_session;
