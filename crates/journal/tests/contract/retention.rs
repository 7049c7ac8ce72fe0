//! Contract tests for retention: what is deleted and what is not.

use journal::{ConflictReason, Journal, JournalEntry, Retention, TrimReport};
use seal::UnixMillis;

use crate::Behaviour;
use crate::fixture::*;

pub(crate) const BEHAVIOURS: &[Behaviour] = &[
    ("without limits nothing is deleted", nothing_is_deleted_without_limits),
    ("events are deleted by age, oldest first", events_are_deleted_by_age),
    ("events are deleted by size, oldest first, and their space is freed", events_are_deleted_by_size),
    ("events stay until their session ends", events_of_open_sessions_stay),
    ("positions continue after everything was deleted", positions_continue),
    (
        "an event that was not fetched is deleted too, and trimmed_up_to shows it",
        unfetched_events_are_deleted,
    ),
    ("questions and decisions of open sessions stay", decisions_of_open_sessions_stay),
    ("decisions and keys are deleted by their own age", decisions_and_keys_are_deleted_by_age),
    ("surplus keys of a principal are deleted", surplus_keys_are_deleted),
    ("a trim works in steps", trim_works_in_steps),
    ("a trim reports when nothing more can be deleted", trim_reports_over_limit),
    ("attempts are deleted by age and by size", attempts_are_deleted_by_age_and_size),
];

const FAR_FUTURE: i64 = 1_000_000;

/// Trims until there is nothing more to delete. Returns the totals.
fn trim_completely(journal: &mut dyn Journal, retention: &Retention, now: UnixMillis) -> TrimReport {
    let mut total = TrimReport::default();
    for _ in 0..100_000 {
        let report = journal.trim(retention, now).unwrap();
        total.events += report.events;
        total.attempts += report.attempts;
        total.decisions += report.decisions;
        total.idempotency_keys += report.idempotency_keys;
        total.is_over_limit = report.is_over_limit;
        if !report.has_more {
            return total;
        }
    }
    panic!("trim does not finish");
}

/// Creates ten sessions with ten events each. Event n has the time n. Ends all sessions except those in `open_sessions`.
fn fill_journal(fixture: &dyn JournalFixture, open_sessions: &[&str]) -> Box<dyn Journal> {
    let mut journal = fixture.create_empty();
    for session in 0..10 {
        let id = format!("s{session}");
        let ids: Vec<String> = (1..=10).map(|number| format!("e{:03}", session * 10 + number)).collect();
        let mut batch = vec![session_opened(&id)];
        for (number, event_id) in (session * 10 + 1..).zip(&ids) {
            batch.push(event_at(number, &id, event_id, number.cast_signed()));
        }
        if !open_sessions.contains(&&*id) {
            batch.push(session_ended(&id));
        }
        journal.commit(&batch).unwrap();
    }
    journal
}

fn nothing_is_deleted_without_limits(fixture: &dyn JournalFixture) {
    let mut journal = fill_journal(fixture, &["s3"]);
    journal.commit(&[response_stored("p", "k")]).unwrap();
    let before = journal.restore().unwrap();
    assert_eq!(trim_completely(&mut *journal, &Retention::default(), UnixMillis::MAX), TrimReport::default());
    assert_eq!(journal.restore().unwrap(), before);
    assert_eq!(positions(&mut *journal).len(), 100);
}

fn events_are_deleted_by_age(fixture: &dyn JournalFixture) {
    let mut journal = fill_journal(fixture, &[]);
    let retention = Retention { max_event_age_ms: Some(40), ..Retention::default() };
    assert_eq!(trim_completely(&mut *journal, &retention, UnixMillis::new(100)).events, 59);
    for _ in 0..2 {
        assert_eq!(positions(&mut *journal), (60..=100).collect::<Vec<_>>());
        assert_eq!(journal.restore().unwrap().trimmed_up_to, position(59));
        assert_eq!(journal.event_position("e059").unwrap(), None);
        assert_eq!(journal.event_position("e060").unwrap(), Some(position(60)));
        assert_eq!(journal.session_events("s5", position(0), 99).unwrap().len(), 1);
        assert_eq!(journal.session_events("s0", position(0), 99).unwrap(), []);
        journal = fixture.crash_and_reopen(journal);
    }
    assert_eq!(trim_completely(&mut *journal, &retention, UnixMillis::new(100)), TrimReport::default());
}

fn events_are_deleted_by_size(fixture: &dyn JournalFixture) {
    let mut journal = fixture.create_empty();
    journal.commit(&[session_opened("s")]).unwrap();
    let body = vec![7; 1000];
    for number in 1..=5000 {
        let id = format!("e{number:06}");
        let entry = JournalEntry::Event {
            position: position(number),
            session: "s",
            event_id: &id,
            at: UnixMillis::new(0),
            is_critical: false,
            body: &body,
        };
        journal.commit(&[entry]).unwrap();
    }
    journal.commit(&[session_ended("s")]).unwrap();
    assert!(journal.size_bytes().unwrap() > 5_000_000);
    let retention = Retention { max_bytes: Some(1 << 20), ..Retention::default() };
    assert!(!trim_completely(&mut *journal, &retention, UnixMillis::new(0)).is_over_limit);
    let size = journal.size_bytes().unwrap();
    assert!((500_000..=1 << 20).contains(&size), "{size}");
    let remaining = positions(&mut *journal);
    assert!(remaining.len() > 400 && *remaining.last().unwrap() == 5000, "{remaining:?}");
    assert_eq!(journal.restore().unwrap().trimmed_up_to.get() + 1, remaining[0]);
}

fn events_of_open_sessions_stay(fixture: &dyn JournalFixture) {
    let mut journal = fill_journal(fixture, &["s3"]);
    let retention = Retention { max_event_age_ms: Some(0), ..Retention::default() };
    assert_eq!(trim_completely(&mut *journal, &retention, UnixMillis::new(FAR_FUTURE)).events, 90);
    assert_eq!(positions(&mut *journal), (31..=40).collect::<Vec<_>>());
    assert_eq!(journal.session_events("s3", position(0), 99).unwrap().len(), 10);
    assert_eq!(journal.event_position("e035").unwrap(), Some(position(35)));
    assert_eq!(journal.restore().unwrap().trimmed_up_to, position(100));
    journal = fixture.crash_and_reopen(journal);
    journal.commit(&[event_at(101, "s3", "e101", 101), session_ended("s3")]).unwrap();
    assert_eq!(trim_completely(&mut *journal, &retention, UnixMillis::new(FAR_FUTURE)).events, 11);
    assert!(positions(&mut *journal).is_empty());
}

fn positions_continue(fixture: &dyn JournalFixture) {
    let mut journal = fill_journal(fixture, &[]);
    let retention = Retention { max_event_age_ms: Some(0), ..Retention::default() };
    trim_completely(&mut *journal, &retention, UnixMillis::new(FAR_FUTURE));
    journal = fixture.crash_and_reopen(journal);
    let live_state = journal.restore().unwrap();
    assert_eq!((live_state.last_position, live_state.trimmed_up_to), (position(100), position(100)));
    let next = [session_opened("t"), event(1, "t", "e001")];
    assert_conflict(&mut *journal, &next, 1, ConflictReason::PositionGap { expected: position(101) });
    journal.commit(&[session_opened("t"), event(101, "t", "e001")]).unwrap();
    assert_eq!(journal.event_position("e001").unwrap(), Some(position(101)));
}

fn unfetched_events_are_deleted(fixture: &dyn JournalFixture) {
    let mut journal = fill_journal(fixture, &[]);
    journal.commit(&[subscription_opened("sub"), cursor_moved("sub", 20)]).unwrap();
    trim_completely(
        &mut *journal,
        &Retention { max_event_age_ms: Some(50), ..Retention::default() },
        UnixMillis::new(100),
    );
    let live_state = journal.restore().unwrap();
    assert_eq!((live_state.subscriptions[0].cursor, live_state.trimmed_up_to), (position(20), position(49)));
    assert_eq!(journal.events(position(20), 1).unwrap()[0].position, position(50));
}

fn decisions_of_open_sessions_stay(fixture: &dyn JournalFixture) {
    let mut journal = fixture.create_empty();
    journal
        .commit(&[
            session_opened("s"),
            question_opened("open", "s"),
            question_opened("yes", "s"),
            question_opened("used", "s"),
        ])
        .unwrap();
    journal
        .commit(&[
            question_decided("yes", "accept"),
            question_decided("used", "accept"),
            decision_spent("used"),
        ])
        .unwrap();
    let retention = Retention {
        max_event_age_ms: Some(0),
        max_decision_age_ms: Some(0),
        max_idempotency_key_age_ms: Some(0),
        max_idempotency_keys_per_principal: None,
        max_bytes: Some(0),
        max_rows_per_step: 10,
    };
    let before = journal.restore().unwrap();
    assert_eq!(trim_completely(&mut *journal, &retention, UnixMillis::new(FAR_FUTURE)).decisions, 0);
    assert_eq!(journal.restore().unwrap(), before);
    assert_conflict(&mut *journal, &[decision_spent("used")], 0, ConflictReason::AlreadySpent);
    journal.commit(&[question_decided("open", "reject"), session_ended("s")]).unwrap();
    assert_eq!(trim_completely(&mut *journal, &retention, UnixMillis::new(FAR_FUTURE)).decisions, 3);
    assert_eq!(journal.decision("yes").unwrap(), None);
    assert_conflict(&mut *journal, &[question_decided("open", "accept")], 0, ConflictReason::UnknownQuestion);
}

fn decisions_and_keys_are_deleted_by_age(fixture: &dyn JournalFixture) {
    let mut journal = fill_journal(fixture, &[]);
    journal
        .commit(&[
            session_opened("s"),
            question_opened("q", "s"),
            question_decided("q", "accept"),
            session_ended("s"),
            response_stored("p", "k"),
        ])
        .unwrap();
    let events_only = Retention { max_event_age_ms: Some(0), max_bytes: Some(0), ..Retention::default() };
    trim_completely(&mut *journal, &events_only, UnixMillis::new(FAR_FUTURE));
    assert!(journal.decision("q").unwrap().is_some() && journal.stored_response("p", "k").unwrap().is_some());
    let retention = Retention {
        max_decision_age_ms: Some(10),
        max_idempotency_key_age_ms: Some(20),
        ..Retention::default()
    };
    assert_eq!(trim_completely(&mut *journal, &retention, UnixMillis::new(15)), TrimReport::default());
    assert_eq!(
        trim_completely(&mut *journal, &retention, UnixMillis::new(16)),
        TrimReport { decisions: 1, ..TrimReport::default() }
    );
    assert_eq!(
        trim_completely(&mut *journal, &retention, UnixMillis::new(26)),
        TrimReport { idempotency_keys: 1, ..TrimReport::default() }
    );
    assert!(journal.decision("q").unwrap().is_none() && journal.stored_response("p", "k").unwrap().is_none());
    journal.commit(&[response_stored("p", "k")]).unwrap();
}

fn surplus_keys_are_deleted(fixture: &dyn JournalFixture) {
    let mut journal = fill_journal(fixture, &[]);
    let keys: Vec<_> = (0..9).map(|number| format!("k{number}")).collect();
    for key in &keys {
        journal.commit(&[response_stored("p", key)]).unwrap();
    }
    journal.commit(&[response_stored("other", "k0"), response_stored("other", "k1")]).unwrap();
    let retention = Retention {
        max_idempotency_keys_per_principal: Some(3),
        max_rows_per_step: 4,
        ..Retention::default()
    };
    let mut deleted = 0;
    while deleted < 6 {
        deleted += journal.trim(&retention, UnixMillis::new(5)).unwrap().idempotency_keys;
    }
    assert_eq!(journal.trim(&retention, UnixMillis::new(5)).unwrap(), TrimReport::default());
    let stored_keys = |journal: &mut dyn Journal, principal: &str| {
        let is_stored = |key: &&String| journal.stored_response(principal, key).unwrap().is_some();
        keys.iter().filter(is_stored).cloned().collect::<Vec<_>>()
    };
    assert_eq!(stored_keys(&mut *journal, "p"), ["k6", "k7", "k8"]);
    assert_eq!(stored_keys(&mut *journal, "other"), ["k0", "k1"]);
}

fn trim_works_in_steps(fixture: &dyn JournalFixture) {
    let mut journal = fill_journal(fixture, &[]);
    let retention = Retention { max_event_age_ms: Some(0), max_rows_per_step: 7, ..Retention::default() };
    let first = journal.trim(&retention, UnixMillis::new(FAR_FUTURE)).unwrap();
    assert_eq!((first.events, first.has_more), (7, true));
    assert_eq!(journal.restore().unwrap().trimmed_up_to, position(7));
    assert_eq!(trim_completely(&mut *journal, &retention, UnixMillis::new(FAR_FUTURE)).events, 93);
}

fn trim_reports_over_limit(fixture: &dyn JournalFixture) {
    let mut journal = fill_journal(fixture, &["s0", "s9"]);
    let retention = Retention { max_bytes: Some(1), ..Retention::default() };
    let report = trim_completely(&mut *journal, &retention, UnixMillis::new(0));
    assert_eq!((report.events, report.is_over_limit), (80, true));
    assert_eq!(positions(&mut *journal).len(), 20);
}

fn attempts_are_deleted_by_age_and_size(fixture: &dyn JournalFixture) {
    let mut journal = fixture.create_empty();
    let details = [1; 1000];
    for number in 0..3000 {
        journal
            .commit(&[JournalEntry::ReplyAttempted {
                at: UnixMillis::new(number),
                principal: "anna",
                details: &details,
            }])
            .unwrap();
    }
    let retention = Retention { max_event_age_ms: Some(2000), ..Retention::default() };
    assert_eq!(trim_completely(&mut *journal, &retention, UnixMillis::new(2999)).attempts, 999);
    let size = journal.size_bytes().unwrap();
    assert!(size > 2_000_000, "{size}");
    let retention = Retention { max_bytes: Some(1 << 20), ..Retention::default() };
    let report = trim_completely(&mut *journal, &retention, UnixMillis::new(0));
    assert!((800..1400).contains(&report.attempts) && !report.is_over_limit, "{report:?}");
    assert!(journal.size_bytes().unwrap() <= 1 << 20);
}
