//! All integration tests of the crate, in one program.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test reports a failure by panicking"
)]

mod agent_keys;
mod canonical;
mod dpop;
mod ed25519;
mod es256;
mod exact_numbers;
mod jws;
