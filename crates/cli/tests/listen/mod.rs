//! `sayso listen`, driven in a pseudo-terminal against the real hub.

mod answers;
mod connection;
pub(crate) mod fake_hub;
mod hostile_producer;
mod json_and_auto;
mod languages;
mod manifests;
mod negotiation;
mod nothing_persisted;
mod producer_without_hub;
mod whole_session;
