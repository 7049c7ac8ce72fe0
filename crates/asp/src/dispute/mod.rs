//! Disputes: complaints about accepted commitments (D28).
//!
//! - [`DisputeFiling`]: a dispute that an agent wants to file. [`Dispute::file`] checks it and collects the evidence.
//! - [`Dispute`]: the record of a complaint. [`Dispute::check`] checks one that the other side filed.
//! - [`Dispute::decide`]: decides a dispute from the session, if its reason allows that. A person decides the others.
//! - [`Resolution`]: the end of a dispute.
//! - [`DisputeRegister`]: the disputes that one agent has filed or received.
//!
//! A dispute is a record beside the session. It is not a message, and does not change the state of the session.

mod decision;
mod dispute_json;
mod evidence;
mod record;
mod register;
mod resolution;
mod severity;

pub use decision::Decision;
pub use evidence::{Evidence, EvidenceMessage};
pub use record::{Dispute, DisputeFiling, DisputeReason, FilingError};
pub use register::{DisputeRegister, RegisterError};
pub use resolution::{Resolution, Resolver, Verdict};
pub use severity::Severity;

pub use crate::id::DisputeId;
