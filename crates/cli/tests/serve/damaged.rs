//! A journal that is damaged: the hub does not start and says why, or it starts with what is true. Never does damage make a
//! yes, and never is a damaged file made worse.

use std::path::{Path, PathBuf};
use std::process::Command;

use seal::UnixMillis;
use testing::http::Client;
use testing::hub::Hub;
use testing::messages::{CAN_REPLY, QUESTION};

/// What a hub left behind: a question that is open, one that was refused, and a good many events.
struct Left {
    folder: tempfile::TempDir,
    session: String,
    open: String,
    refused: String,
}

impl Left {
    /// By a hub that was killed: with its log beside the file, or with all of it carried over into the file.
    fn behind(with_log: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut hub = Hub::on_disk(folder.path());
        let client = hub.client();
        let subscription = client.subscribe(CAN_REPLY);
        let _ear = client.listen(&subscription, None);
        let session = client.start();
        let refused = client.ask(&session);
        assert_eq!(client.reply(&subscription, &refused, "reject").status, 204);
        for _ in 0..20 {
            assert_eq!(
                client.post(&format!("/agent/v1/sessions/{session}/output"), &TEXT.repeat(20)).status,
                200
            );
        }
        let question = QUESTION.replace("5 euro", "7 euro").replace("5.00", "7.00");
        let asked = client.post(&format!("/agent/v1/sessions/{session}/confirmations"), &question);
        let open = asked.text("reply_token");
        hub.kill();
        if !with_log {
            let path = folder.path().join("journal.sqlite");
            drop(journal::Sqlite::open(&path, &journal::Settings::default()).unwrap());
        }
        Self { folder, session, open, refused }
    }

    fn file(&self, ending: &str) -> PathBuf {
        self.folder.path().join(format!("journal.sqlite{ending}"))
    }

    /// A hub on a copy of it, of which one file was changed. Returns why it did not start, or `None` if it did.
    fn started_with(&self, ending: &str, change: impl FnOnce(&mut Vec<u8>)) -> Option<String> {
        let copy = tempfile::tempdir().unwrap();
        for entry in std::fs::read_dir(self.folder.path()).unwrap() {
            let entry = entry.unwrap();
            std::fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
        }
        let file = copy.path().join(format!("journal.sqlite{ending}"));
        let mut bytes = std::fs::read(&file).unwrap();
        change(&mut bytes);
        std::fs::write(&file, &bytes).unwrap();
        match Hub::run(&mut serve(copy.path())) {
            Ok(hub) => {
                self.never_says_yes(&hub.client());
                None
            }
            Err((code, said)) => {
                assert_eq!(code, Some(2), "{said:?}");
                let last = said.last().unwrap();
                assert!(last.starts_with("sayso: ") && last.contains("journal"), "{said:?}");
                assert!(!said.iter().any(|line| line.contains("panicked")), "{said:?}");
                assert!(std::fs::read(&file).unwrap() == bytes, "it is left to whoever repairs it: {last}");
                Some(last.clone())
            }
        }
    }

    /// Nothing can be done on a question that nobody has accepted, and nobody is told that it was.
    fn never_says_yes(&self, client: &Client) {
        for (token, amount) in [(&self.open, "7.00"), (&self.refused, "5.00")] {
            let told = client.get(&format!("/agent/v1/sessions/{}/replies/{token}", self.session));
            assert!(!told.body.contains(r#""accept""#), "{told:?}");
            assert!(matches!(told.status, 200 | 404 | 503), "{told:?}");
            let call = format!(
                r#"{{"type":"aaep:agent.tool.invoked","tool":"send","tool_call_id":"call_1","risk_level":"high","irreversible":true,"summary_normal":"Sending.","reply_token":"{token}","arguments":{{"amount":"{amount}"}}}}"#
            );
            let sent = client.post(&format!("/agent/v1/sessions/{}/events", self.session), &call);
            assert!(matches!(sent.status, 404 | 422 | 503), "{sent:?}");
        }
    }
}

const TEXT: &str = "All is well, and there is a lot to tell of it. ";
const PAGE: usize = 4096;

type Change<'a> = &'a dyn Fn(&mut Vec<u8>);

fn serve(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sayso"));
    command.args(["serve", "--open", "--listen", "127.0.0.1:0", "--data"]).arg(folder);
    command
}

fn size(path: &Path) -> usize {
    usize::try_from(std::fs::metadata(path).unwrap().len()).unwrap()
}

#[test]
fn without_damage_it_starts() {
    for with_log in [true, false] {
        assert_eq!(Left::behind(with_log).started_with("", |_| {}), None);
    }
}

#[test]
fn what_is_no_journal_is_refused_by_name() {
    let left = Left::behind(false);
    let half = size(&left.file("")) / 2;
    let cases: [(&str, Change<'_>, &str); 7] = [
        ("nothing in it", &|bytes| bytes.clear(), "damaged"),
        ("cut in the middle", &|bytes| bytes.truncate(half), "damaged"),
        ("cut by a byte", &|bytes| bytes.truncate(half * 2 - 1), "damaged"),
        ("zeros only", &|bytes| bytes.fill(0), "damaged"),
        ("a text", &|bytes| *bytes = TEXT.repeat(200).into_bytes(), "damaged"),
        // The header's user version and application id.
        ("of a later version", &|bytes| bytes[60..64].copy_from_slice(&77_u32.to_be_bytes()), "version 77"),
        ("of another program", &|bytes| bytes[68..72].copy_from_slice(b"abcd"), "not a journal"),
    ];
    for (what, change, why) in cases {
        let said = left.started_with("", change).unwrap_or_else(|| panic!("{what}: it started"));
        assert!(said.contains(why), "{what}: {said}");
    }
}

#[test]
fn bytes_flipped_anywhere_in_the_file_never_make_a_yes() {
    let left = Left::behind(false);
    let pages = size(&left.file("")) / PAGE;
    let mut refused = 0;
    for page in 0..pages {
        let flip = |bytes: &mut Vec<u8>| {
            for byte in &mut bytes[page * PAGE + 2_000..page * PAGE + 2_016] {
                *byte ^= 0x55;
            }
            bytes[page * PAGE + 5] ^= 0x55;
        };
        refused += usize::from(left.started_with("", flip).is_some());
    }
    assert!(refused > 5, "{refused} of {pages}");
}

#[test]
fn a_row_whose_sum_is_wrong_is_refused() {
    let left = Left::behind(false);
    let whole = std::fs::read(left.file("")).unwrap();
    let places: Vec<_> =
        (0..whole.len() - 6).filter(|place| &whole[*place..place + 6] == b"reject").collect();
    let mut refused = Vec::new();
    for place in places {
        refused.extend(left.started_with("", |bytes| bytes[place..place + 6].copy_from_slice(b"accept")));
    }
    assert!(refused.iter().any(|why| why.contains("a question or its decision is changed")), "{refused:?}");
}

#[test]
fn a_log_that_is_broken_in_its_middle_is_refused_instead_of_losing_the_rest() {
    let left = Left::behind(true);
    let log = size(&left.file("-wal"));
    for place in [log / 4, log / 2, log * 5 / 8] {
        let said = left.started_with("-wal", |bytes| bytes[place] ^= 0x10);
        let said = said.unwrap_or_else(|| panic!("at {place} of {log}: it started"));
        assert!(said.contains("acknowledged entries are missing from the write-ahead log"), "{said}");
    }
    // What a crash may leave: a piece of the last batch is missing.
    assert_eq!(left.started_with("-wal", |bytes| bytes.truncate(log - 100)), None);
}

#[test]
fn damage_under_the_running_hub_never_makes_a_yes() {
    let left = Left::behind(false);
    let mut hub = Hub::on_disk(left.folder.path());
    let file = left.file("");
    let length = size(&file);
    // In place: another file under the same name would not be the hub's.
    let opened = std::fs::OpenOptions::new().write(true).open(&file).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&opened, &vec![0x5a; length - PAGE], PAGE as u64).unwrap();
    let client = hub.client();
    left.never_says_yes(&client);
    let late = client.try_send("POST", "/agent/v1/sessions", r#"{"summary_normal":"x"}"#);
    assert!(late.is_some(), "it answers, whatever it says");
    hub.kill();
    let again = Hub::run(&mut serve(left.folder.path()));
    let Err((code, said)) = again else { panic!("it started on ruins") };
    assert_eq!(code, Some(2), "{said:?}");
    assert!(said.last().is_some_and(|line| line.contains("damaged")), "{said:?}");
}

#[test]
fn a_row_that_a_newer_version_wrote_is_named_and_the_hub_does_not_start() {
    use journal::{Entry, Journal, Position, Settings, Sqlite};
    let session = Entry::SessionOpened {
        id: "sess_1",
        agent: "bank",
        principal: "bank",
        lease: UnixMillis::new(0),
        record: br#"{"producer":{"agent_id":"bank"}}"#,
    };
    let newer = br#"{"form":"of a later version"}"#.as_slice();
    let question = Entry::QuestionOpened {
        token: "rpl_1",
        session: "sess_1",
        deadline: UnixMillis::new(0),
        record: newer,
    };
    let decided = Entry::Decided {
        token: "rpl_1",
        decision: "accept",
        by: "reply",
        receipt: b"{}",
        at: UnixMillis::new(0),
    };
    let event = |body| Entry::Event {
        position: Position::new(1),
        session: "sess_1",
        event_id: "evt_1",
        at: UnixMillis::new(0),
        critical: false,
        body,
    };
    let newer_session = Entry::SessionOpened {
        id: "sess_2",
        agent: "bank",
        principal: "bank",
        lease: UnixMillis::new(0),
        record: newer,
    };
    let subscription = Entry::SubscriptionOpened { id: "sub_1", principal: "ada", record: newer };
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
        Sqlite::open(&path, &Settings::default()).unwrap().commit(&entries).unwrap();
        let Err((code, said)) = Hub::run(&mut serve(folder.path())) else { panic!("started without {row}") };
        assert_eq!(code, Some(2), "{said:?}");
        let last = said.last().unwrap();
        assert!(
            last.starts_with("sayso: the journal is damaged: ")
                && last.contains(&format!(
                    "({row} cannot be read; a newer version of sayso may have written it)"
                )),
            "{said:?}"
        );
    }
}
