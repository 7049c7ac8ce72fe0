//! `sayso validate` on a file of a million mixed events, beside the same check in memory on one core: how much of the
//! speed is left, what a second core adds, and how much memory it takes.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::cast_precision_loss)]

use std::hash::RandomState;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use aaep::check::{Checked, Validator};
use aaep::json::Tape;
use aaep::recording::{Limits, Place, Recording, Sequence};
use aaep::rule::{Face, Findings};

const EVENTS: usize = 1_000_000;
const ROUNDS: usize = 5;

fn main() {
    let Some(binary) = sayso_benches::binary() else {
        println!("skipped: build the binary first with `cargo build --release -p sayso-cli`");
        return;
    };
    let text = sayso_benches::Recorder::default().record(EVENTS);
    let events = text.lines().filter(|line| line.starts_with("{\"@context\"")).count();
    let file = std::env::temp_dir().join(format!("sayso-bench-{}.jsonl", std::process::id()));
    std::fs::write(&file, &text).expect("a file for the recording");
    println!("{events} events, {} MB, best of {ROUNDS} rounds", text.len() / 1_000_000);

    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let (mut memory, mut one, mut all) = (Duration::MAX, Run::worst(), Run::worst());
    for _ in 0..ROUNDS {
        memory = memory.min(in_memory(&text));
        one = one.best(Run::of(&binary, &file, 1));
        all = all.best(Run::of(&binary, &file, cores));
    }
    let _ = std::fs::remove_file(&file);

    let rate = |time: Duration| events as f64 / time.as_secs_f64();
    println!("{:<40} {:>12} {:>12} {:>10}", "", "events/s", "to memory", "MiB");
    println!("{:<40} {:>12.0} {:>12.2}", "in memory, check + session machine", rate(memory), 1.0);
    for (name, run) in [("sayso validate, one thread", one), ("sayso validate, every core", all)] {
        let ratio = memory.as_secs_f64() / run.time.as_secs_f64();
        println!("{name:<40} {:>12.0} {ratio:>12.2} {:>10.1}", rate(run.time), run.peak_kib as f64 / 1024.0);
    }
    println!("cores: {cores}; goal: one thread at least 0.70 of memory, under 64 MiB");
}

fn in_memory(text: &str) -> Duration {
    let begun = Instant::now();
    let validator = Validator::new();
    let mut tape = Tape::default();
    let mut findings = Findings::new(Face::Strict);
    let mut recording = Recording::new(Sequence::Auto, Limits::default(), RandomState::new());
    for line in text.lines() {
        let doc = tape.read(line).expect("JSON");
        match validator.check(&doc, &mut findings) {
            Checked::Event(step) => recording.event(&step.borrow(), Place::default(), &mut findings),
            Checked::Message(message) => recording.message(&message, Place::default(), &mut findings),
            _ => panic!("{line}"),
        }
    }
    assert!(findings.list().is_empty());
    begun.elapsed()
}

#[derive(Clone, Copy)]
struct Run {
    time: Duration,
    peak_kib: u64,
}

impl Run {
    fn worst() -> Self {
        Self { time: Duration::MAX, peak_kib: 0 }
    }

    /// The shorter time, and the larger memory.
    fn best(self, other: Self) -> Self {
        Self { time: self.time.min(other.time), peak_kib: self.peak_kib.max(other.peak_kib) }
    }

    fn of(binary: &Path, file: &Path, jobs: usize) -> Self {
        let begun = Instant::now();
        let mut child = Command::new(binary)
            .args(["validate", "--jobs", &jobs.to_string()])
            .arg(file)
            .stdout(Stdio::null())
            .spawn()
            .expect("sayso runs");
        let mut peak_kib = 0;
        loop {
            peak_kib = peak_kib.max(peak(&child));
            match child.try_wait().expect("sayso ends") {
                Some(status) => {
                    assert!(status.success());
                    return Self { time: begun.elapsed(), peak_kib };
                }
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        }
    }
}

/// The most memory that the child has had so far, where the system tells.
fn peak(child: &Child) -> u64 {
    std::fs::read_to_string(format!("/proc/{}/status", child.id()))
        .unwrap_or_default()
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.trim().parse().ok())
        .unwrap_or(0)
}
