//! Events and their order.

use journal::{Entry, Position, Reason};
use seal::UnixMillis;

use crate::Behaviour;
use crate::ground::*;

pub(crate) const BEHAVIOURS: &[Behaviour] = &[
    ("a new journal is empty", new_is_empty),
    ("an empty batch does nothing", empty_batch),
    ("events come back in order, whole, after any position", events_come_back),
    ("events of one session come back by themselves", events_of_one_session),
    ("an event is found by its id", found_by_id),
    ("what is committed is there when opened again, and after a crash", durable),
    ("a position that is not the next is refused", gaps),
    ("an event's id is used once", event_ids),
    ("an event needs an open session", event_needs_session),
    ("a conflict in the middle leaves nothing of the batch", atomic),
    ("ten thousand entries are one batch", large_batch),
    ("texts of any kind come back as they were", hostile),
    ("ids that do not grow are as good as those that do", falling_ids),
];

fn new_is_empty(ground: &dyn Ground) {
    let mut journal = ground.fresh();
    assert_eq!(journal.restore().unwrap(), journal::stored::Alive::default());
    assert!(positions(&mut *journal).is_empty());
    assert_eq!(journal.position_of("").unwrap(), None);
    assert_eq!(journal.decision("").unwrap(), None);
    assert_eq!(journal.idempotent("", "").unwrap(), None);
    assert_eq!(journal.events_of("", Position::START, 9).unwrap(), []);
}

fn empty_batch(ground: &dyn Ground) {
    let mut journal = ground.fresh();
    journal.commit(&[]).unwrap();
    assert_eq!(journal.restore().unwrap(), journal::stored::Alive::default());
}

fn events_come_back(ground: &dyn Ground) {
    let mut journal = ground.fresh();
    let body = b"\x00\xffbody";
    let second = Entry::Event {
        position: at(2),
        session: "s",
        event_id: "b",
        at: UnixMillis::new(-7),
        critical: true,
        body,
    };
    journal.commit(&[opened("s"), event(1, "s", "a"), second, event(3, "s", "c")]).unwrap();
    assert_eq!(positions(&mut *journal), [1, 2, 3]);
    let some = journal.events(at(1), 1).unwrap();
    assert_eq!(some.len(), 1);
    assert_eq!(some[0].position, at(2));
    assert_eq!((&*some[0].session, &*some[0].event_id), ("s", "b"));
    assert_eq!((some[0].at, some[0].critical, &*some[0].body), (UnixMillis::new(-7), true, &body[..]));
    assert_eq!(journal.events(at(3), 9).unwrap(), []);
    assert_eq!(journal.events(at(u64::MAX), 9).unwrap(), []);
    assert_eq!(journal.events(Position::START, 0).unwrap(), []);
}

fn events_of_one_session(ground: &dyn Ground) {
    let mut journal = ground.fresh();
    journal.commit(&[opened("s"), opened("t")]).unwrap();
    let ids: Vec<String> = (0..3000).map(|number| format!("e{number:05}")).collect();
    for (few, place) in ids.chunks(100).zip(0..) {
        let number = |at: usize| place * 100 + at as u64 + 1;
        let batch: Vec<_> = few
            .iter()
            .enumerate()
            .map(|(at, id)| event(number(at), if number(at).is_multiple_of(3) { "t" } else { "s" }, id))
            .collect();
        journal.commit(&batch).unwrap();
    }
    let mut of = |session: &str, after, limit| -> Vec<u64> {
        let events = journal.events_of(session, at(after), limit).unwrap();
        assert!(events.iter().all(|event| event.session == session));
        events.iter().map(|event| event.position.get()).collect()
    };
    assert_eq!(of("t", 0, usize::MAX), (1..=1000).map(|third| third * 3).collect::<Vec<_>>());
    assert_eq!(of("s", 0, usize::MAX).len(), 2000);
    assert_eq!(of("t", 2990, 2), [2991, 2994]);
    assert_eq!(of("t", 1020, 4), [1023, 1026, 1029, 1032]);
    assert!(of("nobody", 0, 9).is_empty());
}

fn found_by_id(ground: &dyn Ground) {
    let mut journal = ground.fresh();
    journal.commit(&[opened("s"), event(1, "s", "b"), event(2, "s", "a")]).unwrap();
    assert_eq!(journal.position_of("a").unwrap(), Some(at(2)));
    assert_eq!(journal.position_of("b").unwrap(), Some(at(1)));
    assert_eq!(journal.position_of("A").unwrap(), None);
    assert_eq!(journal.position_of("").unwrap(), None);
}

fn durable(ground: &dyn Ground) {
    let mut journal = ground.fresh();
    journal.commit(&[opened("s"), event(1, "s", "a")]).unwrap();
    journal = ground.again(journal);
    journal.commit(&[event(2, "s", "b")]).unwrap();
    journal = ground.after_crash(journal);
    assert_eq!(positions(&mut *journal), [1, 2]);
    assert_eq!(journal.position_of("b").unwrap(), Some(at(2)));
    refused(&mut *journal, &[event(3, "s", "a")], 0, Reason::EventKnown);
    journal.commit(&[event(3, "s", "c")]).unwrap();
    assert_eq!(ground.again(journal).restore().unwrap().last, at(3));
}

fn gaps(ground: &dyn Ground) {
    let mut journal = ground.fresh();
    journal.commit(&[opened("s"), event(1, "s", "a")]).unwrap();
    let expected = at(2);
    for wrong in [0, 1, 3, u64::MAX] {
        refused(&mut *journal, &[event(wrong, "s", "b")], 0, Reason::Gap { expected });
    }
    refused(&mut *journal, &[event(2, "s", "b"), event(2, "s", "c")], 1, Reason::Gap { expected: at(3) });
    journal.commit(&[event(2, "s", "b")]).unwrap();
}

fn event_ids(ground: &dyn Ground) {
    let mut journal = ground.fresh();
    journal.commit(&[opened("s"), event(1, "s", "a")]).unwrap();
    refused(&mut *journal, &[event(2, "s", "a")], 0, Reason::EventKnown);
    refused(&mut *journal, &[event(2, "s", "b"), event(3, "s", "b")], 1, Reason::EventKnown);
    journal.commit(&[event(2, "s", "b")]).unwrap();
    let ids: Vec<String> = (3..3000).map(|number| format!("c{number:05}")).collect();
    for (number, id) in (3..).zip(&ids) {
        journal.commit(&[event(number, "s", id)]).unwrap();
    }
    for used in ["a", "b", "c00003", "c01500", "c02999"] {
        refused(&mut *journal, &[event(3000, "s", used)], 0, Reason::EventKnown);
    }
}

fn event_needs_session(ground: &dyn Ground) {
    let mut journal = ground.fresh();
    refused(&mut *journal, &[event(1, "s", "a")], 0, Reason::SessionNotOpen);
    journal.commit(&[opened("s"), event(1, "s", "a"), ended("s")]).unwrap();
    refused(&mut *journal, &[event(2, "s", "b")], 0, Reason::SessionNotOpen);
    let reversed = [opened("t"), ended("t"), event(2, "t", "b")];
    refused(&mut *journal, &reversed, 2, Reason::SessionNotOpen);
    refused(&mut *journal, &[event(2, "t", "b")], 0, Reason::SessionNotOpen);
}

fn atomic(ground: &dyn Ground) {
    let mut journal = ground.fresh();
    let start = [opened("s"), asked("q", "s"), subscribed("sub"), event(1, "s", "a"), asked("r", "s")];
    journal.commit(&start).unwrap();
    journal.commit(&[decided("r", "accept")]).unwrap();
    let before = journal.restore().unwrap();
    let batch = [
        event(2, "s", "b"),
        opened("t"),
        event(3, "t", "c"),
        asked("new", "t"),
        Entry::DeadlineMoved { token: "q", deadline: UnixMillis::new(99) },
        decided("q", "accept"),
        spent("r"),
        Entry::SessionTouched { id: "s", lease: UnixMillis::new(99), record: Some(b"other") },
        subscribed("other"),
        Entry::SubscriptionChanged { id: "sub", record: b"other" },
        cursor("sub", 2),
        key("p", "k"),
        Entry::Attempt { at: UnixMillis::new(1), subscription: "sub", what: b"late" },
        decided("new", "reject"),
        ended("t"),
        Entry::SubscriptionClosed { id: "sub" },
        event(4, "s", "a"),
    ];
    let last = batch.len() - 1;
    refused(&mut *journal, &batch, last, Reason::EventKnown);
    for mut journal in [journal] {
        for _ in 0..2 {
            assert_eq!(journal.restore().unwrap(), before);
            assert_eq!(positions(&mut *journal), [1]);
            assert_eq!(journal.position_of("b").unwrap(), None);
            assert_eq!(journal.decision("q").unwrap(), None);
            assert_eq!(journal.decision("r").unwrap().unwrap().spent, None);
            assert_eq!(journal.decision("new").unwrap(), None);
            assert_eq!(journal.idempotent("p", "k").unwrap(), None);
            assert_eq!(journal.events_of("t", at(0), 9).unwrap(), []);
            journal = ground.after_crash(journal);
        }
        journal.commit(&batch[..last]).unwrap();
        assert_eq!(positions(&mut *journal), [1, 2, 3]);
    }
}

fn large_batch(ground: &dyn Ground) {
    let mut journal = ground.fresh();
    let ids: Vec<String> = (0..10_000).map(|number| format!("e{number}")).collect();
    let mut batch = vec![opened("s")];
    batch.extend((1..).zip(&ids).map(|(number, id)| event(number, "s", id)));
    refused(&mut *journal, &[&*batch, &[opened("s")]].concat(), 10_001, Reason::SessionKnown);
    assert!(positions(&mut *journal).is_empty());
    journal.commit(&batch).unwrap();
    journal = ground.after_crash(journal);
    assert_eq!(positions(&mut *journal).len(), 10_000);
    assert_eq!(journal.position_of("e9999").unwrap(), Some(at(10_000)));
}

fn hostile(ground: &dyn Ground) {
    let mut journal = ground.fresh();
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
                Entry::SessionOpened {
                    id: text,
                    agent: text,
                    principal: text,
                    lease: UnixMillis::MAX,
                    record: body,
                },
                Entry::Event {
                    position: at(number),
                    session: text,
                    event_id: text,
                    at: UnixMillis::MIN,
                    critical: false,
                    body,
                },
                Entry::QuestionOpened { token: text, session: text, deadline: UnixMillis::MIN, record: body },
                Entry::Decided {
                    token: text,
                    decision: text,
                    by: text,
                    receipt: body,
                    at: UnixMillis::new(0),
                },
                Entry::SubscriptionOpened { id: text, principal: text, record: body },
                cursor(text, number),
                Entry::Idempotent {
                    principal: text,
                    key: text,
                    request: body,
                    response: body,
                    at: UnixMillis::new(0),
                },
                Entry::Attempt { at: UnixMillis::new(0), subscription: text, what: body },
            ])
            .unwrap();
    }
    journal = ground.after_crash(journal);
    for (number, text) in (1..).zip(texts) {
        assert_eq!(journal.position_of(text).unwrap(), Some(at(number)));
        let event = journal.events_of(text, at(0), 9).unwrap().remove(0);
        assert_eq!((&*event.event_id, &*event.body, event.at), (text, text.as_bytes(), UnixMillis::MIN));
        let decision = journal.decision(text).unwrap().unwrap();
        assert_eq!((&*decision.decision, &*decision.session, &*decision.by), (text, text, text));
        assert_eq!(journal.idempotent(text, text).unwrap().unwrap().response, text.as_bytes());
    }
    let alive = journal.restore().unwrap();
    assert_eq!(alive.sessions.iter().map(|session| &*session.agent).collect::<Vec<_>>(), texts);
    assert_eq!((alive.unspent.len(), alive.subscriptions.len()), (texts.len(), texts.len()));
}

fn falling_ids(ground: &dyn Ground) {
    let mut journal = ground.fresh();
    journal.commit(&[opened("s")]).unwrap();
    let ids: Vec<String> = (0..2500).map(|number| format!("e{:05}", 9000 - number)).collect();
    for (number, id) in (1..).zip(&ids) {
        journal.commit(&[event(number, "s", id)]).unwrap();
    }
    for journal in [journal] {
        let mut journal = ground.after_crash(journal);
        for (number, id) in (1..).zip(&ids) {
            assert_eq!(journal.position_of(id).unwrap(), Some(at(number)));
            refused(&mut *journal, &[event(2501, "s", id)], 0, Reason::EventKnown);
        }
    }
}
