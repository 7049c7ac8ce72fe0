//! Several agents in one session, and sessions that are parts of another one (AAEP appendix A.9).

use serde_json::{Value, json};
use testing::cli::create_token;
use testing::http::{EventStream, TestClient, TestResponse};
use testing::hub::HubProcess;
use testing::messages::{CONFIRMATION_BODY, REPLY_CAPABILITIES};
use testing::terminal::ListenProcess;

use super::agent_websocket::AgentWebSocket;

const THINKING: &str = r#""type":"aaep:agent.state.changed","to_state":"thinking""#;

/// The body of a request that starts a session with these additional members.
fn start_body(members: &Value) -> Value {
    let mut body =
        json!({"summary_normal": "Planning a trip.", "localization_hints": {"primary_language": "en"}});
    body.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    body
}

fn start(client: &TestClient, members: &Value) -> String {
    let response = client.post("/agent/v1/sessions", &start_body(members).to_string());
    assert_eq!(response.status, 201, "{response:?}");
    response.json_str("session_id")
}

/// Starts a session with the main producer `planner` and the producers `scout` and `booker`.
fn start_trip(client: &TestClient) -> String {
    let producers = json!([
        {"agent_id": "scout", "agent_name": "Scout", "model": "small-1", "agent_version": "2.0.0"},
        {"agent_id": "booker"},
    ]);
    start(client, &json!({"producer": {"agent_id": "planner"}, "producers": producers}))
}

fn publish(client: &TestClient, session: &str, event: &str) -> TestResponse {
    client.post(&format!("/agent/v1/sessions/{session}/events"), event)
}

fn finding(response: &TestResponse) -> (String, String) {
    assert_eq!(response.status, 422, "{response:?}");
    let problem: Value = serde_json::from_str(&response.body).unwrap();
    let text = |name: &str| problem["findings"][0][name].as_str().unwrap().to_owned();
    (text("pointer"), text("message"))
}

/// Reads events until one has this type.
fn next_of_type(stream: &mut EventStream, wanted: &str) -> Value {
    loop {
        let (kind, _, event) = stream.next();
        if kind == wanted {
            return event;
        }
    }
}

fn open_stream(client: &TestClient) -> (String, EventStream) {
    let subscription = client.subscribe(REPLY_CAPABILITIES);
    let stream = client.open_event_stream(&subscription, None);
    (subscription, stream)
}

#[test]
fn an_event_an_output_and_a_question_can_name_a_producer_of_the_session() {
    let hub = HubProcess::start_in_memory();
    let client = hub.client();
    let (_, mut stream) = open_stream(&client);
    let session = start_trip(&client);
    let started = next_of_type(&mut stream, "session.started");
    assert_eq!(started["producer"]["agent_id"], "planner");
    assert!(started.get("producers").is_none() && started.get("extensions").is_none(), "{started}");

    let scout =
        json!({"agent_id": "scout", "agent_name": "Scout", "model": "small-1", "agent_version": "2.0.0"});
    for producer in [r#""scout""#, r#"{"agent_id":"scout"}"#] {
        let event = format!(r#"{{{THINKING},"producer":{producer}}}"#);
        assert_eq!(publish(&client, &session, &event).status, 200);
        let event = next_of_type(&mut stream, "state.changed");
        assert_eq!(event["producer"], scout);
        assert_eq!(event["extensions"]["sayso"]["main_producer"], "planner", "{event}");
    }

    // An output without an id belongs to its producer.
    let output = format!("/agent/v1/sessions/{session}/output");
    assert_eq!(client.post(&format!("{output}?producer=booker"), "A train").status, 200);
    assert_eq!(client.post(&format!("{output}?complete=true"), "I compare.").status, 200);
    let event = next_of_type(&mut stream, "output.streaming");
    let found = [&event["producer"]["agent_id"], &event["position"], &event["chunk"]];
    assert_eq!(found, [&json!("planner"), &json!(0), &json!("I compare.")]);
    assert!(event.get("extensions").is_none(), "the main producer needs no mark: {event}");
    assert_eq!(client.post(&format!("{output}?producer=booker&complete=true"), " at nine.").status, 200);
    let event = next_of_type(&mut stream, "output.streaming");
    let found = [&event["producer"]["agent_id"], &event["position"], &event["chunk"]];
    assert_eq!(found, [&json!("booker"), &json!(0), &json!("A train at nine.")]);

    let question = CONFIRMATION_BODY.replacen('{', r#"{"producer":"booker","#, 1);
    let path = format!("/agent/v1/sessions/{session}/confirmations");
    assert_eq!(client.post(&path, &question).status, 201);
    let waiting = loop {
        let event = next_of_type(&mut stream, "state.changed");
        if event["to_state"] == "awaiting_input" {
            break event;
        }
    };
    assert_eq!(
        (&waiting["producer"]["agent_id"], &waiting["to_state"]),
        (&json!("booker"), &json!("awaiting_input"))
    );
    let asked = next_of_type(&mut stream, "awaiting.confirmation");
    assert_eq!(asked["producer"]["agent_id"], "booker");
    assert_eq!(asked["extensions"]["sayso"]["main_producer"], "planner", "{asked}");
    assert_eq!(asked["extensions"]["sayso"]["tool"], "send", "{asked}");
}

#[test]
fn each_producer_has_its_own_chain_of_states() {
    let hub = HubProcess::start_in_memory();
    let client = hub.client();
    let (_, mut stream) = open_stream(&client);
    let session = start_trip(&client);
    let states = [
        ("planner", "idle", "thinking"),
        ("scout", "idle", "deciding"),
        ("planner", "thinking", "deciding"),
        ("scout", "deciding", "thinking"),
    ];
    for (producer, _, to) in states {
        let event =
            format!(r#"{{"type":"aaep:agent.state.changed","to_state":"{to}","producer":"{producer}"}}"#);
        assert_eq!(publish(&client, &session, &event).status, 200, "{event}");
    }
    for (producer, from, to) in states {
        let event = next_of_type(&mut stream, "state.changed");
        let found = [&event["producer"]["agent_id"], &event["from_state"], &event["to_state"]];
        assert_eq!(found, [producer, from, to], "{event}");
    }
}

#[test]
fn an_unknown_producer_is_refused_with_a_finding() {
    let hub = HubProcess::start_in_memory();
    let client = hub.client();
    let session = start_trip(&client);
    let unknown = format!(r#"{{{THINKING},"producer":"driver"}}"#);
    let (pointer, message) = finding(&publish(&client, &session, &unknown));
    assert_eq!(pointer, "/producer");
    assert!(
        message.starts_with(r#"the session has no producer "driver"; it has planner, scout, booker"#),
        "{message}"
    );
    let misspelt = format!(r#"{{{THINKING},"producer":"scoot"}}"#);
    let (_, message) = finding(&publish(&client, &session, &misspelt));
    assert!(message.contains(r#"did you mean "scout"?"#), "{message}");
    for invalid in ["7", r#""""#, "{}", r#"{"agent_id":"scout","agent_name":"Bank"}"#] {
        let event = format!(r#"{{{THINKING},"producer":{invalid}}}"#);
        finding(&publish(&client, &session, &event));
    }
    let output = client.post(&format!("/agent/v1/sessions/{session}/output?producer=driver"), "Text.");
    assert_eq!(finding(&output).0, "/producer");
    let question = CONFIRMATION_BODY.replacen('{', r#"{"producer":"driver","#, 1);
    let question = client.post(&format!("/agent/v1/sessions/{session}/confirmations"), &question);
    assert_eq!(finding(&question).0, "/producer");
    // A batch with one unknown producer has no effect.
    let batch = format!("{{{THINKING}}}\n{unknown}");
    let ndjson = client.with_header("Content-Type: application/x-ndjson");
    finding(&publish(&ndjson, &session, &batch));
    assert_eq!(publish(&client, &session, &format!(r#"{{{THINKING},"from_state":"idle"}}"#)).status, 200);
}

#[test]
fn the_list_of_producers_is_checked_and_limited() {
    let hub = HubProcess::start_in_memory_with(&["--hub-producers-per-session", "3"]);
    let client = hub.client();
    let refuse = |producers: Value| {
        client.post("/agent/v1/sessions", &start_body(&json!({"producers": producers})).to_string())
    };
    for (producers, expected) in [
        (json!({"agent_id": "scout"}), "/producers"),
        (json!(["scout"]), "/producers/0"),
        (json!([{"agent_id": "scout"}, {"agent_name": "Scout"}]), "/producers/1"),
        (json!([{"agent_id": "scout", "colour": "red"}]), "/producers/0/colour"),
        (json!([{"agent_id": "scout"}, {"agent_id": "scout"}]), "/producers/1/agent_id"),
        (json!([{"agent_id": "sayso-hub"}]), "/producers/0/agent_id"),
    ] {
        let (pointer, message) = finding(&refuse(producers.clone()));
        assert_eq!(pointer, expected, "{producers}: {message}");
    }
    let id = |number: usize| json!({"agent_id": format!("agent-{number}")});
    assert_eq!(refuse(json!([id(1), id(2)])).status, 201);
    let too_many = refuse(json!([id(1), id(2), id(3)]));
    assert_eq!(too_many.status, 400);
    assert!(too_many.body.contains("at most 3 producers"), "{}", too_many.body);
    let too_long = refuse(json!([{"agent_id": "a", "model": "m".repeat(257)}]));
    assert_eq!(too_long.status, 400, "{too_long:?}");
}

#[test]
fn only_the_main_producer_ends_the_session_and_open_items_are_closed_by_their_producers() {
    let hub = HubProcess::start_in_memory();
    let client = hub.client();
    let (_, mut stream) = open_stream(&client);
    let session = start_trip(&client);
    let call = r#"{"type":"aaep:agent.tool.invoked","tool":"look","tool_call_id":"call_1","summary_normal":"Looking.","producer":"scout"}"#;
    assert_eq!(publish(&client, &session, call).status, 200);
    assert_eq!(
        client.post(&format!("/agent/v1/sessions/{session}/output?producer=booker"), "A train").status,
        200
    );
    let end = r#"{"type":"aaep:agent.session.completed","summary_normal":"Done."}"#;
    let by_scout = end.replacen('{', r#"{"producer":"scout","#, 1);
    assert!(finding(&publish(&client, &session, &by_scout)).1.contains("only the main producer"));
    assert_eq!(publish(&client, &session, end).status, 200);
    let closed = next_of_type(&mut stream, "tool.completed");
    assert_eq!((&closed["producer"]["agent_id"], &closed["status"]), (&json!("scout"), &json!("timeout")));
    let closed = loop {
        let chunk = next_of_type(&mut stream, "output.streaming");
        if chunk["complete"] == true {
            break chunk;
        }
    };
    assert_eq!(closed["producer"]["agent_id"], "booker");
    assert_eq!(next_of_type(&mut stream, "session.completed")["producer"]["agent_id"], "planner");
}

#[test]
fn the_terminal_says_who_speaks_when_it_changes() {
    let hub = HubProcess::start_in_memory();
    let client = hub.client();
    let mut person = ListenProcess::start_connected(&hub.address, &[]);
    let session = start_trip(&client);
    let call = |producer: &str, number: usize| {
        let event = json!({"type": "aaep:agent.tool.invoked", "tool": "look", "tool_call_id": format!("call_{number}"),
            "summary_normal": format!("Look {number}."), "producer": producer});
        assert_eq!(publish(&client, &session, &event.to_string()).status, 200);
    };
    for (producer, number) in [("planner", 1), ("scout", 2), ("scout", 3), ("planner", 4), ("booker", 5)] {
        call(producer, number);
    }
    assert_eq!(
        person.read_until("Look 5."),
        [
            "session: planner has started. Planning a trip.",
            "tool: Look 1.",
            "tool: Scout, for planner: Look 2.",
            "tool: Look 3.",
            "tool: planner: Look 4.",
            "tool: booker, for planner: Look 5.",
        ]
    );
    // A listener that joins late hears the state of each agent that has spoken.
    let mut late = ListenProcess::start_connected(&hub.address, &[]);
    assert!(
        late.read_until("booker, for planner: ").iter().any(|line| line.contains("Scout, for planner: "))
    );
}

#[test]
fn an_invited_token_speaks_as_the_producer_that_it_was_invited_for() {
    let folder = tempfile::tempdir().unwrap();
    let tokens = folder.path().join("tokens").to_str().unwrap().to_owned();
    let agent = |name: &str, more: &[&str]| {
        create_token(&tokens, &[&["--role", "agent", "--name", name, "--agent-id", name], more].concat())
    };
    let planner = agent("planner", &["--display-name", "Ada's Planner"]);
    let scout = agent("scout", &["--display-name", "The Scout"]);
    let ada = create_token(&tokens, &["--role", "listener", "--name", "ada"]);
    let data = folder.path().join("data").to_str().unwrap().to_owned();
    let arguments = ["--listen", "127.0.0.1:0", "--data", &data, "--tokens", &tokens];
    let mut hub = HubProcess::start(&arguments);
    let [owner, guest] = [&planner, &scout].map(|token| hub.client().with_bearer(token));
    let session = start(&owner, &json!({"producers": [{"agent_id": "scout", "agent_name": "Ada's Bank"}]}));
    let events = format!("/agent/v1/sessions/{session}/events");
    assert_eq!(guest.post(&events, &format!("{{{THINKING}}}")).status, 404, "not yet invited");

    let invitation =
        owner.post(&format!("/agent/v1/sessions/{session}/invitations"), r#"{"producer":"scout"}"#);
    assert_eq!(invitation.status, 201, "{invitation:?}");
    assert_eq!(
        (invitation.json_str("session_id"), invitation.json_str("producer")),
        (session.clone(), "scout".to_owned())
    );
    assert!(invitation.json_str("expires_at").ends_with('Z'), "{invitation:?}");
    let secret = invitation.json_str("invitation");
    // An invitation survives a restart of the hub, and so does what it permits.
    hub.kill();
    let mut hub = HubProcess::start(&arguments);
    let guest = hub.client().with_bearer(&scout);
    let join = format!("/agent/v1/sessions/{session}/join");
    let body = json!({"invitation": secret, "producer": {"agent_name": "Ada's Bank", "model": "large-2"}})
        .to_string();
    let joined = guest.with_header("Idempotency-Key: k").post(&join, &body);
    assert_eq!((joined.status, joined.json_str("producer")), (200, "scout".to_owned()), "{joined:?}");
    let repeated = guest.with_header("Idempotency-Key: k").post(&join, &body);
    assert_eq!(repeated.body, joined.body, "the same request gets the same response");
    hub.kill();
    let hub = HubProcess::start(&arguments);
    let [owner, guest, person] = [&planner, &scout, &ada].map(|token| hub.client().with_bearer(token));
    let (subscription, mut stream) = open_stream(&person);
    assert_eq!(guest.post(&events, &format!("{{{THINKING}}}")).status, 200);
    // A listener that joins late learns that the name of the main producer is verified.
    let event = next_of_type(&mut stream, "state.changed");
    assert_eq!(event["producer"]["agent_name"], "Ada's Planner");
    assert_eq!(event["extensions"]["sayso"]["verified_name"], true, "{event}");
    let event = loop {
        let event = next_of_type(&mut stream, "state.changed");
        if event["producer"]["agent_id"] == "scout" {
            break event;
        }
    };
    assert_eq!(
        event["producer"],
        json!({"agent_id": "scout", "agent_name": "The Scout", "model": "large-2"})
    );
    let marks = &event["extensions"]["sayso"];
    assert_eq!(
        (&marks["verified_name"], &marks["main_producer"]),
        (&json!(true), &json!("planner")),
        "{event}"
    );

    // Each agent learns the answer to its own question only, and an answer covers a call by the agent that asked.
    let question = guest.ask_confirmation(&session);
    person.reply(&subscription, &question, "accept");
    let reply = format!("/agent/v1/sessions/{session}/replies/{question}");
    assert_eq!(guest.get(&reply).json_str("decision"), "accept");
    assert_eq!(owner.get(&reply).status, 404);
    let call = r#"{"type":"aaep:agent.tool.invoked","tool":"send","tool_call_id":"call_1","risk_level":"high","irreversible":true,"summary_normal":"Sending.","arguments":{"amount":"5.00"}}"#;
    assert_eq!(guest.post(&events, call).status, 200);
    let end = r#"{"type":"aaep:agent.session.completed","summary_normal":"Done."}"#;
    assert_eq!(owner.post(&events, end).status, 200);
    assert_eq!(guest.get(&reply).json_str("decision"), "accept", "even after the end");
    assert!(guest.post(&events, call).body.contains("The session has ended"));
}

#[test]
fn invitations_work_on_the_agents_web_socket() {
    let hub = HubProcess::start_in_memory();
    let mut agent = AgentWebSocket::open(&hub);
    let start = start_body(&json!({"producers": [{"agent_id": "scout"}]}));
    let session = agent.call_ok("session.start", &start)["session_id"].as_str().unwrap().to_owned();
    let invited = agent.call_ok(
        "session.invite",
        &json!({"session_id": session, "producer": "scout", "expires_in_seconds": 60}),
    );
    let join = json!({"session_id": session, "invitation": invited["invitation"]});
    let mut guest = AgentWebSocket::open(&hub);
    assert_eq!(guest.call_ok("session.join", &join)["producer"], "scout");
    let spent = guest.call("session.join", &join);
    assert_eq!(spent["error"]["code"], -32004, "{spent}");
    let event = json!({"type": "aaep:agent.state.changed", "to_state": "thinking", "producer": "scout"});
    guest.call_ok("session.event", &json!({"session_id": session, "event": event}));
    guest.call_ok(
        "session.output",
        &json!({"session_id": session, "text": "Found.", "complete": true, "producer": "scout"}),
    );
}

#[test]
fn a_session_can_be_a_part_of_another_one() {
    let hub = HubProcess::start_in_memory();
    let client = hub.client();
    let mut person = ListenProcess::start_connected(&hub.address, &[]);
    let (_, mut stream) = open_stream(&client);
    let parent = start(&client, &json!({"producer": {"agent_id": "planner"}, "requested_by": "user:ana"}));
    let unrelated = start(&client, &json!({"producer": {"agent_id": "post"}}));
    let child = start(&client, &json!({"producer": {"agent_id": "scout"}, "parent": parent}));
    assert!(publish(&client, &child, &format!("{{{THINKING}}}")).status == 200);
    loop {
        let (_, _, event) = stream.next();
        let marks = &event["extensions"]["sayso"];
        if event["session_id"] == child.as_str() {
            assert_eq!(marks["parent_session_id"], parent.as_str(), "{event}");
            if event["type"] == "aaep:agent.session.started" {
                assert_eq!(event["requested_by"], "user:ana", "a part is for the same person: {event}");
                assert!(event.get("parent").is_none(), "{event}");
            } else {
                break;
            }
        } else {
            assert!(marks.get("parent_session_id").is_none(), "{event}");
        }
    }
    person.read_until("scout has started, as part of session 1.");
    person.type_line("status");
    let lines: Vec<_> = person
        .read_until("status: Session 2, post")
        .into_iter()
        .filter_map(|line| Some(line.strip_prefix("status: Session ")?.split('.').next()?.to_owned()))
        .collect();
    assert_eq!(lines, ["1, planner", "3, part of session 1, scout", "2, post"]);
    let end = r#"{"type":"aaep:agent.session.completed","summary_normal":"Done."}"#;
    assert_eq!(publish(&client, &parent, end).status, 200);
    assert_eq!(publish(&client, &child, &format!("{{{THINKING}}}")).status, 200, "a part outlives the whole");
    // A session that has ended can still be a parent, but an unknown one cannot.
    start(&client, &json!({"parent": parent}));
    let unknown = start_body(&json!({"parent": "sess_00000000000000000000000000000000"}));
    assert_eq!(client.post("/agent/v1/sessions", &unknown.to_string()).status, 404);
    let invalid = start_body(&json!({"parent": 7}));
    assert_eq!(client.post("/agent/v1/sessions", &invalid.to_string()).status, 400);
    let mut socket = AgentWebSocket::open(&hub);
    socket.call_ok("session.start", &start_body(&json!({"parent": unrelated})));
}

#[test]
fn the_manifest_says_how_several_agents_work_together() {
    let hub = HubProcess::start_in_memory();
    let manifest: Value =
        serde_json::from_str(&hub.client().get("/.well-known/aaep-manifest.json").body).unwrap();
    assert_eq!(manifest["extensions"]["sayso"]["multi_agent"], json!(["shared_session", "linked_sessions"]));
}
