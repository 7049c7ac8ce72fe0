//! All integration tests of AAEP's values and state machines, except those against the published schemas.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "tests report failures by panicking"
)]

mod clarification_answers;
mod consent;
mod manifest;
mod negotiate;
mod presumed_consent;
mod protocol_properties;
mod recording_mutations;
mod rules_switched_off;
mod session_machine;
mod shaping;
mod shaping_output_text;
mod shaping_properties;
mod support;
mod tolerant_receiving;
