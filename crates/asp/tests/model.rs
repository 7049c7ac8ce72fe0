//! The exhaustive model: two real sessions, every letter that either side could send, every timer, the broken chain.
//!
//! Bounds: two proposals, two commitments (one with an escrow), two escalations, all four timers, in both readings. A
//! letter is fed to both sessions at the same moment, and time passes only by a timer running out (an abstract tick), so
//! the worlds are finitely many; all of them are visited. The laws are judged by an onlooker who knows the messages and not
//! the table ([`laws`]); the second is computed on the graph that was explored ([`graph`]). For each law, copies of the table that
//! break it show that it would be noticed ([`broken`]).
//!
//! `cargo test -p asp --test all model -- --nocapture` prints how many worlds there are.

mod broken;
mod graph;
mod laws;
mod letters;
mod world;

use std::collections::BTreeSet;

use asp::Level::{Minimal, Standard};
use asp::machine::{PAGE, Reading, Table};
use laws::Law;
use stateright::{Checker, Model};
use world::{Bounds, Sides};

/// The bounds that the decisions state.
const FULL: Bounds =
    Bounds { proposals: 2, commits: 2, escalations: 2, crossing: false, levels: &[[Standard, Standard]] };

/// Less of everything, but messages cross with timers that run out, between sides of all levels (D12).
const CROSSING: Bounds = Bounds {
    proposals: 1,
    commits: 1,
    escalations: 1,
    crossing: true,
    levels: &[[Standard, Standard], [Minimal, Standard], [Standard, Minimal], [Minimal, Minimal]],
};

#[test]
fn the_laws_hold_in_the_open_reading() {
    assert_every_row_was_used(&hold(Reading::Open, FULL, 30_000));
}

#[test]
fn the_laws_hold_in_the_reading_of_the_list() {
    assert_every_row_was_used(&hold(Reading::Table, FULL, 27_000));
}

#[test]
fn the_laws_hold_when_messages_cross_with_timers_at_every_level() {
    hold(Reading::Open, CROSSING, 4200);
    hold(Reading::Table, CROSSING, 3800);
}

#[test]
fn each_law_is_broken_by_a_broken_table_and_no_other_is() {
    let mut shown = BTreeSet::new();
    for broken in broken::all() {
        let bounds = Bounds { proposals: 1, commits: broken.commits, escalations: 1, ..FULL };
        let checker = explore(broken.tables, Reading::Open, bounds);
        let found = broken_laws(&checker);
        println!("{}\n  broken by: {}", broken.law.words(), broken.what);
        assert_eq!(found, BTreeSet::from([broken.law]), "{}", broken.what);
        shown.insert(broken.law);
    }
    assert_eq!(shown, BTreeSet::from(Law::ALL));
}

/// Visits all worlds and fails with the way to the first that breaks a law. There must be as many worlds as are known to
/// be: a model that has shrunk proves less than it says.
fn hold(reading: Reading, bounds: Bounds, at_least: usize) -> impl Checker<Sides> {
    let stated = format!("{reading:?} reading, {bounds:?}, all timers as ticks");
    let checker = explore([&PAGE; 2], reading, bounds);
    let (worlds, steps) = (checker.unique_state_count(), checker.state_count());
    println!("{stated}: {worlds} worlds, {steps} steps");
    if let Some((law, path)) = checker.discoveries().into_iter().next() {
        let events = path.into_actions().into_iter();
        let way: Vec<_> = events.map(|event| checker.model().words(event)).collect();
        panic!("{law}\n  {}", way.join("\n  "));
    }
    let graph = checker.model().graph();
    assert_eq!(graph.len(), worlds, "the graph is the one that was checked");
    assert!(worlds >= at_least, "the model has shrunk to {worlds} worlds");
    assert!(graph.without_end().is_empty(), "no end: {:#?}", graph.without_end().first());
    assert!(graph.stuck().is_empty(), "no timer, no move: {:#?}", graph.stuck().first());
    drop(graph);
    checker
}

fn explore(tables: [&'static Table; 2], reading: Reading, bounds: Bounds) -> impl Checker<Sides> {
    Sides::new(tables, reading, bounds).checker().threads(2).spawn_bfs().join()
}

/// The laws that are broken somewhere in what was explored.
fn broken_laws(checker: &impl Checker<Sides>) -> BTreeSet<Law> {
    let found = checker.discoveries();
    let graph = checker.model().graph();
    let no_way_out = !graph.without_end().is_empty() || !graph.stuck().is_empty();
    let is_broken = |law: &Law| match law {
        Law::WayOut => no_way_out,
        _ => found.contains_key(law.words()),
    };
    Law::ALL.into_iter().filter(is_broken).collect()
}

fn assert_every_row_was_used(checker: &impl Checker<Sides>) {
    let model = checker.model();
    let rows = PAGE.rows().iter().filter(|row| row.listed || model.reading == Reading::Open);
    assert_eq!(model.graph().unused(rows), []);
}
