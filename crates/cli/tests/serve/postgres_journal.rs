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
