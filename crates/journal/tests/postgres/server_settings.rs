//! Which servers, schemas and addresses are accepted, and how refusals are reported.

use super::*;

fn refusal(server: &PostgresServer, replicas: u32) -> Option<String> {
    let mut settings = PostgresSettings::parse(&server.address()).unwrap();
    (settings.timeouts, settings.replicas) = (timeouts(), replicas);
    match PostgresDatabase::open(settings) {
        Ok(_) => None,
        Err(error @ JournalError::UnsafeSetting(_)) => Some(error.to_string()),
        Err(error) => panic!("{error:?}"),
    }
}

#[test]
fn a_server_that_could_lose_entries_is_refused_and_the_setting_is_named() {
    if !testing::postgres::is_installed("this test") {
        return;
    }
    for (setting, replicas, named) in [
        ("fsync=off", 0, "fsync is off"),
        ("full_page_writes=off", 0, "full_page_writes is off"),
        ("synchronous_commit=off", 0, "synchronous_commit is off"),
        ("synchronous_commit=local", 1, "synchronous_commit is local"),
        ("synchronous_commit=remote_write", 1, "synchronous_commit is remote_write"),
        ("synchronous_standby_names=", 1, "synchronous_standby_names is \"\""),
        ("synchronous_standby_names=FIRST 1 (b, c)", 2, "1 of 2 replicas"),
    ] {
        let text = refusal(&PostgresServer::start_with(&[setting]), replicas).unwrap();
        assert!(text.contains(named), "{setting}: {text}");
    }
    assert_eq!(refusal(&PostgresServer::start_with(&["synchronous_commit=local"]), 0), None);
}

#[test]
fn a_newer_schema_is_refused_and_stays_unchanged() {
    let Some(server) = start_server() else { return };
    drop(open_database(&server.address()).unwrap());
    server.sql("UPDATE sayso.schema_version SET version = 99");
    let error = open_database(&server.address()).unwrap_err();
    assert!(matches!(error, JournalError::NewerVersion { found: 99, known: 4 }), "{error:?}");
    assert_eq!(server.sql("SELECT version FROM sayso.schema_version"), "99");
}

#[test]
fn the_tables_of_earlier_versions_are_migrated_and_keep_their_content() {
    const TO_VERSION_2: &str = "DROP TABLE sayso.shard_count; UPDATE sayso.schema_version SET version = 2";
    let Some(server) = start_server() else { return };
    let database = open_database(&server.address()).unwrap();
    let open = |database| PostgresJournal::open(database, 0, &owner("hub"), &long_lease()).unwrap();
    open(&database).commit(&[session_opened("s"), event(1, "s", "a")]).unwrap();
    server.sql(TO_VERSION_2);
    server.sql(
        "DROP TABLE sayso.cluster, sayso.node, sayso.shared_text; UPDATE sayso.schema_version SET version = 1",
    );
    let database = open_database(&server.address()).unwrap();
    assert_eq!(event_ids(&mut open(&database)), ["a"]);
    assert_eq!(server.sql("SELECT version FROM sayso.schema_version"), "4");
    // A hub of an earlier version has one shard, unless it is a cluster.
    assert_eq!(database.fix_shard_count(None, 16).unwrap(), 1);
    assert!(ClusterTable::open(&database, 1).is_ok());
    server.sql("UPDATE sayso.cluster SET shards = 8");
    server.sql(TO_VERSION_2);
    assert_eq!(open_database(&server.address()).unwrap().fix_shard_count(None, 16).unwrap(), 8);
    // A database that nobody has used has no number yet.
    server.sql("DELETE FROM sayso.cluster; DELETE FROM sayso.shard");
    server.sql(TO_VERSION_2);
    assert_eq!(open_database(&server.address()).unwrap().fix_shard_count(None, 16).unwrap(), 16);
}

#[test]
fn nodes_that_start_together_create_the_tables_once() {
    let Some(server) = start_server() else { return };
    std::thread::scope(|scope| {
        let nodes: Vec<_> = (0..4).map(|_| scope.spawn(|| open_database(&server.address()))).collect();
        for node in nodes {
            node.join().unwrap().unwrap();
        }
    });
    assert_eq!(server.sql("SELECT count(*), max(version) FROM sayso.schema_version"), "1|4");
}

#[test]
fn errors_are_clear_and_contain_no_password() {
    let Some(server) = start_server() else { return };
    server.sql("CREATE USER reader PASSWORD 'geheim'");
    let as_reader = server.address().replace("postgres@", "reader:geheim@");
    let text = open_database(&as_reader).unwrap_err().to_string();
    assert!(text.contains("permission denied for database") && !text.contains("geheim"), "{text}");
    drop(open_database(&server.address()).unwrap());
    server.sql("GRANT USAGE ON SCHEMA sayso TO reader; GRANT SELECT ON ALL TABLES IN SCHEMA sayso TO reader");
    let text =
        PostgresJournal::open(&open_database(&as_reader).unwrap(), SHARD, &owner("hub"), &long_lease())
            .unwrap_err()
            .to_string();
    assert!(text.contains("permission denied for table shard") && !text.contains("geheim"), "{text}");
    let text = open_database("postgres://anna:geheim@127.0.0.1:1/hub").unwrap_err().to_string();
    assert!(text.contains("cannot connect to postgres://anna@127.0.0.1:1/hub"), "{text}");
    assert!(!text.contains("geheim"), "{text}");
}
