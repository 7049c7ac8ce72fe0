//! What holds however questions, answers, listeners, time and crashes come: judged by a second, naive reading.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::BuildHasherDefault;

use aaep::consent::{Answer, By, Call, Decided, Limits, Outcome, Question, Questions, Resolution};
use aaep::event::Decision;
use proptest::prelude::*;
use seal::UnixMillis;
use serde_json::json;

use super::hub::*;
use crate::support::choices::Choices;
use crate::support::decisions;
use testing::property::cases;

const PEOPLE: [&str; 3] = ["ada", "bob", "cleo"];
const WINDOW: i64 = 20_000;

/// What an onlooker has noted of one question.
#[derive(Debug)]
struct Note {
    session: usize,
    irreversible: bool,
    accepts: bool,
    timeout: i64,
    asked: UnixMillis,
    deadline: UnixMillis,
    entitled: BTreeSet<usize>,
    /// Until when nobody counts as gone, after a crash.
    grace: UnixMillis,
    resolved: Option<(bool, By)>,
    spent: bool,
}

/// A person's subscription, as the onlooker sees it: they take a new one each time that they come.
#[derive(Debug)]
enum Line {
    Open,
    Lost(UnixMillis),
    Closed,
}

struct World {
    hub: Hub,
    now: UnixMillis,
    notes: BTreeMap<u8, Note>,
    lines: [Line; 3],
    over: [bool; 2],
}

impl World {
    fn new() -> Self {
        let lines = [Line::Open, Line::Open, Line::Open];
        let hub = Hub::with(&PEOPLE);
        Self { hub, now: T0, notes: BTreeMap::new(), lines, over: [false; 2] }
    }

    fn is_live(&self, who: usize) -> bool {
        match self.lines[who] {
            Line::Open => true,
            Line::Lost(until) => self.now < until,
            Line::Closed => false,
        }
    }

    fn is_open(&self, n: u8) -> bool {
        self.notes.get(&n).is_some_and(|note| note.resolved.is_none() && !self.over[note.session])
    }

    /// One thing happens. `Err` is a law that was broken.
    fn step(&mut self, choices: &mut Choices<'_>) -> Result<(), TestCaseError> {
        let n = u8::try_from(choices.below(6)).unwrap();
        let who = choices.below(3);
        match choices.below(14) {
            0 | 1 => self.ask(n, choices),
            2..=4 => self.reply(n, who, choices),
            5 => self.extend(n, who),
            6 => {
                self.now += choices.of(&[1, 3000, 9999, 35_000, 63_000]);
                Ok(())
            }
            7 => self.come_and_go(who, choices),
            8 => self.cancel(n),
            9 if choices.below(4) == 0 => self.end(who, choices),
            10 | 11 => self.spend(n, choices),
            12 => {
                self.crash();
                Ok(())
            }
            13 => self.wake(),
            _ => Ok(()),
        }
    }

    fn ask(&mut self, n: u8, choices: &mut Choices<'_>) -> Result<(), TestCaseError> {
        let (irreversible, accepts) = [(true, false), (false, true), (false, false)][choices.below(3)];
        let timeout = [10, 70][choices.below(2)];
        let session = choices.below(2);
        let id = [SESSION, OTHER_SESSION][session];
        let base = if irreversible { confirmation(n) } else { harmless(n) };
        let event = with(
            base,
            &json!({
                "timestamp": stamp(self.now.get()), "timeout_seconds": timeout, "session_id": id,
                "default_decision": if accepts { "accept" } else { "reject" },
            }),
        );
        let whom: Vec<usize> = (0..3).filter(|_| choices.below(2) == 0).collect();
        let names: Vec<&str> = whom.iter().map(|who| PEOPLE[*who]).collect();
        let before = self.hub.book.clone();
        let asked = self.hub.try_ask(&event, &names, self.now);
        let lawful = !self.notes.contains_key(&n) && !self.over[session];
        prop_assert_eq!(asked.is_ok(), lawful, "{:?}", asked);
        let Ok(outcomes) = asked else {
            prop_assert!(self.hub.book == before);
            return Ok(());
        };
        let timeout = timeout * 1000;
        let entitled = whom.into_iter().filter(|who| self.is_live(*who)).collect();
        let note = Note {
            session,
            irreversible,
            accepts,
            timeout,
            asked: self.now,
            deadline: self.now + timeout,
            entitled,
            grace: UnixMillis::MIN,
            resolved: None,
            spent: false,
        };
        self.notes.insert(n, note);
        let unreachable = !self.can_answer(n);
        prop_assert_eq!(resolutions(&outcomes).len(), usize::from(unreachable));
        self.told(&outcomes)
    }

    fn can_answer(&self, n: u8) -> bool {
        let note = &self.notes[&n];
        note.entitled.iter().any(|who| match self.lines[*who] {
            Line::Open => true,
            Line::Lost(until) => self.now < until && !note.accepts,
            Line::Closed => false,
        })
    }

    fn reply(&mut self, n: u8, who: usize, choices: &mut Choices<'_>) -> Result<(), TestCaseError> {
        let speaker = if choices.below(5) == 0 { choices.below(3) } else { who };
        let decision = ["accept", "reject"][choices.below(2)];
        let late = choices.below(6) == 0;
        let deadline = self.notes.get(&n).map_or(self.now, |note| note.deadline);
        let at = if late { deadline } else { self.now };
        let valid = self.is_open(n)
            && self.now < deadline
            && at < deadline
            && speaker == who
            && self.is_live(who)
            && self.notes[&n].entitled.contains(&who);
        let before = self.hub.book.clone();
        let text = reply(n, PEOPLE[who], decision, at);
        if choices.below(8) == 0 {
            // The journal is full: it never was.
            if let Ok(decided) = decide(&mut self.hub.book, PEOPLE[speaker], &text, self.now) {
                self.hub.book.abandon(decided);
            }
            prop_assert!(self.hub.book == before);
            return Ok(());
        }
        let heard = self.hub.say(PEOPLE[speaker], &text, self.now);
        prop_assert_eq!(heard.is_ok(), valid, "{:?} to {:?} at {}", heard, self.notes.get(&n), self.now - T0);
        let Ok(outcomes) = heard else {
            prop_assert!(self.hub.book == before, "a refused reply changes nothing");
            return Ok(());
        };
        let resolved = resolution(&outcomes);
        prop_assert_eq!((resolved.is_accepted(), resolved.by), (decision == "accept", By::Reply));
        self.told(&outcomes)
    }

    fn extend(&mut self, n: u8, who: usize) -> Result<(), TestCaseError> {
        let before = self.hub.book.clone();
        let heard = self.hub.say(PEOPLE[who], &extend(n, PEOPLE[who], None, self.now), self.now);
        let may = self.is_open(n) && self.is_live(who) && self.notes[&n].entitled.contains(&who);
        let now = self.now;
        let note = self.notes.get_mut(&n).filter(|note| may && now < note.deadline);
        let longer = note.filter(|note| note.deadline < note.asked + 10 * note.timeout);
        prop_assert_eq!(heard.is_ok(), longer.is_some());
        match longer {
            Some(note) => note.deadline += note.timeout,
            None => prop_assert!(self.hub.book == before),
        }
        Ok(())
    }

    fn wake(&mut self) -> Result<(), TestCaseError> {
        let outcomes = self.hub.wake(self.now);
        self.told(&outcomes)?;
        for (n, note) in &self.notes {
            prop_assert!(!self.is_open(*n) || self.now < note.deadline, "{} is over", n);
            let alone = !self.can_answer(*n) && self.now >= note.grace;
            prop_assert!(!self.is_open(*n) || !alone, "nobody can answer {}", n);
        }
        let next = self.hub.book.next_deadline();
        prop_assert!(next.is_none_or(|next| next > self.now), "all that was due is done");
        prop_assert!(self.hub.wake(self.now).is_empty(), "and is done once");
        Ok(())
    }

    fn come_and_go(&mut self, who: usize, choices: &mut Choices<'_>) -> Result<(), TestCaseError> {
        let id = sub(PEOPLE[who]);
        let (live, choice) = (self.is_live(who), choices.below(4));
        let decided = match choice {
            0 if live => {
                self.lines[who] = Line::Closed;
                self.hub.book.subscription_closed(&id, self.now)
            }
            1 | 2 if matches!(self.lines[who], Line::Open) => {
                self.lines[who] = Line::Lost(self.now + WINDOW);
                self.hub.book.subscription_lost(&id, self.now, WINDOW)
            }
            _ => {
                let resumed = self.hub.book.subscription_resumed(&id, self.now);
                prop_assert_eq!(resumed, live);
                if live {
                    self.lines[who] = Line::Open;
                }
                Decided::default()
            }
        };
        let outcomes = self.hub.commit(decided);
        self.told(&outcomes)
    }

    fn cancel(&mut self, n: u8) -> Result<(), TestCaseError> {
        let may = self.is_open(n) && self.now < self.notes[&n].deadline;
        let cancelled = self.hub.book.cancel(&token(n), self.now);
        prop_assert_eq!(cancelled.is_ok(), may);
        let outcomes = cancelled.map(|decided| self.hub.commit(decided)).unwrap_or_default();
        self.told(&outcomes)
    }

    fn end(&mut self, who: usize, choices: &mut Choices<'_>) -> Result<(), TestCaseError> {
        let outcomes = if choices.below(2) == 0 {
            let stopped = self.hub.say(PEOPLE[who], &stop(PEOPLE[who], self.now), self.now);
            prop_assert_eq!(stopped.is_ok(), self.is_live(who) && !self.over[0]);
            let Ok(outcomes) = stopped else { return Ok(()) };
            outcomes
        } else {
            let decided = self.hub.book.end(&session(), self.now);
            self.hub.commit(decided)
        };
        self.told(&outcomes)?;
        prop_assert!(
            (0..6)
                .all(|n| self.notes.get(&n).is_none_or(|note| note.session == 1 || note.resolved.is_some()))
        );
        self.over[0] = true;
        Ok(())
    }

    fn spend(&mut self, n: u8, choices: &mut Choices<'_>) -> Result<(), TestCaseError> {
        let session = choices.below(2);
        let irreversible = choices.below(2) == 0;
        let id = aaep::SessionId::parse([SESSION, OTHER_SESSION][session]).unwrap();
        let token = token(n);
        let call = Call { irreversible, ..call(&id, Some(&token), None) };
        let covered = self.notes.get(&n).is_some_and(|note| {
            let said = note.resolved == Some((true, By::Reply));
            let agreed = note.resolved.is_some_and(|(accepted, _)| accepted);
            let enough = if irreversible { said && note.irreversible } else { agreed };
            note.session == session && !self.over[session] && enough && !note.spent
        });
        let before = self.hub.book.clone();
        let spent = self.hub.spend(&call);
        prop_assert_eq!(spent.is_ok(), covered, "{:?} on {:?}", spent, self.notes.get(&n));
        match self.notes.get_mut(&n) {
            Some(note) if covered => note.spent = true,
            _ => prop_assert!(self.hub.book == before),
        }
        Ok(())
    }

    /// The hub dies and comes back; of its listeners those who were there are back, too.
    fn crash(&mut self) {
        let records: Vec<String> = self.hub.book.questions().map(Question::to_record).collect();
        let questions = records.iter().map(|record| Question::parse_record(record).unwrap());
        let hasher = BuildHasherDefault::default();
        let mut book = Questions::restore(Limits::default(), hasher, questions, self.now, WINDOW);
        for note in self.notes.values_mut() {
            note.grace = self.now + WINDOW;
        }
        for (name, line) in PEOPLE.iter().zip(&mut self.lines) {
            match line {
                Line::Open => assert!(book.subscription_opened(&sub(name), name)),
                _ => *line = Line::Closed,
            }
        }
        // The journal knows which sessions are over.
        if self.over[0] {
            let of_it = self.notes.iter().filter(|(_, note)| note.session == 0);
            book.restore_over(&session(), of_it.map(|(n, _)| token(*n)));
        }
        self.hub = Hub { book };
    }

    /// Notes what was told, and holds it against the laws.
    fn told(&mut self, outcomes: &[Outcome]) -> Result<(), TestCaseError> {
        for resolution in resolutions(outcomes) {
            self.resolved(&resolution)?;
        }
        Ok(())
    }

    fn resolved(&mut self, told: &Resolution) -> Result<(), TestCaseError> {
        let n = (0..6).find(|n| token(*n) == told.token).unwrap();
        let (reachable, graced) = (self.can_answer(n), self.now < self.notes[&n].grace);
        let note = self.notes.get_mut(&n).unwrap();
        prop_assert!(note.resolved.is_none(), "resolved twice");
        let accepted = told.answer == Answer::Decision(Decision::Accept);
        match told.by {
            By::Reply => {}
            By::Timeout => prop_assert!(self.now >= note.deadline && accepted == note.accepts),
            By::Closure => prop_assert!(!reachable && !graced && accepted == note.accepts),
            By::Unreachable => prop_assert!(!reachable && accepted == note.accepts),
            _ => prop_assert!(!accepted),
        }
        prop_assert!(
            !(note.irreversible && accepted && told.by != By::Reply),
            "nothing irreversible on silence"
        );
        note.resolved = Some((accepted, told.by));
        Ok(())
    }
}

proptest! {
    #![proptest_config(cases(600))]

    #[test]
    fn a_naive_reading_agrees_with_the_book(bytes in decisions(400)) {
        let mut choices = Choices::new(&bytes);
        let mut world = World::new();
        for _ in 0..60 {
            world.step(&mut choices)?;
        }
        world.now += 100_000_000;
        world.wake()?;
        prop_assert!((0..6).all(|n| !world.is_open(n)), "in the end all is decided");
    }
}
