//! Who may answer which item, reused ids, and invalid amounts.

use asp::escrow::{
    Deposit, EscrowAnswer, EscrowError, EscrowId, EscrowLedger, EscrowProvider as _, EscrowRequest,
    LedgerOperation,
};
use asp::session::ReceiverChecks;
use asp::state_machine::State;
use asp::{Amount, CommitmentId, Currency, Reference, RejectCode, SessionId};
use seal::UnixMillis;

use crate::support::bodies::{COMMIT, accept, commit, counter, invitation, propose, reject};
use crate::support::record_harness::{A, B, RecordHarness, time};
use crate::support::test_agents::{BUYER, SELLER};

#[test]
fn a_side_cannot_answer_its_own_item() {
    let cases = [
        (State::Invited, A, accept("prop_inv")),
        (State::Invited, A, reject("prop_inv")),
        (State::Conversing, A, accept("prop_a")),
        (State::Conversing, A, reject("prop_a")),
        (State::Conversing, A, counter("prop_x", "prop_a")),
        (State::Conversing, B, accept("prop_b")),
        (State::Agreeing, A, accept("cmt_1")),
        (State::Agreeing, A, reject("cmt_1")),
        (State::Agreeing, A, counter("prop_x", "cmt_1")),
    ];
    for (state, sender, body) in cases {
        let mut harness = RecordHarness::at(state);
        let envelope = harness.next(sender, &body);
        harness.assert_refused(sender, &envelope, RejectCode::Unauthorized);
        // The other side may answer it.
        let envelope = harness.next(sender.other(), &body);
        harness.assert_accepted(sender.other(), &envelope);
    }
}

#[test]
fn an_item_that_is_not_open_cannot_be_answered() {
    for (state, id) in [
        (State::Invited, "prop_a"),
        (State::Conversing, "prop_inv"),
        (State::Conversing, "prop_zz"),
        (State::Conversing, "cmt_1"),
        (State::Agreeing, "cmt_2"),
        (State::Agreeing, "prop_a"),
    ] {
        let mut harness = RecordHarness::at(state);
        for body in [accept(id), reject(id)] {
            let envelope = harness.next(B, &body);
            harness.assert_refused(B, &envelope, RejectCode::InvalidStateTransition);
        }
    }
}

#[test]
fn an_answered_proposal_is_closed() {
    for answer in [accept("prop_a"), reject("prop_a"), counter("prop_c", "prop_a")] {
        let mut harness = RecordHarness::at(State::Conversing);
        harness.send(B, &answer);
        for second_answer in [accept("prop_a"), reject("prop_a"), counter("prop_d", "prop_a")] {
            let envelope = harness.next(B, &second_answer);
            harness.assert_refused(B, &envelope, RejectCode::InvalidStateTransition);
        }
    }
}

#[test]
fn an_expired_proposal_cannot_be_answered() {
    let mut harness = RecordHarness::at(State::Conversing);
    let valid_until = harness.now + 10_000;
    let body = format!(
        r#"{{"proposalId":"prop_t","type":"work","subject":"x","terms":{{}},"validUntil":"{}"}}"#,
        time(valid_until)
    );
    let envelope = harness.envelope(A, "PROPOSE", &body);
    harness.assert_accepted(A, &envelope);
    harness.now = valid_until;
    for body in [accept("prop_t"), reject("prop_t"), counter("prop_u", "prop_t")] {
        let envelope = harness.next(B, &body);
        harness.assert_refused(B, &envelope, RejectCode::Timeout);
    }
    harness.now = valid_until - 1;
    let envelope = harness.next(B, &accept("prop_t"));
    harness.assert_accepted(B, &envelope);
}

#[test]
fn a_second_commit_is_refused_while_one_is_pending_or_binding() {
    let mut harness = RecordHarness::at(State::Agreeing);
    for sender in [A, B] {
        for id in ["cmt_1", "cmt_2"] {
            let envelope = harness.next(sender, &commit(id));
            harness.assert_refused(sender, &envelope, RejectCode::InvalidStateTransition);
        }
    }
    let mut harness = RecordHarness::at(State::Executing);
    let envelope = harness.next(B, &commit("cmt_2"));
    harness.assert_refused(B, &envelope, RejectCode::InvalidStateTransition);
}

#[test]
fn ids_cannot_be_reused() {
    let mut harness = RecordHarness::at(State::Conversing);
    for used in ["prop_inv", "prop_a", "prop_b"] {
        for sender in [A, B] {
            let envelope = harness.next(sender, &propose(used));
            harness.assert_refused(sender, &envelope, RejectCode::Duplicate);
        }
        let envelope = harness.next(B, &counter(used, "prop_a"));
        harness.assert_refused(B, &envelope, RejectCode::Duplicate);
    }
    // An id stays used after its proposal was closed or its commitment was rejected.
    harness.send(B, &reject("prop_a"));
    let envelope = harness.next(A, &propose("prop_a"));
    harness.assert_refused(A, &envelope, RejectCode::Duplicate);
    harness.send(A, &commit("cmt_1"));
    harness.send(B, &reject("cmt_1"));
    for sender in [A, B] {
        let envelope = harness.next(sender, &commit("cmt_1"));
        harness.assert_refused(sender, &envelope, RejectCode::Duplicate);
    }
    harness.send(A, &commit("cmt_2"));
    let envelope = harness.next(B, &counter("prop_b", "cmt_2"));
    harness.assert_refused(B, &envelope, RejectCode::Duplicate);
}

#[test]
fn a_second_invitation_is_refused() {
    for state in State::LIVE {
        let mut harness = RecordHarness::at(state);
        for sender in [A, B] {
            let envelope = harness.next(sender, &invitation());
            harness.assert_refused(sender, &envelope, RejectCode::InvalidStateTransition);
        }
    }
    // The invited side cannot send the first invitation.
    let mut harness = RecordHarness::new();
    let envelope = harness.next(B, &invitation());
    harness.assert_refused(B, &envelope, RejectCode::Unauthorized);
}

#[test]
fn a_commit_cannot_bind_agents_outside_the_session() {
    let mut harness = RecordHarness::at(State::Conversing);
    for party in ["agent://c.example/third", "agent://b.example/seller2", "agent://B.example/seller"] {
        let body = COMMIT.replace("agent://b.example/seller", party);
        let envelope = harness.envelope(A, "COMMIT", &body);
        harness.assert_refused(A, &envelope, RejectCode::Unauthorized);
    }
}

#[test]
fn uncovered_escrow_is_refused() {
    let mut harness = RecordHarness::at(State::Agreeing);
    harness.checks = ReceiverChecks { is_funded: false, ..ReceiverChecks::PASSED };
    let envelope = harness.next(B, &accept("cmt_1"));
    harness.assert_refused(B, &envelope, RejectCode::BudgetExceeded);
    harness.checks.is_funded = true;
    let envelope = harness.next(B, &accept("cmt_1"));
    harness.assert_accepted(B, &envelope);
}

fn amount(text: &str) -> Amount {
    Amount::parse(text).unwrap()
}

fn currency(text: &str) -> Currency {
    Currency::parse(text).unwrap()
}

/// A balance in one currency does not cover another currency.
#[test]
fn currencies_are_not_mixed() {
    let mut ledger = EscrowLedger::default();
    let credit = LedgerOperation::Credit {
        reference: Reference::parse("payment-1").unwrap(),
        agent: BUYER.agent().clone(),
        amount: amount("1000"),
        currency: currency("EUR"),
    };
    ledger.apply(&ledger.plan(credit, UnixMillis::new(0)).unwrap()).unwrap();
    assert!(!ledger.can_cover(BUYER.agent(), &amount("10.50"), &currency("USD")));
    assert!(ledger.can_cover(BUYER.agent(), &amount("10.50"), &currency("EUR")));
    let id = EscrowId {
        session_id: SessionId::parse("01890a5d-ac96-774b-bcce-b302099a8057").unwrap(),
        commitment_id: CommitmentId::parse("cmt_1").unwrap(),
    };
    let deposit = Deposit {
        depositor: BUYER.agent().clone(),
        beneficiary: SELLER.agent().clone(),
        amount: amount("10.50"),
        currency: currency("USD"),
    };
    let request = EscrowRequest::Hold { id: id.clone(), deposit };
    let answer = ledger.submit(&request, UnixMillis::new(0));
    assert_eq!(answer, EscrowAnswer::Refused(EscrowError::InsufficientFunds));
    assert_eq!(ledger.deposit(&id), None);
    assert_eq!(ledger.balance(BUYER.agent(), &currency("EUR")), 1_000_000_000_000);
    assert_eq!(ledger.balance(BUYER.agent(), &currency("USD")), 0);
}

#[test]
fn amounts_are_accepted_only_within_their_limits() {
    let mut harness = RecordHarness::at(State::Conversing);
    let commit_with_amount = |text: &str| COMMIT.replace("10.50", text);
    let envelope = harness.envelope(A, "COMMIT", &commit_with_amount("1000000000000000"));
    harness.assert_refused(A, &envelope, RejectCode::SchemaUnsupported);
    let envelope = harness.envelope(A, "COMMIT", &commit_with_amount("999999999999999.999999999"));
    harness.assert_accepted(A, &envelope);
    let mut harness = RecordHarness::at(State::Conversing);
    let envelope = harness.envelope(A, "COMMIT", &commit_with_amount("0.000000000"));
    harness.assert_refused(A, &envelope, RejectCode::SchemaUnsupported);
    let envelope = harness.envelope(A, "COMMIT", &commit_with_amount("0.000000001"));
    harness.assert_accepted(A, &envelope);
}
