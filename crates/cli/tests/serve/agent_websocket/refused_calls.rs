//! Invalid calls, oversized calls, too many calls and unauthorized callers.

use serde_json::{Value, json};
use tungstenite::Message;

use super::{
    AgentWebSocket, SESSION_COMPLETED, UNKNOWN_SESSION, event_params, question_params, start_params,
};
use testing::cli::create_token;
use testing::hub::HubProcess;

#[test]
fn invalid_calls_get_an_error_and_the_socket_stays_open() {
    let hub = HubProcess::start_in_memory();
    let mut agent = AgentWebSocket::open(&hub);
    for (text, code, id) in [
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
        agent.send_text(text);
        let response = agent.next();
        assert_eq!((&response["error"]["code"], &response["id"]), (&json!(code), &id), "{text}: {response}");
        assert!(response["error"]["message"].is_string() && response["error"]["data"]["title"].is_string());
    }
    agent.socket.send(Message::binary(vec![0xff, 0xfe])).unwrap();
    assert_eq!(agent.next()["error"]["code"], -32700);
    // A notification gets no response, valid or not.
    agent.send_text(r#"{"jsonrpc":"2.0","method":"session.sing"}"#);
    agent.send_text(
        &json!({"jsonrpc": "2.0", "method": "session.event", "params": {"session_id": UNKNOWN_SESSION}})
            .to_string(),
    );
    agent.send_text(
        &json!({"jsonrpc": "2.0", "method": "session.start", "params": start_params()}).to_string(),
    );
    let session = agent.start_session();
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
fn a_batch_gets_one_response() {
    let hub = HubProcess::start_in_memory();
    let mut agent = AgentWebSocket::open(&hub);
    let session = agent.start_session();
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
        call(json!(3), "session.output", json!({"session_id": UNKNOWN_SESSION, "text": "x"})),
    ]);
    agent.send_text(&batch.to_string());
    let responses = agent.next();
    let mut outcomes: Vec<_> = responses
        .as_array()
        .unwrap()
        .iter()
        .map(|response| (response["id"].to_string(), response["error"]["code"].as_i64().unwrap_or(0)))
        .collect();
    outcomes.sort();
    let expected = [("\"two\"", -32601), ("1", 0), ("3", -32004), ("null", -32600)];
    assert_eq!(outcomes, expected.map(|(id, code)| (id.to_owned(), code)));
    // A batch of notifications gets no response.
    agent.send_text(&json!([call(Value::Null, "session.output", output)]).to_string());
    agent.send_text(&json!(vec![5; 65]).to_string());
    assert_eq!(agent.next()["error"]["code"], -32600, "too many calls in one batch");
    agent.send_text(&json!(vec![5; 64]).to_string());
    assert_eq!(agent.next().as_array().unwrap().len(), 64);
}

#[test]
fn a_flood_is_answered_call_by_call_and_affects_nobody_else() {
    let hub = HubProcess::start_in_memory();
    let mut agent = AgentWebSocket::open(&hub);
    let session = agent.start_session();
    let count = 2_000;
    for id in 0..count {
        let call = json!({"jsonrpc": "2.0", "id": id, "method": "session.event", "params": {"session_id": session,
            "event": {"type": "aaep:agent.progress.updated", "progress": {"percent": 5}, "summary_normal": "Working."}}});
        agent.send_text(&call.to_string());
    }
    let mut other = AgentWebSocket::open(&hub);
    other.start_session();
    let mut answered = Vec::new();
    while answered.len() < count {
        let response = agent.next();
        assert!(response["result"]["event_ids"].is_array(), "{response}");
        answered.push(response["id"].as_u64().unwrap());
    }
    assert!(answered.is_sorted(), "responses must be in the order of the calls");
}

#[test]
fn an_oversized_message_closes_the_socket() {
    let hub = HubProcess::start_in_memory();
    let mut agent = AgentWebSocket::open(&hub);
    let session = agent.start_session();
    let padded = |length| {
        let call = json!({"jsonrpc": "2.0", "id": "x", "method": "session.follow", "params": {"session_id": session}});
        format!("{call}{}", " ".repeat(length))
    };
    agent.send_text(&padded(1024 * 1024));
    assert_eq!(agent.next()["id"], "x");
    let _ = agent.socket.send(Message::text(padded(2 * 1024 * 1024)));
    assert_eq!(agent.into_close_code(), 1009);
}

#[test]
fn only_agents_can_start_sessions_and_they_can_use_only_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokens").to_str().unwrap().to_owned();
    let bank = create_token(&file, &["--role", "agent", "--name", "bank", "--agent-id", "bank"]);
    let twin =
        create_token(&file, &["--role", "agent", "--name", "twin", "--agent-id", "bank", "--share-agent-id"]);
    let ada = create_token(&file, &["--role", "listener", "--name", "ada"]);
    let eve = create_token(&file, &["--role", "observer", "--name", "eve"]);
    let admin = create_token(&file, &["--role", "admin", "--name", "admin"]);
    let hub = HubProcess::start(&["--memory", "--listen", "127.0.0.1:0", "--tokens", &file]);
    let connect =
        |token: &str| AgentWebSocket::connect(&hub, &[("Authorization", &format!("Bearer {token}"))]);
    assert_eq!(AgentWebSocket::connect(&hub, &[]).err(), Some(401));
    assert_eq!((connect(&ada).err(), connect(&eve).err()), (Some(403), Some(403)));
    assert_eq!(connect(&admin).ok().unwrap().call_err("session.start", &start_params())["code"], -32003);

    let (mut bank, mut twin) = (connect(&bank).ok().unwrap(), connect(&twin).ok().unwrap());
    let session = bank.start_session();
    bank.ask(&session);
    assert_eq!(bank.next_notification()["params"]["by"], "unreachable");
    for (method, params) in [
        ("session.follow", json!({})),
        ("session.event", event_params("", SESSION_COMPLETED)),
        ("session.output", json!({"text": "x"})),
        ("session.ask", question_params("")),
    ] {
        let params_for = |session: &str| {
            let mut params = params.clone();
            params["session_id"] = session.into();
            params
        };
        let (foreign, unknown) = (
            twin.call_err(method, &params_for(&session)),
            twin.call_err(method, &params_for(UNKNOWN_SESSION)),
        );
        assert_eq!(foreign, unknown);
        assert_eq!(foreign["code"], -32004);
    }
    bank.call_ok("session.event", &event_params(&session, SESSION_COMPLETED));
    assert_eq!(twin.call_err("session.follow", &json!({"session_id": session}))["code"], -32004);
    assert!(twin.notifications.is_empty(), "{:?}", twin.notifications);
}

#[test]
fn a_malformed_session_id_is_answered_like_an_unknown_one() {
    let hub = HubProcess::start_in_memory();
    let (client, mut agent) = (hub.client(), AgentWebSocket::open(&hub));
    let http_responses = |session: &str| {
        let path = format!("/agent/v1/sessions/{session}");
        let responses = [
            client.post(&format!("{path}/events"), SESSION_COMPLETED),
            client.post(&format!("{path}/output"), "x"),
            client.post(&format!("{path}/confirmations"), "{}"),
            client.get(&format!("{path}/replies/rpl_{}", "0".repeat(32))),
        ];
        responses.map(|response| (response.status, response.body))
    };
    let mut socket_error = |session: &str| agent.call_err("session.follow", &json!({"session_id": session}));
    let (unknown_http, unknown_socket) = (http_responses(UNKNOWN_SESSION), socket_error(UNKNOWN_SESSION));
    assert!(unknown_http.iter().all(|(status, _)| *status == 404), "{unknown_http:?}");
    assert_eq!(unknown_socket["code"], -32004);
    for malformed in ["sess_a!b", "sess_a%20b", "sess_", "sess_a.b", &format!("sess_{}", "a".repeat(4_000))] {
        assert_eq!(http_responses(malformed), unknown_http, "{malformed}");
        assert_eq!(socket_error(malformed), unknown_socket, "{malformed}");
    }
}

#[test]
fn a_malformed_reply_token_is_answered_like_an_unknown_one() {
    let hub = HubProcess::start_in_memory();
    let (client, mut agent) = (hub.client(), AgentWebSocket::open(&hub));
    let session = agent.start_session();
    let token = agent.ask(&session);
    let http_responses = |token: &str| {
        let path = format!("/agent/v1/sessions/{session}/replies/{token}");
        [("GET", &*path), ("GET", &format!("{path}?wait=60")), ("DELETE", &path)].map(|(method, path)| {
            let response = client.send(method, path, "");
            (response.status, response.body)
        })
    };
    let mut socket_error = |token: &str| {
        agent.call_err("session.withdraw", &json!({"session_id": session, "reply_token": token}))
    };
    let unknown = format!("rpl_{}", "0".repeat(32));
    let (unknown_http, unknown_socket) = (http_responses(&unknown), socket_error(&unknown));
    assert!(unknown_http.iter().all(|(status, _)| *status == 404), "{unknown_http:?}");
    assert_eq!(unknown_socket["code"], -32004);
    let too_long = format!("rpl_{}", "a".repeat(4_000));
    for malformed in ["rpl_a!b", "rpl_a%20b", "rpl_", "x", &token.to_uppercase(), &too_long] {
        assert_eq!(http_responses(malformed), unknown_http, "{malformed}");
        assert_eq!(socket_error(malformed), unknown_socket, "{malformed}");
    }
}

#[test]
fn the_usual_websocket_checks_apply() {
    let hub = HubProcess::start_in_memory();
    let own_origin = format!("http://{}", hub.address);
    assert!(AgentWebSocket::connect(&hub, &[("Origin", &own_origin)]).is_ok());
    assert_eq!(AgentWebSocket::connect(&hub, &[("Origin", "https://evil.example")]).err(), Some(403));
    assert!(AgentWebSocket::connect(&hub, &[("Sec-WebSocket-Protocol", "sayso.agent.v1")]).is_ok());
    assert_eq!(AgentWebSocket::connect(&hub, &[("Sec-WebSocket-Protocol", "aaep.v1")]).err(), Some(400));
    let client = hub.client();
    assert_eq!(client.get("/agent/v1/ws").status, 426);
    assert_eq!(client.post("/agent/v1/ws", "").status, 405);
    assert_eq!(client.get("/agent/v1/ws?token=x").status, 400);
}
