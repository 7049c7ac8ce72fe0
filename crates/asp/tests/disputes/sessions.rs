//! Sessions to complain about, and disputes about them.
//!
//! The buyer's COMMIT `cmt_1` obliges the seller until January 5 and the buyer until January 6, with 10.50 USD in escrow.

use asp::dispute::{Dispute, DisputeFiling, DisputeReason, FilingError, Severity};
use asp::state_machine::State;
use asp::{AgentUri, CommitmentId, DisputeId};
use seal::Timestamp;

use crate::support::record_harness::RecordHarness;
use crate::support::test_agents::{BUYER, SELLER};

pub(super) const BEFORE_DEADLINES: &str = "2026-01-04T00:00:00Z";
pub(super) const AFTER_SELLERS_DEADLINE: &str = "2026-01-05T00:00:00.001Z";
pub(super) const AFTER_ALL_DEADLINES: &str = "2026-01-07T00:00:00Z";

pub(super) fn time(text: &str) -> Timestamp {
    Timestamp::parse_rfc3339(text).unwrap()
}

pub(super) fn buyer() -> AgentUri {
    BUYER.agent().clone()
}

pub(super) fn seller() -> AgentUri {
    SELLER.agent().clone()
}

pub(super) fn severity(number: u8) -> Severity {
    Severity::new(number).unwrap()
}

/// Returns a session in which the commitment was accepted.
pub(super) fn executing() -> RecordHarness {
    RecordHarness::at(State::Executing)
}

/// A complaint of the buyer about the seller, after all deadlines.
pub(super) fn filing(reason: DisputeReason) -> DisputeFiling {
    DisputeFiling {
        dispute_id: DisputeId::parse("dsp_1").unwrap(),
        commitment_id: CommitmentId::parse("cmt_1").unwrap(),
        filed_by: buyer(),
        reason,
        severity: severity(5),
        statement: None,
        messages: Vec::new(),
        filed_at: time(AFTER_ALL_DEADLINES),
    }
}

pub(super) fn file(harness: &RecordHarness, reason: DisputeReason) -> Result<Dispute, FilingError> {
    Dispute::file(filing(reason), &harness.record)
}
