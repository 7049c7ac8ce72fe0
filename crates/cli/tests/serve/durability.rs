//! The hub's system calls show that acknowledged data is on disk. A test that kills the process would prove nothing, because
//! the page cache survives.

use std::process::Command;

use testing::hub::HubProcess;
use testing::messages::REPLY_CAPABILITIES;

#[test]
fn the_hub_reports_full_synchronous_mode() {
    let folder = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        let hub = HubProcess::start_on_disk(folder.path());
        let line =
            hub.startup_lines.iter().find(|line| line.starts_with("journal ")).expect("a journal line");
        // In SQLite, 2 means FULL.
        assert!(line.ends_with(": journal_mode=wal synchronous=2"), "{line}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn the_journal_is_synced_between_a_request_and_its_response() {
    let folder = tempfile::tempdir().unwrap();
    let trace_path = folder.path().join("calls");
    let probe = Command::new("strace").args(["-f", "-o", "/dev/null", "true"]).output();
    let probe = probe.expect("strace is needed: cargo xtask test installs it");
    if !probe.status.success() {
        let error = String::from_utf8_lossy(&probe.stderr).into_owned();
        assert!(error.contains("not permitted") || error.contains("PTRACE"), "{error}");
        return eprintln!("skipped: tracing is not permitted ({error})");
    }
    // With -D, the hub is a child of this process, and strace is a grandchild.
    let mut traced = Command::new("strace");
    traced.args(["-D", "-f", "-y", "-s", "400", "-o", trace_path.to_str().unwrap()]);
    traced.args(["-e", "trace=fdatasync,fsync,write,writev,sendto,sendmsg,read,recvfrom,pwrite64"]);
    traced.args([env!("CARGO_BIN_EXE_sayso"), "serve", "--open", "--listen", "127.0.0.1:0", "--data"]);
    let mut hub = HubProcess::try_start_command(traced.arg(folder.path().join("data")))
        .unwrap_or_else(|ended| panic!("{ended:?}"));
    let client = hub.client();
    let subscription = client.subscribe(REPLY_CAPABILITIES);
    let _stream = client.open_event_stream(&subscription, None);
    let session = client.start_session();
    let path = |rest: &str| format!("/agent/v1/sessions/{session}/{rest}");
    let event = r#"{"type":"aaep:agent.state.changed","to_state":"thinking"}"#;
    assert_eq!(client.post(&path("events"), event).status, 200);
    assert_eq!(client.post(&path("output"), "Hello.").status, 200);
    let token = client.ask_confirmation(&session);
    assert_eq!(client.reply(&subscription, &token, "reject").status, 204);
    assert_eq!(hub.stop(), 0);

    let calls = SystemCalls::read(&trace_path, &hub.pid());
    for (request, response) in [
        ("POST /aaep/v1/subscriptions ".to_owned(), "HTTP/1.1 201 "),
        ("POST /agent/v1/sessions ".to_owned(), "HTTP/1.1 201 "),
        (format!("POST {} ", path("events")), "HTTP/1.1 200 "),
        (format!("POST {} ", path("output")), "HTTP/1.1 200 "),
        (format!("POST {} ", path("confirmations")), "HTTP/1.1 201 "),
        ("POST /aaep/v1/replies ".to_owned(), "HTTP/1.1 204 "),
    ] {
        calls.assert_synced_between(&request, response);
    }
}

/// The lines that strace wrote, each one a system call or a part of one.
#[cfg(target_os = "linux")]
struct SystemCalls(Vec<String>);

#[cfg(target_os = "linux")]
impl SystemCalls {
    /// Reads the output of strace. Waits until strace has recorded the exit of the process.
    fn read(trace_path: &std::path::Path, process: &str) -> Self {
        let is_end = |line: &str| thread_of(line) == process && line.ends_with("+++ exited with 0 +++");
        let deadline = std::time::Instant::now() + std::time::Duration::from_mins(1);
        loop {
            let text = std::fs::read_to_string(trace_path).unwrap();
            if text.lines().any(is_end) {
                return Self(text.lines().map(str::to_owned).collect());
            }
            assert!(std::time::Instant::now() < deadline, "strace did not record the exit: {text}");
            std::thread::yield_now();
        }
    }

    fn assert_synced_between(&self, request: &str, response: &str) {
        let Self(lines) = self;
        let request_index =
            lines.iter().position(|line| line.contains(&format!("\"{request}"))).expect(request);
        let rest = &lines[request_index..];
        let response_index =
            rest.iter().position(|line| line.contains(&format!("\"{response}"))).expect(response);
        let between = &rest[..response_index];
        let first_write_index =
            between.iter().position(|line| line.contains("pwrite64(") && line.contains("-wal>"));
        let first_write_index = first_write_index
            .unwrap_or_else(|| panic!("nothing was written to the write-ahead log: {between:#?}"));
        assert!(
            between[first_write_index..]
                .iter()
                .any(|line| starts_successful_sync(line, &between[first_write_index..])),
            "{request}: {between:#?}"
        );
    }
}

/// Whether a line starts a sync of the write-ahead log that succeeds, on the same line or a later one.
#[cfg(target_os = "linux")]
fn starts_successful_sync(line: &str, after: &[String]) -> bool {
    let is_sync_call =
        (line.contains("fdatasync(") || line.contains("fsync(")) && line.contains("journal.sqlite-wal>");
    let thread = thread_of(line);
    let is_resumed_sync =
        |line: &String| thread_of(line) == thread && line.contains("sync resumed>") && line.ends_with("= 0");
    is_sync_call
        && (line.ends_with("= 0") || line.ends_with("<unfinished ...>") && after.iter().any(is_resumed_sync))
}

/// Returns the thread id at the start of a line.
#[cfg(target_os = "linux")]
fn thread_of(line: &str) -> &str {
    line.split(' ').next().unwrap_or_default()
}
