//! The journal in Postgres under faults. Every test runs its own servers; without Postgres, they are skipped.
//!
//! - `nodes`: several nodes share the shards of a database.
//! - `shards`: several shards in one process share connections.
//! - `ownership`: a second owner takes the shard; leases are renewed and released.
//! - `lost_acknowledgements`: crashes of the server and connections that break during a commit.
//! - `replication`: a synchronous standby, and its promotion.
//! - `import`: journals in files are copied into a database.
//! - `server_settings`: servers and schemas that are refused.

#![cfg(all(feature = "postgres", unix))]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test reports a failure by panicking"
)]

mod import;
mod lost_acknowledgements;
mod nodes;
mod ownership;
mod replication;
mod server_settings;
mod shards;

use std::time::Duration;

use journal::{
    ClusterTable, Journal, JournalEntry, JournalError, LeaseSettings, Position, PostgresDatabase,
    PostgresJournal, PostgresSettings, PostgresTimeouts, ShardOwner,
};
use seal::UnixMillis;
use testing::postgres::PostgresServer;

const SHARD: i32 = 7;

/// Time limits that keep the tests short.
fn timeouts() -> PostgresTimeouts {
    PostgresTimeouts {
        connect: Duration::from_secs(5),
        statement: Duration::from_secs(5),
        outcome: Duration::from_mins(1),
        ..PostgresTimeouts::default()
    }
}

fn open_database(address: &str) -> Result<PostgresDatabase, JournalError> {
    let mut settings = PostgresSettings::parse(address)?;
    settings.timeouts = timeouts();
    PostgresDatabase::open(settings)
}

fn owner(name: &str) -> ShardOwner {
    ShardOwner { name: name.to_owned(), address: None }
}

/// A lease that does not end during a test.
fn long_lease() -> LeaseSettings {
    LeaseSettings { duration: Duration::from_hours(1), max_wait: Duration::ZERO, take_over: false }
}

fn take_over() -> LeaseSettings {
    LeaseSettings { take_over: true, ..long_lease() }
}

fn open_journal(database: &PostgresDatabase, name: &str, lease: &LeaseSettings) -> PostgresJournal {
    PostgresJournal::open(database, SHARD, &owner(name), lease).unwrap()
}

fn session_opened(id: &str) -> JournalEntry<'_> {
    JournalEntry::SessionOpened {
        id,
        agent: "agent",
        principal: "owner",
        lease_expires_at: UnixMillis::new(60),
        record: b"{}",
    }
}

fn event<'a>(position: u64, session: &'a str, event_id: &'a str) -> JournalEntry<'a> {
    JournalEntry::Event {
        position: Position::new(position),
        session,
        event_id,
        at: UnixMillis::new(0),
        is_critical: false,
        body: event_id.as_bytes(),
    }
}

fn subscription_opened(id: &str) -> JournalEntry<'_> {
    JournalEntry::SubscriptionOpened { id, principal: "anna", record: b"terms" }
}

fn event_ids(journal: &mut PostgresJournal) -> Vec<String> {
    let events = journal.events(Position::START, usize::MAX).unwrap();
    events.into_iter().map(|event| event.event_id).collect()
}

/// Starts a server, or returns `None` if Postgres is not installed.
fn start_server() -> Option<PostgresServer> {
    testing::postgres::is_installed("this test").then(PostgresServer::start)
}
