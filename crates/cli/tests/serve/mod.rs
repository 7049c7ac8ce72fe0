//! `sayso serve`: the real binary, used by agents, listeners and operators.

mod absent_agents;
mod agent_api_docs;
mod agent_manifests;
pub(crate) mod agent_websocket;
mod authorization;
#[cfg(feature = "postgres")]
mod cluster;
mod compat;
mod compat_limits;
mod config;
mod crash_recovery;
mod damaged_journal;
mod demo_agent;
#[cfg(target_os = "linux")]
mod disk_failures;
mod durability;
mod error_messages;
mod every_field;
mod handoffs;
mod limits;
mod malformed_requests;
mod manifest;
#[cfg(feature = "postgres")]
mod migrate;
pub(crate) mod observability;
mod otlp;
mod page_assets;
#[cfg(feature = "postgres")]
mod postgres_journal;
mod protocol_behaviour;
mod question_withdrawal;
mod random_kills;
mod rate_limits;
mod receipt_signatures;
pub(crate) mod reload;
mod request_urls;
mod sayso_crate;
mod session_lifecycle;
mod several_agents;
mod shards;
mod shell_example;
mod sign_in;
mod slow_clients;
mod stdio;
mod supplied_members;
mod threats;
pub(crate) mod tls;
mod unix;
mod websocket;
