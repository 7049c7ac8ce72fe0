//! Compares durable publishing through the journal with bare appends of the same bytes with fdatasync, in batches of the same
//! size, on the same disk, alternating in one run, and prints ratios. Then measures how long a journal with a million events takes to open.
//! `JOURNAL_BENCH_DIR` selects a folder other than the one for temporary files.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::cast_precision_loss)]

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use journal::{Journal, JournalEntry, Position, SqliteJournal, SqliteSettings};
use seal::UnixMillis;
use tempfile::TempDir;

const BODY_BYTES: usize = 700;
const ROUNDS: usize = 7;
const SESSIONS: u64 = 8;
/// The goals for the ratio to a bare append, by the number of events in a batch.
const GOAL_RATIOS: [(usize, f64); 2] = [(64, 0.60), (512, 0.40)];

fn main() {
    let folder = std::env::var_os("JOURNAL_BENCH_DIR").map_or_else(std::env::temp_dir, Into::into);
    println!("events of {BODY_BYTES} bytes, best and median of {ROUNDS} rounds, in {}", folder.display());
    for (batch, commits) in [(1, 500), (16, 300), (64, 200), (512, 60)] {
        let folder = tempfile::tempdir_in(&folder).unwrap();
        compare(&folder, batch, commits);
    }
    bench_open_million(&tempfile::tempdir_in(&folder).unwrap());
}

fn compare(folder: &TempDir, batch: usize, commits: usize) {
    let mut bare = BaselineFile::new(&folder.path().join("bare"));
    let mut journal = JournalWriter::new(&folder.path().join("journal.db"), IdOrder::Ascending);
    let mut random_ids = JournalWriter::new(&folder.path().join("random.db"), IdOrder::Random);
    // Warm up, so that the log files have their full length and the indices have some depth.
    for writer in [&mut journal, &mut random_ids] {
        (0..40).for_each(|_| writer.commit(512));
    }
    (0..40).for_each(|_| bare.commit(512));
    let mut rounds: [Vec<Duration>; 3] = Default::default();
    for _ in 0..ROUNDS {
        rounds[0].push(time(|| (0..commits).for_each(|_| bare.commit(batch))));
        rounds[1].push(time(|| (0..commits).for_each(|_| journal.commit(batch))));
        rounds[2].push(time(|| (0..commits).for_each(|_| random_ids.commit(batch))));
    }
    for rounds in &mut rounds {
        rounds.sort();
    }
    let events = (batch * commits) as f64;
    let rate = |rounds: &[Duration], index: usize| events / rounds[index].as_secs_f64();
    println!("batch {batch}");
    for (rounds, name) in rounds.iter().zip(["bare append, fdatasync", "journal", "journal, random ids"]) {
        println!("{:9.0} {:9.0} events per second  {name}", rate(rounds, 0), rate(rounds, ROUNDS / 2));
    }
    let goal = GOAL_RATIOS.iter().find(|(events, _)| *events == batch);
    let goal = goal.map(|(_, ratio)| format!(" (goal {ratio:.2})")).unwrap_or_default();
    for (writer, name) in [(1, "journal"), (2, "journal, random ids")] {
        let ratio = |index| rate(&rounds[writer], index) / rate(&rounds[0], index);
        println!("{name}: {:.2} {:.2} of bare appends{goal}", ratio(0), ratio(ROUNDS / 2));
    }
}

/// Measures the time to open and restore a journal with a million events in eight open sessions, and the rate at which all events
/// are read.
fn bench_open_million(folder: &TempDir) {
    let path = folder.path().join("journal.db");
    let mut writer = JournalWriter::new(&path, IdOrder::Ascending);
    while writer.last_position < 1_000_000 {
        writer.commit(5000);
    }
    let size = writer.journal.size_bytes().unwrap();
    let mut best_time = Duration::MAX;
    drop(writer);
    for _ in 0..5 {
        let started = Instant::now();
        let mut journal = SqliteJournal::open(&path, &SqliteSettings::default()).unwrap();
        assert_eq!(journal.restore().unwrap().sessions.len() as u64, SESSIONS);
        best_time = best_time.min(started.elapsed());
    }
    println!(
        "open and restore with a million events ({} MB): {:.1} ms",
        size >> 20,
        best_time.as_secs_f64() * 1e3
    );
    let mut journal = SqliteJournal::open(&path, &SqliteSettings::default()).unwrap();
    let scan = time(|| {
        let (mut after, mut pages) = (Position::START, 0);
        while let Some(last_event) = journal.events(after, 1000).unwrap().last() {
            after = last_event.position;
            pages += 1;
        }
        assert!(pages > 0);
    });
    println!("read all events, with their checksums: {:.0} events per second", 1e6 / scan.as_secs_f64());
}

fn time(run: impl FnOnce()) -> Duration {
    let started = Instant::now();
    run();
    started.elapsed()
}

struct BaselineFile {
    file: File,
    buffer: Vec<u8>,
}

impl BaselineFile {
    fn new(path: &Path) -> Self {
        Self { file: File::create(path).unwrap(), buffer: Vec::new() }
    }

    fn commit(&mut self, batch: usize) {
        self.buffer.clear();
        for _ in 0..batch {
            self.buffer.extend_from_slice(&[b'a'; BODY_BYTES]);
        }
        self.file.write_all(&self.buffer).unwrap();
        self.file.sync_data().unwrap();
    }
}

#[derive(Clone, Copy)]
enum IdOrder {
    Ascending,
    Random,
}

struct JournalWriter {
    journal: SqliteJournal,
    id_order: IdOrder,
    last_position: u64,
    sessions: Vec<String>,
}

impl JournalWriter {
    fn new(path: &Path, id_order: IdOrder) -> Self {
        let mut journal = SqliteJournal::open(path, &SqliteSettings::default()).unwrap();
        let sessions: Vec<String> = (0..SESSIONS).map(|number| format!("session_{number}")).collect();
        for id in &sessions {
            let opened = JournalEntry::SessionOpened {
                id,
                agent: "bench",
                principal: "bench",
                lease_expires_at: UnixMillis::new(0),
                record: b"{}",
            };
            journal.commit(&[opened]).unwrap();
        }
        Self { journal, id_order, last_position: 0, sessions }
    }

    fn commit(&mut self, batch: usize) {
        let ids: Vec<String> =
            (1..=batch as u64).map(|next| self.event_id(self.last_position + next)).collect();
        let entries: Vec<JournalEntry<'_>> = (self.last_position + 1..)
            .zip(&ids)
            .map(|(number, event_id)| JournalEntry::Event {
                position: Position::new(number),
                session: &self.sessions[(number % SESSIONS) as usize],
                event_id,
                at: UnixMillis::new(number.cast_signed()),
                is_critical: false,
                body: &[b'a'; BODY_BYTES],
            })
            .collect();
        self.journal.commit(&entries).unwrap();
        self.last_position += batch as u64;
    }

    fn event_id(&self, number: u64) -> String {
        let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        match self.id_order {
            IdOrder::Ascending => format!("evt_{number:016x}{mixed:016x}"),
            IdOrder::Random => format!("evt_{:016x}{number:016x}", mixed ^ (mixed >> 29)),
        }
    }
}
