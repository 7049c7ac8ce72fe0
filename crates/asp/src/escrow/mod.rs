//! Escrow: a double-entry ledger of money that is held until a commitment is fulfilled (D27).
//!
//! - [`LedgerEntry`]: one movement of money. Its postings always add up to zero.
//! - [`EscrowLedger`]: the balances, computed from entries. Replaying the stored entries gives the same balances.
//! - [`EscrowProvider`]: the party that holds the money, with requests that can be repeated after a crash.
//! - [`EscrowCeilings`]: how much money may be at stake with a peer.
//!
//! To change the ledger durably, plan an entry ([`EscrowLedger::plan`] or [`EscrowLedger::answer`]), store it, and then apply
//! it.

mod account;
mod ceilings;
mod entry;
mod entry_json;
mod ledger;
mod provider;
mod provider_json;

pub use account::{Account, EscrowId, Posting};
pub use ceilings::{CeilingError, EscrowCeilings, LevelCeilings, TransactionLimit};
pub use entry::{Deposit, LedgerEntry, LedgerOperation};
pub use ledger::{EscrowError, EscrowLedger, EscrowStatus};
pub use provider::{EscrowAnswer, EscrowProvider, EscrowRequest};
