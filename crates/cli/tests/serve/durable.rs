//! What is acknowledged is on disk, seen from outside: a page cache outlives a killed process, so that kills show nothing.

use std::process::Command;

use testing::hub::Hub;
use testing::messages::CAN_REPLY;

#[test]
fn the_running_hub_says_that_its_journal_is_at_full() {
    let folder = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        let hub = Hub::on_disk(folder.path());
        let line = hub.said.iter().find(|line| line.starts_with("journal ")).expect("a line");
        // 2 is FULL.
        assert!(line.ends_with(": journal_mode=wal synchronous=2"), "{line}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn between_a_request_and_its_answer_the_log_is_synchronised() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("calls");
    let tried = Command::new("strace").args(["-f", "-o", "/dev/null", "true"]).output();
    let tried = tried.expect("strace is needed: cargo xtask test installs it");
    if !tried.status.success() {
        let why = String::from_utf8_lossy(&tried.stderr).into_owned();
        assert!(why.contains("not permitted") || why.contains("PTRACE"), "{why}");
        return eprintln!("may not trace: not tested ({why})");
    }
    // With -D, the hub is our child and strace its grandchild.
    let mut traced = Command::new("strace");
    traced.args(["-D", "-f", "-y", "-s", "400", "-o", record.to_str().unwrap()]);
    traced.args(["-e", "trace=fdatasync,fsync,write,writev,sendto,sendmsg,read,recvfrom,pwrite64"]);
    traced.args([env!("CARGO_BIN_EXE_sayso"), "serve", "--open", "--listen", "127.0.0.1:0", "--data"]);
    let mut hub =
        Hub::run(traced.arg(folder.path().join("data"))).unwrap_or_else(|ended| panic!("{ended:?}"));
    let client = hub.client();
    let subscription = client.subscribe(CAN_REPLY);
    let _ear = client.listen(&subscription, None);
    let session = client.start();
    let path = |rest: &str| format!("/agent/v1/sessions/{session}/{rest}");
    let event = r#"{"type":"aaep:agent.state.changed","to_state":"thinking"}"#;
    assert_eq!(client.post(&path("events"), event).status, 200);
    assert_eq!(client.post(&path("output"), "Hello.").status, 200);
    let token = client.ask(&session);
    assert_eq!(client.reply(&subscription, &token, "reject").status, 204);
    assert_eq!(hub.stop(), 0);

    let calls = Calls::read(&record, &hub.id());
    for (request, answer) in [
        ("POST /aaep/v1/subscriptions ".to_owned(), "HTTP/1.1 201 "),
        ("POST /agent/v1/sessions ".to_owned(), "HTTP/1.1 201 "),
        (format!("POST {} ", path("events")), "HTTP/1.1 200 "),
        (format!("POST {} ", path("output")), "HTTP/1.1 200 "),
        (format!("POST {} ", path("confirmations")), "HTTP/1.1 201 "),
        ("POST /aaep/v1/replies ".to_owned(), "HTTP/1.1 204 "),
    ] {
        calls.synchronised_between(&request, answer);
    }
}

/// What strace wrote down, each line a call or a part of one.
#[cfg(target_os = "linux")]
struct Calls(Vec<String>);

#[cfg(target_os = "linux")]
impl Calls {
    /// The tracer outlives the traced by a moment: it is done when it has written the end down.
    fn read(record: &std::path::Path, process: &str) -> Self {
        let is_end = |line: &str| thread_of(line) == process && line.ends_with("+++ exited with 0 +++");
        let until = std::time::Instant::now() + std::time::Duration::from_mins(1);
        loop {
            let text = std::fs::read_to_string(record).unwrap();
            if text.lines().any(is_end) {
                return Self(text.lines().map(str::to_owned).collect());
            }
            assert!(std::time::Instant::now() < until, "strace did not end: {text}");
            std::thread::yield_now();
        }
    }

    fn synchronised_between(&self, request: &str, answer: &str) {
        let Self(lines) = self;
        let asked = lines.iter().position(|line| line.contains(&format!("\"{request}"))).expect(request);
        let rest = &lines[asked..];
        let answered = rest.iter().position(|line| line.contains(&format!("\"{answer}"))).expect(answer);
        let between = &rest[..answered];
        let written = between.iter().position(|line| line.contains("pwrite64(") && line.contains("-wal>"));
        let written = written.unwrap_or_else(|| panic!("nothing was written to the log: {between:#?}"));
        assert!(
            between[written..].iter().any(|line| is_synchronised(line, &between[written..])),
            "{request}: {between:#?}"
        );
    }
}

/// A synchronisation of the log that came back well, in one line or in two.
#[cfg(target_os = "linux")]
fn is_synchronised(line: &str, after: &[String]) -> bool {
    let begins =
        (line.contains("fdatasync(") || line.contains("fsync(")) && line.contains("journal.sqlite-wal>");
    let thread = thread_of(line);
    let resumed =
        |line: &String| thread_of(line) == thread && line.contains("sync resumed>") && line.ends_with("= 0");
    begins && (line.ends_with("= 0") || line.ends_with("<unfinished ...>") && after.iter().any(resumed))
}

/// Each line begins with it.
#[cfg(target_os = "linux")]
fn thread_of(line: &str) -> &str {
    line.split(' ').next().unwrap_or_default()
}
