//! The shell example against the real binary.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use testing::http::EventStream;
use testing::hub::{HubProcess, reserved_address};
use testing::messages::REPLY_CAPABILITIES;

fn script_path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/curl.sh")
}

fn agent_command(url: &str) -> Command {
    let mut command = Command::new("sh");
    command.arg(script_path()).env("SAYSO_URL", url).env_remove("SAYSO_TOKEN");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn output_text(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// Reads up to the first event of this type and appends all events to `received`.
fn read_until(stream: &mut EventStream, kind: &str, received: &mut Vec<Value>) -> Value {
    loop {
        let (event_type, _, event) = stream.next();
        received.push(event.clone());
        if event_type == kind {
            return event;
        }
    }
}

/// Returns the validation findings of a recording. The result is empty if the recording is valid.
fn validation_findings(received: &[Value]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("received.jsonl");
    let lines: Vec<_> = received.iter().map(Value::to_string).collect();
    std::fs::write(&file, lines.join("\n")).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_sayso"))
        .args(["validate", "--sequence", "always"])
        .arg(file)
        .output()
        .unwrap();
    let (code, findings, _) = output_text(&output);
    if code == Some(0) { String::new() } else { findings }
}

#[test]
fn the_shell_agent_acts_only_after_an_acceptance() {
    let hub = HubProcess::start_in_memory();
    let client = hub.client();
    let subscription = client.subscribe(REPLY_CAPABILITIES);
    let mut stream = client.open_event_stream(&subscription, None);
    for (decision, stdout) in [
        ("accept", "The money is in your savings.\n"),
        ("reject", "Nothing was transferred, because the answer was no.\n"),
    ] {
        let process = agent_command(&format!("http://{}/", hub.address)).spawn().unwrap();
        let mut received = Vec::new();
        let question = read_until(&mut stream, "awaiting.confirmation", &mut received);
        assert_eq!(question["irreversible"], true);
        client.reply(&subscription, question["reply_token"].as_str().unwrap(), decision);
        read_until(&mut stream, "session.completed", &mut received);
        let output = process.wait_with_output().unwrap();
        assert_eq!(output_text(&output), (Some(0), stdout.to_owned(), String::new()));
        let has_acted = received.iter().any(|event| event["type"] == "aaep:agent.tool.invoked");
        assert_eq!(has_acted, decision == "accept");
        assert!(received.iter().any(|event| event["chunk"].is_string()), "{received:?}");
        assert_eq!(validation_findings(&received), "");
    }
}

#[test]
fn the_shell_agent_does_nothing_without_a_listener() {
    let hub = HubProcess::start_in_memory();
    let output = agent_command(&format!("http://{}", hub.address)).output().unwrap();
    let stdout = "Nothing was transferred, because nobody answered (unreachable).\n";
    assert_eq!(output_text(&output), (Some(0), stdout.to_owned(), String::new()));
}

#[test]
fn the_shell_agent_reports_that_it_was_stopped() {
    let hub = HubProcess::start_in_memory();
    let client = hub.client();
    let subscription = client.subscribe(REPLY_CAPABILITIES);
    let mut stream = client.open_event_stream(&subscription, None);
    let process = agent_command(&format!("http://{}", hub.address)).spawn().unwrap();
    let mut received = Vec::new();
    let question = read_until(&mut stream, "awaiting.confirmation", &mut received);
    let stop = format!(
        r#"{{"type":"sayso:session.stop","session_id":{},"subscription_id":"{subscription}","timestamp":{}}}"#,
        question["session_id"], question["timestamp"]
    );
    assert_eq!(client.post("/aaep/v1/replies", &stop).status, 204);
    let (code, stdout, stderr) = output_text(&process.wait_with_output().unwrap());
    assert_eq!((code, &*stdout), (Some(1), ""));
    assert_eq!(stderr, "The person stopped the session. Nothing was transferred.\n");
    read_until(&mut stream, "session.cancelled", &mut received);
    assert_eq!(validation_findings(&received), "");
}

#[test]
fn the_shell_agent_explains_why_it_cannot_run() {
    // No hub is running.
    let unused_address = reserved_address();
    let (code, _, stderr) =
        output_text(&agent_command(&format!("http://{unused_address}")).output().unwrap());
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.starts_with(&format!("There is no hub at http://{unused_address}")), "{stderr}");
    // The token is missing or wrong.
    let folder = tempfile::tempdir().unwrap();
    let hub = HubProcess::start(&["--listen", "127.0.0.1:0", "--data", folder.path().to_str().unwrap()]);
    for token in ["", "sayso_wrong"] {
        let mut command = agent_command(&format!("http://{}", hub.address));
        let (code, _, stderr) = output_text(&command.env("SAYSO_TOKEN", token).output().unwrap());
        assert_eq!(code, Some(1), "{stderr}");
        assert!(stderr.contains("does not let this agent in. Set SAYSO_TOKEN"), "{stderr}");
    }
}

#[test]
fn the_shell_agent_authenticates_with_its_token() {
    let folder = tempfile::tempdir().unwrap();
    let tokens = folder.path().join("tokens");
    let output = Command::new(env!("CARGO_BIN_EXE_sayso"))
        .args(["token", "new", "--role", "agent", "--name", "bank", "--agent-id", "bank", "--tokens"])
        .arg(&tokens)
        .output()
        .unwrap();
    let (_, token, stderr) = output_text(&output);
    assert!(token.starts_with("sayso_"), "{stderr}");
    let hub =
        HubProcess::start(&["--listen", "127.0.0.1:0", "--memory", "--tokens", tokens.to_str().unwrap()]);
    let mut command = agent_command(&format!("http://{}", hub.address));
    let (code, stdout, stderr) = output_text(&command.env("SAYSO_TOKEN", token.trim()).output().unwrap());
    assert_eq!((code, &*stderr), (Some(0), ""));
    assert!(stdout.starts_with("Nothing was transferred"), "{stdout}");
}

#[test]
fn the_shell_example_is_short() {
    let lines = std::fs::read_to_string(script_path()).unwrap().lines().count();
    assert!(lines < 80, "the example has {lines} lines");
}
