//! Contract tests for events and their order.

use journal::{ConflictReason, JournalEntry, Position};
use seal::UnixMillis;

use crate::Behaviour;
use crate::fixture::*;

pub(crate) const BEHAVIOURS: &[Behaviour] = &[
    ("a new journal is empty", new_journal_is_empty),
    ("an empty batch does nothing", empty_batch_does_nothing),
    ("events are read back complete and in order, after any position", events_are_read_back),
    ("the events of one session are read separately", session_events_are_read_separately),
    ("an event is found by its id", events_are_found_by_id),
    ("committed data survives reopening and a crash", commits_are_durable),
    ("a position other than the next one is refused", position_gaps_are_refused),
    ("an event id is used once", event_ids_are_used_once),
    ("an event needs an open session", event_needs_session),
    ("a conflict undoes the entire batch", batches_are_atomic),
    ("ten thousand entries fit in one batch", large_batch_is_written),
    ("unusual texts are read back unchanged", unusual_texts_are_read_back),
    ("event ids need not be in ascending order", event_ids_may_descend),
];

fn new_journal_is_empty(fixture: &dyn JournalFixture) {
    let mut journal = fixture.create_empty();
    assert_eq!(journal.restore().unwrap(), journal::stored::LiveState::default());
    assert!(positions(&mut *journal).is_empty());
    assert_eq!(journal.event_position("").unwrap(), None);
    assert_eq!(journal.decision("").unwrap(), None);
    assert_eq!(journal.stored_response("", "").unwrap(), None);
    assert_eq!(journal.session_events("", Position::START, 9).unwrap(), []);
}

fn empty_batch_does_nothing(fixture: &dyn JournalFixture) {
    let mut journal = fixture.create_empty();
    journal.commit(&[]).unwrap();
    assert_eq!(journal.restore().unwrap(), journal::stored::LiveState::default());
}

fn events_are_read_back(fixture: &dyn JournalFixture) {
    let mut journal = fixture.create_empty();
    let body = b"\x00\xffbody";
    let second = JournalEntry::Event {
        position: position(2),
        session: "s",
        event_id: "b",
        at: UnixMillis::new(-7),
        is_critical: true,
        body,
    };
    journal.commit(&[session_opened("s"), event(1, "s", "a"), second, event(3, "s", "c")]).unwrap();
    assert_eq!(positions(&mut *journal), [1, 2, 3]);
    let events = journal.events(position(1), 1).unwrap();
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].position, position(2));
    assert_eq!((&*events[0].session, &*events[0].event_id), ("s", "b"));
    assert_eq!(
        (events[0].at, events[0].is_critical, &*events[0].body),
        (UnixMillis::new(-7), true, &body[..])
    );
    assert_eq!(journal.events(position(3), 9).unwrap(), []);
    assert_eq!(journal.events(position(u64::MAX), 9).unwrap(), []);
    assert_eq!(journal.events(Position::START, 0).unwrap(), []);
}

fn session_events_are_read_separately(fixture: &dyn JournalFixture) {
    let mut journal = fixture.create_empty();
    journal.commit(&[session_opened("s"), session_opened("t")]).unwrap();
    let ids: Vec<String> = (0..3000).map(|number| format!("e{number:05}")).collect();
    for (chunk, chunk_index) in ids.chunks(100).zip(0..) {
        let number = |index: usize| chunk_index * 100 + index as u64 + 1;
        let batch: Vec<_> = chunk
            .iter()
            .enumerate()
            .map(|(index, id)| {
                event(number(index), if number(index).is_multiple_of(3) { "t" } else { "s" }, id)
            })
            .collect();
        journal.commit(&batch).unwrap();
    }
    let mut positions_of = |session: &str, after, limit| -> Vec<u64> {
        let events = journal.session_events(session, position(after), limit).unwrap();
        assert!(events.iter().all(|event| event.session == session));
        events.iter().map(|event| event.position.get()).collect()
    };
    assert_eq!(positions_of("t", 0, usize::MAX), (1..=1000).map(|third| third * 3).collect::<Vec<_>>());
    assert_eq!(positions_of("s", 0, usize::MAX).len(), 2000);
    assert_eq!(positions_of("t", 2990, 2), [2991, 2994]);
    assert_eq!(positions_of("t", 1020, 4), [1023, 1026, 1029, 1032]);
    assert!(positions_of("nobody", 0, 9).is_empty());
}

fn events_are_found_by_id(fixture: &dyn JournalFixture) {
    let mut journal = fixture.create_empty();
    journal.commit(&[session_opened("s"), event(1, "s", "b"), event(2, "s", "a")]).unwrap();
    assert_eq!(journal.event_position("a").unwrap(), Some(position(2)));
    assert_eq!(journal.event_position("b").unwrap(), Some(position(1)));
    assert_eq!(journal.event_position("A").unwrap(), None);
    assert_eq!(journal.event_position("").unwrap(), None);
}

fn commits_are_durable(fixture: &dyn JournalFixture) {
    let mut journal = fixture.create_empty();
    journal.commit(&[session_opened("s"), event(1, "s", "a")]).unwrap();
    journal = fixture.reopen(journal);
    journal.commit(&[event(2, "s", "b")]).unwrap();
    journal = fixture.crash_and_reopen(journal);
    assert_eq!(positions(&mut *journal), [1, 2]);
    assert_eq!(journal.event_position("b").unwrap(), Some(position(2)));
    assert_conflict(&mut *journal, &[event(3, "s", "a")], 0, ConflictReason::DuplicateEventId);
    journal.commit(&[event(3, "s", "c")]).unwrap();
    assert_eq!(fixture.reopen(journal).restore().unwrap().last_position, position(3));
}

fn position_gaps_are_refused(fixture: &dyn JournalFixture) {
    let mut journal = fixture.create_empty();
    journal.commit(&[session_opened("s"), event(1, "s", "a")]).unwrap();
    let expected = position(2);
    for wrong in [0, 1, 3, u64::MAX] {
        assert_conflict(
            &mut *journal,
            &[event(wrong, "s", "b")],
            0,
            ConflictReason::PositionGap { expected },
        );
    }
    assert_conflict(
        &mut *journal,
        &[event(2, "s", "b"), event(2, "s", "c")],
        1,
        ConflictReason::PositionGap { expected: position(3) },
    );
    journal.commit(&[event(2, "s", "b")]).unwrap();
}

fn event_ids_are_used_once(fixture: &dyn JournalFixture) {
    let mut journal = fixture.create_empty();
    journal.commit(&[session_opened("s"), event(1, "s", "a")]).unwrap();
    assert_conflict(&mut *journal, &[event(2, "s", "a")], 0, ConflictReason::DuplicateEventId);
    assert_conflict(
        &mut *journal,
        &[event(2, "s", "b"), event(3, "s", "b")],
        1,
        ConflictReason::DuplicateEventId,
    );
    journal.commit(&[event(2, "s", "b")]).unwrap();
    let ids: Vec<String> = (3..3000).map(|number| format!("c{number:05}")).collect();
    for (number, id) in (3..).zip(&ids) {
        journal.commit(&[event(number, "s", id)]).unwrap();
    }
    for used in ["a", "b", "c00003", "c01500", "c02999"] {
        assert_conflict(&mut *journal, &[event(3000, "s", used)], 0, ConflictReason::DuplicateEventId);
    }
}

fn event_needs_session(fixture: &dyn JournalFixture) {
    let mut journal = fixture.create_empty();
    assert_conflict(&mut *journal, &[event(1, "s", "a")], 0, ConflictReason::SessionNotOpen);
    journal.commit(&[session_opened("s"), event(1, "s", "a"), session_ended("s")]).unwrap();
    assert_conflict(&mut *journal, &[event(2, "s", "b")], 0, ConflictReason::SessionNotOpen);
    let event_after_end = [session_opened("t"), session_ended("t"), event(2, "t", "b")];
    assert_conflict(&mut *journal, &event_after_end, 2, ConflictReason::SessionNotOpen);
    assert_conflict(&mut *journal, &[event(2, "t", "b")], 0, ConflictReason::SessionNotOpen);
}

fn batches_are_atomic(fixture: &dyn JournalFixture) {
    let mut journal = fixture.create_empty();
    let start = [
        session_opened("s"),
        question_opened("q", "s"),
        subscription_opened("sub"),
        event(1, "s", "a"),
        question_opened("r", "s"),
    ];
    journal.commit(&start).unwrap();
    journal.commit(&[question_decided("r", "accept")]).unwrap();
    let before = journal.restore().unwrap();
    let batch = [
        event(2, "s", "b"),
        session_opened("t"),
        event(3, "t", "c"),
        question_opened("new", "t"),
        JournalEntry::DeadlineMoved { token: "q", deadline: UnixMillis::new(99) },
        question_decided("q", "accept"),
        decision_spent("r"),
        JournalEntry::SessionTouched {
            id: "s",
            lease_expires_at: UnixMillis::new(99),
            record: Some(b"other"),
        },
        subscription_opened("other"),
        JournalEntry::SubscriptionChanged { id: "sub", record: b"other" },
        cursor_moved("sub", 2),
        response_stored("p", "k"),
        JournalEntry::ReplyAttempted { at: UnixMillis::new(1), principal: "anna", details: b"late" },
        question_decided("new", "reject"),
        session_ended("t"),
        JournalEntry::SubscriptionClosed { id: "sub" },
        event(4, "s", "a"),
    ];
    let last = batch.len() - 1;
    assert_conflict(&mut *journal, &batch, last, ConflictReason::DuplicateEventId);
    for _ in 0..2 {
        assert_eq!(journal.restore().unwrap(), before);
        assert_eq!(positions(&mut *journal), [1]);
        assert_eq!(journal.event_position("b").unwrap(), None);
        assert_eq!(journal.decision("q").unwrap(), None);
        assert_eq!(journal.decision("r").unwrap().unwrap().spent_on, None);
        assert_eq!(journal.decision("new").unwrap(), None);
        assert_eq!(journal.stored_response("p", "k").unwrap(), None);
        assert_eq!(journal.session_events("t", position(0), 9).unwrap(), []);
        journal = fixture.crash_and_reopen(journal);
    }
    journal.commit(&batch[..last]).unwrap();
    assert_eq!(positions(&mut *journal), [1, 2, 3]);
}

fn large_batch_is_written(fixture: &dyn JournalFixture) {
    let mut journal = fixture.create_empty();
    let ids: Vec<String> = (0..10_000).map(|number| format!("e{number}")).collect();
    let mut batch = vec![session_opened("s")];
    batch.extend((1..).zip(&ids).map(|(number, id)| event(number, "s", id)));
    assert_conflict(
        &mut *journal,
        &[&*batch, &[session_opened("s")]].concat(),
        10_001,
        ConflictReason::DuplicateSessionId,
    );
    assert!(positions(&mut *journal).is_empty());
    journal.commit(&batch).unwrap();
    journal = fixture.crash_and_reopen(journal);
    assert_eq!(positions(&mut *journal).len(), 10_000);
    assert_eq!(journal.event_position("e9999").unwrap(), Some(position(10_000)));
}

fn unusual_texts_are_read_back(fixture: &dyn JournalFixture) {
    let mut journal = fixture.create_empty();
    let long = "ü\"'".repeat(1 << 18);
    let texts = [
        "",
        "\0",
        "a\0b",
        "a\0c",
        "'; DROP TABLE events; --",
        "\"",
        "%_?1:a@b$c",
        "\u{202e}\u{feff}",
        " ",
        &long,
    ];
    let mut number = 0;
    for text in texts {
        number += 1;
        let body = text.as_bytes();
        journal
            .commit(&[
                JournalEntry::SessionOpened {
                    id: text,
                    agent: text,
                    principal: text,
                    lease_expires_at: UnixMillis::MAX,
                    record: body,
                },
                JournalEntry::Event {
                    position: position(number),
                    session: text,
                    event_id: text,
                    at: UnixMillis::MIN,
                    is_critical: false,
                    body,
                },
                JournalEntry::QuestionOpened {
                    token: text,
                    session: text,
                    deadline: UnixMillis::MIN,
                    record: body,
                },
                JournalEntry::QuestionDecided {
                    token: text,
                    decision: text,
                    decided_by: text,
                    receipt: body,
                    at: UnixMillis::new(0),
                },
                JournalEntry::SubscriptionOpened { id: text, principal: text, record: body },
                cursor_moved(text, number),
                JournalEntry::ResponseStored {
                    principal: text,
                    key: text,
                    request: body,
                    response: body,
                    at: UnixMillis::new(0),
                },
                JournalEntry::ReplyAttempted { at: UnixMillis::new(0), principal: text, details: body },
            ])
            .unwrap();
    }
    journal = fixture.crash_and_reopen(journal);
    for (number, text) in (1..).zip(texts) {
        assert_eq!(journal.event_position(text).unwrap(), Some(position(number)));
        let event = journal.session_events(text, position(0), 9).unwrap().remove(0);
        assert_eq!((&*event.event_id, &*event.body, event.at), (text, text.as_bytes(), UnixMillis::MIN));
        let decision = journal.decision(text).unwrap().unwrap();
        assert_eq!((&*decision.decision, &*decision.session, &*decision.decided_by), (text, text, text));
        assert_eq!(journal.stored_response(text, text).unwrap().unwrap().response, text.as_bytes());
    }
    let live_state = journal.restore().unwrap();
    assert_eq!(live_state.sessions.iter().map(|session| &*session.agent).collect::<Vec<_>>(), texts);
    assert_eq!(
        (live_state.unspent_decisions.len(), live_state.subscriptions.len()),
        (texts.len(), texts.len())
    );
}

fn event_ids_may_descend(fixture: &dyn JournalFixture) {
    let mut journal = fixture.create_empty();
    journal.commit(&[session_opened("s")]).unwrap();
    let ids: Vec<String> = (0..2500).map(|number| format!("e{:05}", 9000 - number)).collect();
    for (number, id) in (1..).zip(&ids) {
        journal.commit(&[event(number, "s", id)]).unwrap();
    }
    journal = fixture.crash_and_reopen(journal);
    for (number, id) in (1..).zip(&ids) {
        assert_eq!(journal.event_position(id).unwrap(), Some(position(number)));
        assert_conflict(&mut *journal, &[event(2501, "s", id)], 0, ConflictReason::DuplicateEventId);
    }
}
