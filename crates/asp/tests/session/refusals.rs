//! A message that is not taken changes nothing (D6).

use asp::machine::{Reading, Role, State};
use asp::message::Body;
use asp::session::Judgement;
use asp::{Code, Level, Limits};

use crate::session::life::*;

/// One of everything, and several of some.
fn everything() -> Vec<Body> {
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
fn whatever_is_refused_leaves_the_session_as_it_was() {
    let lives = [
        Life::new(),
        Life::invited(),
        Life::identifying(),
        Life::introduced(),
        Life::conversing().after(&[(A, offer("prop_1"))]),
        Life::agreeing(),
        Life::executing(),
        Life::escalated(),
        Life::conversing().after(&[(A, close("done"))]),
        Life::invited().after(&[(B, reject("prop_inv"))]),
    ];
    let fine = Judgement::default();
    let judgements = [
        fine,
        Judgement { trusted: false, ..fine },
        Judgement { funded: false, ..fine },
        Judgement { card_pinned: false, ..fine },
    ];
    let (mut taken, mut refused) = (0, 0);
    for life in lives {
        for sender in Role::ALL {
            for body in everything() {
                for judgement in judgements {
                    let mut session = life.session.clone();
                    match session.feed(&life.incoming(sender, &body, Some(1000), judgement)) {
                        Ok(step) => {
                            taken += 1;
                            assert!(!step.from.is_terminal(), "{step:?}");
                        }
                        Err(refusal) => {
                            refused += 1;
                            assert_eq!(session, life.session, "{sender} {body:?}: {refusal}");
                            assert!(!refusal.reason.is_empty());
                        }
                    }
                }
            }
        }
    }
    println!("{taken} taken, {refused} refused");
    assert!(taken > 400 && refused > 1000, "{taken} taken, {refused} refused");
}

#[test]
fn the_receiver_s_judgement_is_heard() {
    let fine = Judgement::default();
    let distrusted = Judgement { trusted: false, ..fine };
    let foreign = Judgement { card_pinned: false, ..fine };
    let unfunded = Judgement { funded: false, ..fine };
    for (mut life, sender, body, judgement, code) in [
        (Life::new(), A, invitation("{}", None), distrusted, Code::InsufficientTrustScore),
        (Life::invited(), B, accept("prop_inv"), distrusted, Code::InsufficientTrustScore),
        (Life::identifying(), A, inform("identity"), distrusted, Code::InsufficientTrustScore),
        (Life::identifying(), B, inform("identity"), foreign, Code::Unauthorized),
        (Life::conversing(), B, inform("identity"), foreign, Code::Unauthorized),
        (Life::agreeing(), B, accept("cmt_1"), unfunded, Code::BudgetExceeded),
    ] {
        assert_eq!(life.refused_by(sender, body, judgement), code);
    }
}

#[test]
fn a_proposal_is_answered_by_the_other_side_by_name_and_in_time() {
    let mut life = Life::conversing();
    life.say(A, propose("prop_1", "data-exchange", "{}", Some(START + 5000)));
    for answer in [accept("prop_1"), reject("prop_1"), counter("prop_2", "prop_1")] {
        assert_eq!(life.refused(A, answer.clone()), Code::Unauthorized);
        let mut last = life.clone();
        last.now += 4999;
        assert_eq!(last.say(B, answer.clone()).to, State::Conversing);
        assert_eq!(last.refused(B, answer.clone()), Code::InvalidStateTransition, "shut");
        last = life.clone();
        last.now += 5000;
        assert_eq!(last.refused(B, answer), Code::Timeout);
    }
    assert_eq!(life.refused(B, accept("prop_7")), Code::InvalidStateTransition);
    assert_eq!(life.refused(B, accept("prop_inv")), Code::InvalidStateTransition, "no longer open");
    assert_eq!(life.refused(B, offer("prop_1")), Code::Duplicate);
    assert_eq!(life.refused(B, offer("prop_inv")), Code::Duplicate);
    assert_eq!(life.refused(B, counter("prop_1", "prop_1")), Code::Duplicate);

    life.say(B, counter("prop_2", "prop_1"));
    assert_eq!(life.refused(B, accept("prop_2")), Code::Unauthorized, "the counter is the other's to answer");
    life.say(A, accept("prop_2"));
}

#[test]
fn there_is_room_for_so_many_proposals() {
    let limits = Limits { open_proposals: 2, ..Limits::default() };
    let mut life = Life::with([Level::Full; 2], Reading::Open, &limits).after(&[
        (A, invitation("{}", None)),
        (B, accept("prop_inv")),
        (B, inform("identity")),
        (A, inform("identity")),
        (A, offer("prop_1")),
        (B, offer("prop_2")),
    ]);
    assert_eq!(life.refused(A, offer("prop_3")), Code::CapacityUnavailable);
    life.say(B, counter("prop_3", "prop_1"));
    assert_eq!(life.refused(A, offer("prop_4")), Code::CapacityUnavailable);
    life.say(A, commit("cmt_1", &[(SELLER, 1000)], None));
    assert_eq!(life.refused(B, counter("prop_4", "cmt_1")), Code::CapacityUnavailable);
    life.say(B, reject("cmt_1"));
    life.say(A, reject("prop_2"));
    life.say(A, offer("prop_4"));
}

#[test]
fn a_second_commitment_waits_for_the_first_and_names_only_who_is_here() {
    let mut life = Life::conversing();
    assert_eq!(
        life.refused(B, commit("cmt_1", &[(SELLER, 1), ("agent://c.example", 1)], None)),
        Code::Unauthorized
    );
    life.say(B, commit("cmt_1", &[(SELLER, 1)], None));
    for sender in Role::ALL {
        assert_eq!(life.refused(sender, commit("cmt_2", &[(SELLER, 1)], None)), Code::InvalidStateTransition);
    }
    assert_eq!(life.refused(A, accept("cmt_2")), Code::InvalidStateTransition);
    for answer in [accept("cmt_1"), reject("cmt_1"), counter("prop_1", "cmt_1")] {
        assert_eq!(life.refused(B, answer), Code::Unauthorized);
    }
}

#[test]
fn the_minimal_level_opens_a_session_tells_asks_and_closes() {
    let mut life = Life::with([Level::Minimal; 2], Reading::Open, &Limits::default());
    life.say(A, invitation("{}", None));
    assert_eq!(life.clone().say(B, reject("prop_inv")).to, State::Failed);
    life.say(B, accept("prop_inv"));
    life.say(B, inform("identity"));
    life.say(A, inform("identity"));
    life.say(B, query());
    life.say(A, inform("answer"));
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
        assert_eq!(life.refused(A, body), Code::Unauthorized);
    }
    assert_eq!(life.say(B, close("done")).to, State::Closed);
}

#[test]
fn each_side_is_held_to_its_own_level() {
    let mut life = Life::with([Level::Standard, Level::Minimal], Reading::Open, &Limits::default());
    life = life.after(&[
        (A, invitation("{}", None)),
        (B, accept("prop_inv")),
        (B, inform("identity")),
        (A, inform("identity")),
        (A, offer("prop_1")),
    ]);
    assert_eq!(life.refused(B, accept("prop_1")), Code::Unauthorized);
    life.say(A, escalate(None));
    assert_eq!(life.refused(B, withdraw()), Code::Unauthorized);
}

#[test]
fn the_table_reading_closes_only_where_the_page_lists_it() {
    let mut life = Life::with([Level::Standard; 2], Reading::Table, &Limits::default());
    life.say(A, invitation("{}", None));
    let everywhere = [withdraw(), escalate(None), close("done")];
    for body in everywhere.clone() {
        assert_eq!(life.refused(A, body), Code::InvalidStateTransition);
    }
    life = life.after(&[(B, accept("prop_inv")), (B, inform("identity")), (A, inform("identity"))]);
    for body in everywhere {
        assert_eq!(life.refused(A, body), Code::InvalidStateTransition);
    }
    life.say(A, query());
    assert_eq!(life.clone().say(A, withdraw()).to, State::Closed);
    life.say(B, commit("cmt_1", &[(SELLER, 1)], None));
    assert_eq!(life.refused(B, withdraw()), Code::InvalidStateTransition);
    life.say(A, accept("cmt_1"));
    assert_eq!(life.refused(B, withdraw()), Code::InvalidStateTransition);
    life.say(B, escalate(None));
    assert_eq!(life.refused(B, withdraw()), Code::InvalidStateTransition);
    assert_eq!(life.say(A, close("done")).to, State::Closed);
}
