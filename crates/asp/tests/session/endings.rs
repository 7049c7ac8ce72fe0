//! Which side fulfilled or broke the agreement, and which side gets the escrow (D4, D5, D7, D22).

use asp::CommitmentStatus;
use asp::session::{Effect, ObligationOutcome, Payee, ReceiverChecks, SessionEnding};
use asp::state_machine::{Role, State, Timer};

use crate::session::session_harness::*;

#[test]
fn a_session_ends_when_both_sides_have_closed() {
    let mut harness = SessionHarness::executing();
    assert!(harness.effects.iter().any(|effect| matches!(effect, Effect::RecordAgreement(_))));
    harness.send(B, inform("progress"));
    harness.send(B, inform("result"));
    harness.send(A, inform("result"));

    let request = harness.send(A, close("done"));
    assert_eq!((request.to, harness.session.outcome()), (State::Executing, None));
    let repeated = harness.send(A, close("done"));
    assert_eq!(repeated.to, State::Executing, "one side cannot close for both");
    let transition = harness.send(B, close("done"));

    assert_eq!((transition.row_number, transition.to), (11, State::Closed));
    assert!(transition.effects.contains(&Effect::Learn));
    assert_eq!(harness.outcome().ending, SessionEnding::Completed);
    assert_eq!(obligation_outcomes(&harness), [ObligationOutcome::Fulfilled, ObligationOutcome::Fulfilled]);
    assert_eq!(status(&harness), CommitmentStatus::Fulfilled);
    assert_eq!(harness.outcome().broken_by, []);
    assert_eq!(harness.escrow_effects(), ["inviter pays in 10.50 USD for cmt_1", "cmt_1 to the Beneficiary"]);
}

/// Both sides close without a result (D22).
#[test]
fn closing_by_both_sides_confirms_nothing() {
    use ObligationOutcome::*;
    // The seller's deadline is after 1000 s, the buyer's after 2000 s.
    for (seconds, expected, broken_by, expected_status) in [
        (0, [Open, Open], [].as_slice(), CommitmentStatus::Accepted),
        (1000, [Open, Open], &[], CommitmentStatus::Accepted),
        (1001, [Broken, Open], &[B], CommitmentStatus::Broken),
        (2001, [Broken, Broken], &[A, B], CommitmentStatus::Broken),
    ] {
        let mut harness = SessionHarness::executing();
        harness.wait(seconds);
        harness.send(B, close("done"));
        harness.send(A, close("done"));
        assert_eq!(harness.outcome().ending, SessionEnding::Completed);
        assert_eq!(obligation_outcomes(&harness), expected, "after {seconds} s");
        assert_eq!(harness.outcome().broken_by, broken_by);
        assert_eq!(status(&harness), expected_status);
        assert_eq!(harness.outcome().escrow_payee, Some(Payee::Depositor), "nothing was delivered");
    }
    // The buyer's obligation is overdue. That is not a reason to pay a seller that has reported nothing.
    let mut harness = SessionHarness::conversing()
        .after(&[(A, commit("cmt_1", &[(SELLER, 1000), (BUYER, 100)], Some("10.50"))), (B, accept("cmt_1"))]);
    let mut timed_out = harness.clone();
    harness.wait(500);
    harness.send(A, close("done"));
    harness.send(B, close("done"));
    assert_eq!(obligation_outcomes(&harness), [Open, Broken]);
    assert_eq!(harness.outcome().escrow_payee, Some(Payee::Depositor));
    timed_out.wait(3600);
    assert_eq!(timed_out.outcome().escrow_payee, Some(Payee::Depositor));
    // Only the buyer has an obligation, so the escrow is a bond. It is lost if the session times out, but not if both sides
    // close.
    let mut harness = SessionHarness::conversing()
        .after(&[(A, commit("cmt_1", &[(BUYER, 100)], Some("10.50"))), (B, accept("cmt_1"))]);
    let mut timed_out = harness.clone();
    harness.wait(500);
    harness.send(A, close("done"));
    harness.send(B, close("done"));
    timed_out.wait(3600);
    for (harness, payee) in [(harness, Payee::Depositor), (timed_out, Payee::Beneficiary)] {
        assert_eq!(obligation_outcomes(&harness), [Broken]);
        assert_eq!(harness.outcome().escrow_payee, Some(payee));
    }
}

#[test]
fn a_contested_result_does_not_count() {
    let mut harness = SessionHarness::executing();
    harness.send(A, inform("result"));
    harness.send(B, inform("result"));
    harness.send(A, inform("error"));
    harness.send(B, inform_about_result_of(A, "progress"));
    let mut uncontested = harness.clone();
    harness.send(A, inform_about_result_of(B, "error"));
    let mut repaired = harness.clone();
    for harness in [&mut harness, &mut uncontested] {
        harness.send(A, close("done"));
        harness.send(B, close("done"));
    }
    assert_eq!(obligation_outcomes(&harness), [ObligationOutcome::Contested, ObligationOutcome::Fulfilled]);
    assert_eq!(harness.outcome().broken_by, [], "a dispute decides who is right");
    assert_eq!(status(&harness), CommitmentStatus::Contested);
    assert_eq!(harness.outcome().escrow_payee, Some(Payee::Depositor));
    assert_eq!(
        status(&uncontested),
        CommitmentStatus::Fulfilled,
        "an error that names no result contests nothing"
    );
    assert_eq!(uncontested.outcome().escrow_payee, Some(Payee::Beneficiary));

    // The seller tries again, and the second result counts from its own time.
    repaired.wait(1001);
    repaired.send(B, inform("result"));
    repaired.send(A, close("done"));
    repaired.send(B, close("done"));
    assert_eq!(obligation_outcomes(&repaired), [ObligationOutcome::Late, ObligationOutcome::Fulfilled]);
    assert_eq!(repaired.outcome().escrow_payee, Some(Payee::Beneficiary));
}

#[test]
fn an_accepted_result_cannot_be_contested() {
    let mut harness = SessionHarness::executing();
    assert_eq!(
        harness.expect_refusal(A, inform_about_result_of(B, "answer")),
        asp::RejectCode::InvalidStateTransition,
        "there is no result yet"
    );
    harness.send(B, inform("result"));
    assert_eq!(
        harness.expect_refusal(B, inform_about_result_of(B, "answer")),
        asp::RejectCode::InvalidStateTransition,
        "a side cannot accept its own result"
    );
    harness.send(B, inform_about_result_of(B, "error"));
    assert_eq!(harness.send(A, inform_about_result_of(B, "answer")).to, State::Executing);
    harness.send(A, inform_about_result_of(B, "error"));
    harness.send(B, close("unilateral"));
    assert_eq!(obligation_outcomes(&harness)[0], ObligationOutcome::Fulfilled);
    assert_eq!(harness.outcome().escrow_payee, Some(Payee::Beneficiary));
}

/// The other side must have had the chance to contest a result.
#[test]
fn a_result_that_could_not_be_contested_does_not_count() {
    type EndSession = fn(&mut SessionHarness);
    let endings: [(&str, EndSession); 4] = [
        ("closes", |harness| drop(harness.send(B, close("unilateral")))),
        ("withdraws", |harness| drop(harness.send(B, withdraw()))),
        ("fails", |harness| drop(harness.send(B, fatal()))),
        ("breaks the chain", |harness| drop(harness.session.handle_broken_chain(START))),
    ];
    for (case, end) in endings {
        let mut harness = SessionHarness::executing();
        harness.send(B, inform("result"));
        end(&mut harness);
        assert_eq!(obligation_outcomes(&harness)[0], ObligationOutcome::Open, "{case}");
        assert_eq!(harness.outcome().escrow_payee, Some(Payee::Depositor), "{case}");
    }
    // An unrecoverable error that names the result contests it.
    let mut harness = SessionHarness::executing();
    harness.send(B, inform("result"));
    let mut fatal_contest = inform_about_result_of(B, "error");
    if let asp::message::Body::Inform(body) = &mut fatal_contest {
        body.recoverable = Some(false);
    }
    harness.send(A, fatal_contest);
    assert_eq!(obligation_outcomes(&harness)[0], ObligationOutcome::Contested);
}

#[test]
fn an_obligation_fulfilled_after_its_deadline_is_late() {
    let mut harness = SessionHarness::executing();
    harness.wait(1000);
    harness.send(B, inform("progress"));
    harness.now += 1;
    harness.send(B, inform("result"));
    harness.send(A, inform("result"));
    harness.send(A, close("done"));
    harness.send(B, close("done"));
    assert_eq!(obligation_outcomes(&harness), [ObligationOutcome::Late, ObligationOutcome::Fulfilled]);
    assert_eq!(status(&harness), CommitmentStatus::Late);
    assert_eq!(harness.outcome().broken_by, []);
    assert_eq!(harness.outcome().escrow_payee, Some(Payee::Beneficiary));

    let mut harness = SessionHarness::executing();
    harness.wait(1000);
    harness.send(B, inform("result"));
    harness.send(B, inform("result"));
    harness.send(A, close("unilateral"));
    assert_eq!(
        obligation_outcomes(&harness)[0],
        ObligationOutcome::Fulfilled,
        "exactly at the deadline is in time"
    );
}

#[test]
fn a_side_that_leaves_with_an_open_obligation_breaks_the_agreement() {
    for (leaver, expected, payee) in [
        (B, [ObligationOutcome::Broken, ObligationOutcome::Open], Payee::Depositor),
        (A, [ObligationOutcome::Open, ObligationOutcome::Broken], Payee::Beneficiary),
    ] {
        let mut harness = SessionHarness::executing();
        let transition = harness.send(leaver, close("unilateral"));
        assert_eq!((transition.row_number, transition.to), (17, State::Closed));
        assert_eq!(harness.outcome().ending, SessionEnding::Unilateral(leaver));
        assert_eq!(obligation_outcomes(&harness), expected);
        assert_eq!(harness.outcome().broken_by, [leaver]);
        assert_eq!(status(&harness), CommitmentStatus::Broken);
        assert_eq!(harness.outcome().escrow_payee, Some(payee));
    }
}

#[test]
fn a_side_that_leaves_after_everything_is_fulfilled_breaks_nothing() {
    let mut harness = SessionHarness::executing();
    harness.send(B, inform("result"));
    harness.send(A, inform("result"));
    harness.send(A, inform_about_result_of(B, "answer"));
    harness.send(B, close("unilateral"));
    assert_eq!(harness.outcome().ending, SessionEnding::Unilateral(B));
    assert_eq!(harness.outcome().broken_by, []);
    assert_eq!(status(&harness), CommitmentStatus::Fulfilled);
    assert_eq!(harness.escrow_effects().last().unwrap(), "cmt_1 to the Beneficiary");
}

#[test]
fn a_side_that_is_overdue_when_the_other_leaves_breaks_the_agreement() {
    let mut harness = SessionHarness::executing();
    harness.send(A, inform("result"));
    harness.wait(1001);
    harness.send(A, close("unilateral"));
    assert_eq!(obligation_outcomes(&harness), [ObligationOutcome::Broken, ObligationOutcome::Open]);
    assert_eq!(harness.outcome().broken_by, [B]);
    assert_eq!(harness.outcome().escrow_payee, Some(Payee::Depositor));

    let mut harness = SessionHarness::executing();
    harness.send(A, inform("result"));
    harness.wait(1000);
    harness.send(A, close("unilateral"));
    assert_eq!(
        obligation_outcomes(&harness),
        [ObligationOutcome::Open, ObligationOutcome::Open],
        "exactly at the deadline is not overdue"
    );
    assert_eq!(harness.outcome().broken_by, [A]);
}

#[test]
fn a_side_without_obligations_that_leaves_while_others_are_open_breaks_the_agreement() {
    let mut harness = SessionHarness::conversing()
        .after(&[(A, commit("cmt_1", &[(SELLER, 1000)], None)), (B, accept("cmt_1"))]);
    harness.send(A, close("unilateral"));
    assert_eq!(obligation_outcomes(&harness), [ObligationOutcome::Open]);
    assert_eq!(harness.outcome().broken_by, [A]);
}

#[test]
fn withdrawing_from_a_pending_commitment_breaks_nothing() {
    for leaver in Role::ALL {
        let mut harness = SessionHarness::agreeing();
        let transition = harness.send(leaver, withdraw());
        assert_eq!((transition.row_number, transition.to), (16, State::Closed));
        assert_eq!(harness.outcome().ending, SessionEnding::Withdrawn(leaver));
        assert_eq!(status(&harness), CommitmentStatus::Withdrawn);
        assert_eq!(harness.outcome().obligations, []);
        assert_eq!(harness.outcome().broken_by, []);
        assert!(transition.effects.iter().any(|effect| matches!(effect, Effect::DropPendingCommitment(_))));
        assert_eq!(harness.escrow_effects(), [""; 0], "no money was held");
    }
}

#[test]
fn withdrawing_from_an_agreement_breaks_it() {
    for (leaver, payee) in [(A, Payee::Beneficiary), (B, Payee::Depositor)] {
        let mut harness = SessionHarness::executing();
        harness.send(leaver, inform("result"));
        harness.send(leaver, withdraw());
        assert_eq!(harness.state(), State::Closed);
        assert_eq!(harness.outcome().ending, SessionEnding::Withdrawn(leaver));
        assert_eq!(harness.outcome().broken_by, [leaver], "even with its own obligation fulfilled");
        assert_eq!(status(&harness), CommitmentStatus::Broken);
        assert_eq!(harness.outcome().escrow_payee, Some(payee));
    }
}

#[test]
fn escrow_is_held_once_and_released_once() {
    type EndSession = fn(&mut SessionHarness);
    let endings: [(&str, EndSession); 6] = [
        ("both close", |harness| {
            harness.send(A, close("done"));
            harness.send(B, close("done"));
        }),
        ("one closes", |harness| drop(harness.send(A, close("unilateral")))),
        ("one withdraws", |harness| drop(harness.send(B, withdraw()))),
        ("an error", |harness| drop(harness.send(B, fatal()))),
        ("the session times out", |harness| drop(harness.wait(4000))),
        ("the chain breaks", |harness| {
            let transition = harness.session.handle_broken_chain(START).unwrap();
            harness.effects.extend(transition.effects);
        }),
    ];
    for (case, end) in endings {
        let mut harness = SessionHarness::executing();
        harness.send(B, escalate(None));
        harness.send(B, inform("resolution"));
        end(&mut harness);
        assert!(harness.state().is_terminal(), "{case}");
        let escrow_effects = harness.escrow_effects();
        assert_eq!(escrow_effects.len(), 2, "{case}: {escrow_effects:?}");
        assert_eq!(escrow_effects[0], "inviter pays in 10.50 USD for cmt_1", "{case}");
        assert_eq!(
            escrow_effects[1],
            format!("cmt_1 to the {:?}", harness.outcome().escrow_payee.unwrap()),
            "{case}"
        );
        harness.wait(1_000_000);
        assert_eq!(harness.escrow_effects().len(), 2, "{case}: nothing more after the end");
    }
}

#[test]
fn a_commitment_without_escrow_moves_no_money() {
    let mut harness = SessionHarness::conversing();
    harness.send(B, commit("cmt_1", &[(SELLER, 1000)], None));
    let (mut unfunded, accept_body) = (harness.clone(), accept("cmt_1"));
    let incoming = unfunded.incoming(
        A,
        &accept_body,
        None,
        ReceiverChecks { is_funded: false, ..ReceiverChecks::PASSED },
    );
    assert!(unfunded.session.handle_message(&incoming).is_ok(), "there is nothing to cover");
    harness.send(A, accept("cmt_1"));
    harness.send(B, withdraw());
    assert_eq!(harness.escrow_effects(), [""; 0]);
    assert_eq!(harness.outcome().escrow_payee, None);
}

#[test]
fn a_dropped_commitment_cannot_be_reused() {
    for answer in [reject("cmt_1"), counter("prop_2", "cmt_1")] {
        let mut harness = SessionHarness::agreeing();
        let transition = harness.send(B, answer);
        assert_eq!((transition.row_number, transition.to), (10, State::Conversing));
        assert!(
            transition.effects.iter().any(|effect| matches!(effect, Effect::DropPendingCommitment(_))),
            "{transition:?}"
        );
        assert!(harness.session.commitment().is_none());
    }
    let mut harness = SessionHarness::agreeing().after(&[(B, counter("prop_2", "cmt_1"))]);
    harness.send(A, accept("prop_2"));
    assert_eq!(
        harness.expect_refusal(A, commit("cmt_1", &[(SELLER, 1000)], None)),
        asp::RejectCode::Duplicate
    );
    harness.send(B, commit("cmt_2", &[(SELLER, 1000)], Some("7")));
    harness.send(A, accept("cmt_2"));
    harness.send(B, inform("result"));
    harness.send(B, close("done"));
    harness.send(A, close("done"));
    assert_eq!(
        harness.escrow_effects(),
        ["invited pays in 7 USD for cmt_2", "cmt_2 to the Depositor"],
        "the bond is returned"
    );
}

#[test]
fn one_close_ends_every_other_live_state() {
    for harness in [
        SessionHarness::invited(),
        SessionHarness::identifying(),
        SessionHarness::introduced(),
        SessionHarness::conversing(),
        SessionHarness::agreeing(),
        SessionHarness::escalated(),
    ] {
        for (sender, reason) in [(A, "done"), (B, "done"), (A, "unilateral")] {
            let mut harness = harness.clone();
            let transition = harness.send(sender, close(reason));
            assert_eq!(harness.state(), State::Closed);
            assert_eq!(harness.outcome().ending, SessionEnding::Closed(sender));
            assert_eq!(harness.outcome().reason, reason);
            assert!(transition.effects.contains(&Effect::Learn));
            assert_eq!(
                harness.expect_refusal(sender.other(), close(reason)),
                asp::RejectCode::InvalidStateTransition
            );
        }
    }
}

#[test]
fn one_withdraw_ends_every_live_state() {
    for harness in [
        SessionHarness::invited(),
        SessionHarness::identifying(),
        SessionHarness::introduced(),
        SessionHarness::conversing(),
        SessionHarness::agreeing(),
        SessionHarness::executing(),
        SessionHarness::escalated(),
    ] {
        for sender in Role::ALL {
            let mut harness = harness.clone();
            let transition = harness.send(sender, withdraw());
            assert_eq!((transition.row_number, transition.to), (16, State::Closed));
            assert_eq!(harness.outcome().ending, SessionEnding::Withdrawn(sender));
            assert_eq!(harness.outcome().reason, "changed my mind");
        }
    }
}

#[test]
fn a_rejected_invitation_fails_the_session() {
    for mut harness in [SessionHarness::invited(), SessionHarness::identifying()] {
        let transition = harness.send(B, reject("prop_inv"));
        assert_eq!((transition.row_number, transition.to), (3, State::Failed));
        assert_eq!(harness.outcome().ending, SessionEnding::Rejected(B));
        assert_eq!(harness.outcome().reason, "no");
    }
}

#[test]
fn an_unrecoverable_error_fails_the_session() {
    for (mut harness, row) in [
        (SessionHarness::introduced(), 18),
        (SessionHarness::conversing(), 18),
        (SessionHarness::executing(), 13),
    ] {
        assert!(!harness.clone().send(B, inform("error")).to.is_terminal());
        let transition = harness.send(B, fatal());
        assert_eq!((transition.row_number, transition.to), (row, State::Failed));
        assert_eq!(harness.outcome().ending, SessionEnding::Fatal(B));
    }
}

#[test]
fn a_broken_chain_fails_every_live_session_and_no_other() {
    for mut harness in [
        SessionHarness::invited(),
        SessionHarness::introduced(),
        SessionHarness::conversing(),
        SessionHarness::agreeing(),
        SessionHarness::executing(),
        SessionHarness::escalated(),
    ] {
        let transition = harness.session.handle_broken_chain(START).unwrap();
        assert_eq!((transition.row_number, transition.to), (18, State::Failed));
        assert_eq!(harness.outcome().ending, SessionEnding::BrokenChain);
        assert!(harness.outcome().reason.starts_with("hash_chain_integrity"));
        assert_eq!(harness.session.handle_broken_chain(START), None);
    }
    let mut closed = SessionHarness::conversing().after(&[(A, close("done"))]);
    for harness in [&mut SessionHarness::new(), &mut closed] {
        let before = harness.session.clone();
        assert_eq!(harness.session.handle_broken_chain(START), None);
        assert_eq!(harness.session, before);
    }
}

#[test]
fn an_obligation_that_nobody_broke_stays_open_and_the_escrow_is_returned() {
    let mut harness = SessionHarness::conversing();
    harness.send(A, commit("cmt_1", &[(SELLER, 100_000)], Some("1")));
    harness.send(B, accept("cmt_1"));
    harness.wait(3600);
    assert_eq!(harness.outcome().ending, SessionEnding::TimedOut(Timer::Session));
    assert_eq!(obligation_outcomes(&harness), [ObligationOutcome::Open]);
    assert_eq!(harness.outcome().broken_by, []);
    assert_eq!(harness.outcome().escrow_payee, Some(Payee::Depositor));
}

fn obligation_outcomes(harness: &SessionHarness) -> Vec<ObligationOutcome> {
    harness.outcome().obligations.iter().map(|(_, outcome)| *outcome).collect()
}

fn status(harness: &SessionHarness) -> CommitmentStatus {
    harness.outcome().commitment.as_ref().unwrap().status()
}

#[test]
fn a_side_that_leaves_open_work_breaks_the_agreement_unless_its_own_is_done_and_it_has_no_deposit() {
    // Only the seller has an obligation. The buyer, which paid the escrow in, leaves.
    let mut harness = SessionHarness::conversing();
    harness.send(A, commit("cmt_1", &[(SELLER, 1000)], Some("10.50")));
    harness.send(B, accept("cmt_1"));
    for message in [close("unilateral"), fatal()] {
        let mut harness = harness.clone();
        harness.send(A, message);
        assert_eq!(obligation_outcomes(&harness), [ObligationOutcome::Open]);
        assert_eq!(harness.outcome().broken_by, [A]);
        assert_eq!(harness.outcome().escrow_payee, Some(Payee::Beneficiary));
    }
    // The seller escalates, and the buyer closes in the meantime.
    let mut escalated = harness.clone();
    escalated.send(B, escalate(None));
    escalated.send(A, close("enough"));
    assert_eq!(escalated.outcome().broken_by, [A]);
    // Both sides have obligations. The seller fulfils its own and leaves before the buyer has fulfilled its own.
    let mut harness = SessionHarness::executing();
    harness.send(B, inform("result"));
    harness.send(A, inform_about_result_of(B, "answer"));
    harness.send(B, close("unilateral"));
    assert_eq!(obligation_outcomes(&harness), [ObligationOutcome::Fulfilled, ObligationOutcome::Open]);
    assert_eq!(harness.outcome().broken_by, []);
    assert_eq!(
        harness.outcome().escrow_payee,
        Some(Payee::Beneficiary),
        "the seller has fulfilled its obligation"
    );
    // The buyer has fulfilled its own obligation, but the seller's is open and the buyer's deposit is held.
    let mut harness = SessionHarness::executing();
    harness.send(A, inform("result"));
    harness.send(A, close("unilateral"));
    assert_eq!(harness.outcome().broken_by, [A]);
    assert_eq!(harness.outcome().escrow_payee, Some(Payee::Beneficiary));
}

#[test]
fn fulfilled_work_is_paid_when_the_session_times_out() {
    let mut harness = SessionHarness::executing();
    harness.send(B, inform("result"));
    harness.wait(4000);
    assert_eq!(harness.state(), State::Failed);
    assert_eq!(harness.outcome().escrow_payee, Some(Payee::Beneficiary));
}
