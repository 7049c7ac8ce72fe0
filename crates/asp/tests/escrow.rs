//! Escrow (D27): no money is created, lost or paid out twice, and no balance is negative.
//!
//! - [`money`]: agents, amounts and entries for the tests.
//! - [`ledger`]: the ledger against a naive one.
//! - [`provider`]: requests that are repeated after a crash.
//! - [`stored_entries`]: entries, requests and answers as JSON.
//! - [`ceilings`]: how much money may be at stake.

mod ceilings;
mod ledger;
mod money;
mod provider;
mod stored_entries;
