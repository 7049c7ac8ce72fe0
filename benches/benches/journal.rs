//! Durable publishing through the journal beside bare appends of the same bytes with fdatasync, at equal batch, on the same
//! disk, in one run, turn by turn. Then how long a journal with a million events takes to open. Prints ratios.
//! `JOURNAL_BENCH_DIR` names another disk than the one with temporary files.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::cast_precision_loss)]

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use journal::{Entry, Journal, Position, Settings, Sqlite};
use seal::UnixMillis;
use tempfile::TempDir;

const BODY: usize = 700;
const ROUNDS: usize = 7;
const SESSIONS: u64 = 8;
const GOAL: f64 = 0.60;

fn main() {
    let folder = std::env::var_os("JOURNAL_BENCH_DIR").map_or_else(std::env::temp_dir, Into::into);
    println!("events of {BODY} bytes, the best and the middle of {ROUNDS} turns, in {}", folder.display());
    for (batch, commits) in [(1, 500), (16, 300), (64, 200), (512, 60)] {
        let folder = tempfile::tempdir_in(&folder).unwrap();
        compare(&folder, batch, commits);
    }
    million(&tempfile::tempdir_in(&folder).unwrap());
}

fn compare(folder: &TempDir, batch: usize, commits: usize) {
    let mut bare = Bare::new(&folder.path().join("bare"));
    let mut journal = Log::new(&folder.path().join("journal.db"), Ids::Growing);
    let mut random = Log::new(&folder.path().join("random.db"), Ids::Random);
    // Past the beginning: logs at their full length, indices of some depth.
    for log in [&mut journal, &mut random] {
        (0..40).for_each(|_| log.commit(512));
    }
    (0..40).for_each(|_| bare.commit(512));
    let mut turns: [Vec<Duration>; 3] = Default::default();
    for _ in 0..ROUNDS {
        turns[0].push(time(|| (0..commits).for_each(|_| bare.commit(batch))));
        turns[1].push(time(|| (0..commits).for_each(|_| journal.commit(batch))));
        turns[2].push(time(|| (0..commits).for_each(|_| random.commit(batch))));
    }
    for turns in &mut turns {
        turns.sort();
    }
    let events = (batch * commits) as f64;
    let rate = |turns: &[Duration], place: usize| events / turns[place].as_secs_f64();
    println!("batch {batch}");
    for (turns, name) in turns.iter().zip(["bare append, fdatasync", "journal", "journal, random ids"]) {
        println!("{:9.0} {:9.0} events a second  {name}", rate(turns, 0), rate(turns, ROUNDS / 2));
    }
    for (log, name) in [(1, "journal"), (2, "journal, random ids")] {
        let ratio = |place| rate(&turns[log], place) / rate(&turns[0], place);
        println!("{name}: {:.2} {:.2} of bare appends (goal {GOAL:.2})", ratio(0), ratio(ROUNDS / 2));
    }
}

/// A million events, thirty subscriptions and three hundred sessions, of which eight are open: how long until all is restored.
fn million(folder: &TempDir) {
    let path = folder.path().join("journal.db");
    let mut log = Log::new(&path, Ids::Growing);
    while log.last < 1_000_000 {
        log.commit(5000);
    }
    let size = log.journal.size().unwrap();
    let mut opened = Duration::MAX;
    drop(log);
    for _ in 0..5 {
        let begun = Instant::now();
        let mut journal = Sqlite::open(&path, &Settings::default()).unwrap();
        assert_eq!(journal.restore().unwrap().sessions.len() as u64, SESSIONS);
        opened = opened.min(begun.elapsed());
    }
    println!(
        "open and restore with a million events ({} MB): {:.1} ms",
        size >> 20,
        opened.as_secs_f64() * 1e3
    );
    let mut journal = Sqlite::open(&path, &Settings::default()).unwrap();
    let scan = time(|| {
        let (mut after, mut read) = (Position::START, 0);
        while let Some(last) = journal.events(after, 1000).unwrap().last() {
            after = last.position;
            read += 1;
        }
        assert!(read > 0);
    });
    println!("read them all, each with its sum: {:.0} events a second", 1e6 / scan.as_secs_f64());
}

fn time(run: impl FnOnce()) -> Duration {
    let begun = Instant::now();
    run();
    begun.elapsed()
}

struct Bare {
    file: File,
    buffer: Vec<u8>,
}

impl Bare {
    fn new(path: &Path) -> Self {
        Self { file: File::create(path).unwrap(), buffer: Vec::new() }
    }

    fn commit(&mut self, batch: usize) {
        self.buffer.clear();
        for _ in 0..batch {
            self.buffer.extend_from_slice(&[b'a'; BODY]);
        }
        self.file.write_all(&self.buffer).unwrap();
        self.file.sync_data().unwrap();
    }
}

#[derive(Clone, Copy)]
enum Ids {
    Growing,
    Random,
}

struct Log {
    journal: Sqlite,
    ids: Ids,
    last: u64,
    sessions: Vec<String>,
}

impl Log {
    fn new(path: &Path, ids: Ids) -> Self {
        let mut journal = Sqlite::open(path, &Settings::default()).unwrap();
        let sessions: Vec<String> = (0..SESSIONS).map(|number| format!("session_{number}")).collect();
        for id in &sessions {
            let opened = Entry::SessionOpened {
                id,
                agent: "bench",
                principal: "bench",
                lease: UnixMillis::new(0),
                record: b"{}",
            };
            journal.commit(&[opened]).unwrap();
        }
        Self { journal, ids, last: 0, sessions }
    }

    fn commit(&mut self, batch: usize) {
        let names: Vec<String> = (1..=batch as u64).map(|next| self.id(self.last + next)).collect();
        let entries: Vec<Entry<'_>> = (self.last + 1..)
            .zip(&names)
            .map(|(number, event_id)| Entry::Event {
                position: Position::new(number),
                session: &self.sessions[(number % SESSIONS) as usize],
                event_id,
                at: UnixMillis::new(number.cast_signed()),
                critical: false,
                body: &[b'a'; BODY],
            })
            .collect();
        self.journal.commit(&entries).unwrap();
        self.last += batch as u64;
    }

    fn id(&self, number: u64) -> String {
        let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        match self.ids {
            Ids::Growing => format!("evt_{number:016x}{mixed:016x}"),
            Ids::Random => format!("evt_{:016x}{number:016x}", mixed ^ (mixed >> 29)),
        }
    }
}
