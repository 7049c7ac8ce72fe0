//! Full and read-only disks: requests are refused with a clear error, nothing acknowledged is lost, no open question becomes
//! accepted, and the hub recovers when the disk is writable again.

use std::collections::HashSet;
use std::path::Path;
use std::process::Command;

use testing::http::{EventStream, TestClient, TestResponse};
use testing::hub::{HubProcess, StartFailure};
use testing::messages::{CONFIRMATION_BODY, REPLY_CAPABILITIES};

/// A listener, an agent that has asked questions, and what the hub acknowledged to them.
struct DiskScenario {
    client: TestClient,
    subscription: String,
    session: String,
    /// The id of the first event, from which a listener resumes.
    first_event_id: String,
    /// The token of a question that was not answered.
    open_token: String,
    /// The token of a question that was accepted. The acceptance was not used yet.
    accepted_token: String,
    /// The ids of the events that the hub acknowledged.
    acknowledged_ids: Vec<String>,
}

impl DiskScenario {
    fn new(client: TestClient) -> Self {
        let subscription = client.subscribe(REPLY_CAPABILITIES);
        let mut stream = client.open_event_stream(&subscription, None);
        let session = client.start_session();
        let first_event_id = stream.next().1;
        let accepted_token = client.ask_confirmation(&session);
        assert_eq!(client.reply(&subscription, &accepted_token, "accept").status, 204);
        let mut scenario = Self {
            client,
            subscription,
            session,
            first_event_id,
            open_token: String::new(),
            accepted_token,
            acknowledged_ids: Vec::new(),
        };
        let asked = scenario
            .post("confirmations", &CONFIRMATION_BODY.replace("5 euros", "7 euros").replace("5.00", "7.00"));
        assert_eq!(asked.status, 201, "{asked:?}");
        scenario.open_token = asked.json_str("reply_token");
        scenario
    }

    fn post(&self, rest: &str, body: &str) -> TestResponse {
        self.client.post(&format!("/agent/v1/sessions/{}/{rest}", self.session), body)
    }

    fn publish(&mut self) -> TestResponse {
        self.publish_summary(&"Working. ".repeat(100))
    }

    fn publish_summary(&mut self, summary: &str) -> TestResponse {
        let response = self.post(
            "events",
            &format!(
                r#"{{"type":"aaep:agent.progress.updated","progress":{{"percent":5}},"summary_normal":"{summary}"}}"#
            ),
        );
        if response.status == 200 {
            let ids: serde_json::Value = serde_json::from_str(&response.body).unwrap();
            self.acknowledged_ids.push(ids["event_ids"][0].as_str().unwrap().to_owned());
        }
        response
    }

    fn status(&self, token: &str) -> TestResponse {
        self.client.get(&format!("/agent/v1/sessions/{}/replies/{token}", self.session))
    }

    fn invoke_send(&self, token: &str, amount: &str) -> TestResponse {
        let call_number = amount.replace('.', "x");
        self.post(
            "events",
            &format!(
                r#"{{"type":"aaep:agent.tool.invoked","tool":"send","tool_call_id":"call_{call_number}","risk_level":"high","irreversible":true,"summary_normal":"Sending.","reply_token":"{token}","arguments":{{"amount":"{amount}"}}}}"#
            ),
        )
    }

    /// Publishes until three requests in a row are refused: first large events, then small ones, so that nothing more fits.
    fn publish_until_full(&mut self) {
        for summary in ["Working. ".repeat(100), "Working.".to_owned()] {
            let mut refusals = 0;
            while refusals < 3 {
                let response = self.publish_summary(&summary);
                refusals = match response.status {
                    200 => 0,
                    503 => refusals + 1,
                    _ => panic!("{response:?}"),
                };
                assert!(self.acknowledged_ids.len() < 900, "the disk does not fill up");
            }
        }
    }

    /// Asserts that every write is refused with a clear error while nothing can be stored.
    fn assert_refuses(&mut self, reasons: &[&str]) {
        let assert_unavailable = |response: &TestResponse| {
            assert_eq!(response.status, 503, "{response:?}");
            assert!(response.head.contains("application/problem+json"), "{response:?}");
            let title = response.json_str("title");
            assert!(title.starts_with("the request could not be stored: "), "{title}");
            assert!(reasons.iter().any(|reason| title.contains(reason)), "{title}");
        };
        assert_unavailable(&self.publish());
        assert_unavailable(&self.client.reply(&self.subscription, &self.open_token, "accept"));
        assert_eq!(
            self.status(&self.open_token).json_str("status"),
            "pending",
            "an unstored reply must not take effect"
        );
        let sent = self.invoke_send(&self.open_token, "7.00");
        assert!(sent.status == 422 && sent.body.contains("is not answered"), "{sent:?}");
        assert_unavailable(&self.invoke_send(&self.accepted_token, "5.00"));
        assert_unavailable(
            &self.post(
                "confirmations",
                &CONFIRMATION_BODY.replace("5 euros", "9 euros").replace("5.00", "9.00"),
            ),
        );
        let start = r#"{"summary_normal":"More.","localization_hints":{"primary_language":"en"}}"#;
        assert_unavailable(&self.client.post("/agent/v1/sessions", start));
        assert_eq!(self.client.get("/healthz").status, 200);
    }

    /// Asserts that everything acknowledged is still stored, and that nothing else was decided or done.
    fn assert_acknowledged_data(&self) -> EventStream {
        assert_eq!(self.status(&self.accepted_token).json_str("decision"), "accept");
        assert_eq!(self.status(&self.open_token).json_str("status"), "pending");
        let mut missing: HashSet<&str> = self.acknowledged_ids.iter().map(String::as_str).collect();
        let mut stream = self.client.open_event_stream(&self.subscription, Some(&self.first_event_id));
        while !missing.is_empty() {
            let (_, id, event) = stream.next();
            let is_published = event["summary_normal"].as_str() == Some(&"Working. ".repeat(100));
            assert!(missing.remove(id.as_str()) || !is_published, "a refused event was delivered: {event}");
        }
        stream
    }

    /// Asserts that the hub stores data again, and that the accept can be used exactly once.
    fn assert_recovers(&mut self) {
        assert_eq!(self.publish().status, 200);
        let mut stream = self.assert_acknowledged_data();
        assert_eq!(self.invoke_send(&self.accepted_token, "5.00").status, 200);
        let done = r#"{"type":"aaep:agent.tool.completed","tool":"send","tool_call_id":"call_5x00","status":"success","summary_normal":"Sent."}"#;
        assert_eq!(self.post("events", done).status, 200);
        for (token, amount, reason) in
            [(&self.accepted_token, "5.00", "was used"), (&self.open_token, "7.00", "is not answered")]
        {
            let sent = self.invoke_send(token, amount);
            assert!(sent.status == 422 && sent.body.contains(reason), "{sent:?}");
        }
        assert_eq!(self.client.reply(&self.subscription, &self.open_token, "reject").status, 204);
        assert_eq!(self.status(&self.open_token).json_str("decision"), "reject");
        while stream.next().2["extensions"]["sayso"]["reply_token"] != self.open_token.as_str() {}
    }
}

/// With this option, the hub keeps a subscription until its stream is reopened, even if a slow disk delays that.
const LONG_RESUME_WINDOW: &str = "--hub-resume-window 1h";

/// Mounts a small disk, runs the shell commands in `setup` and starts a hub on the disk. Returns `None` if mounting is
/// not permitted.
fn start_on_own_disk(folder: &Path, setup: &str) -> Option<Result<HubProcess, StartFailure>> {
    let script = format!(
        r#"mount -t tmpfs -o size=2m,mode=700 tmpfs "$1" || {{ echo "no disk" >&2; exit 77; }}
        {setup}
        exec "$2" serve --open --listen 127.0.0.1:0 {LONG_RESUME_WINDOW} --data "$1""#
    );
    let started = HubProcess::try_start_command(
        Command::new("unshare")
            .args(["--user", "--map-root-user", "--mount", "sh", "-c", &script, "sh"])
            .args([folder.as_os_str(), env!("CARGO_BIN_EXE_sayso").as_ref()]),
    );
    match started {
        Err((_, stderr))
            if stderr.iter().any(|line| line.contains("no disk") || line.contains("unshare: ")) =>
        {
            eprintln!("skipped: mounting is not permitted ({stderr:?})");
            None
        }
        other => Some(other),
    }
}

fn start_with_long_resume(folder: &Path) -> HubProcess {
    let mut arguments = vec!["--open", "--listen", "127.0.0.1:0", "--data", folder.to_str().unwrap()];
    arguments.extend(LONG_RESUME_WINDOW.split(' '));
    HubProcess::start(&arguments)
}

#[test]
fn a_hub_on_a_full_disk_refuses_writes_and_recovers() {
    let folder = tempfile::tempdir().unwrap();
    let ballast = r#"head -c 400000 /dev/zero > "$1/ballast""#;
    let Some(hub) = start_on_own_disk(folder.path(), ballast) else { return };
    let mut hub = hub.unwrap_or_else(|ended| panic!("{ended:?}"));
    let mut scenario = DiskScenario::new(hub.client());
    scenario.publish_until_full();
    scenario.assert_refuses(&["no space left"]);
    let ballast_path = format!("/proc/{}/root{}/ballast", hub.pid(), folder.path().display());
    std::fs::remove_file(ballast_path).unwrap();
    scenario.assert_recovers();
    assert_eq!(hub.stop(), 0);
}

#[test]
fn a_full_disk_is_reported_at_startup() {
    let folder = tempfile::tempdir().unwrap();
    let ballast = r#"head -c 3000000 /dev/zero > "$1/ballast" 2>/dev/null"#;
    let Some(hub) = start_on_own_disk(folder.path(), ballast) else { return };
    let Err((code, stderr)) = hub else { panic!("the hub started") };
    assert_eq!(code, Some(2), "{stderr:?}");
    assert!(
        stderr.last().is_some_and(|line| line.starts_with("sayso: ") && line.contains("no space left")),
        "{stderr:?}"
    );
}

/// Uses a file-size limit, which needs no privileges. Also checks that the decisions survive a restart.
#[test]
fn a_hub_at_its_file_size_limit_refuses_writes_and_recovers() {
    let folder = tempfile::tempdir().unwrap();
    let script = format!(
        r#"trap "" XFSZ; exec prlimit --fsize=1000000:unlimited "$2" serve --open --listen 127.0.0.1:0 {LONG_RESUME_WINDOW} --data "$1""#
    );
    let mut limited = Command::new("sh");
    limited
        .args(["-c", &script, "sh"])
        .args([folder.path().as_os_str(), env!("CARGO_BIN_EXE_sayso").as_ref()]);
    let hub = HubProcess::try_start_command(&mut limited).unwrap_or_else(|ended| panic!("{ended:?}"));
    let mut scenario = DiskScenario::new(hub.client());
    scenario.publish_until_full();
    scenario.assert_refuses(&["no space left", "I/O error"]);
    let raised = Command::new("prlimit").args(["--pid", &hub.pid(), "--fsize=unlimited"]).status().unwrap();
    assert!(raised.success());
    scenario.assert_recovers();
    drop(hub);
    let hub = HubProcess::start_on_disk(folder.path());
    let client = hub.client();
    for (token, decision) in [(&scenario.accepted_token, "accept"), (&scenario.open_token, "reject")] {
        let path = format!("/agent/v1/sessions/{}/replies/{token}", scenario.session);
        assert_eq!(client.get(&path).json_str("decision"), decision);
    }
}

#[test]
fn a_read_only_disk_is_reported_at_startup() {
    let data = tempfile::tempdir().unwrap();
    let mut hub = start_with_long_resume(data.path());
    DiskScenario::new(hub.client());
    hub.kill();
    let folder = tempfile::tempdir().unwrap();
    let copy_and_remount = format!(r#"cp -r {}/* "$1" && mount -o remount,ro "$1""#, data.path().display());
    for setup in [&*copy_and_remount, r#"mount -o remount,ro "$1""#] {
        let Some(hub) = start_on_own_disk(folder.path(), setup) else { return };
        let Err((code, stderr)) = hub else { panic!("the hub started") };
        assert_eq!(code, Some(2), "{stderr:?}");
        let last = stderr.last().unwrap();
        assert!(last.starts_with("sayso: ") && last.contains("read-only"), "{stderr:?}");
    }
}

/// Sets the immutable attribute on the files, to simulate a file system that becomes read-only. The attribute stops even
/// root.
#[test]
fn a_hub_whose_disk_becomes_read_only_refuses_writes_and_recovers() {
    let folder = tempfile::tempdir().unwrap();
    let mut hub = start_with_long_resume(folder.path());
    let files = ["", "-wal"].map(|ending| folder.path().join(format!("journal.sqlite{ending}")));
    let set_attribute = |attribute: &str| Command::new("chattr").arg(attribute).args(&files).output();
    let mut scenario = DiskScenario::new(hub.client());
    match set_attribute("+i") {
        Ok(marked) if marked.status.success() => {}
        other => return eprintln!("skipped: chattr is not permitted ({other:?})"),
    }
    let check = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        scenario.assert_refuses(&["read-only", "I/O error", "readonly"]);
    }));
    assert!(
        set_attribute("-i").unwrap().status.success(),
        "the attribute must be removed, or the folder cannot be deleted"
    );
    check.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    scenario.assert_recovers();
    assert_eq!(hub.stop(), 0);
}
