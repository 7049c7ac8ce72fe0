//! Who can file a dispute, about what, and with which evidence.

use asp::dispute::{Dispute, DisputeFiling, DisputeReason, Evidence, FilingError};
use asp::state_machine::State;
use asp::{CommitmentId, MessageId, SessionId};
use seal::{Digest, UnixMillis};

use super::sessions::{
    AFTER_ALL_DEADLINES, AFTER_SELLERS_DEADLINE, BEFORE_DEADLINES, buyer, executing, file, filing, seller,
    time,
};
use crate::support::bodies;
use crate::support::record_harness::{A, B, RecordHarness};
use crate::support::test_agents::THIRD;

/// After the latest `filedAt` in these tests.
fn now() -> UnixMillis {
    time(AFTER_ALL_DEADLINES).unix_millis()
}

/// Returns the id and hash of the message at this index, with a second implementation.
fn message_at(harness: &RecordHarness, index: usize) -> (MessageId, Digest) {
    let text = harness.record.transcript().messages().nth(index).unwrap();
    let mut tape = seal::json::Tape::default();
    let root = tape.read(text).unwrap().root();
    let id = root.member("messageId").unwrap().text().unwrap();
    let hash = root.member("integrity").unwrap().member("hash").unwrap().text().unwrap();
    (MessageId::parse(&id).unwrap(), Digest::parse(&hash).unwrap())
}

#[test]
fn the_evidence_is_the_commit_its_accept_and_the_last_result() {
    let mut harness = executing();
    harness.send(B, &bodies::inform("result"));
    harness.send(A, &bodies::inform("result"));
    harness.send(B, &bodies::inform("result"));
    let named = vec![message_at(&harness, 0).0];
    let filing = DisputeFiling { messages: named, ..filing(DisputeReason::FulfillmentMismatch) };
    let dispute = Dispute::file(filing, &harness.record).unwrap();
    let pair = |message: asp::dispute::EvidenceMessage| (message.message_id, message.hash);
    assert_eq!(pair(dispute.evidence.agreed_terms), message_at(&harness, 6));
    assert_eq!(pair(dispute.evidence.acceptance), message_at(&harness, 7));
    assert_eq!(
        dispute.evidence.delivered_result.map(pair),
        Some(message_at(&harness, 10)),
        "not the buyer's"
    );
    assert_eq!(pair(dispute.evidence.messages[0]), message_at(&harness, 0));
    assert_eq!((&dispute.filed_by, &dispute.filed_against), (&buyer(), &seller()));
    assert_eq!(dispute.check(&harness.record, now()), Ok(()));
}

#[test]
fn only_accepted_commitments_can_be_disputed() {
    for state in [State::Conversing, State::Agreeing] {
        let harness = RecordHarness::at(state);
        assert_eq!(file(&harness, DisputeReason::TermsChanged), Err(FilingError::NotAccepted), "{state}");
    }
    let mut withdrawn = RecordHarness::at(State::Agreeing);
    withdrawn.send(A, &bodies::withdraw());
    assert_eq!(file(&withdrawn, DisputeReason::TermsChanged), Err(FilingError::NotAccepted));
    let mut other = filing(DisputeReason::TermsChanged);
    other.commitment_id = CommitmentId::parse("cmt_2").unwrap();
    assert_eq!(Dispute::file(other, &executing().record), Err(FilingError::NotAccepted));
    for harness in [executing(), RecordHarness::at(State::Closed)] {
        assert!(file(&harness, DisputeReason::TermsChanged).is_ok(), "{}", harness.state());
    }
}

#[test]
fn a_commitment_can_be_disputed_during_an_escalation_and_after_a_failure() {
    let mut escalated = executing();
    escalated.send(A, &bodies::escalate());
    assert!(file(&escalated, DisputeReason::TermsChanged).is_ok());
    let mut failed = executing();
    failed.record.handle_timeout(now());
    assert_eq!(failed.state(), State::Failed);
    assert!(file(&failed, DisputeReason::DeadlinePassed).is_ok());
}

#[test]
fn only_a_party_of_the_session_can_file_a_dispute() {
    let harness = executing();
    let mut by_stranger = filing(DisputeReason::TermsChanged);
    by_stranger.filed_by = THIRD.agent().clone();
    assert_eq!(Dispute::file(by_stranger, &harness.record), Err(FilingError::NotAParty));
    let mut by_seller = filing(DisputeReason::TermsChanged);
    by_seller.filed_by = seller();
    assert_eq!(Dispute::file(by_seller, &harness.record).unwrap().filed_against, buyer());
}

#[test]
fn the_reason_must_be_possible() {
    let mut harness = executing();
    let at = |text, by| {
        let mut filing = filing(DisputeReason::DeadlinePassed);
        (filing.filed_at, filing.filed_by) = (time(text), by);
        Dispute::file(filing, &executing().record).map(|_| ())
    };
    assert_eq!(at(BEFORE_DEADLINES, buyer()), Err(FilingError::NoDeadlinePassed));
    assert_eq!(
        at("2026-01-05T00:00:00Z", buyer()),
        Err(FilingError::NoDeadlinePassed),
        "exactly at the deadline"
    );
    assert_eq!(at(AFTER_SELLERS_DEADLINE, buyer()), Ok(()));
    assert_eq!(
        at(AFTER_SELLERS_DEADLINE, seller()),
        Err(FilingError::NoDeadlinePassed),
        "the buyer has until the 6th"
    );
    for reason in [DisputeReason::FulfillmentMismatch, DisputeReason::NonDelivery] {
        assert_eq!(file(&harness, reason), Err(FilingError::NoResult));
    }
    harness.send(A, &bodies::inform("result"));
    assert_eq!(
        file(&harness, DisputeReason::NonDelivery),
        Err(FilingError::NoResult),
        "the result of the buyer"
    );
    harness.send(B, &bodies::inform("result"));
    assert!(file(&harness, DisputeReason::NonDelivery).is_ok());
    assert!(file(&harness, DisputeReason::ReleaseWithoutFulfillment).is_ok());
    let mut without_escrow = RecordHarness::at(State::Conversing);
    let commit = bodies::COMMIT
        .replace(r#""escrow":{"amount":"10.50","currency":"USD","releaseCondition":"delivered"},"#, "");
    without_escrow.send(A, &bodies::body(asp::Performative::Commit, &commit));
    without_escrow.send(B, &bodies::accept("cmt_1"));
    assert_eq!(file(&without_escrow, DisputeReason::ReleaseWithoutFulfillment), Err(FilingError::NoEscrow));
}

type Forgery = fn(&mut Dispute);

/// A dispute from the other side is checked against this side's record of the session.
#[test]
fn a_forged_dispute_is_refused() {
    let mut harness = executing();
    harness.send(B, &bodies::inform("result"));
    let dispute = file(&harness, DisputeReason::FulfillmentMismatch).unwrap();
    assert_eq!(dispute.check(&harness.record, now()), Ok(()));
    let forgeries: [(FilingError, Forgery); 11] = [
        (FilingError::OtherSession, |d| {
            d.session_id = SessionId::parse("01890a5d-ac96-774b-bcce-b302099a8057").unwrap();
        }),
        (FilingError::NotAParty, |d| d.filed_by = THIRD.agent().clone()),
        (FilingError::NotTheOtherParty, |d| d.filed_against = THIRD.agent().clone()),
        (FilingError::NotTheOtherParty, |d| d.filed_against = d.filed_by.clone()),
        (FilingError::NotAccepted, |d| d.commitment_id = CommitmentId::parse("cmt_9").unwrap()),
        (FilingError::EvidenceNotInTranscript, |d| d.evidence.agreed_terms.hash = Digest::ZERO),
        (FilingError::EvidenceNotInTranscript, |d| d.evidence.acceptance = d.evidence.agreed_terms),
        (FilingError::EvidenceNotInTranscript, |d| d.evidence.delivered_result = Some(d.evidence.acceptance)),
        (FilingError::EvidenceNotInTranscript, |d| {
            let mut message = d.evidence.acceptance;
            message.hash = Digest::of(b"another message");
            d.evidence.messages.push(message);
        }),
        (FilingError::NoResult, |d| d.evidence.delivered_result = None),
        (FilingError::FiledInFuture, |d| d.filed_at = time("2026-01-07T00:05:00.001Z")),
    ];
    for (error, forge) in forgeries {
        let mut forged = dispute.clone();
        forge(&mut forged);
        assert_eq!(forged.check(&harness.record, now()), Err(error));
    }
}

/// The other side may know a later result than the agent that filed the dispute.
#[test]
fn a_result_that_arrives_after_the_filing_does_not_invalidate_it() {
    let mut harness = executing();
    harness.send(B, &bodies::inform("result"));
    let dispute = file(&harness, DisputeReason::FulfillmentMismatch).unwrap();
    let overdue = file(&executing(), DisputeReason::DeadlinePassed).unwrap();
    harness.send(B, &bodies::inform("result"));
    assert_eq!(dispute.check(&harness.record, now()), Ok(()));
    assert_eq!(overdue.check(&harness.record, now()), Ok(()));
}

#[test]
fn the_evidence_must_be_in_the_transcript_and_is_limited() {
    let harness = executing();
    let unknown = MessageId::parse("01890a5d-ac96-774b-bcce-b302099a8057").unwrap();
    let with = |messages| {
        let filing = DisputeFiling { messages, ..filing(DisputeReason::TermsChanged) };
        Dispute::file(filing, &harness.record)
    };
    assert_eq!(with(vec![unknown]), Err(FilingError::EvidenceNotInTranscript));
    let known = message_at(&harness, 3).0;
    assert!(with(vec![known; Evidence::MAX_MESSAGES]).is_ok());
    assert_eq!(with(vec![known; Evidence::MAX_MESSAGES + 1]), Err(FilingError::EvidenceNotInTranscript));
    // A record that discards the texts has no evidence.
    let mut without_texts = RecordHarness::new();
    without_texts.record = without_texts.record.without_texts();
    let without_texts = without_texts.advanced_to(State::Executing);
    let result = file(&without_texts, DisputeReason::TermsChanged);
    assert_eq!(result, Err(FilingError::EvidenceNotInTranscript));
}
