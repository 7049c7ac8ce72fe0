//! The model: its state, its events and its transitions.

use std::sync::{Mutex, MutexGuard};

use asp::session::{AspSession, Party, SessionRules};
use asp::state_machine::{AnyStateInterpretation, Role, State, Timer, TransitionTable, Trigger};
use asp::{AgentUri, AspLimits, ConformanceLevel};
use seal::UnixMillis;
use stateright::{Model, Property};

use super::graph::StateGraph;
use super::invariants::{Invariant, ObserverState, violated_invariants};
use super::model_messages::{INVITED, INVITER, ModelMessage, all_messages};

/// The bounds of the model.
#[derive(Clone, Debug)]
pub(crate) struct ModelBounds {
    /// Number of different proposals that each side may send.
    pub(crate) proposals: usize,
    /// Number of different commitments that each side may send.
    pub(crate) commits: usize,
    /// Maximum number of escalations in one session.
    pub(crate) escalations: usize,
    /// Whether a timer may expire on one side while a message from the other side is in transit.
    pub(crate) allows_crossing: bool,
    /// The pairs of levels that are tried.
    pub(crate) levels: &'static [[ConformanceLevel; 2]],
}

/// Two sessions with one table each, and all messages between them.
#[derive(Debug)]
pub(crate) struct SessionModel {
    pub(crate) tables: [&'static TransitionTable; 2],
    pub(crate) any_state: AnyStateInterpretation,
    pub(crate) bounds: ModelBounds,
    messages: Vec<ModelMessage>,
    /// The states explored so far.
    graph: Mutex<StateGraph>,
}

/// The sessions of both sides, and what the observer remembers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ModelState {
    pub(crate) sessions: [AspSession; 2],
    pub(crate) observer: ObserverState,
    /// Set while a timer has expired on one side only: the side on which the timer still runs, and the timer.
    pub(crate) late_timer: Option<(Role, Timer)>,
    /// The invariants that the last event violated. The successors of such a state are not explored.
    pub(crate) violated: Vec<Invariant>,
}

/// An event of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ModelEvent {
    /// The message with this index is delivered to both sides. If either side refuses it, neither side records it.
    Message(usize),
    /// A timer expires on both sides.
    Expiry(Timer),
    /// A timer expires on one side only.
    EarlyExpiry(Role, Timer),
    /// The timer expires on the other side too.
    LateExpiry,
    /// A participant's message links to an unknown hash.
    BrokenChain,
    /// The time on both sides advances to its maximum.
    EndOfTime,
}

impl SessionModel {
    pub(crate) fn new(
        tables: [&'static TransitionTable; 2],
        any_state: AnyStateInterpretation,
        bounds: ModelBounds,
    ) -> Self {
        Self { tables, any_state, messages: all_messages(&bounds), bounds, graph: Mutex::default() }
    }

    /// Returns the explored states.
    pub(crate) fn graph(&self) -> MutexGuard<'_, StateGraph> {
        self.graph.lock().expect("a model checker thread panicked")
    }

    fn message(&self, event: ModelEvent) -> Option<&ModelMessage> {
        match event {
            ModelEvent::Message(index) => self.messages.get(index),
            _ => None,
        }
    }

    /// Returns the trigger of the event.
    fn trigger(&self, event: ModelEvent) -> Option<Trigger> {
        match event {
            ModelEvent::Message(_) => {
                self.message(event).map(|message| Trigger::Message(message.performative()))
            }
            ModelEvent::Expiry(timer) | ModelEvent::EarlyExpiry(_, timer) => {
                Some(Trigger::TimerExpired(timer))
            }
            ModelEvent::BrokenChain => Some(Trigger::BrokenChain),
            ModelEvent::LateExpiry | ModelEvent::EndOfTime => None,
        }
    }

    /// Returns a description for traces.
    pub(crate) fn description(&self, event: ModelEvent) -> String {
        self.message(event).map_or_else(|| format!("{event:?}"), ModelMessage::description)
    }

    /// Returns the next state, or `None` if the event changes nothing because a message was correctly refused.
    fn next_model_state(&self, state: &ModelState, event: ModelEvent) -> Option<ModelState> {
        let mut next = match self.message(event) {
            None => apply_non_message_event(state.clone(), event),
            Some(message) => match deliver(state, message) {
                Ok(next) => next,
                Err(ModelRefusal::Unchanged) => return None,
                Err(ModelRefusal::Changed) => {
                    return Some(ModelState {
                        violated: vec![Invariant::RefusalChangesNothing],
                        ..state.clone()
                    });
                }
            },
        };
        next.violated = violated_invariants(state, &next, self.message(event));
        if next.sessions[0].state() != State::Escalated {
            next.observer.forget_escalation();
        }
        Some(next)
    }
}

/// Whether the session that refused a message was changed.
enum ModelRefusal {
    Unchanged,
    Changed,
}

/// Delivers a message. The sender's session handles it first, then the receiver's. A session that refuses must not
/// change. If the receiver refuses, the sender rolls back.
fn deliver(state: &ModelState, message: &ModelMessage) -> Result<ModelState, ModelRefusal> {
    let (sender, receiver) = (message.sender, message.sender.other());
    let [sender_before, receiver_before] = [sender, receiver].map(|role| &state.sessions[role as usize]);
    let mut sender_after = sender_before.clone();
    if sender_after.handle_message(&message.seen_by(sender)).is_err() {
        return Err(if sender_after == *sender_before {
            ModelRefusal::Unchanged
        } else {
            ModelRefusal::Changed
        });
    }
    let mut receiver_after = receiver_before.clone();
    let mut late_timer = state.late_timer;
    // The sender's timer has expired, so by the time of the message the receiver's timer has expired too.
    if let Some((_, timer)) = late_timer.take_if(|(role, _)| *role == receiver) {
        expire_timer(&mut receiver_after, timer);
    }
    let after_expiry = receiver_after.clone();
    if receiver_after.handle_message(&message.seen_by(receiver)).is_err() {
        return Err(if receiver_after == after_expiry {
            ModelRefusal::Unchanged
        } else {
            ModelRefusal::Changed
        });
    }
    let sessions =
        if sender == Role::Inviter { [sender_after, receiver_after] } else { [receiver_after, sender_after] };
    let observer = state.observer.after(message, sender_before.state(), sender_before.commitment());
    Ok(ModelState { sessions, observer, late_timer, violated: Vec::new() })
}

/// Applies an event that is not a message: timers expire, time ends, or the hash chain breaks.
fn apply_non_message_event(mut state: ModelState, event: ModelEvent) -> ModelState {
    match event {
        ModelEvent::Expiry(timer) => {
            state.sessions.iter_mut().for_each(|session| expire_timer(session, timer));
        }
        ModelEvent::EarlyExpiry(role, timer) => {
            expire_timer(&mut state.sessions[role as usize], timer);
            state.late_timer = Some((role.other(), timer));
        }
        ModelEvent::LateExpiry => {
            if let Some((role, timer)) = state.late_timer.take() {
                expire_timer(&mut state.sessions[role as usize], timer);
            }
        }
        // As with a message, timers that expired earlier are handled first.
        ModelEvent::BrokenChain => {
            let mut state = apply_non_message_event(state, ModelEvent::LateExpiry);
            for session in &mut state.sessions {
                session.handle_broken_chain(UnixMillis::new(0));
            }
            return state;
        }
        ModelEvent::EndOfTime => {
            state.sessions.iter_mut().for_each(|session| drop(session.handle_timeout(UnixMillis::MAX)));
        }
        ModelEvent::Message(_) => {}
    }
    state
}

/// Advances the session's time to the expiry of this timer.
fn expire_timer(session: &mut AspSession, timer: Timer) {
    if let Some(at) = session.deadline(timer) {
        session.handle_timeout(at);
    }
}

impl ModelState {
    pub(crate) fn has_ended(&self) -> bool {
        self.sessions.iter().all(|session| session.state().is_terminal())
    }

    pub(crate) fn is_timer_running(&self, timer: Timer) -> bool {
        self.sessions.iter().any(|session| session.deadline(timer).is_some())
    }
}

impl Model for SessionModel {
    type State = ModelState;
    type Action = ModelEvent;

    fn init_states(&self) -> Vec<ModelState> {
        let party = |agent, level| Party { agent: AgentUri::parse(agent).expect("a valid agent URI"), level };
        let session = |table, [inviter, invited]: [ConformanceLevel; 2]| {
            let rules = SessionRules { table, any_state: self.any_state };
            AspSession::new(party(INVITER, inviter), party(INVITED, invited), rules, &AspLimits::default())
        };
        let state = |levels: &[ConformanceLevel; 2]| ModelState {
            sessions: self.tables.map(|table| session(table, *levels)),
            observer: ObserverState::default(),
            late_timer: None,
            violated: Vec::new(),
        };
        self.bounds.levels.iter().map(state).collect()
    }

    fn actions(&self, state: &ModelState, events: &mut Vec<ModelEvent>) {
        self.graph().record_state(state);
        if !state.violated.is_empty() {
            return;
        }
        let may_escalate = state.observer.escalations < self.bounds.escalations;
        for (index, message) in self.messages.iter().enumerate() {
            if may_escalate || message.performative() != asp::Performative::Escalate {
                events.push(ModelEvent::Message(index));
            }
        }
        for timer in Timer::ALL.into_iter().filter(|timer| state.is_timer_running(*timer)) {
            match (self.bounds.allows_crossing, state.late_timer) {
                (false, _) => events.push(ModelEvent::Expiry(timer)),
                (true, None) => events.extend(Role::ALL.map(|role| ModelEvent::EarlyExpiry(role, timer))),
                (true, Some(_)) => {}
            }
        }
        if state.late_timer.is_some() {
            events.push(ModelEvent::LateExpiry);
        }
        events.push(ModelEvent::BrokenChain);
        if state.has_ended() {
            events.push(ModelEvent::EndOfTime);
        }
    }

    fn next_state(&self, state: &ModelState, event: ModelEvent) -> Option<ModelState> {
        let next = self.next_model_state(state, event)?;
        self.graph().record_step(state, event, self.trigger(event), &next);
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        macro_rules! properties {
            ($($invariant:ident)*) => {
                vec![$(Property::always(Invariant::$invariant.description(), |_, state: &ModelState| !state.violated.contains(&Invariant::$invariant))),*]
            };
        }
        properties![TerminalIsFinal CommitmentBeforeExecuting EscalationReturns RefusalChangesNothing SidesAgree SingleAcceptedCommitment OnlyKeptObligationsCount]
    }
}
