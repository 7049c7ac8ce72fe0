//! The hub deletes old records step by step, as the limits require, and listeners learn about gaps.

use crate::support::*;
use hub::HubLimits;
use hub::command::{HubCommand, HubReply};
use journal::{Retention, SqliteJournal, SqliteSettings};

const MINUTE_MS: i64 = 60_000;
const END: &str = r#"{"type":"aaep:agent.session.completed","summary_normal":"Done."}"#;
const KEEP_ALL: Retention = Retention {
    max_event_age_ms: None,
    max_decision_age_ms: None,
    max_idempotency_key_age_ms: None,
    max_idempotency_keys_per_principal: None,
    max_bytes: None,
    max_rows_per_step: 3,
};

fn limits(retention: Retention) -> HubLimits {
    HubLimits { retention, trim_interval_ms: 1_000, lease_ms: 60 * MINUTE_MS, ..HubLimits::default() }
}

/// Runs a test on each kind of journal.
fn on_each_journal(retention: Retention, test: impl Fn(&mut HubHarness)) {
    test(&mut HubHarness::with(&limits(retention), FaultyJournal::default(), START));
    let folder = tempfile::tempdir().unwrap();
    let sqlite =
        SqliteJournal::open(folder.path().join("journal.sqlite"), &SqliteSettings::default()).unwrap();
    test(&mut HubHarness::with(&limits(retention), FaultyJournal::over(Box::new(sqlite)), START));
}

fn run_finished_sessions(harness: &mut HubHarness, count: usize) {
    let bank = agent("bank");
    for _ in 0..count {
        let session = harness.start(&bank);
        let reply = harness.publish(&bank, &session, &[THINK, END]);
        assert!(matches!(reply, HubReply::EventsPublished { .. }), "{reply:?}");
    }
}

#[test]
fn old_events_are_deleted_in_steps_and_open_sessions_stay() {
    on_each_journal(Retention { max_event_age_ms: Some(MINUTE_MS), ..KEEP_ALL }, |harness| {
        let bank = agent("bank");
        let open = harness.start(&bank);
        run_finished_sessions(harness, 5);
        assert_eq!(harness.disk.events().len(), 16, "nothing is old yet");
        let mut remaining = 16;
        harness.now += 2 * MINUTE_MS;
        for _ in 0..20 {
            let due = harness.core.next_deadline().expect("a trim is scheduled");
            harness.now = harness.now.max(due);
            harness.turn();
            let event_count = harness.disk.events().len();
            assert!(
                remaining - event_count <= 6,
                "at most one step of events and one step of session records: {remaining} to {event_count}"
            );
            remaining = event_count;
        }
        assert_eq!(remaining, 1, "the event of the open session");
        assert!(matches!(harness.publish(&bank, &open, &[THINK, END]), HubReply::EventsPublished { .. }));
        harness.advance_time(3 * MINUTE_MS);
        assert_eq!(harness.disk.events().len(), 0);
    });
}

#[test]
fn the_oldest_events_are_deleted_above_the_size_limit() {
    on_each_journal(Retention { max_bytes: Some(120_000), ..KEEP_ALL }, |harness| {
        run_finished_sessions(harness, 150);
        harness.advance_time(10_000);
        let events = harness.disk.events();
        assert!(harness.disk.size() <= 120_000, "{}", harness.disk.size());
        let first = events.first().expect("some events remain").position.get();
        assert!(first > 1 && events.len() as u64 == 450 - first + 1, "the newest events remain");
    });
}

#[test]
fn events_are_kept_by_default() {
    let mut harness = HubHarness::new();
    run_finished_sessions(&mut harness, 2);
    harness.advance_time(1000 * MINUTE_MS);
    assert_eq!(harness.disk.events().len(), 6);
}

#[test]
fn resuming_before_deleted_events_delivers_the_current_state() {
    on_each_journal(Retention { max_event_age_ms: Some(MINUTE_MS), ..KEEP_ALL }, |harness| {
        harness.now += 1;
        let (bank, ada) = (agent("bank"), listener("ada", &[]));
        let (subscription, listener_id) = harness.connect_listener(&ada, "{}");
        let open = harness.start(&bank);
        let last = text_member(&harness.take_events(listener_id)[0], "event_id");
        // The listener stays connected; only its last event is old.
        run_finished_sessions(harness, 2);
        harness.advance_time(2 * MINUTE_MS);
        assert_eq!(
            harness.disk.events().len(),
            1,
            "only the last received event remains, because its session is open"
        );
        harness.send_without_reply(&ada, HubCommand::Detach { listener: listener_id, is_too_slow: false });
        let reconnected = harness.attach(&ada, &subscription, Some(&last));
        let events = harness.take_events(reconnected);
        assert_eq!(event_types(&events), ["state.changed"], "the current state instead of the missed events");
        assert_eq!(text_member(&events[0], "session_id"), open);
    });
}

#[test]
fn a_session_without_its_start_event_is_not_replayed() {
    on_each_journal(Retention { max_event_age_ms: Some(MINUTE_MS), ..KEEP_ALL }, |harness| {
        let (bank, ada) = (agent("bank"), listener("ada", &["person:marisol"]));
        let other = harness.start(&bank);
        let partly_deleted = harness.start(&bank);
        harness.now += MINUTE_MS;
        let (subscription, listener_id) = harness.connect_listener(&ada, "{}");
        harness.take_events(listener_id);
        harness.publish(&bank, &other, &[THINK]);
        let last = text_member(&harness.take_events(listener_id)[0], "event_id");
        harness.publish(&bank, &partly_deleted, &[THINK, END]);
        harness.advance_time(30_000);
        assert_eq!(harness.disk.events().len(), 4, "the start of one session is deleted");
        harness.send_without_reply(&ada, HubCommand::Detach { listener: listener_id, is_too_slow: false });
        let reconnected = harness.attach(&ada, &subscription, Some(&last));
        let events = harness.take_events(reconnected);
        assert_eq!(
            event_types(&events),
            ["state.changed"],
            "the current state instead of an incomplete history"
        );
        assert_eq!(text_member(&events[0], "session_id"), other);
    });
}

#[test]
fn a_full_disk_triggers_a_trim_immediately() {
    let limits_with_long_interval = HubLimits {
        trim_interval_ms: 1000 * MINUTE_MS,
        ..limits(Retention { max_event_age_ms: Some(MINUTE_MS), ..KEEP_ALL })
    };
    let mut harness = HubHarness::with(&limits_with_long_interval, FaultyJournal::default(), START);
    run_finished_sessions(&mut harness, 1);
    harness.now += 2 * MINUTE_MS;
    harness.turn();
    assert_eq!(harness.disk.events().len(), 3, "the trim is not due yet");
    harness.disk.fail_writes(true);
    let text = r#"{"summary_normal":"x","localization_hints":{"primary_language":"en"}}"#;
    let reply =
        harness.ask_hub(&agent("bank"), HubCommand::Start { body: text.into(), idempotency_key: None });
    assert!(matches!(reply, HubReply::Unavailable(_)), "{reply:?}");
    harness.advance_time(2_000);
    assert_eq!(harness.disk.events().len(), 0);
}
