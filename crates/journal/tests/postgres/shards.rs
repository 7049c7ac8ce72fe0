//! Several shards in one process, which share connections.

use std::thread;

use super::*;

const COUNT: u16 = 8;

fn database_with(server: &PostgresServer, connections: usize) -> PostgresDatabase {
    let mut settings = PostgresSettings::parse(&server.address()).unwrap();
    settings.timeouts = timeouts();
    settings.connections = connections;
    PostgresDatabase::open(settings).unwrap()
}

fn open_all(
    database: &PostgresDatabase,
    lease: &LeaseSettings,
) -> Result<Vec<PostgresJournal>, JournalError> {
    PostgresJournal::open_all(database, COUNT, &owner("hub"), lease)
}

#[test]
fn shards_that_write_at_the_same_time_share_the_permitted_connections() {
    let Some(server) = start_server() else { return };
    let database = database_with(&server, 2);
    let mut journals = open_all(&database, &long_lease()).unwrap();
    thread::scope(|scope| {
        for journal in &mut journals {
            scope.spawn(|| {
                // The same ids in every shard.
                journal.commit(&[session_opened("s")]).unwrap();
                for number in 1..=30 {
                    journal.commit(&[event(number, "s", &format!("e{number}"))]).unwrap();
                }
            });
        }
    });
    let count = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'sayso'";
    assert_eq!(server.sql(count), "2");
    let expected: Vec<String> = (1..=30).map(|number| format!("e{number}")).collect();
    for journal in &mut journals {
        assert_eq!(event_ids(journal), expected);
    }
    drop(journals);
    // Each shard finds its own rows again.
    for journal in &mut open_all(&database, &long_lease()).unwrap() {
        assert_eq!(event_ids(journal), expected);
        assert_eq!(journal.restore().unwrap().sessions.len(), 1);
    }
}

#[test]
fn a_hub_gets_all_shards_or_none() {
    let Some(server) = start_server() else { return };
    let database = database_with(&server, 4);
    let other = PostgresJournal::open(&database, 3, &owner("other"), &long_lease()).unwrap();
    let error = open_all(&database, &long_lease()).unwrap_err();
    assert!(
        matches!(&error, JournalError::OwnedElsewhere { shard: 3, owner } if owner == "other"),
        "{error:?}"
    );
    assert_eq!(server.sql("SELECT string_agg(owner, ',') FROM sayso.shard"), "other");
    drop(other);
    let journals = open_all(&database, &long_lease()).unwrap();
    assert_eq!(server.sql("SELECT count(DISTINCT instance), count(*) FROM sayso.shard"), "1|8");
    drop(journals);
    assert_eq!(server.sql("SELECT count(owner) FROM sayso.shard"), "0");
}

#[test]
fn a_lost_shard_does_not_stop_the_others() {
    let Some(server) = start_server() else { return };
    let database = database_with(&server, 4);
    let lease = LeaseSettings { duration: Duration::from_millis(1500), ..long_lease() };
    let mut journals = open_all(&database, &lease).unwrap();
    let taken = PostgresJournal::open(&database, 3, &owner("other"), &take_over()).unwrap();
    let leases: Vec<_> = journals.iter().map(|journal| journal.lease().clone()).collect();
    // The renewal notices it, although the shard writes nothing.
    let deadline = std::time::Instant::now() + Duration::from_mins(1);
    while !leases[3].is_lost() {
        assert!(std::time::Instant::now() < deadline);
        thread::yield_now();
    }
    for (shard, journal) in journals.iter_mut().enumerate() {
        let result = journal.commit(&[session_opened("s")]);
        match shard {
            3 => assert!(matches!(result, Err(JournalError::OwnershipLost { shard: 3 })), "{result:?}"),
            _ => result.unwrap(),
        }
    }
    assert_eq!(leases.iter().filter(|lease| lease.is_lost()).count(), 1);
    drop(taken);
}

#[test]
fn every_shard_confirms_its_ownership_when_connections_reach_another_server() {
    let Some(mut server) = start_server() else { return };
    let database = database_with(&server, 2);
    let mut journals = open_all(&database, &long_lease()).unwrap();
    let epochs: Vec<_> = journals.iter().map(|journal| journal.lease().epoch()).collect();
    for journal in &mut journals {
        journal.commit(&[session_opened("s")]).unwrap();
    }
    let unchanged = journals.iter().map(|journal| journal.lease().epoch());
    assert!(
        unchanged.eq(epochs.iter().copied()),
        "a commit on a confirmed connection does not raise the epoch"
    );
    server.kill();
    server.restart();
    for (journal, epoch) in journals.iter_mut().zip(epochs) {
        journal.commit(&[event(1, "s", "a")]).unwrap();
        assert!(journal.lease().epoch() > epoch);
        assert_eq!(event_ids(journal), ["a"]);
    }
}

#[test]
fn the_number_of_shards_is_fixed_at_the_first_use() {
    let Some(server) = start_server() else { return };
    let database = database_with(&server, 2);
    assert_eq!(database.fix_shard_count(Some(4), 1).unwrap(), 4);
    assert_eq!(database.fix_shard_count(None, 1).unwrap(), 4);
    assert_eq!(database.fix_shard_count(Some(4), 16).unwrap(), 4);
    let error = database.fix_shard_count(Some(5), 1).unwrap_err();
    assert!(matches!(error, JournalError::ShardCount { stored: 4, configured: 5 }), "{error:?}");
    let error = ClusterTable::open(&database, 16).unwrap_err();
    assert!(matches!(error, JournalError::ShardCount { stored: 4, configured: 16 }), "{error:?}");
    assert_eq!(server.sql("SELECT count FROM sayso.shard_count"), "4");
}
