//! Disks that are full or may not be written: a clear no, nothing acknowledged is lost, nothing undecided becomes a yes, and
//! when the disk is well again the hub goes on.

use std::collections::HashSet;
use std::path::Path;
use std::process::Command;

use testing::http::{Client, EventStream, Response};
use testing::hub::{FailedStart, Hub};
use testing::messages::{CAN_REPLY, QUESTION};

/// A person who listens, an agent that has asked, and what they were promised.
struct Scene {
    client: Client,
    subscription: String,
    session: String,
    /// The first event, to resume from.
    first: String,
    /// A question that nobody has answered.
    open: String,
    /// A question that was accepted, and on which nothing was done yet.
    accepted: String,
    events: Vec<String>,
}

impl Scene {
    fn new(client: Client) -> Self {
        let subscription = client.subscribe(CAN_REPLY);
        let mut ear = client.listen(&subscription, None);
        let session = client.start();
        let first = ear.next().1;
        let accepted = client.ask(&session);
        assert_eq!(client.reply(&subscription, &accepted, "accept").status, 204);
        let mut scene =
            Self { client, subscription, session, first, open: String::new(), accepted, events: Vec::new() };
        let asked =
            scene.post("confirmations", &QUESTION.replace("5 euro", "7 euro").replace("5.00", "7.00"));
        assert_eq!(asked.status, 201, "{asked:?}");
        scene.open = asked.text("reply_token");
        scene
    }

    fn post(&self, rest: &str, body: &str) -> Response {
        self.client.post(&format!("/agent/v1/sessions/{}/{rest}", self.session), body)
    }

    fn publish(&mut self) -> Response {
        let summary = "Working. ".repeat(100);
        let answer = self.post(
            "events",
            &format!(
                r#"{{"type":"aaep:agent.progress.updated","progress":{{"percent":5}},"summary_normal":"{summary}"}}"#
            ),
        );
        if answer.status == 200 {
            let ids: serde_json::Value = serde_json::from_str(&answer.body).unwrap();
            self.events.push(ids["event_ids"][0].as_str().unwrap().to_owned());
        }
        answer
    }

    fn status(&self, token: &str) -> Response {
        self.client.get(&format!("/agent/v1/sessions/{}/replies/{token}", self.session))
    }

    fn send(&self, token: &str, amount: &str) -> Response {
        let call = amount.replace('.', "x");
        self.post(
            "events",
            &format!(
                r#"{{"type":"aaep:agent.tool.invoked","tool":"send","tool_call_id":"call_{call}","risk_level":"high","irreversible":true,"summary_normal":"Sending.","reply_token":"{token}","arguments":{{"amount":"{amount}"}}}}"#
            ),
        )
    }

    /// Publishes until it is refused, and again, so that not even a little can be stored.
    fn fill(&mut self) {
        let mut refused = 0;
        while refused < 3 {
            let answer = self.publish();
            refused = match answer.status {
                200 => 0,
                503 => refused + 1,
                _ => panic!("{answer:?}"),
            };
            assert!(self.events.len() < 900, "it does not fill");
        }
    }

    /// While nothing can be stored, everything is a clear no.
    fn refuses(&mut self, words: &[&str]) {
        let told = |answer: &Response| {
            assert_eq!(answer.status, 503, "{answer:?}");
            assert!(answer.head.contains("application/problem+json"), "{answer:?}");
            let title = answer.text("title");
            assert!(title.starts_with("nothing could be stored: "), "{title}");
            assert!(words.iter().any(|word| title.contains(word)), "{title}");
        };
        told(&self.publish());
        told(&self.client.reply(&self.subscription, &self.open, "accept"));
        assert_eq!(self.status(&self.open).text("status"), "pending", "not stored, so not said");
        let sent = self.send(&self.open, "7.00");
        assert!(sent.status == 422 && sent.body.contains("is not answered"), "{sent:?}");
        told(&self.send(&self.accepted, "5.00"));
        told(&self.post("confirmations", &QUESTION.replace("5 euro", "9 euro").replace("5.00", "9.00")));
        let start = r#"{"summary_normal":"More.","localization_hints":{"primary_language":"en"}}"#;
        told(&self.client.post("/agent/v1/sessions", start));
        assert_eq!(self.client.get("/healthz").status, 200);
    }

    /// Everything acknowledged is there, and nothing else was decided or done.
    fn keeps(&self) -> EventStream {
        assert_eq!(self.status(&self.accepted).text("decision"), "accept");
        assert_eq!(self.status(&self.open).text("status"), "pending");
        let mut missing: HashSet<&str> = self.events.iter().map(String::as_str).collect();
        let mut ear = self.client.listen(&self.subscription, Some(&self.first));
        while !missing.is_empty() {
            let (_, id, event) = ear.next();
            let told = event["summary_normal"].as_str() == Some(&"Working. ".repeat(100));
            assert!(missing.remove(id.as_str()) || !told, "refused, and heard after all: {event}");
        }
        ear
    }

    /// It goes on: what was refused can be done now, once.
    fn goes_on(&mut self) {
        assert_eq!(self.publish().status, 200);
        let mut ear = self.keeps();
        assert_eq!(self.send(&self.accepted, "5.00").status, 200);
        let done = r#"{"type":"aaep:agent.tool.completed","tool":"send","tool_call_id":"call_5x00","status":"success","summary_normal":"Sent."}"#;
        assert_eq!(self.post("events", done).status, 200);
        for (token, amount, why) in
            [(&self.accepted, "5.00", "was used"), (&self.open, "7.00", "is not answered")]
        {
            let sent = self.send(token, amount);
            assert!(sent.status == 422 && sent.body.contains(why), "{sent:?}");
        }
        assert_eq!(self.client.reply(&self.subscription, &self.open, "reject").status, 204);
        assert_eq!(self.status(&self.open).text("decision"), "reject");
        while ear.next().2["extensions"]["sayso"]["reply_token"] != self.open.as_str() {}
    }
}

/// Nobody listens for most of a test, and on a slow disk that takes a while: who was there is waited for.
const PATIENT: &str = "--hub-resume-window 1h";

/// A hub on a disk of its own, that goes with it; `None` where that is not allowed. `before` is done on the disk first.
fn on_its_own_disk(folder: &Path, before: &str) -> Option<Result<Hub, FailedStart>> {
    let script = format!(
        r#"mount -t tmpfs -o size=2m,mode=700 tmpfs "$1" || {{ echo "no disk" >&2; exit 77; }}
        {before}
        exec "$2" serve --open --listen 127.0.0.1:0 {PATIENT} --data "$1""#
    );
    let ran = Hub::run(
        Command::new("unshare")
            .args(["--user", "--map-root-user", "--mount", "sh", "-c", &script, "sh"])
            .args([folder.as_os_str(), env!("CARGO_BIN_EXE_sayso").as_ref()]),
    );
    match ran {
        Err((_, said)) if said.iter().any(|line| line.contains("no disk") || line.contains("unshare: ")) => {
            eprintln!("may not mount a disk: not tested ({said:?})");
            None
        }
        other => Some(other),
    }
}

fn patient(folder: &Path) -> Hub {
    let mut arguments = vec!["--open", "--listen", "127.0.0.1:0", "--data", folder.to_str().unwrap()];
    arguments.extend(PATIENT.split(' '));
    Hub::start(&arguments)
}

#[test]
fn a_full_disk_refuses_loses_nothing_and_is_gone_on_with_when_there_is_room() {
    let folder = tempfile::tempdir().unwrap();
    let ballast = r#"head -c 400000 /dev/zero > "$1/ballast""#;
    let Some(hub) = on_its_own_disk(folder.path(), ballast) else { return };
    let mut hub = hub.unwrap_or_else(|ended| panic!("{ended:?}"));
    let mut scene = Scene::new(hub.client());
    scene.fill();
    scene.refuses(&["no space left"]);
    let inside = format!("/proc/{}/root{}/ballast", hub.id(), folder.path().display());
    std::fs::remove_file(inside).unwrap();
    scene.goes_on();
    assert_eq!(hub.stop(), 0);
}

#[test]
fn no_room_for_a_journal_is_said_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let ballast = r#"head -c 3000000 /dev/zero > "$1/ballast" 2>/dev/null"#;
    let Some(hub) = on_its_own_disk(folder.path(), ballast) else { return };
    let Err((code, said)) = hub else { panic!("it started") };
    assert_eq!(code, Some(2), "{said:?}");
    assert!(
        said.last().is_some_and(|line| line.starts_with("sayso: ") && line.contains("no space left")),
        "{said:?}"
    );
}

/// A limit for files, which needs no rights; also shown: a restart while there is no room.
#[test]
fn a_file_that_may_not_grow_refuses_loses_nothing_and_goes_on_when_it_may() {
    let folder = tempfile::tempdir().unwrap();
    let script = format!(
        r#"trap "" XFSZ; exec prlimit --fsize=1000000:unlimited "$2" serve --open --listen 127.0.0.1:0 {PATIENT} --data "$1""#
    );
    let start = || {
        let mut limited = Command::new("sh");
        limited
            .args(["-c", &script, "sh"])
            .args([folder.path().as_os_str(), env!("CARGO_BIN_EXE_sayso").as_ref()]);
        Hub::run(&mut limited).unwrap_or_else(|ended| panic!("{ended:?}"))
    };
    let hub = start();
    let mut scene = Scene::new(hub.client());
    scene.fill();
    scene.refuses(&["no space left", "I/O error"]);
    let raised = Command::new("prlimit").args(["--pid", &hub.id(), "--fsize=unlimited"]).status().unwrap();
    assert!(raised.success());
    scene.goes_on();
    drop(hub);
    let hub = Hub::on_disk(folder.path());
    let client = hub.client();
    for (token, decision) in [(&scene.accepted, "accept"), (&scene.open, "reject")] {
        let path = format!("/agent/v1/sessions/{}/replies/{token}", scene.session);
        assert_eq!(client.get(&path).text("decision"), decision);
    }
}

#[test]
fn a_read_only_disk_is_said_at_the_start() {
    let data = tempfile::tempdir().unwrap();
    let mut hub = patient(data.path());
    Scene::new(hub.client());
    hub.kill();
    let folder = tempfile::tempdir().unwrap();
    let copied = format!(r#"cp {}/* "$1" && mount -o remount,ro "$1""#, data.path().display());
    for before in [&*copied, r#"mount -o remount,ro "$1""#] {
        let Some(hub) = on_its_own_disk(folder.path(), before) else { return };
        let Err((code, said)) = hub else { panic!("it started") };
        assert_eq!(code, Some(2), "{said:?}");
        let last = said.last().unwrap();
        assert!(last.starts_with("sayso: ") && last.contains("read-only"), "{said:?}");
    }
}

/// A file system that became read-only under the hub, by the mark that forbids even root to write.
#[test]
fn a_disk_that_becomes_read_only_refuses_loses_nothing_and_goes_on_when_it_may_be_written() {
    let folder = tempfile::tempdir().unwrap();
    let mut hub = patient(folder.path());
    let files = ["", "-wal"].map(|ending| folder.path().join(format!("journal.sqlite{ending}")));
    let mark = |sign: &str| Command::new("chattr").arg(sign).args(&files).output();
    let mut scene = Scene::new(hub.client());
    match mark("+i") {
        Ok(marked) if marked.status.success() => {}
        other => return eprintln!("may not forbid writing: not tested ({other:?})"),
    }
    let refused = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        scene.refuses(&["read-only", "I/O error", "readonly"]);
    }));
    assert!(mark("-i").unwrap().status.success(), "else the folder cannot be removed");
    refused.unwrap_or_else(|why| std::panic::resume_unwind(why));
    scene.goes_on();
    assert_eq!(hub.stop(), 0);
}
