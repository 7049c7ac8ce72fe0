//! Agents on a WebSocket, as JSON-RPC.

use std::net::TcpStream;

use serde_json::{Value, json};
use tungstenite::{ClientRequestBuilder, Error, Message, WebSocket};

use crate::hub::{CAN_REPLY, Client, Hub, QUESTION};
use crate::messages::reply;
use crate::tokens::token;

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
        let address = format!("ws://{}/agent/v1/ws", hub.address).parse().unwrap();
        let mut wanted = ClientRequestBuilder::new(address);
        for (name, value) in headers {
            wanted = wanted.with_header(*name, *value);
        }
        match tungstenite::client(wanted, hub.client().connect()) {
            Ok((socket, _)) => Ok(Self { socket, calls: 0, told: Vec::new() }),
            Err(tungstenite::HandshakeError::Failure(Error::Http(answer))) => Err(answer.status().as_u16()),
            Err(other) => panic!("{other}"),
        }
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

    /// The code with which the other side closes, whatever it says before.
    pub(crate) fn code(mut self) -> u16 {
        loop {
            if let Message::Close(frame) = self.socket.read().unwrap() {
                return frame.unwrap().code.into();
            }
        }
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

#[test]
fn what_is_no_call_is_told_so_and_the_socket_goes_on() {
    let hub = Hub::open();
    let mut agent = Agent::open(&hub);
    for (said, code, id) in [
        ("{", -32700, Value::Null),
        ("[]", -32600, Value::Null),
        ("7", -32600, Value::Null),
        (r#"{"jsonrpc":"2.0","method":"session.start","id":[]}"#, -32600, Value::Null),
        (r#"{"jsonrpc":"1.0","method":"session.start","id":"a"}"#, -32600, json!("a")),
        (r#"{"jsonrpc":"2.0","method":"session.sing","id":"b"}"#, -32601, json!("b")),
        (r#"{"jsonrpc":"2.0","method":"session.start","id":"c","params":[]}"#, -32602, json!("c")),
        (
            r#"{"jsonrpc":"2.0","method":"session.event","id":"d","params":{"session_id":7}}"#,
            -32602,
            json!("d"),
        ),
        (
            r#"{"jsonrpc":"2.0","method":"session.start","id":"e","params":{"producer":7}}"#,
            -32602,
            json!("e"),
        ),
        (r#"{"jsonrpc":"2.0","method":"session.start","id":"f","params":{}}"#, -32022, json!("f")),
    ] {
        agent.say(said);
        let answer = agent.next();
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(code), &id), "{said}: {answer}");
        assert!(answer["error"]["message"].is_string() && answer["error"]["data"]["title"].is_string());
    }
    agent.socket.send(Message::binary(vec![0xff, 0xfe])).unwrap();
    assert_eq!(agent.next()["error"]["code"], -32700);
    // A notification has no answer, good or bad.
    agent.say(r#"{"jsonrpc":"2.0","method":"session.sing"}"#);
    agent.say(
        &json!({"jsonrpc": "2.0", "method": "session.event", "params": {"session_id": UNKNOWN}}).to_string(),
    );
    agent.say(&json!({"jsonrpc": "2.0", "method": "session.start", "params": start()}).to_string());
    let session = agent.start();
    agent
        .socket
        .send(Message::binary(
            json!({"jsonrpc": "2.0", "id": 9, "method": "session.follow", "params": {"session_id": session}})
                .to_string(),
        ))
        .unwrap();
    assert_eq!(agent.next()["result"], json!({"session_id": session, "state": "idle"}));
}

#[test]
fn a_batch_is_answered_together() {
    let hub = Hub::open();
    let mut agent = Agent::open(&hub);
    let session = agent.start();
    let call = |id: Value, method: &str, params: Value| {
        let mut call = json!({"jsonrpc": "2.0", "method": method, "params": params});
        if !id.is_null() {
            call["id"] = id;
        }
        call
    };
    let output = json!({"session_id": session, "text": "Good day."});
    let batch = json!([
        call(json!(1), "session.output", output.clone()),
        call(json!("two"), "session.sing", json!({})),
        5,
        call(Value::Null, "session.output", output.clone()),
        call(json!(3), "session.output", json!({"session_id": UNKNOWN, "text": "x"})),
    ]);
    agent.say(&batch.to_string());
    let answers = agent.next();
    let mut short: Vec<_> = answers
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["id"].to_string(), one["error"]["code"].as_i64().unwrap_or(0)))
        .collect();
    short.sort();
    let expected = [("\"two\"", -32601), ("1", 0), ("3", -32004), ("null", -32600)];
    assert_eq!(short, expected.map(|(id, code)| (id.to_owned(), code)));
    // Of notifications alone nothing comes back.
    agent.say(&json!([call(Value::Null, "session.output", output)]).to_string());
    agent.say(&json!(vec![5; 65]).to_string());
    assert_eq!(agent.next()["error"]["code"], -32600, "too many for one batch");
    agent.say(&json!(vec![5; 64]).to_string());
    assert_eq!(agent.next().as_array().unwrap().len(), 64);
}

#[test]
fn a_flood_is_answered_call_by_call_and_disturbs_nobody() {
    let hub = Hub::open();
    let mut agent = Agent::open(&hub);
    let session = agent.start();
    let count = 2_000;
    for id in 0..count {
        let call = json!({"jsonrpc": "2.0", "id": id, "method": "session.event", "params": {"session_id": session,
            "event": {"type": "aaep:agent.progress.updated", "progress": {"percent": 5}, "summary_normal": "Working."}}});
        agent.say(&call.to_string());
    }
    let mut other = Agent::open(&hub);
    other.start();
    let mut answered = Vec::new();
    while answered.len() < count {
        let answer = agent.next();
        assert!(answer["result"]["event_ids"].is_array(), "{answer}");
        answered.push(answer["id"].as_u64().unwrap());
    }
    assert!(answered.is_sorted(), "in the order in which the hub settles them");
}

#[test]
fn a_message_that_is_too_long_ends_it() {
    let hub = Hub::open();
    let mut agent = Agent::open(&hub);
    let session = agent.start();
    let padded = |length| {
        let call = json!({"jsonrpc": "2.0", "id": "x", "method": "session.follow", "params": {"session_id": session}});
        format!("{call}{}", " ".repeat(length))
    };
    agent.say(&padded(1024 * 1024));
    assert_eq!(agent.next()["id"], "x");
    let _ = agent.socket.send(Message::text(padded(2 * 1024 * 1024)));
    assert_eq!(agent.code(), 1009);
}

#[test]
fn only_who_may_speak_is_let_in_and_each_to_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokens").to_str().unwrap().to_owned();
    let bank = token(&file, &["--role", "agent", "--name", "bank", "--agent-id", "bank"]);
    let twin = token(&file, &["--role", "agent", "--name", "twin", "--agent-id", "bank"]);
    let ada = token(&file, &["--role", "listener", "--name", "ada"]);
    let eve = token(&file, &["--role", "observer", "--name", "eve"]);
    let admin = token(&file, &["--role", "admin", "--name", "admin"]);
    let hub = Hub::start(&["--memory", "--listen", "127.0.0.1:0", "--tokens", &file]);
    let connect = |token: &str| Agent::connect(&hub, &[("Authorization", &format!("Bearer {token}"))]);
    assert_eq!(Agent::connect(&hub, &[]).err(), Some(401));
    assert_eq!((connect(&ada).err(), connect(&eve).err()), (Some(403), Some(403)));
    assert_eq!(connect(&admin).ok().unwrap().error("session.start", &start())["code"], -32003);

    let (mut bank, mut twin) = (connect(&bank).ok().unwrap(), connect(&twin).ok().unwrap());
    let session = bank.start();
    bank.ask(&session);
    assert_eq!(bank.told()["params"]["by"], "unreachable");
    for (method, params) in [
        ("session.follow", json!({})),
        ("session.event", event("", END)),
        ("session.output", json!({"text": "x"})),
        ("session.ask", question("")),
    ] {
        let to = |session: &str| {
            let mut params = params.clone();
            params["session_id"] = session.into();
            params
        };
        let (foreign, unknown) = (twin.error(method, &to(&session)), twin.error(method, &to(UNKNOWN)));
        assert_eq!(foreign, unknown);
        assert_eq!(foreign["code"], -32004);
    }
    bank.result("session.event", &event(&session, END));
    assert_eq!(twin.error("session.follow", &json!({"session_id": session}))["code"], -32004);
    assert!(twin.told.is_empty(), "{:?}", twin.told);
}

#[test]
fn it_is_a_websocket_like_any_other() {
    let hub = Hub::open();
    let own = format!("http://{}", hub.address);
    assert!(Agent::connect(&hub, &[("Origin", &own)]).is_ok());
    assert_eq!(Agent::connect(&hub, &[("Origin", "https://evil.example")]).err(), Some(403));
    assert!(Agent::connect(&hub, &[("Sec-WebSocket-Protocol", "sayso.agent.v1")]).is_ok());
    assert_eq!(Agent::connect(&hub, &[("Sec-WebSocket-Protocol", "aaep.v1")]).err(), Some(400));
    let client = hub.client();
    assert_eq!(client.get("/agent/v1/ws").status, 426);
    assert_eq!(client.post("/agent/v1/ws", "").status, 405);
    assert_eq!(client.get("/agent/v1/ws?token=x").status, 400);
}

#[test]
fn nothing_is_lost_between_two_connections() {
    let hub = Hub::open();
    let client = hub.client();
    let subscription = client.subscribe(CAN_REPLY);
    let _ear = client.listen(&subscription, None);
    let mut agent = Agent::open(&hub);
    let session = agent.start();
    let first = agent.ask(&session);
    let another = QUESTION.replace("Ben", "Cleo").replace("5.00", "6.00");
    let mut another: Value = serde_json::from_str(&another).unwrap();
    another["session_id"] = session.as_str().into();
    let second = agent.result("session.ask", &another)["reply_token"].clone();
    drop(agent);
    client.reply(&subscription, &first, "accept");
    let mut agent = Agent::open(&hub);
    agent.result("session.follow", &json!({"session_id": session}));
    let told = agent.told();
    assert_eq!(
        (&told["params"]["reply_token"], &told["params"]["decision"]),
        (&json!(first), &json!("accept")),
        "what was answered meanwhile"
    );
    client.reply(&subscription, second.as_str().unwrap(), "reject");
    assert_eq!(agent.told()["params"]["reply_token"], second, "and what is answered now");
    drop(agent);
    stop(&client, &subscription, &session);
    let mut agent = Agent::open(&hub);
    assert_eq!(agent.error("session.follow", &json!({"session_id": session}))["code"], -32004);
    assert_eq!(agent.told()["params"], json!({"session_id": session, "reason": "user"}));
}

#[test]
fn the_same_key_does_the_same_thing_once_across_connections_and_restarts() {
    let folder = tempfile::tempdir().unwrap();
    let mut hub = Hub::on_disk(folder.path());
    let client = hub.client();
    let subscription = client.subscribe(CAN_REPLY);
    let _ear = client.listen(&subscription, None);
    let mut agent = Agent::open(&hub);
    let started = agent.result("session.start", &with_key(start(), "start"));
    let session = started["session_id"].as_str().unwrap().to_owned();
    let ask = with_key(question(&session), "ask");
    let asked = agent.result("session.ask", &ask);
    let token = asked["reply_token"].as_str().unwrap().to_owned();
    drop(agent);
    let mut agent = Agent::open(&hub);
    assert_eq!(agent.result("session.start", &with_key(start(), "start")), started);
    assert_eq!(agent.result("session.ask", &ask), asked);
    assert!(agent.told.is_empty(), "{:?}", agent.told);
    client.reply(&subscription, &token, "accept");
    assert_eq!(agent.told()["params"]["decision"], "accept");
    let mut other = ask.clone();
    other["timeout_seconds"] = 90.into();
    assert_eq!(agent.error("session.ask", &other)["code"], -32009);
    hub.kill();
    drop(agent);

    let hub = Hub::on_disk(folder.path());
    let mut agent = Agent::open(&hub);
    assert_eq!(agent.result("session.start", &with_key(start(), "start")), started);
    assert_eq!(agent.told()["params"]["reply_token"], json!(token), "it is followed again");
    assert_eq!(agent.result("session.ask", &ask), asked);
    assert_eq!(agent.told()["params"]["decision"], "accept", "and whoever asks again is told again");
    agent.result("session.event", &with_key(event(&session, CALL), "call"));
    agent.result("session.event", &with_key(event(&session, CALL), "call"));
    let again = agent.error("session.event", &event(&session, &CALL.replace("call_1", "call_2")));
    assert_eq!(again["code"], -32022, "a yes is spent once");
}

#[test]
fn who_hangs_up_waits_no_more() {
    let hub = Hub::open();
    let client = hub.client();
    let subscription = client.subscribe(CAN_REPLY);
    let _ear = client.listen(&subscription, None);
    let session = client.start();
    let token = client.ask(&session);
    // More than one principal may have open at once.
    for _ in 0..1_100 {
        use std::io::Write;
        let path = format!("/agent/v1/sessions/{session}/replies/{token}?wait=300");
        let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", hub.address);
        client.connect().write_all(request.as_bytes()).unwrap();
    }
    let path = format!("/agent/v1/sessions/{session}/replies/{token}?wait=1");
    let until = std::time::Instant::now() + std::time::Duration::from_mins(2);
    while client.get(&path).status == 429 {
        assert!(std::time::Instant::now() < until, "they are still waited for");
    }
}
