//! Commits of the journal in Postgres, compared with bare transactions of one statement that insert the same bytes into a
//! table with a primary key, on the same server, alternating in one run. Prints ratios. The server runs in the folder for
//! temporary files, with the settings that a new server has. `STANDBY=1` adds a synchronous standby on the same machine.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::cast_precision_loss)]

use std::time::{Duration, Instant};

use journal::{
    Journal, JournalEntry, LeaseSettings, Position, PostgresDatabase, PostgresJournal, PostgresSettings,
    ShardOwner,
};
use seal::UnixMillis;
use testing::postgres::PostgresServer;
use tokio::runtime::Runtime;
use tokio_postgres::{Client, NoTls, Statement};

const BODY_BYTES: usize = 700;
const ROUNDS: usize = 7;
const GOAL_FACTOR: f64 = 1.5;

fn main() {
    if !testing::postgres::is_installed("this benchmark") {
        return;
    }
    let mut server = PostgresServer::start();
    let standby = std::env::var_os("STANDBY").map(|_| {
        let standby = server.start_standby("b", &[]);
        server.restart_with(&["synchronous_standby_names=b"]);
        server.wait_for_sql("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'", "1");
        standby
    });
    let replication = if standby.is_some() { "with a synchronous standby" } else { "without a standby" };
    println!("events of {BODY_BYTES} bytes, best and median of {ROUNDS} rounds, {replication}");
    let mut bare = BareWriter::new(&server);
    let mut journal = JournalWriter::new(&server);
    for (batch, commits) in [(1, 500), (16, 300), (64, 150)] {
        compare(&mut bare, &mut journal, batch, commits);
    }
}

fn compare(bare: &mut BareWriter, journal: &mut JournalWriter, batch: usize, commits: usize) {
    for _ in 0..100 {
        bare.commit(batch);
        journal.commit(batch);
    }
    let mut rounds: [Vec<Duration>; 2] = Default::default();
    for _ in 0..ROUNDS {
        rounds[0].push(time(|| (0..commits).for_each(|_| bare.commit(batch))));
        rounds[1].push(time(|| (0..commits).for_each(|_| journal.commit(batch))));
    }
    println!("batch {batch}");
    for (rounds, name) in rounds.iter_mut().zip(["bare transaction", "journal"]) {
        rounds.sort();
        let rate = |index: usize| commits as f64 / rounds[index].as_secs_f64();
        let (best, median) = (rate(0), rate(ROUNDS / 2));
        println!(
            "{best:9.0} {median:9.0} commits per second, {:9.0} events per second  {name}",
            median * batch as f64
        );
    }
    let factor = |index: usize| rounds[1][index].as_secs_f64() / rounds[0][index].as_secs_f64();
    println!(
        "a commit takes {:.2} {:.2} times a bare transaction (goal {GOAL_FACTOR:.1})",
        factor(0),
        factor(ROUNDS / 2)
    );
}

fn time(run: impl FnOnce()) -> Duration {
    let started = Instant::now();
    run();
    started.elapsed()
}

/// Returns an id that grows with its position, as long as a UUID.
fn event_id(position: u64) -> String {
    format!("{position:036}")
}

struct BareWriter {
    runtime: Runtime,
    client: Client,
    insert: Statement,
    last_position: u64,
}

impl BareWriter {
    fn new(server: &PostgresServer) -> Self {
        server.sql(
            "CREATE TABLE bare (position bigint PRIMARY KEY, session bigint NOT NULL, at bigint NOT NULL,
             critical boolean NOT NULL, id bytea NOT NULL, body bytea NOT NULL)",
        );
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (client, insert) = runtime.block_on(async {
            let (client, connection) = tokio_postgres::connect(&server.address(), NoTls).await.unwrap();
            tokio::spawn(connection);
            let sql = "INSERT INTO bare SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::boolean[],
                       $5::bytea[], $6::bytea[])";
            let insert = client.prepare(sql).await.unwrap();
            (client, insert)
        });
        Self { runtime, client, insert, last_position: 0 }
    }

    fn commit(&mut self, batch: usize) {
        let first = self.last_position + 1;
        self.last_position += batch as u64;
        let numbers: Vec<i64> = (first..=self.last_position).map(u64::cast_signed).collect();
        let ids: Vec<String> = (first..=self.last_position).map(event_id).collect();
        let ids: Vec<&[u8]> = ids.iter().map(String::as_bytes).collect();
        let bodies = vec![&[b'a'; BODY_BYTES][..]; batch];
        let (zeros, flags) = (vec![0i64; batch], vec![false; batch]);
        let execute = async {
            self.client.execute(&self.insert, &[&numbers, &zeros, &zeros, &flags, &ids, &bodies]).await
        };
        self.runtime.block_on(execute).unwrap();
    }
}

struct JournalWriter {
    journal: PostgresJournal,
    last_position: u64,
}

impl JournalWriter {
    fn new(server: &PostgresServer) -> Self {
        let database = PostgresDatabase::open(PostgresSettings::parse(&server.address()).unwrap()).unwrap();
        let owner = ShardOwner { name: "benchmark".to_owned(), address: None };
        let mut journal = PostgresJournal::open(&database, 0, &owner, &LeaseSettings::default()).unwrap();
        journal
            .commit(&[JournalEntry::SessionOpened {
                id: "session",
                agent: "agent",
                principal: "principal",
                lease_expires_at: UnixMillis::new(0),
                record: b"{}",
            }])
            .unwrap();
        Self { journal, last_position: 0 }
    }

    fn commit(&mut self, batch: usize) {
        let first = self.last_position + 1;
        self.last_position += batch as u64;
        let ids: Vec<String> = (first..=self.last_position).map(event_id).collect();
        let entries: Vec<JournalEntry<'_>> = (first..)
            .zip(&ids)
            .map(|(position, id)| JournalEntry::Event {
                position: Position::new(position),
                session: "session",
                event_id: id,
                at: UnixMillis::new(0),
                is_critical: false,
                body: &[b'a'; BODY_BYTES],
            })
            .collect();
        self.journal.commit(&entries).unwrap();
    }
}
