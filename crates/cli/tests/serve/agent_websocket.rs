//! Agents on a WebSocket with JSON-RPC.
//!
//! This file contains the test agent and tests of complete sessions. `refused_calls` covers refused calls. `reconnect`
//! covers lost connections.

mod reconnect;
mod refused_calls;

use std::net::TcpStream;

use serde_json::{Value, json};
use testing::websocket::{read_close_code, upgrade};
use tungstenite::{Message, WebSocket};

use testing::http::TestClient;
use testing::hub::HubProcess;
use testing::messages::confirmation_reply;
use testing::messages::{CONFIRMATION_BODY, REPLY_CAPABILITIES};

/// A test agent on a WebSocket.
pub(crate) struct AgentWebSocket {
    socket: WebSocket<TcpStream>,
    call_count: u64,
    /// Notifications that arrived while a response was awaited.
    notifications: Vec<Value>,
}

impl AgentWebSocket {
    /// Connects. Returns the HTTP status if the upgrade is refused.
    pub(crate) fn connect(hub: &HubProcess, headers: &[(&str, &str)]) -> Result<Self, u16> {
        let (socket, _) = upgrade(&hub.address, "/agent/v1/ws", headers)?;
        Ok(Self { socket, call_count: 0, notifications: Vec::new() })
    }

    pub(crate) fn open(hub: &HubProcess) -> Self {
        Self::connect(hub, &[]).unwrap_or_else(|status| panic!("{status}"))
    }

    pub(crate) fn send_text(&mut self, text: &str) {
        self.socket.send(Message::text(text)).unwrap();
    }

    fn next(&mut self) -> Value {
        serde_json::from_str(&self.next_text()).unwrap()
    }

    /// Returns the next message. Panics if five pings arrive first.
    pub(crate) fn next_text(&mut self) -> String {
        for _ in 0..5 {
            match self.socket.read().unwrap() {
                Message::Text(text) => return text.as_str().to_owned(),
                Message::Ping(_) => {}
                other => panic!("{other:?}"),
            }
        }
        panic!("no message arrived");
    }

    /// Returns the next notification.
    pub(crate) fn next_notification(&mut self) -> Value {
        let notification =
            if self.notifications.is_empty() { self.next() } else { self.notifications.remove(0) };
        assert!(notification.get("id").is_none(), "{notification}");
        notification
    }

    /// Calls a method and returns the complete response. Notifications that arrive in the meantime are queued.
    pub(crate) fn call(&mut self, method: &str, params: &Value) -> Value {
        self.call_with_text(method, &params.to_string())
    }

    /// Like [`Self::call`], for parameters that `Value` cannot hold.
    pub(crate) fn call_with_text(&mut self, method: &str, params: &str) -> Value {
        self.call_count += 1;
        let id = self.call_count;
        self.send_text(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#));
        loop {
            let response = self.next();
            if response.get("id").is_some() {
                assert_eq!(
                    (&response["jsonrpc"], &response["id"]),
                    (&json!("2.0"), &json!(id)),
                    "{response}"
                );
                return response;
            }
            self.notifications.push(response);
        }
    }

    pub(crate) fn call_ok(&mut self, method: &str, params: &Value) -> Value {
        let response = self.call(method, params);
        response.get("result").unwrap_or_else(|| panic!("{response}")).clone()
    }

    fn call_err(&mut self, method: &str, params: &Value) -> Value {
        let response = self.call(method, params);
        response.get("error").unwrap_or_else(|| panic!("{response}")).clone()
    }

    pub(crate) fn start_session(&mut self) -> String {
        let started = self.call_ok("session.start", &start_params());
        started["session_id"].as_str().unwrap().to_owned()
    }

    pub(crate) fn ask(&mut self, session: &str) -> String {
        let asked = self.call_ok("session.ask", &question_params(session));
        assert!(asked["deadline"].is_string(), "{asked}");
        asked["reply_token"].as_str().unwrap().to_owned()
    }

    pub(crate) fn into_close_code(mut self) -> u16 {
        read_close_code(&mut self.socket)
    }
}

fn start_params() -> Value {
    json!({"summary_normal": "Moving money.", "localization_hints": {"primary_language": "en"}})
}

fn question_params(session: &str) -> Value {
    let mut params: Value = serde_json::from_str(CONFIRMATION_BODY).unwrap();
    params["session_id"] = session.into();
    params
}

fn with_key(mut params: Value, key: &str) -> Value {
    params["idempotency_key"] = key.into();
    params
}

fn event_params(session: &str, event: &str) -> Value {
    json!({"session_id": session, "event": serde_json::from_str::<Value>(event).unwrap()})
}

pub(crate) fn stop_session(client: &TestClient, subscription: &str, session: &str) {
    let stop = json!({"type": "sayso:session.stop", "session_id": session, "subscription_id": subscription,
        "timestamp": "2026-11-15T12:00:00Z"});
    assert_eq!(client.post("/aaep/v1/replies", &stop.to_string()).status, 204);
}

const TOOL_INVOKED: &str = r#"{"type":"aaep:agent.tool.invoked","tool":"send","tool_call_id":"call_1","risk_level":"high","irreversible":true,"summary_normal":"Sending.","arguments":{"amount":"5.00"}}"#;
const TOOL_COMPLETED: &str = r#"{"type":"aaep:agent.tool.completed","tool":"send","tool_call_id":"call_1","status":"success","summary_normal":"Sent."}"#;
const SESSION_COMPLETED: &str = r#"{"type":"aaep:agent.session.completed","summary_normal":"All done."}"#;
const UNKNOWN_SESSION: &str = "sess_00000000000000000000000000000000";

#[test]
fn a_session_runs_from_start_to_end() {
    let hub = HubProcess::start_in_memory();
    let client = hub.client();
    let subscription = client.subscribe(REPLY_CAPABILITIES);
    let mut stream = client.open_event_stream(&subscription, None);
    let mut agent = AgentWebSocket::open(&hub);
    let session = agent.start_session();
    assert_eq!(stream.next_type(), "session.started");
    for (text, complete) in [("Your balance is 12.5", false), ("0 euros.", true)] {
        let output = agent
            .call_ok("session.output", &json!({"session_id": session, "text": text, "complete": complete}));
        assert!(!output["event_ids"].as_array().unwrap().is_empty());
    }
    while stream.next().2["chunk"] != "Your balance is 12.50 euros." {}

    let token = agent.ask(&session);
    while stream.next_type() != "awaiting.confirmation" {}
    let refused = agent.call_err("session.event", &event_params(&session, TOOL_INVOKED));
    assert_eq!((&refused["code"], &refused["data"]["status"]), (&json!(-32022), &json!(422)), "{refused}");
    assert!(refused["data"]["findings"][0]["rule"].is_string(), "{refused}");
    assert_eq!(client.reply(&subscription, &token, "accept").status, 204);
    let notification = agent.next_notification();
    assert_eq!(notification["method"], "session.resolved");
    let path = format!("/agent/v1/sessions/{session}/replies/{token}");
    let mut expected: Value = serde_json::from_str(&client.get(&path).body).unwrap();
    assert_eq!((&expected["decision"], &expected["by"]), (&json!("accept"), &json!("reply")));
    expected["session_id"] = session.as_str().into();
    expected["reply_token"] = token.into();
    assert_eq!(notification["params"], expected, "the GET response plus the ids");

    agent.call_ok("session.event", &event_params(&session, TOOL_INVOKED));
    let events: Vec<Value> =
        [TOOL_COMPLETED, SESSION_COMPLETED].map(|text| serde_json::from_str(text).unwrap()).into();
    let ids = agent.call_ok("session.event", &json!({"session_id": session, "events": events}));
    assert_eq!(ids["event_ids"].as_array().unwrap().len(), 2);
    let error = agent.call_err("session.event", &event_params(&session, SESSION_COMPLETED));
    assert_eq!((&error["code"], &error["data"]["status"]), (&json!(-32004), &json!(404)));
    let last = agent.next_notification();
    assert_eq!(
        (&last["method"], &last["params"]["reason"]),
        (&json!("session.stopped"), &json!("completed"))
    );
}

#[test]
fn a_clarification_response_is_delivered() {
    let hub = HubProcess::start_in_memory();
    let client = hub.client();
    let subscription = client.subscribe(REPLY_CAPABILITIES);
    let mut stream = client.open_event_stream(&subscription, None);
    let mut agent = AgentWebSocket::open(&hub);
    let session = agent.start_session();
    let asked = agent.call_ok(
        "session.clarify",
        &json!({"session_id": session, "question": "Which account?", "timeout_seconds": 60,
            "summary_normal": "Which account?"}),
    );
    while stream.next_type() != "awaiting.clarification" {}
    let reply = confirmation_reply(&subscription, asked["reply_token"].as_str().unwrap(), "accept")
        .replace("confirmation.reply", "clarification.reply")
        .replace(r#""decision":"accept""#, r#""response":"Savings""#);
    assert_eq!(client.post("/aaep/v1/replies", &reply).status, 204);
    let notification = agent.next_notification();
    assert_eq!(
        (&notification["params"]["response"], &notification["params"]["by"]),
        (&json!("Savings"), &json!("reply"))
    );
}

#[test]
fn a_listener_can_stop_the_agent() {
    let hub = HubProcess::start_in_memory();
    let client = hub.client();
    let subscription = client.subscribe(REPLY_CAPABILITIES);
    let _stream = client.open_event_stream(&subscription, None);
    let mut agent = AgentWebSocket::open(&hub);
    let (session, other_session) = (agent.start_session(), agent.start_session());
    let token = agent.ask(&session);
    stop_session(&client, &subscription, &session);
    let notifications = [agent.next_notification(), agent.next_notification()];
    assert_eq!(
        (
            &notifications[0]["method"],
            &notifications[0]["params"]["reply_token"],
            &notifications[0]["params"]["status"]
        ),
        (&json!("session.resolved"), &json!(token), &json!("stopped"))
    );
    let stopped = json!({"session_id": session, "reason": "user"});
    assert_eq!(
        (&notifications[1]["method"], &notifications[1]["params"]),
        (&json!("session.stopped"), &stopped)
    );
    assert_eq!(
        agent.call_err("session.output", &json!({"session_id": session, "text": "more"}))["code"],
        -32004
    );
    agent.call_ok("session.output", &json!({"session_id": other_session, "text": "more"}));
}

#[test]
fn a_deadline_extension_changes_only_the_deadline() {
    let hub = HubProcess::start_in_memory();
    let client = hub.client();
    let subscription = client.subscribe(REPLY_CAPABILITIES);
    let _stream = client.open_event_stream(&subscription, None);
    let mut agent = AgentWebSocket::open(&hub);
    let session = agent.start_session();
    let asked = agent.call_ok("session.ask", &question_params(&session));
    let token = asked["reply_token"].as_str().unwrap();
    let extension = json!({"type": "sayso:deadline.extend", "reply_token": token, "subscription_id": subscription,
        "timestamp": "2026-11-15T12:00:00Z", "seconds": 600});
    assert_eq!(client.post("/aaep/v1/replies", &extension.to_string()).status, 204);
    client.reply(&subscription, token, "accept");
    let notification = agent.next_notification();
    assert_eq!(notification["params"]["decision"], "accept");
    let (old_deadline, new_deadline) =
        (asked["deadline"].as_str(), notification["params"]["receipt"]["deadline"].as_str());
    assert!(new_deadline > old_deadline, "{notification}");
}
