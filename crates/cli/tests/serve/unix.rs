//! Behaviour that is specific to Unix sockets. `tests/wires` covers what all transports share.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use testing::hub::HubProcess;
use testing::messages::{REPLY_CAPABILITIES, subscription_request};
use testing::unix::UnixSocketClient;

pub(crate) struct UnixSocketDir {
    _folder: tempfile::TempDir,
    pub(crate) path: PathBuf,
}

impl UnixSocketDir {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hub.sock");
        Self { _folder: folder, path }
    }

    fn start_hub(&self) -> HubProcess {
        HubProcess::start(&[
            "--memory",
            "--listen",
            "127.0.0.1:0",
            "--open",
            "--unix",
            self.path.to_str().unwrap(),
        ])
    }
}

#[test]
fn the_socket_is_private_and_only_a_stale_one_is_replaced() {
    let socket_dir = UnixSocketDir::new();
    drop(UnixListener::bind(&socket_dir.path).unwrap());
    let mut hub = socket_dir.start_hub();
    let mode = std::fs::metadata(&socket_dir.path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let try_start_hub = || {
        let path = socket_dir.path.to_str().unwrap();
        Command::new(env!("CARGO_BIN_EXE_sayso"))
            .args(["serve", "--memory", "--open", "--listen", "127.0.0.1:0", "--unix", path])
            .output()
            .unwrap()
    };
    let refused = try_start_hub();
    assert!(!refused.status.success());
    assert!(String::from_utf8_lossy(&refused.stderr).contains("the socket is already in use"));
    UnixSocketClient::new(&socket_dir.path, true).subscribe();
    assert_eq!(hub.stop(), 0);
    assert!(!socket_dir.path.exists(), "the socket is removed on exit");
    std::fs::write(&socket_dir.path, "mine").unwrap();
    assert!(!try_start_hub().status.success());
    assert_eq!(std::fs::read_to_string(&socket_dir.path).unwrap(), "mine");
}

/// §B.4.1: the socket is in the user's runtime folder, or else in a temporary folder with the user id in its name.
#[test]
fn the_default_socket_path_is_where_listeners_look() {
    let folder = tempfile::tempdir().unwrap();
    for (name, folder_name) in [("XDG_RUNTIME_DIR", "aaep".to_owned()), ("TMPDIR", format!("aaep-{}", uid()))]
    {
        let base = folder.path().join(name);
        std::fs::create_dir(&base).unwrap();
        let command = || {
            let mut command = Command::new(env!("CARGO_BIN_EXE_sayso"));
            command.args(["serve", "--memory", "--open", "--listen", "127.0.0.1:0", "--unix", "default"]);
            command.env_remove("XDG_RUNTIME_DIR").env(name, &base).stdin(std::process::Stdio::null());
            command
        };
        let hub = HubProcess::start_command(&mut command());
        let path = base.join(&folder_name).join("sayso-hub.sock");
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700), "{name}");
        UnixSocketClient::new(&path, true).subscribe();
        drop(hub);
        std::fs::set_permissions(path.parent().unwrap(), std::fs::Permissions::from_mode(0o777)).unwrap();
        let refused = command().output().unwrap();
        assert_eq!(refused.status.code(), Some(2), "a folder that others can write to must be refused");
    }
}

fn uid() -> u32 {
    std::os::unix::fs::MetadataExt::uid(&std::fs::metadata("/proc/self").unwrap())
}

/// §B.4.5: the hub checks the user of the client even if the file mode lets the client connect. The test needs permission
/// to run a program as another user.
#[test]
fn another_user_is_refused() {
    let socket_dir = UnixSocketDir::new();
    let _hub = socket_dir.start_hub();
    let set_mode =
        |path: &Path, mode| std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    set_mode(&socket_dir.path, 0o666);
    set_mode(socket_dir.path.parent().unwrap(), 0o755);
    let script = "import socket,sys\ns=socket.socket(socket.AF_UNIX)\ns.settimeout(60)\ns.connect(sys.argv[1])\ntry:\n  s.sendall(sys.argv[2].encode()+b'\\n')\n  print(len(s.recv(4096)))\nexcept OSError: print(0)";
    let response_length = |launcher: &[&str]| {
        let [program, rest @ ..] = launcher else { panic!() };
        let mut command = Command::new(program);
        command
            .args(rest)
            .args(["python3", "-c", script])
            .arg(&socket_dir.path)
            .arg(subscription_request(REPLY_CAPABILITIES));
        command.output().map(|out| String::from_utf8_lossy(&out.stdout).trim().to_owned())
    };
    let same_user = response_length(&["env"]).unwrap_or_default();
    let other_user =
        response_length(&["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]).unwrap_or_default();
    if uid() != 0 || same_user.is_empty() || other_user.is_empty() {
        eprintln!("skipped: cannot run as another user");
        return;
    }
    assert_ne!(same_user, "0", "the same user gets a response");
    assert_eq!(other_user, "0");
}
