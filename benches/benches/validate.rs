//! Measures the events per second of the JSON reader, the typed parser, the strict check, and the check with the session machine.
//! Compares them in the same run with `serde_json` into plain typed structs and with the `jsonschema` crate, and prints ratios.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::cast_precision_loss)]

#[path = "validate/serde_peer.rs"]
mod serde_peer;

use std::hash::RandomState;
use std::hint::black_box;
use std::time::{Duration, Instant};

use aaep::check::{CheckedDocument, Validator};
use aaep::event::Event;
use aaep::json::Tape;
use aaep::recording::{InputPosition, RecordingChecker, RecordingLimits, SequenceMode};
use aaep::rule::{Findings, ValidationMode};

const EVENTS: usize = 20_000;
const ROUNDS: usize = 15;

fn main() {
    let text = sayso_benches::RecordingGenerator::default().generate(EVENTS);
    // Replies are only for the session machine; the parsers are compared on events.
    let lines: Vec<&str> = text.lines().collect();
    let events: Vec<&str> = lines.iter().copied().filter(|line| line.starts_with("{\"@context\"")).collect();
    let bytes: usize = events.iter().map(|line| line.len()).sum();
    println!(
        "{} events, {} bytes each on average, best of {ROUNDS} rounds",
        events.len(),
        bytes / events.len()
    );

    let typed: Vec<_> = events.iter().map(|line| (serde_peer::parser_of(line), *line)).collect();
    let schemas = serde_peer::Schemas::load();
    let checked: Vec<_> = events.iter().map(|line| (schemas.index_of(line), *line)).collect();
    let validator = Validator::new();
    let mut tape = Tape::default();

    let mut contenders: Vec<Contender<'_>> = vec![
        Contender::new("serde_json, plain typed structs", || {
            for (parse, line) in &typed {
                parse(black_box(line));
            }
        }),
        Contender::new("serde_json Value + jsonschema", || {
            for (schema, line) in &checked {
                assert!(schemas.accepts(*schema, black_box(line)));
            }
        }),
        Contender::new("aaep: read into a tape", || {
            let mut tape = Tape::default();
            for line in &events {
                black_box(tape.read(black_box(line)).is_ok());
            }
        }),
        Contender::new("aaep: read into typed events", || {
            for line in &events {
                black_box(Event::parse(black_box(line)));
            }
        }),
        Contender::new("aaep: strict check, all findings", || {
            let mut findings = Findings::new(ValidationMode::Strict);
            for line in &events {
                if let Ok(doc) = tape.read(black_box(line)) {
                    black_box(validator.check(&doc, &mut findings));
                }
            }
            assert!(findings.list().is_empty(), "{:?}", findings.list().first());
        }),
        Contender::new("aaep: strict check + session machine", || {
            let mut tape = Tape::default();
            let mut findings = Findings::new(ValidationMode::Strict);
            let mut recording =
                RecordingChecker::new(SequenceMode::Always, RecordingLimits::default(), RandomState::new());
            for line in &lines {
                if let Ok(doc) = tape.read(black_box(line)) {
                    match validator.check(&doc, &mut findings) {
                        CheckedDocument::Event(event) => {
                            recording.check_event(&event.borrow(), InputPosition::default(), &mut findings);
                        }
                        CheckedDocument::Message(message) => {
                            recording.check_message(&message, InputPosition::default(), &mut findings);
                        }
                        _ => {}
                    }
                }
            }
            assert!(findings.list().is_empty(), "{:?}", findings.list().first());
            assert!(recording.finish(&findings).is_empty());
        }),
    ];
    // Round by round, so that background load affects all contenders equally.
    for _ in 0..ROUNDS {
        for contender in &mut contenders {
            contender.run_round();
        }
    }
    let typed_time = contenders[0].best;
    let schema_time = contenders[1].best;
    println!("{:<40} {:>12} {:>14} {:>16}", "", "events/s", "time / typed", "speed / schema");
    for contender in &contenders {
        let rate = events.len() as f64 / contender.best.as_secs_f64();
        println!(
            "{:<40} {:>12.0} {:>14.2} {:>16.2}",
            contender.name,
            rate,
            contender.best.as_secs_f64() / typed_time.as_secs_f64(),
            schema_time.as_secs_f64() / contender.best.as_secs_f64()
        );
    }
    println!(
        "goal: strict check at most 1.30 times the typed parse, at least 3.00 times as fast as the schema crate"
    );
    println!("schemas: {}", schemas.origin);
}

struct Contender<'c> {
    name: &'static str,
    run: Box<dyn FnMut() + 'c>,
    best: Duration,
}

impl<'c> Contender<'c> {
    fn new(name: &'static str, run: impl FnMut() + 'c) -> Self {
        Self { name, run: Box::new(run), best: Duration::MAX }
    }

    fn run_round(&mut self) {
        let started = Instant::now();
        (self.run)();
        self.best = self.best.min(started.elapsed());
    }
}
