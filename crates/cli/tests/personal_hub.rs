//! The personal hub: `sayso listen` without an address, and `sayso serve --personal`.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Output};

use tempfile::TempDir;
use testing::cli::{binary, run_sayso};
use testing::hub::HubProcess;
use testing::terminal::ListenProcess;

/// A user with a home folder and a runtime folder of their own.
pub(crate) struct User(TempDir);

impl User {
    pub(crate) fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join("run")).unwrap();
        Self(home)
    }

    pub(crate) fn configure<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        for name in ["SAYSO_URL", "SAYSO_TOKEN", "XDG_DATA_HOME"] {
            command.env_remove(name);
        }
        command.env("HOME", self.0.path()).env("XDG_RUNTIME_DIR", self.0.path().join("run"))
    }

    fn socket(&self) -> PathBuf {
        self.0.path().join("run/aaep/sayso-hub.sock")
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.configure(Command::new(binary()).args(arguments)).output().unwrap()
    }

    fn listen(&self) -> ListenProcess {
        let arguments = ["listen", "--answer-grace", "0"];
        let mut listener = ListenProcess::start_command(&arguments, |command| self.configure(command));
        listener.read_until("notice: Listening to your personal hub. Type help for the commands.");
        listener
    }

    pub(crate) fn serve(&self, arguments: &[&str]) -> HubProcess {
        let mut command = Command::new(binary());
        self.configure(command.args(["serve", "--personal"]).args(arguments));
        HubProcess::start_command(&mut command)
    }
}

/// Reads the address of the page from the listener's announcement.
fn page_address(listener: &mut ListenProcess) -> String {
    let announced = listener.read_until("Its page is ").pop().unwrap();
    announced.rsplit("http://").next().unwrap().trim_end_matches('/').to_owned()
}

#[test]
fn a_listener_without_an_address_runs_the_hub_and_a_second_one_joins_it() {
    let user = User::new();
    let mut first = user.listen();
    let page = page_address(&mut first);
    assert_eq!(testing::http::TestClient::new(&page).get("/").status, 200);
    let mode = |path: PathBuf| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(user.socket()), 0o600);
    let data = user.0.path().join(".local/share/sayso");
    assert_eq!(mode(data.clone()), 0o700);
    assert!(data.join("journal.sqlite").exists());

    let mut second = user.listen();
    assert_eq!(user.run(&["tell", "Good morning."]).status.code(), Some(0));
    first.read_until("agent: Good morning.");
    second.read_until("agent: Good morning.");
    second.type_line("quit");
    let (lines, code) = second.wait_for_exit();
    assert_eq!(code, 0, "{lines:#?}");
    assert!(
        !lines.iter().any(|line| line.contains("page")),
        "only the process with the hub says so: {lines:#?}"
    );

    let asked = std::thread::scope(|scope| {
        let asked = scope.spawn(|| user.run(&["ask", "Shall I?"]));
        first.read_until("ask: Yes or no?");
        first.type_line("yes");
        asked.join().unwrap()
    });
    assert_eq!(asked.status.code(), Some(0));
    first.type_line("quit");
    assert_eq!(first.wait_for_exit().1, 0);
    assert!(!user.socket().exists(), "the hub has stopped");
}

#[test]
fn a_listener_reconnects_when_the_personal_hub_is_restarted() {
    let user = User::new();
    let hub = user.serve(&[]);
    let mut listener = user.listen();
    assert_eq!(user.run(&["tell", "Hello."]).status.code(), Some(0));
    listener.read_until("session: shell has finished.");
    drop(hub);
    listener.read_until("notice: Connection to the hub lost");
    let _hub = user.serve(&[]);
    listener.type_line("");
    listener.read_until("notice: Reconnected.");
    assert_eq!(user.run(&["tell", "Good morning."]).status.code(), Some(0));
    listener.read_until("agent: Good morning.");
}

#[test]
fn another_user_of_the_machine_is_refused() {
    if !rustix::process::getuid().is_root() {
        eprintln!("skipped: only root can act as another user");
        return;
    }
    let user = User::new();
    let hub = user.serve(&["--listen", "127.0.0.1:0"]);
    assert_eq!(answer_to(0, &hub.address, "GET /"), "HTTP/1.1 200 OK");
    assert_eq!(answer_to(65534, &hub.address, "GET /"), "HTTP/1.1 403 Forbidden");
}

/// Sends a request as this user, and returns the status line of the response.
fn answer_to(uid: u32, address: &str, request: &str) -> String {
    let (host, port) = address.split_once(':').unwrap();
    let script = format!(
        "exec 3<>/dev/tcp/{host}/{port}; printf '{request} HTTP/1.1\\r\\nHost: {host}:{port}\\r\\nContent-Type: application/json\\r\\n\
         Content-Length: 2\\r\\nConnection: close\\r\\n\\r\\n{{}}' >&3; cat <&3"
    );
    let output = Command::new("bash").args(["-c", &script]).current_dir("/").uid(uid).output().unwrap();
    String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or_default().to_owned()
}

#[test]
fn another_user_of_the_machine_cannot_report_over_opentelemetry() {
    if !rustix::process::getuid().is_root() {
        eprintln!("skipped: only root can act as another user");
        return;
    }
    let user = User::new();
    let hub = user.serve(&["--otlp-listen", "127.0.0.1:0"]);
    let line =
        hub.startup_lines.iter().find_map(|line| line.strip_prefix("receiving OpenTelemetry on http://"));
    let address = line.expect("the address");
    assert_eq!(answer_to(0, address, "POST /v1/traces"), "HTTP/1.1 200 OK");
    assert_eq!(answer_to(65534, address, "POST /v1/traces"), "HTTP/1.1 403 Forbidden");
}

#[test]
fn a_personal_hub_has_one_name_and_a_port_that_nobody_knows_in_advance() {
    let user = User::new();
    let hub = user.serve(&[]);
    let (host, port) = hub.address.split_once(':').unwrap();
    assert_eq!(host, "127.0.0.1");
    // The system chooses a free port for each start, so the ports of several hubs differ.
    let others: Vec<_> = (0..3).map(|_| User::new()).collect();
    let others: Vec<_> = others.iter().map(|other| other.serve(&[])).collect();
    for other in &others {
        assert_ne!(other.address, hub.address);
    }
    let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap();
    let mut bounds = range.split_whitespace().map(|bound| bound.parse::<u16>().unwrap());
    let (first, last) = (bounds.next().unwrap(), bounds.next().unwrap());
    assert!((first..=last).contains(&port.parse().unwrap()), "{port} is not a port that the system chose");
    for name in ["localhost", "[::1]"] {
        let response = hub.client().with_header(&format!("Host: {name}:{port}")).get("/");
        assert_eq!(response.status, 421, "{name}");
    }
}

#[test]
#[cfg(feature = "grpc")]
fn another_user_of_the_machine_is_refused_over_grpc() {
    if !rustix::process::getuid().is_root() {
        eprintln!("skipped: only root can act as another user");
        return;
    }
    let user = User::new();
    let address = testing::hub::reserved_address();
    let _hub = user.serve(&["--grpc-listen", &address]);
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let program = folder.path().join("sayso");
    std::fs::hard_link(binary(), &program).or_else(|_| std::fs::copy(binary(), &program).map(drop)).unwrap();
    let url = format!("grpc://{address}");
    let mut own = ListenProcess::start_command(&["listen", &url], |command| command);
    own.read_until("Listening to");
    let mut command = Command::new(&program);
    command.args(["listen", &url, "--auto", "accept"]).env_remove("SAYSO_TOKEN").current_dir("/").uid(65534);
    let output = command.stdin(std::process::Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

#[test]
fn a_socket_of_another_user_is_not_taken_for_the_personal_hub() {
    if !rustix::process::getuid().is_root() {
        eprintln!("skipped: only root can act as another user");
        return;
    }
    // Another user could put a socket at the expected path in a shared folder, and answer every question with yes.
    let folder = tempfile::tempdir().unwrap();
    let everybody = |path: &std::path::Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    let program = folder.path().join("sayso");
    std::fs::hard_link(binary(), &program).or_else(|_| std::fs::copy(binary(), &program).map(drop)).unwrap();
    std::fs::create_dir(folder.path().join("aaep")).unwrap();
    let socket = folder.path().join("aaep/sayso-hub.sock");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    everybody(&socket, 0o777);
    everybody(folder.path(), 0o755);
    for arguments in
        [&["ask", "Shall I?"][..], &["ask", "Shall I?", "--hub", &format!("unix:{}", socket.display())]]
    {
        let mut command = Command::new(&program);
        command.args(arguments).env("XDG_RUNTIME_DIR", folder.path()).env_remove("SAYSO_URL");
        let output = command.current_dir("/").uid(65534).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let message = String::from_utf8(output.stderr).unwrap();
        assert!(message.contains("another user"), "{message}");
    }
}

#[test]
fn without_a_personal_hub_a_script_is_told_how_to_start_it() {
    let user = User::new();
    let output = user.run(&["ask", "Shall I?"]);
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("your personal hub does not run; start it with sayso listen"), "{message}");
}

#[test]
fn a_second_personal_hub_and_unsuitable_settings_are_refused() {
    let user = User::new();
    let _hub = user.serve(&[]);
    let second = user.run(&["serve", "--personal"]);
    assert_eq!(second.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&second.stderr).contains("the socket is already in use"), "{second:?}");
    for (arguments, expected) in [
        (&["--open"][..], "a personal hub serves only its own user"),
        (&["--tokens", "t"], "a personal hub serves only its own user"),
        (&["--behind-proxy"], "a personal hub serves only its own user"),
        (&["--listen", "0.0.0.0:0"], "loopback only"),
    ] {
        let checked = user.run(&[&["serve", "--personal", "--check"], arguments].concat());
        assert_eq!(checked.status.code(), Some(2), "{arguments:?}");
        assert!(String::from_utf8_lossy(&checked.stderr).contains(expected), "{arguments:?}: {checked:?}");
    }
    let with_token = run_sayso(&["listen", "--token", "t"], "");
    assert_eq!(with_token.exit_code, 2);
    assert!(with_token.stderr.contains("your personal hub needs no token"), "{}", with_token.stderr);
}
