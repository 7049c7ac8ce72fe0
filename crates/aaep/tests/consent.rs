//! Consent as a hub keeps it: whose answers count, when, once, and what they cover.

mod asking;
mod batches;
mod checks;
mod clarifications;
mod endings;
mod exhaustive;
mod hub;
mod listeners;
mod properties;
mod receipts;
mod restoring;
mod spending;
mod threats;
mod time;
mod world;
