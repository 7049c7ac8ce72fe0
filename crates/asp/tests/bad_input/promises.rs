//! Who may answer what, names that are used twice, and money that cannot be.

use asp::escrow::{Deposit, EscrowAgent, EscrowError, Ledger};
use asp::machine::State;
use asp::session::Judgement;
use asp::{Amount, Code, CommitmentId, Currency};

use crate::support::bodies::{COMMIT, accept, commit, counter, invitation, propose, reject};
use crate::support::cast::{BUYER, SELLER};
use crate::support::scene::{A, B, Scene, time};

#[test]
fn nobody_accepts_himself() {
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
        let mut scene = Scene::at(state);
        let envelope = scene.next(sender, &body);
        scene.refuses(sender, &envelope, Code::Unauthorized);
        // The other side may.
        let envelope = scene.next(sender.other(), &body);
        scene.takes(sender.other(), &envelope);
    }
}

#[test]
fn what_was_never_offered_cannot_be_answered() {
    for (state, name) in [
        (State::Invited, "prop_a"),
        (State::Conversing, "prop_inv"),
        (State::Conversing, "prop_zz"),
        (State::Conversing, "cmt_1"),
        (State::Agreeing, "cmt_2"),
        (State::Agreeing, "prop_a"),
    ] {
        let mut scene = Scene::at(state);
        for body in [accept(name), reject(name)] {
            let envelope = scene.next(B, &body);
            scene.refuses(B, &envelope, Code::InvalidStateTransition);
        }
    }
}

#[test]
fn an_answered_proposal_is_shut() {
    for answer in [accept("prop_a"), reject("prop_a"), counter("prop_c", "prop_a")] {
        let mut scene = Scene::at(State::Conversing);
        scene.say(B, &answer);
        for again in [accept("prop_a"), reject("prop_a"), counter("prop_d", "prop_a")] {
            let envelope = scene.next(B, &again);
            scene.refuses(B, &envelope, Code::InvalidStateTransition);
        }
    }
}

#[test]
fn an_expired_proposal_cannot_be_answered() {
    let mut scene = Scene::at(State::Conversing);
    let until = scene.now + 10_000;
    let body = format!(
        r#"{{"proposalId":"prop_t","type":"work","subject":"x","terms":{{}},"validUntil":"{}"}}"#,
        time(until)
    );
    let envelope = scene.envelope(A, "PROPOSE", &body);
    scene.takes(A, &envelope);
    scene.now = until;
    for body in [accept("prop_t"), reject("prop_t"), counter("prop_u", "prop_t")] {
        let envelope = scene.next(B, &body);
        scene.refuses(B, &envelope, Code::Timeout);
    }
    scene.now = until - 1;
    let envelope = scene.next(B, &accept("prop_t"));
    scene.takes(B, &envelope);
}

#[test]
fn a_second_commit_is_refused_while_one_waits() {
    let mut scene = Scene::at(State::Agreeing);
    for sender in [A, B] {
        for name in ["cmt_1", "cmt_2"] {
            let envelope = scene.next(sender, &commit(name));
            scene.refuses(sender, &envelope, Code::InvalidStateTransition);
        }
    }
    let mut scene = Scene::at(State::Executing);
    let envelope = scene.next(B, &commit("cmt_2"));
    scene.refuses(B, &envelope, Code::InvalidStateTransition);
}

#[test]
fn names_are_not_used_twice() {
    let mut scene = Scene::at(State::Conversing);
    for used in ["prop_inv", "prop_a", "prop_b"] {
        for sender in [A, B] {
            let envelope = scene.next(sender, &propose(used));
            scene.refuses(sender, &envelope, Code::Duplicate);
        }
        let envelope = scene.next(B, &counter(used, "prop_a"));
        scene.refuses(B, &envelope, Code::Duplicate);
    }
    // Also when it is shut, and when a commitment was rejected.
    scene.say(B, &reject("prop_a"));
    let envelope = scene.next(A, &propose("prop_a"));
    scene.refuses(A, &envelope, Code::Duplicate);
    scene.say(A, &commit("cmt_1"));
    scene.say(B, &reject("cmt_1"));
    for sender in [A, B] {
        let envelope = scene.next(sender, &commit("cmt_1"));
        scene.refuses(sender, &envelope, Code::Duplicate);
    }
    scene.say(A, &commit("cmt_2"));
    let envelope = scene.next(B, &counter("prop_b", "cmt_2"));
    scene.refuses(B, &envelope, Code::Duplicate);
}

#[test]
fn a_second_invitation_is_refused() {
    for state in State::LIVE {
        let mut scene = Scene::at(state);
        for sender in [A, B] {
            let envelope = scene.next(sender, &invitation());
            scene.refuses(sender, &envelope, Code::InvalidStateTransition);
        }
    }
    let mut scene = Scene::new();
    let envelope = scene.next(B, &invitation());
    scene.refuses(B, &envelope, Code::Unauthorized);
}

#[test]
fn nobody_outside_is_bound() {
    let mut scene = Scene::at(State::Conversing);
    for party in ["agent://c.example/third", "agent://b.example/seller2", "agent://B.example/seller"] {
        let body = COMMIT.replace("agent://b.example/seller", party);
        let envelope = scene.envelope(A, "COMMIT", &body);
        scene.refuses(A, &envelope, Code::Unauthorized);
    }
}

#[test]
fn escrow_that_is_not_covered_is_refused() {
    let mut scene = Scene::at(State::Agreeing);
    scene.judgement = Judgement { funded: false, ..Judgement::default() };
    let envelope = scene.next(B, &accept("cmt_1"));
    scene.refuses(B, &envelope, Code::BudgetExceeded);
    scene.judgement.funded = true;
    let envelope = scene.next(B, &accept("cmt_1"));
    scene.takes(B, &envelope);
}

fn amount(text: &str) -> Amount {
    Amount::parse(text).unwrap()
}

fn currency(text: &str) -> Currency {
    Currency::parse(text).unwrap()
}

/// Money in one currency covers nothing in another.
#[test]
fn currencies_are_not_mixed() {
    let mut ledger = Ledger::default();
    ledger.credit(BUYER.agent(), &amount("1000"), &currency("EUR")).unwrap();
    assert!(!ledger.covers(BUYER.agent(), &amount("10.50"), &currency("USD")));
    assert!(ledger.covers(BUYER.agent(), &amount("10.50"), &currency("EUR")));
    let id = CommitmentId::parse("cmt_1").unwrap();
    let deposit = Deposit {
        depositor: BUYER.agent().clone(),
        beneficiary: SELLER.agent().clone(),
        amount: amount("10.50"),
        currency: currency("USD"),
    };
    assert_eq!(ledger.hold(&id, deposit), Err(EscrowError::NotCovered));
    assert_eq!(ledger.held(&id), None);
    assert_eq!(ledger.balance(BUYER.agent(), &currency("EUR")), 1_000_000_000_000);
    assert_eq!(ledger.balance(BUYER.agent(), &currency("USD")), 0);
}

#[test]
fn the_largest_amount_is_taken_and_the_next_is_not() {
    let mut scene = Scene::at(State::Conversing);
    let with = |text: &str| COMMIT.replace("10.50", text);
    let envelope = scene.envelope(A, "COMMIT", &with("1000000000000000"));
    scene.refuses(A, &envelope, Code::SchemaUnsupported);
    let envelope = scene.envelope(A, "COMMIT", &with("999999999999999.999999999"));
    scene.takes(A, &envelope);
    let mut scene = Scene::at(State::Conversing);
    let envelope = scene.envelope(A, "COMMIT", &with("0.000000000"));
    scene.refuses(A, &envelope, Code::SchemaUnsupported);
    let envelope = scene.envelope(A, "COMMIT", &with("0.000000001"));
    scene.takes(A, &envelope);
}
