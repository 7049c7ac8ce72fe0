//! Tests of `sayso asp serve` with two nodes as processes: the scenarios of `sayso asp demo`, crashes, a hostile network and
//! a hostile peer. A person is asked only in `consent_crashes`; `asp/person` in the other test program has more about that.
//!
//! `SAYSO_RANDOM_KILLS=N` sets the number of random kills, `SAYSO_RANDOM_SEED=N` repeats a run of them, and
//! `SAYSO_CRASH_MATRIX=full` crashes at each point of a session on its own.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test reports a failure by panicking"
)]
#![allow(clippy::float_cmp, reason = "the metrics that are compared are whole numbers")]

mod agent_program;
mod catching_up;
mod circuit_breaker;
mod consent_crashes;
mod crashes;
mod hostile_network;
mod hostile_peer;
mod hostile_socket;
mod kept_state;
mod message_pack;
mod metrics;
mod namespaces;
mod operation;
mod peer_server;
mod policies;
mod proxy;
mod random_kills;
mod raw_peer;
mod refused_shortcuts;
mod restarts;
mod routes;
mod scenarios;
mod script;
mod test_node;
mod trust;
