//! Which disputes are decided automatically, and how.

use asp::dispute::{Decision, Dispute, DisputeReason, FilingError, Resolver, Verdict};
use asp::escrow::EscrowStatus;
use asp::session::Payee;
use asp::state_machine::State;

use super::sessions::{
    AFTER_ALL_DEADLINES, AFTER_SELLERS_DEADLINE, executing, file, filing, seller, severity, time,
};
use crate::support::bodies;
use crate::support::record_harness::{A, B, RecordHarness};

/// Returns the verdict, or `None` if a person must decide.
fn decide(dispute: &Dispute, harness: &RecordHarness, escrow: Option<EscrowStatus>) -> Option<Verdict> {
    match dispute.decide(&harness.record, escrow, time(AFTER_ALL_DEADLINES)).unwrap() {
        Decision::Decided(resolution) => {
            assert_eq!(resolution.resolved_by, Resolver::Automatic);
            assert_eq!(resolution.dispute_id, dispute.dispute_id);
            Some(resolution.verdict)
        }
        Decision::NeedsPerson => None,
    }
}

#[test]
fn a_passed_deadline_without_a_result_is_upheld_as_moderate() {
    let harness = executing();
    let dispute = file(&harness, DisputeReason::DeadlinePassed).unwrap();
    assert_eq!(decide(&dispute, &harness, None), Some(Verdict::Upheld(severity(3))));
}

#[test]
fn a_result_before_the_filing_dismisses_the_dispute_about_the_deadline() {
    let mut harness = executing();
    harness.send(B, &bodies::inform("result"));
    let dispute = file(&harness, DisputeReason::DeadlinePassed).unwrap();
    assert_eq!(decide(&dispute, &harness, None), Some(Verdict::Dismissed));
}

#[test]
fn the_other_sides_result_or_a_progress_report_is_not_a_fulfilment() {
    let mut harness = executing();
    harness.send(A, &bodies::inform("result"));
    harness.send(B, &bodies::inform("progress"));
    let dispute = file(&harness, DisputeReason::DeadlinePassed).unwrap();
    assert_eq!(decide(&dispute, &harness, None), Some(Verdict::Upheld(severity(3))));
}

/// The accused agent cannot escape by sending a result after the complaint.
#[test]
fn a_result_after_the_filing_does_not_change_the_decision() {
    let mut filing = filing(DisputeReason::DeadlinePassed);
    filing.filed_at = time(AFTER_SELLERS_DEADLINE);
    let mut harness = RecordHarness::new();
    harness.is_live = false;
    let mut harness = harness.advanced_to(State::Conversing);
    // The session lasts an hour, so the deadline must be in it.
    let commit = bodies::COMMIT.replace("2026-01-05T00:00:00Z", "2026-01-02T03:00:30Z");
    harness.send(A, &bodies::body(asp::Performative::Commit, &commit));
    harness.send(B, &bodies::accept("cmt_1"));
    filing.filed_at = time("2026-01-02T03:00:31Z");
    let dispute = Dispute::file(filing.clone(), &harness.record).unwrap();
    harness.now += 60_000;
    harness.send(B, &bodies::inform("result"));
    assert_eq!(decide(&dispute, &harness, None), Some(Verdict::Upheld(severity(3))));
    filing.filed_at = time("2026-01-02T03:10:00Z");
    let later = Dispute::file(filing, &harness.record).unwrap();
    assert_eq!(decide(&later, &harness, None), Some(Verdict::Dismissed), "the late result came first");
}

#[test]
fn a_decision_is_never_more_severe_than_the_claim() {
    let harness = executing();
    for (claimed, decided) in [(1, 1), (2, 2), (3, 3), (4, 3), (5, 3)] {
        let mut filing = filing(DisputeReason::DeadlinePassed);
        filing.severity = severity(claimed);
        let dispute = Dispute::file(filing, &harness.record).unwrap();
        assert_eq!(decide(&dispute, &harness, None), Some(Verdict::Upheld(severity(decided))));
    }
}

#[test]
fn a_release_without_a_result_is_upheld_as_serious() {
    let harness = executing();
    let dispute = file(&harness, DisputeReason::ReleaseWithoutFulfillment).unwrap();
    let to_seller = Some(EscrowStatus::Released(Payee::Beneficiary));
    assert_eq!(decide(&dispute, &harness, to_seller), Some(Verdict::Upheld(severity(4))));
    assert_eq!(decide(&dispute, &harness, Some(EscrowStatus::Held)), Some(Verdict::Dismissed));
    let to_buyer = Some(EscrowStatus::Released(Payee::Depositor));
    assert_eq!(decide(&dispute, &harness, to_buyer), Some(Verdict::Dismissed), "the accused did not get it");
    assert_eq!(decide(&dispute, &harness, None), None, "the escrow is not known here");
}

#[test]
fn a_release_after_a_result_is_dismissed() {
    let mut harness = executing();
    harness.send(B, &bodies::inform("result"));
    let dispute = file(&harness, DisputeReason::ReleaseWithoutFulfillment).unwrap();
    let to_seller = Some(EscrowStatus::Released(Payee::Beneficiary));
    assert_eq!(decide(&dispute, &harness, to_seller), Some(Verdict::Dismissed));
}

/// The escrow compensates the other side if the depositor breaks the agreement.
#[test]
fn a_compensation_is_not_a_release_without_fulfilment() {
    let mut harness = executing();
    harness.send(A, &bodies::withdraw());
    assert_eq!(harness.record.session().outcome().unwrap().broken_by, [A]);
    let dispute = file(&harness, DisputeReason::ReleaseWithoutFulfillment).unwrap();
    let to_seller = Some(EscrowStatus::Released(Payee::Beneficiary));
    assert_eq!(decide(&dispute, &harness, to_seller), Some(Verdict::Dismissed));
}

#[test]
fn a_refund_to_the_accused_depositor_is_decided_by_a_person() {
    let harness = executing();
    let mut by_seller = filing(DisputeReason::ReleaseWithoutFulfillment);
    by_seller.filed_by = seller();
    let dispute = Dispute::file(by_seller, &harness.record).unwrap();
    let to_buyer = Some(EscrowStatus::Released(Payee::Depositor));
    assert_eq!(decide(&dispute, &harness, to_buyer), None);
}

#[test]
fn the_other_reasons_are_decided_by_a_person() {
    let mut harness = executing();
    harness.send(B, &bodies::inform("result"));
    for reason in
        [DisputeReason::FulfillmentMismatch, DisputeReason::NonDelivery, DisputeReason::TermsChanged]
    {
        let dispute = file(&harness, reason).unwrap();
        for escrow in [None, Some(EscrowStatus::Held), Some(EscrowStatus::Released(Payee::Beneficiary))] {
            assert_eq!(decide(&dispute, &harness, escrow), None, "{reason}");
        }
    }
}

#[test]
fn a_dispute_about_another_session_is_not_decided() {
    let mut dispute = file(&executing(), DisputeReason::DeadlinePassed).unwrap();
    let other = RecordHarness::at(State::Agreeing);
    let result = dispute.decide(&other.record, None, time(AFTER_ALL_DEADLINES));
    assert_eq!(result, Err(FilingError::NotAccepted));
    dispute.session_id = asp::SessionId::parse("01890a5d-ac96-774b-bcce-b302099a8057").unwrap();
    let result = dispute.decide(&executing().record, None, time(AFTER_ALL_DEADLINES));
    assert_eq!(result, Err(FilingError::OtherSession), "the commitment id may be the same in both sessions");
}
