//! A primary with a synchronous standby.

use std::thread;

use testing::postgres_proxy::Proxy;

use super::*;

fn open_replicated(address: &str, replicas: u32) -> PostgresDatabase {
    let mut settings = PostgresSettings::parse(address).unwrap();
    settings.timeouts = PostgresTimeouts { statement: Duration::from_secs(3), ..timeouts() };
    settings.replicas = replicas;
    PostgresDatabase::open(settings).unwrap()
}

#[test]
fn acknowledged_batches_survive_the_loss_of_the_primary() {
    let Some(mut primary) = start_server() else { return };
    let standby = primary.start_standby("b", &[]);
    primary.restart_with(&["synchronous_standby_names=b"]);
    primary.wait_for_sql("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'", "1");
    let proxy = Proxy::start(&primary.socket());
    let mut journal = open_journal(&open_replicated(&proxy.address(), 0), "hub", &long_lease());
    let mut strict = PostgresJournal::open(
        &open_replicated(&proxy.address(), 1),
        SHARD + 1,
        &owner("strict"),
        &long_lease(),
    )
    .unwrap();
    journal.commit(&[session_opened("s")]).unwrap();
    strict.commit(&[session_opened("t")]).unwrap();
    for number in 1..=50 {
        journal.commit(&[event(number, "s", &format!("e{number}"))]).unwrap();
    }
    primary.kill();
    standby.promote();
    proxy.redirect(&standby.socket());
    proxy.cut();
    journal.commit(&[event(51, "s", "e51")]).unwrap();
    let expected: Vec<String> = (1..=51).map(|number| format!("e{number}")).collect();
    assert_eq!(event_ids(&mut journal), expected);
    // The new primary has no standby, so a journal that demands one does not write to it.
    let error = strict.commit(&[event(1, "t", "x")]).unwrap_err().to_string();
    assert!(error.contains("synchronous_standby_names"), "{error}");
}

#[test]
fn a_commit_that_only_the_primary_has_is_not_acknowledged() {
    let Some(mut primary) = start_server() else { return };
    let mut standby = primary.start_standby("b", &[]);
    primary.restart_with(&["synchronous_standby_names=b"]);
    primary.wait_for_sql("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'", "1");
    let mut journal = open_journal(&open_replicated(&primary.address(), 1), "hub", &long_lease());
    journal.commit(&[session_opened("s"), event(1, "s", "a")]).unwrap();
    journal.commit(&[event(2, "s", "b")]).unwrap();
    standby.kill();
    thread::scope(|scope| {
        let commit = scope.spawn(|| journal.commit(&[event(3, "s", "c")]));
        // Cancelling the wait makes the server report success with a warning, "committed locally".
        let waiting =
            "FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query LIKE '%INSERT INTO sayso.event%'";
        primary.wait_for_sql(&format!("SELECT count(*) {waiting}"), "1");
        primary.sql(&format!("SELECT pg_cancel_backend(pid) {waiting}"));
        primary.wait_for_sql("SELECT count(*) FROM sayso.event", "3");
        assert!(!commit.is_finished(), "acknowledged although the standby has not confirmed it");
        // When the standby is back, the journal finds the batch and acknowledges it.
        standby.restart();
        commit.join().unwrap().unwrap();
    });
    journal.commit(&[event(4, "s", "d")]).unwrap();
    assert_eq!(event_ids(&mut journal), ["a", "b", "c", "d"]);
}

/// Starts a primary with a standby. The setting that names the standby can be changed while the primary runs.
fn start_replicated() -> Option<(PostgresServer, PostgresServer)> {
    let primary = start_server()?;
    let standby = primary.start_standby("b", &[]);
    name_standbys(&primary, "b");
    primary.wait_for_sql("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'", "1");
    Some((primary, standby))
}

fn name_standbys(primary: &PostgresServer, names: &str) {
    primary.sql(&format!("ALTER SYSTEM SET synchronous_standby_names = '{names}'"));
    primary.sql("SELECT pg_reload_conf()");
    primary.wait_for_sql("SHOW synchronous_standby_names", names);
}

#[test]
fn nothing_is_written_after_the_setting_that_names_the_standbys_is_emptied() {
    let Some((primary, _standby)) = start_replicated() else { return };
    let mut journal = open_journal(&open_replicated(&primary.address(), 1), "hub", &long_lease());
    journal.commit(&[session_opened("s"), event(1, "s", "a")]).unwrap();
    journal.commit(&[event(2, "s", "b")]).unwrap();
    name_standbys(&primary, "");
    let error = journal.commit(&[event(3, "s", "c")]).unwrap_err();
    assert!(matches!(error, JournalError::UnsafeSetting(_)), "{error:?}");
    assert!(error.to_string().contains("synchronous_standby_names is \"\""), "{error}");
    assert_eq!(primary.sql("SELECT count(*) FROM sayso.event"), "2");
    // Other names are as good, and need no new connection by the caller.
    name_standbys(&primary, "FIRST 1 (b, c)");
    journal.commit(&[event(3, "s", "c")]).unwrap();
    name_standbys(&primary, "b");
    journal.commit(&[event(4, "s", "d")]).unwrap();
    assert_eq!(event_ids(&mut journal), ["a", "b", "c", "d"]);
}

#[test]
fn a_commit_that_is_released_because_the_setting_is_emptied_is_not_acknowledged() {
    let Some((primary, mut standby)) = start_replicated() else { return };
    let mut settings = PostgresSettings::parse(&primary.address()).unwrap();
    settings.timeouts =
        PostgresTimeouts { statement: Duration::from_mins(1), outcome: Duration::ZERO, ..timeouts() };
    settings.replicas = 1;
    let database = PostgresDatabase::open(settings).unwrap();
    let mut journal = open_journal(&database, "hub", &long_lease());
    journal.commit(&[session_opened("s"), event(1, "s", "a")]).unwrap();
    journal.commit(&[event(2, "s", "b")]).unwrap();
    standby.kill();
    thread::scope(|scope| {
        let commit = scope.spawn(|| journal.commit(&[event(3, "s", "c")]));
        let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'
                       AND query LIKE '%INSERT INTO sayso.event%'";
        primary.wait_for_sql(waiting, "1");
        name_standbys(&primary, "");
        let error = commit.join().unwrap().unwrap_err();
        assert!(matches!(error, JournalError::OutcomeUnknown(_)), "{error:?}");
        assert!(error.to_string().contains("synchronous_standby_names is \"\""), "{error}");
    });
    assert_eq!(primary.sql("SELECT count(*) FROM sayso.event"), "3");
    name_standbys(&primary, "b");
    standby.restart();
    // The journal finds out that the batch is stored, and continues after it.
    assert!(matches!(journal.commit(&[event(3, "s", "x")]), Err(JournalError::Conflict(_))));
    journal.commit(&[event(4, "s", "d")]).unwrap();
    assert_eq!(event_ids(&mut journal), ["a", "b", "c", "d"]);
}
