//! A damaged journal: the hub refuses to start and says why, or it starts with the intact data. Damage never turns a
//! question into an accepted one. If the hub refuses to start, it does not change the damaged file.

use std::path::{Path, PathBuf};
use std::process::Command;

use seal::UnixMillis;
use testing::http::TestClient;
use testing::hub::HubProcess;
use testing::messages::{CONFIRMATION_BODY, REPLY_CAPABILITIES};

/// The data of a killed hub: an open question, a rejected one, and many events.
struct CrashedHubData {
    folder: tempfile::TempDir,
    session: String,
    open_token: String,
    rejected_token: String,
}

impl CrashedHubData {
    /// Creates the data, either with the write-ahead log beside the file or with everything checkpointed into the file.
    fn create(keep_wal: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut hub = HubProcess::start_on_disk(folder.path());
        let client = hub.client();
        let subscription = client.subscribe(REPLY_CAPABILITIES);
        let _stream = client.open_event_stream(&subscription, None);
        let session = client.start_session();
        let rejected_token = client.ask_confirmation(&session);
        assert_eq!(client.reply(&subscription, &rejected_token, "reject").status, 204);
        for _ in 0..20 {
            assert_eq!(
                client.post(&format!("/agent/v1/sessions/{session}/output"), &TEXT.repeat(20)).status,
                200
            );
        }
        let question = CONFIRMATION_BODY.replace("5 euros", "7 euros").replace("5.00", "7.00");
        let asked = client.post(&format!("/agent/v1/sessions/{session}/confirmations"), &question);
        let open_token = asked.json_str("reply_token");
        hub.kill();
        if !keep_wal {
            let path = folder.path().join("journal.sqlite");
            drop(journal::SqliteJournal::open(&path, &journal::SqliteSettings::default()).unwrap());
        }
        Self { folder, session, open_token, rejected_token }
    }

    fn file(&self, suffix: &str) -> PathBuf {
        self.folder.path().join(format!("journal.sqlite{suffix}"))
    }

    /// Starts a hub on a copy of the data with one changed file. Returns its error message, or `None` if the hub started.
    fn start_with_damage(&self, suffix: &str, change: impl FnOnce(&mut Vec<u8>)) -> Option<String> {
        let copy = tempfile::tempdir().unwrap();
        for entry in std::fs::read_dir(self.folder.path()).unwrap() {
            let entry = entry.unwrap();
            if !entry.file_type().unwrap().is_file() {
                continue;
            }
            std::fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
        }
        let file = copy.path().join(format!("journal.sqlite{suffix}"));
        let mut bytes = std::fs::read(&file).unwrap();
        change(&mut bytes);
        std::fs::write(&file, &bytes).unwrap();
        match HubProcess::try_start_command(&mut serve_command(copy.path())) {
            Ok(hub) => {
                self.assert_no_consent(&hub.client());
                None
            }
            Err((code, stderr)) => {
                assert_eq!(code, Some(2), "{stderr:?}");
                let last = stderr.last().unwrap();
                assert!(last.starts_with("sayso: ") && last.contains("journal"), "{stderr:?}");
                assert!(!stderr.iter().any(|line| line.contains("panicked")), "{stderr:?}");
                assert!(
                    std::fs::read(&file).unwrap() == bytes,
                    "the damaged file must not be changed: {last}"
                );
                Some(last.clone())
            }
        }
    }

    /// Asserts that neither question is reported as accepted, and that neither action is allowed.
    fn assert_no_consent(&self, client: &TestClient) {
        for (token, amount) in [(&self.open_token, "7.00"), (&self.rejected_token, "5.00")] {
            let response = client.get(&format!("/agent/v1/sessions/{}/replies/{token}", self.session));
            assert!(!response.body.contains(r#""accept""#), "{response:?}");
            assert!(matches!(response.status, 200 | 404 | 503), "{response:?}");
            let call = format!(
                r#"{{"type":"aaep:agent.tool.invoked","tool":"send","tool_call_id":"call_1","risk_level":"high","irreversible":true,"summary_normal":"Sending.","reply_token":"{token}","arguments":{{"amount":"{amount}"}}}}"#
            );
            let sent = client.post(&format!("/agent/v1/sessions/{}/events", self.session), &call);
            assert!(matches!(sent.status, 404 | 422 | 503), "{sent:?}");
        }
    }
}

const TEXT: &str = "All is well, and there is a lot more to say. ";
const PAGE: usize = 4096;

type Change<'a> = &'a dyn Fn(&mut Vec<u8>);

fn serve_command(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sayso"));
    command.args(["serve", "--open", "--listen", "127.0.0.1:0", "--data"]).arg(folder);
    command
}

fn size(path: &Path) -> usize {
    usize::try_from(std::fs::metadata(path).unwrap().len()).unwrap()
}

#[test]
fn the_hub_starts_on_an_undamaged_journal() {
    for keep_wal in [true, false] {
        assert_eq!(CrashedHubData::create(keep_wal).start_with_damage("", |_| {}), None);
    }
}

#[test]
fn a_truncated_or_foreign_file_is_refused() {
    let data = CrashedHubData::create(false);
    let half = size(&data.file("")) / 2;
    let cases: [(&str, Change<'_>, &str); 7] = [
        ("empty", &|bytes| bytes.clear(), "damaged"),
        ("truncated in the middle", &|bytes| bytes.truncate(half), "damaged"),
        ("truncated by one byte", &|bytes| bytes.truncate(half * 2 - 1), "damaged"),
        ("zeros only", &|bytes| bytes.fill(0), "damaged"),
        ("a text file", &|bytes| *bytes = TEXT.repeat(200).into_bytes(), "damaged"),
        // In the header of the file, bytes 60 to 63 are the version and bytes 68 to 71 are the application id.
        ("of a later version", &|bytes| bytes[60..64].copy_from_slice(&77_u32.to_be_bytes()), "version 77"),
        ("of another program", &|bytes| bytes[68..72].copy_from_slice(b"abcd"), "not a journal"),
    ];
    for (description, change, reason) in cases {
        let stderr =
            data.start_with_damage("", change).unwrap_or_else(|| panic!("{description}: the hub started"));
        assert!(stderr.contains(reason), "{description}: {stderr}");
    }
}

#[test]
fn flipped_bytes_never_create_an_acceptance() {
    let data = CrashedHubData::create(false);
    let pages = size(&data.file("")) / PAGE;
    let mut refusals = 0;
    for page in 0..pages {
        let flip = |bytes: &mut Vec<u8>| {
            for byte in &mut bytes[page * PAGE + 2_000..page * PAGE + 2_016] {
                *byte ^= 0x55;
            }
            bytes[page * PAGE + 5] ^= 0x55;
        };
        refusals += usize::from(data.start_with_damage("", flip).is_some());
    }
    assert!(refusals > 5, "{refusals} of {pages}");
}

#[test]
fn a_row_with_a_wrong_checksum_is_refused() {
    let data = CrashedHubData::create(false);
    let bytes = std::fs::read(data.file("")).unwrap();
    let offsets: Vec<_> =
        (0..bytes.len() - 6).filter(|offset| &bytes[*offset..offset + 6] == b"reject").collect();
    let mut refusals = Vec::new();
    for offset in offsets {
        refusals
            .extend(data.start_with_damage("", |bytes| bytes[offset..offset + 6].copy_from_slice(b"accept")));
    }
    assert!(
        refusals.iter().any(|reason| reason.contains("a question or its decision was altered")),
        "{refusals:?}"
    );
}

#[test]
fn a_write_ahead_log_damaged_in_the_middle_is_refused() {
    let data = CrashedHubData::create(true);
    let log_length = size(&data.file("-wal"));
    for offset in [log_length / 4, log_length / 2, log_length * 5 / 8] {
        let stderr = data.start_with_damage("-wal", |bytes| bytes[offset] ^= 0x10);
        let stderr = stderr.unwrap_or_else(|| panic!("at {offset} of {log_length}: the hub started"));
        assert!(
            stderr.contains(
                "the write-ahead log is damaged, and acknowledged entries after the damage cannot be read"
            ),
            "{stderr}"
        );
    }
    // A crash may leave a partial batch after the last acknowledged one.
    let append_partial_batch = |bytes: &mut Vec<u8>| bytes.extend_from_within(log_length - PAGE..);
    assert_eq!(data.start_with_damage("-wal", append_partial_batch), None);
}

#[test]
fn damage_while_the_hub_runs_never_creates_an_acceptance() {
    let data = CrashedHubData::create(false);
    let mut hub = HubProcess::start_on_disk(data.folder.path());
    let file = data.file("");
    let length = size(&file);
    // Changes the file in place, because the hub would not notice a new file with the same name.
    let file_handle = std::fs::OpenOptions::new().write(true).open(&file).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file_handle, &vec![0x5a; length - PAGE], PAGE as u64).unwrap();
    let client = hub.client();
    data.assert_no_consent(&client);
    let response = client.try_send("POST", "/agent/v1/sessions", r#"{"summary_normal":"x"}"#);
    assert!(response.is_some(), "the hub must respond");
    hub.kill();
    let restarted = HubProcess::try_start_command(&mut serve_command(data.folder.path()));
    let Err((code, stderr)) = restarted else { panic!("the hub started on a damaged journal") };
    assert_eq!(code, Some(2), "{stderr:?}");
    assert!(stderr.last().is_some_and(|line| line.contains("damaged")), "{stderr:?}");
}

#[test]
fn a_row_of_a_newer_version_is_named_and_refused() {
    use journal::{Journal, JournalEntry, Position, SqliteJournal, SqliteSettings};
    let session = JournalEntry::SessionOpened {
        id: "sess_1",
        agent: "bank",
        principal: "bank",
        lease_expires_at: UnixMillis::new(0),
        record: br#"{"producer":{"agent_id":"bank"}}"#,
    };
    let newer = br#"{"form":"of a later version"}"#.as_slice();
    let question = JournalEntry::QuestionOpened {
        token: "rpl_1",
        session: "sess_1",
        deadline: UnixMillis::new(0),
        record: newer,
    };
    let decided = JournalEntry::QuestionDecided {
        token: "rpl_1",
        decision: "accept",
        decided_by: "reply",
        receipt: b"{}",
        at: UnixMillis::new(0),
    };
    let event = |body| JournalEntry::Event {
        position: Position::new(1),
        session: "sess_1",
        event_id: "evt_1",
        at: UnixMillis::new(0),
        is_critical: false,
        body,
    };
    let newer_session = JournalEntry::SessionOpened {
        id: "sess_2",
        agent: "bank",
        principal: "bank",
        lease_expires_at: UnixMillis::new(0),
        record: newer,
    };
    let subscription = JournalEntry::SubscriptionOpened { id: "sub_1", principal: "ada", record: newer };
    for (entries, row) in [
        (vec![newer_session], "sess_2"),
        (vec![session, question], "rpl_1"),
        (vec![session, question, decided], "rpl_1"),
        (vec![session, event(newer)], "evt_1"),
        (vec![session, event(b"not JSON")], "evt_1"),
        (vec![session, event(b"\xff")], "evt_1"),
        (vec![subscription], "sub_1"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.sqlite");
        SqliteJournal::open(&path, &SqliteSettings::default()).unwrap().commit(&entries).unwrap();
        let Err((code, stderr)) = HubProcess::try_start_command(&mut serve_command(folder.path())) else {
            panic!("the hub started although {row} cannot be read")
        };
        assert_eq!(code, Some(2), "{stderr:?}");
        let last = stderr.last().unwrap();
        assert!(
            last.starts_with("sayso: the journal is damaged: ")
                && last.contains(&format!(
                    "({row} cannot be read; a newer version of sayso may have written it)"
                )),
            "{stderr:?}"
        );
    }
}
