//! Contract tests for sessions, questions, subscriptions and idempotency keys.

use journal::{ConflictReason, JournalEntry};
use seal::UnixMillis;

use crate::Behaviour;
use crate::fixture::*;

pub(crate) const BEHAVIOURS: &[Behaviour] = &[
    ("a session opens once, is touched while open, and ends once", sessions_open_and_end_once),
    ("a session with an undecided question cannot end", undecided_questions_keep_sessions_open),
    ("a question is decided once, and only if it exists", questions_are_decided_once),
    ("a decision is read back with its receipt", decisions_are_read_back),
    ("a decision is spent once, and only while its session is open", decisions_are_spent_once),
    ("a deadline moves while the question is undecided", deadlines_move_until_decided),
    ("one batch decides a question and records the event about it", decide_and_record_in_one_batch),
    ("a subscription is opened, changed, closed and reopened", subscriptions_open_change_and_close),
    ("a cursor moves forward, up to the last event", cursors_move_forward),
    ("a principal can use an idempotency key once", idempotency_keys_are_used_once),
    ("a manifest is stored, replaced and deleted", manifests_are_replaced_and_deleted),
    ("exactly the live state is restored after a crash", live_state_is_restored),
];

fn sessions_open_and_end_once(fixture: &dyn JournalFixture) {
    let mut journal = fixture.create_empty();
    assert_conflict(&mut *journal, &[session_ended("s")], 0, ConflictReason::SessionNotOpen);
    let touched =
        JournalEntry::SessionTouched { id: "s", lease_expires_at: UnixMillis::new(70), record: None };
    assert_conflict(&mut *journal, &[touched], 0, ConflictReason::SessionNotOpen);
    journal.commit(&[session_opened("s"), touched, touched]).unwrap();
    assert_conflict(&mut *journal, &[session_opened("s")], 0, ConflictReason::DuplicateSessionId);
    let session = journal.restore().unwrap().sessions.remove(0);
    assert_eq!((session.lease_expires_at, &*session.record), (UnixMillis::new(70), &b"{}"[..]));
    journal
        .commit(&[JournalEntry::SessionTouched {
            id: "s",
            lease_expires_at: UnixMillis::new(80),
            record: Some(b"new"),
        }])
        .unwrap();
    let session = fixture.reopen(journal).restore().unwrap().sessions.remove(0);
    assert_eq!(
        (session.lease_expires_at, &*session.record, &*session.agent),
        (UnixMillis::new(80), &b"new"[..], "agent")
    );

    let mut journal = fixture.create_empty();
    journal.commit(&[session_opened("s"), session_ended("s")]).unwrap();
    assert_eq!(journal.restore().unwrap().sessions, []);
    let stored = journal.session("s").unwrap().unwrap();
    assert_eq!((&*stored.session.principal, stored.is_ended), ("owner", true), "the owner is still known");
    assert_eq!(journal.session("t").unwrap(), None);
    for entry in [session_ended("s"), touched, question_opened("q", "s")] {
        assert_conflict(&mut *journal, &[entry], 0, ConflictReason::SessionNotOpen);
    }
    assert_conflict(&mut *journal, &[session_opened("s")], 0, ConflictReason::DuplicateSessionId);
}

fn undecided_questions_keep_sessions_open(fixture: &dyn JournalFixture) {
    let mut journal = fixture.create_empty();
    journal
        .commit(&[
            session_opened("s"),
            question_opened("q", "s"),
            question_opened("r", "s"),
            question_decided("q", "accept"),
        ])
        .unwrap();
    assert_conflict(&mut *journal, &[session_ended("s")], 0, ConflictReason::SessionHasOpenQuestion);
    assert_conflict(
        &mut *journal,
        &[session_ended("s"), question_decided("r", "reject")],
        0,
        ConflictReason::SessionHasOpenQuestion,
    );
    journal.commit(&[question_decided("r", "reject"), session_ended("s")]).unwrap();
}

fn questions_are_decided_once(fixture: &dyn JournalFixture) {
    let mut journal = fixture.create_empty();
    assert_conflict(&mut *journal, &[question_decided("q", "accept")], 0, ConflictReason::UnknownQuestion);
    journal.commit(&[session_opened("s")]).unwrap();
    assert_conflict(
        &mut *journal,
        &[question_decided("q", "accept"), question_opened("q", "s")],
        0,
        ConflictReason::UnknownQuestion,
    );
    assert_conflict(&mut *journal, &[question_opened("q", "nobody")], 0, ConflictReason::SessionNotOpen);
    journal.commit(&[question_opened("q", "s")]).unwrap();
    assert_conflict(&mut *journal, &[question_opened("q", "s")], 0, ConflictReason::DuplicateQuestionToken);
    assert_eq!(journal.decision("q").unwrap(), None);
    let twice = [question_decided("q", "reject"), question_decided("q", "accept")];
    assert_conflict(&mut *journal, &twice, 1, ConflictReason::AlreadyDecided);
    assert_eq!(journal.decision("q").unwrap(), None);
    journal.commit(&[question_decided("q", "reject")]).unwrap();
    assert_conflict(&mut *journal, &[question_decided("q", "accept")], 0, ConflictReason::AlreadyDecided);
    journal = fixture.crash_and_reopen(journal);
    assert_conflict(&mut *journal, &[question_decided("q", "accept")], 0, ConflictReason::AlreadyDecided);
    assert_conflict(&mut *journal, &[question_opened("q", "s")], 0, ConflictReason::DuplicateQuestionToken);
    assert_eq!(journal.decision("q").unwrap().unwrap().decision, "reject");
}

fn decisions_are_read_back(fixture: &dyn JournalFixture) {
    let mut journal = fixture.create_empty();
    journal
        .commit(&[
            session_opened("s"),
            question_opened("q", "s"),
            question_decided("q", "accept"),
            session_ended("s"),
        ])
        .unwrap();
    let decision = fixture.reopen(journal).decision("q").unwrap().unwrap();
    assert_eq!((&*decision.token, &*decision.session, decision.deadline), ("q", "s", UnixMillis::new(30)));
    assert_eq!(
        (&*decision.decision, &*decision.decided_by, decision.decided_at),
        ("accept", "reply", UnixMillis::new(5))
    );
    assert_eq!((&*decision.record, &*decision.receipt), (&b"pay?"[..], &b"signed"[..]));
    assert_eq!(decision.spent_on, None);
}

fn decisions_are_spent_once(fixture: &dyn JournalFixture) {
    let mut journal = fixture.create_empty();
    assert_conflict(&mut *journal, &[decision_spent("q")], 0, ConflictReason::UnknownQuestion);
    journal.commit(&[session_opened("s"), question_opened("q", "s"), question_opened("r", "s")]).unwrap();
    assert_conflict(&mut *journal, &[decision_spent("q")], 0, ConflictReason::NotDecided);
    journal.commit(&[question_decided("q", "accept"), question_decided("r", "accept")]).unwrap();
    assert_conflict(
        &mut *journal,
        &[decision_spent("q"), decision_spent("q")],
        1,
        ConflictReason::AlreadySpent,
    );
    journal.commit(&[decision_spent("q")]).unwrap();
    journal = fixture.crash_and_reopen(journal);
    assert_conflict(&mut *journal, &[decision_spent("q")], 0, ConflictReason::AlreadySpent);
    let usage = journal.decision("q").unwrap().unwrap().spent_on.unwrap();
    assert_eq!((&*usage.call, usage.at), (&b"pay(7)"[..], UnixMillis::new(6)));
    journal.commit(&[session_ended("s")]).unwrap();
    assert_conflict(&mut *journal, &[decision_spent("r")], 0, ConflictReason::SessionNotOpen);
    assert_eq!(journal.restore().unwrap().unspent_decisions, []);
}

fn deadlines_move_until_decided(fixture: &dyn JournalFixture) {
    let mut journal = fixture.create_empty();
    let moved = JournalEntry::DeadlineMoved { token: "q", deadline: UnixMillis::new(300) };
    assert_conflict(&mut *journal, &[moved], 0, ConflictReason::UnknownQuestion);
    journal.commit(&[session_opened("s"), question_opened("q", "s"), moved, moved]).unwrap();
    assert_eq!(journal.restore().unwrap().questions[0].deadline, UnixMillis::new(300));
    journal.commit(&[question_decided("q", "reject")]).unwrap();
    assert_conflict(&mut *journal, &[moved], 0, ConflictReason::AlreadyDecided);
    assert_eq!(journal.decision("q").unwrap().unwrap().deadline, UnixMillis::new(300));
}

fn decide_and_record_in_one_batch(fixture: &dyn JournalFixture) {
    let mut journal = fixture.create_empty();
    journal.commit(&[session_opened("s"), question_opened("q", "s")]).unwrap();
    assert_conflict(
        &mut *journal,
        &[question_decided("q", "accept"), event(7, "s", "decided")],
        1,
        ConflictReason::PositionGap { expected: position(1) },
    );
    journal = fixture.crash_and_reopen(journal);
    assert_eq!(journal.decision("q").unwrap(), None);
    assert_eq!(journal.restore().unwrap().questions.len(), 1);
    journal.commit(&[question_decided("q", "accept"), event(1, "s", "decided")]).unwrap();
    journal = fixture.crash_and_reopen(journal);
    assert!(journal.decision("q").unwrap().is_some());
    assert_eq!(journal.event_position("decided").unwrap(), Some(position(1)));
}

fn subscriptions_open_change_and_close(fixture: &dyn JournalFixture) {
    let mut journal = fixture.create_empty();
    let (changed, closed) = (
        JournalEntry::SubscriptionChanged { id: "sub", record: b"new" },
        JournalEntry::SubscriptionClosed { id: "sub" },
    );
    for entry in [changed, closed, cursor_moved("sub", 0)] {
        assert_conflict(&mut *journal, &[entry], 0, ConflictReason::SubscriptionNotOpen);
    }
    journal.commit(&[subscription_opened("sub"), changed]).unwrap();
    assert_conflict(&mut *journal, &[subscription_opened("sub")], 0, ConflictReason::DuplicateSubscriptionId);
    journal = fixture.reopen(journal);
    let open = journal.restore().unwrap().subscriptions.remove(0);
    assert_eq!((&*open.principal, &*open.record, open.cursor), ("anna", &b"new"[..], position(0)));
    journal.commit(&[closed]).unwrap();
    assert_eq!(journal.restore().unwrap().subscriptions, []);
    journal.commit(&[subscription_opened("sub")]).unwrap();
}

fn cursors_move_forward(fixture: &dyn JournalFixture) {
    let mut journal = fixture.create_empty();
    journal
        .commit(&[session_opened("s"), event(1, "s", "a"), event(2, "s", "b"), subscription_opened("sub")])
        .unwrap();
    assert_conflict(&mut *journal, &[cursor_moved("sub", 3)], 0, ConflictReason::CursorBeyondLastEvent);
    journal.commit(&[event(3, "s", "c"), cursor_moved("sub", 3)]).unwrap();
    journal.commit(&[cursor_moved("sub", 1), cursor_moved("sub", 3)]).unwrap();
    assert_eq!(fixture.crash_and_reopen(journal).restore().unwrap().subscriptions[0].cursor, position(3));
}

fn idempotency_keys_are_used_once(fixture: &dyn JournalFixture) {
    let mut journal = fixture.create_empty();
    journal
        .commit(&[response_stored("p", "k"), response_stored("q", "k"), response_stored("p", "l")])
        .unwrap();
    assert_conflict(&mut *journal, &[response_stored("p", "k")], 0, ConflictReason::IdempotencyKeyUsed);
    journal = fixture.crash_and_reopen(journal);
    assert_conflict(&mut *journal, &[response_stored("p", "k")], 0, ConflictReason::IdempotencyKeyUsed);
    let stored = journal.stored_response("p", "k").unwrap().unwrap();
    assert_eq!(
        (&*stored.request, &*stored.response, stored.at),
        (&b"digest"[..], &b"201"[..], UnixMillis::new(5))
    );
    assert_eq!(journal.stored_response("q", "l").unwrap(), None);
    assert_eq!(journal.stored_response("pk", "").unwrap(), None);
}

fn manifests_are_replaced_and_deleted(fixture: &dyn JournalFixture) {
    let stored = |agent, record| JournalEntry::ManifestStored { agent, record };
    let mut journal = fixture.create_empty();
    journal.commit(&[stored("b", Some(b"1")), stored("a", Some(b"2")), stored("b", Some(b"3"))]).unwrap();
    assert_conflict(
        &mut *journal,
        &[stored("a", None), stored("c", Some(b"4")), stored("b", Some(b"5")), session_ended("s")],
        3,
        ConflictReason::SessionNotOpen,
    );
    journal = fixture.crash_and_reopen(journal);
    let manifests = journal.restore().unwrap().manifests;
    let found: Vec<_> = manifests.iter().map(|manifest| (&*manifest.agent, &*manifest.record)).collect();
    assert_eq!(found, [("a", &b"2"[..]), ("b", &b"3"[..])]);
    journal.commit(&[stored("a", None), stored("a", None)]).unwrap();
    assert_eq!(fixture.crash_and_reopen(journal).restore().unwrap().manifests.len(), 1);
}

fn live_state_is_restored(fixture: &dyn JournalFixture) {
    let mut journal = fixture.create_empty();
    journal
        .commit(&[
            session_opened("z"),
            session_opened("gone"),
            session_opened("a"),
            question_opened("open", "a"),
            question_opened("yes", "z"),
            question_opened("done", "z"),
            question_opened("past", "gone"),
            question_decided("yes", "accept"),
            question_decided("done", "accept"),
            question_decided("past", "accept"),
            decision_spent("done"),
            event(1, "gone", "e"),
            session_ended("gone"),
            subscription_opened("sub"),
            cursor_moved("sub", 1),
        ])
        .unwrap();
    let live_state = fixture.crash_and_reopen(journal).restore().unwrap();
    let sessions: Vec<_> = live_state.sessions.iter().map(|session| &*session.id).collect();
    assert_eq!(sessions, ["z", "a"]);
    assert_eq!(live_state.questions.iter().map(|question| &*question.token).collect::<Vec<_>>(), ["open"]);
    assert_eq!(live_state.questions[0].session, "a");
    assert_eq!(
        live_state.unspent_decisions.iter().map(|decision| &*decision.token).collect::<Vec<_>>(),
        ["yes"]
    );
    assert_eq!(live_state.subscriptions[0].cursor, position(1));
    assert_eq!((live_state.last_position, live_state.trimmed_up_to), (position(1), position(0)));
}
