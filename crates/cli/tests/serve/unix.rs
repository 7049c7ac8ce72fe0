//! Listeners on a Unix socket.

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::hub::{CAN_REPLY, Hub};
use crate::messages::{FROM_THE_FUTURE, close, kind, renegotiate, reply, request};

pub(crate) struct Place {
    _folder: tempfile::TempDir,
    pub(crate) path: PathBuf,
}

impl Place {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hub.sock");
        Self { _folder: folder, path }
    }

    fn hub(&self) -> Hub {
        Hub::start(&["--memory", "--listen", "127.0.0.1:0", "--open", "--unix", self.path.to_str().unwrap()])
    }
}

pub(crate) struct Talk {
    pub(crate) stream: UnixStream,
    lines: bool,
}

impl Talk {
    pub(crate) fn new(path: &Path, lines: bool) -> Self {
        let stream = UnixStream::connect(path).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        Self { stream, lines }
    }

    pub(crate) fn say(&mut self, text: &str) {
        let framed = if self.lines {
            format!("{text}\n").into_bytes()
        } else {
            [&u32::try_from(text.len()).unwrap().to_be_bytes(), text.as_bytes()].concat()
        };
        self.stream.write_all(&framed).unwrap();
    }

    pub(crate) fn next(&mut self) -> Value {
        let mut bytes = Vec::new();
        if self.lines {
            while bytes.last() != Some(&b'\n') {
                bytes.push(self.byte());
            }
        } else {
            let length: [u8; 4] = std::array::from_fn(|_| self.byte());
            bytes.resize(u32::from_be_bytes(length) as usize, 0);
            self.stream.read_exact(&mut bytes).unwrap();
        }
        serde_json::from_slice(&bytes).unwrap()
    }

    fn byte(&mut self) -> u8 {
        let mut byte = [0];
        self.stream.read_exact(&mut byte).unwrap();
        byte[0]
    }

    pub(crate) fn subscribe(&mut self) -> String {
        self.say(&request(CAN_REPLY));
        let accepted = self.next();
        assert_eq!(kind(&accepted), "subscription.accepted", "{accepted}");
        accepted["subscription_id"].as_str().unwrap().to_owned()
    }

    pub(crate) fn is_over(&mut self) -> bool {
        self.stream.read(&mut [0]).is_ok_and(|count| count == 0)
    }
}

#[test]
fn a_question_is_heard_and_answered_in_either_framing() {
    for lines in [true, false] {
        let place = Place::new();
        let hub = place.hub();
        let client = hub.client();
        let mut talk = Talk::new(&place.path, lines);
        let subscription = talk.subscribe();
        talk.say(&renegotiate(&subscription, r#"{"preferred_verbosity":"terse"}"#));
        assert_eq!(kind(&talk.next()), "subscription.accepted");
        let session = client.start();
        assert_eq!(kind(&talk.next()), "session.started");
        let token = client.ask(&session);
        while talk.next()["reply_token"] != token.as_str() {}
        talk.say(&reply(&subscription, &token, "accept"));
        let path = format!("/agent/v1/sessions/{session}/replies/{token}?wait=10");
        assert_eq!(client.get(&path).text("decision"), "accept");
        assert_eq!(talk.next()["extensions"]["sayso"]["decision"], "accept");
        talk.say(&close(&subscription));
        assert!(talk.is_over());
    }
}

#[test]
fn what_is_wrong_ends_it_with_a_reason() {
    let place = Place::new();
    let _hub = place.hub();
    let mut talk = Talk::new(&place.path, true);
    talk.say(FROM_THE_FUTURE);
    assert_eq!(talk.next()["reason_code"], "version_unsupported");
    assert!(talk.is_over());
    let mut talk = Talk::new(&place.path, false);
    talk.subscribe();
    for _ in 0..8 {
        talk.say("x");
    }
    assert_eq!(talk.next()["reason_code"], "violation");
    assert!(talk.is_over());
    let mut talk = Talk::new(&place.path, false);
    talk.subscribe();
    talk.stream.write_all(&(2 * 1024 * 1024_u32).to_be_bytes()).unwrap();
    assert_eq!(talk.next()["reason_code"], "too_large");
    assert!(talk.is_over());
}

#[test]
fn the_file_is_private_and_only_a_stale_one_is_replaced() {
    let place = Place::new();
    drop(UnixListener::bind(&place.path).unwrap());
    let mut hub = place.hub();
    let mode = std::fs::metadata(&place.path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let second = || {
        let path = place.path.to_str().unwrap();
        Command::new(env!("CARGO_BIN_EXE_sayso"))
            .args(["serve", "--memory", "--open", "--listen", "127.0.0.1:0", "--unix", path])
            .output()
            .unwrap()
    };
    let refused = second();
    assert!(!refused.status.success());
    assert!(String::from_utf8_lossy(&refused.stderr).contains("somebody listens there already"));
    Talk::new(&place.path, true).subscribe();
    assert_eq!(hub.stop(), 0);
    assert!(!place.path.exists(), "it cleans up behind itself");
    std::fs::write(&place.path, "mine").unwrap();
    assert!(!second().status.success());
    assert_eq!(std::fs::read_to_string(&place.path).unwrap(), "mine");
}
