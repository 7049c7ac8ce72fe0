//! Calls that are none, too many or too long, and who may not speak.

use serde_json::{Value, json};
use tungstenite::Message;

use super::{Agent, END, UNKNOWN, event, question, start};
use testing::cli::token;
use testing::hub::Hub;

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
fn a_malformed_session_id_is_answered_like_an_unknown_one() {
    let hub = Hub::open();
    let (client, mut agent) = (hub.client(), Agent::open(&hub));
    let http = |session: &str| {
        let path = format!("/agent/v1/sessions/{session}");
        let replies = [
            client.post(&format!("{path}/events"), END),
            client.post(&format!("{path}/output"), "x"),
            client.post(&format!("{path}/confirmations"), "{}"),
            client.get(&format!("{path}/replies/rpl_{}", "0".repeat(32))),
        ];
        replies.map(|reply| (reply.status, reply.body))
    };
    let mut socket = |session: &str| agent.error("session.follow", &json!({"session_id": session}));
    let (unknown_http, unknown_socket) = (http(UNKNOWN), socket(UNKNOWN));
    assert!(unknown_http.iter().all(|(status, _)| *status == 404), "{unknown_http:?}");
    assert_eq!(unknown_socket["code"], -32004);
    for malformed in ["sess_a!b", "sess_a%20b", "sess_", "sess_a.b", &format!("sess_{}", "a".repeat(4_000))] {
        assert_eq!(http(malformed), unknown_http, "{malformed}");
        assert_eq!(socket(malformed), unknown_socket, "{malformed}");
    }
}

#[test]
fn a_malformed_reply_token_is_answered_like_an_unknown_one() {
    let hub = Hub::open();
    let (client, mut agent) = (hub.client(), Agent::open(&hub));
    let session = agent.start();
    let token = agent.ask(&session);
    let http = |token: &str| {
        let path = format!("/agent/v1/sessions/{session}/replies/{token}");
        [("GET", &*path), ("GET", &format!("{path}?wait=60")), ("DELETE", &path)].map(|(method, path)| {
            let reply = client.send(method, path, "");
            (reply.status, reply.body)
        })
    };
    let mut socket =
        |token: &str| agent.error("session.withdraw", &json!({"session_id": session, "reply_token": token}));
    let unknown = format!("rpl_{}", "0".repeat(32));
    let (unknown_http, unknown_socket) = (http(&unknown), socket(&unknown));
    assert!(unknown_http.iter().all(|(status, _)| *status == 404), "{unknown_http:?}");
    assert_eq!(unknown_socket["code"], -32004);
    let too_long = format!("rpl_{}", "a".repeat(4_000));
    for malformed in ["rpl_a!b", "rpl_a%20b", "rpl_", "x", &token.to_uppercase(), &too_long] {
        assert_eq!(http(malformed), unknown_http, "{malformed}");
        assert_eq!(socket(malformed), unknown_socket, "{malformed}");
    }
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
