//! Requirements on a producer that can be tested only by observing its behaviour: how it frames messages, how it adapts to a low
//! cognitive load, and what it says about itself.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::process::Command;

use serde_json::{Value, json};

use testing::cli::binary;
use testing::http::{EventStream, TestClient};
use testing::hub::HubProcess;
use testing::messages::{short_type, subscription_request};
use testing::websocket::{SUBPROTOCOL_HEADER, WebSocketClient};
use tungstenite::Message;

/// Text that a second encoder would probably write differently: escapes, numbers with a trailing zero, a separator that JavaScript
/// treats as a line terminator, and characters outside the Basic Multilingual Plane.
const UNUSUAL_EVENT: &str = r#"{"type":"aaep:agent.tool.invoked","tool":"look","tool_call_id":"call_1","summary_normal":"Caf\u00e9 \/ \ud83d\ude00 \u2028 \"x\" \t end","summary_terse":"ọ̀kan","@context":["https://aaep-protocol.org/context/v1","https://example.org/other/v1"],"extensions":{"other":{"b":1.50,"a":[ 1, 2e0 ,true ]}}}"#;
const COMPLETED: &str = r#"{"type":"aaep:agent.session.completed","summary_normal":"Done."}"#;

/// §8.2.1: each transport carries the same bytes, inside its own framing.
#[test]
fn every_transport_delivers_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("hub.sock");
    let mut command = Command::new(binary());
    command
        .args(["serve", "--memory", "--open", "--listen", "127.0.0.1:0", "--stdio", "--unix"])
        .arg(&socket);
    #[cfg(feature = "grpc")]
    let grpc_address = testing::hub::reserved_address();
    #[cfg(feature = "grpc")]
    command.args(["--grpc-listen", &grpc_address]);
    let (hub, (mut stdin, stdout)) = HubProcess::start_with_pipes(&mut command);
    let client = hub.client();
    let request = subscription_request("{}");
    #[cfg(feature = "grpc")]
    let mut grpc = GrpcCall::start(&grpc_address, &request);

    let mut sse = client.open_event_stream(&client.subscribe("{}"), None);
    let mut websocket =
        WebSocketClient::try_connect(&hub, &[SUBPROTOCOL_HEADER]).unwrap_or_else(|status| panic!("{status}"));
    websocket.send(&request);
    websocket.next();
    let mut lines = BufReader::new(UnixStream::connect(&socket).unwrap());
    writeln!(lines.get_mut(), "{request}").unwrap();
    read_line(&mut lines);
    let mut prefixed = UnixStream::connect(&socket).unwrap();
    prefixed.write_all(&u32::try_from(request.len()).unwrap().to_be_bytes()).unwrap();
    prefixed.write_all(request.as_bytes()).unwrap();
    read_prefixed(&mut prefixed);
    writeln!(stdin, r#"{{"jsonrpc":"2.0","id":1,"method":"aaep.subscribe","params":{request}}}"#).unwrap();
    let mut stdout = BufReader::new(stdout);
    read_line(&mut stdout);

    let session = client.start_session();
    for event in [UNUSUAL_EVENT, COMPLETED] {
        let response = client.post(&format!("/agent/v1/sessions/{session}/events"), event);
        assert_eq!(response.status, 200, "{response:?}");
    }
    let mut has_unusual = false;
    loop {
        let bytes = sse_data(&mut sse);
        // §8.2.2: a message on a line of its own contains no line end.
        assert!(!bytes.contains(['\n', '\r']), "{bytes}");
        assert_eq!(websocket_text(&mut websocket), bytes, "WebSocket");
        assert_eq!(read_line(&mut lines), bytes, "Unix socket, lines");
        assert_eq!(read_prefixed(&mut prefixed), bytes, "Unix socket, length prefix");
        let rpc = format!(r#"{{"jsonrpc":"2.0","method":"aaep.event","params":{bytes}}}"#);
        assert_eq!(read_line(&mut stdout), rpc, "stdio");
        #[cfg(feature = "grpc")]
        assert_eq!(grpc.next(), bytes, "gRPC");
        has_unusual |= bytes.contains(r#"{"b":1.50,"#);
        if bytes.contains("agent.session.completed") {
            break;
        }
    }
    assert!(has_unusual, "the agent's own text is not rewritten");
}

/// A gRPC call to the hub, after the subscription was accepted.
#[cfg(feature = "grpc")]
struct GrpcCall {
    runtime: tokio::runtime::Runtime,
    messages: grpc::tonic::Streaming<grpc::AaepMessage>,
    /// The call and its connection stay open until these are dropped.
    _open: (tokio::sync::mpsc::Sender<grpc::AaepMessage>, grpc::ConnectionTask),
}

#[cfg(feature = "grpc")]
impl GrpcCall {
    fn start(address: &str, request: &str) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let message = grpc::AaepMessage { json: request.as_bytes().to_vec(), message_type: String::new() };
        let (messages, open) = runtime.block_on(async {
            let (sender, queue) = tokio::sync::mpsc::channel(1);
            sender.send(message).await.unwrap();
            let outgoing = futures_util::stream::unfold(queue, async |mut queue| {
                queue.recv().await.map(|message| (message, queue))
            });
            let stream = tokio::net::TcpStream::connect(address).await.unwrap();
            let origin = format!("http://{address}").parse().unwrap();
            let mut connection = grpc::connect(stream, origin).await.unwrap();
            let response = connection.client.subscribe(grpc::tonic::Request::new(outgoing)).await.unwrap();
            (response.into_inner(), (sender, connection.task))
        });
        let mut call = Self { runtime, messages, _open: open };
        assert!(call.next().contains("subscription.accepted"));
        call
    }

    fn next(&mut self) -> String {
        let message = self.runtime.block_on(self.messages.message()).unwrap().expect("a message");
        String::from_utf8(message.json).unwrap()
    }
}

fn sse_data(stream: &mut EventStream) -> String {
    loop {
        if let Some(data) = stream.next_line().strip_prefix("data: ") {
            return data.to_owned();
        }
    }
}

fn websocket_text(socket: &mut WebSocketClient) -> String {
    loop {
        match socket.0.read().unwrap() {
            Message::Text(text) => return text.to_string(),
            Message::Ping(_) => {}
            other => panic!("{other:?}"),
        }
    }
}

fn read_line(reader: &mut impl BufRead) -> String {
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    line.strip_suffix('\n').expect("a whole line").to_owned()
}

fn read_prefixed(stream: &mut UnixStream) -> String {
    let mut length = [0; 4];
    stream.read_exact(&mut length).unwrap();
    let mut bytes = vec![0; u32::from_be_bytes(length) as usize];
    stream.read_exact(&mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

/// §2.2.5: a session covers one request of the person.
#[test]
fn each_request_of_the_person_gets_a_session_of_its_own() {
    let hub = HubProcess::start_in_memory_with(&["--demo-agent"]);
    let client = hub.client();
    let mut stream = client.open_event_stream(&client.subscribe("{}"), None);
    let mut sessions = Vec::new();
    for _ in 0..2 {
        let response = client.post("/demo", r#"{"text":"What is my balance?"}"#);
        sessions.push(response.json_str("session_id"));
        let mut starts = 0;
        loop {
            let (kind, _, event) = stream.next();
            assert_eq!(event["session_id"], sessions.last().unwrap().as_str(), "{event}");
            starts += usize::from(kind == "session.started");
            if kind == "session.completed" {
                break;
            }
        }
        assert_eq!(starts, 1);
    }
    assert_ne!(sessions[0], sessions[1]);
    // An agent cannot put a second request into a session, either while it is open or after its end.
    let session = client.start_session();
    let path = format!("/agent/v1/sessions/{session}/events");
    let second = r#"{"type":"aaep:agent.session.started","summary_normal":"Another request."}"#;
    let refused = client.post(&path, second);
    assert!(refused.status == 422 && refused.body.contains("AAEP-4.1-1"), "{refused:?}");
    assert_eq!(client.post(&path, COMPLETED).status, 200);
    assert_eq!(client.post(&path, second).status, 404);
}

/// §5.3.1.10: a listener that requests a low cognitive load gets fewer and shorter texts; nothing is lost.
#[test]
fn a_low_cognitive_load_means_fewer_events_and_shorter_texts() {
    let hub = HubProcess::start_in_memory();
    let client = hub.client();
    let mut listeners = ["low", "medium", "high"].map(|load| {
        let capabilities = format!(r#"{{"cognitive_load":"{load}"}}"#);
        let response = client.post("/aaep/v1/subscriptions", &subscription_request(&capabilities));
        let response: Value = serde_json::from_str(&response.body).unwrap();
        assert_eq!(response["honored_capabilities"]["cognitive_load"], load, "{response}");
        let verbosity = if load == "low" { "terse" } else { "normal" };
        assert_eq!(response["honored_capabilities"]["preferred_verbosity"], verbosity, "{response}");
        client.open_event_stream(response["subscription_id"].as_str().unwrap(), None)
    });
    let session = client.start_session();
    let path = format!("/agent/v1/sessions/{session}/events");
    for percent in 1..=20 {
        let progress = json!({"type": "aaep:agent.progress.updated", "progress": {"percent": percent * 5}});
        assert_eq!(client.post(&path, &progress.to_string()).status, 200);
    }
    let end = r#"{"type":"aaep:agent.session.completed","summary_terse":"Done.","summary_normal":"All is done now."}"#;
    assert_eq!(client.post(&path, end).status, 200);
    let received = listeners.each_mut().map(|stream| {
        let mut events = vec![stream.next().2];
        while short_type(&events[events.len() - 1]) != "session.completed" {
            events.push(stream.next().2);
        }
        events
    });
    let [low, medium, high] = &received;
    assert!(
        low.len() < medium.len() && medium.len() <= high.len(),
        "{} {} {}",
        low.len(),
        medium.len(),
        high.len()
    );
    for events in &received {
        let progress: Vec<_> =
            events.iter().filter_map(|event| event["progress"]["percent"].as_u64()).collect();
        assert_eq!(progress.last(), Some(&100), "the latest progress is delivered: {progress:?}");
    }
    let verbosity =
        |events: &[Value]| events[events.len() - 1]["verbosity"].as_str().unwrap_or("normal").to_owned();
    assert_eq!([verbosity(low), verbosity(medium), verbosity(high)], ["terse", "normal", "normal"]);
    // A listener that requests detailed texts gets them, whatever the load.
    let both = client.post(
        "/aaep/v1/subscriptions",
        &subscription_request(r#"{"cognitive_load":"low","preferred_verbosity":"detailed"}"#),
    );
    assert!(both.body.contains(r#""preferred_verbosity":"detailed""#), "{both:?}");
}

/// §3.2.6: every event and answer contains all that the hub knows about an agent or about itself.
#[test]
fn events_name_all_that_is_known_about_their_producer() {
    let hub = HubProcess::start_in_memory();
    let client = hub.client();
    let response = client.post("/aaep/v1/subscriptions", &subscription_request("{}"));
    let accepted: Value = serde_json::from_str(&response.body).unwrap();
    for name in ["agent_id", "agent_version", "agent_name"] {
        assert!(accepted["producer"][name].is_string(), "{name} of the hub: {accepted}");
    }
    // The manifest is at the stated address, and describes the same producer.
    let uri = accepted["manifest_uri"].as_str().unwrap();
    let path = uri.strip_prefix(&format!("http://{}", hub.address)).unwrap();
    let manifest: Value = serde_json::from_str(&client.get(path).body).unwrap();
    assert_eq!(manifest["type"], "aaep:producer.manifest");
    for (name, value) in accepted["producer"].as_object().unwrap() {
        assert_eq!(manifest[name], *value, "{name}");
    }
    let mut stream = client.open_event_stream(accepted["subscription_id"].as_str().unwrap(), None);
    let producer = json!({"agent_id": "bank", "agent_version": "1.4.2", "agent_name": "Bank", "model": "m-2", "manifest_uri": "https://bank.example/manifest.json"});
    let start = json!({"summary_normal": "Begun.", "producer": producer});
    let session = client.post("/agent/v1/sessions", &start.to_string()).json_str("session_id");
    client.post(&format!("/agent/v1/sessions/{session}/output?complete=true"), "One. Two.");
    assert_eq!(client.post(&format!("/agent/v1/sessions/{session}/events"), COMPLETED).status, 200);
    assert_producer(&mut stream, &producer);
}

/// Asserts that every event up to the end of the session has this producer.
fn assert_producer(stream: &mut EventStream, producer: &Value) {
    loop {
        let (kind, _, event) = stream.next();
        assert_eq!(event["producer"], *producer, "{event}");
        if kind == "session.completed" {
            return;
        }
    }
}

/// §6.3.4, §10.2.2: the response to a reply is the same, whichever check fails.
#[test]
fn the_response_to_a_reply_never_says_which_check_failed() {
    let hub = HubProcess::start_in_memory();
    let client = hub.client();
    let subscription = client.subscribe(testing::messages::REPLY_CAPABILITIES);
    let mut stream = client.open_event_stream(&subscription, None);
    let session = client.start_session();
    let only_reject =
        testing::messages::CONFIRMATION_BODY.replacen('{', r#"{"allowed_replies":["reject"],"#, 1);
    let asked = client.post(&format!("/agent/v1/sessions/{session}/confirmations"), &only_reject);
    let token = asked.json_str("reply_token");
    while stream.next().2["reply_token"] != token.as_str() {}
    let valid: Value =
        serde_json::from_str(&testing::messages::confirmation_reply(&subscription, &token, "reject"))
            .unwrap();
    let with = |name: &str, value: Value| {
        let mut reply = valid.clone();
        reply[name] = value;
        reply.to_string()
    };
    let failing = [
        ("1: an unknown member", with("mood", json!("good"))),
        ("1: an unknown decision", with("decision", json!("yes"))),
        ("2: an unknown token", with("reply_token", json!("rpl_00000000000000000000000000000000"))),
        ("4: after the deadline", with("timestamp", json!("2099-01-01T00:00:00.000Z"))),
        ("5: another subscription", with("subscription_id", json!("sub_00000000000000000000000000000000"))),
        ("6: not an allowed reply", with("decision", json!("accept"))),
    ];
    let send = |text: &str| {
        let response = client.post("/aaep/v1/replies", text);
        (response.status, response.head, response.body)
    };
    let answers = failing.map(|(check, text)| (check, send(&text)));
    assert_eq!(status(&client, &session, &token), "pending");
    let to_valid = send(&valid.to_string());
    assert_eq!(status(&client, &session, &token), "resolved");
    assert_eq!(to_valid.0, 204);
    for (check, answer) in answers {
        assert_eq!(answer, to_valid, "{check}");
    }
    assert_eq!(send(&valid.to_string()), to_valid, "3: a used token");
}

fn status(client: &TestClient, session: &str, token: &str) -> String {
    client.get(&format!("/agent/v1/sessions/{session}/replies/{token}")).json_str("status")
}

/// A listener and an agent with an open session.
struct QuestionScenario {
    client: TestClient,
    subscription: String,
    stream: EventStream,
    session: String,
    _hub: HubProcess,
}

impl QuestionScenario {
    fn new() -> Self {
        let hub = HubProcess::start_in_memory();
        let client = hub.client();
        let subscription = client.subscribe(testing::messages::REPLY_CAPABILITIES);
        let stream = client.open_event_stream(&subscription, None);
        let session = client.start_session();
        Self { client, subscription, stream, session, _hub: hub }
    }

    /// Asks for a clarification and waits until the listener has received it.
    fn clarify(&mut self, question: &Value) -> String {
        let path = format!("/agent/v1/sessions/{}/clarifications", self.session);
        let token = self.client.post(&path, &question.to_string()).json_str("reply_token");
        while self.stream.next().2["reply_token"] != token.as_str() {}
        token
    }

    /// Sends a reply with these members.
    fn reply(&self, kind: &str, token: &str, members: &Value) {
        let timestamp = seal::Timestamp::from_unix_millis(std::time::SystemTime::now().into()).unwrap();
        let mut reply = json!({"type": kind, "reply_token": token, "subscription_id": self.subscription, "timestamp": timestamp.to_string()});
        for (name, value) in members.as_object().unwrap() {
            reply[name] = value.clone();
        }
        assert_eq!(self.client.post("/aaep/v1/replies", &reply.to_string()).status, 204);
    }

    fn outcome(&self, token: &str) -> Value {
        let path = format!("/agent/v1/sessions/{}/replies/{token}?wait=30", self.session);
        serde_json::from_str(&self.client.get(&path).body).unwrap()
    }
}

/// §6.3.2: the hub does not let people modify an action, so such an answer is a no.
#[test]
fn an_acceptance_of_a_modified_action_is_a_rejection() {
    let scenario = QuestionScenario::new();
    let token = scenario.client.ask_confirmation(&scenario.session);
    let modified = json!({"decision": "accept", "modified_action": {"amount": "4.00"}});
    scenario.reply("confirmation.reply", &token, &modified);
    let outcome = scenario.outcome(&token);
    assert_eq!((&outcome["decision"], &outcome["by"]), (&json!("reject"), &json!("reply")), "{outcome}");
    // The token is used, so a plain acceptance comes too late.
    scenario.reply("confirmation.reply", &token, &json!({"decision": "accept"}));
    assert_eq!(scenario.outcome(&token)["decision"], "reject");
}

/// §4.4.2, §6.4: at its deadline, a clarification resolves to its default response or to none, and listeners are informed.
#[test]
fn a_clarification_that_nobody_answers_resolves_to_its_default_response() {
    let mut scenario = QuestionScenario::new();
    for (default, response) in [(json!("Ben"), Some(json!("Ben"))), (Value::Null, None)] {
        let mut question = json!({"question": "Who?", "timeout_seconds": 1, "summary_normal": "Who?"});
        if !default.is_null() {
            question["default_response"] = default;
        }
        let token = scenario.clarify(&question);
        let outcome = scenario.outcome(&token);
        assert_eq!(
            (&outcome["status"], &outcome["by"]),
            (&json!("resolved"), &json!("timeout")),
            "{outcome}"
        );
        assert_eq!(outcome.get("response"), response.as_ref(), "{outcome}");
        let resolution = loop {
            let event = scenario.stream.next().2;
            if event["extensions"]["sayso"]["reply_token"] == token.as_str() {
                break event;
            }
        };
        assert_eq!(resolution["from_state"], "awaiting_input", "{resolution}");
    }
}

/// §5.3.1.5: if no listener can answer clarifications, the default applies at once.
#[test]
fn a_clarification_that_nobody_can_answer_resolves_to_its_default_at_once() {
    let hub = HubProcess::start_in_memory();
    let client = hub.client();
    let subscription = client.subscribe(r#"{"supports_confirmation_reply":true}"#);
    let _stream = client.open_event_stream(&subscription, None);
    let session = client.start_session();
    let question = r#"{"question":"Who?","timeout_seconds":86400,"default_response":"Ben"}"#;
    let opened = client.post(&format!("/agent/v1/sessions/{session}/clarifications"), question);
    let token = opened.json_str("reply_token");
    let outcome = client.get(&format!("/agent/v1/sessions/{session}/replies/{token}")).json();
    assert_eq!((&outcome["by"], &outcome["response"]), (&json!("unreachable"), &json!("Ben")), "{outcome}");
}

/// §6.5.2, §9.4.1: a question accepts exactly the kinds of response that it lists.
#[test]
fn a_question_accepts_exactly_the_kinds_of_response_that_it_lists() {
    let mut scenario = QuestionScenario::new();
    let choices = json!([{"value": "LOS", "label": "Lagos"}, {"value": "ABV", "label": "Abuja"}]);
    let responses = [
        ("freetext", json!("by train")),
        ("yes_no", json!(false)),
        ("numeric", json!(4.5)),
        ("multiple_choice", json!("ABV")),
    ];
    for (kind, response) in &responses {
        let mut question = json!({"question": format!("A question for {kind}?"), "timeout_seconds": 60, "accepted_response_kinds": [kind], "summary_normal": "Which?"});
        if *kind == "multiple_choice" {
            question["choices"] = choices.clone();
        }
        let token = scenario.clarify(&question);
        // A choice is a string, so a question for free text accepts it.
        for (other, wrong) in responses.iter().filter(|(other, _)| other != kind) {
            if (*kind, *other) != ("freetext", "multiple_choice") {
                scenario.reply("clarification.reply", &token, &json!({"response": wrong}));
            }
        }
        assert_eq!(status(&scenario.client, &scenario.session, &token), "pending", "{kind}");
        scenario.reply("clarification.reply", &token, &json!({"response": response}));
        assert_eq!(scenario.outcome(&token)["response"], *response, "{kind}");
    }
    let all = json!({"question": "Anything?", "timeout_seconds": 60, "accepted_response_kinds": ["freetext", "yes_no", "numeric", "multiple_choice"], "choices": choices, "summary_normal": "Anything?"});
    for (kind, response) in responses {
        let token = scenario.clarify(&all);
        scenario.reply("clarification.reply", &token, &json!({"response": response}));
        assert_eq!(scenario.outcome(&token)["response"], response, "{kind}");
    }
}

/// §6.2: tokens are 128 random bits and never repeated, not even after a restart.
#[test]
fn reply_tokens_are_random_and_never_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let mut tokens = std::collections::BTreeSet::new();
    for _ in 0..2 {
        let hub = HubProcess::start_on_disk(folder.path());
        let client = hub.client();
        for _ in 0..30 {
            let token = client.ask_confirmation(&client.start_session());
            let digits = token.strip_prefix("rpl_").unwrap();
            let is_hexadecimal = digits.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
            assert!(digits.len() == 32 && is_hexadecimal, "{token}");
            assert!(tokens.insert(digits.to_owned()), "{token} was used before");
        }
    }
    // No position of the tokens is constant, so they are not sequential and reveal nothing.
    for position in 0..32 {
        let digits: std::collections::BTreeSet<_> =
            tokens.iter().map(|token| &token[position..=position]).collect();
        assert!(digits.len() > 4, "position {position} has only the digits {digits:?}");
    }
}

/// §5.3.1.5: a clarification is withheld from a listener that cannot answer; its resolution is not.
#[test]
fn a_clarification_is_not_sent_to_a_listener_that_cannot_answer() {
    let mut scenario = QuestionScenario::new();
    let client = scenario.client.clone();
    let mut silent = client.open_event_stream(
        &client.subscribe(r#"{"supports_confirmation_reply":true,"supports_clarification_reply":false}"#),
        None,
    );
    let token =
        scenario.clarify(&json!({"question": "Who?", "timeout_seconds": 60, "summary_normal": "Who?"}));
    scenario.reply("clarification.reply", &token, &json!({"response": "Ben"}));
    loop {
        let (kind, _, event) = silent.next();
        assert_ne!(kind, "awaiting.clarification", "{event}");
        if event["extensions"]["sayso"]["reply_token"] == token.as_str() {
            return;
        }
    }
}

/// §5.4.4: the hub never honors more than was requested.
#[test]
fn honored_terms_are_never_wider_than_the_request() {
    let hub = HubProcess::start_in_memory();
    let client = hub.client();
    let honored = |capabilities: Value| {
        let response =
            client.post("/aaep/v1/subscriptions", &subscription_request(&capabilities.to_string()));
        let response: Value = serde_json::from_str(&response.body).unwrap();
        response["honored_capabilities"].clone()
    };
    let requested = json!({
        "max_events_per_second": 3,
        "languages": ["tlh", "yo"],
        "coalesce_boundaries": ["paragraph", "completion"],
        "event_filters": {"include": ["aaep:agent.session.*"], "exclude": ["aaep:agent.session.started"]},
        "supported_conformance_levels": [1],
        "supported_extensions": ["https://example.org/unknown/v1"],
        "supports_confirmation_reply": false,
    });
    let terms = honored(requested.clone());
    assert!(terms["max_events_per_second"].as_u64().unwrap() <= 3, "{terms}");
    for name in ["languages", "coalesce_boundaries", "supported_conformance_levels", "supported_extensions"] {
        for item in terms[name].as_array().into_iter().flatten() {
            assert!(requested[name].as_array().unwrap().contains(item), "{item} in {name}: {terms}");
        }
    }
    assert_eq!(terms["event_filters"], requested["event_filters"]);
    assert_eq!(terms["supports_confirmation_reply"], false);
    assert_eq!(terms["supports_clarification_reply"], false, "not requested, so not honored");
}
