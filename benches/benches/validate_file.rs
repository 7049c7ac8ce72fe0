//! `sayso validate` on a file of a million mixed events, compared with the same check in memory on one core: the relative
//! speed, the gain from more cores, and the memory that it needs.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::cast_precision_loss)]

use std::hash::RandomState;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use aaep::check::{CheckedDocument, Validator};
use aaep::json::Tape;
use aaep::recording::{InputPosition, RecordingChecker, RecordingLimits, SequenceMode};
use aaep::rule::{Findings, ValidationMode};

const EVENTS: usize = 1_000_000;
const ROUNDS: usize = 5;

fn main() {
    let Some(binary) = sayso_benches::binary() else {
        println!("skipped: build the binary first with `cargo build --release -p sayso-cli`");
        return;
    };
    let text = sayso_benches::RecordingGenerator::default().generate(EVENTS);
    let events = text.lines().filter(|line| line.starts_with("{\"@context\"")).count();
    let file = std::env::temp_dir().join(format!("sayso-bench-{}.jsonl", std::process::id()));
    std::fs::write(&file, &text).expect("a file for the recording");
    println!("{events} events, {} MB, best of {ROUNDS} rounds", text.len() / 1_000_000);

    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let (mut in_memory_time, mut one, mut all) =
        (Duration::MAX, ValidateRun::initial(), ValidateRun::initial());
    for _ in 0..ROUNDS {
        in_memory_time = in_memory_time.min(measure_in_memory(&text));
        one = one.combine(ValidateRun::measure(&binary, &file, 1));
        all = all.combine(ValidateRun::measure(&binary, &file, cores));
    }
    let _ = std::fs::remove_file(&file);

    let rate = |time: Duration| events as f64 / time.as_secs_f64();
    println!("{:<40} {:>12} {:>12} {:>10}", "", "events/s", "vs in-memory", "MiB");
    println!("{:<40} {:>12.0} {:>12.2}", "in memory, check + session machine", rate(in_memory_time), 1.0);
    for (name, run) in [("sayso validate, one thread", one), ("sayso validate, every core", all)] {
        let ratio = in_memory_time.as_secs_f64() / run.time.as_secs_f64();
        println!("{name:<40} {:>12.0} {ratio:>12.2} {:>10.1}", rate(run.time), run.peak_kib as f64 / 1024.0);
    }
    println!("cores: {cores}; goal: one thread at least 0.70 of the in-memory speed, and below 64 MiB");
}

fn measure_in_memory(text: &str) -> Duration {
    let started = Instant::now();
    let validator = Validator::new();
    let mut tape = Tape::default();
    let mut findings = Findings::new(ValidationMode::Strict);
    let mut recording =
        RecordingChecker::new(SequenceMode::Auto, RecordingLimits::default(), RandomState::new());
    for line in text.lines() {
        let doc = tape.read(line).expect("JSON");
        match validator.check(&doc, &mut findings) {
            CheckedDocument::Event(event) => {
                recording.check_event(&event.borrow(), InputPosition::default(), &mut findings);
            }
            CheckedDocument::Message(message) => {
                recording.check_message(&message, InputPosition::default(), &mut findings);
            }
            _ => panic!("{line}"),
        }
    }
    assert!(findings.list().is_empty());
    started.elapsed()
}

#[derive(Clone, Copy)]
struct ValidateRun {
    time: Duration,
    peak_kib: u64,
}

impl ValidateRun {
    fn initial() -> Self {
        Self { time: Duration::MAX, peak_kib: 0 }
    }

    /// Returns the shorter time and the larger memory.
    fn combine(self, other: Self) -> Self {
        Self { time: self.time.min(other.time), peak_kib: self.peak_kib.max(other.peak_kib) }
    }

    fn measure(binary: &Path, file: &Path, jobs: usize) -> Self {
        let started = Instant::now();
        let mut child = Command::new(binary)
            .args(["validate", "--jobs", &jobs.to_string()])
            .arg(file)
            .stdout(Stdio::null())
            .spawn()
            .expect("sayso runs");
        let mut peak_kib = 0;
        loop {
            peak_kib = peak_kib.max(peak_memory_kib(&child));
            match child.try_wait().expect("sayso ends") {
                Some(status) => {
                    assert!(status.success());
                    return Self { time: started.elapsed(), peak_kib };
                }
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        }
    }
}

/// Returns the peak memory of the child so far, if the system reports it.
fn peak_memory_kib(child: &Child) -> u64 {
    std::fs::read_to_string(format!("/proc/{}/status", child.id()))
        .unwrap_or_default()
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.trim().parse().ok())
        .unwrap_or(0)
}
