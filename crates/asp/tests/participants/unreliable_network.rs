//! Two participants over an unreliable network that delays, duplicates and, if requested, reorders messages, and that
//! restarts participants.

use std::collections::VecDeque;

use asp::message::{Body, Constraints, DurationMillis};
use asp::session::SessionEnding;
use asp::state_machine::{Role, State};
use asp::{ReceiveOutcome, StoredStep};
use proptest::prelude::*;

use super::participant_pair::{A, B, ParticipantPair};
use super::restart::{assert_same_participant, describe_outcome, restore};
use crate::support::bodies::{
    accept, close, commit, counter, escalate, inform, observe, propose, query, reject, withdraw,
};
use testing::property::cases;

/// An event on the network. The numbers select messages.
#[derive(Clone, Debug)]
enum NetworkEvent {
    /// A side sends a message, if the message is allowed.
    Send(Role, usize),
    /// The oldest message to this side arrives. The flag says whether the receiver considers the escrow covered.
    Deliver(Role, bool),
    /// A message that already arrived at this side arrives again.
    Duplicate(Role, usize),
    /// A message to this side overtakes earlier ones.
    Overtake(Role, usize),
    /// The transport confirms the oldest messages of this side that the other side has accepted.
    Settle(Role),
    /// Time passes, in milliseconds, and this side handles its timers.
    Elapse(Role, i64),
}

/// The disturbances of the network besides delayed and duplicated messages.
#[derive(Clone, Copy)]
struct Disturbances {
    overtakes: bool,
    lets_time_pass: bool,
}

fn events_strategy(disturbances: Disturbances) -> impl Strategy<Value = Vec<NetworkEvent>> {
    let role = || prop_oneof![Just(A), Just(B)];
    let overtake_weight = u32::from(disturbances.overtakes);
    let elapse_weight = 2 * u32::from(disturbances.lets_time_pass);
    let event = prop_oneof![
        5 => (role(), 0..64_usize).prop_map(|(role, choice)| NetworkEvent::Send(role, choice)),
        4 => (role(), prop::bool::weighted(0.8)).prop_map(|(role, is_funded)| NetworkEvent::Deliver(role, is_funded)),
        2 => (role(), 0..64_usize).prop_map(|(role, choice)| NetworkEvent::Duplicate(role, choice)),
        overtake_weight => (role(), 0..64_usize).prop_map(|(role, choice)| NetworkEvent::Overtake(role, choice)),
        1 => role().prop_map(NetworkEvent::Settle),
        elapse_weight => (role(), prop_oneof![4 => 0..4000_i64, 1 => 0..4_000_000_i64])
            .prop_map(|(role, millis)| NetworkEvent::Elapse(role, millis)),
    ];
    proptest::collection::vec(event, 4..26)
}

const ORDERED: Disturbances = Disturbances { overtakes: false, lets_time_pass: false };
const REORDERED: Disturbances = Disturbances { overtakes: true, ..ORDERED };
const REORDERED_WITH_TIME: Disturbances = Disturbances { lets_time_pass: true, ..REORDERED };

struct UnreliableNetwork {
    pair: ParticipantPair,
    /// The messages in transit to each side.
    in_flight: [VecDeque<String>; 2],
    /// The messages that arrived at each side.
    arrived: [Vec<String>; 2],
    sent_count: usize,
    delivered_count: usize,
    restarts: Restarts,
}

/// When participants are restored from their stored steps.
#[derive(Clone, Copy, PartialEq)]
enum Restarts {
    Never,
    /// After each event, a copy is restored and compared, and the run continues with the original.
    CompareOnly,
    /// Both sides are replaced by restored participants after each event.
    AfterEachEvent,
}

impl UnreliableNetwork {
    fn run(events: &[NetworkEvent], restarts: Restarts) -> Self {
        let mut network = Self {
            pair: ParticipantPair::conversing(),
            in_flight: Default::default(),
            arrived: Default::default(),
            sent_count: 0,
            delivered_count: 0,
            restarts,
        };
        for event in events {
            network.pair.now += 100;
            network.pair.checks.is_funded = true;
            match event {
                NetworkEvent::Send(role, choice) => network.send(*role, *choice),
                NetworkEvent::Deliver(to, is_funded) => {
                    network.pair.checks.is_funded = *is_funded;
                    network.deliver_next(*to);
                }
                NetworkEvent::Duplicate(to, choice) => {
                    let arrived = &network.arrived[index(*to)];
                    if let Some(text) = arrived.get(choice % arrived.len().max(1)).cloned() {
                        network.deliver(*to, &text);
                    }
                }
                NetworkEvent::Overtake(to, choice) => {
                    let in_flight = &mut network.in_flight[index(*to)];
                    if let Some(text) = in_flight.remove(choice % in_flight.len().max(1)) {
                        network.arrived[index(*to)].push(text.clone());
                        network.deliver(*to, &text);
                    }
                }
                NetworkEvent::Settle(role) => network.settle(*role),
                NetworkEvent::Elapse(role, millis) => {
                    network.pair.now += *millis;
                    let at = network.pair.now;
                    if !network.pair.side(*role).handle_timeout(at).is_empty() {
                        network.pair.steps[index(*role)].push(StoredStep::TimersExpired { at });
                    }
                }
            }
            network.restart();
        }
        // Finally everything arrives, and the exchange must end.
        network.pair.checks.is_funded = true;
        while network.in_flight.iter().any(|in_flight| !in_flight.is_empty()) {
            assert!(network.delivered_count < 400, "the participants keep answering each other");
            network.deliver_next(A);
            network.deliver_next(B);
        }
        network
    }

    fn send(&mut self, role: Role, choice: usize) {
        let number = self.sent_count;
        let body: Body = match choice % 16 {
            0 | 1 => observe(&format!("{number}")),
            2 | 3 => query(&format!("qry_{number}")),
            4 | 5 => propose(&format!("prop_{number}")),
            6 => accept(&format!("prop_{}", choice % (number + 1))),
            7 => reject(&format!("prop_{}", choice % (number + 1))),
            8 => counter(&format!("prop_{number}"), &format!("prop_{}", choice % (number + 1))),
            9 | 10 => commit(&format!("cmt_{number}")),
            11 | 12 => match self.pair.snapshot(role).0.commitment() {
                Some(pending) => accept(pending.commit().commitment_id.as_str()),
                None => inform("progress"),
            },
            13 => match self.pair.snapshot(role).0.state() {
                State::Escalated => inform("resolution"),
                _ => escalate(),
            },
            14 => inform("result"),
            _ if choice > 48 => withdraw(),
            _ => close("enough"),
        };
        self.sent_count += 1;
        let mut constraints = Constraints::new();
        if choice.is_multiple_of(5) {
            constraints.max_response_time_ms = DurationMillis::new(2000);
        }
        if choice.is_multiple_of(7) {
            use asp::Performative::{Accept, Inform, Observe, Query};
            constraints.allowed_performatives = Some(vec![Accept, Inform, Observe, Query]);
        }
        self.pair.constraints = Some(constraints);
        if let Ok(sent) = self.pair.try_send(role, body) {
            self.in_flight[index(role.other())].push_back(sent.text.to_string());
        }
    }

    fn deliver_next(&mut self, to: Role) {
        if let Some(text) = self.in_flight[index(to)].pop_front() {
            self.arrived[index(to)].push(text.clone());
            self.deliver(to, &text);
        }
    }

    fn deliver(&mut self, to: Role, text: &str) {
        self.delivered_count += 1;
        let restored = (self.restarts == Restarts::CompareOnly).then(|| restore(&self.pair, to));
        let outcome = self.pair.deliver(to, text);
        if let Some(mut restored) = restored {
            let (checks, now, mut random) = (self.pair.checks, self.pair.now, self.pair.random.clone());
            let repeated = restored.receive(text, checks, now, &mut random).unwrap();
            assert_eq!(describe_outcome(&repeated), describe_outcome(&outcome));
            assert_same_participant(&restored, self.pair.side(to));
        }
        assert!(!matches!(outcome, ReceiveOutcome::Dropped(_)), "{outcome:?}");
        if let ReceiveOutcome::Refused { reject: Some(reject), .. } = outcome {
            self.in_flight[index(to.other())].push_back(reject.to_string());
        }
    }

    fn settle(&mut self, role: Role) {
        let sent: Vec<_> = self.pair.side(role).unsettled_messages().map(|(id, _)| id).collect();
        let other = self.pair.side(role.other()).record().unwrap().transcript().clone();
        if let Some(message_id) = sent.into_iter().take_while(|id| other.contains(id)).last() {
            self.pair.side(role).settle(message_id);
            self.pair.steps[index(role)].push(StoredStep::Settled { message_id });
        }
    }

    fn restart(&mut self) {
        for role in [A, B] {
            if self.restarts != Restarts::Never {
                let restored = restore(&self.pair, role);
                assert_same_participant(&restored, self.pair.side(role));
                if self.restarts == Restarts::AfterEachEvent {
                    *self.pair.side(role) = restored;
                }
            }
        }
    }

    fn has_broken_chain(&mut self) -> bool {
        [A, B].into_iter().any(|role| {
            let (session, _) = self.pair.snapshot(role);
            session.outcome().is_some_and(|outcome| outcome.ending == SessionEnding::BrokenChain)
        })
    }
}

fn index(role: Role) -> usize {
    usize::from(role == B)
}

proptest! {
    #![proptest_config(cases(40))]

    /// Each sender's messages arrive in order, with delays and duplicates. After all have arrived, both sides have the
    /// same transcript and state, and no chain is broken.
    #[test]
    fn delays_and_duplicates_lead_to_one_transcript(events in events_strategy(ORDERED)) {
        let mut network = UnreliableNetwork::run(&events, Restarts::Never);
        prop_assert!(!network.has_broken_chain());
        network.pair.assert_agreement();
        // The session can continue.
        network.pair.constraints = None;
        let states = network.pair.states();
        if states == [State::Conversing; 2] {
            network.pair.send_and_deliver(A, observe("still here"));
            network.pair.send_and_deliver(B, observe("me too"));
        }
    }

    /// If messages overtake each other, a chain may break (D7) and the session fails; otherwise both sides agree.
    #[test]
    fn with_reordering_both_sides_agree_or_the_session_fails(events in events_strategy(REORDERED)) {
        let mut network = UnreliableNetwork::run(&events, Restarts::Never);
        if !network.has_broken_chain() {
            network.pair.assert_agreement();
        }
    }

    /// A participant that is restored from its stored steps at any point equals the original, and handles the next message
    /// in the same way, even after timers expired and after a broken chain.
    #[test]
    fn a_restored_participant_equals_the_original(events in events_strategy(REORDERED_WITH_TIME)) {
        UnreliableNetwork::run(&events, Restarts::CompareOnly);
    }

    /// If both sides restart after every event, they still reach one transcript.
    #[test]
    fn restarts_lead_to_one_transcript(events in events_strategy(ORDERED)) {
        let mut network = UnreliableNetwork::run(&events, Restarts::AfterEachEvent);
        prop_assert!(!network.has_broken_chain());
        network.pair.assert_agreement();
    }
}
