//! The exhaustive model: one real book, two questions, two listeners, three ticks, one crash, and every order of all that
//! can happen. The first question is irreversible and bound to its action; silence means yes to the second.
//!
//! `cargo test -p aaep --test all exhaustive -- --nocapture` prints how many worlds there are.

use std::collections::BTreeSet;
use std::hash::BuildHasherDefault;

use aaep::consent::{By, Decided, Ignored, Limits, Link, Question, Questions, Reply, Said, Sender, Status};
use aaep::event::Event;
use aaep::message::SessionStop;
use serde_json::json;
use stateright::{Checker, Model, Property};

use super::hub::*;
use super::world::{Line, Note, TICK, TIMEOUT, World, mark};

const TICKS: u8 = 3;
const WHO: [&str; 2] = ["ada", "bob"];
const DONE: &str = r#"{"amount":5}"#;

/// What can happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Ask(usize),
    Reply {
        n: usize,
        who: usize,
        as_whom: usize,
        accept: bool,
    },
    /// Both reply in one batch, the first accepting.
    Crossing(usize),
    /// One accepts, the other stops the session, in one batch.
    YesAndStop(usize),
    MoreTime {
        n: usize,
        who: usize,
    },
    Lose(usize),
    Return(usize),
    Close(usize),
    Cancel(usize),
    Stop(usize),
    End,
    Spend {
        n: usize,
        same: bool,
    },
    Crash,
    Tick,
    Wake,
}

/// All that is said, read once.
struct Room {
    events: [[Event; TICKS as usize + 1]; 2],
    /// By question, speaker and decision; stamped as the question is, so that only our clock matters here.
    replies: [[[Reply; 2]; 2]; 2],
    wishes: [[Reply; 2]; 2],
    stops: [SessionStop; 2],
}

impl Room {
    fn new() -> Self {
        let event = |n: usize, tick: usize| {
            let at = T0 + i64::try_from(tick).unwrap() * TICK;
            let base = [bound(confirmation(mark(0)), "transfer", DONE), harmless(mark(1))][n].clone();
            parsed(&with(base, &json!({"timestamp": stamp(at.get()), "timeout_seconds": TIMEOUT[n] / 1000})))
        };
        let heard = |text: String| match Said::parse(&text).unwrap() {
            Said::Reply(reply) => reply,
            other => panic!("{other:?}"),
        };
        let said = |n: usize, who: usize, accept: usize| {
            heard(reply(mark(n), WHO[who], ["reject", "accept"][accept], T0))
        };
        let stopped = |who: usize| match Said::parse(&stop(WHO[who], T0)).unwrap() {
            Said::Stop(stop) => stop,
            other => panic!("{other:?}"),
        };
        Self {
            events: [0, 1].map(|n| [0, 1, 2, 3].map(|tick| event(n, tick))),
            replies: [0, 1].map(|n| [0, 1].map(|who| [0, 1].map(|accept| said(n, who, accept)))),
            wishes: [0, 1].map(|n| [0, 1].map(|who| heard(extend(mark(n), WHO[who], None, T0)))),
            stops: [0, 1].map(stopped),
        }
    }

    fn hear(
        &self,
        world: &mut World,
        n: usize,
        who: usize,
        as_whom: usize,
        accept: bool,
    ) -> Result<Decided, Ignored> {
        let sender = Sender { principal: WHO[who], link: Link::Shared };
        world.book.hear(&self.replies[n][as_whom][usize::from(accept)], &sender, world.now())
    }

    fn stop(&self, world: &mut World, who: usize) -> Result<Decided, Ignored> {
        let sender = Sender { principal: WHO[who], link: Link::Shared };
        world.book.stop(&self.stops[who], &sender, true, world.now())
    }

    fn act(&self, world: &mut World, act: Act) {
        let now = world.now();
        match act {
            Act::Ask(n) => {
                let event = &self.events[n][usize::from(world.tick)];
                let asked = world.book.ask(event, WHO.map(sub), now);
                world.law("what is lawful is asked while the session lasts", asked.is_ok() != world.over);
                if let Ok(decided) = asked {
                    world.notes[n].asked = Some(world.tick);
                    world.commit(decided);
                }
            }
            Act::Reply { n, who, as_whom, accept } => {
                let in_time = world.deadline(n).is_some_and(|deadline| now < deadline);
                let there = world
                    .book
                    .question(&token(mark(n)))
                    .is_some_and(|it| it.repliers().contains(&sub(WHO[who])));
                let valid = world.is_open(n) && in_time && world.is_live(who) && who == as_whom && there;
                let before = world.book.clone();
                if let Ok(decided) = self.hear(world, n, who, as_whom, accept) {
                    world.law("only a valid reply counts", valid);
                    world.commit(decided);
                } else {
                    world.law("a valid reply counts", !valid);
                    world.law("what is refused changes nothing", world.book == before);
                }
            }
            Act::Crossing(n) => {
                let first = self.hear(world, n, 0, 0, true);
                let second = self.hear(world, n, 1, 1, false);
                world.law("one of two in a batch counts", first.is_err() || second.is_err());
                for decided in [first, second].into_iter().flatten() {
                    world.commit(decided);
                }
            }
            Act::YesAndStop(n) => {
                let yes = self.hear(world, n, 0, 0, true);
                let stopped = self.stop(world, 1);
                for decided in [yes, stopped].into_iter().flatten() {
                    world.commit(decided);
                }
            }
            Act::MoreTime { n, who } => {
                let sender = Sender { principal: WHO[who], link: Link::Shared };
                if let Ok(decided) = world.book.hear(&self.wishes[n][who], &sender, now) {
                    world.law("more time is given while there is some", world.is_open(n));
                    world.notes[n].extended += TIMEOUT[n];
                    world.commit(decided);
                }
            }
            Act::Lose(who) => {
                world.lines[who] = Line::LostAt(world.tick);
                let decided = world.book.subscription_lost(&sub(WHO[who]), now, TICK);
                world.commit(decided);
            }
            Act::Return(who) => {
                let back = world.book.subscription_resumed(&sub(WHO[who]), now);
                world.law("who is lost comes back in time", back == world.is_live(who));
                world.lines[who] = if back { Line::Open } else { Line::Closed };
            }
            Act::Close(who) => {
                world.lines[who] = Line::Closed;
                let decided = world.book.subscription_closed(&sub(WHO[who]), now);
                world.commit(decided);
            }
            Act::Cancel(n) => {
                if let Ok(decided) = world.book.cancel(&token(mark(n)), now) {
                    world.commit(decided);
                }
            }
            Act::Stop(who) => {
                let may = world.is_live(who) && !world.over;
                let stopped = self.stop(world, who);
                world.law("who listens can stop", stopped.is_ok() == may);
                if let Ok(decided) = stopped {
                    world.commit(decided);
                }
            }
            Act::End => {
                let decided = world.book.end(&session(), now);
                world.commit(decided);
            }
            Act::Spend { n, same } => {
                let (session, token) = (session(), token(mark(n)));
                let arguments = if same { DONE } else { "{}" };
                let call = aaep::consent::Call {
                    irreversible: n == 0,
                    ..call(&session, Some(&token), Some(arguments))
                };
                let note = world.notes[n];
                let agreed = note.resolved.is_some_and(|(accepted, _)| accepted);
                let covered = agreed && !note.spent && !world.over && (same || n == 1);
                let spent = world.book.spend(&call);
                world.law(
                    "an answer covers its action once, while the session lasts",
                    spent.is_ok() == covered,
                );
                if let Ok(decided) = spent {
                    world.notes[n].spent = true;
                    world.commit(decided);
                }
            }
            Act::Crash => {
                let records: Vec<Question> = world.book.questions().cloned().collect();
                world.book =
                    Questions::restore(Limits::default(), BuildHasherDefault::default(), records, now, TICK);
                for (name, line) in WHO.iter().zip(&mut world.lines) {
                    match line {
                        Line::Open => assert!(world.book.subscription_opened(&sub(name), name)),
                        _ => *line = Line::Closed,
                    }
                }
                if world.over {
                    world.book.restore_over(&session(), [token(mark(0)), token(mark(1))]);
                }
                world.crashed = Some(world.tick);
            }
            Act::Tick => world.tick += 1,
            Act::Wake => {
                let decided = world.book.wake(now);
                world.commit(decided);
                for n in 0..2 {
                    let over = world.deadline(n).is_some_and(|deadline| now >= deadline);
                    world.law("what is over is decided", !(world.is_open(n) && over));
                }
                let next = world.book.next_deadline();
                world.law("what is due is done", next.is_none_or(|next| next > now));
            }
        }
        for n in 0..2 {
            let stands = world.book.question(&token(mark(n))).map(|question| question.status == Status::Open);
            let open = world.is_open(n);
            world.law("the book is as it was told", stands.unwrap_or(false) == open);
        }
    }
}

impl Model for Room {
    type State = World;
    type Action = Act;

    fn init_states(&self) -> Vec<World> {
        vec![World {
            book: Hub::with(&WHO).book,
            tick: 0,
            lines: [Line::Open; 2],
            notes: [Note::default(); 2],
            over: false,
            crashed: None,
            broken: BTreeSet::new(),
        }]
    }

    fn actions(&self, world: &World, acts: &mut Vec<Act>) {
        if !world.broken.is_empty() {
            return;
        }
        if world.over {
            // Nothing may happen any more: that is all there is to see.
            let late = |n| {
                [
                    Act::Reply { n, who: 0, as_whom: 0, accept: true },
                    Act::Spend { n, same: true },
                    Act::Ask(n),
                ]
            };
            acts.extend(
                (0..2).filter(|n| world.notes[*n].asked.is_some()).flat_map(|n| late(n).into_iter().take(2)),
            );
            acts.extend((0..2).filter(|n| world.notes[*n].asked.is_none()).map(Act::Ask));
            return;
        }
        for n in 0..2 {
            if world.notes[n].asked.is_none() {
                if world.tick == 0 {
                    acts.push(Act::Ask(n));
                }
                continue;
            }
            for accept in [false, true] {
                for (who, as_whom) in [(0, 0), (1, 1), (1, 0)] {
                    acts.push(Act::Reply { n, who, as_whom, accept });
                }
            }
            acts.extend([Act::Crossing(n), Act::YesAndStop(n), Act::Cancel(n)]);
            acts.extend([true, false].map(|same| Act::Spend { n, same }));
        }
        if world.notes[1].asked.is_some() && world.notes[1].extended == 0 {
            acts.push(Act::MoreTime { n: 1, who: 0 });
        }
        // Ada's connection is lost and found; Bob hangs up.
        match world.lines[0] {
            Line::Open => acts.push(Act::Lose(0)),
            Line::LostAt(_) => acts.push(Act::Return(0)),
            Line::Closed => {}
        }
        if world.lines[1] == Line::Open {
            acts.push(Act::Close(1));
        }
        acts.extend([Act::Stop(0), Act::End, Act::Wake]);
        if world.crashed.is_none() && world.tick == 1 {
            acts.push(Act::Crash);
        }
        if world.tick < TICKS {
            acts.push(Act::Tick);
        }
    }

    fn next_state(&self, world: &World, act: Act) -> Option<World> {
        let mut next = world.clone();
        self.act(&mut next, act);
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("the laws hold", |_, world: &World| world.broken.is_empty()),
            Property::sometimes("it is done", |_, world: &World| {
                world.notes[0].spent && world.notes[1].spent
            }),
            Property::sometimes("done after a crash", |_, world: &World| {
                world.notes[0].spent && world.crashed.is_some()
            }),
            Property::sometimes("silence after more time", |_, world: &World| {
                world.notes[1].extended > 0 && world.notes[1].resolved == Some((true, By::Timeout))
            }),
            Property::sometimes("closed after a crash", |_, world: &World| {
                world.crashed.is_some() && world.notes[0].resolved == Some((false, By::Closure))
            }),
            Property::sometimes("stopped", |_, world: &World| {
                world.notes[0].resolved == Some((false, By::Stopped))
            }),
        ]
    }
}

#[test]
fn the_laws_hold_in_every_order_of_what_can_happen() {
    let checker = Room::new().checker().threads(2).spawn_bfs().join();
    let (worlds, steps) = (checker.unique_state_count(), checker.state_count());
    println!("{worlds} worlds, {steps} steps");
    if let Some(path) = checker.discovery("the laws hold") {
        let broken = path.last_state().broken.clone();
        panic!("{broken:?}\n  {:?}", path.into_actions());
    }
    checker.assert_properties();
    assert!(worlds > 17_000, "the model has shrunk to {worlds} worlds");
}
