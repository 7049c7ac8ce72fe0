//! Sessions, questions, subscriptions, keys.

use journal::{Entry, Reason};
use seal::UnixMillis;

use crate::Behaviour;
use crate::ground::*;

pub(crate) const BEHAVIOURS: &[Behaviour] = &[
    ("a session is opened once, touched while open, and ends once", sessions),
    ("a session with an undecided question does not end", sessions_that_ask),
    ("a question is decided once, and only if it was asked", decide_once),
    ("a decision comes back with its receipt", decisions_come_back),
    ("a decision is spent once, and only in its session's time", spend_once),
    ("a deadline moves while the question is open", deadlines),
    ("consume, decide and record is one batch", one_batch),
    ("a subscription is opened, changed, closed, and may be opened again", subscriptions),
    ("a cursor goes forward to what there is", cursors),
    ("an idempotency key is used once by each principal", keys),
    ("what is alive comes back after a crash, and nothing else", alive),
];

fn sessions(ground: &dyn Ground) {
    let mut journal = ground.fresh();
    refused(&mut *journal, &[ended("s")], 0, Reason::SessionNotOpen);
    let touched = Entry::SessionTouched { id: "s", lease: UnixMillis::new(70), record: None };
    refused(&mut *journal, &[touched], 0, Reason::SessionNotOpen);
    journal.commit(&[opened("s"), touched, touched]).unwrap();
    refused(&mut *journal, &[opened("s")], 0, Reason::SessionKnown);
    let session = journal.restore().unwrap().sessions.remove(0);
    assert_eq!((session.lease, &*session.record), (UnixMillis::new(70), &b"{}"[..]));
    journal
        .commit(&[Entry::SessionTouched { id: "s", lease: UnixMillis::new(80), record: Some(b"new") }])
        .unwrap();
    let session = ground.again(journal).restore().unwrap().sessions.remove(0);
    assert_eq!(
        (session.lease, &*session.record, &*session.agent),
        (UnixMillis::new(80), &b"new"[..], "agent")
    );

    let mut journal = ground.fresh();
    journal.commit(&[opened("s"), ended("s")]).unwrap();
    assert_eq!(journal.restore().unwrap().sessions, []);
    let known = journal.session("s").unwrap().unwrap();
    assert_eq!((&*known.opened.principal, known.ended), ("owner", true), "whose it was is still known");
    assert_eq!(journal.session("t").unwrap(), None);
    for entry in [ended("s"), touched, asked("q", "s")] {
        refused(&mut *journal, &[entry], 0, Reason::SessionNotOpen);
    }
    refused(&mut *journal, &[opened("s")], 0, Reason::SessionKnown);
}

fn sessions_that_ask(ground: &dyn Ground) {
    let mut journal = ground.fresh();
    journal.commit(&[opened("s"), asked("q", "s"), asked("r", "s"), decided("q", "accept")]).unwrap();
    refused(&mut *journal, &[ended("s")], 0, Reason::SessionStillAsks);
    refused(&mut *journal, &[ended("s"), decided("r", "reject")], 0, Reason::SessionStillAsks);
    journal.commit(&[decided("r", "reject"), ended("s")]).unwrap();
}

fn decide_once(ground: &dyn Ground) {
    let mut journal = ground.fresh();
    refused(&mut *journal, &[decided("q", "accept")], 0, Reason::QuestionUnknown);
    journal.commit(&[opened("s")]).unwrap();
    refused(&mut *journal, &[decided("q", "accept"), asked("q", "s")], 0, Reason::QuestionUnknown);
    refused(&mut *journal, &[asked("q", "nobody")], 0, Reason::SessionNotOpen);
    journal.commit(&[asked("q", "s")]).unwrap();
    refused(&mut *journal, &[asked("q", "s")], 0, Reason::QuestionKnown);
    assert_eq!(journal.decision("q").unwrap(), None);
    let twice = [decided("q", "reject"), decided("q", "accept")];
    refused(&mut *journal, &twice, 1, Reason::AlreadyDecided);
    assert_eq!(journal.decision("q").unwrap(), None);
    journal.commit(&[decided("q", "reject")]).unwrap();
    refused(&mut *journal, &[decided("q", "accept")], 0, Reason::AlreadyDecided);
    journal = ground.after_crash(journal);
    refused(&mut *journal, &[decided("q", "accept")], 0, Reason::AlreadyDecided);
    refused(&mut *journal, &[asked("q", "s")], 0, Reason::QuestionKnown);
    assert_eq!(journal.decision("q").unwrap().unwrap().decision, "reject");
}

fn decisions_come_back(ground: &dyn Ground) {
    let mut journal = ground.fresh();
    journal.commit(&[opened("s"), asked("q", "s"), decided("q", "accept"), ended("s")]).unwrap();
    let decision = ground.again(journal).decision("q").unwrap().unwrap();
    assert_eq!((&*decision.token, &*decision.session, decision.deadline), ("q", "s", UnixMillis::new(30)));
    assert_eq!((&*decision.decision, &*decision.by, decision.at), ("accept", "reply", UnixMillis::new(5)));
    assert_eq!((&*decision.record, &*decision.receipt), (&b"pay?"[..], &b"signed"[..]));
    assert_eq!(decision.spent, None);
}

fn spend_once(ground: &dyn Ground) {
    let mut journal = ground.fresh();
    refused(&mut *journal, &[spent("q")], 0, Reason::QuestionUnknown);
    journal.commit(&[opened("s"), asked("q", "s"), asked("r", "s")]).unwrap();
    refused(&mut *journal, &[spent("q")], 0, Reason::NotDecided);
    journal.commit(&[decided("q", "accept"), decided("r", "accept")]).unwrap();
    refused(&mut *journal, &[spent("q"), spent("q")], 1, Reason::AlreadySpent);
    journal.commit(&[spent("q")]).unwrap();
    journal = ground.after_crash(journal);
    refused(&mut *journal, &[spent("q")], 0, Reason::AlreadySpent);
    let spending = journal.decision("q").unwrap().unwrap().spent.unwrap();
    assert_eq!((&*spending.call, spending.at), (&b"pay(7)"[..], UnixMillis::new(6)));
    journal.commit(&[ended("s")]).unwrap();
    refused(&mut *journal, &[spent("r")], 0, Reason::SessionNotOpen);
    assert_eq!(journal.restore().unwrap().unspent, []);
}

fn deadlines(ground: &dyn Ground) {
    let mut journal = ground.fresh();
    let moved = Entry::DeadlineMoved { token: "q", deadline: UnixMillis::new(300) };
    refused(&mut *journal, &[moved], 0, Reason::QuestionUnknown);
    journal.commit(&[opened("s"), asked("q", "s"), moved, moved]).unwrap();
    assert_eq!(journal.restore().unwrap().questions[0].deadline, UnixMillis::new(300));
    journal.commit(&[decided("q", "reject")]).unwrap();
    refused(&mut *journal, &[moved], 0, Reason::AlreadyDecided);
    assert_eq!(journal.decision("q").unwrap().unwrap().deadline, UnixMillis::new(300));
}

fn one_batch(ground: &dyn Ground) {
    let mut journal = ground.fresh();
    journal.commit(&[opened("s"), asked("q", "s")]).unwrap();
    refused(
        &mut *journal,
        &[decided("q", "accept"), event(7, "s", "told")],
        1,
        Reason::Gap { expected: at(1) },
    );
    journal = ground.after_crash(journal);
    assert_eq!(journal.decision("q").unwrap(), None);
    assert_eq!(journal.restore().unwrap().questions.len(), 1);
    journal.commit(&[decided("q", "accept"), event(1, "s", "told")]).unwrap();
    journal = ground.after_crash(journal);
    assert!(journal.decision("q").unwrap().is_some());
    assert_eq!(journal.position_of("told").unwrap(), Some(at(1)));
}

fn subscriptions(ground: &dyn Ground) {
    let mut journal = ground.fresh();
    let (changed, closed) =
        (Entry::SubscriptionChanged { id: "sub", record: b"new" }, Entry::SubscriptionClosed { id: "sub" });
    for entry in [changed, closed, cursor("sub", 0)] {
        refused(&mut *journal, &[entry], 0, Reason::SubscriptionNotOpen);
    }
    journal.commit(&[subscribed("sub"), changed]).unwrap();
    refused(&mut *journal, &[subscribed("sub")], 0, Reason::SubscriptionKnown);
    journal = ground.again(journal);
    let open = journal.restore().unwrap().subscriptions.remove(0);
    assert_eq!((&*open.principal, &*open.record, open.cursor), ("anna", &b"new"[..], at(0)));
    journal.commit(&[closed]).unwrap();
    assert_eq!(journal.restore().unwrap().subscriptions, []);
    journal.commit(&[subscribed("sub")]).unwrap();
}

fn cursors(ground: &dyn Ground) {
    let mut journal = ground.fresh();
    journal.commit(&[opened("s"), event(1, "s", "a"), event(2, "s", "b"), subscribed("sub")]).unwrap();
    refused(&mut *journal, &[cursor("sub", 3)], 0, Reason::BeyondLast);
    journal.commit(&[event(3, "s", "c"), cursor("sub", 3)]).unwrap();
    journal.commit(&[cursor("sub", 1), cursor("sub", 3)]).unwrap();
    assert_eq!(ground.after_crash(journal).restore().unwrap().subscriptions[0].cursor, at(3));
}

fn keys(ground: &dyn Ground) {
    let mut journal = ground.fresh();
    journal.commit(&[key("p", "k"), key("q", "k"), key("p", "l")]).unwrap();
    refused(&mut *journal, &[key("p", "k")], 0, Reason::KeyUsed);
    journal = ground.after_crash(journal);
    refused(&mut *journal, &[key("p", "k")], 0, Reason::KeyUsed);
    let kept = journal.idempotent("p", "k").unwrap().unwrap();
    assert_eq!((&*kept.request, &*kept.response, kept.at), (&b"digest"[..], &b"201"[..], UnixMillis::new(5)));
    assert_eq!(journal.idempotent("q", "l").unwrap(), None);
    assert_eq!(journal.idempotent("pk", "").unwrap(), None);
}

fn alive(ground: &dyn Ground) {
    let mut journal = ground.fresh();
    journal
        .commit(&[
            opened("z"),
            opened("gone"),
            opened("a"),
            asked("open", "a"),
            asked("yes", "z"),
            asked("done", "z"),
            asked("past", "gone"),
            decided("yes", "accept"),
            decided("done", "accept"),
            decided("past", "accept"),
            spent("done"),
            event(1, "gone", "e"),
            ended("gone"),
            subscribed("sub"),
            cursor("sub", 1),
        ])
        .unwrap();
    let alive = ground.after_crash(journal).restore().unwrap();
    let sessions: Vec<_> = alive.sessions.iter().map(|session| &*session.id).collect();
    assert_eq!(sessions, ["z", "a"]);
    assert_eq!(alive.questions.iter().map(|question| &*question.token).collect::<Vec<_>>(), ["open"]);
    assert_eq!(alive.questions[0].session, "a");
    assert_eq!(alive.unspent.iter().map(|decision| &*decision.token).collect::<Vec<_>>(), ["yes"]);
    assert_eq!(alive.subscriptions[0].cursor, at(1));
    assert_eq!((alive.last, alive.floor), (at(1), at(0)));
}
