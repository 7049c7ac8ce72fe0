//! The example in shell, against the real binary.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use testing::http::EventStream;
use testing::hub::{Hub, reserved_address};
use testing::messages::CAN_REPLY;

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/curl.sh")
}

fn agent(url: &str) -> Command {
    let mut command = Command::new("sh");
    command.arg(script()).env("SAYSO_URL", url).env_remove("SAYSO_TOKEN");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn said(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// Everything up to an event of that type.
fn until(ear: &mut EventStream, kind: &str, heard: &mut Vec<Value>) -> Value {
    loop {
        let (is, _, event) = ear.next();
        heard.push(event.clone());
        if is == kind {
            return event;
        }
    }
}

/// The rules that a recording breaks, of which there should be none.
fn faults(heard: &[Value]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("heard.jsonl");
    let lines: Vec<_> = heard.iter().map(Value::to_string).collect();
    std::fs::write(&file, lines.join("\n")).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_sayso"))
        .args(["validate", "--sequence", "always"])
        .arg(file)
        .output()
        .unwrap();
    let (code, found, _) = said(&output);
    if code == Some(0) { String::new() } else { found }
}

#[test]
fn the_agent_in_shell_acts_on_a_yes_and_only_then() {
    let hub = Hub::open();
    let client = hub.client();
    let subscription = client.subscribe(CAN_REPLY);
    let mut ear = client.listen(&subscription, None);
    for (decision, words) in [
        ("accept", "The money is in your savings.\n"),
        ("reject", "Nothing was transferred: the answer was no (by reply).\n"),
    ] {
        let running = agent(&format!("http://{}/", hub.address)).spawn().unwrap();
        let mut heard = Vec::new();
        let asked = until(&mut ear, "awaiting.confirmation", &mut heard);
        assert_eq!(asked["irreversible"], true);
        client.reply(&subscription, asked["reply_token"].as_str().unwrap(), decision);
        until(&mut ear, "session.completed", &mut heard);
        let output = running.wait_with_output().unwrap();
        assert_eq!(said(&output), (Some(0), words.to_owned(), String::new()));
        let acted = heard.iter().any(|event| event["type"] == "aaep:agent.tool.invoked");
        assert_eq!(acted, decision == "accept");
        assert!(heard.iter().any(|event| event["chunk"].is_string()), "{heard:?}");
        assert_eq!(faults(&heard), "");
    }
}

#[test]
fn the_agent_in_shell_does_nothing_where_nobody_listens() {
    let hub = Hub::open();
    let output = agent(&format!("http://{}", hub.address)).output().unwrap();
    let words = "Nothing was transferred: the answer was no (by unreachable).\n";
    assert_eq!(said(&output), (Some(0), words.to_owned(), String::new()));
}

#[test]
fn the_agent_in_shell_says_that_it_was_stopped() {
    let hub = Hub::open();
    let client = hub.client();
    let subscription = client.subscribe(CAN_REPLY);
    let mut ear = client.listen(&subscription, None);
    let running = agent(&format!("http://{}", hub.address)).spawn().unwrap();
    let mut heard = Vec::new();
    let asked = until(&mut ear, "awaiting.confirmation", &mut heard);
    let stop = format!(
        r#"{{"type":"sayso:session.stop","session_id":{},"subscription_id":"{subscription}","timestamp":{}}}"#,
        asked["session_id"], asked["timestamp"]
    );
    assert_eq!(client.post("/aaep/v1/replies", &stop).status, 204);
    let (code, nothing, why) = said(&running.wait_with_output().unwrap());
    assert_eq!((code, &*nothing), (Some(1), ""));
    assert_eq!(why, "The person stopped the session. Nothing was transferred.\n");
    until(&mut ear, "session.cancelled", &mut heard);
    assert_eq!(faults(&heard), "");
}

#[test]
fn the_agent_in_shell_says_in_plain_words_why_it_cannot() {
    // Nobody is there.
    let free = reserved_address();
    let (code, _, why) = said(&agent(&format!("http://{free}")).output().unwrap());
    assert_eq!(code, Some(2), "{why}");
    assert!(why.starts_with(&format!("There is no hub at http://{free}")), "{why}");
    // It is not let in.
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::start(&["--listen", "127.0.0.1:0", "--data", folder.path().to_str().unwrap()]);
    for token in ["", "sayso_wrong"] {
        let mut command = agent(&format!("http://{}", hub.address));
        let (code, _, why) = said(&command.env("SAYSO_TOKEN", token).output().unwrap());
        assert_eq!(code, Some(1), "{why}");
        assert!(why.contains("does not let this agent in. Set SAYSO_TOKEN"), "{why}");
    }
}

#[test]
fn the_agent_in_shell_is_let_in_by_its_token() {
    let folder = tempfile::tempdir().unwrap();
    let tokens = folder.path().join("tokens");
    let made = Command::new(env!("CARGO_BIN_EXE_sayso"))
        .args(["token", "new", "--role", "agent", "--name", "bank", "--agent-id", "bank", "--tokens"])
        .arg(&tokens)
        .output()
        .unwrap();
    let (_, token, why) = said(&made);
    assert!(token.starts_with("sayso_"), "{why}");
    let hub = Hub::start(&["--listen", "127.0.0.1:0", "--memory", "--tokens", tokens.to_str().unwrap()]);
    let mut command = agent(&format!("http://{}", hub.address));
    let (code, words, why) = said(&command.env("SAYSO_TOKEN", token.trim()).output().unwrap());
    assert_eq!((code, &*why), (Some(0), ""));
    assert!(words.starts_with("Nothing was transferred"), "{words}");
}

#[test]
fn the_example_in_shell_is_short() {
    let lines = std::fs::read_to_string(script()).unwrap().lines().count();
    assert!(lines < 80, "it has {lines} lines");
}
