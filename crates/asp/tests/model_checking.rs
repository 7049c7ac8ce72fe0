//! Model checking: visits every state of a model. The model consists of two real sessions, every message that either side
//! could send, every timer, and a broken chain.
//!
//! The model is bounded: it has at most two proposals, two commitments (one with an escrow) and two escalations, and all five
//! timers. Both interpretations of "any state" are checked. A message is delivered to both sessions at the same moment, and
//! time passes only when a timer expires. The number of model states is therefore finite.
//!
//! An observer that knows the messages but not the table checks the invariants ([`invariants`]). The second invariant is
//! checked on the graph of all visited states ([`graph`]). For each invariant, broken copies of the table show that a violation
//! is detected ([`broken_tables`]).
//!
//! `cargo test -p asp --test all model -- --nocapture` prints the number of model states.

mod broken_tables;
mod graph;
mod invariants;
mod model_messages;
mod model_state;

use std::collections::BTreeSet;

use asp::ConformanceLevel::{Minimal, Standard};
use asp::state_machine::{AnyStateInterpretation, PROTOCOL_TABLE, TransitionTable};
use invariants::Invariant;
use model_state::{ModelBounds, SessionModel};
use stateright::{Checker, Model};

/// The bounds of the complete model.
const FULL: ModelBounds = ModelBounds {
    proposals: 2,
    commits: 2,
    escalations: 2,
    allows_crossing: false,
    levels: &[[Standard, Standard]],
};

/// Smaller bounds, but messages may cross with expiring timers, and each side has the minimal or the standard level (D12).
const CROSSING: ModelBounds = ModelBounds {
    proposals: 1,
    commits: 1,
    escalations: 1,
    allows_crossing: true,
    levels: &[[Standard, Standard], [Minimal, Standard], [Standard, Minimal], [Minimal, Minimal]],
};

#[test]
fn the_invariants_hold_with_every_live_state() {
    assert_every_row_was_used(&check_invariants(AnyStateInterpretation::EveryLiveState, FULL, 50_000));
}

#[test]
fn the_invariants_hold_with_the_listed_states_only() {
    assert_every_row_was_used(&check_invariants(AnyStateInterpretation::ListedOnly, FULL, 45_000));
}

#[test]
fn the_invariants_hold_when_messages_cross_with_timers_at_every_level() {
    check_invariants(AnyStateInterpretation::EveryLiveState, CROSSING, 6500);
    check_invariants(AnyStateInterpretation::ListedOnly, CROSSING, 6000);
}

#[test]
fn each_broken_table_violates_exactly_one_invariant() {
    let mut violated = BTreeSet::new();
    for broken_table in broken_tables::all() {
        let bounds = ModelBounds { proposals: 1, commits: broken_table.commits, escalations: 1, ..FULL };
        let checker = explore(broken_table.tables, AnyStateInterpretation::EveryLiveState, bounds);
        let found = violated_invariants(&checker);
        println!("{}\n  violated by: {}", broken_table.invariant.description(), broken_table.description);
        assert_eq!(found, BTreeSet::from([broken_table.invariant]), "{}", broken_table.description);
        violated.insert(broken_table.invariant);
    }
    assert_eq!(
        violated,
        BTreeSet::from(Invariant::ALL),
        "every invariant needs a broken table that violates it"
    );
}

/// Visits all model states, and fails with the path to the first violation. The model must have at least `min_states`
/// states, because a smaller model proves less.
fn check_invariants(
    any_state: AnyStateInterpretation,
    bounds: ModelBounds,
    min_states: usize,
) -> impl Checker<SessionModel> {
    let label = format!("{any_state:?} interpretation, {bounds:?}");
    let checker = explore([&PROTOCOL_TABLE; 2], any_state, bounds);
    let (state_count, step_count) = (checker.unique_state_count(), checker.state_count());
    println!("{label}: {state_count} states, {step_count} steps");
    if let Some((invariant, path)) = checker.discoveries().into_iter().next() {
        let events = path.into_actions().into_iter();
        let path: Vec<_> = events.map(|event| checker.model().description(event)).collect();
        panic!("{invariant}\n  {}", path.join("\n  "));
    }
    let graph = checker.model().graph();
    assert_eq!(graph.len(), state_count, "the graph contains exactly the checked states");
    assert!(state_count >= min_states, "the model has shrunk to {state_count} states");
    assert!(
        graph.states_without_terminal().is_empty(),
        "no terminal state reachable: {:#?}",
        graph.states_without_terminal().first()
    );
    assert!(
        graph.states_without_timer().is_empty(),
        "a live state without a timer: {:#?}",
        graph.states_without_timer().first()
    );
    drop(graph);
    checker
}

fn explore(
    tables: [&'static TransitionTable; 2],
    any_state: AnyStateInterpretation,
    bounds: ModelBounds,
) -> impl Checker<SessionModel> {
    SessionModel::new(tables, any_state, bounds).checker().threads(2).spawn_bfs().join()
}

/// Returns the invariants that are violated in the explored states.
fn violated_invariants(checker: &impl Checker<SessionModel>) -> BTreeSet<Invariant> {
    let found = checker.discoveries();
    let graph = checker.model().graph();
    let has_no_way_out =
        !graph.states_without_terminal().is_empty() || !graph.states_without_timer().is_empty();
    let is_violated = |invariant: &Invariant| match invariant {
        Invariant::TerminalReachable => has_no_way_out,
        _ => found.contains_key(invariant.description()),
    };
    Invariant::ALL.into_iter().filter(is_violated).collect()
}

fn assert_every_row_was_used(checker: &impl Checker<SessionModel>) {
    let model = checker.model();
    let rows = PROTOCOL_TABLE
        .rows()
        .iter()
        .filter(|row| row.is_listed || model.any_state == AnyStateInterpretation::EveryLiveState);
    assert_eq!(model.graph().unused_rows(rows), []);
}
