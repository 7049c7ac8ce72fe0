//! A recording that is served is heard by any listener, whole and from its start.

use std::path::Path;

use serde_json::Value;

use crate::replay::recorder::{Recorder, events, recording};
use testing::cli::{command, sayso};
use testing::hub::Hub;
use testing::messages;
use testing::messages::CAN_REPLY;
use testing::terminal::Person;

/// Everything, as it was cut.
const ALL: &str = r#"{"supports_confirmation_reply":true,"supports_clarification_reply":true,"coalesce_boundaries":["none","word","sentence","paragraph","completion"],"preferred_verbosity":"detailed"}"#;

fn serve(file: &Path, speed: &str) -> Hub {
    Hub::start_as(&mut command(&[
        "replay",
        file.to_str().unwrap(),
        "--listen",
        "127.0.0.1:0",
        "--speed",
        speed,
    ]))
}

#[test]
fn every_recording_is_heard_whole_and_recorded_again_it_is_the_same() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["section-4-6", "clarification", "two-producers", "linked-sessions", "a-8-7-position-falls"] {
        let original = events(&recording(name));
        let served = serve(&recording(name), "max");
        let client = served.client();
        let mut ear = client.listen(&client.subscribe(ALL), None);
        let heard: Vec<Value> = original.iter().map(|_| ear.next().2).collect();
        assert_eq!(heard, original, "{name}");
        for wire in ["http", "ws"] {
            let file = folder.path().join(format!("{name}-{wire}"));
            let recorder = Recorder::starts(&format!("{wire}://{}", served.address), &file, &[]);
            recorder.has("\"event_id\"", original.len());
            assert_eq!(recorder.stop("-TERM").0, Some(0));
            assert_eq!(events(&file), original, "{name} over {wire}");
        }
    }
}

#[test]
fn who_comes_back_hears_the_rest() {
    let original = events(&recording("section-4-6"));
    let served = serve(&recording("section-4-6"), "max");
    let client = served.client();
    let subscription = client.subscribe(ALL);
    for from in [0, 5, original.len() - 2] {
        let last = original[from]["event_id"].as_str().unwrap();
        let mut ear = client.listen(&subscription, Some(last));
        for event in &original[from + 1..] {
            assert_eq!(ear.next().2, *event, "after {from}");
        }
    }
    // Who was at an event that nobody knows hears everything again.
    let mut ear = client.listen(&subscription, Some("evt_unknown"));
    assert_eq!(ear.next().2, original[0]);
}

#[test]
fn requests_are_bounded_as_on_a_hub() {
    let served = serve(&recording("clarification"), "max");
    let client = served.client();
    let host = format!("Host: {}\r\n", served.address);
    let post = format!("POST /aaep/v1/subscriptions HTTP/1.1\r\n{host}");
    // Exactly as long as a head must not be: what is left unread could take the answer with it.
    let head = format!("GET / HTTP/1.1\r\n{host}X: ");
    let chunks = format!("10000\r\n{}\r\n", "y".repeat(0x10000));
    for (request, status) in [
        ("GARBAGE\r\n\r\n".to_owned(), "400"),
        (format!("GET / HTTP/1.1\r\n{host}{host}\r\n"), "400"),
        (format!("{post}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n"), "400"),
        (format!("{post}Transfer-Encoding: chunked\r\n\r\nzz\r\n"), "400"),
        (format!("GET / HTTP/1.1\r\n{host}{}\r\n", "X: y\r\n".repeat(64)), "400"),
        (format!("{head:y<16384}"), "431"),
        (format!("{post}Content-Length: 65537\r\n\r\n"), "413"),
        (format!("{post}Transfer-Encoding: chunked\r\n\r\n{chunks}1\r\ny\r\n"), "413"),
        (format!("GET /aaep/v1/events?token=a HTTP/1.1\r\n{host}Connection: close\r\n\r\n"), "400"),
        ("GET / HTTP/1.1\r\nHost: rebound.example\r\nConnection: close\r\n\r\n".to_owned(), "421"),
        // Nobody sends the rest.
        (format!("{post}X: "), ""),
    ] {
        let answer = client.raw(request.as_bytes());
        let status = if status.is_empty() { String::new() } else { format!("HTTP/1.1 {status} ") };
        assert!(
            answer.starts_with(&status) && answer.is_empty() == status.is_empty(),
            "{request:.60}: {answer:.200}"
        );
    }
    let expecting = client.raw(
        format!("{post}Expect: 100-continue\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{{}}")
            .as_bytes(),
    );
    assert!(expecting.starts_with("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 400 "), "{expecting}");
}

#[test]
fn its_questions_are_history_and_that_is_said() {
    let served = serve(&recording("section-4-6"), "max");
    let client = served.client();
    let accepted = client.post("/aaep/v1/subscriptions", &messages::request(CAN_REPLY));
    assert_eq!(accepted.status, 201);
    assert!(
        accepted
            .text("negotiation_notes")
            .contains("This is a recording: its questions are history and cannot be answered."),
        "{accepted:?}"
    );
    let asked = events(&recording("section-4-6"));
    let token = asked.iter().find_map(|event| event["reply_token"].as_str()).unwrap();
    assert_eq!(client.reply(&accepted.text("subscription_id"), token, "reject").status, 204);
    assert_eq!(client.post("/aaep/v1/replies", "no JSON").status, 400);
    let mut person = Person::listens(&served.address, &["--json"]);
    let heard = person.hears("Everything that you asked for is done.");
    assert!(heard.iter().any(|line| line.contains("its questions are history and cannot be answered")));
    assert!(heard.iter().any(|line| line.contains(r#""kind":"ask""#)), "{heard:#?}");
}

#[test]
fn terms_hold_as_with_a_hub() {
    let served = serve(&recording("section-4-6"), "max");
    let client = served.client();
    // Who cannot answer hears no question; who wants sentences gets the text in one piece; filters hold.
    let wish = r#"{"event_filters":{"include":["aaep:agent.output.streaming"]},"coalesce_boundaries":["completion"]}"#;
    let mut ear = client.listen(&client.subscribe(wish), None);
    let (kind, _, event) = ear.next();
    assert_eq!(kind, "output.streaming");
    let text = event["chunk"].as_str().unwrap();
    assert!(text.starts_with("Transferred $500 successfully.") && event["complete"] == true, "{event}");
    let rejected = client.post("/aaep/v1/subscriptions", messages::FROM_THE_FUTURE);
    assert_eq!((rejected.status, rejected.text("type")), (409, "subscription.rejected".to_owned()));
}

#[test]
fn strangers_requests_are_refused() {
    let served = serve(&recording("section-4-6"), "max");
    let client = served.client();
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
    assert_eq!(client.with("Host: evil.example").post("/aaep/v1/subscriptions", "{}").status, 421);
    assert_eq!(client.with("Origin: http://evil.example").post("/aaep/v1/subscriptions", "{}").status, 403);
    let long = "x".repeat(100_000);
    assert_eq!(client.post("/aaep/v1/subscriptions", &long).status, 413);
    assert!(client.raw(b"nonsense\r\n\r\n").starts_with("HTTP/1.1 400"));
}

#[test]
fn what_cannot_be_served_is_said() {
    let file = recording("section-4-6");
    let file = file.to_str().unwrap();
    for (arguments, why) in [
        (["replay", file, "--listen", "0.0.0.0:0"], "for loopback only"),
        (["replay", file, "--listen", "nowhere"], "is no address to listen on"),
        (["replay", "-", "--listen", "127.0.0.1:0"], "needs a file"),
        (["replay", "/dev/null", "--listen", "127.0.0.1:0"], "there is no event in /dev/null"),
    ] {
        let ended = sayso(&arguments, "");
        assert_eq!(ended.code, 2, "{}", ended.err);
        assert!(ended.err.contains(why), "{}", ended.err);
    }
    let mut served = serve(Path::new(file), "1");
    assert_eq!(served.stop(), 0);
}
