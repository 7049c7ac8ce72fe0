//! The routes for peers and for the agent's program.

use std::io::Write;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use asp::Performative;
use seal::dpop::create_http_proof;
use serde_json::{Value, json};
use testing::cli::run_sayso;
use testing::http::EventStream;
use testing::websocket::{WebSocketClient, read_close_code, upgrade};

use crate::proxy::read_message;
use crate::raw_peer::{RawPeer, RawSession, SESSIONS, access_token, header, uuid};
use crate::script::verify;
use crate::test_node::{NodeBuilder, Storage, TestNode, poll};

const OWN_SESSIONS: &str = "/agent/v1/asp/sessions";

fn start_node(builder: NodeBuilder, peers: &[&RawPeer]) -> TestNode {
    let folder = builder.create_folder();
    builder.start(folder, &peers.iter().map(|peer| peer.card_file()).collect::<Vec<_>>())
}

fn start(peers: &[&RawPeer]) -> TestNode {
    start_node(NodeBuilder::new("press"), peers)
}

/// Opens a conversation and sends messages until it has this many.
fn conversation_of(peer: &RawPeer, node: &TestNode, count: usize) -> RawSession {
    let mut session = peer.open_conversation(node);
    for number in 4..count {
        session.send(peer, node, Performative::Observe, &format!(r#"{{"subject":"number {number}"}}"#));
    }
    session
}

#[test]
fn the_card_is_public_and_verifies() {
    let node = start(&[]);
    let card = std::fs::read_to_string(node.card_path()).unwrap();
    for path in ["/.well-known/asp-agent-card.json", "/v1/asp/agents/press/card"] {
        let response = node.client().get(path);
        assert_eq!((response.status, &*response.body), (200, card.trim()));
        let output = run_sayso(&["asp", "card", "verify", &format!("http://{}{path}", node.address)], "");
        assert_eq!(output.exit_code, 0, "{}", output.stderr);
        assert!(output.stdout.contains(&node.agent), "{}", output.stdout);
    }
    assert_eq!(node.client().get("/v1/asp/agents/nobody/card").status, 404);
}

#[test]
fn messages_are_read_in_pages() {
    let peer = RawPeer::new("peer");
    let node = start(&[&peer]);
    let session = conversation_of(&peer, &node, 10);
    let path = session.messages_path();
    let expected: Vec<String> = node.transcript(&session.id).lines().map(str::to_owned).collect();
    let mut found = Vec::new();
    let mut query = "limit=3".to_owned();
    loop {
        let page = peer.get(&node, &format!("{path}?{query}"));
        assert_eq!(page.status, 200, "{page:?}");
        let page = page.json();
        assert_eq!(page["messageCount"], 10);
        let messages = page["messages"].as_array().unwrap();
        assert!((1..=3).contains(&messages.len()));
        found.extend(messages.clone());
        let Some(cursor) = page["cursor"].as_str() else { break };
        query = format!("limit=3&cursor={cursor}");
    }
    let expected_values: Vec<Value> =
        expected.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(found, expected_values);
    let tail = peer.get(&node, &format!("{path}?since_sequence=8")).json();
    assert_eq!(tail["messages"], json!(expected_values[8..]));
    for beyond in ["since_sequence=10", "since_sequence=18446744073709551615", "cursor=99"] {
        let page = peer.get(&node, &format!("{path}?{beyond}"));
        assert_eq!((page.status, &page.json()["messages"]), (200, &json!([])), "{beyond}");
    }
    assert_eq!(peer.get(&node, &format!("{path}?limit=0")).json()["messages"].as_array().unwrap().len(), 1);
    for query in ["limit=x", "since_sequence=-1", "cursor=a", "unknown=1", "limit=1&limit=2"] {
        assert_eq!(peer.get(&node, &format!("{path}?{query}")).status, 400, "{query}");
    }
    // The data that a peer can read is enough to verify the session.
    let transcript = expected.join("\n") + "\n";
    verify(
        &transcript,
        &format!("{}\n{}", peer.card.as_str(), std::fs::read_to_string(node.card_path()).unwrap()),
    );
}

#[test]
fn one_message_is_read_exactly_as_it_was_signed() {
    let peer = RawPeer::new("peer");
    let node = start(&[&peer]);
    let session = peer.open_conversation(&node);
    for line in node.transcript(&session.id).lines() {
        let message: Value = serde_json::from_str(line).unwrap();
        let id = message["messageId"].as_str().unwrap();
        let response = peer.get(&node, &format!("{}/{id}", session.messages_path()));
        assert_eq!((response.status, &*response.body), (200, line));
        assert_eq!(header(&response, "Content-Type").as_deref(), Some("application/asp+json"));
    }
    for id in [uuid(), "x".to_owned()] {
        assert_eq!(peer.get(&node, &format!("{}/{id}", session.messages_path())).status, 404);
    }
    let summary = peer.get(&node, &format!("{SESSIONS}/{}", session.id)).json();
    assert_eq!((&summary["state"], &summary["messageCount"]), (&json!("INTRODUCED"), &json!(4)));
}

/// Returns the next event of a session: its name, its id and its data.
fn next_event(stream: &mut EventStream) -> (String, String, Value) {
    let (mut name, mut id) = (String::new(), String::new());
    loop {
        let line = stream.next_line();
        if let Some(value) = line.strip_prefix("event: ") {
            value.clone_into(&mut name);
        } else if let Some(value) = line.strip_prefix("id: ") {
            value.clone_into(&mut id);
        } else if let Some(value) = line.strip_prefix("data: ") {
            return (name, id, serde_json::from_str(value).unwrap());
        }
    }
}

fn next_message(stream: &mut EventStream) -> (String, Value) {
    loop {
        let (name, id, data) = next_event(stream);
        if name == "message" {
            return (id, data);
        }
    }
}

#[test]
fn the_event_stream_resumes_after_the_last_event() {
    let peer = RawPeer::new("peer");
    let node = start(&[&peer]);
    let mut session = conversation_of(&peer, &node, 6);
    let path = format!("{SESSIONS}/{}/events", session.id);
    let expected: Vec<Value> =
        node.transcript(&session.id).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut stream = peer.client(&node, "GET", &path).open_stream(&path);
    for (number, message) in (1..).zip(&expected) {
        assert_eq!(next_message(&mut stream), (number.to_string(), message.clone()));
    }
    // The stream waits for the next message.
    session.send(&peer, &node, Performative::Observe, r#"{"subject":"new"}"#);
    let (id, message) = next_message(&mut stream);
    assert_eq!((&*id, &message["content"]["body"]["subject"]), ("7", &json!("new")));
    drop(stream);
    let mut stream = peer.client(&node, "GET", &path).with_header("Last-Event-ID: 5").open_stream(&path);
    assert_eq!(next_message(&mut stream), ("6".to_owned(), expected[5].clone()));
    assert_eq!(next_message(&mut stream).0, "7");
    session.send(&peer, &node, Performative::Close, r#"{"reason":"done"}"#);
    assert_eq!(next_message(&mut stream).0, "8");
    assert!(stream.is_closed());
    let response = peer.client(&node, "GET", &path).with_header("Last-Event-ID: x").get(&path);
    assert_eq!(response.status, 400, "{response:?}");
}

/// Answers deliveries with a status until it is released, and then accepts them.
fn start_receiver(refusal: &'static str, released: Arc<AtomicBool>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for mut client in listener.incoming().map_while(Result::ok) {
            while let Some(request) = read_message(&mut client) {
                let request = String::from_utf8(request).unwrap();
                let message = request.split_once("\r\n\r\n").unwrap().1;
                let message: Value = serde_json::from_str(message).unwrap();
                let (status, body) = if released.load(Ordering::SeqCst) {
                    (
                        "200 OK",
                        json!({"messageId": message["messageId"], "sequenceNumber": 0, "state": "CLOSED"}),
                    )
                } else {
                    (refusal, json!({}))
                };
                let body = body.to_string();
                let _ = write!(client, "HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
            }
        }
    });
    address
}

#[test]
fn the_event_stream_does_not_end_before_the_last_message() {
    let released = Arc::new(AtomicBool::new(false));
    let peer = RawPeer::with_agent(&format!(
        "agent://{}/peer",
        start_receiver("503 Service Unavailable", released.clone())
    ));
    let node = start(&[&peer]);
    let session = conversation_of(&peer, &node, 5);
    let path = format!("{SESSIONS}/{}/events", session.id);
    let mut stream = peer.client(&node, "GET", &path).open_stream(&path);
    for _ in 0..5 {
        next_message(&mut stream);
    }
    node.send(&session.id, "CLOSE", &json!({"reason": "unilateral"}));
    node.wait_for(&session.id, "the end", |view| view.state() == "CLOSED" && !view.is_acknowledged());
    released.store(true, Ordering::SeqCst);
    let (id, message) = next_message(&mut stream);
    assert_eq!((&*id, &message["performative"]), ("6", &json!("CLOSE")));
    assert!(stream.is_closed());
}

#[test]
fn a_message_that_the_other_side_never_takes_is_given_up() {
    // A path can be missing while a proxy starts, so this answer is not final.
    let address = start_receiver("404 Not Found", Arc::default());
    let peer = RawPeer::with_agent(&format!("agent://{address}/peer"));
    let policy = "[limits]\nretry_delay_ms = 20\nmax_retry_delay_ms = 100\ndelivery_timeout_seconds = 1\n";
    let node = start_node(NodeBuilder::new("press").policy(policy), &[&peer]);
    let session =
        node.try_invite(peer.card.agent_id().as_str(), "a talk", 600).unwrap().json_str("sessionId");
    let view = node.wait_for(&session, "the end of the delivery", |view| view.0["refusals"] != json!([]));
    assert_eq!(view.0["refusals"][0]["code"], "timeout", "{view:?}");
    assert_ne!(view.0["waitingFor"], "delivery");
}

#[test]
fn delete_needs_a_close_message() {
    let peer = RawPeer::new("peer");
    let node = start(&[&peer]);
    let mut session = peer.open_conversation(&node);
    let path = format!("{SESSIONS}/{}", session.id);
    assert_eq!(peer.send(&node, "DELETE", &path, "").status, 400);
    let other = session.sign(Performative::Observe, r#"{"subject":"the weather"}"#);
    let response = peer.send(&node, "DELETE", &path, &other.text);
    assert_eq!(response.status, 400, "{response:?}");
    assert_eq!(node.view(&session.id, 0, 0).unwrap().message_count(), 4);
    assert_eq!(peer.send(&node, "POST", &session.messages_path(), &other.text).status, 200);
    let close = session.sign(Performative::Close, r#"{"reason":"done"}"#).text;
    for _ in 0..2 {
        let response = peer.send(&node, "DELETE", &path, &close);
        assert_eq!((response.status, &response.json()["state"]), (200, &json!("CLOSED")), "{response:?}");
    }
    assert_eq!(node.view(&session.id, 0, 0).unwrap().message_count(), 6);
}

#[test]
fn wrong_methods_paths_and_media_types_are_refused() {
    let peer = RawPeer::new("peer");
    let node = start(&[&peer]);
    let session = peer.open_conversation(&node);
    let client = node.client();
    for (method, path, allowed) in [
        ("POST", "/.well-known/asp-agent-card.json", "GET"),
        ("DELETE", "/v1/asp/agents/press/card", "GET, PUT"),
        ("PUT", "/v1/asp/agents/press/card", "GET"),
        ("POST", "/v1/asp/discover", "GET"),
        ("DELETE", OWN_SESSIONS, "GET, POST"),
        ("GET", "/agent/v1/asp/sessions/x/messages", "POST"),
        ("POST", "/agent/v1/asp/trust", "GET"),
    ] {
        let response = client.send(method, path, "");
        assert_eq!(
            (response.status, header(&response, "Allow").as_deref()),
            (405, Some(allowed)),
            "{method} {path}"
        );
    }
    for (method, path) in [
        ("GET", SESSIONS.to_owned()),
        ("PUT", SESSIONS.to_owned()),
        ("DELETE", session.messages_path()),
        ("POST", format!("{SESSIONS}/{}", session.id)),
        ("POST", format!("{SESSIONS}/{}/events", session.id)),
    ] {
        let response = peer.send(&node, method, &path, "");
        assert_eq!(response.status, 405, "{method} {path}: {response:?}");
    }
    for path in ["/", "/v1", "/v1/asp", "/v1/asp/sessions/", "/agent/v1/asp", "/v1/asp/sessions/a/b", "/../x"]
    {
        let status = client.get(path).status;
        assert!([400, 401, 404].contains(&status), "{path}: {status}");
    }
    for media_type in ["application/json", "text/plain", "application/asp+msgpack"] {
        for path in [SESSIONS.to_owned(), session.messages_path()] {
            let mut headers = peer.headers(&peer.claims(&node, "POST", &path));
            *headers.last_mut().unwrap() = format!("Content-Type: {media_type}");
            let response = RawPeer::send_with_headers(&node, "POST", &path, &headers, "{}");
            assert_eq!(response.status, 415, "{response:?}");
        }
    }
}

#[test]
fn the_agents_program_learns_what_is_wrong_with_its_request() {
    let peer = RawPeer::new("peer");
    let node = start(&[&peer]);
    let session = peer.open_conversation(&node).id;
    let messages = format!("{OWN_SESSIONS}/{session}/messages");
    let agent = peer.card.agent_id().as_str();
    for (path, body, status, part) in [
        (OWN_SESSIONS, "{".to_owned(), 400, "not JSON"),
        (OWN_SESSIONS, "{}".to_owned(), 400, "peer must be a string"),
        (OWN_SESSIONS, json!({"peer": agent, "subject": 1}).to_string(), 400, "subject"),
        (OWN_SESSIONS, json!({"peer": agent, "subject": "x", "terms": []}).to_string(), 400, "terms"),
        (
            OWN_SESSIONS,
            json!({"peer": agent, "subject": "x", "validUntil": "soon"}).to_string(),
            400,
            "validUntil",
        ),
        (
            OWN_SESSIONS,
            json!({"peer": "agent://127.0.0.1:1/x", "subject": "x"}).to_string(),
            422,
            "not pinned",
        ),
        (
            OWN_SESSIONS,
            json!({"peer": "http://127.0.0.1:1/card", "subject": "x"}).to_string(),
            422,
            "cannot be used",
        ),
        (OWN_SESSIONS, json!({"peer": node.agent, "subject": "x"}).to_string(), 422, ""),
        (&messages, "[]".to_owned(), 400, "performative"),
        (&messages, json!({"performative": "SHOUT", "body": {}}).to_string(), 400, "performative"),
        (&messages, json!({"performative": "CLOSE"}).to_string(), 400, "body"),
        (&messages, json!({"performative": "CLOSE", "body": {}}).to_string(), 422, "schema_unsupported"),
        (
            &messages,
            json!({"performative": "ACCEPT", "body": {"referenceId": "prop_9"}}).to_string(),
            422,
            "code",
        ),
        (
            &messages,
            json!({"performative": "CLOSE", "body": {"reason": "x"}, "constraints": 1}).to_string(),
            400,
            "constraints",
        ),
    ] {
        let response = node.client().post(path, &body);
        assert_eq!(response.status, status, "{body}: {response:?}");
        assert!(response.body.contains(part), "{body}: {response:?}");
    }
    for path in [uuid(), "x".to_owned()].map(|id| format!("{OWN_SESSIONS}/{id}")) {
        assert_eq!(node.client().get(&path).status, 404);
        for part in ["transcript", "cards"] {
            assert_eq!(node.client().get(&format!("{path}/{part}")).status, 404);
        }
        let close = json!({"performative": "CLOSE", "body": {"reason": "x"}}).to_string();
        assert_eq!(node.client().post(&format!("{path}/messages"), &close).status, 404);
    }
    for query in ["after=x", "wait=-1", "wait=x", "other=1"] {
        assert_eq!(node.client().get(&format!("{OWN_SESSIONS}/{session}?{query}")).status, 400, "{query}");
    }
    assert_eq!(node.view(&session, 0, 0).unwrap().message_count(), 4);
}

/// Encodes an agent's URI for a path.
fn encode(agent: &str) -> String {
    agent.replace(':', "%3A").replace('/', "%2F")
}

#[test]
fn agents_with_the_same_name_on_other_hosts_do_not_share_a_card() {
    let many = "[limits]\nregistrations_per_minute = 1000\n";
    let pinned = RawPeer::with_agent("agent://127.0.0.1:3/first");
    let node = start_node(NodeBuilder::new("registry").argument("--registry").policy(many), &[&pinned]);
    let path = |name: &str| format!("/v1/asp/agents/{name}/card");
    let get = |name: &str| node.get(&path(name));
    let encoded = |peer: &RawPeer| encode(peer.card.agent_id().as_str());
    let put = |peer: &RawPeer, name: &str| peer.send(&node, "PUT", &path(name), peer.card.as_str()).status;
    let first = RawPeer::with_agent("agent://127.0.0.1:1/first");
    let namesake = RawPeer::with_agent("agent://127.0.0.1:2/first");
    assert_eq!(put(&first, &encoded(&first)), 204);
    assert_eq!(get("first").body, first.card.as_str(), "the name is unique");
    assert_eq!(put(&namesake, &encoded(&first)), 422, "the path names another agent");
    assert_eq!(put(&namesake, "first"), 204);
    for peer in [&first, &namesake] {
        assert_eq!(get(&encoded(peer)).body, peer.card.as_str());
    }
    let ambiguous = get("first");
    assert_eq!(ambiguous.status, 404);
    assert!(ambiguous.body.contains("Several registered agents have this name"), "{ambiguous:?}");
    for unknown in ["nobody", &*encode("agent://127.0.0.1:9/first"), "agent%3A", "%", "%zz"] {
        assert_eq!(get(unknown).status, 404, "{unknown}");
    }
    // Nobody takes the name of the registry's own agent, nor of an agent whose card it has pinned.
    let own = RawPeer::with_agent(&node.agent);
    let impostor = RawPeer::with_agent(pinned.card.agent_id().as_str());
    for peer in [&own, &impostor] {
        assert_eq!((put(peer, &encoded(peer)), put(peer, peer_name(peer))), (409, 409));
    }
    for name in ["registry", &*encode(&node.agent)] {
        assert_eq!(get(name).json()["agentId"], node.agent.as_str());
    }
    // An agent of another host with the registry's own name has its own path.
    let other = RawPeer::with_agent("agent://127.0.0.1:1/registry");
    assert_eq!(put(&other, "registry"), 204);
    assert_eq!(get("registry").json()["agentId"], node.agent.as_str());
    assert_eq!(get(&encoded(&other)).body, other.card.as_str());
}

fn peer_name(peer: &RawPeer) -> &str {
    peer.card.agent_id().as_str().rsplit('/').next().unwrap()
}

#[test]
fn a_registry_neither_lists_nor_serves_revoked_cards() {
    let policy = "[limits]\nregistrations_per_minute = 1000\n";
    let node = start_node(NodeBuilder::new("registry").argument("--registry").policy(policy), &[]);
    let (peer, other) = (RawPeer::new("peer"), RawPeer::new("other"));
    let path = |peer: &RawPeer| format!("/v1/asp/agents/{}/card", encode(peer.card.agent_id().as_str()));
    let put = |peer: &RawPeer| peer.send(&node, "PUT", &path(peer), peer.card.as_str()).status;
    assert_eq!((put(&peer), put(&other)), (204, 204));
    let listed = || node.get("/v1/asp/discover?capability=test.anything").json()["agents"].clone();
    assert_eq!(listed().as_array().unwrap().len(), 2);
    node.reload(&format!("{policy}[cards]\nrevoked = [\"{}\"]\n", peer.card.agent_id()), &[]);
    poll("the reload", || (node.get(&path(&peer)).status == 404).then_some(()));
    assert_eq!(node.get("/v1/asp/agents/peer/card").status, 404);
    let agents = listed();
    assert_eq!(agents.as_array().unwrap().len(), 1, "{agents}");
    assert_eq!(agents[0]["card"]["agentId"], other.card.agent_id().as_str());
    assert_eq!(put(&peer), 403);
    // It is registered again as soon as it is accepted again.
    node.reload(policy, &[]);
    poll("the second reload", || (node.get(&path(&peer)).status == 200).then_some(()));
    assert_eq!(listed().as_array().unwrap().len(), 2);
}

#[test]
fn a_registry_keeps_each_card_until_its_owner_replaces_it() {
    let card_path = |name: &str| format!("/v1/asp/agents/{name}/card");
    let registry = |builder: NodeBuilder| builder.storage(Storage::Disk).argument("--registry");
    let many = "registered_cards = 2\nregistrations_per_minute = 1000\n";
    let node = start_node(registry(NodeBuilder::new("registry")).policy(&format!("[limits]\n{many}")), &[]);
    let client = node.client();
    let (first, second) = (RawPeer::new("first"), RawPeer::new("second"));
    let put = |peer: &RawPeer, name: &str, card: &str| peer.send(&node, "PUT", &card_path(name), card);
    let found = |query: &str| -> Vec<Value> {
        let list = node.get(&format!("/v1/asp/discover?{query}"));
        assert_eq!(list.status, 200, "{list:?}");
        list.json()["agents"].as_array().unwrap().iter().map(|entry| entry["card"].clone()).collect()
    };
    let json = |peer: &RawPeer| serde_json::from_str::<Value>(peer.card.as_str()).unwrap();
    for _ in 0..2 {
        assert_eq!(put(&first, "first", first.card.as_str()).status, 204);
    }
    assert_eq!(found("capability=test.anything"), [json(&first)]);
    assert_eq!(found("capability=test.nothing"), [] as [Value; 0]);
    assert_eq!(found("capability=test.anything&min_trust=100"), [] as [Value; 0]);
    for query in
        ["", "min_trust=1", "capability=a&min_trust=101", "capability=a&min_trust=x", "capability=a&x=1"]
    {
        assert_eq!(client.get(&format!("/v1/asp/discover?{query}")).status, 400, "{query}");
    }
    // Nobody else can replace the card.
    let impostor = RawPeer::new("first");
    let encoded = encode(impostor.card.agent_id().as_str());
    for name in ["first", &*encoded] {
        assert_eq!(put(&impostor, name, impostor.card.as_str()).status, 409);
    }
    assert_eq!(put(&second, "first", second.card.as_str()).status, 422);
    assert_eq!(put(&first, "first", &first.card.as_str().replace("raw peer", "rich peer")).status, 422);
    assert_eq!(put(&first, "first", "{").status, 422);
    assert_eq!(put(&first, "first", &"x".repeat(1 << 20)).status, 413);
    // Nobody else can bring back an older one either: the request itself needs a proof made with the card's key.
    let without_proof = client.send("PUT", &card_path("first"), first.card.as_str());
    assert_eq!((without_proof.status, put(&second, "first", first.card.as_str()).status), (401, 401));
    let successor = first.rotate();
    assert_eq!(put(&successor, "first", successor.card.as_str()).status, 204);
    assert_eq!(put(&first, "first", first.card.as_str()).status, 409);
    assert_eq!(put(&second, "second", second.card.as_str()).status, 204);
    let third = RawPeer::new("third");
    let full = put(&third, "third", third.card.as_str());
    assert_eq!(full.status, 429, "{full:?}");
    assert_eq!(put(&second, "second", second.card.as_str()).status, 204);
    node.restart();
    assert_eq!(node.get(&card_path("first")).json(), json(&successor));
    assert_eq!(found("capability=test.anything").len(), 2);
    assert_eq!(node.get(&card_path("third")).status, 404);

    // A node that is not a registry stores no cards.
    let node = start(&[]);
    assert_eq!(first.send(&node, "PUT", &card_path("first"), first.card.as_str()).status, 405);
    assert_eq!(node.client().get("/v1/asp/discover?capability=x").status, 404);
}

/// Opens a WebSocket and sends an `auth` frame with a valid proof. Returns the answer.
pub(crate) fn authenticate(
    peer: &RawPeer,
    node: &TestNode,
    session: &str,
    last: usize,
) -> (WebSocketClient, Value) {
    let path = format!("{SESSIONS}/{session}/ws");
    let proof = create_http_proof(&peer.keys.dpop, &peer.claims(node, "GET", &path)).unwrap();
    authenticate_with(peer, node, session, last, &proof)
}

fn authenticate_with(
    peer: &RawPeer,
    node: &TestNode,
    session: &str,
    last: usize,
    proof: &str,
) -> (WebSocketClient, Value) {
    let (socket, _) = upgrade(&node.address, &format!("{SESSIONS}/{session}/ws"), &[]).unwrap();
    let mut socket = WebSocketClient(socket);
    let auth =
        json!({"type": "auth", "token": access_token(&peer.keys), "dpopProof": proof, "lastSequence": last});
    socket.send(&auth.to_string());
    let answer = socket.next();
    (socket, answer)
}

/// Returns the next frame of this type.
pub(crate) fn next_frame(socket: &mut WebSocketClient, kind: &str) -> Value {
    loop {
        let frame = socket.next();
        if frame["type"] == kind {
            return frame;
        }
    }
}

#[test]
fn a_websocket_carries_messages_in_both_directions() {
    let peer = RawPeer::new("peer");
    let node = start(&[&peer]);
    let mut session = conversation_of(&peer, &node, 5);
    let (mut socket, answer) = authenticate(&peer, &node, &session.id, 0);
    assert_eq!((&answer["type"], &answer["lastSequence"]), (&json!("auth_ok"), &json!(5)));
    // The node's own messages until now, which are the ACCEPT and the identity.
    for performative in ["ACCEPT", "INFORM"] {
        assert_eq!(next_frame(&mut socket, "message")["envelope"]["performative"], performative);
    }
    let sent = session.sign(Performative::Observe, r#"{"subject":"new"}"#);
    let frame = format!(r#"{{"type":"send","envelope":{}}}"#, sent.text);
    for _ in 0..2 {
        socket.send(&frame);
        let ack = next_frame(&mut socket, "ack");
        assert_eq!(ack["messageId"], sent.message_id.to_string());
    }
    for bad in ["x", "{}", r#"{"type":"send"}"#, r#"{"type":"send","envelope":{}}"#, r#"{"type":"other"}"#] {
        socket.send(bad);
        assert!(next_frame(&mut socket, "error")["code"].is_string());
    }
    socket.send(r#"{"type":"pong"}"#);
    let close = session.sign(Performative::Close, r#"{"reason":"done"}"#).text;
    socket.send(&format!(r#"{{"type":"send","envelope":{close}}}"#));
    next_frame(&mut socket, "ack");
    assert_eq!(node.view(&session.id, 0, 0).unwrap().message_count(), 7);
    // The session has ended, and so does its WebSocket. A lost acknowledgement can still be fetched.
    assert_eq!(read_close_code(&mut socket.0), 1000);
    let (mut socket, answer) = authenticate(&peer, &node, &session.id, 7);
    assert_eq!((&answer["type"], &answer["state"]), (&json!("auth_ok"), &json!("CLOSED")));
    socket.send(&format!(r#"{{"type":"send","envelope":{close}}}"#));
    next_frame(&mut socket, "ack");
}

#[test]
fn a_websocket_without_the_right_proof_is_closed() {
    let (peer, other) = (RawPeer::new("peer"), RawPeer::new("other"));
    let node = start(&[&peer, &other]);
    let session = peer.open_conversation(&node).id;
    let path = format!("{SESSIONS}/{session}/ws");
    let refused = |(mut socket, answer): (WebSocketClient, Value)| {
        assert_eq!(answer["type"], "error", "{answer}");
        assert_eq!(read_close_code(&mut socket.0), 4001);
    };
    let claims = peer.claims(&node, "GET", &path);
    let proof = create_http_proof(&peer.keys.dpop, &claims).unwrap();
    let (_socket, answer) = authenticate_with(&peer, &node, &session, 0, &proof);
    assert_eq!(answer["type"], "auth_ok");
    refused(authenticate_with(&peer, &node, &session, 0, &proof));
    let mut claims = peer.claims(&node, "GET", &path);
    claims.nonce = None;
    let proof = create_http_proof(&peer.keys.dpop, &claims).unwrap();
    refused(authenticate_with(&peer, &node, &session, 0, &proof));
    let proof = create_http_proof(&peer.keys.dpop, &peer.claims(&node, "GET", SESSIONS)).unwrap();
    refused(authenticate_with(&peer, &node, &session, 0, &proof));
    refused(authenticate_with(&peer, &node, &session, 0, "x"));
    refused(authenticate(&other, &node, &session, 0));
    refused(authenticate(&peer, &node, &uuid(), 0));
    for first in ["x", r#"{"type":"send","envelope":{}}"#, r#"{"type":"auth","token":"x"}"#] {
        let (socket, _) = upgrade(&node.address, &path, &[]).unwrap();
        let mut socket = WebSocketClient(socket);
        socket.send(first);
        let answer = socket.next();
        refused((socket, answer));
    }
    assert_eq!(node.client().get(&path).status, 426);
}

#[test]
fn a_node_refuses_to_listen_in_an_unsafe_way() {
    let builder = NodeBuilder::new("press");
    let folder = builder.create_folder();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (identity, data) = (path("identity"), path("data"));
    for arguments in [
        vec!["--listen", "0.0.0.0:0"],
        vec!["--listen", "[::]:0"],
        vec!["--listen", "0.0.0.0:0", "--open"],
        vec!["--listen", "0.0.0.0:0", "--open", "--behind-proxy"],
    ] {
        let all = [&["asp", "serve", "--identity", &identity, "--data", &data], &*arguments].concat();
        let output = run_sayso(&all, "");
        assert_eq!(output.exit_code, 2, "{arguments:?}: {}", output.stderr);
        assert!(!output.stderr.contains("listening on"), "{arguments:?}: {}", output.stderr);
    }
    for (arguments, part) in [
        (vec!["--identity", "nowhere"], "nowhere"),
        (vec!["--identity", &identity, "--peers", "nowhere"], "nowhere"),
        (vec!["--identity", &identity, "--policy", "nowhere"], "nowhere"),
    ] {
        let all = [&["asp", "serve", "--memory", "--open", "--listen", "127.0.0.1:0"], &*arguments].concat();
        let output = run_sayso(&all, "");
        assert_eq!(output.exit_code, 2, "{arguments:?}: {}", output.stderr);
        assert!(output.stderr.contains(part), "{arguments:?}: {}", output.stderr);
    }
}
