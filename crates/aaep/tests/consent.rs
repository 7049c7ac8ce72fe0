//! Consent as a hub keeps it: whose answers count, when, once, and what they cover.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may fail loudly")]

mod support;

#[path = "consent/asking.rs"]
mod asking;
#[path = "consent/batches.rs"]
mod batches;
#[path = "consent/checks.rs"]
mod checks;
#[path = "consent/clarifications.rs"]
mod clarifications;
#[path = "consent/endings.rs"]
mod endings;
#[path = "consent/exhaustive.rs"]
mod exhaustive;
#[path = "consent/hub.rs"]
mod hub;
#[path = "consent/listeners.rs"]
mod listeners;
#[path = "consent/properties.rs"]
mod properties;
#[path = "consent/receipts.rs"]
mod receipts;
#[path = "consent/restoring.rs"]
mod restoring;
#[path = "consent/spending.rs"]
mod spending;
#[path = "consent/threats.rs"]
mod threats;
#[path = "consent/time.rs"]
mod time;
#[path = "consent/world.rs"]
mod world;
