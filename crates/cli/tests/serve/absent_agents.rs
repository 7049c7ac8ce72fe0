//! Replies to agents that are not connected. Listeners hear that the agent is not connected.

use std::path::Path;

use serde_json::{Value, json};

use crate::serve::agent_websocket::AgentWebSocket;
use testing::http::EventStream;
use testing::hub::HubProcess;
use testing::messages::{CONFIRMATION_BODY, REPLY_CAPABILITIES};

/// Starts a hub without heartbeats. Otherwise, a test that waits for a missing event would never time out.
fn start_hub(folder: &Path) -> HubProcess {
    let data = folder.to_str().unwrap();
    let extra_args = ["--demo-agent", "--http-heartbeat", "1h"];
    HubProcess::start(&[&["--open", "--listen", "127.0.0.1:0", "--data", data], &extra_args[..]].concat())
}

/// Returns the next event that matches, with its id.
fn read_until(stream: &mut EventStream, matches: impl Fn(&str, &Value) -> bool) -> (String, Value) {
    loop {
        let (kind, id, event) = stream.next();
        if matches(&kind, &event) {
            return (id, event);
        }
    }
}

fn is_resolution_of(event: &Value, token: &str) -> bool {
    event["extensions"]["sayso"]["reply_token"] == json!(token)
        && event["extensions"]["sayso"]["decision"].is_string()
}

#[test]
fn a_demo_session_ends_after_the_hub_was_killed() {
    let folder = tempfile::tempdir().unwrap();
    let mut hub = start_hub(folder.path());
    let client = hub.client();
    let subscription = client.subscribe(REPLY_CAPABILITIES);
    let mut stream = client.open_event_stream(&subscription, None);
    client.post("/demo", r#"{"text":"Send 50 euros to Ben"}"#);
    let (last_event_id, question) = read_until(&mut stream, |kind, _| kind == "awaiting.confirmation");
    let token = question["reply_token"].as_str().unwrap();
    hub.kill();

    let hub = start_hub(folder.path());
    let client = hub.client();
    assert_eq!(client.reply(&subscription, token, "accept").status, 204);
    let mut stream = client.open_event_stream(&subscription, Some(&last_event_id));
    let (_, ended) = read_until(&mut stream, |kind, _| kind == "session.errored");
    assert_eq!((&ended["error_code"], &ended["error_category"]), (&json!("AGENT_GONE"), &json!("unknown")));
    assert_eq!(ended["summary_normal"], "The agent stopped responding, so its session was ended.");
    let metrics = client.get("/metrics").body;
    assert!(!metrics.contains(r#"verdict="applied""#), "{metrics}");
}

#[test]
fn listeners_hear_if_the_agent_is_disconnected_when_they_accept() {
    let folder = tempfile::tempdir().unwrap();
    let mut hub = start_hub(folder.path());
    let subscription = hub.client().subscribe(REPLY_CAPABILITIES);
    let mut stream = hub.client().open_event_stream(&subscription, None);
    let mut agent = AgentWebSocket::open(&hub);
    let session = agent.start_session();
    let tokens = ["Ben", "Cem", "Dot"].map(|name| {
        let mut question: Value = serde_json::from_str(&CONFIRMATION_BODY.replace("Ben", name)).unwrap();
        (question["session_id"], question["arguments"]["to"]) = (json!(session), json!(name));
        agent.call_ok("session.ask", &question)["reply_token"].as_str().unwrap().to_owned()
    });
    let [accepted_token, rejected_token, last_token] = &tokens;
    let (mut last_event_id, _) =
        read_until(&mut stream, |_, event| event["reply_token"] == json!(last_token));
    hub.kill();

    let hub = start_hub(folder.path());
    let client = hub.client();
    let mut stream = client.open_event_stream(&subscription, Some(&last_event_id));
    let announces_absence = |event: &Value| {
        event["summary_normal"]
            .as_str()
            .is_some_and(|summary| summary.starts_with("The agent is not connected"))
    };
    assert_eq!(client.reply(&subscription, accepted_token, "accept").status, 204);
    read_until(&mut stream, |_, event| is_resolution_of(event, accepted_token));
    last_event_id = read_until(&mut stream, |_, event| announces_absence(event)).0;
    assert!(!last_event_id.is_empty());

    // A reject does not cause this announcement, because the agent has nothing to do. Neither does a reply to an agent that
    // has reconnected.
    assert_eq!(client.reply(&subscription, rejected_token, "reject").status, 204);
    read_until(&mut stream, |_, event| is_resolution_of(event, rejected_token));
    let mut agent = AgentWebSocket::open(&hub);
    agent.call_ok("session.follow", &json!({"session_id": session}));
    assert_eq!(client.reply(&subscription, last_token, "accept").status, 204);
    read_until(&mut stream, |_, event| {
        assert!(!announces_absence(event), "{event}");
        is_resolution_of(event, last_token)
    });
    agent.call_ok(
        "session.event",
        &json!({"session_id": session, "event": {
            "type": "aaep:agent.session.completed", "summary_normal": "Done."
        }}),
    );
    read_until(&mut stream, |kind, event| {
        assert!(!announces_absence(event), "{event}");
        kind == "session.completed"
    });
    let mut notified_tokens = Vec::new();
    for _ in 0..3 {
        notified_tokens.push(agent.next_notification()["params"]["reply_token"].as_str().unwrap().to_owned());
    }
    notified_tokens.sort();
    let mut expected = tokens.to_vec();
    expected.sort();
    assert_eq!(notified_tokens, expected);
}
