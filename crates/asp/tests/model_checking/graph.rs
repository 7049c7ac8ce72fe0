//! The graph of the explored model states, for the second invariant and for the check that every row was used.

use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};

use asp::session::AspSession;
use asp::state_machine::{State, Timer, TransitionRow, TransitionTarget, Trigger};

use super::model_state::{ModelEvent, ModelState};

/// All visited model states and their predecessors.
#[derive(Debug, Default)]
pub(crate) struct StateGraph {
    nodes: HashMap<u64, StateNode>,
    /// The observed transitions.
    transitions: BTreeSet<(State, Trigger, State)>,
}

#[derive(Debug)]
struct StateNode {
    model_state: ModelState,
    /// The states from which a message or a timer leads here. A broken chain does not count.
    predecessors: Vec<u64>,
}

impl StateGraph {
    /// Records a visited model state.
    pub(crate) fn record_state(&mut self, model_state: &ModelState) {
        self.node(model_state);
    }

    /// Records that an event leads from one model state to another.
    pub(crate) fn record_step(
        &mut self,
        old: &ModelState,
        event: ModelEvent,
        trigger: Option<Trigger>,
        new: &ModelState,
    ) {
        if let Some(trigger) = trigger {
            let states =
                old.sessions.iter().zip(&new.sessions).map(|(old, new)| (old.state(), trigger, new.state()));
            self.transitions.extend(states);
        }
        let (from, _) = self.node(old);
        if event != ModelEvent::BrokenChain {
            self.node(new).1.predecessors.push(from);
        }
    }

    fn node(&mut self, model_state: &ModelState) -> (u64, &mut StateNode) {
        let mut hasher = DefaultHasher::new();
        model_state.hash(&mut hasher);
        let key = hasher.finish();
        let new_node = || StateNode { model_state: model_state.clone(), predecessors: Vec::new() };
        (key, self.nodes.entry(key).or_insert_with(new_node))
    }

    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns the live states from which no terminal state can be reached.
    pub(crate) fn states_without_terminal(&self) -> Vec<&ModelState> {
        // The successors of a violation are not explored, so a violation counts as an end.
        let is_end = |node: &StateNode| node.model_state.has_ended() || !node.model_state.violated.is_empty();
        let ends = self.nodes.iter().filter(|(_, node)| is_end(node));
        let mut queue: Vec<u64> = ends.map(|(key, _)| *key).collect();
        let mut can_end = BTreeSet::new();
        while let Some(key) = queue.pop() {
            if can_end.insert(key) {
                queue.extend(&self.nodes[&key].predecessors);
            }
        }
        let unending = self.nodes.iter().filter(|(key, _)| !can_end.contains(key));
        unending.map(|(_, node)| &node.model_state).collect()
    }

    /// Returns the model states in which a side is in a live state but no timer runs that would end the session. The response
    /// timer does not count, because it changes no state.
    pub(crate) fn states_without_timer(&self) -> Vec<&ModelState> {
        let has_timer = |session: &AspSession| {
            let mut timers = Timer::ALL.into_iter().filter(|timer| *timer != Timer::Response);
            timers.any(|timer| session.deadline(timer).is_some())
        };
        let is_stuck = |model_state: &&ModelState| {
            let mut sessions = model_state.sessions.iter();
            model_state.violated.is_empty()
                && sessions.any(|session| session.state().is_live() && !has_timer(session))
        };
        self.nodes.values().map(|node| &node.model_state).filter(is_stuck).collect()
    }

    /// Returns each row that was not used in one of its states, with that state.
    pub(crate) fn unused_rows<'r>(
        &self,
        rows: impl Iterator<Item = &'r TransitionRow>,
    ) -> Vec<(State, &'r TransitionRow)> {
        let is_used = |row: &TransitionRow, from: State| match row.target {
            TransitionTarget::Move(to) => self.transitions.contains(&(from, row.trigger, to)),
            TransitionTarget::Stay => self.transitions.contains(&(from, row.trigger, from)),
            // An escalation must have returned to at least three different states.
            TransitionTarget::Return => {
                let returns = self
                    .transitions
                    .iter()
                    .filter(|(old, trigger, _)| *old == from && *trigger == row.trigger);
                returns.filter(|(_, _, new)| new.is_live()).count() >= 3
            }
            // A refusal causes no transition.
            TransitionTarget::Refuse(_) => true,
        };
        let cells = rows.flat_map(|row| row.from.iter().map(move |from| (*from, row)));
        cells.filter(|(from, row)| !is_used(row, *from)).collect()
    }
}
