//! `sayso serve --journal postgres://…`: the real hub with its journal in a Postgres server of its own.

use std::path::Path;
use std::process::{Command, Output};

use testing::hub::HubProcess;
use testing::messages::REPLY_CAPABILITIES;
use testing::postgres::PostgresServer;

use super::{crash_recovery, random_kills};

fn hub_command(address: &str, folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sayso"));
    command.args([
        "serve",
        "--open",
        "--listen",
        "127.0.0.1:0",
        "--journal-lease",
        "1s",
        "--journal",
        address,
    ]);
    command.arg("--data").arg(folder);
    command
}

fn start_hub(server: &PostgresServer, folder: &Path) -> HubProcess {
    HubProcess::start_command(&mut hub_command(&server.address(), folder))
}

fn start_server(test: &str) -> Option<PostgresServer> {
    testing::postgres::is_installed(test).then(PostgresServer::start)
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn acknowledged_data_survives_a_kill_of_the_hub() {
    let Some(server) = start_server("acknowledged_data_survives_a_kill_of_the_hub") else { return };
    let folder = tempfile::tempdir().unwrap();
    crash_recovery::assert_data_survives_a_kill(&|| start_hub(&server, folder.path()));
    assert!(!folder.path().join("journal.sqlite").exists());
}

#[test]
fn nothing_acknowledged_is_lost_after_repeated_kills_of_the_hub() {
    let Some(server) = start_server("nothing_acknowledged_is_lost_after_repeated_kills_of_the_hub") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    random_kills::assert_nothing_is_lost(8, 7, &|| start_hub(&server, folder.path()));
}

#[test]
fn a_hub_continues_after_its_database_was_killed() {
    let Some(mut server) = start_server("a_hub_continues_after_its_database_was_killed") else { return };
    let folder = tempfile::tempdir().unwrap();
    let hub = start_hub(&server, folder.path());
    let client = hub.client();
    let subscription = client.subscribe(REPLY_CAPABILITIES);
    let session = client.start_session();
    let token = client.ask_confirmation(&session);
    server.kill();
    server.restart();
    let path = format!("/agent/v1/sessions/{session}/replies/{token}");
    // The hub answers 503 until it has rebuilt its state.
    while client.reply(&subscription, &token, "accept").status != 204 {
        std::thread::yield_now();
    }
    assert_eq!(client.get(&path).json_str("decision"), "accept");
}

#[test]
fn a_hub_with_several_shards_loses_nothing_and_keeps_their_number() {
    let Some(server) = start_server("a_hub_with_several_shards_loses_nothing_and_keeps_their_number") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let with_shards = |shards: &[&str]| {
        let mut command = hub_command(&server.address(), folder.path());
        command.args(shards);
        command
    };
    random_kills::assert_nothing_is_lost(4, 11, &|| {
        HubProcess::start_command(&mut with_shards(&["--hub-shards", "4", "--journal-connections", "2"]))
    });
    let used = "SELECT count(*) FROM sayso.shard WHERE commit_number > 0";
    assert_eq!(server.sql(used), "4");
    // Without the setting, the database's number is used.
    let mut hub = HubProcess::start_command(&mut with_shards(&[]));
    let sessions: Vec<_> = (0..16)
        .map(|person| {
            let body = format!(r#"{{"summary_normal":"Work.","requested_by":"user:person{person}"}}"#);
            hub.client().post("/agent/v1/sessions", &body).json_str("session_id")
        })
        .collect();
    assert!(sessions.iter().any(|session| session.ends_with("x3")), "{sessions:?}");
    assert_eq!(hub.stop(), 0);
    assert_eq!(server.sql("SELECT count(*), count(owner) FROM sayso.shard"), "4|0");
    let refused = with_shards(&["--hub-shards", "2"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        stderr(&refused).contains("the database has 4 shards, but 2 are configured"),
        "{}",
        stderr(&refused)
    );
}

#[test]
fn a_statement_that_takes_too_long_is_refused_and_the_hub_continues() {
    let Some(server) = start_server("a_statement_that_takes_too_long_is_refused") else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut command = hub_command(&server.address(), folder.path());
    let hub = HubProcess::start_command(command.args(["--journal-statement-timeout", "300ms"]));
    let client = hub.client();
    client.start_session();
    let mut lock = server.spawn_sql("BEGIN; LOCK TABLE sayso.session; SELECT pg_sleep(600)");
    server.wait_for_sql("SELECT count(*) FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND granted AND relation = 'sayso.session'::regclass", "1");
    let refused = client.send("POST", "/agent/v1/sessions", r#"{"summary_normal":"Work."}"#);
    assert_eq!(refused.status, 503, "{refused:?}");
    lock.kill().unwrap();
    lock.wait().unwrap();
    server.sql("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE query LIKE '%pg_sleep%' AND pid <> pg_backend_pid()");
    while client.send("POST", "/agent/v1/sessions", r#"{"summary_normal":"Work."}"#).status != 201 {
        std::thread::yield_now();
    }
}

#[test]
fn a_second_hub_is_refused_and_a_stopped_one_releases_the_journal() {
    let Some(server) = start_server("a_second_hub_is_refused_and_a_stopped_one_releases_the_journal") else {
        return;
    };
    let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut hub = start_hub(&server, folder.path());
    let second = hub_command(&server.address(), other.path()).output().unwrap();
    assert_eq!(second.status.code(), Some(2));
    assert!(stderr(&second).contains("shard 0 belongs to "), "{}", stderr(&second));
    assert_eq!(hub.stop(), 0, "the first hub");
    assert_eq!(server.sql("SELECT owner IS NULL FROM sayso.shard"), "t");
    let mut hub = start_hub(&server, other.path());
    // A hub that answers has installed its signal handlers.
    hub.client().subscribe(REPLY_CAPABILITIES);
    assert_eq!(hub.stop(), 0);
}

#[test]
fn a_hub_whose_journal_was_taken_over_stops() {
    let Some(server) = start_server("a_hub_whose_journal_was_taken_over_stops") else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut hub = start_hub(&server, folder.path());
    server.sql("UPDATE sayso.shard SET epoch = epoch + 1, instance = 'x', owner = 'hub-2'");
    hub.wait_for_log("another hub has taken over shard 0");
    assert_eq!(hub.wait(), Some(2));
}

#[test]
fn no_password_is_printed() {
    let folder = tempfile::tempdir().unwrap();
    let address = "postgres://anna:geheim@127.0.0.1:1/hub";
    let failed = hub_command(address, folder.path()).output().unwrap();
    assert_eq!(failed.status.code(), Some(2));
    assert!(
        stderr(&failed).contains("cannot connect to postgres://anna@127.0.0.1:1/hub"),
        "{}",
        stderr(&failed)
    );
    let printed = hub_command(address, folder.path()).arg("--print-config").output().unwrap();
    let config = String::from_utf8(printed.stdout).unwrap();
    assert!(config.contains("journal = \"postgres://anna@127.0.0.1:1/hub\" # --journal"), "{config}");
    assert!(!config.contains("geheim") && !stderr(&failed).contains("geheim"));
    // The output is a valid configuration file.
    let file = folder.path().join("printed.toml");
    std::fs::write(&file, &config).unwrap();
    let checked = Command::new(env!("CARGO_BIN_EXE_sayso"))
        .args(["serve", "--print-config", "--config"])
        .arg(&file)
        .output()
        .unwrap();
    assert!(checked.status.success(), "{}", stderr(&checked));
    let misspelled = hub_command("postgre://anna:geheim@db/hub", folder.path()).output().unwrap();
    assert!(!stderr(&misspelled).contains("geheim"), "{}", stderr(&misspelled));
    assert!(stderr(&misspelled).contains("such as postgres://user@host/database"), "{}", stderr(&misspelled));
}
