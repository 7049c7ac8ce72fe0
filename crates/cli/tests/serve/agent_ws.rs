//! Agents on a WebSocket, as JSON-RPC.
//!
//! - here: an agent on its socket, and sessions as they go; `refused`: what is not taken; `returning`: hanging up, coming back.

mod refused;
mod returning;

use std::net::TcpStream;

use serde_json::{Value, json};
use testing::websocket::{close_code, upgrade};
use tungstenite::{Message, WebSocket};

use testing::http::Client;
use testing::hub::Hub;
use testing::messages::reply;
use testing::messages::{CAN_REPLY, QUESTION};

/// An agent on its socket.
pub(crate) struct Agent {
    socket: WebSocket<TcpStream>,
    calls: u64,
    /// What was told while an answer was waited for.
    told: Vec<Value>,
}

impl Agent {
    /// Connects; the status if it is refused.
    pub(crate) fn connect(hub: &Hub, headers: &[(&str, &str)]) -> Result<Self, u16> {
        let (socket, _) = upgrade(&hub.address, "/agent/v1/ws", headers)?;
        Ok(Self { socket, calls: 0, told: Vec::new() })
    }

    pub(crate) fn open(hub: &Hub) -> Self {
        Self::connect(hub, &[]).unwrap_or_else(|status| panic!("{status}"))
    }

    pub(crate) fn say(&mut self, text: &str) {
        self.socket.send(Message::text(text)).unwrap();
    }

    fn next(&mut self) -> Value {
        serde_json::from_str(&self.next_text()).unwrap()
    }

    /// The next message. Nothing but signs of life for a minute means that none will come.
    pub(crate) fn next_text(&mut self) -> String {
        for _ in 0..5 {
            match self.socket.read().unwrap() {
                Message::Text(text) => return text.as_str().to_owned(),
                Message::Ping(_) => {}
                other => panic!("{other:?}"),
            }
        }
        panic!("nothing comes");
    }

    /// The next notification.
    pub(crate) fn told(&mut self) -> Value {
        let told = if self.told.is_empty() { self.next() } else { self.told.remove(0) };
        assert!(told.get("id").is_none(), "{told}");
        told
    }

    /// Calls, and returns the whole answer; notifications that come meanwhile are kept.
    fn call(&mut self, method: &str, params: &Value) -> Value {
        self.calls += 1;
        let id = self.calls;
        self.say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string());
        loop {
            let answer = self.next();
            if answer.get("id").is_some() {
                assert_eq!((&answer["jsonrpc"], &answer["id"]), (&json!("2.0"), &json!(id)), "{answer}");
                return answer;
            }
            self.told.push(answer);
        }
    }

    pub(crate) fn result(&mut self, method: &str, params: &Value) -> Value {
        let answer = self.call(method, params);
        answer.get("result").unwrap_or_else(|| panic!("{answer}")).clone()
    }

    fn error(&mut self, method: &str, params: &Value) -> Value {
        let answer = self.call(method, params);
        answer.get("error").unwrap_or_else(|| panic!("{answer}")).clone()
    }

    pub(crate) fn start(&mut self) -> String {
        let started = self.result("session.start", &start());
        started["session_id"].as_str().unwrap().to_owned()
    }

    pub(crate) fn ask(&mut self, session: &str) -> String {
        let asked = self.result("session.ask", &question(session));
        assert!(asked["deadline"].is_string(), "{asked}");
        asked["reply_token"].as_str().unwrap().to_owned()
    }

    pub(crate) fn code(mut self) -> u16 {
        close_code(&mut self.socket)
    }
}

fn start() -> Value {
    json!({"summary_normal": "Moving money.", "localization_hints": {"primary_language": "en"}})
}

fn question(session: &str) -> Value {
    let mut params: Value = serde_json::from_str(QUESTION).unwrap();
    params["session_id"] = session.into();
    params
}

fn with_key(mut params: Value, key: &str) -> Value {
    params["idempotency_key"] = key.into();
    params
}

fn event(session: &str, event: &str) -> Value {
    json!({"session_id": session, "event": serde_json::from_str::<Value>(event).unwrap()})
}

pub(crate) fn stop(client: &Client, subscription: &str, session: &str) {
    let stop = json!({"type": "sayso:session.stop", "session_id": session, "subscription_id": subscription,
        "timestamp": "2026-11-15T12:00:00Z"});
    assert_eq!(client.post("/aaep/v1/replies", &stop.to_string()).status, 204);
}

const CALL: &str = r#"{"type":"aaep:agent.tool.invoked","tool":"send","tool_call_id":"call_1","risk_level":"high","irreversible":true,"summary_normal":"Sending.","arguments":{"amount":"5.00"}}"#;
const DONE: &str = r#"{"type":"aaep:agent.tool.completed","tool":"send","tool_call_id":"call_1","status":"success","summary_normal":"Sent."}"#;
const END: &str = r#"{"type":"aaep:agent.session.completed","summary_normal":"All done."}"#;
const UNKNOWN: &str = "sess_00000000000000000000000000000000";

#[test]
fn a_session_from_its_start_to_its_end() {
    let hub = Hub::open();
    let client = hub.client();
    let subscription = client.subscribe(CAN_REPLY);
    let mut ear = client.listen(&subscription, None);
    let mut agent = Agent::open(&hub);
    let session = agent.start();
    assert_eq!(ear.next_type(), "session.started");
    for (text, complete) in [("Your balance is 12.5", false), ("0 euro.", true)] {
        let said = agent
            .result("session.output", &json!({"session_id": session, "text": text, "complete": complete}));
        assert!(!said["event_ids"].as_array().unwrap().is_empty());
    }
    while ear.next().2["chunk"] != "Your balance is 12.50 euro." {}

    let token = agent.ask(&session);
    while ear.next_type() != "awaiting.confirmation" {}
    let refused = agent.error("session.event", &event(&session, CALL));
    assert_eq!((&refused["code"], &refused["data"]["status"]), (&json!(-32022), &json!(422)), "{refused}");
    assert!(refused["data"]["findings"][0]["rule"].is_string(), "{refused}");
    assert_eq!(client.reply(&subscription, &token, "accept").status, 204);
    let told = agent.told();
    assert_eq!(told["method"], "session.resolved");
    let path = format!("/agent/v1/sessions/{session}/replies/{token}");
    let mut same: Value = serde_json::from_str(&client.get(&path).body).unwrap();
    assert_eq!((&same["decision"], &same["by"]), (&json!("accept"), &json!("reply")));
    same["session_id"] = session.as_str().into();
    same["reply_token"] = token.into();
    assert_eq!(told["params"], same, "what GET says, and which it is");

    agent.result("session.event", &event(&session, CALL));
    let events: Vec<Value> = [DONE, END].map(|text| serde_json::from_str(text).unwrap()).into();
    let ids = agent.result("session.event", &json!({"session_id": session, "events": events}));
    assert_eq!(ids["event_ids"].as_array().unwrap().len(), 2);
    let over = agent.error("session.event", &event(&session, END));
    assert_eq!((&over["code"], &over["data"]["status"]), (&json!(-32004), &json!(404)));
    let last = agent.told();
    assert_eq!(
        (&last["method"], &last["params"]["reason"]),
        (&json!("session.stopped"), &json!("completed"))
    );
}

#[test]
fn what_a_person_means_is_told_as_well() {
    let hub = Hub::open();
    let client = hub.client();
    let subscription = client.subscribe(CAN_REPLY);
    let mut ear = client.listen(&subscription, None);
    let mut agent = Agent::open(&hub);
    let session = agent.start();
    let asked = agent.result(
        "session.clarify",
        &json!({"session_id": session, "question": "Which account?", "timeout_seconds": 60,
            "summary_normal": "Which account?"}),
    );
    while ear.next_type() != "awaiting.clarification" {}
    let said = reply(&subscription, asked["reply_token"].as_str().unwrap(), "accept")
        .replace("confirmation.reply", "clarification.reply")
        .replace(r#""decision":"accept""#, r#""response":"Savings""#);
    assert_eq!(client.post("/aaep/v1/replies", &said).status, 204);
    let told = agent.told();
    assert_eq!((&told["params"]["response"], &told["params"]["by"]), (&json!("Savings"), &json!("reply")));
}

#[test]
fn the_person_can_stop_the_agent() {
    let hub = Hub::open();
    let client = hub.client();
    let subscription = client.subscribe(CAN_REPLY);
    let _ear = client.listen(&subscription, None);
    let mut agent = Agent::open(&hub);
    let (session, other) = (agent.start(), agent.start());
    let token = agent.ask(&session);
    stop(&client, &subscription, &session);
    let told = [agent.told(), agent.told()];
    assert_eq!(
        (&told[0]["method"], &told[0]["params"]["reply_token"], &told[0]["params"]["status"]),
        (&json!("session.resolved"), &json!(token), &json!("stopped"))
    );
    let stopped = json!({"session_id": session, "reason": "user"});
    assert_eq!((&told[1]["method"], &told[1]["params"]), (&json!("session.stopped"), &stopped));
    assert_eq!(
        agent.error("session.output", &json!({"session_id": session, "text": "more"}))["code"],
        -32004
    );
    agent.result("session.output", &json!({"session_id": other, "text": "more"}));
}

#[test]
fn more_time_changes_nothing_but_the_time() {
    let hub = Hub::open();
    let client = hub.client();
    let subscription = client.subscribe(CAN_REPLY);
    let _ear = client.listen(&subscription, None);
    let mut agent = Agent::open(&hub);
    let session = agent.start();
    let asked = agent.result("session.ask", &question(&session));
    let token = asked["reply_token"].as_str().unwrap();
    let more = json!({"type": "sayso:deadline.extend", "reply_token": token, "subscription_id": subscription,
        "timestamp": "2026-11-15T12:00:00Z", "seconds": 600});
    assert_eq!(client.post("/aaep/v1/replies", &more.to_string()).status, 204);
    client.reply(&subscription, token, "accept");
    let told = agent.told();
    assert_eq!(told["params"]["decision"], "accept");
    let (first, last) = (asked["deadline"].as_str(), told["params"]["receipt"]["deadline"].as_str());
    assert!(last > first, "{told}");
}
