//! `sayso replay --listen`: every listener receives the recording from its start.

use std::path::Path;

use serde_json::Value;

use crate::replay::capture_process::{CaptureProcess, events, repository_recording};
use testing::cli::{command, run_sayso};
use testing::hub::HubProcess;
use testing::messages;
use testing::messages::REPLY_CAPABILITIES;
use testing::terminal::ListenProcess;

/// Capabilities that request all events with their original chunks.
const ALL_EVENTS: &str = r#"{"supports_confirmation_reply":true,"supports_clarification_reply":true,"coalesce_boundaries":["none","word","sentence","paragraph","completion"],"preferred_verbosity":"detailed"}"#;

fn start_replay_server(file: &Path, speed: &str) -> HubProcess {
    HubProcess::start_command(&mut command(&[
        "replay",
        file.to_str().unwrap(),
        "--listen",
        "127.0.0.1:0",
        "--speed",
        speed,
    ]))
}

#[test]
fn a_served_recording_is_received_completely_and_can_be_recorded_again() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["section-4-6", "clarification", "two-producers", "linked-sessions", "a-8-7-position-falls"] {
        let original = events(&repository_recording(name));
        let server = start_replay_server(&repository_recording(name), "max");
        let client = server.client();
        let mut stream = client.open_event_stream(&client.subscribe(ALL_EVENTS), None);
        let received: Vec<Value> = original.iter().map(|_| stream.next().2).collect();
        assert_eq!(received, original, "{name}");
        for scheme in ["http", "ws"] {
            let file = folder.path().join(format!("{name}-{scheme}"));
            let recorder =
                CaptureProcess::start_connected(&format!("{scheme}://{}", server.address), &file, &[]);
            recorder.wait_for_occurrences("\"event_id\"", original.len());
            assert_eq!(recorder.stop("-TERM").0, Some(0));
            assert_eq!(events(&file), original, "{name} over {scheme}");
        }
    }
}

#[test]
fn a_listener_that_resumes_receives_the_rest() {
    let original = events(&repository_recording("section-4-6"));
    let server = start_replay_server(&repository_recording("section-4-6"), "max");
    let client = server.client();
    let subscription = client.subscribe(ALL_EVENTS);
    for from in [0, 5, original.len() - 2] {
        let last_event_id = original[from]["event_id"].as_str().unwrap();
        let mut stream = client.open_event_stream(&subscription, Some(last_event_id));
        for event in &original[from + 1..] {
            assert_eq!(stream.next().2, *event, "after {from}");
        }
    }
    // An unknown event id restarts the recording from the beginning.
    let mut stream = client.open_event_stream(&subscription, Some("evt_unknown"));
    assert_eq!(stream.next().2, original[0]);
}

#[test]
fn malformed_and_oversized_requests_are_refused() {
    let server = start_replay_server(&repository_recording("clarification"), "max");
    let client = server.client();
    let host = format!("Host: {}\r\n", server.address);
    let post_head = format!("POST /aaep/v1/subscriptions HTTP/1.1\r\n{host}");
    // Padded to exactly the size limit below, and without the end of the head. If the request were longer, unread
    // bytes would reset the connection, and the response would be lost.
    let long_head = format!("GET / HTTP/1.1\r\n{host}X: ");
    let chunks = format!("10000\r\n{}\r\n", "y".repeat(0x10000));
    for (request, status) in [
        ("GARBAGE\r\n\r\n".to_owned(), "400"),
        (format!("GET / HTTP/1.1\r\n{host}{host}\r\n"), "400"),
        (format!("{post_head}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n"), "400"),
        (format!("{post_head}Transfer-Encoding: chunked\r\n\r\nzz\r\n"), "400"),
        (format!("GET / HTTP/1.1\r\n{host}{}\r\n", "X: y\r\n".repeat(64)), "400"),
        (format!("{long_head:y<16384}"), "431"),
        (format!("{post_head}Content-Length: 65537\r\n\r\n"), "413"),
        (format!("{post_head}Transfer-Encoding: chunked\r\n\r\n{chunks}1\r\ny\r\n"), "413"),
        (format!("GET /aaep/v1/events?token=a HTTP/1.1\r\n{host}Connection: close\r\n\r\n"), "400"),
        ("GET / HTTP/1.1\r\nHost: rebound.example\r\nConnection: close\r\n\r\n".to_owned(), "421"),
        // The rest of this request never arrives, so there is no response.
        (format!("{post_head}X: "), ""),
    ] {
        let response = client.send_raw(request.as_bytes());
        let status = if status.is_empty() { String::new() } else { format!("HTTP/1.1 {status} ") };
        assert!(
            response.starts_with(&status) && response.is_empty() == status.is_empty(),
            "{request:.60}: {response:.200}"
        );
    }
    let continue_response = client.send_raw(
        format!("{post_head}Expect: 100-continue\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{{}}")
            .as_bytes(),
    );
    assert!(
        continue_response.starts_with("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 400 "),
        "{continue_response}"
    );
}

#[test]
fn recorded_questions_cannot_be_answered_and_listeners_are_told() {
    let server = start_replay_server(&repository_recording("section-4-6"), "max");
    let client = server.client();
    let accepted = client.post("/aaep/v1/subscriptions", &messages::subscription_request(REPLY_CAPABILITIES));
    assert_eq!(accepted.status, 201);
    assert!(
        accepted
            .json_str("negotiation_notes")
            .contains("This is a recording: its questions cannot be answered."),
        "{accepted:?}"
    );
    let recorded = events(&repository_recording("section-4-6"));
    let token = recorded.iter().find_map(|event| event["reply_token"].as_str()).unwrap();
    assert_eq!(client.reply(&accepted.json_str("subscription_id"), token, "reject").status, 204);
    assert_eq!(client.post("/aaep/v1/replies", "not JSON").status, 400);
    let mut person = ListenProcess::start(&server.address, &["--json"]);
    let received = person.read_until("Everything that you asked for is done.");
    assert!(received.iter().any(|line| line.contains("its questions cannot be answered")));
    assert!(received.iter().any(|line| line.contains(r#""kind":"ask""#)), "{received:#?}");
}

#[test]
fn capabilities_apply_as_on_a_hub() {
    let server = start_replay_server(&repository_recording("section-4-6"), "max");
    let client = server.client();
    // A listener that cannot reply gets no question, `completion` joins the text into one chunk, and filters apply.
    let capabilities = r#"{"event_filters":{"include":["aaep:agent.output.streaming"]},"coalesce_boundaries":["completion"]}"#;
    let mut stream = client.open_event_stream(&client.subscribe(capabilities), None);
    let (kind, _, event) = stream.next();
    assert_eq!(kind, "output.streaming");
    let text = event["chunk"].as_str().unwrap();
    assert!(text.starts_with("Transferred $500 successfully.") && event["complete"] == true, "{event}");
    let rejected = client.post("/aaep/v1/subscriptions", messages::UNSUPPORTED_VERSION_REQUEST);
    assert_eq!((rejected.status, rejected.json_str("type")), (409, "subscription.rejected".to_owned()));
}

#[test]
fn invalid_and_foreign_requests_are_rejected() {
    let server = start_replay_server(&repository_recording("section-4-6"), "max");
    let client = server.client();
    for (method, path, status) in [
        ("GET", "/", 404),
        ("GET", "/aaep/v1/events?subscription_id=sub_none", 404),
        ("GET", "/aaep/v1/events?token=x", 400),
        ("GET", "/aaep/v1/ws", 426),
        ("DELETE", "/aaep/v1/subscriptions", 405),
        ("POST", "/aaep/v1/subscriptions", 400),
        ("POST", "/agent/v1/sessions", 404),
    ] {
        assert_eq!(client.send(method, path, "").status, status, "{method} {path}");
    }
    assert_eq!(client.with_header("Host: evil.example").post("/aaep/v1/subscriptions", "{}").status, 421);
    assert_eq!(
        client.with_header("Origin: http://evil.example").post("/aaep/v1/subscriptions", "{}").status,
        403
    );
    let long_body = "x".repeat(100_000);
    assert_eq!(client.post("/aaep/v1/subscriptions", &long_body).status, 413);
    assert!(client.send_raw(b"nonsense\r\n\r\n").starts_with("HTTP/1.1 400"));
}

#[test]
fn a_recording_that_cannot_be_served_is_reported() {
    let file = repository_recording("section-4-6");
    let file = file.to_str().unwrap();
    for (arguments, part) in [
        (["replay", file, "--listen", "0.0.0.0:0"], "works on loopback only"),
        (["replay", file, "--listen", "nowhere"], "is not an address with a port"),
        (["replay", "-", "--listen", "127.0.0.1:0"], "needs a file"),
        (["replay", "/dev/null", "--listen", "127.0.0.1:0"], "/dev/null contains no events"),
    ] {
        let output = run_sayso(&arguments, "");
        assert_eq!(output.exit_code, 2, "{}", output.stderr);
        assert!(output.stderr.contains(part), "{}", output.stderr);
    }
}

#[test]
fn a_replay_server_can_be_stopped() {
    let mut server = start_replay_server(&repository_recording("section-4-6"), "1");
    assert_eq!(server.stop(), 0);
}
