//! Ownership of a shard: fencing, leases and release.

use super::*;

#[test]
fn a_former_owner_is_fenced_out_and_no_part_of_its_batch_is_stored() {
    let Some(server) = start_server() else { return };
    let database = open_database(&server.address()).unwrap();
    let mut first = open_journal(&database, "first", &long_lease());
    first.commit(&[session_opened("s"), event(1, "s", "a")]).unwrap();
    let mut second = open_journal(&database, "second", &take_over());
    assert!(second.lease().epoch() > first.lease().epoch());
    let late = [event(2, "s", "late"), subscription_opened("late"), session_opened("late")];
    for _ in 0..2 {
        let error = first.commit(&late).unwrap_err();
        assert!(matches!(error, JournalError::OwnershipLost { shard: SHARD }), "{error:?}");
    }
    assert!(matches!(first.restore(), Err(JournalError::OwnershipLost { .. })));
    assert!(matches!(first.events(Position::START, 9), Err(JournalError::OwnershipLost { .. })));
    assert!(first.lease().is_lost() && !second.lease().is_lost());
    assert_eq!(event_ids(&mut second), ["a"]);
    assert_eq!(second.restore().unwrap().subscriptions, []);
    assert_eq!(second.session("late").unwrap(), None);
    second.commit(&[event(2, "s", "b")]).unwrap();
    // Dropping the former owner does not release the shard of the new one.
    drop(first);
    second.commit(&[event(3, "s", "c")]).unwrap();
    assert_eq!(event_ids(&mut second), ["a", "b", "c"]);
}

#[test]
fn a_former_owner_cannot_trim() {
    let Some(server) = start_server() else { return };
    let database = open_database(&server.address()).unwrap();
    let mut first = open_journal(&database, "first", &long_lease());
    let end = JournalEntry::SessionEnded { id: "s", at: UnixMillis::new(1) };
    first.commit(&[session_opened("s"), event(1, "s", "a"), end]).unwrap();
    let mut second = open_journal(&database, "second", &take_over());
    let retention = journal::Retention { max_event_age_ms: Some(0), ..Default::default() };
    let result = first.trim(&retention, UnixMillis::new(1_000_000));
    assert!(matches!(result, Err(JournalError::OwnershipLost { .. })), "{result:?}");
    assert_eq!(event_ids(&mut second), ["a"]);
}

#[test]
fn a_commit_that_waits_for_the_lock_of_a_new_owner_is_refused() {
    let Some(server) = start_server() else { return };
    let database = open_database(&server.address()).unwrap();
    let mut first = open_journal(&database, "first", &long_lease());
    first.commit(&[session_opened("s")]).unwrap();
    // Another transaction has raised the epoch but has not committed yet.
    let mut raise = server.spawn_sql(
        "BEGIN; UPDATE sayso.shard SET epoch = epoch + 1, instance = 'x';
         DO $$ BEGIN WHILE NOT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock') LOOP
         PERFORM pg_sleep(0.01); PERFORM pg_stat_clear_snapshot(); END LOOP; END $$; COMMIT",
    );
    server.wait_for_sql(
        "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'BEGIN; UPDATE%' AND wait_event = 'PgSleep'",
        "1",
    );
    let result = first.commit(&[event(1, "s", "a")]);
    assert!(matches!(result, Err(JournalError::OwnershipLost { .. })), "{result:?}");
    assert!(raise.wait().unwrap().success());
    assert_eq!(server.sql("SELECT count(*) FROM sayso.event"), "0");
}

#[test]
fn a_shard_with_a_lease_is_refused_until_it_is_released_or_ends() {
    let Some(server) = start_server() else { return };
    let database = open_database(&server.address()).unwrap();
    let mut first = open_journal(&database, "hub-1", &long_lease());
    first.commit(&[session_opened("s")]).unwrap();
    let refused = PostgresJournal::open(&database, SHARD, &owner("hub-2"), &long_lease());
    let text = refused.unwrap_err().to_string();
    assert!(text.contains("shard 7 belongs to hub-1"), "{text}");
    // Another shard is free.
    drop(PostgresJournal::open(&database, SHARD + 1, &owner("hub-2"), &long_lease()).unwrap());
    drop(first);
    assert_eq!(server.sql("SELECT owner IS NULL AND lease_until IS NULL FROM sayso.shard WHERE id = 7"), "t");
    let mut second = open_journal(&database, "hub-2", &long_lease());
    assert_eq!(second.restore().unwrap().sessions.len(), 1);
    // A process that was killed releases nothing, but its lease ends by the clock of the database.
    server.sql("UPDATE sayso.shard SET lease_until = clock_timestamp() - interval '1 second' WHERE id = 7");
    let mut third = open_journal(&database, "hub-3", &long_lease());
    third.commit(&[event(1, "s", "a")]).unwrap();
    assert!(matches!(second.commit(&[event(1, "s", "b")]), Err(JournalError::OwnershipLost { .. })));
}

#[test]
fn a_lease_is_renewed_and_its_loss_is_noticed_without_a_commit() {
    let Some(server) = start_server() else { return };
    let database = open_database(&server.address()).unwrap();
    let lease = LeaseSettings { duration: Duration::from_millis(300), ..long_lease() };
    let journal = open_journal(&database, "first", &lease);
    let first_end = server.sql("SELECT lease_until FROM sayso.shard WHERE id = 7");
    server.wait_for_sql(&format!("SELECT lease_until > '{first_end}' FROM sayso.shard WHERE id = 7"), "t");
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let lost = journal.lease().lost();
    let second = open_journal(&database, "second", &take_over());
    runtime.block_on(lost);
    assert!(journal.lease().is_lost());
    drop(journal);
    assert_eq!(server.sql("SELECT owner FROM sayso.shard WHERE id = 7"), "second");
    drop(second);
}

#[test]
fn the_journal_works_inside_a_runtime() {
    let Some(server) = start_server() else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let database = open_database(&server.address()).unwrap();
        let mut journal = open_journal(&database, "first", &long_lease());
        journal.commit(&[session_opened("s"), event(1, "s", "a")]).unwrap();
        assert_eq!(event_ids(&mut journal), ["a"]);
    });
}
