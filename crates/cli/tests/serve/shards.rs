//! A hub with several shards, and a data folder that gets more of them.

use std::path::Path;
use std::process::Command;

use journal::{Journal, SqliteJournal, SqliteSettings};
use testing::cli::{CommandOutput, binary, run_sayso};
use testing::http::TestClient;
use testing::hub::HubProcess;
use testing::messages::{REPLY_CAPABILITIES, subscription_request};

use super::{crash_recovery, random_kills};

fn serve_command(folder: &Path, shards: &str) -> Command {
    let mut command = Command::new(binary());
    command
        .args(["serve", "--open", "--listen", "127.0.0.1:0", "--hub-shards", shards, "--data"])
        .arg(folder);
    command
}

fn start(folder: &Path, shards: &str) -> HubProcess {
    HubProcess::start_command(&mut serve_command(folder, shards))
}

/// Asserts that the hub refuses to start. Returns the last line that it wrote.
fn refusal(folder: &Path, shards: &str) -> String {
    match HubProcess::try_start_command(&mut serve_command(folder, shards)) {
        Ok(_) => panic!("the hub started with {shards} shards"),
        Err((code, mut lines)) => {
            assert_eq!(code, Some(2), "{lines:?}");
            lines.pop().unwrap()
        }
    }
}

fn reshard(folder: &Path, shards: &str) -> CommandOutput {
    run_sayso(&["reshard", "--data", folder.to_str().unwrap(), "--shards", shards], "")
}

fn assert_success(output: &CommandOutput) {
    assert_eq!(output.exit_code, 0, "{} {}", output.stdout, output.stderr);
}

/// Starts a session for a person.
fn start_for(client: &TestClient, person: &str) -> String {
    let body = format!(
        r#"{{"summary_normal":"Work.","requested_by":"user:{person}","localization_hints":{{"primary_language":"en"}}}}"#
    );
    let response = client.post("/agent/v1/sessions", &body);
    assert_eq!(response.status, 201, "{response:?}");
    response.json_str("session_id")
}

/// One person for each of three shards.
const PEOPLE: [&str; 3] = ["ada", "ben", "marisol"];

#[test]
fn acknowledged_data_survives_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    crash_recovery::assert_data_survives_a_kill(&|| start(folder.path(), "3"));
}

#[test]
fn nothing_acknowledged_is_lost_after_repeated_kills() {
    let folder = tempfile::tempdir().unwrap();
    random_kills::assert_nothing_is_lost(10, 11, &|| start(folder.path(), "3"));
}

#[test]
fn a_listener_of_all_shards_resumes_after_a_kill_without_losing_or_repeating_an_event() {
    let folder = tempfile::tempdir().unwrap();
    let mut hub = start(folder.path(), "3");
    let client = hub.client();
    let subscription = client.subscribe("{}");
    let mut stream = client.open_event_stream(&subscription, None);
    let sessions: Vec<_> = PEOPLE.iter().map(|person| start_for(&client, person)).collect();
    let mut last_id = String::new();
    let mut started: Vec<_> = (0..3)
        .map(|_| {
            let (kind, id, event) = stream.next();
            assert_eq!(kind, "session.started");
            last_id = id;
            event["session_id"].as_str().unwrap().to_owned()
        })
        .collect();
    started.sort();
    let mut expected = sessions.clone();
    expected.sort();
    assert_eq!(started, expected);
    assert!(
        ["x0", "x1", "x2"].iter().all(|shard| sessions.iter().any(|id| id.ends_with(shard))),
        "{sessions:?}"
    );
    for round in 0..3 {
        // Each session publishes before the kill; the listener has received only what came before.
        for session in &sessions {
            let path = format!("/agent/v1/sessions/{session}/output?complete=true&output_id=out_{round}");
            assert_eq!(client_of(&hub).post(&path, &format!("Round {round}.")).status, 200);
        }
        hub.kill();
        hub = start(folder.path(), "3");
        let mut stream = client_of(&hub).open_event_stream(&subscription, Some(&last_id));
        let mut chunks = Vec::new();
        while chunks.len() < 3 {
            let (kind, id, event) = stream.next();
            if !id.is_empty() {
                last_id = id;
            }
            if kind == "output.streaming" {
                assert_eq!(event["chunk"], format!("Round {round}."), "an event was repeated or lost");
                chunks.push(event["session_id"].as_str().unwrap().to_owned());
            } else {
                assert_eq!(kind, "state.changed", "{event}");
            }
        }
        // The state changes that follow the outputs must arrive before the next kill, too.
        let probe = start_for(&client_of(&hub), "ada");
        loop {
            let (_, id, event) = stream.next();
            last_id = if id.is_empty() { last_id } else { id };
            if event["session_id"] == probe.as_str() {
                break;
            }
        }
        chunks.sort();
        assert_eq!(chunks, expected);
    }
}

fn client_of(hub: &HubProcess) -> TestClient {
    hub.client()
}

#[test]
fn the_number_of_shards_is_fixed() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(start(folder.path(), "2").stop(), 0);
    let line = refusal(folder.path(), "3");
    assert!(line.contains("was created with 2 shards") && line.contains("cannot be changed"), "{line}");
    let line = refusal(folder.path(), "1");
    assert!(line.contains("was created with 2 shards"), "{line}");
    assert_eq!(reshard(folder.path(), "4").exit_code, 2);
    assert_eq!(start(folder.path(), "2").stop(), 0);
    // A missing journal is noticed, and so is the journal of another shard.
    std::fs::rename(folder.path().join("journal-1.sqlite"), folder.path().join("elsewhere")).unwrap();
    let line = refusal(folder.path(), "2");
    assert!(line.contains("journal-1.sqlite is missing") && line.contains("--accept-loss"), "{line}");
    std::fs::copy(folder.path().join("journal.sqlite"), folder.path().join("journal-1.sqlite")).unwrap();
    let line = refusal(folder.path(), "2");
    assert!(line.contains("journal-1.sqlite") && line.contains("shard 0 of 2, not shard 1 of 2"), "{line}");
}

#[test]
fn journals_that_do_not_belong_together_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let remove_first = || {
        for suffix in ["", "-wal", "-high-water"] {
            let _ = std::fs::remove_file(path(&format!("journal.sqlite{suffix}")));
        }
    };
    assert_eq!(start(folder.path(), "1").stop(), 0);
    let single = ["journal.sqlite", "journal.sqlite-high-water"]
        .map(|name| (name, std::fs::read(path(name)).unwrap()));
    // An interrupted attempt leaves journals without entries, which do no harm.
    assert_success(&reshard(folder.path(), "3"));
    remove_first();
    for (name, bytes) in &single {
        std::fs::write(path(name), bytes).unwrap();
    }
    assert_eq!(start(folder.path(), "1").stop(), 0);
    assert_success(&reshard(folder.path(), "3"));

    let mut hub = start(folder.path(), "3");
    for person in PEOPLE {
        start_for(&hub.client(), person);
    }
    assert_eq!(hub.stop(), 0);
    remove_first();
    let line = refusal(folder.path(), "3");
    assert!(line.contains("journal.sqlite is missing") && line.contains("--accept-loss"), "{line}");
    for (name, bytes) in &single {
        std::fs::write(path(name), bytes).unwrap();
    }
    let line = refusal(folder.path(), "1");
    assert!(line.contains("journal-1.sqlite has entries"), "{line}");
    let output = reshard(folder.path(), "3");
    assert_eq!(output.exit_code, 2);
    assert!(output.stderr.contains("journal-1.sqlite has entries"), "{}", output.stderr);
}

#[test]
fn a_data_folder_with_one_shard_gets_more_without_losing_anything() {
    let folder = tempfile::tempdir().unwrap();
    let to_four_shards = || {
        let line = refusal(folder.path(), "4");
        let command = format!("sayso reshard --data {} --shards 4", folder.path().display());
        assert!(line.contains(&command), "{line}");
        assert_success(&reshard(folder.path(), "4"));
        let line = refusal(folder.path(), "1");
        assert!(line.contains("was created with 4 shards"), "{line}");
    };
    assert_nothing_is_lost(&|| start(folder.path(), "1"), &to_four_shards, &|| start(folder.path(), "4"));
}

/// Asserts that a hub with four shards continues everything that a hub with one shard had begun. `move_journal` runs while
/// neither of them does.
pub(super) fn assert_nothing_is_lost(
    start_single: &dyn Fn() -> HubProcess,
    move_journal: &dyn Fn(),
    start_with_four_shards: &dyn Fn() -> HubProcess,
) {
    let mut hub = start_single();
    let client = hub.client();
    let subscription = client.subscribe(REPLY_CAPABILITIES);
    let mut stream = client.open_event_stream(&subscription, None);
    let session = client.start_session();
    let (_, first_id, _) = stream.next();
    let path = |rest: &str| format!("/agent/v1/sessions/{session}/{rest}");
    let accepted = client.ask_confirmation(&session);
    assert_eq!(client.reply(&subscription, &accepted, "accept").status, 204);
    let receipt = client.get(&path(&format!("replies/{accepted}"))).json()["receipt"].clone();
    assert!(receipt.is_object(), "{receipt}");
    let question = testing::messages::CONFIRMATION_BODY.replace("5 euros", "7 euros").replace("5.00", "7.00");
    let open = client.post(&path("confirmations"), &question).json_str("reply_token");
    let keyed = client.with_header("Idempotency-Key: start-1");
    // The person of the keyed session belongs to another shard from now on.
    let keyed_body = r#"{"summary_normal":"Once.","requested_by":"user:ada"}"#;
    let keyed_session = keyed.post("/agent/v1/sessions", keyed_body).json_str("session_id");
    let keyed_event = client.with_header("Idempotency-Key: event-1");
    let event =
        r#"{"type":"aaep:agent.progress.updated","progress":{"percent":5},"summary_normal":"Working."}"#;
    let keyed_path = format!("/agent/v1/sessions/{keyed_session}/events");
    let published = keyed_event.post(&keyed_path, event).body;
    assert_eq!(hub.stop(), 0);

    move_journal();

    let mut hub = start_with_four_shards();
    let client = hub.client();
    // The listener subscribes again and resumes after the first event.
    let capabilities =
        REPLY_CAPABILITIES.replacen('{', &format!(r#"{{"sayso":{{"after":"{first_id}"}},"#), 1);
    let response = client.post("/aaep/v1/subscriptions", &subscription_request(&capabilities));
    assert_eq!(response.json()["honored_capabilities"]["sayso"]["after"], first_id.as_str(), "{response:?}");
    let subscription = response.json_str("subscription_id");
    let mut stream = client.open_event_stream(&subscription, None);
    let mut questions = Vec::new();
    while questions.len() < 2 {
        let (kind, _, event) = stream.next();
        assert_ne!(kind, "sayso:gap");
        if kind == "awaiting.confirmation" {
            questions.push(event["reply_token"].as_str().unwrap().to_owned());
        }
    }
    assert_eq!(questions, [accepted.clone(), open.clone()]);
    // The answers: one is still stored with its receipt, the other is still open and can be given.
    assert_eq!(client.get(&path(&format!("replies/{accepted}"))).json()["receipt"], receipt);
    assert_eq!(client.get(&path(&format!("replies/{open}"))).json_str("status"), "pending");
    assert_eq!(client.reply(&subscription, &open, "accept").status, 204);
    assert_eq!(client.get(&path(&format!("replies/{open}?wait=10"))).json_str("decision"), "accept");
    // The unspent yes permits its call once.
    let call = |id: &str| {
        format!(
            r#"{{"type":"aaep:agent.tool.invoked","tool":"send","tool_call_id":"call_{id}","risk_level":"high","irreversible":true,"summary_normal":"Sending.","reply_token":"{accepted}","arguments":{{"amount":"5.00"}}}}"#
        )
    };
    assert_eq!(client.post(&path("events"), &call("1")).status, 200);
    assert_eq!(client.post(&path("events"), &call("2")).status, 422);
    // Idempotency keys.
    let repeated = client.with_header("Idempotency-Key: start-1").post("/agent/v1/sessions", keyed_body);
    assert_eq!(repeated.json_str("session_id"), keyed_session);
    let repeated = client.with_header("Idempotency-Key: event-1").post(&keyed_path, event);
    assert_eq!(repeated.body, published);
    let conflict = client
        .with_header("Idempotency-Key: start-1")
        .post("/agent/v1/sessions", r#"{"summary_normal":"Other."}"#);
    assert_eq!(conflict.status, 409, "{conflict:?}");
    // New sessions use the other shards, and the listener hears them.
    let new = start_for(&client, "ada");
    assert!(new.ends_with("x2"), "{new}");
    while stream.next().2["session_id"] != new.as_str() {}
    assert_eq!(hub.stop(), 0);
}

#[test]
fn an_interrupted_reshard_can_be_repeated() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(start(folder.path(), "1").stop(), 0);
    // The command was killed after the first new journal.
    let shard = Some(journal::ShardRecord::new(1, 3));
    let settings = SqliteSettings { shard, ..SqliteSettings::default() };
    drop(SqliteJournal::open(folder.path().join("journal-1.sqlite"), &settings).unwrap());
    let mut hub = start(folder.path(), "1");
    assert_eq!(reshard(folder.path(), "3").exit_code, 2, "a running hub is refused");
    assert_eq!(hub.stop(), 0);
    assert_success(&reshard(folder.path(), "3"));
    assert_eq!(start(folder.path(), "3").stop(), 0);
}

#[test]
fn a_backup_has_the_journals_of_all_shards() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut hub = start(&data, "3");
    let client = hub.client();
    let sessions: Vec<_> = PEOPLE.iter().map(|person| start_for(&client, person)).collect();
    let backup = folder.path().join("backup");
    assert_success(&run_sayso(&["backup", "--data", data.to_str().unwrap(), backup.to_str().unwrap()], ""));
    assert_eq!(hub.stop(), 0);
    let stopped_backup = folder.path().join("stopped");
    let stopped = stopped_backup.to_str().unwrap();
    assert_success(&run_sayso(&["backup", "--data", data.to_str().unwrap(), stopped], ""));
    for (number, source) in [&backup, &stopped_backup].into_iter().enumerate() {
        let restored = folder.path().join(format!("restored-{number}"));
        let arguments = ["restore", source.to_str().unwrap(), "--data", restored.to_str().unwrap()];
        assert_success(&run_sayso(&arguments, ""));
        for (shard, name) in ["journal.sqlite", "journal-1.sqlite", "journal-2.sqlite"].iter().enumerate() {
            let mut journal = SqliteJournal::open(restored.join(name), &SqliteSettings::default()).unwrap();
            assert_eq!(
                (usize::from(journal.shard().unwrap().index), journal.shard().unwrap().count),
                (shard, 3)
            );
            assert!(journal.restore().unwrap().must_void_consents);
        }
        let mut hub = start(&restored, "3");
        for session in &sessions {
            let path = format!("/agent/v1/sessions/{session}/output?complete=true");
            assert_eq!(hub.client().post(&path, "Still here.").status, 200);
        }
        assert_eq!(hub.stop(), 0);
    }
    // A backup without one of the journals is incomplete, even if its list says otherwise.
    std::fs::remove_file(backup.join("journal-2.sqlite")).unwrap();
    let list = std::fs::read_to_string(backup.join("SHA256SUMS")).unwrap();
    let kept: Vec<_> = list.lines().filter(|line| !line.ends_with("journal-2.sqlite")).collect();
    let files = kept.len() - 1;
    let mut lines: Vec<String> = kept.iter().map(ToString::to_string).collect();
    let title_end = lines[0].rfind(' ').unwrap() + 1;
    lines[0].replace_range(title_end.., &files.to_string());
    std::fs::write(backup.join("SHA256SUMS"), lines.join("\n") + "\n").unwrap();
    let incomplete = folder.path().join("incomplete");
    let arguments = ["restore", backup.to_str().unwrap(), "--data", incomplete.to_str().unwrap()];
    let output = run_sayso(&arguments, "");
    assert!(output.exit_code == 2 && output.stderr.contains("do not belong together"), "{}", output.stderr);
}

#[test]
fn metrics_name_the_shard() {
    let hub = HubProcess::start_in_memory_with(&["--hub-shards", "3"]);
    let client = hub.client();
    for person in PEOPLE {
        start_for(&client, person);
    }
    let metrics = client.get("/metrics").body;
    for shard in 0..3 {
        for line in [
            format!("sayso_sessions_open{{shard=\"{shard}\"}} 1"),
            format!("sayso_storage_healthy{{shard=\"{shard}\"}} 1"),
        ] {
            assert!(metrics.lines().any(|found| found == line), "{line} is missing: {metrics}");
        }
    }
    assert_eq!(metrics.matches("# TYPE sayso_sessions_open gauge").count(), 1);
}
