//! The graph of the explored model states, for the second invariant and for the check that every row was used.

use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};

use asp::state_machine::{State, TransitionRow, TransitionTarget, Trigger};

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
    /// Whether a message is allowed in this state.
    allows_message: bool,
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
        let (from, node) = self.node(old);
        node.allows_message |= matches!(event, ModelEvent::Message(_));
        if event != ModelEvent::BrokenChain {
            self.node(new).1.predecessors.push(from);
        }
    }

    fn node(&mut self, model_state: &ModelState) -> (u64, &mut StateNode) {
        let mut hasher = DefaultHasher::new();
        model_state.hash(&mut hasher);
        let key = hasher.finish();
        let new_node = || StateNode {
            model_state: model_state.clone(),
            predecessors: Vec::new(),
            allows_message: false,
        };
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

    /// Returns the live states in which no timer runs and no message is allowed.
    pub(crate) fn deadlocked_states(&self) -> Vec<&ModelState> {
        let is_live = |model_state: &ModelState| !model_state.has_ended() && model_state.violated.is_empty();
        let has_timer = |model_state: &ModelState| {
            model_state.sessions.iter().any(|session| session.next_deadline().is_some())
        };
        let stuck = self.nodes.values().filter(|node| !node.allows_message && !has_timer(&node.model_state));
        stuck.map(|node| &node.model_state).filter(|model_state| is_live(model_state)).collect()
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
