//! A refused message changes nothing (D6).

use asp::message::Body;
use asp::session::{ReceiverChecks, SessionRules};
use asp::state_machine::{AnyStateInterpretation, PROTOCOL_TABLE, Role, State, TransitionTable};
use asp::{AspLimits, ConformanceLevel, RejectCode};

use crate::session::session_harness::*;

/// Returns a body of every performative, some in several variants.
fn all_bodies() -> Vec<Body> {
    vec![
        invitation("{}", None),
        offer("prop_1"),
        offer("prop_9"),
        accept("prop_inv"),
        accept("prop_1"),
        accept("cmt_1"),
        accept("nothing"),
        reject("prop_inv"),
        reject("prop_1"),
        reject("cmt_1"),
        counter("prop_8", "prop_1"),
        counter("prop_8", "cmt_1"),
        counter("prop_1", "prop_1"),
        inform("identity"),
        inform("progress"),
        inform("result"),
        inform("error"),
        inform("resolution"),
        inform("answer"),
        fatal(),
        query(),
        clarify(),
        commit("cmt_1", &[(SELLER, 1000)], None),
        commit("cmt_9", &[(SELLER, 1000), (BUYER, 1)], Some("1")),
        commit("cmt_9", &[("agent://c.example", 1000)], None),
        delegate(),
        observe(),
        withdraw(),
        escalate(None),
        close("done"),
        close("unilateral"),
    ]
}

#[test]
fn a_refused_message_leaves_the_session_unchanged() {
    let harnesses = [
        SessionHarness::new(),
        SessionHarness::invited(),
        SessionHarness::identifying(),
        SessionHarness::introduced(),
        SessionHarness::conversing().after(&[(A, offer("prop_1"))]),
        SessionHarness::agreeing(),
        SessionHarness::executing(),
        SessionHarness::escalated(),
        SessionHarness::conversing().after(&[(A, close("done"))]),
        SessionHarness::invited().after(&[(B, reject("prop_inv"))]),
    ];
    let passed = ReceiverChecks::PASSED;
    let all_checks = [
        passed,
        ReceiverChecks { is_trusted: false, ..passed },
        ReceiverChecks { is_funded: false, ..passed },
        ReceiverChecks { is_card_pinned: false, ..passed },
        ReceiverChecks { has_required_consent: false, ..passed },
    ];
    let (mut accepted, mut refused) = (0, 0);
    for harness in harnesses {
        for sender in Role::ALL {
            for body in all_bodies() {
                for checks in all_checks {
                    let mut session = harness.session.clone();
                    match session.handle_message(&harness.incoming(sender, &body, Some(1000), checks)) {
                        Ok(transition) => {
                            accepted += 1;
                            assert!(!transition.from.is_terminal(), "{transition:?}");
                        }
                        Err(refusal) => {
                            refused += 1;
                            assert_eq!(session, harness.session, "{sender} {body:?}: {refusal}");
                            assert!(!refusal.reason.is_empty());
                        }
                    }
                }
            }
        }
    }
    println!("{accepted} accepted, {refused} refused");
    assert!(accepted > 400 && refused > 1000, "{accepted} accepted, {refused} refused");
}

#[test]
fn a_required_consent_that_is_missing_refuses_the_message() {
    let checks = ReceiverChecks { has_required_consent: false, ..ReceiverChecks::PASSED };
    for (mut harness, sender, body, code) in [
        (
            SessionHarness::conversing(),
            A,
            commit("cmt_1", &[(SELLER, 1000)], None),
            RejectCode::EscalationRequired,
        ),
        (SessionHarness::agreeing(), B, accept("cmt_1"), RejectCode::EscalationRequired),
        // A message that is not allowed at all is refused for that reason.
        (SessionHarness::agreeing(), A, accept("cmt_1"), RejectCode::Unauthorized),
        (SessionHarness::conversing(), B, accept("cmt_1"), RejectCode::InvalidStateTransition),
    ] {
        assert_eq!(harness.expect_refusal_with(sender, body, checks), code);
    }
}

#[test]
fn the_checks_of_the_receiver_are_respected() {
    let passed = ReceiverChecks::PASSED;
    let untrusted = ReceiverChecks { is_trusted: false, ..passed };
    let unpinned = ReceiverChecks { is_card_pinned: false, ..passed };
    let unfunded = ReceiverChecks { is_funded: false, ..passed };
    for (mut harness, sender, body, checks, code) in [
        (SessionHarness::new(), A, invitation("{}", None), untrusted, RejectCode::InsufficientTrustScore),
        (SessionHarness::invited(), B, accept("prop_inv"), untrusted, RejectCode::InsufficientTrustScore),
        (SessionHarness::identifying(), A, inform("identity"), untrusted, RejectCode::InsufficientTrustScore),
        (SessionHarness::identifying(), B, inform("identity"), unpinned, RejectCode::Unauthorized),
        (SessionHarness::conversing(), B, inform("identity"), unpinned, RejectCode::Unauthorized),
        (SessionHarness::agreeing(), B, accept("cmt_1"), unfunded, RejectCode::BudgetExceeded),
    ] {
        assert_eq!(harness.expect_refusal_with(sender, body, checks), code);
    }
}

#[test]
fn a_proposal_is_answered_by_the_other_side_by_id_and_in_time() {
    let mut harness = SessionHarness::conversing();
    harness.send(A, propose("prop_1", "data-exchange", "{}", Some(START + 5000)));
    for answer in [accept("prop_1"), reject("prop_1"), counter("prop_2", "prop_1")] {
        assert_eq!(harness.expect_refusal(A, answer.clone()), RejectCode::Unauthorized);
        let mut answered = harness.clone();
        answered.now += 4999;
        assert_eq!(answered.send(B, answer.clone()).to, State::Conversing);
        assert_eq!(answered.expect_refusal(B, answer.clone()), RejectCode::InvalidStateTransition, "closed");
        answered = harness.clone();
        answered.now += 5000;
        assert_eq!(answered.expect_refusal(B, answer), RejectCode::Timeout);
    }
    assert_eq!(harness.expect_refusal(B, accept("prop_7")), RejectCode::InvalidStateTransition);
    assert_eq!(
        harness.expect_refusal(B, accept("prop_inv")),
        RejectCode::InvalidStateTransition,
        "no longer open"
    );
    assert_eq!(harness.expect_refusal(B, offer("prop_1")), RejectCode::Duplicate);
    assert_eq!(harness.expect_refusal(B, offer("prop_inv")), RejectCode::Duplicate);
    assert_eq!(harness.expect_refusal(B, counter("prop_1", "prop_1")), RejectCode::Duplicate);

    harness.send(B, counter("prop_2", "prop_1"));
    assert_eq!(
        harness.expect_refusal(B, accept("prop_2")),
        RejectCode::Unauthorized,
        "only the other side can answer the counter"
    );
    harness.send(A, accept("prop_2"));
}

#[test]
fn the_number_of_open_proposals_is_limited() {
    let limits = AspLimits { max_open_proposals: 2, ..AspLimits::default() };
    let mut harness =
        SessionHarness::with([ConformanceLevel::Full; 2], AnyStateInterpretation::EveryLiveState, &limits)
            .after(&[
                (A, invitation("{}", None)),
                (B, accept("prop_inv")),
                (B, inform("identity")),
                (A, inform("identity")),
                (A, offer("prop_1")),
                (B, offer("prop_2")),
            ]);
    assert_eq!(harness.expect_refusal(A, offer("prop_3")), RejectCode::CapacityUnavailable);
    harness.send(B, counter("prop_3", "prop_1"));
    assert_eq!(harness.expect_refusal(A, offer("prop_4")), RejectCode::CapacityUnavailable);
    harness.send(A, commit("cmt_1", &[(SELLER, 1000)], None));
    assert_eq!(harness.expect_refusal(B, counter("prop_4", "cmt_1")), RejectCode::CapacityUnavailable);
    harness.send(B, reject("cmt_1"));
    harness.send(A, reject("prop_2"));
    harness.send(A, offer("prop_4"));
}

#[test]
fn a_commit_is_refused_while_one_is_pending_or_if_it_names_outsiders() {
    let mut harness = SessionHarness::conversing();
    assert_eq!(
        harness.expect_refusal(B, commit("cmt_1", &[(SELLER, 1), ("agent://c.example", 1)], None)),
        RejectCode::Unauthorized
    );
    harness.send(B, commit("cmt_1", &[(SELLER, 1)], None));
    for sender in Role::ALL {
        assert_eq!(
            harness.expect_refusal(sender, commit("cmt_2", &[(SELLER, 1)], None)),
            RejectCode::InvalidStateTransition
        );
    }
    assert_eq!(harness.expect_refusal(A, accept("cmt_2")), RejectCode::InvalidStateTransition);
    for answer in [accept("cmt_1"), reject("cmt_1"), counter("prop_1", "cmt_1")] {
        assert_eq!(harness.expect_refusal(B, answer), RejectCode::Unauthorized);
    }
}

#[test]
fn the_minimal_level_can_open_inform_query_and_close() {
    let mut harness = SessionHarness::with(
        [ConformanceLevel::Minimal; 2],
        AnyStateInterpretation::EveryLiveState,
        &AspLimits::default(),
    );
    harness.send(A, invitation("{}", None));
    assert_eq!(harness.clone().send(B, reject("prop_inv")).to, State::Failed);
    harness.send(B, accept("prop_inv"));
    harness.send(B, inform("identity"));
    harness.send(A, inform("identity"));
    harness.send(B, query());
    harness.send(A, inform("answer"));
    for body in [
        offer("prop_1"),
        accept("prop_1"),
        reject("prop_1"),
        counter("prop_2", "prop_1"),
        clarify(),
        commit("cmt_1", &[(SELLER, 1)], None),
        delegate(),
        observe(),
        withdraw(),
        escalate(None),
    ] {
        assert_eq!(harness.expect_refusal(A, body), RejectCode::Unauthorized);
    }
    assert_eq!(harness.send(B, close("done")).to, State::Closed);
}

#[test]
fn each_side_is_limited_to_its_own_level() {
    let mut harness = SessionHarness::with(
        [ConformanceLevel::Standard, ConformanceLevel::Minimal],
        AnyStateInterpretation::EveryLiveState,
        &AspLimits::default(),
    );
    harness = harness.after(&[
        (A, invitation("{}", None)),
        (B, accept("prop_inv")),
        (B, inform("identity")),
        (A, inform("identity")),
        (A, offer("prop_1")),
    ]);
    assert_eq!(harness.expect_refusal(B, accept("prop_1")), RejectCode::Unauthorized);
    harness.send(A, escalate(None));
    assert_eq!(harness.expect_refusal(B, withdraw()), RejectCode::Unauthorized);
}

#[test]
fn with_listed_only_close_is_allowed_only_where_the_page_lists_it() {
    let mut harness = SessionHarness::with(
        [ConformanceLevel::Standard; 2],
        AnyStateInterpretation::ListedOnly,
        &AspLimits::default(),
    );
    harness.send(A, invitation("{}", None));
    let any_state_messages = [withdraw(), escalate(None), close("done")];
    for body in any_state_messages.clone() {
        assert_eq!(harness.expect_refusal(A, body), RejectCode::InvalidStateTransition);
    }
    harness = harness.after(&[(B, accept("prop_inv")), (B, inform("identity")), (A, inform("identity"))]);
    for body in any_state_messages {
        assert_eq!(harness.expect_refusal(A, body), RejectCode::InvalidStateTransition);
    }
    harness.send(A, query());
    assert_eq!(harness.clone().send(A, withdraw()).to, State::Closed);
    harness.send(B, commit("cmt_1", &[(SELLER, 1)], None));
    assert_eq!(harness.expect_refusal(B, withdraw()), RejectCode::InvalidStateTransition);
    harness.send(A, accept("cmt_1"));
    assert_eq!(harness.expect_refusal(B, withdraw()), RejectCode::InvalidStateTransition);
    harness.send(B, escalate(None));
    assert_eq!(harness.expect_refusal(B, withdraw()), RejectCode::InvalidStateTransition);
    assert_eq!(harness.send(A, close("done")).to, State::Closed);
}

#[test]
fn an_expired_proposal_counts_as_expired_after_another_was_opened() {
    let mut harness = SessionHarness::conversing();
    harness.send(A, propose("prop_1", "data-exchange", "{}", Some(START + 5000)));
    harness.now += 5000;
    harness.send(A, offer("prop_2"));
    assert_eq!(harness.expect_refusal(B, accept("prop_1")), RejectCode::Timeout);
}

#[test]
fn a_refusal_says_why() {
    let passed = ReceiverChecks::PASSED;
    let untrusted = ReceiverChecks { is_trusted: false, ..passed };
    let unpinned = ReceiverChecks { is_card_pinned: false, ..passed };
    let unfunded = ReceiverChecks { is_funded: false, ..passed };
    let offered = || SessionHarness::conversing().after(&[(A, offer("prop_1"))]);
    let rejected = SessionHarness::invited().after(&[(B, reject("prop_inv"))]);
    for (harness, sender, body, checks, reason) in vec![
        (
            SessionHarness::new(),
            B,
            invitation("{}", None),
            passed,
            "the invited side cannot send the invitation",
        ),
        (SessionHarness::new(), A, invitation("{}", None), untrusted, "the sender's trust is below"),
        (SessionHarness::identifying(), B, inform("identity"), unpinned, "the card is not the pinned card"),
        (SessionHarness::new(), A, query(), passed, "QUERY is not allowed in IDLE; allowed: PROPOSE"),
        (rejected, A, query(), passed, "the session has ended"),
        (offered(), A, accept("prop_1"), passed, "only the other side can send ACCEPT here"),
        (offered(), B, accept("prop_7"), passed, "no item with that id awaits an answer"),
        (offered(), B, offer("prop_1"), passed, "the id of the proposal or commitment was used before"),
        (
            SessionHarness::conversing(),
            A,
            commit("cmt_9", &[("agent://c.example", 1000)], None),
            passed,
            "an obligation names a party that is not in this session",
        ),
        (SessionHarness::agreeing(), B, accept("cmt_1"), unfunded, "the escrow is not covered"),
        (SessionHarness::escalated(), B, inform("resolution"), passed, "only the side that escalated"),
    ] {
        let mut session = harness.session.clone();
        let refusal =
            session.handle_message(&harness.incoming(sender, &body, Some(1000), checks)).unwrap_err();
        assert!(refusal.reason.contains(reason), "{refusal} instead of {reason}");
    }
}

#[test]
fn two_sets_of_rules_are_equal_only_if_the_table_and_the_interpretation_are() {
    let rules = SessionRules::default();
    let other_table: &'static TransitionTable = Box::leak(Box::new(PROTOCOL_TABLE.clone()));
    assert_eq!(rules, SessionRules { table: &PROTOCOL_TABLE, ..rules });
    assert_ne!(rules, SessionRules { table: other_table, ..rules });
    assert_ne!(rules, SessionRules { any_state: AnyStateInterpretation::ListedOnly, ..rules });
}
