//! What is recorded is what the hub said, on every wire.

use std::path::Path;

use serde_json::{Value, json};

use crate::replay::recorder::{Recorder, events, kinds, lines};
use testing::cli::sayso;
use testing::http::Client;
use testing::hub::{Hub, reserved_address};
use testing::messages::{self, kind};

/// One wish of the demo's assistant, heard to its end, its question answered with yes.
fn wish(client: &Client, capabilities: &Value, wish: &str) -> Vec<Value> {
    let subscription = client.subscribe(&capabilities.to_string());
    let mut ear = client.listen(&subscription, None);
    let answer = client.post("/demo", &json!({ "text": wish }).to_string());
    assert_eq!(answer.status, 201, "{answer:?}");
    let mut heard = Vec::new();
    loop {
        let (kind, _, event) = ear.next();
        if kind == "awaiting.confirmation" {
            client.reply(&subscription, event["reply_token"].as_str().unwrap(), "accept");
        }
        heard.push(event);
        if kind == "session.completed" {
            client.post("/aaep/v1/replies", &messages::close(&subscription));
            return heard;
        }
    }
}

/// Whether `sayso validate` finds nothing wrong; how it sums that up.
fn is_lawful(file: &Path) -> String {
    let ended = sayso(&["validate", file.to_str().unwrap()], "");
    assert_eq!(ended.code, 0, "{}", ended.out);
    assert!(ended.summary().contains(" 0 errors"), "{}", ended.summary());
    ended.summary().to_owned()
}

#[test]
fn a_demo_session_is_recorded_as_the_hub_said_it_and_is_lawful() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("hub.sock");
    let hub = Hub::start(&[
        "--memory",
        "--open",
        "--demo-agent",
        "--listen",
        "127.0.0.1:0",
        "--unix",
        socket.to_str().unwrap(),
    ]);
    let wires = [
        ("sse", format!("http://{}", hub.address)),
        ("ws", format!("ws://{}", hub.address)),
        ("unix", format!("unix:{}", socket.display())),
    ];
    let recorders: Vec<_> = wires
        .iter()
        .map(|(name, url)| {
            let file = folder.path().join(name);
            (Recorder::starts(url, &file, &[]), file)
        })
        .collect();
    let first = &recorders[0].1.clone();
    let request = lines(first)[0].clone();
    assert_eq!(kind(&request), "subscription.request");
    assert_eq!(kind(&lines(first)[1]), "subscription.accepted");
    let capabilities = request["capabilities"].clone();
    let mut heard = wish(&hub.client(), &capabilities, "What is my balance?");
    heard.extend(wish(&hub.client(), &capabilities, "Transfer 250 euros to Ben"));
    for (recorder, file) in recorders {
        recorder.has("session.completed", 2);
        let (code, said) = recorder.stop("-INT");
        assert_eq!(code, Some(0), "{said:?}");
        let sum = format!("{} events recorded in {}.", heard.len(), file.display());
        assert_eq!(said.last(), Some(&sum));
        assert_eq!(events(&file), heard, "{}", file.display());
        let summary = is_lawful(&file);
        assert!(summary.ends_with(" 0 warnings"), "{summary}");
    }
    assert_eq!(kinds(first).last().unwrap(), "subscription.close");
}

#[test]
fn a_recorder_that_hears_no_questions_says_that_it_cannot_answer() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.jsonl");
    let hub = Hub::open();
    let recorder = Recorder::starts(&format!("http://{}", hub.address), &file, &["--no-questions"]);
    let client = hub.client();
    let session = client.start();
    client.ask(&session);
    let end = r#"{"type":"aaep:agent.session.completed","summary_normal":"Done."}"#;
    client.post(&format!("/agent/v1/sessions/{session}/events"), end);
    recorder.has("session.completed", 1);
    assert_eq!(recorder.stop("-TERM").0, Some(0));
    assert_eq!(lines(&file)[0]["capabilities"]["supports_confirmation_reply"], false);
    assert!(!kinds(&file).contains(&"awaiting.confirmation".to_owned()));
    is_lawful(&file);
}

#[test]
fn a_file_that_is_there_is_not_written_over_unless_that_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.jsonl");
    let hub = Hub::open();
    let url = format!("http://{}", hub.address);
    std::fs::write(&file, "{\"kept\":1}\n{\"half").unwrap();
    let path = file.to_str().unwrap();
    let refused = sayso(&["capture", &url, "-o", path], "");
    assert_eq!(refused.code, 2);
    assert!(
        refused.err.contains("is there already. Use --append to add to it, or --force"),
        "{}",
        refused.err
    );
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "{\"kept\":1}\n{\"half");

    let recorder = Recorder::begins(&url, &file, &["--append"]);
    recorder.says("ended with half a line of 6 bytes; it is taken off");
    recorder.says("Recording ");
    assert_eq!(recorder.stop("-TERM").0, Some(0));
    let all = lines(&file);
    assert_eq!((all.len(), &all[0]), (4, &json!({ "kept": 1 })), "{all:?}");

    let recorder = Recorder::starts(&url, &file, &["--force"]);
    assert_eq!(recorder.stop("-TERM").0, Some(0));
    assert_eq!(kinds(&file), ["subscription.request", "subscription.accepted", "subscription.close"]);
}

#[test]
fn what_is_recorded_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.jsonl");
    let hub = Hub::open();
    let _recorder = Recorder::starts(&format!("http://{}", hub.address), &file, &[]);
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn where_there_is_no_hub_nothing_is_left_behind() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.jsonl");
    let kept = folder.path().join("kept.jsonl");
    std::fs::write(&kept, "{}\n").unwrap();
    let nowhere = reserved_address();
    for url in [format!("http://{nowhere}"), format!("ws://{nowhere}"), "unix:/nowhere/at/all".to_owned()] {
        let ended = sayso(&["capture", &url, "-o", file.to_str().unwrap()], "");
        assert_eq!(ended.code, 2, "{}", ended.err);
        assert!(ended.err.starts_with("sayso: cannot reach "), "{}", ended.err);
        assert!(!file.exists());
        let ended = sayso(&["capture", &url, "-o", kept.to_str().unwrap(), "--force"], "");
        assert_eq!(ended.code, 2);
        assert_eq!(std::fs::read_to_string(&kept).unwrap(), "{}\n");
    }
    for url in ["ftp://a", "unix:", "ws://", "nothing"] {
        assert_eq!(sayso(&["capture", url, "-o", file.to_str().unwrap()], "").code, 2, "{url}");
    }
}

#[test]
fn a_hub_under_tls_is_recorded_if_its_certificate_is_trusted() {
    let folder = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let (cert, key) = (folder.path().join("hub.crt"), folder.path().join("hub.key"));
    std::fs::write(&cert, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let (cert, key) = (cert.to_str().unwrap(), key.to_str().unwrap());
    let hub = Hub::limited(&["--tls-cert", cert, "--tls-key", key]);
    for scheme in ["https", "wss"] {
        let url = format!("{scheme}://{}", hub.address);
        let file = folder.path().join(scheme);
        let distrusted = sayso(&["capture", &url, "-o", file.to_str().unwrap()], "");
        assert_eq!(distrusted.code, 2);
        assert!(distrusted.err.contains("certificate"), "{}", distrusted.err);
        let recorder = Recorder::starts(&url, &file, &["--ca", cert]);
        assert_eq!(recorder.stop("-INT").0, Some(0));
        assert_eq!(kinds(&file)[..2], ["subscription.request", "subscription.accepted"]);
    }
}

#[test]
fn a_hub_that_wants_a_token_says_so_on_every_wire() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let hub = Hub::start(&["--listen", "127.0.0.1:0", "--data", data.to_str().unwrap()]);
    let token = hub.said.iter().find_map(|line| line.split("shown this once: ").nth(1)).unwrap().to_owned();
    let secret = folder.path().join("token");
    std::fs::write(&secret, token).unwrap();
    for scheme in ["http", "ws"] {
        let url = format!("{scheme}://{}", hub.address);
        let file = folder.path().join(scheme);
        let refused = sayso(&["capture", &url, "-o", file.to_str().unwrap()], "");
        assert_eq!(refused.code, 2);
        assert!(refused.err.starts_with("sayso: The hub wants a token that it knows."), "{}", refused.err);
        let arguments = ["--token-file", secret.to_str().unwrap()];
        assert_eq!(Recorder::starts(&url, &file, &arguments).stop("-INT").0, Some(0));
    }
}
