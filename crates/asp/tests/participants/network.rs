//! Two participants over a bad network: messages are delayed, doubled and, if the network is very bad, reordered.

use std::collections::VecDeque;

use asp::Received;
use asp::machine::{Role, State};
use asp::message::Body;
use asp::session::Ending;
use proptest::prelude::*;

use super::pair::{A, B, Pair};
use crate::support::bodies::{
    accept, close, commit, counter, escalate, inform, observe, propose, query, reject, withdraw,
};
use testing::property::cases;

/// What happens next.
#[derive(Clone, Debug)]
enum Event {
    /// A side says something, if it may.
    Send(Role, usize),
    /// The oldest message to that side arrives. Whether its receiver sees the escrow covered.
    Deliver(Role, bool),
    /// A message that has arrived at that side before arrives again.
    Again(Role, usize),
    /// A message to that side arrives before its turn.
    Overtake(Role, usize),
}

fn events(overtaking: bool) -> impl Strategy<Value = Vec<Event>> {
    let role = || prop_oneof![Just(A), Just(B)];
    let overtakes = u32::from(overtaking);
    let event = prop_oneof![
        5 => (role(), 0..64_usize).prop_map(|(role, pick)| Event::Send(role, pick)),
        4 => (role(), prop::bool::weighted(0.8)).prop_map(|(role, funded)| Event::Deliver(role, funded)),
        2 => (role(), 0..64_usize).prop_map(|(role, pick)| Event::Again(role, pick)),
        overtakes => (role(), 0..64_usize).prop_map(|(role, pick)| Event::Overtake(role, pick)),
    ];
    proptest::collection::vec(event, 4..26)
}

struct Network {
    pair: Pair,
    /// To each side: what is on its way, and what has arrived.
    way: [VecDeque<String>; 2],
    arrived: [Vec<String>; 2],
    said: usize,
    carried: usize,
}

impl Network {
    fn run(events: &[Event]) -> Self {
        let mut network = Self {
            pair: Pair::conversing(),
            way: Default::default(),
            arrived: Default::default(),
            said: 0,
            carried: 0,
        };
        for event in events {
            network.pair.now += 100;
            network.pair.judgement.funded = true;
            match event {
                Event::Send(role, pick) => network.send(*role, *pick),
                Event::Deliver(to, funded) => {
                    network.pair.judgement.funded = *funded;
                    network.next(*to);
                }
                Event::Again(to, pick) => {
                    let arrived = &network.arrived[index(*to)];
                    if let Some(text) = arrived.get(pick % arrived.len().max(1)).cloned() {
                        network.carry(*to, &text);
                    }
                }
                Event::Overtake(to, pick) => {
                    let way = &mut network.way[index(*to)];
                    if let Some(text) = way.remove(pick % way.len().max(1)) {
                        network.arrived[index(*to)].push(text.clone());
                        network.carry(*to, &text);
                    }
                }
            }
        }
        // In the end everything arrives, and that end must come.
        network.pair.judgement.funded = true;
        while network.way.iter().any(|way| !way.is_empty()) {
            assert!(network.carried < 400, "the two answer each other without end");
            network.next(A);
            network.next(B);
        }
        network
    }

    fn send(&mut self, role: Role, pick: usize) {
        let fresh = self.said;
        let body: Body = match pick % 16 {
            0 | 1 => observe(&format!("{fresh}")),
            2 | 3 => query(&format!("qry_{fresh}")),
            4 | 5 => propose(&format!("prop_{fresh}")),
            6 => accept(&format!("prop_{}", pick % (fresh + 1))),
            7 => reject(&format!("prop_{}", pick % (fresh + 1))),
            8 => counter(&format!("prop_{fresh}"), &format!("prop_{}", pick % (fresh + 1))),
            9 | 10 => commit(&format!("cmt_{fresh}")),
            11 | 12 => match self.pair.shot(role).0.commitment() {
                Some(pending) => accept(pending.terms().commitment_id.as_str()),
                None => inform("progress"),
            },
            13 => match self.pair.shot(role).0.state() {
                State::Escalated => inform("resolution"),
                _ => escalate(),
            },
            14 => inform("result"),
            _ if pick > 48 => withdraw(),
            _ => close("enough"),
        };
        self.said += 1;
        if let Ok(sent) = self.pair.try_send(role, body) {
            self.way[index(role.other())].push_back(sent.text.to_string());
        }
    }

    fn next(&mut self, to: Role) {
        if let Some(text) = self.way[index(to)].pop_front() {
            self.arrived[index(to)].push(text.clone());
            self.carry(to, &text);
        }
    }

    fn carry(&mut self, to: Role, text: &str) {
        self.carried += 1;
        let heard = self.pair.deliver(to, text);
        assert!(!matches!(heard, Received::Dropped(_)), "{heard:?}");
        if let Received::Refused { answer: Some(answer), .. } = heard {
            self.way[index(to.other())].push_back(answer.to_string());
        }
    }

    fn is_broken(&mut self) -> bool {
        [A, B].into_iter().any(|role| {
            let (session, _) = self.pair.shot(role);
            session.outcome().is_some_and(|outcome| outcome.ending == Ending::BrokenChain)
        })
    }
}

fn index(role: Role) -> usize {
    usize::from(role == B)
}

proptest! {
    #![proptest_config(cases(40))]

    /// Each sender's messages arrive in their order, late, and some of them again: when all have arrived, both have one
    /// transcript and are in one place, and no chain was broken.
    #[test]
    fn delays_and_doubles_leave_one_transcript(events in events(false)) {
        let mut network = Network::run(&events);
        prop_assert!(!network.is_broken());
        network.pair.agree();
        // And it can go on from there.
        let states = network.pair.states();
        if states == [State::Conversing; 2] {
            network.pair.say(A, observe("still here"));
            network.pair.say(B, observe("me too"));
        }
    }

    /// Where messages overtake each other, a chain may break (D7), and the session has failed then; otherwise both agree.
    #[test]
    fn what_is_reordered_agrees_or_fails(events in events(true)) {
        let mut network = Network::run(&events);
        if !network.is_broken() {
            network.pair.agree();
        }
    }
}
