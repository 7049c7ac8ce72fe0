//! Random sessions: anybody tries anything, and what the machine takes is the session.

use asp::machine::{Role, State};
use asp::message::{Body, Sealed};
use asp::session::{Judgement, Rules};
use asp::{Admission, Limits, Record, SessionId};
use proptest::prelude::*;

use crate::support::bodies::{
    accept, body, close, commit, counter, escalate, full, inform, invitation, observe, propose, query,
    reject, withdraw,
};
use crate::support::cast::{BUYER, Dice, SELLER};
use crate::support::scene::{A, B, START, Scene, unsigned};

/// Somebody tries something, so many milliseconds later.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attempt {
    by_inviter: bool,
    pick: u8,
    about: u8,
    later: i64,
}

pub(crate) fn attempts(most: usize) -> impl Strategy<Value = Vec<Attempt>> {
    let later = prop_oneof![20 => 0..2000_i64, 1 => 10_000..40_000_i64, 1 => 1_000_000..2_000_000_i64];
    let attempt = (any::<bool>(), any::<u8>(), any::<u8>(), later)
        .prop_map(|(by_inviter, pick, about, later)| Attempt { by_inviter, pick, about, later });
    proptest::collection::vec(attempt, 1..=most)
}

/// A record of which nothing is known yet.
pub(crate) fn fresh() -> Record {
    let id = SessionId::generate(START, &mut Dice(0));
    Record::new(id, BUYER.card.clone(), SELLER.card.clone(), Rules::default(), &Limits::default())
}

/// Plays the attempts on a record, and shows each: what was before, the message, what came of it, and what is after.
pub(crate) fn play(
    attempts: &[Attempt],
    record: &mut Record,
    mut show: impl FnMut(&Record, &Sealed, &Admission, &Record),
) {
    let mut scene = Scene::new();
    scene.record = record.clone();
    for (number, attempt) in attempts.iter().enumerate() {
        scene.now += attempt.later;
        let sender = if attempt.by_inviter { A } else { B };
        let (sender, body) = choose(&scene.record, sender, *attempt, number);
        let message = unsigned(scene.next(sender, &body));
        let before = scene.record.clone();
        let admission = scene.record.admit(&message, Judgement::default(), None);
        show(&before, &message, &admission, &scene.record);
    }
    *record = scene.record;
}

/// Something that might be lawful. On the way to CONVERSING mostly the way; later anything.
fn choose(record: &Record, sender: Role, attempt: Attempt, number: usize) -> (Role, Body) {
    let session = record.session();
    let wild = attempt.pick.is_multiple_of(8);
    match (session.state(), record.transcript().len()) {
        (State::Idle, _) if !wild => return (A, invitation()),
        (State::Invited, 1) if !wild => return (B, accept("prop_inv")),
        (State::Invited, 2 | 3) if !wild => return (sender, inform("identity")),
        (State::Escalated, _) if !wild => return (sender, inform("resolution")),
        _ => {}
    }
    let named = |kind: &str| format!("{kind}_{}", usize::from(attempt.about) % (number + 1));
    let new = |kind: &str| format!("{kind}_{number}");
    let pending = session.commitment().map(|pending| pending.terms().commitment_id.to_string());
    let target = || pending.clone().unwrap_or_else(|| named("prop"));
    let body = match attempt.pick / 8 {
        0..3 => propose(&new("prop")),
        3 => propose(&named("prop")),
        4..9 => accept(&target()),
        9..11 => reject(&target()),
        11..13 => counter(&new("prop"), &target()),
        13..16 => commit(&new("cmt")),
        16 => commit(&named("cmt")),
        17..19 => query(&new("qry")),
        19 => observe("something"),
        20 => inform("answer"),
        21..23 => inform("result"),
        23 => inform("identity"),
        24 => body(asp::Performative::Clarify, full(asp::Performative::Clarify)),
        25 => body(asp::Performative::Delegate, full(asp::Performative::Delegate)),
        26..28 => escalate(),
        28 if attempt.about < 40 => withdraw(),
        29 if attempt.about < 40 => {
            body(asp::Performative::Inform, r#"{"informType":"error","recoverable":false}"#)
        }
        30 if attempt.about < 80 => close(if attempt.about < 20 { "unilateral" } else { "done" }),
        _ => inform("progress"),
    };
    (sender, body)
}
