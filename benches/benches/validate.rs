//! Events in a second: our reader, the typed parse, the strict check, and the check with the session machine, beside
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::cast_precision_loss)]
//! `serde_json` into plain typed structs and the `jsonschema` crate, in one run. Prints ratios.

#[path = "validate/peer.rs"]
mod peer;

use std::hash::RandomState;
use std::hint::black_box;
use std::time::{Duration, Instant};

use aaep::check::{Checked, Validator};
use aaep::event::Event;
use aaep::json::Tape;
use aaep::recording::{Limits, Place, Recording, Sequence};
use aaep::rule::{Face, Findings};

const EVENTS: usize = 20_000;
const ROUNDS: usize = 15;

fn main() {
    let text = sayso_benches::Recorder::default().record(EVENTS);
    // Replies are for the session machine; the parsers are compared on events.
    let lines: Vec<&str> = text.lines().collect();
    let events: Vec<&str> = lines.iter().copied().filter(|line| line.starts_with("{\"@context\"")).collect();
    let bytes: usize = events.iter().map(|line| line.len()).sum();
    println!(
        "{} events, {} bytes each on average, best of {ROUNDS} rounds",
        events.len(),
        bytes / events.len()
    );

    let typed: Vec<_> = events.iter().map(|line| (peer::parser_of(line), *line)).collect();
    let schemas = peer::Schemas::load();
    let checked: Vec<_> = events.iter().map(|line| (schemas.index_of(line), *line)).collect();
    let validator = Validator::new();
    let mut tape = Tape::default();

    let mut contests: Vec<Contest<'_>> = vec![
        Contest::new("serde_json, plain typed structs", || {
            for (parse, line) in &typed {
                parse(black_box(line));
            }
        }),
        Contest::new("serde_json Value + jsonschema", || {
            for (schema, line) in &checked {
                assert!(schemas.accepts(*schema, black_box(line)));
            }
        }),
        Contest::new("aaep: read to a tape", || {
            let mut tape = Tape::default();
            for line in &events {
                black_box(tape.read(black_box(line)).is_ok());
            }
        }),
        Contest::new("aaep: read to typed events", || {
            for line in &events {
                black_box(Event::parse(black_box(line)));
            }
        }),
        Contest::new("aaep: strict check, all findings", || {
            let mut findings = Findings::new(Face::Strict);
            for line in &events {
                if let Ok(doc) = tape.read(black_box(line)) {
                    black_box(validator.check(&doc, &mut findings));
                }
            }
            assert!(findings.list().is_empty(), "{:?}", findings.list().first());
        }),
        Contest::new("aaep: strict check + session machine", || {
            let mut tape = Tape::default();
            let mut findings = Findings::new(Face::Strict);
            let mut recording = Recording::new(Sequence::Always, Limits::default(), RandomState::new());
            for line in &lines {
                if let Ok(doc) = tape.read(black_box(line)) {
                    match validator.check(&doc, &mut findings) {
                        Checked::Event(step) => {
                            recording.event(&step.borrow(), Place::default(), &mut findings);
                        }
                        Checked::Message(message) => {
                            recording.message(&message, Place::default(), &mut findings);
                        }
                        _ => {}
                    }
                }
            }
            assert!(findings.list().is_empty(), "{:?}", findings.list().first());
            assert!(recording.finish().is_empty());
        }),
    ];
    // Round by round, so that a busy moment of the machine falls on all alike.
    for _ in 0..ROUNDS {
        for contest in &mut contests {
            contest.round();
        }
    }
    let floor = contests[0].best;
    let crate_time = contests[1].best;
    println!("{:<40} {:>12} {:>14} {:>16}", "", "events/s", "time / typed", "speed / schema");
    for contest in &contests {
        let rate = events.len() as f64 / contest.best.as_secs_f64();
        println!(
            "{:<40} {:>12.0} {:>14.2} {:>16.2}",
            contest.name,
            rate,
            contest.best.as_secs_f64() / floor.as_secs_f64(),
            crate_time.as_secs_f64() / contest.best.as_secs_f64()
        );
    }
    println!(
        "goal: strict check at most 1.30 times the typed parse, at least 2.00 times as fast as the schema crate"
    );
    println!("schemas of the peer: {}", schemas.origin);
}

struct Contest<'c> {
    name: &'static str,
    run: Box<dyn FnMut() + 'c>,
    best: Duration,
}

impl<'c> Contest<'c> {
    fn new(name: &'static str, run: impl FnMut() + 'c) -> Self {
        Self { name, run: Box::new(run), best: Duration::MAX }
    }

    fn round(&mut self) {
        let begun = Instant::now();
        (self.run)();
        self.best = self.best.min(begun.elapsed());
    }
}
