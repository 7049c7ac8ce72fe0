//! Hand-offs with the real binary: over HTTP and WebSocket, in the terminal, with and without permission to take over, and across a restart.

use std::path::PathBuf;

use serde_json::{Value, json};
use testing::cli::{create_token, run_sayso};
use testing::http::{EventStream, TestClient};
use testing::hub::HubProcess;
use testing::messages::REPLY_CAPABILITIES;
use testing::terminal::{AgentSession, ListenProcess};

use super::agent_websocket::AgentWebSocket;

const HANDOFF_CAPABILITIES: &str = r#"{"supports_confirmation_reply":true,"supports_clarification_reply":true,"supported_conformance_levels":[1,2,3],"sayso":{"handoffs":true}}"#;

/// Returns the body of a hand-off to this target.
fn body(target: &str) -> String {
    json!({
        "reason": "The refund needs a person.", "target_kind": target, "summary_normal": "I need a person.",
        "urgency_for_handoff": "high", "packaged_context": {"order": "A-17", "steps": ["looked", "asked"]},
    })
    .to_string()
}

fn hand_off(agent: &TestClient, session: &str, body: &str) -> String {
    let response = agent.post(&format!("/agent/v1/sessions/{session}/handoffs"), body);
    assert_eq!(response.status, 201, "{response:?}");
    response.json_str("reply_token")
}

fn outcome(agent: &TestClient, session: &str, token: &str) -> Value {
    agent.get(&format!("/agent/v1/sessions/{session}/replies/{token}")).json()
}

fn answer(client: &TestClient, kind: &str, subscription: &str, token: &str) {
    let now = seal::Timestamp::from_unix_millis(std::time::SystemTime::now().into()).unwrap();
    let message = json!({
        "type": format!("sayso:handoff.{kind}"), "reply_token": token, "subscription_id": subscription,
        "timestamp": now.to_string(), "note": "Hello.",
    });
    let response = client.post("/aaep/v1/replies", &message.to_string());
    assert_eq!((response.status, response.body.as_str()), (204, ""), "the response reveals nothing");
}

fn next_of_type(stream: &mut EventStream, kind: &str) -> Value {
    loop {
        let event = stream.next().2;
        if event["type"] == format!("aaep:agent.{kind}") {
            return event;
        }
    }
}

/// A folder with tokens and the data of a hub.
struct Deployment(tempfile::TempDir);

impl Deployment {
    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn token(&self, arguments: &[&str]) -> String {
        create_token(self.path("tokens").to_str().unwrap(), arguments)
    }

    fn start_hub(&self) -> HubProcess {
        let [data, tokens] = ["data", "tokens"].map(|name| self.path(name).to_str().unwrap().to_owned());
        HubProcess::start(&[
            "--listen",
            "127.0.0.1:0",
            "--data",
            &data,
            "--tokens",
            &tokens,
            "--http-heartbeat",
            "1h",
        ])
    }
}

#[test]
fn only_a_receiver_takes_over_even_after_a_restart() {
    let deployment = Deployment(tempfile::tempdir().unwrap());
    let bank = deployment.token(&["--role", "agent", "--name", "bank", "--agent-id", "bank"]);
    let ada = deployment.token(&["--role", "receiver", "--name", "ada"]);
    let ben = deployment.token(&["--role", "listener", "--name", "ben"]);
    let tokens = deployment.path("tokens");
    let listed = run_sayso(&["token", "list", "--tokens", tokens.to_str().unwrap()], "").stdout;
    assert!(listed.contains("receiver"), "{listed}");
    let mut hub = deployment.start_hub();
    let client = |hub: &HubProcess, token: &str| hub.client().with_bearer(token);
    let subscriptions = [&ada, &ben].map(|token| client(&hub, token).subscribe(HANDOFF_CAPABILITIES));
    let [mut ada_stream, mut ben_stream] = [(&ada, 0), (&ben, 1)]
        .map(|(token, index): (_, usize)| client(&hub, token).open_event_stream(&subscriptions[index], None));
    let session = client(&hub, &bank)
        .post("/agent/v1/sessions", r#"{"summary_normal":"Refunding."}"#)
        .json_str("session_id");
    let token = hand_off(&client(&hub, &bank), &session, &body("human"));
    let requested = next_of_type(&mut ada_stream, "handoff.requested");
    assert_eq!(requested["packaged_context"]["order"], "A-17");
    assert_eq!(requested["extensions"]["sayso"]["handoff"]["reply_token"], token.as_str());
    assert_eq!(next_of_type(&mut ben_stream, "handoff.requested")["packaged_context"], Value::Null);
    answer(&client(&hub, &ben), "acknowledge", &subscriptions[1], &token);
    answer(&client(&hub, &ben), "acknowledge", &subscriptions[0], &token);
    assert_eq!(outcome(&client(&hub, &bank), &session, &token), json!({"status": "pending"}));

    hub.kill();
    let hub = deployment.start_hub();
    assert_eq!(outcome(&client(&hub, &bank), &session, &token), json!({"status": "pending"}), "not taken");
    answer(&client(&hub, &ben), "acknowledge", &subscriptions[1], &token);
    assert_eq!(outcome(&client(&hub, &bank), &session, &token), json!({"status": "pending"}));
    let mut stream = client(&hub, &ben).open_event_stream(&subscriptions[1], None);
    answer(&client(&hub, &ada), "acknowledge", &subscriptions[0], &token);
    let taken =
        json!({"status": "resolved", "outcome": "acknowledged", "note": "Hello.", "principal": "ada"});
    assert_eq!(outcome(&client(&hub, &bank), &session, &token), taken);
    answer(&client(&hub, &ada), "reject", &subscriptions[0], &token);
    assert_eq!(outcome(&client(&hub, &bank), &session, &token), taken, "the first answer counts");
    let announced = loop {
        let event = next_of_type(&mut stream, "state.changed");
        if event["extensions"]["sayso"]["handoff"].is_object() {
            break event;
        }
    };
    assert_eq!(announced["summary_normal"], "Somebody has taken over from the agent. Hello.");
    let stranger = outcome(&client(&hub, &ada), &session, &token);
    assert_eq!(stranger["status"], 404, "{stranger}");
}

#[test]
fn an_agent_on_a_websocket_is_notified_of_the_outcome() {
    let hub = HubProcess::start_in_memory();
    let subscription = hub.client().subscribe(HANDOFF_CAPABILITIES);
    let mut agent = AgentWebSocket::open(&hub);
    let session = agent.start_session();
    let mut params: Value = serde_json::from_str(&body("escalation_queue")).unwrap();
    params["session_id"] = json!(session);
    let opened = agent.call_ok("session.hand_off", &params);
    let token = opened["reply_token"].as_str().unwrap().to_owned();
    assert!(opened["deadline"].is_string(), "{opened}");
    answer(&hub.client(), "reject", &subscription, &token);
    let notification = agent.next_notification();
    assert_eq!(notification["method"], "session.resolved");
    let expected = json!({
        "session_id": session, "reply_token": token, "status": "resolved", "outcome": "rejected", "note": "Hello.",
        "principal": "local",
    });
    assert_eq!(notification["params"], expected);
}

#[test]
fn a_person_takes_over_and_declines_in_the_terminal() {
    let hub = HubProcess::start_in_memory();
    let mut person = ListenProcess::start_connected(&hub.address, &[]);
    let mut other = ListenProcess::start(&hub.address, &["--lang", "es"]);
    other.read_until(&hub.address);
    person.type_line("handoffs");
    person.read_until("handoff: No agent is waiting to hand over.");
    let agent = AgentSession::start(hub.client());
    let first = hand_off(&agent.client, &agent.session_id, &body("human"));
    let lines = person.read_until("handoff: This is hand-off 1. To take over, type take 1.");
    assert!(lines.iter().any(|line| line.contains("Reason: The refund needs a person.")), "{lines:#?}");
    person.type_line("handoffs");
    person.read_until("handoff: Hand-off 1 from ");
    person.read_until("handoff: To take one: take and its number.");
    person.type_line("handoffs 1");
    person.read_until("handoff: order: A-17");
    person.type_line("take");
    person.read_until("error: Say its number, for example take 1.");
    person.type_line("take 7");
    person.read_until("error: Hand-off 7 is not open.");
    person.type_line("take 1 I am calling you.");
    person.read_until("answer: You take hand-off 1.");
    person.read_until("handoff: You have taken over from ");
    other.read_until("Alguien se ha hecho cargo del trabajo de ");
    let taken = outcome(&agent.client, &agent.session_id, &first);
    assert_eq!((&taken["outcome"], &taken["note"]), (&json!("acknowledged"), &json!("I am calling you.")));
    person.type_line("take 1");
    person.type_line("handoffs");
    person.read_until("handoff: No agent is waiting to hand over.");

    let second = hand_off(&agent.client, &agent.session_id, &body("specialist_agent"));
    other.read_until("Este es el traspaso 2.");
    other.type_line("declinar 2 Estoy ocupada.");
    person.read_until("handoff: Someone declined to take over from ");
    assert_eq!(outcome(&agent.client, &agent.session_id, &second)["note"], "Estoy ocupada.");
    other.read_until("Usted rechazó hacerse cargo del trabajo de ");
    other.type_line("traspasos");
    other.read_until("Nadie espera un traspaso.");
}

#[test]
fn without_the_right_a_person_hears_a_handoff_but_cannot_take_it() {
    let deployment = Deployment(tempfile::tempdir().unwrap());
    let bank = deployment.token(&["--role", "agent", "--name", "bank", "--agent-id", "bank"]);
    let ben = deployment.token(&["--role", "listener", "--name", "ben"]);
    std::fs::write(deployment.path("ben"), &ben).unwrap();
    let hub = deployment.start_hub();
    let file = deployment.path("ben");
    let mut person = ListenProcess::start_connected(&hub.address, &["--token-file", file.to_str().unwrap()]);
    let agent = hub.client().with_bearer(&bank);
    let session =
        agent.post("/agent/v1/sessions", r#"{"summary_normal":"Refunding."}"#).json_str("session_id");
    let token = hand_off(&agent, &session, &body("human"));
    let lines = person.read_until("handoff: Nobody who could take over from bank is connected.");
    assert!(lines.iter().any(|line| line.contains("Reason: The refund needs a person.")), "{lines:#?}");
    assert!(!lines.iter().any(|line| line.contains("take 1")), "{lines:#?}");
    assert_eq!(outcome(&agent, &session, &token)["outcome"], "unreachable");
    let token = hand_off(&agent, &session, &body("escalation_queue"));
    person.read_until("Reason: The refund needs a person.");
    person.type_line("take 2");
    person.read_until("error: Your token does not let you take over from agents.");
    person.type_line("handoffs 2");
    let lines = person.read_until("handoff: Hand-off 2 from bank");
    assert!(!lines.iter().any(|line| line.contains("A-17")), "{lines:#?}");
    assert_eq!(outcome(&agent, &session, &token), json!({"status": "pending"}));
    let subscription = hub.client().with_bearer(&ben).subscribe(HANDOFF_CAPABILITIES);
    assert_ne!(subscription, "");
    let plain = hub.client().with_bearer(&ben).subscribe(REPLY_CAPABILITIES);
    answer(&hub.client().with_bearer(&ben), "acknowledge", &plain, &token);
    assert_eq!(outcome(&agent, &session, &token), json!({"status": "pending"}));
}

#[test]
fn a_handoff_expires_and_its_limits_hold() {
    let hub = HubProcess::start_in_memory_with(&[
        "--handoffs-timeout",
        "1s",
        "--handoffs-max-timeout",
        "2s",
        "--handoffs-context-bytes",
        "64",
        "--handoffs-open-per-agent",
        "1",
        "--handoffs-open-total",
        "1",
    ]);
    let agent = AgentSession::start(hub.client());
    let small = r#"{"reason":"Stuck.","target_kind":"escalation_queue","summary_normal":"Stuck."}"#;
    let post = |body: &str| {
        agent.client.post(&format!("/agent/v1/sessions/{}/handoffs", agent.session_id), body).status
    };
    assert_eq!(post(&small.replace('{', r#"{"timeout_seconds":3,"#)), 400);
    assert_eq!(
        post(&small.replace('{', &format!(r#"{{"packaged_context":{{"a":"{}"}},"#, "x".repeat(64)))),
        400
    );
    assert_eq!(post("[]"), 400);
    assert_eq!(post(r#"{"reason":"Stuck."}"#), 422);
    let token = hand_off(&agent.client, &agent.session_id, small);
    assert_eq!(post(small), 429, "one at a time");
    let other = AgentSession::start(hub.client());
    assert_eq!(
        other.client.post(&format!("/agent/v1/sessions/{}/handoffs", other.session_id), small).status,
        429
    );
    let path = format!("/agent/v1/sessions/{}/replies/{token}?wait=60", agent.session_id);
    assert_eq!(agent.client.get(&path).json(), json!({"status": "resolved", "outcome": "timeout"}));
    assert_eq!(post(small), 201);
}
