//! The exhaustive model.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test says what went wrong by panicking"
)]

#[path = "model/graph.rs"]
mod graph;
#[path = "model/laws.rs"]
mod laws;
#[path = "model/letters.rs"]
mod letters;
#[path = "model/world.rs"]
mod world;

use asp::Level;
use asp::machine::{PAGE, Reading};
use graph::Graph;
use stateright::{Checker, Model};
use world::{Bounds, Sides};

const FULL: Bounds = Bounds {
    proposals: 2,
    commits: 2,
    escalations: 2,
    crossing: false,
    levels: &[[Level::Standard, Level::Standard]],
};

#[test]
fn measure() {
    let g = |n: &str, d: usize| std::env::var(n).ok().and_then(|v| v.parse().ok()).unwrap_or(d);
    let bounds = Bounds {
        proposals: g("P", 2),
        commits: g("C", 2),
        escalations: g("E", 2),
        crossing: g("X", 0) == 1,
        ..FULL
    };
    for reading in Reading::ALL {
        let start = std::time::Instant::now();
        let checker = Sides::new([&PAGE; 2], reading, bounds.clone()).checker().threads(2).spawn_bfs().join();
        println!(
            "{reading:?} {} unique {} generated depth {} {:?}",
            checker.unique_state_count(),
            checker.state_count(),
            checker.max_depth(),
            start.elapsed()
        );
        for (name, path) in checker.discoveries() {
            println!("{name}");
            for e in path.into_actions() {
                println!("   {}", checker.model().words(e));
            }
        }
        if g("G", 0) == 1 {
            let start = std::time::Instant::now();
            let graph = Graph::of(&Sides::new([&PAGE; 2], reading, bounds.clone()));
            println!(
                "{} worlds {} no end {} stuck unused {} {:?}",
                graph.worlds.len(),
                graph.without_end().len(),
                graph.stuck().len(),
                graph.unused(PAGE.rows().iter().filter(|r| r.listed || reading == Reading::Open)).len(),
                start.elapsed()
            );
            println!("ended {}", graph.worlds.iter().filter(|w| w.has_ended()).count());
        }
    }
}
