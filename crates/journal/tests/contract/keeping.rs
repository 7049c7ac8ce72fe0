//! What is forgotten, and what never is.

use journal::{Entry, Journal, Reason, Retention, Trimmed};
use seal::UnixMillis;

use crate::Behaviour;
use crate::ground::*;

pub(crate) const BEHAVIOURS: &[Behaviour] = &[
    ("without limits nothing is forgotten", no_limits),
    ("events go by age, oldest first", by_age),
    ("events go by size, oldest first, and the space comes back", by_size),
    ("events of open sessions stay until they end", open_sessions_stay),
    ("positions go on after everything was forgotten", positions_go_on),
    ("an event that is not fetched goes too, and the floor tells", unfetched_goes),
    ("questions and decisions of open sessions stay", open_decisions_stay),
    ("decisions and keys go by their own age", decisions_and_keys),
    ("a trim is made in steps", steps),
    ("a trim says when nothing is left that may go", over),
    ("attempts go by age and by size", attempts),
];

const YEAR: i64 = 1_000_000;

fn trim(journal: &mut dyn Journal, keep: &Retention, now: UnixMillis) -> Trimmed {
    let mut sum = Trimmed::default();
    for _ in 0..100_000 {
        let done = journal.trim(keep, now).unwrap();
        sum.events += done.events;
        sum.attempts += done.attempts;
        sum.decisions += done.decisions;
        sum.keys += done.keys;
        sum.over = done.over;
        if !done.more {
            return sum;
        }
    }
    panic!("a trim without end");
}

/// Ten sessions with ten events each, event n at time n; all but `open` have ended.
fn filled(ground: &dyn Ground, open: &[&str]) -> Box<dyn Journal> {
    let mut journal = ground.fresh();
    for session in 0..10 {
        let id = format!("s{session}");
        let ids: Vec<String> = (1..=10).map(|number| format!("e{:03}", session * 10 + number)).collect();
        let mut batch = vec![opened(&id)];
        for (number, event_id) in (session * 10 + 1..).zip(&ids) {
            batch.push(event_at(number, &id, event_id, number.cast_signed()));
        }
        if !open.contains(&&*id) {
            batch.push(ended(&id));
        }
        journal.commit(&batch).unwrap();
    }
    journal
}

fn no_limits(ground: &dyn Ground) {
    let mut journal = filled(ground, &["s3"]);
    journal.commit(&[key("p", "k")]).unwrap();
    let before = journal.restore().unwrap();
    assert_eq!(trim(&mut *journal, &Retention::default(), UnixMillis::MAX), Trimmed::default());
    assert_eq!(journal.restore().unwrap(), before);
    assert_eq!(positions(&mut *journal).len(), 100);
}

fn by_age(ground: &dyn Ground) {
    let mut journal = filled(ground, &[]);
    let keep = Retention { events: Some(40), ..Retention::default() };
    assert_eq!(trim(&mut *journal, &keep, UnixMillis::new(100)).events, 59);
    for mut journal in [journal] {
        for _ in 0..2 {
            assert_eq!(positions(&mut *journal), (60..=100).collect::<Vec<_>>());
            assert_eq!(journal.restore().unwrap().floor, at(59));
            assert_eq!(journal.position_of("e059").unwrap(), None);
            assert_eq!(journal.position_of("e060").unwrap(), Some(at(60)));
            assert_eq!(journal.events_of("s5", at(0), 99).unwrap().len(), 1);
            assert_eq!(journal.events_of("s0", at(0), 99).unwrap(), []);
            journal = ground.after_crash(journal);
        }
        assert_eq!(trim(&mut *journal, &keep, UnixMillis::new(100)), Trimmed::default());
    }
}

fn by_size(ground: &dyn Ground) {
    let mut journal = ground.fresh();
    journal.commit(&[opened("s")]).unwrap();
    let body = vec![7; 1000];
    for number in 1..=5000 {
        let id = format!("e{number:06}");
        let entry = Entry::Event {
            position: at(number),
            session: "s",
            event_id: &id,
            at: UnixMillis::new(0),
            critical: false,
            body: &body,
        };
        journal.commit(&[entry]).unwrap();
    }
    journal.commit(&[ended("s")]).unwrap();
    assert!(journal.size().unwrap() > 5_000_000);
    let keep = Retention { bytes: Some(1 << 20), ..Retention::default() };
    assert!(!trim(&mut *journal, &keep, UnixMillis::new(0)).over);
    let size = journal.size().unwrap();
    assert!((500_000..=1 << 20).contains(&size), "{size}");
    let left = positions(&mut *journal);
    assert!(left.len() > 400 && *left.last().unwrap() == 5000, "{left:?}");
    assert_eq!(journal.restore().unwrap().floor.get() + 1, left[0]);
}

fn open_sessions_stay(ground: &dyn Ground) {
    let mut journal = filled(ground, &["s3"]);
    let keep = Retention { events: Some(0), ..Retention::default() };
    assert_eq!(trim(&mut *journal, &keep, UnixMillis::new(YEAR)).events, 90);
    assert_eq!(positions(&mut *journal), (31..=40).collect::<Vec<_>>());
    assert_eq!(journal.events_of("s3", at(0), 99).unwrap().len(), 10);
    assert_eq!(journal.position_of("e035").unwrap(), Some(at(35)));
    assert_eq!(journal.restore().unwrap().floor, at(100));
    journal = ground.after_crash(journal);
    journal.commit(&[event_at(101, "s3", "e101", 101), ended("s3")]).unwrap();
    assert_eq!(trim(&mut *journal, &keep, UnixMillis::new(YEAR)).events, 11);
    assert!(positions(&mut *journal).is_empty());
}

fn positions_go_on(ground: &dyn Ground) {
    let mut journal = filled(ground, &[]);
    let keep = Retention { events: Some(0), ..Retention::default() };
    trim(&mut *journal, &keep, UnixMillis::new(YEAR));
    journal = ground.after_crash(journal);
    let alive = journal.restore().unwrap();
    assert_eq!((alive.last, alive.floor), (at(100), at(100)));
    let next = [opened("t"), event(1, "t", "e001")];
    refused(&mut *journal, &next, 1, Reason::Gap { expected: at(101) });
    journal.commit(&[opened("t"), event(101, "t", "e001")]).unwrap();
    assert_eq!(journal.position_of("e001").unwrap(), Some(at(101)));
}

fn unfetched_goes(ground: &dyn Ground) {
    let mut journal = filled(ground, &[]);
    journal.commit(&[subscribed("sub"), cursor("sub", 20)]).unwrap();
    trim(&mut *journal, &Retention { events: Some(50), ..Retention::default() }, UnixMillis::new(100));
    let alive = journal.restore().unwrap();
    assert_eq!((alive.subscriptions[0].cursor, alive.floor), (at(20), at(49)));
    assert_eq!(journal.events(at(20), 1).unwrap()[0].position, at(50));
}

fn open_decisions_stay(ground: &dyn Ground) {
    let mut journal = ground.fresh();
    journal.commit(&[opened("s"), asked("open", "s"), asked("yes", "s"), asked("used", "s")]).unwrap();
    journal.commit(&[decided("yes", "accept"), decided("used", "accept"), spent("used")]).unwrap();
    let keep = Retention { events: Some(0), decisions: Some(0), keys: Some(0), bytes: Some(0), step: 10 };
    let before = journal.restore().unwrap();
    assert_eq!(trim(&mut *journal, &keep, UnixMillis::new(YEAR)).decisions, 0);
    assert_eq!(journal.restore().unwrap(), before);
    refused(&mut *journal, &[spent("used")], 0, Reason::AlreadySpent);
    journal.commit(&[decided("open", "reject"), ended("s")]).unwrap();
    assert_eq!(trim(&mut *journal, &keep, UnixMillis::new(YEAR)).decisions, 3);
    assert_eq!(journal.decision("yes").unwrap(), None);
    refused(&mut *journal, &[decided("open", "accept")], 0, Reason::QuestionUnknown);
}

fn decisions_and_keys(ground: &dyn Ground) {
    let mut journal = filled(ground, &[]);
    journal
        .commit(&[opened("s"), asked("q", "s"), decided("q", "accept"), ended("s"), key("p", "k")])
        .unwrap();
    let events = Retention { events: Some(0), bytes: Some(0), ..Retention::default() };
    trim(&mut *journal, &events, UnixMillis::new(YEAR));
    assert!(journal.decision("q").unwrap().is_some() && journal.idempotent("p", "k").unwrap().is_some());
    let keep = Retention { decisions: Some(10), keys: Some(20), ..Retention::default() };
    assert_eq!(trim(&mut *journal, &keep, UnixMillis::new(15)), Trimmed::default());
    assert_eq!(
        trim(&mut *journal, &keep, UnixMillis::new(16)),
        Trimmed { decisions: 1, ..Trimmed::default() }
    );
    assert_eq!(trim(&mut *journal, &keep, UnixMillis::new(26)), Trimmed { keys: 1, ..Trimmed::default() });
    assert!(journal.decision("q").unwrap().is_none() && journal.idempotent("p", "k").unwrap().is_none());
    journal.commit(&[key("p", "k")]).unwrap();
}

fn steps(ground: &dyn Ground) {
    let mut journal = filled(ground, &[]);
    let keep = Retention { events: Some(0), step: 7, ..Retention::default() };
    let first = journal.trim(&keep, UnixMillis::new(YEAR)).unwrap();
    assert_eq!((first.events, first.more), (7, true));
    assert_eq!(journal.restore().unwrap().floor, at(7));
    assert_eq!(trim(&mut *journal, &keep, UnixMillis::new(YEAR)).events, 93);
}

fn over(ground: &dyn Ground) {
    let mut journal = filled(ground, &["s0", "s9"]);
    let keep = Retention { bytes: Some(1), ..Retention::default() };
    let done = trim(&mut *journal, &keep, UnixMillis::new(0));
    assert_eq!((done.events, done.over), (80, true));
    assert_eq!(positions(&mut *journal).len(), 20);
}

fn attempts(ground: &dyn Ground) {
    let mut journal = ground.fresh();
    let what = [1; 1000];
    for number in 0..3000 {
        journal
            .commit(&[Entry::Attempt { at: UnixMillis::new(number), subscription: "sub", what: &what }])
            .unwrap();
    }
    let keep = Retention { events: Some(2000), ..Retention::default() };
    assert_eq!(trim(&mut *journal, &keep, UnixMillis::new(2999)).attempts, 999);
    let size = journal.size().unwrap();
    assert!(size > 2_000_000, "{size}");
    let keep = Retention { bytes: Some(1 << 20), ..Retention::default() };
    let done = trim(&mut *journal, &keep, UnixMillis::new(0));
    assert!((800..1400).contains(&done.attempts) && !done.over, "{done:?}");
    assert!(journal.size().unwrap() <= 1 << 20);
}
