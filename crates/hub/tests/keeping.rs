//! What is over is forgotten as the limits say, a step at a time, and nobody is deceived about it.

use crate::support::*;
use hub::Limits;
use hub::command::{Command, Reply};
use journal::{Retention, Settings, Sqlite};

const MINUTE: i64 = 60_000;
const END: &str = r#"{"type":"aaep:agent.session.completed","summary_normal":"Done."}"#;
const NOTHING: Retention = Retention { events: None, decisions: None, keys: None, bytes: None, step: 3 };

fn limits(retention: Retention) -> Limits {
    Limits { retention, trim_every: 1_000, lease: 60 * MINUTE, ..Limits::default() }
}

/// The same on each journal; the file of one lives as long as the folder.
fn on_each(retention: Retention, test: impl Fn(&mut Stage)) {
    test(&mut Stage::with(&limits(retention), Disk::default(), START));
    let folder = tempfile::tempdir().unwrap();
    let sqlite = Sqlite::open(folder.path().join("journal.sqlite"), &Settings::default()).unwrap();
    test(&mut Stage::with(&limits(retention), Disk::over(Box::new(sqlite)), START));
}

fn finished_sessions(stage: &mut Stage, count: usize) {
    let bank = agent("bank");
    for _ in 0..count {
        let session = stage.start(&bank);
        let answer = stage.publish(&bank, &session, &[THINK, END]);
        assert!(matches!(answer, Reply::EventsPublished { .. }), "{answer:?}");
    }
}

#[test]
fn what_is_too_old_goes_a_step_in_a_turn_and_open_sessions_stay() {
    on_each(Retention { events: Some(MINUTE), ..NOTHING }, |stage| {
        let bank = agent("bank");
        let open = stage.start(&bank);
        finished_sessions(stage, 5);
        assert_eq!(stage.disk.events().len(), 16, "nothing is old yet");
        let mut left = 16;
        stage.now += 2 * MINUTE;
        for _ in 0..20 {
            let due = stage.core.next_deadline().expect("there is always something to look at");
            stage.now = stage.now.max(due);
            stage.turn();
            let now = stage.disk.events().len();
            assert!(
                left - now <= 6,
                "at most a step of events and a step of what sessions left: {left} to {now}"
            );
            left = now;
        }
        assert_eq!(left, 1, "that of the open session");
        assert!(matches!(stage.publish(&bank, &open, &[THINK, END]), Reply::EventsPublished { .. }));
        stage.wait(3 * MINUTE);
        assert_eq!(stage.disk.events().len(), 0);
    });
}

#[test]
fn what_is_too_much_goes_oldest_first() {
    on_each(Retention { bytes: Some(120_000), ..NOTHING }, |stage| {
        finished_sessions(stage, 150);
        stage.wait(10_000);
        let events = stage.disk.events();
        assert!(stage.disk.size() <= 120_000, "{}", stage.disk.size());
        let first = events.first().expect("not everything").position.get();
        assert!(first > 1 && events.len() as u64 == 450 - first + 1, "the newest are all there");
    });
}

#[test]
fn everything_is_kept_unless_something_else_is_said() {
    let mut stage = Stage::new();
    finished_sessions(&mut stage, 2);
    assert_eq!(stage.core.next_deadline(), None);
    stage.wait(1000 * MINUTE);
    assert_eq!(stage.disk.events().len(), 6);
}

#[test]
fn who_resumes_from_before_what_was_forgotten_is_told_where_things_stand_instead() {
    on_each(Retention { events: Some(MINUTE), ..NOTHING }, |stage| {
        stage.now += 1;
        let (bank, ada) = (agent("bank"), listener("ada", &[]));
        let (subscription, ear) = stage.listener(&ada, "{}");
        let open = stage.start(&bank);
        let last = text_of(&stage.heard(ear)[0], "event_id");
        // It has a connection all the time; only what it heard last is old.
        finished_sessions(stage, 2);
        stage.wait(2 * MINUTE);
        assert_eq!(stage.disk.events().len(), 1, "only what was heard last is left, for its session is open");
        stage.ask_hub_quietly(&ada, Command::Detached { listener: ear, too_slow: false });
        let back = stage.attach(&ada, &subscription, Some(&last));
        let heard = stage.heard(back);
        assert_eq!(types(&heard), ["state.changed"], "not silence, as if nothing had been missed");
        assert_eq!(text_of(&heard[0], "session_id"), open);
    });
}

#[test]
fn who_may_hear_a_session_of_which_the_beginning_is_forgotten_is_not_guessed() {
    on_each(Retention { events: Some(MINUTE), ..NOTHING }, |stage| {
        let (bank, ada) = (agent("bank"), listener("ada", &["person:marisol"]));
        let other = stage.start(&bank);
        let straddling = stage.start(&bank);
        stage.now += MINUTE;
        let (subscription, ear) = stage.listener(&ada, "{}");
        stage.heard(ear);
        stage.publish(&bank, &other, &[THINK]);
        let last = text_of(&stage.heard(ear)[0], "event_id");
        stage.publish(&bank, &straddling, &[THINK, END]);
        stage.wait(30_000);
        assert_eq!(stage.disk.events().len(), 4, "the beginning of one is forgotten");
        stage.ask_hub_quietly(&ada, Command::Detached { listener: ear, too_slow: false });
        let back = stage.attach(&ada, &subscription, Some(&last));
        let heard = stage.heard(back);
        assert_eq!(types(&heard), ["state.changed"], "the present state, and not an incomplete past");
        assert_eq!(text_of(&heard[0], "session_id"), other);
    });
}

#[test]
fn a_full_disk_is_a_reason_to_look_at_once() {
    let keep = Limits { trim_every: 1000 * MINUTE, ..limits(Retention { events: Some(MINUTE), ..NOTHING }) };
    let mut stage = Stage::with(&keep, Disk::default(), START);
    finished_sessions(&mut stage, 1);
    stage.now += 2 * MINUTE;
    stage.turn();
    assert_eq!(stage.disk.events().len(), 3, "it is not time yet");
    stage.disk.fill(true);
    let text = r#"{"summary_normal":"x","localization_hints":{"primary_language":"en"}}"#;
    let answer = stage.ask_hub(&agent("bank"), Command::Start { body: text.into(), key: None });
    assert!(matches!(answer, Reply::Unavailable(_)), "{answer:?}");
    stage.wait(2_000);
    assert_eq!(stage.disk.events().len(), 0);
}
