//! `sayso migrate`: moves the journal of a stopped hub into Postgres.

use std::path::Path;
use std::process::Command;

use testing::cli::{CommandOutput, binary, run_sayso};
use testing::hub::HubProcess;
use testing::postgres::PostgresServer;

use super::shards;

fn start_server(test: &str) -> Option<PostgresServer> {
    testing::postgres::is_installed(test).then(PostgresServer::start)
}

fn serve_command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(binary());
    command.args(["serve", "--open", "--listen", "127.0.0.1:0"]).args(arguments);
    command.arg("--data").arg(folder);
    command
}

fn start(folder: &Path, arguments: &[&str]) -> HubProcess {
    HubProcess::start_command(&mut serve_command(folder, arguments))
}

fn migrate(folder: &Path, address: &str, further: &[&str]) -> CommandOutput {
    let mut arguments = vec!["migrate", "--data", folder.to_str().unwrap(), "--journal", address];
    arguments.extend(further);
    run_sayso(&arguments, "")
}

#[test]
fn a_hub_moves_to_postgres_with_more_shards_without_losing_anything() {
    let Some(server) = start_server("a_hub_moves_to_postgres_with_more_shards_without_losing_anything")
    else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let move_journal = || {
        let output = migrate(folder.path(), &server.address(), &["--shards", "4"]);
        assert_eq!(output.exit_code, 0, "{} {}", output.stdout, output.stderr);
        assert!(output.stdout.starts_with("Copied "), "{}", output.stdout);
        assert!(folder.path().join("journal.sqlite.migrated").exists());
        // The old journal could use an answer a second time.
        let (code, lines) =
            HubProcess::try_start_command(&mut serve_command(folder.path(), &[])).err().unwrap();
        assert_eq!(code, Some(2), "{lines:?}");
        let again = migrate(folder.path(), &server.address(), &["--shards", "4"]);
        assert_eq!(again.exit_code, 2, "{}", again.stdout);
        assert!(again.stderr.contains("already migrated"), "{}", again.stderr);
    };
    let with_postgres = || start(folder.path(), &["--journal", &server.address(), "--journal-lease", "1s"]);
    shards::assert_nothing_is_lost(&|| start(folder.path(), &[]), &move_journal, &with_postgres);
}

#[test]
fn a_hub_with_several_shards_moves_to_as_many() {
    let Some(server) = start_server("a_hub_with_several_shards_moves_to_as_many") else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut hub = start(folder.path(), &["--hub-shards", "3"]);
    let client = hub.client();
    let sessions: Vec<_> = (0..12)
        .map(|person| {
            let body = format!(r#"{{"summary_normal":"Work.","requested_by":"user:person{person}"}}"#);
            client.post("/agent/v1/sessions", &body).json_str("session_id")
        })
        .collect();
    let running = migrate(folder.path(), &server.address(), &[]);
    assert_eq!(running.exit_code, 2);
    assert!(running.stderr.contains("already open"), "{}", running.stderr);
    assert_eq!(hub.stop(), 0);
    let refused = migrate(folder.path(), &server.address(), &["--shards", "2"]);
    assert_eq!(refused.exit_code, 2);
    assert!(refused.stderr.contains("3 shards"), "{}", refused.stderr);
    assert!(folder.path().join("journal.sqlite").exists());
    let output = migrate(folder.path(), &server.address(), &[]);
    assert_eq!(output.exit_code, 0, "{} {}", output.stdout, output.stderr);
    assert!(output.stdout.contains("12 sessions"), "{}", output.stdout);
    let mut hub = start(folder.path(), &["--journal", &server.address()]);
    for session in sessions {
        let event =
            r#"{"type":"aaep:agent.progress.updated","progress":{"percent":5},"summary_normal":"Working."}"#;
        assert_eq!(hub.client().post(&format!("/agent/v1/sessions/{session}/events"), event).status, 200);
    }
    assert_eq!(hub.stop(), 0);
}

#[test]
fn tokens_and_the_key_of_receipts_move_too() {
    let Some(server) = start_server("tokens_and_the_key_of_receipts_move_too") else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(binary());
    command.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(folder.path());
    let mut hub = HubProcess::start_command(&mut command);
    assert_eq!(hub.stop(), 0);
    let output = migrate(folder.path(), &server.address(), &[]);
    assert_eq!(output.exit_code, 0, "{} {}", output.stdout, output.stderr);
    let listed = run_sayso(&["token", "list", "--journal", &server.address()], "");
    assert!(listed.stdout.contains("admin"), "{} {}", listed.stdout, listed.stderr);
    let names = server.sql("SELECT string_agg(name, ',' ORDER BY name) FROM sayso.shared_text");
    assert_eq!(names, "move,receipt-key,tokens");
}

#[test]
fn an_interrupted_move_is_finished_and_no_hub_starts_in_between() {
    let Some(server) = start_server("an_interrupted_move_is_finished_and_no_hub_starts_in_between") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let mut hub = start(folder.path(), &[]);
    let session = hub.client().start_session();
    assert_eq!(hub.stop(), 0);
    let copy = tempfile::tempdir().unwrap();
    for file in std::fs::read_dir(folder.path()).unwrap() {
        let path = file.unwrap().path();
        std::fs::copy(&path, copy.path().join(path.file_name().unwrap())).unwrap();
    }
    let output = migrate(folder.path(), &server.address(), &[]);
    assert_eq!(output.exit_code, 0, "{} {}", output.stdout, output.stderr);
    // The process was killed after the database had stored everything.
    let mark = server.sql("SELECT convert_from(content, 'UTF8') FROM sayso.shared_text WHERE name = 'move'");
    std::fs::write(copy.path().join("journal.migrating"), mark).unwrap();
    let (code, lines) = HubProcess::try_start_command(&mut serve_command(copy.path(), &[])).err().unwrap();
    assert!(code == Some(2) && lines.iter().any(|line| line.contains("sayso migrate")), "{lines:?}");
    let unreachable = migrate(copy.path(), "postgres://sayso@127.0.0.1:1/sayso?sslmode=disable", &[]);
    assert_eq!(unreachable.exit_code, 2);
    assert!(copy.path().join("journal.migrating").exists());
    let output = migrate(copy.path(), &server.address(), &[]);
    assert_eq!(output.exit_code, 0, "{} {}", output.stdout, output.stderr);
    assert!(output.stdout.contains("earlier attempt"), "{}", output.stdout);
    assert!(copy.path().join("journal.sqlite.migrated").exists());
    assert!(!copy.path().join("journal.migrating").exists());
    assert_eq!(server.sql("SELECT count(*) FROM sayso.session"), "1", "{session}");
}

#[test]
fn a_move_that_fails_leaves_the_number_of_shards_open() {
    let Some(server) = start_server("a_move_that_fails_leaves_the_number_of_shards_open") else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut hub = start(folder.path(), &[]);
    let session = hub.client().start_session();
    assert_eq!(hub.stop(), 0);
    // The first command that uses a database creates the tables.
    let status = run_sayso(&["cluster", "status", "--journal", &server.address()], "");
    assert_eq!(status.exit_code, 2, "{}", status.stderr);
    server.sql("ALTER TABLE sayso.event ADD CONSTRAINT full_disk CHECK (false)");
    let failed = migrate(folder.path(), &server.address(), &["--shards", "16"]);
    assert!(
        failed.exit_code != 0 && failed.stderr.contains("full_disk"),
        "{} {}",
        failed.stdout,
        failed.stderr
    );
    assert_eq!(server.sql("SELECT count(*) FROM sayso.shard_count"), "0");
    assert_eq!(server.sql("SELECT count(*) FROM sayso.session"), "0");
    server.sql("ALTER TABLE sayso.event DROP CONSTRAINT full_disk");
    let output = migrate(folder.path(), &server.address(), &["--shards", "4"]);
    assert_eq!(output.exit_code, 0, "{} {}", output.stdout, output.stderr);
    // A node has only the shards that count.
    let arguments =
        ["--cluster", "--cluster-drain-delay", "0s", "--journal-lease", "4s", "--journal", &server.address()];
    let node = tempfile::tempdir().unwrap();
    let mut node = start(node.path(), &arguments);
    let ready = || node.client().get("/readyz").status == 200;
    super::cluster::wait_until("the node is ready", ready);
    assert_eq!(server.sql("SELECT count(*) FROM sayso.shard WHERE owner IS NOT NULL"), "4");
    let progress =
        r#"{"type":"aaep:agent.progress.updated","progress":{"percent":5},"summary_normal":"Working."}"#;
    let published = node.client().post(&format!("/agent/v1/sessions/{session}/events"), progress);
    assert_eq!(published.status, 200, "{published:?}");
    assert_eq!(node.stop(), 0);
}

#[test]
fn a_move_that_was_not_made_is_not_reported_as_made_because_another_hub_used_the_database() {
    let Some(server) = start_server("a_move_that_was_not_made_is_not_reported_as_made") else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut hub = start(folder.path(), &[]);
    hub.client().start_session();
    assert_eq!(hub.stop(), 0);
    // The process was killed before the database had stored anything, and then a hub was started on the database.
    std::fs::write(folder.path().join("journal.migrating"), "an-earlier-attempt").unwrap();
    let other = tempfile::tempdir().unwrap();
    let mut hub = start(other.path(), &["--journal", &server.address()]);
    hub.client().start_session();
    assert_eq!(hub.stop(), 0);
    let output = migrate(folder.path(), &server.address(), &[]);
    assert_eq!(output.exit_code, 2, "{} {}", output.stdout, output.stderr);
    assert!(output.stderr.contains("already in use"), "{}", output.stderr);
    assert!(folder.path().join("journal.sqlite").exists());
    // More shards could not be moved any more.
    let resharded = run_sayso(&["reshard", "--data", folder.path().to_str().unwrap(), "--shards", "2"], "");
    assert_eq!(resharded.exit_code, 2, "{}", resharded.stdout);
    assert!(resharded.stderr.contains("sayso migrate"), "{}", resharded.stderr);
}

#[test]
fn a_move_does_not_silently_keep_the_tokens_and_keys_of_the_database() {
    let Some(server) = start_server("a_move_does_not_silently_keep_the_tokens_and_keys_of_the_database")
    else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(binary());
    command.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(folder.path());
    assert_eq!(HubProcess::start_command(&mut command).stop(), 0);
    // The first node of a cluster has created tokens and keys in the database, and has written nothing else.
    let listed = run_sayso(&["token", "list", "--journal", &server.address()], "");
    assert_eq!(listed.exit_code, 2, "{}", listed.stdout);
    server.sql("INSERT INTO sayso.shared_text (name, content, version) VALUES ('receipt-key', 'another', 1)");
    let output = migrate(folder.path(), &server.address(), &[]);
    assert_eq!(output.exit_code, 2, "{} {}", output.stdout, output.stderr);
    assert!(output.stderr.contains("its own receipt-key"), "{}", output.stderr);
    assert!(folder.path().join("journal.sqlite").exists());
    assert_eq!(server.sql("SELECT count(*) FROM sayso.shared_text"), "1");
}
