//! A recording contains exactly what the hub sent, over every transport.

use std::path::Path;

use serde_json::{Value, json};

use crate::replay::capture_process::{CaptureProcess, events, lines, recorded_types};
use testing::cli::run_sayso;
use testing::http::TestClient;
use testing::hub::{HubProcess, reserved_address};
use testing::messages::{self, short_type};

/// Sends a request to the demo assistant, accepts its question and returns all events of the session.
fn run_demo_request(client: &TestClient, capabilities: &Value, request_text: &str) -> Vec<Value> {
    let subscription = client.subscribe(&capabilities.to_string());
    let mut stream = client.open_event_stream(&subscription, None);
    let response = client.post("/demo", &json!({ "text": request_text }).to_string());
    assert_eq!(response.status, 201, "{response:?}");
    let mut received = Vec::new();
    loop {
        let (kind, _, event) = stream.next();
        if kind == "awaiting.confirmation" {
            client.reply(&subscription, event["reply_token"].as_str().unwrap(), "accept");
        }
        received.push(event);
        if kind == "session.completed" {
            client.post("/aaep/v1/replies", &messages::subscription_close(&subscription));
            return received;
        }
    }
}

/// Asserts that `sayso validate` finds no error and returns its summary.
fn assert_valid(file: &Path) -> String {
    let output = run_sayso(&["validate", file.to_str().unwrap()], "");
    assert_eq!(output.exit_code, 0, "{}", output.stdout);
    assert!(output.summary().contains(" 0 errors"), "{}", output.summary());
    output.summary().to_owned()
}

#[test]
fn a_demo_session_is_recorded_exactly_and_is_valid() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("hub.sock");
    let hub = HubProcess::start(&[
        "--memory",
        "--open",
        "--demo-agent",
        "--listen",
        "127.0.0.1:0",
        "--unix",
        socket.to_str().unwrap(),
    ]);
    let transports = [
        ("sse", format!("http://{}", hub.address)),
        ("ws", format!("ws://{}", hub.address)),
        ("unix", format!("unix:{}", socket.display())),
    ];
    let recorders: Vec<_> = transports
        .iter()
        .map(|(name, url)| {
            let file = folder.path().join(name);
            (CaptureProcess::start_connected(url, &file, &[]), file)
        })
        .collect();
    let first_file = &recorders[0].1.clone();
    let request = lines(first_file)[0].clone();
    assert_eq!(short_type(&request), "subscription.request");
    assert_eq!(short_type(&lines(first_file)[1]), "subscription.accepted");
    let capabilities = request["capabilities"].clone();
    let mut received = run_demo_request(&hub.client(), &capabilities, "What is my balance?");
    received.extend(run_demo_request(&hub.client(), &capabilities, "Transfer 250 euros to Ben"));
    for (recorder, file) in recorders {
        recorder.wait_for_occurrences("session.completed", 2);
        let (code, stderr_lines) = recorder.stop("-INT");
        assert_eq!(code, Some(0), "{stderr_lines:?}");
        let expected = format!("{} events recorded in {}.", received.len(), file.display());
        assert_eq!(stderr_lines.last(), Some(&expected));
        assert_eq!(events(&file), received, "{}", file.display());
        let summary = assert_valid(&file);
        assert!(summary.ends_with(" 0 warnings"), "{summary}");
    }
    assert_eq!(recorded_types(first_file).last().unwrap(), "subscription.close");
}

#[test]
fn the_no_questions_option_declares_no_reply_support() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.jsonl");
    let hub = HubProcess::start_in_memory();
    let recorder =
        CaptureProcess::start_connected(&format!("http://{}", hub.address), &file, &["--no-questions"]);
    let client = hub.client();
    let session = client.start_session();
    client.ask_confirmation(&session);
    let end = r#"{"type":"aaep:agent.session.completed","summary_normal":"Done."}"#;
    client.post(&format!("/agent/v1/sessions/{session}/events"), end);
    recorder.wait_for_occurrences("session.completed", 1);
    assert_eq!(recorder.stop("-TERM").0, Some(0));
    assert_eq!(lines(&file)[0]["capabilities"]["supports_confirmation_reply"], false);
    assert!(!recorded_types(&file).contains(&"awaiting.confirmation".to_owned()));
    assert_valid(&file);
}

#[test]
fn an_existing_file_is_overwritten_only_with_force() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.jsonl");
    let hub = HubProcess::start_in_memory();
    let url = format!("http://{}", hub.address);
    std::fs::write(&file, "{\"kept\":1}\n{\"half").unwrap();
    let path = file.to_str().unwrap();
    let rejected = run_sayso(&["capture", &url, "-o", path], "");
    assert_eq!(rejected.exit_code, 2);
    assert!(
        rejected.stderr.contains("already exists. Use --append to add to it, or --force"),
        "{}",
        rejected.stderr
    );
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "{\"kept\":1}\n{\"half");

    let recorder = CaptureProcess::start(&url, &file, &["--append"]);
    recorder.wait_for_line("removed an incomplete last line of 6 bytes from");
    recorder.wait_for_line("Recording ");
    assert_eq!(recorder.stop("-TERM").0, Some(0));
    let recorded = lines(&file);
    assert_eq!((recorded.len(), &recorded[0]), (4, &json!({ "kept": 1 })), "{recorded:?}");

    let recorder = CaptureProcess::start_connected(&url, &file, &["--force"]);
    assert_eq!(recorder.stop("-TERM").0, Some(0));
    assert_eq!(
        recorded_types(&file),
        ["subscription.request", "subscription.accepted", "subscription.close"]
    );
}

#[test]
fn a_recording_is_readable_only_by_its_owner() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.jsonl");
    let hub = HubProcess::start_in_memory();
    let _recorder = CaptureProcess::start_connected(&format!("http://{}", hub.address), &file, &[]);
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn an_unreachable_hub_creates_no_file_and_changes_none() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.jsonl");
    let existing = folder.path().join("kept.jsonl");
    std::fs::write(&existing, "{}\n").unwrap();
    let unused_address = reserved_address();
    for url in [
        format!("http://{unused_address}"),
        format!("ws://{unused_address}"),
        "unix:/nowhere/at/all".to_owned(),
    ] {
        let output = run_sayso(&["capture", &url, "-o", file.to_str().unwrap()], "");
        assert_eq!(output.exit_code, 2, "{}", output.stderr);
        assert!(output.stderr.starts_with("sayso: cannot reach "), "{}", output.stderr);
        assert!(!file.exists());
        let output = run_sayso(&["capture", &url, "-o", existing.to_str().unwrap(), "--force"], "");
        assert_eq!(output.exit_code, 2);
        assert_eq!(std::fs::read_to_string(&existing).unwrap(), "{}\n");
    }
    for url in ["ftp://a", "unix:", "ws://", "nothing"] {
        assert_eq!(run_sayso(&["capture", url, "-o", file.to_str().unwrap()], "").exit_code, 2, "{url}");
    }
}

#[test]
fn tls_works_if_the_certificate_is_trusted() {
    let folder = tempfile::tempdir().unwrap();
    let generated = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let (cert, key) = (folder.path().join("hub.crt"), folder.path().join("hub.key"));
    std::fs::write(&cert, generated.cert.pem()).unwrap();
    testing::cli::write_private_file(&key, &generated.signing_key.serialize_pem());
    let (cert, key) = (cert.to_str().unwrap(), key.to_str().unwrap());
    let hub = HubProcess::start_in_memory_with(&["--tls-cert", cert, "--tls-key", key]);
    for scheme in ["https", "wss"] {
        let url = format!("{scheme}://{}", hub.address);
        let file = folder.path().join(scheme);
        let untrusted = run_sayso(&["capture", &url, "-o", file.to_str().unwrap()], "");
        assert_eq!(untrusted.exit_code, 2);
        assert!(untrusted.stderr.contains("certificate"), "{}", untrusted.stderr);
        let recorder = CaptureProcess::start_connected(&url, &file, &["--ca", cert]);
        assert_eq!(recorder.stop("-INT").0, Some(0));
        assert_eq!(recorded_types(&file)[..2], ["subscription.request", "subscription.accepted"]);
    }
}

#[test]
fn a_missing_token_is_reported_over_http_and_websocket() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let hub = HubProcess::start(&["--listen", "127.0.0.1:0", "--data", data.to_str().unwrap()]);
    let token = hub.admin_token();
    let token_path = folder.path().join("token");
    std::fs::write(&token_path, token).unwrap();
    for scheme in ["http", "ws"] {
        let url = format!("{scheme}://{}", hub.address);
        let file = folder.path().join(scheme);
        let rejected = run_sayso(&["capture", &url, "-o", file.to_str().unwrap()], "");
        assert_eq!(rejected.exit_code, 2);
        assert!(rejected.stderr.starts_with("sayso: The hub needs a valid token."), "{}", rejected.stderr);
        let arguments = ["--token-file", token_path.to_str().unwrap()];
        assert_eq!(CaptureProcess::start_connected(&url, &file, &arguments).stop("-INT").0, Some(0));
    }
}
