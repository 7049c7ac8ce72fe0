//! Lost and restored data: backups, truncated logs and older copies of the journal.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};

use journal::{Journal, JournalEntry, SqliteJournal, SqliteSettings};
use testing::cli::{CommandOutput, create_token, run_sayso};
use testing::http::{TIMEOUT, TestClient};
use testing::hub::HubProcess;
use testing::messages::{CONFIRMATION_BODY, REPLY_CAPABILITIES};

fn back_up(data: &Path, destination: &Path) -> CommandOutput {
    run_sayso(&["backup", "--data", data.to_str().unwrap(), destination.to_str().unwrap()], "")
}

fn restore(source: &Path, data: &Path) -> CommandOutput {
    run_sayso(&["restore", source.to_str().unwrap(), "--data", data.to_str().unwrap()], "")
}

fn assert_success(output: &CommandOutput) {
    assert_eq!(output.exit_code, 0, "{} {}", output.stdout, output.stderr);
}

/// Starts a hub. If it refuses to start, returns the lines that it wrote to standard error.
fn try_start(data: &Path, arguments: &[&str]) -> Result<HubProcess, Vec<String>> {
    let mut command = std::process::Command::new(testing::cli::binary());
    command.args(["serve", "--open", "--listen", "127.0.0.1:0", "--data"]).arg(data).args(arguments);
    HubProcess::try_start_command(&mut command).map_err(|(code, stderr)| {
        assert_eq!(code, Some(2), "{stderr:?}");
        stderr
    })
}

/// Moves the write-ahead log of a stopped hub into the journal's file, so that the file alone is complete.
fn checkpoint(data: &Path) {
    drop(SqliteJournal::open(data.join("journal.sqlite"), &SqliteSettings::default()).unwrap());
}

/// Returns the log line that says that consents were voided. It may come before or after the hub is listening.
fn wait_for_voided_line(hub: &HubProcess) -> String {
    let startup_line = hub.startup_lines.iter().find(|line| line.contains("consents.voided"));
    startup_line.cloned().unwrap_or_else(|| hub.wait_for_log("consents.voided"))
}

/// Asserts that the hub refuses to start because entries are missing, and that it says what to do.
fn assert_start_is_refused(data: &Path, expected: &str) {
    let Err(stderr) = try_start(data, &[]) else { panic!("the hub started, but should report: {expected}") };
    let last = stderr.last().unwrap();
    assert!(
        last.contains("acknowledged entries are missing") && last.contains("--accept-loss"),
        "{stderr:?}"
    );
    assert!(last.contains(expected), "{stderr:?}");
}

/// A session with a consent that was not spent, and an open question.
struct ConsentScenario {
    session: String,
    /// The reply token of the accepted question.
    accepted_token: String,
    /// The reply token of the open question.
    open_token: String,
}

impl ConsentScenario {
    fn create(client: &TestClient) -> Self {
        let subscription = client.subscribe(REPLY_CAPABILITIES);
        let _stream = client.open_event_stream(&subscription, None);
        let session = client.start_session();
        let accepted_token = client.ask_confirmation(&session);
        assert_eq!(client.reply(&subscription, &accepted_token, "accept").status, 204);
        let question = CONFIRMATION_BODY.replace("5 euros", "7 euros").replace("5.00", "7.00");
        let asked = client.post(&format!("/agent/v1/sessions/{session}/confirmations"), &question);
        assert_eq!(asked.status, 201, "{asked:?}");
        Self { session, accepted_token, open_token: asked.json_str("reply_token") }
    }

    /// Starts the accepted call, which spends the consent. Returns the status of the response.
    fn spend(&self, client: &TestClient) -> u16 {
        let call = format!(
            r#"{{"type":"aaep:agent.tool.invoked","tool":"send","tool_call_id":"call_1","risk_level":"high","irreversible":true,"summary_normal":"Sending.","reply_token":"{}","arguments":{{"amount":"5.00"}}}}"#,
            self.accepted_token
        );
        client.post(&format!("/agent/v1/sessions/{}/events", self.session), &call).status
    }

    /// Asserts that the consent permits nothing any more, and that the open question was rejected.
    fn assert_void(&self, hub: &HubProcess) {
        let client = hub.client();
        for token in [&self.open_token, &self.accepted_token] {
            let answer = client.get(&format!("/agent/v1/sessions/{}/replies/{token}", self.session));
            assert_eq!((answer.status, answer.json_str("decision").as_str()), (200, "reject"), "{answer:?}");
        }
        // The hub does not sign the receipt of a void yes again.
        let path = format!("/agent/v1/sessions/{}/replies/{}", self.session, self.accepted_token);
        let answer = client.get(&path);
        assert!(!answer.body.contains("receipt"), "{answer:?}");
        assert_eq!(self.spend(&client), 422, "a void consent was spent");
        // New consents can be spent.
        assert_eq!(Self::create(&client).spend(&client), 200);
    }
}

/// Publishes events until `should_stop` is set. Sends the id of each acknowledged event to `acknowledged`.
fn publish_until_stopped(client: &TestClient, should_stop: &AtomicBool, acknowledged: &Sender<String>) {
    let session = client.start_session();
    let event =
        r#"{"type":"aaep:agent.progress.updated","progress":{"percent":5},"summary_normal":"Working."}"#;
    while !should_stop.load(Ordering::Relaxed) {
        let published = client.post(&format!("/agent/v1/sessions/{session}/events"), event);
        assert_eq!(published.status, 200, "{published:?}");
        let ids: serde_json::Value = serde_json::from_str(&published.body).unwrap();
        let _ = acknowledged.send(ids["event_ids"][0].as_str().unwrap().to_owned());
    }
}

#[test]
fn a_backup_of_a_busy_hub_contains_everything_acknowledged_before_it_and_the_hub_continues() {
    back_up_busy_hub("copy");
}

#[test]
fn a_backup_file_of_a_busy_hub_contains_everything_acknowledged_before_it_and_the_hub_continues() {
    back_up_busy_hub("copy.tar");
}

fn back_up_busy_hub(copy_name: &str) {
    let folder = tempfile::tempdir().unwrap();
    let (data, copy, restored) =
        (folder.path().join("data"), folder.path().join(copy_name), folder.path().join("restored"));
    let hub = try_start(&data, &[]).unwrap();
    let client = hub.client();
    let should_stop = AtomicBool::new(false);
    let (sender, acknowledged) = channel();
    let before: Vec<String> = std::thread::scope(|scope| {
        for _ in 0..3 {
            let (sender, client, should_stop) = (sender.clone(), client.clone(), &should_stop);
            scope.spawn(move || publish_until_stopped(&client, should_stop, &sender));
        }
        let before: Vec<_> = acknowledged.iter().take(60).collect();
        assert_success(&back_up(&data, &copy));
        // Events that were acknowledged during the backup are discarded. Later ones show that the hub continues.
        for _ in acknowledged.try_iter() {}
        let after = acknowledged.iter().take(60).count();
        should_stop.store(true, Ordering::Relaxed);
        assert_eq!(after, 60);
        before
    });
    assert_success(&restore(&copy, &restored));
    let mut journal =
        SqliteJournal::open(restored.join("journal.sqlite"), &SqliteSettings::default()).unwrap();
    for id in &before {
        assert!(journal.event_position(id).unwrap().is_some(), "{id} is missing from the backup");
    }
    drop(journal);
    assert_success(&back_up(&data, &folder.path().join("second")));
    drop(hub);
    try_start(&restored, &[]).unwrap();
    try_start(&data, &[]).unwrap();
}

#[test]
fn a_restored_folder_has_all_keys_and_tokens_and_only_its_owner_can_read_it() {
    let folder = tempfile::tempdir().unwrap();
    let (data, copy, restored) =
        (folder.path().join("data"), folder.path().join("copy"), folder.path().join("restored"));
    create_token(data.join("tokens").to_str().unwrap(), &["--role", "listener", "--name", "ada"]);
    std::fs::write(data.join("sayso.toml"), "[http]\nheartbeat = \"9s\"\n").unwrap();
    let mut hub = try_start(&data, &[]).unwrap();
    let session = hub.client().start_session();
    // A killed hub leaves its write-ahead log, which the backup of a stopped hub must include.
    hub.kill();
    assert!(std::fs::metadata(data.join("journal.sqlite-wal")).unwrap().len() > 0);
    assert_success(&back_up(&data, &copy));
    assert_success(&restore(&copy, &restored));
    for name in ["tokens", "manifest.key", "manifest.jwk", "sign-in.key", "sayso.toml"] {
        let (original, copied) = (std::fs::read(data.join(name)), std::fs::read(restored.join(name)));
        assert!(original.unwrap() == copied.unwrap(), "{name}");
    }
    for copied_folder in [&copy, &restored] {
        assert_eq!(std::fs::metadata(copied_folder).unwrap().permissions().mode() & 0o777, 0o700);
        for entry in std::fs::read_dir(copied_folder).unwrap().map(Result::unwrap) {
            assert!(entry.file_type().unwrap().is_file(), "{entry:?}");
            assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{entry:?}");
        }
    }
    let hub = try_start(&restored, &[]).unwrap();
    let event = r#"{"type":"aaep:agent.state.changed","to_state":"thinking"}"#;
    assert_eq!(hub.client().post(&format!("/agent/v1/sessions/{session}/events"), event).status, 200);
}

#[test]
fn a_yes_cannot_be_spent_again_after_a_restore() {
    let folder = tempfile::tempdir().unwrap();
    let (data, copy, restored) =
        (folder.path().join("data"), folder.path().join("copy"), folder.path().join("restored"));
    let mut hub = try_start(&data, &[]).unwrap();
    let scenario = ConsentScenario::create(&hub.client());
    assert_success(&back_up(&data, &copy));
    assert_eq!(scenario.spend(&hub.client()), 200);
    assert_eq!(hub.stop(), 0);
    assert_success(&restore(&copy, &restored));
    let mut hub = try_start(&restored, &[]).unwrap();
    let line = wait_for_voided_line(&hub);
    assert!(line.contains("consents=1") && line.contains("questions=1"), "{line}");
    scenario.assert_void(&hub);
    hub.kill();
    // A second start voids nothing.
    let hub = try_start(&restored, &[]).unwrap();
    let client = hub.client();
    assert_eq!(scenario.spend(&client), 422);
    assert_eq!(ConsentScenario::create(&client).spend(&client), 200);
    let mut lines = hub.startup_lines.clone();
    lines.extend(hub.stop_and_collect_log());
    assert!(!lines.iter().any(|line| line.contains("consents.voided")), "{lines:?}");
}

#[test]
fn a_damaged_or_incomplete_backup_is_refused_and_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let (data, copy, restored) =
        (folder.path().join("data"), folder.path().join("copy"), folder.path().join("restored"));
    let mut hub = try_start(&data, &[]).unwrap();
    ConsentScenario::create(&hub.client());
    hub.kill();
    assert_success(&back_up(&data, &copy));
    let names: Vec<_> = std::fs::read_dir(&copy)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(names.len() >= 5, "{names:?}");
    let assert_refused = |expected: &str| {
        let output = restore(&copy, &restored);
        assert_eq!(output.exit_code, 2, "{expected}: {}", output.stdout);
        assert!(output.stderr.contains(expected), "{expected}: {}", output.stderr);
        assert!(!restored.exists(), "{expected}");
    };
    for name in &names {
        let path = copy.join(name);
        let original = std::fs::read(&path).unwrap();
        let mut flipped = original.clone();
        flipped[original.len() / 2] ^= 1;
        std::fs::write(&path, &flipped).unwrap();
        assert_refused(if name == "SHA256SUMS" { "" } else { name });
        std::fs::write(&path, &original[..original.len() - 1]).unwrap();
        assert_refused(name);
        std::fs::remove_file(&path).unwrap();
        assert_refused(name);
        std::fs::write(&path, original).unwrap();
    }
    let checksums = std::fs::read_to_string(copy.join("SHA256SUMS")).unwrap();
    let without_last_line = checksums.trim_end().rsplit_once('\n').unwrap().0.to_owned() + "\n";
    for wrong_checksums in [
        String::new(),
        without_last_line,
        checksums.replace("tokens", "../tokens").replace("  manifest.key", "  ../x"),
    ] {
        std::fs::write(copy.join("SHA256SUMS"), wrong_checksums).unwrap();
        assert_refused("SHA256SUMS");
    }
    std::fs::write(copy.join("SHA256SUMS"), checksums).unwrap();
    assert_success(&restore(&copy, &restored));
}

#[test]
fn a_damaged_or_incomplete_backup_file_is_refused_and_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let (data, copy, restored) =
        (folder.path().join("data"), folder.path().join("copy.tar"), folder.path().join("restored"));
    let mut hub = try_start(&data, &[]).unwrap();
    ConsentScenario::create(&hub.client());
    assert_eq!(hub.stop(), 0);
    assert_success(&back_up(&data, &copy));
    assert_eq!(std::fs::metadata(&copy).unwrap().permissions().mode() & 0o777, 0o600);
    let original = std::fs::read(&copy).unwrap();
    assert_success(&restore(&copy, &restored));
    let read_all = || {
        let mut files: Vec<_> = std::fs::read_dir(&restored)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_none_or(|extension| extension != "sqlite-high-water"))
            .map(|path| (std::fs::read(&path).unwrap(), path))
            .collect();
        files.sort();
        files
    };
    let intact = read_all();
    assert_eq!(intact.len(), 4, "the journal, two files of the manifest key, and the sign-in key");
    std::fs::remove_dir_all(&restored).unwrap();

    let step = original.len() / 24;
    for offset in (0..original.len()).step_by(step).chain([130, 150, 156, 257]) {
        let mut flipped = original.clone();
        flipped[offset] ^= 1;
        std::fs::write(&copy, flipped).unwrap();
        let output = restore(&copy, &restored);
        // Only the space between the files belongs to none.
        if output.exit_code == 0 {
            assert!(read_all() == intact, "a change at {offset} was not noticed");
            std::fs::remove_dir_all(&restored).unwrap();
        }
        assert!(!restored.exists(), "{offset}");
    }
    for end in (0..original.len() - 1024).step_by(step) {
        std::fs::write(&copy, &original[..end]).unwrap();
        let output = restore(&copy, &restored);
        assert_eq!(output.exit_code, 2, "{end}");
        assert!(output.stderr.contains("copy.tar"), "{}", output.stderr);
        assert!(!restored.exists(), "{end}");
    }
}

#[test]
fn a_backup_file_can_be_unpacked_with_tar() {
    let folder = tempfile::tempdir().unwrap();
    let (data, copy, unpacked) =
        (folder.path().join("data"), folder.path().join("copy.tar"), folder.path().join("unpacked"));
    drop(try_start(&data, &[]).unwrap());
    assert_success(&back_up(&data, &copy));
    std::fs::create_dir(&unpacked).unwrap();
    let status = std::process::Command::new("tar").arg("-xf").arg(&copy).arg("-C").arg(&unpacked).status();
    assert!(status.unwrap().success());
    assert_success(&restore(&unpacked, &folder.path().join("restored")));
}

#[test]
fn a_backup_with_an_altered_row_is_refused_although_its_checksums_match() {
    let folder = tempfile::tempdir().unwrap();
    let (data, copy) = (folder.path().join("data"), folder.path().join("copy"));
    let mut hub = try_start(&data, &[]).unwrap();
    ConsentScenario::create(&hub.client());
    assert_eq!(hub.stop(), 0);
    checkpoint(&data);
    let path = data.join("journal.sqlite");
    let mut bytes = std::fs::read(&path).unwrap();
    // Changes the text of an event. The checksum of a row is verified only when the row is read.
    let offset = bytes.windows(13).position(|window| window == b"Moving money.").unwrap();
    bytes[offset] = b'L';
    std::fs::write(&path, bytes).unwrap();
    assert_success(&back_up(&data, &copy));
    let output = restore(&copy, &folder.path().join("restored"));
    assert_eq!(output.exit_code, 2);
    assert!(output.stderr.contains("altered"), "{}", output.stderr);
}

#[test]
fn backup_and_restore_never_overwrite_anything() {
    let folder = tempfile::tempdir().unwrap();
    let (data, copy) = (folder.path().join("data"), folder.path().join("copy"));
    assert!(back_up(&data, &copy).stderr.contains("is not the data folder of a hub"));
    assert!(!copy.exists());
    let hub = try_start(&data, &[]).unwrap();
    assert_success(&back_up(&data, &copy));
    for output in [back_up(&data, &copy), back_up(&data, &data), restore(&copy, &copy), restore(&copy, &data)]
    {
        assert_eq!(output.exit_code, 2);
        assert!(output.stderr.contains("is not empty"), "{}", output.stderr);
    }
    let archive = folder.path().join("copy.tar");
    assert_success(&back_up(&data, &archive));
    let bytes = std::fs::read(&archive).unwrap();
    assert_eq!(back_up(&data, &archive).exit_code, 2);
    assert!(std::fs::read(&archive).unwrap() == bytes, "an existing file was changed");
    let inside = back_up(&data, &data.join("copy.tar"));
    assert!(inside.stderr.contains("is in the data folder"), "{}", inside.stderr);
    assert!(!data.join("copy.tar").exists());
    let empty = folder.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    assert_success(&restore(&copy, &empty));
    hub.client().start_session();
}

#[test]
fn a_backup_that_takes_too_long_is_disconnected() {
    let folder = tempfile::tempdir().unwrap();
    let _hub = try_start(folder.path(), &["--backup-timeout", "50ms"]).unwrap();
    let socket = folder.path().join("control.sock");
    assert_eq!(std::fs::symlink_metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
    // A hub that keeps the connection open fails the test, which would otherwise wait forever.
    let connect = || {
        let stream = UnixStream::connect(&socket).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        stream
    };
    let pause = || {
        let mut stream = BufReader::new(connect());
        stream.get_mut().write_all(b"pause\n").unwrap();
        let mut answer = String::new();
        stream.read_line(&mut answer).unwrap();
        (stream, answer)
    };
    for _ in 0..2 {
        let (mut stream, answer) = pause();
        // On a busy machine, the hub may reach the timeout before it has read the line.
        assert!(["paused\n", ""].contains(&answer.as_str()), "{answer}");
        // The client never reports that it has finished, so the hub closes the connection.
        let mut rest = String::new();
        stream.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "");
    }
    let mut stream = connect();
    stream.write_all(&[b'x'; 5000]).unwrap();
    let mut rest = Vec::new();
    // The hub closes the connection without reading all bytes.
    if let Err(error) = stream.read_to_end(&mut rest) {
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    }
    assert_eq!(rest, b"");
}

#[test]
fn a_hub_with_a_truncated_write_ahead_log_never_starts_silently() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut hub = try_start(&data, &[]).unwrap();
    let scenario = ConsentScenario::create(&hub.client());
    assert_eq!(scenario.spend(&hub.client()), 200);
    hub.kill();
    let wal = data.join("journal.sqlite-wal");
    let bytes = std::fs::read(&wal).unwrap();
    for twelfths in 0..12 {
        std::fs::write(&wal, &bytes[..bytes.len() * twelfths / 12]).unwrap();
        assert_start_is_refused(&data, "was written");
    }
    std::fs::write(&wal, &bytes[..bytes.len() - 1]).unwrap();
    assert_start_is_refused(&data, "was written");
    // Without its last byte, the log has lost only the call, so the consent looks unspent.
    let hub = try_start(&data, &["--accept-loss"]).unwrap();
    wait_for_voided_line(&hub);
    scenario.assert_void(&hub);
    drop(hub);
    try_start(&data, &[]).unwrap();
}

#[test]
fn a_hub_with_an_older_copy_of_the_journal_never_starts_silently() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut hub = try_start(&data, &[]).unwrap();
    let scenario = ConsentScenario::create(&hub.client());
    assert_eq!(hub.stop(), 0);
    checkpoint(&data);
    let journal_path = data.join("journal.sqlite");
    let older_journal = std::fs::read(&journal_path).unwrap();
    let mut hub = try_start(&data, &[]).unwrap();
    assert_eq!(scenario.spend(&hub.client()), 200);
    assert_eq!(hub.stop(), 0);
    checkpoint(&data);
    std::fs::write(&journal_path, &older_journal).unwrap();
    assert_start_is_refused(&data, "was written");
    let mark_path = data.join("journal.sqlite-high-water");
    let mark = std::fs::read(&mark_path).unwrap();
    std::fs::remove_file(&mark_path).unwrap();
    assert_start_is_refused(&data, "-high-water");
    std::fs::write(&mark_path, mark).unwrap();
    std::fs::remove_file(&journal_path).unwrap();
    assert_start_is_refused(&data, "was written");
    std::fs::write(&journal_path, &older_journal).unwrap();
    scenario.assert_void(&try_start(&data, &["--accept-loss"]).unwrap());
}

#[test]
fn a_question_whose_record_belongs_to_another_row_is_named_and_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut hub = try_start(folder.path(), &[]).unwrap();
    let scenario = ConsentScenario::create(&hub.client());
    assert_eq!(hub.stop(), 0);
    let path = folder.path().join("journal.sqlite");
    let mut journal = SqliteJournal::open(&path, &SqliteSettings::default()).unwrap();
    let open = journal.restore().unwrap().questions.remove(0);
    assert_eq!(open.token, scenario.open_token);
    let crafted = JournalEntry::QuestionOpened {
        token: "rpl_crafted",
        session: &open.session,
        deadline: open.deadline,
        record: &open.record,
    };
    journal.commit(&[crafted]).unwrap();
    drop(journal);
    let Err(stderr) = try_start(folder.path(), &[]) else { panic!("the hub started") };
    assert!(stderr.last().unwrap().contains("rpl_crafted cannot be read"), "{stderr:?}");
}
