//! Listeners on a Unix socket.

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use testing::hub::Hub;
use testing::messages::CAN_REPLY;
use testing::messages::{FROM_THE_FUTURE, close, kind, renegotiate, reply, request};

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
        stream.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
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

/// §B.4.1: in the user's own folder, or else in one of his name.
#[test]
fn the_usual_place_is_where_listeners_look() {
    let folder = tempfile::tempdir().unwrap();
    for (name, place) in [("XDG_RUNTIME_DIR", "aaep".to_owned()), ("TMPDIR", format!("aaep-{}", uid()))] {
        let own = folder.path().join(name);
        std::fs::create_dir(&own).unwrap();
        let run = || {
            let mut command = Command::new(env!("CARGO_BIN_EXE_sayso"));
            command.args(["serve", "--memory", "--open", "--listen", "127.0.0.1:0", "--unix", "usual"]);
            command.env_remove("XDG_RUNTIME_DIR").env(name, &own).stdin(std::process::Stdio::null());
            command
        };
        let hub = Hub::start_as(&mut run());
        let path = own.join(&place).join("sayso-hub.sock");
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700), "{name}");
        Talk::new(&path, true).subscribe();
        drop(hub);
        std::fs::set_permissions(path.parent().unwrap(), std::fs::Permissions::from_mode(0o777)).unwrap();
        let refused = run().output().unwrap();
        assert_eq!(refused.status.code(), Some(2), "a folder that others may write to");
    }
}

fn uid() -> u32 {
    std::os::unix::fs::MetadataExt::uid(&std::fs::metadata("/proc/self").unwrap())
}

/// §B.4.5: whoever gets past the file's mode is looked at all the same. Needs another user to be.
#[test]
fn another_user_is_not_heard() {
    let place = Place::new();
    let _hub = place.hub();
    let open =
        |path: &Path, mode| std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    open(&place.path, 0o666);
    open(place.path.parent().unwrap(), 0o755);
    let script = "import socket,sys\ns=socket.socket(socket.AF_UNIX)\ns.settimeout(60)\ns.connect(sys.argv[1])\ntry:\n  s.sendall(sys.argv[2].encode()+b'\\n')\n  print(len(s.recv(4096)))\nexcept OSError: print(0)";
    let ask = |who: &[&str]| {
        let [program, rest @ ..] = who else { panic!() };
        let mut command = Command::new(program);
        command.args(rest).args(["python3", "-c", script]).arg(&place.path).arg(request(CAN_REPLY));
        command.output().map(|out| String::from_utf8_lossy(&out.stdout).trim().to_owned())
    };
    let own = ask(&["env"]).unwrap_or_default();
    let other = ask(&["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]).unwrap_or_default();
    if uid() != 0 || own.is_empty() || other.is_empty() {
        eprintln!("skipped: nobody else can be had here");
        return;
    }
    assert_ne!(own, "0", "the same user is heard");
    assert_eq!(other, "0");
}
