//! What only a Unix socket has; what all wires do is in `tests/wires`.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use testing::hub::Hub;
use testing::messages::{CAN_REPLY, request};
use testing::unix::UnixClient;

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
    UnixClient::new(&place.path, true).subscribe();
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
        UnixClient::new(&path, true).subscribe();
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
