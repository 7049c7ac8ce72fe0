//! What a session makes of bad input: each has its refusal with its code, or is dropped, and nothing changes by it.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test says what went wrong by panicking"
)]

#[path = "bad_input/bodies.rs"]
mod bodies;
#[path = "bad_input/cards.rs"]
mod cards;
#[path = "bad_input/chain.rs"]
mod chain;
#[path = "bad_input/envelope.rs"]
mod envelope;
#[path = "bad_input/forger.rs"]
mod forger;
#[path = "bad_input/json.rs"]
mod json;
#[path = "bad_input/limits.rs"]
mod limits;
#[path = "bad_input/promises.rs"]
mod promises;
#[path = "bad_input/proofs.rs"]
mod proofs;
#[path = "bad_input/strangers.rs"]
mod strangers;
mod support;
