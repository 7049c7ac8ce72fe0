//! An exhaustive model check: one real registry, two questions, two listeners, three ticks, one crash, and
//! every order of the possible actions. The first question is irreversible and bound to its action. The
//! default of the second is accept.
//!
//! `cargo test -p aaep --test all model_check -- --nocapture` prints the number of states.

use std::collections::BTreeSet;
use std::hash::BuildHasherDefault;

use aaep::consent::{
    ConsentLimits, ConsentMessage, IgnoreReason, MessageSender, Question, QuestionRegistry, QuestionStatus,
    Reply, ReplyChannel, ResolvedBy, StagedChange,
};
use aaep::event::Event;
use aaep::message::SessionStop;
use serde_json::json;
use stateright::{Checker, Model, Property};

use super::consent_hub::*;
use super::model_state::{ModelLink, ModelState, ObservedQuestion, TICK_MS, TIMEOUT_MS, question_number};

const TICKS: u8 = 3;
const LISTENERS: [&str; 2] = ["ada", "bob"];
const CALL_ARGUMENTS: &str = r#"{"amount":5}"#;

/// One step of the model. `n` is the index of a question, and `listener` is the index of the listener that sends the
/// message. `claimed_listener` is the listener whose subscription id the message contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ModelAction {
    /// Asks the question with this index.
    Ask(usize),
    Reply {
        n: usize,
        listener: usize,
        claimed_listener: usize,
        accept: bool,
    },
    /// Both listeners reply to this question in one batch. The first accepts, the second rejects.
    CrossingReplies(usize),
    /// In one batch, one listener accepts this question and the other stops the session.
    AcceptAndStop(usize),
    ExtendDeadline {
        n: usize,
        listener: usize,
    },
    /// The connection of the listener with this index is lost.
    LoseConnection(usize),
    Reconnect(usize),
    CloseSubscription(usize),
    CancelQuestion(usize),
    /// The listener with this index stops the session.
    StopSession(usize),
    /// The agent ends the session.
    EndSession,
    Spend {
        n: usize,
        same_arguments: bool,
    },
    Crash,
    Tick,
    Wake,
}

/// All events and messages, parsed once.
struct ConsentModel {
    /// The questions, by index and by the tick at which they are asked.
    events: [[Event; TICKS as usize + 1]; 2],
    /// The replies by question, claimed listener and decision. Their timestamps are `T0`, so only the hub's clock can
    /// make a reply late.
    replies: [[[Reply; 2]; 2]; 2],
    /// The requests for more time, by question and listener.
    extensions: [[Reply; 2]; 2],
    stops: [SessionStop; 2],
}

impl ConsentModel {
    fn new() -> Self {
        let event = |n: usize, tick: usize| {
            let at = T0 + i64::try_from(tick).unwrap() * TICK_MS;
            let base = [
                bound(confirmation(question_number(0)), "transfer", CALL_ARGUMENTS),
                harmless_confirmation(question_number(1)),
            ][n]
                .clone();
            parse_event(&with(
                base,
                &json!({"timestamp": format_timestamp(at.get()), "timeout_seconds": TIMEOUT_MS[n] / 1000}),
            ))
        };
        let parse_reply = |text: String| match ConsentMessage::parse(&text).unwrap() {
            ConsentMessage::Reply(reply) => reply,
            other => panic!("{other:?}"),
        };
        let decision_reply = |n: usize, listener: usize, accept: usize| {
            parse_reply(reply(question_number(n), LISTENERS[listener], ["reject", "accept"][accept], T0))
        };
        let parse_stop =
            |listener: usize| match ConsentMessage::parse(&stop_request(LISTENERS[listener], T0)).unwrap() {
                ConsentMessage::Stop(stop) => stop,
                other => panic!("{other:?}"),
            };
        Self {
            events: [0, 1].map(|n| [0, 1, 2, 3].map(|tick| event(n, tick))),
            replies: [0, 1]
                .map(|n| [0, 1].map(|listener| [0, 1].map(|accept| decision_reply(n, listener, accept)))),
            extensions: [0, 1].map(|n| {
                [0, 1].map(|listener| {
                    parse_reply(extend_request(question_number(n), LISTENERS[listener], None, T0))
                })
            }),
            stops: [0, 1].map(parse_stop),
        }
    }

    fn reply(
        &self,
        state: &mut ModelState,
        n: usize,
        listener: usize,
        claimed_listener: usize,
        accept: bool,
    ) -> Result<StagedChange, IgnoreReason> {
        let sender = MessageSender { principal: LISTENERS[listener], channel: ReplyChannel::Shared };
        state.registry.handle_reply(
            &self.replies[n][claimed_listener][usize::from(accept)],
            &sender,
            state.now(),
        )
    }

    fn stop(&self, state: &mut ModelState, listener: usize) -> Result<StagedChange, IgnoreReason> {
        let sender = MessageSender { principal: LISTENERS[listener], channel: ReplyChannel::Shared };
        state.registry.stop_session(&self.stops[listener], &sender, true, state.now())
    }

    fn apply_action(&self, state: &mut ModelState, action: ModelAction) {
        let now = state.now();
        match action {
            ModelAction::Ask(n) => {
                let event = &self.events[n][usize::from(state.tick)];
                let result = state.registry.ask(event, LISTENERS.map(sub), now);
                state.check_invariant(
                    "a valid question can be asked if and only if the session is open",
                    result.is_ok() != state.is_session_ended,
                );
                if let Ok(staged) = result {
                    state.observed[n].asked_tick = Some(state.tick);
                    state.commit(staged);
                }
            }
            ModelAction::Reply { n, listener, claimed_listener, accept } => {
                let is_in_time = state.deadline(n).is_some_and(|deadline| now < deadline);
                let is_replier = state
                    .registry
                    .question(&token(question_number(n)))
                    .is_some_and(|question| question.replier_ids().contains(&sub(LISTENERS[listener])));
                let is_valid = state.is_open(n)
                    && is_in_time
                    && state.is_live(listener)
                    && listener == claimed_listener
                    && is_replier;
                let before = state.registry.clone();
                if let Ok(staged) = self.reply(state, n, listener, claimed_listener, accept) {
                    state.check_invariant("only a valid reply counts", is_valid);
                    state.commit(staged);
                } else {
                    state.check_invariant("a valid reply counts", !is_valid);
                    state.check_invariant("a refused reply changes nothing", state.registry == before);
                }
            }
            ModelAction::CrossingReplies(n) => {
                let first = self.reply(state, n, 0, 0, true);
                let second = self.reply(state, n, 1, 1, false);
                state.check_invariant(
                    "only one of two replies in a batch counts",
                    first.is_err() || second.is_err(),
                );
                for staged in [first, second].into_iter().flatten() {
                    state.commit(staged);
                }
            }
            ModelAction::AcceptAndStop(n) => {
                let acceptance = self.reply(state, n, 0, 0, true);
                let stopped = self.stop(state, 1);
                for staged in [acceptance, stopped].into_iter().flatten() {
                    state.commit(staged);
                }
            }
            ModelAction::ExtendDeadline { n, listener } => {
                let sender = MessageSender { principal: LISTENERS[listener], channel: ReplyChannel::Shared };
                if let Ok(staged) = state.registry.handle_reply(&self.extensions[n][listener], &sender, now) {
                    state.check_invariant("only an open question can be extended", state.is_open(n));
                    state.observed[n].extended_ms += TIMEOUT_MS[n];
                    state.commit(staged);
                }
            }
            ModelAction::LoseConnection(listener) => {
                state.links[listener] = ModelLink::LostAt(state.tick);
                let staged = state.registry.subscription_lost(&sub(LISTENERS[listener]), now, TICK_MS);
                state.commit(staged);
            }
            ModelAction::Reconnect(listener) => {
                let is_resumed = state.registry.subscription_resumed(&sub(LISTENERS[listener]), now);
                state.check_invariant(
                    "a lost listener can return within its window",
                    is_resumed == state.is_live(listener),
                );
                state.links[listener] = if is_resumed { ModelLink::Open } else { ModelLink::Closed };
            }
            ModelAction::CloseSubscription(listener) => {
                state.links[listener] = ModelLink::Closed;
                let staged = state.registry.subscription_closed(&sub(LISTENERS[listener]), now);
                state.commit(staged);
            }
            ModelAction::CancelQuestion(n) => {
                if let Ok(staged) = state.registry.cancel_question(&token(question_number(n)), now) {
                    state.commit(staged);
                }
            }
            ModelAction::StopSession(listener) => {
                let can_stop = state.is_live(listener) && !state.is_session_ended;
                let stopped = self.stop(state, listener);
                state.check_invariant("a live listener can stop the session", stopped.is_ok() == can_stop);
                if let Ok(staged) = stopped {
                    state.commit(staged);
                }
            }
            ModelAction::EndSession => {
                let staged = state.registry.end_session(&session(), now);
                state.commit(staged);
            }
            ModelAction::Spend { n, same_arguments } => {
                let (session, token) = (session(), token(question_number(n)));
                let arguments = if same_arguments { CALL_ARGUMENTS } else { "{}" };
                let call = aaep::consent::GuardedCall {
                    irreversible: n == 0,
                    high_risk: n == 0,
                    ..call(&session, Some(&token), Some(arguments))
                };
                let observed_question = state.observed[n];
                let is_accepted = observed_question.resolved.is_some_and(|(accepted, _)| accepted);
                let is_covered = is_accepted
                    && !observed_question.is_spent
                    && !state.is_session_ended
                    && (same_arguments || n == 1);
                let result = state.registry.spend(&call, now);
                state.check_invariant(
                    "an acceptance covers its action once, while the session is open",
                    result.is_ok() == is_covered,
                );
                if let Ok(staged) = result {
                    state.observed[n].is_spent = true;
                    state.commit(staged);
                }
            }
            ModelAction::Crash => {
                let records: Vec<Question> = state.registry.questions().cloned().collect();
                state.registry = QuestionRegistry::restore(
                    ConsentLimits::default(),
                    BuildHasherDefault::default(),
                    records,
                    now,
                    TICK_MS,
                );
                for (name, link) in LISTENERS.iter().zip(&mut state.links) {
                    match link {
                        ModelLink::Open => assert!(state.registry.subscription_opened(&sub(name), name)),
                        _ => *link = ModelLink::Closed,
                    }
                }
                if state.is_session_ended {
                    state.registry.restore_ended_session(
                        &session(),
                        [token(question_number(0)), token(question_number(1))],
                    );
                }
                state.crash_tick = Some(state.tick);
            }
            ModelAction::Tick => state.tick += 1,
            ModelAction::Wake => {
                let staged = state.registry.handle_deadlines(now);
                state.commit(staged);
                for n in 0..2 {
                    let is_past_deadline = state.deadline(n).is_some_and(|deadline| now >= deadline);
                    state.check_invariant(
                        "a question past its deadline is resolved",
                        !(state.is_open(n) && is_past_deadline),
                    );
                }
                let next = state.registry.next_deadline();
                state.check_invariant("no deadline is left in the past", next.is_none_or(|next| next > now));
            }
        }
        for n in 0..2 {
            let is_open_in_registry = state
                .registry
                .question(&token(question_number(n)))
                .map(|question| question.status == QuestionStatus::Open);
            let is_open = state.is_open(n);
            state.check_invariant(
                "the registry agrees with the observer",
                is_open_in_registry.unwrap_or(false) == is_open,
            );
        }
    }
}

impl Model for ConsentModel {
    type State = ModelState;
    type Action = ModelAction;

    fn init_states(&self) -> Vec<ModelState> {
        vec![ModelState {
            registry: ConsentHub::with_listeners(&LISTENERS).registry,
            tick: 0,
            links: [ModelLink::Open; 2],
            observed: [ObservedQuestion::default(); 2],
            is_session_ended: false,
            crash_tick: None,
            violations: BTreeSet::new(),
        }]
    }

    fn actions(&self, state: &ModelState, actions: &mut Vec<ModelAction>) {
        if !state.violations.is_empty() {
            return;
        }
        if state.is_session_ended {
            // The registry must refuse these actions after the end of the session.
            let refused_actions = |n| {
                [
                    ModelAction::Reply { n, listener: 0, claimed_listener: 0, accept: true },
                    ModelAction::Spend { n, same_arguments: true },
                ]
            };
            actions
                .extend((0..2).filter(|n| state.observed[*n].asked_tick.is_some()).flat_map(refused_actions));
            actions.extend((0..2).filter(|n| state.observed[*n].asked_tick.is_none()).map(ModelAction::Ask));
            return;
        }
        for n in 0..2 {
            if state.observed[n].asked_tick.is_none() {
                if state.tick == 0 {
                    actions.push(ModelAction::Ask(n));
                }
                continue;
            }
            for accept in [false, true] {
                for (listener, claimed_listener) in [(0, 0), (1, 1), (1, 0)] {
                    actions.push(ModelAction::Reply { n, listener, claimed_listener, accept });
                }
            }
            actions.extend([
                ModelAction::CrossingReplies(n),
                ModelAction::AcceptAndStop(n),
                ModelAction::CancelQuestion(n),
            ]);
            actions.extend([true, false].map(|same_arguments| ModelAction::Spend { n, same_arguments }));
        }
        if state.observed[1].asked_tick.is_some() && state.observed[1].extended_ms == 0 {
            actions.push(ModelAction::ExtendDeadline { n: 1, listener: 0 });
        }
        // Only Ada's connection is lost and resumed. Only Bob closes his subscription.
        match state.links[0] {
            ModelLink::Open => actions.push(ModelAction::LoseConnection(0)),
            ModelLink::LostAt(_) => actions.push(ModelAction::Reconnect(0)),
            ModelLink::Closed => {}
        }
        if state.links[1] == ModelLink::Open {
            actions.push(ModelAction::CloseSubscription(1));
        }
        actions.extend([ModelAction::StopSession(0), ModelAction::EndSession, ModelAction::Wake]);
        if state.crash_tick.is_none() && state.tick == 1 {
            actions.push(ModelAction::Crash);
        }
        if state.tick < TICKS {
            actions.push(ModelAction::Tick);
        }
    }

    fn next_state(&self, state: &ModelState, action: ModelAction) -> Option<ModelState> {
        let mut next = state.clone();
        self.apply_action(&mut next, action);
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("the invariants hold", |_, state: &ModelState| state.violations.is_empty()),
            Property::sometimes("both acceptances are spent", |_, state: &ModelState| {
                state.observed[0].is_spent && state.observed[1].is_spent
            }),
            Property::sometimes("spent after a crash", |_, state: &ModelState| {
                state.observed[0].is_spent && state.crash_tick.is_some()
            }),
            Property::sometimes("timeout after an extension", |_, state: &ModelState| {
                state.observed[1].extended_ms > 0
                    && state.observed[1].resolved == Some((true, ResolvedBy::Timeout))
            }),
            Property::sometimes("closed after a crash", |_, state: &ModelState| {
                state.crash_tick.is_some() && state.observed[0].resolved == Some((false, ResolvedBy::Closure))
            }),
            Property::sometimes("stopped", |_, state: &ModelState| {
                state.observed[0].resolved == Some((false, ResolvedBy::Stopped))
            }),
        ]
    }
}

#[test]
fn the_invariants_hold_in_every_order_of_actions() {
    let checker = ConsentModel::new().checker().threads(2).spawn_bfs().join();
    let (states, transitions) = (checker.unique_state_count(), checker.state_count());
    println!("{states} states, {transitions} transitions");
    if let Some(path) = checker.discovery("the invariants hold") {
        let violations = path.last_state().violations.clone();
        panic!("{violations:?}\n  {:?}", path.into_actions());
    }
    checker.assert_properties();
    assert!(states > 17_000, "the model has shrunk to {states} states");
}
