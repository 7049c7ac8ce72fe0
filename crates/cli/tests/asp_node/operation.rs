//! Running a node: reloading its policy and its peers, its configuration file, backups, and an orderly stop.

use std::io::{Read, Write};

use asp::Performative;
use rustix::process::Signal;
use serde_json::{Value, json};
use testing::cli::run_sayso;
use testing::http::TIMEOUT;
use testing::websocket::read_close_code;

use crate::peer_server::{DeliveryReply, PeerServer};
use crate::policies::{deliver, introduce, proposal};
use crate::raw_peer::{CardServer, RawPeer, SESSIONS};
use crate::refused_shortcuts::meet;
use crate::routes::authenticate;
use crate::script::verify;
use crate::test_node::{NodeBuilder, Storage, TestNode, View, poll, start_pair};

const RATES: &str = "\
[limits]
messages_per_minute = [100000, 100000, 100000, 100000, 100000]
invitations_per_minute = [100000, 100000, 100000, 100000, 100000]
";

fn start(peers: &[&RawPeer]) -> TestNode {
    let builder = NodeBuilder::new("press").policy(RATES);
    let folder = builder.create_folder();
    builder.start(folder, &peers.iter().map(|peer| peer.card_file()).collect::<Vec<_>>())
}

/// Tries to open a session, and returns the status.
fn try_open(peer: &RawPeer, node: &TestNode) -> u16 {
    let invitation = peer.session(node).invitation("a talk").text;
    peer.send(node, "POST", SESSIONS, &invitation).status
}

#[test]
fn a_revoked_card_takes_effect_with_a_reload() {
    let (peer, other) = (RawPeer::new("peer"), RawPeer::new("other"));
    let node = start(&[&peer, &other]);
    let session = peer.open_conversation(&node);
    let (mut socket, answer) = authenticate(&peer, &node, &session.id, 1000);
    assert_eq!(answer["type"], "auth_ok");
    let events = format!("{SESSIONS}/{}/events", session.id);
    let mut stream = peer.client(&node, "GET", &events).open_stream(&events);
    let revoked = format!("{RATES}[cards]\nrevoked = [\"{}\"]\n", peer.card.agent_id());
    node.reload(&revoked, &[peer.card_file(), other.card_file()]);
    // The connections of the revoked agent end, and it can open no more.
    assert_eq!(read_close_code(&mut socket.0), 1008);
    stream.set_read_timeout(TIMEOUT);
    assert!(stream.is_closed());
    assert_eq!(try_open(&peer, &node), 403);
    assert_eq!(try_open(&other, &node), 201);
    assert_eq!(node.starts(), 1);
    // A later reload accepts it again.
    node.reload(RATES, &[peer.card_file(), other.card_file()]);
    poll("the second reload", || (try_open(&peer, &node) == 201).then_some(()));
}

#[test]
fn nothing_is_sent_to_a_revoked_agent() {
    let (server, other_server) = (PeerServer::start(true), PeerServer::start(true));
    let (peer, other) = (server.peer(), other_server.peer());
    let policy = RATES.replace("[limits]\n", "[limits]\nretry_delay_ms = 10\nmax_retry_delay_ms = 20\n")
        + "[circuit_breaker]\nfailure_threshold = 1000000\n";
    let builder = NodeBuilder::new("press").policy(&policy);
    let folder = builder.create_folder();
    let node = builder.start(folder, &[peer.card_file(), other.card_file()]);
    let mut session = peer.open_conversation(&node);
    let other_session = other.open_conversation(&node);
    let observe = json!({"subject": "the paper"});
    server.answer_deliveries(DeliveryReply::Busy);
    let waiting = node.send(&session.id, "OBSERVE", &observe)["messageId"].clone();
    let revoked = format!("{policy}[cards]\nrevoked = [\"{}\"]\n", peer.card.agent_id());
    node.reload(&revoked, &[peer.card_file(), other.card_file()]);
    let send = |performative: &str, body: &Value| {
        let response = node.try_post_message(&session.id, performative, body).unwrap();
        (response.status, response.json_str("code"))
    };
    let refused = (422, "unauthorized".to_owned());
    poll("the reload", || (try_open(&peer, &node) == 403).then_some(()));
    // The node sends neither a new message nor the one that waits, not even a CLOSE.
    assert_eq!(send("OBSERVE", &observe), refused);
    assert_eq!(send("CLOSE", &json!({"reason": "done"})), refused);
    let invite = node.try_invite(peer.card.agent_id().as_str(), "again", 600).unwrap();
    assert_eq!((invite.status, invite.json_str("code")), refused);
    server.answer_deliveries(DeliveryReply::Accept);
    let before = server.delivered().len();
    for _ in 0..20 {
        node.send(&other_session.id, "OBSERVE", &observe);
        node.wait_for(&other_session.id, "the delivery", View::is_acknowledged);
    }
    assert_eq!(server.delivered().len(), before);
    assert!(!node.view(&session.id, 0, 0).unwrap().is_acknowledged());
    // Once the agent is accepted again, the delivery continues.
    node.reload(&policy, &[peer.card_file(), other.card_file()]);
    node.wait_for(&session.id, "the delivery", View::is_acknowledged);
    assert_eq!(server.delivered().last().map(String::as_str), waiting.as_str());
    session.catch_up(&peer, &node);
    session.send(&peer, &node, Performative::Close, r#"{"reason":"done"}"#);
}

#[test]
fn a_card_that_is_pinned_after_its_first_use_counts_as_pinned_once() {
    let server = CardServer::start();
    let peer = RawPeer::with_agent(&server.agent());
    server.publish(peer.card.as_str());
    let builder = NodeBuilder::new("press").argument("--trust-on-first-use").policy(RATES);
    let folder = builder.create_folder();
    let node = builder.start(folder, &[]);
    assert_eq!(meet(&peer, &node).status, 201);
    let count = |name: &str| {
        let report = node.get(&format!("/agent/v1/asp/trust?agent={}", peer.card.agent_id())).json();
        let components = report["components"].as_array().unwrap().clone();
        let all = components.iter().flat_map(|component| component["events"].as_array().unwrap().clone());
        let counts = all.filter(|event| event["name"] == name);
        counts.map(|event| event["count"].as_u64().unwrap()).max().unwrap_or(0)
    };
    assert_eq!((count("card_trusted_on_first_use"), count("card_pinned")), (1, 0));
    node.reload(RATES, &[peer.card_file()]);
    poll("the reload", || (count("card_pinned") == 1).then_some(()));
    // Another reload, without it and with it, records nothing more.
    let other = RawPeer::new("other");
    for pinned in [vec![other.card_file()], vec![peer.card_file()]] {
        node.reload(RATES, &pinned);
        let is_pinned = pinned.len() == 1 && pinned[0] == other.card_file();
        poll("the next reload", || ((try_open(&other, &node) == 201) == is_pinned).then_some(()));
    }
    assert_eq!((count("card_trusted_on_first_use"), count("card_pinned")), (1, 1));
}

#[test]
fn peers_are_pinned_and_unpinned_with_a_reload() {
    let (old, new) = (RawPeer::new("old"), RawPeer::new("new"));
    let node = start(&[&old]);
    assert_eq!((try_open(&old, &node), try_open(&new, &node)), (201, 403));
    node.reload(RATES, &[new.card_file()]);
    poll("the reload", || (try_open(&new, &node) == 201).then_some(()));
    assert_eq!(try_open(&old, &node), 403);
    let report = node.get(&format!("/agent/v1/asp/trust?agent={}", new.card.agent_id())).json();
    assert_eq!(report["level"], 1, "{report}");
}

#[test]
fn an_unusable_file_leaves_policy_and_peers_as_they_were() {
    let (peer, other) = (RawPeer::new("peer"), RawPeer::new("other"));
    let node = start(&[&peer]);
    let has_failed = || node.client().get("/metrics").body.contains("sayso_reload_healthy 0");
    assert!(!has_failed());
    let revoked = format!("[cards]\nrevoked = [\"{}\"]\n", peer.card.agent_id());
    for (policy, peers) in
        [("[cards]\nrevoked = 1\n", vec![other.card_file()]), (&*revoked, vec!["nowhere.json".into()])]
    {
        node.reload(policy, &peers);
        poll("the failed reload", || has_failed().then_some(()));
        assert_eq!((try_open(&peer, &node), try_open(&other, &node)), (201, 403));
        node.reload(RATES, &[peer.card_file()]);
        poll("the reload", || (!has_failed()).then_some(()));
    }
}

#[test]
fn the_limits_of_a_node_can_be_configured_with_the_keys_of_the_hub() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let config = path("node.toml");
    let with_config = |text: &str| {
        std::fs::write(&config, text).unwrap();
        let builder = NodeBuilder::new("press").argument("--config").argument(&config);
        let folder = builder.create_folder();
        builder.start(folder, &[])
    };
    let long = format!("X-Long: {}", "x".repeat(1000));
    let status =
        |node: &TestNode| node.client().with_header(&long).get("/.well-known/asp-agent-card.json").status;
    assert_eq!(status(&with_config("[http]\nhead_bytes = 512\n")), 431);
    assert_eq!(status(&with_config("[http]\nhead_bytes = 8192\nidle_timeout = \"1s\"\n")), 200);

    let builder = NodeBuilder::new("press");
    let identity_folder = builder.create_folder();
    let identity = identity_folder.path().join("identity").to_str().unwrap().to_owned();
    for (text, part) in [
        ("[http]\nhead_byte = 512\n", "node.toml:2: unknown key http.head_byte"),
        ("[hub]\nsessions = 5\n", "node.toml:2: hub.sessions has no effect on an ASP node"),
        ("memory = true\ndata = \"x\"\n", "use only one of them"),
    ] {
        std::fs::write(&config, text).unwrap();
        let output = run_sayso(&["asp", "serve", "--identity", &identity, "--config", &config], "");
        assert_eq!(output.exit_code, 2, "{text}");
        assert!(output.stderr.contains(part), "{text}: {}", output.stderr);
    }
}

#[test]
fn a_running_node_is_backed_up_and_catches_up_after_a_restore() {
    let pair = start_pair(|builder| builder.storage(Storage::Disk));
    let session = introduce(&pair);
    deliver(&pair, 0, &session, "PROPOSE", &proposal("prop_1"));
    let backup = tempfile::tempdir().unwrap();
    let copy = backup.path().join("copy").to_str().unwrap().to_owned();
    let run = |arguments: &[&str]| {
        let output = run_sayso(arguments, "");
        assert_eq!(output.exit_code, 0, "{}", output.stderr);
    };
    run(&["backup", "--data", pair[0].folder.path().join("data").to_str().unwrap(), &copy]);
    for subject in ["the paper", "the ink", "the glue"] {
        deliver(&pair, 0, &session, "OBSERVE", &json!({"subject": subject}));
    }
    assert_eq!(pair[0].starts(), 1, "the node was backed up while it ran");
    // The disk is lost, and the backup is restored into a new data folder.
    let [buyer, press] = pair;
    let buyer = buyer.restart_with_data(|data| {
        std::fs::remove_dir_all(data).unwrap();
        run(&["restore", &copy, "--data", data.to_str().unwrap()]);
    });
    assert_eq!(buyer.view(&session, 0, 0).unwrap().message_count(), 5);
    // The next message of the peer links to the messages that were lost, so the node fetches them.
    let pair = [buyer, press];
    deliver(&pair, 1, &session, "ACCEPT", &json!({"referenceId": "prop_1"}));
    deliver(&pair, 0, &session, "CLOSE", &json!({"reason": "done"}));
    let transcripts = pair.each_ref().map(|node| node.transcript(&session));
    assert_eq!(transcripts[0], transcripts[1]);
    assert_eq!(transcripts[0].lines().count(), 10);
    verify(&transcripts[0], &pair[0].cards(&session));
}

#[test]
fn a_node_that_stops_answers_open_requests_and_closes_streams() {
    let peer = RawPeer::new("peer");
    let builder = NodeBuilder::new("press").policy(RATES);
    let folder = builder.create_folder();
    let node = builder.start(folder, &[peer.card_file()]);
    let mut session = peer.open_conversation(&node);
    let (mut socket, answer) = authenticate(&peer, &node, &session.id, 1000);
    assert_eq!(answer["type"], "auth_ok");
    // A long poll, an idle connection, and a request whose body is on its way.
    let poll_path = format!("/agent/v1/asp/sessions/{}?after=4&wait=60", session.id);
    let long_poll = {
        let client = node.client();
        std::thread::spawn(move || client.get(&poll_path))
    };
    let mut idle = node.client().connect();
    let message = session.sign(Performative::Observe, r#"{"subject":"the last one"}"#).text;
    let messages = session.messages_path();
    let headers = peer.headers(&peer.claims(&node, "POST", &messages)).join("\r\n");
    let mut slow = node.client().connect();
    let (start, rest) = message.split_at(10);
    write!(
        slow,
        "POST {messages} HTTP/1.1\r\nHost: {}\r\n{headers}\r\nContent-Length: {}\r\n\r\n{start}",
        node.address,
        message.len()
    )
    .unwrap();
    // The node has begun to read these requests when it answers a later one.
    assert_eq!(node.client().get("/readyz").status, 200);
    node.signal(Signal::TERM);
    assert_eq!(read_close_code(&mut socket.0), 1001);
    slow.write_all(rest.as_bytes()).unwrap();
    let mut response = String::new();
    slow.read_to_string(&mut response).unwrap();
    assert!(response.starts_with("HTTP/1.1 200 ") && response.contains("Connection: close"), "{response}");
    assert_eq!(long_poll.join().unwrap().status, 200);
    let mut nothing = Vec::new();
    assert!(idle.read_to_end(&mut nothing).is_ok() && nothing.is_empty());
}
