//! The connections between nodes: authentication, lost connections and slow nodes.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use hub::command::{HubCommand, HubReply};
use hub::{HubLimits, Role, Shard, ShardMap};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::{AbortHandle, JoinSet};
use wire::cluster::{RouterLimits, ShardLocation};

use super::support::{
    Listener, Node, SHARDS, core, memory_journals, next_chunk, output, patient_limits, people, principal,
    start, subscribe, wait_until,
};

async fn start_owner() -> Node {
    let owner = Node::start("owner").await;
    run_all(&owner);
    owner
}

fn run_all(owner: &Node) {
    for (shard, journal) in Shard::all_of(ShardMap::new(SHARDS)).into_iter().zip(memory_journals()) {
        owner.router.run_here(shard.index, core(shard, journal, &HubLimits::default())).unwrap();
    }
}

/// Passes connections on until they are cut.
struct Proxy {
    address: String,
    connections: Arc<Mutex<JoinSet<()>>>,
    server: AbortHandle,
}

impl Proxy {
    async fn start(target: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let connections: Arc<Mutex<JoinSet<()>>> = Arc::default();
        let (target, all) = (target.to_owned(), connections.clone());
        let server = tokio::spawn(async move {
            while let Ok((mut near, _)) = listener.accept().await {
                let target = target.clone();
                all.lock().unwrap().spawn(async move {
                    let Ok(mut far) = TcpStream::connect(target).await else { return };
                    let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
                });
            }
        });
        Self { address, connections, server: server.abort_handle() }
    }

    fn cut(&self) {
        self.connections.lock().unwrap().abort_all();
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.server.abort();
    }
}

#[tokio::test]
async fn a_lost_connection_is_repaired_without_losing_or_repeating_an_event() {
    let (front, owner) = (Node::start("front").await, start_owner().await);
    let proxy = Proxy::start(&owner.address).await;
    for shard in 0..SHARDS {
        front.router.run_at(shard, &owner.name, &proxy.address);
    }
    let (agent, ada) = (principal("bank", Role::Agent, &[]), principal("ada", Role::Listener, &[]));
    let session = start(&front.hub, &agent, &people()[1]).await;
    let id = subscribe(&front.hub, &ada, None).await;
    let mut listener = Listener::attach(&front.hub, &ada, &id, None).await;
    listener.next_text().await;
    for round in 0..8 {
        // The agent is connected to the owner, so events are published while the front is cut off.
        output(&owner.hub, &agent, &session, &format!("a{round}")).await;
        proxy.cut();
        output(&owner.hub, &agent, &session, &format!("b{round}")).await;
        for text in [format!("a{round}"), format!("b{round}")] {
            assert_eq!(next_chunk(&mut listener).await.1, text);
        }
    }
}

#[tokio::test]
async fn a_request_whose_reply_is_lost_is_repeated_only_with_an_idempotency_key() {
    let (front, owner) = (Node::start("front").await, start_owner().await);
    let proxy = Proxy::start(&owner.address).await;
    for shard in 0..SHARDS {
        front.router.run_at(shard, &owner.name, &proxy.address);
    }
    let (agent, ada) = (principal("bank", Role::Agent, &[]), principal("ada", Role::Listener, &[]));
    let session = start(&front.hub, &agent, &people()[1]).await;
    let id = subscribe(&owner.hub, &ada, None).await;
    let mut listener = Listener::attach(&owner.hub, &ada, &id, None).await;
    let mut published = 0;
    for round in 0..20 {
        let has_key = round % 2 == 0;
        let command = HubCommand::StreamOutput {
            session: session.clone(),
            output_id: Some(format!("out_{round}")),
            producer: None,
            text: format!("n{round}"),
            language: None,
            content_type: None,
            coalesce_hint: None,
            complete: true,
            agent_reports_next_state: true,
            idempotency_key: has_key.then(|| format!("key-{round}")),
        };
        let (hub, sender) = (front.hub.clone(), agent.clone());
        let request = tokio::spawn(async move { hub.ask(sender, command).await });
        // The connection is cut somewhere between the request and its reply.
        for _ in 0..round {
            tokio::task::yield_now().await;
        }
        proxy.cut();
        match request.await.unwrap() {
            HubReply::EventsPublished { .. } => published += 1,
            HubReply::Unavailable(reason) if !has_key => {
                assert!(reason.to_string().contains("may have been applied"), "{reason}");
            }
            other => panic!("{other:?}, with a key: {has_key}"),
        }
    }
    assert!(published >= 10, "every request with a key succeeds: {published}");
    // Nothing was published twice.
    output(&owner.hub, &agent, &session, "end").await;
    let mut seen = Vec::new();
    loop {
        let json = listener.next_text().await;
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        let Some(chunk) = value["chunk"].as_str() else { continue };
        if chunk == "end" {
            break;
        }
        seen.push(chunk.to_owned());
    }
    let mut distinct = seen.clone();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(distinct.len(), seen.len(), "{seen:?}");
    assert!(seen.len() >= published, "{seen:?}");
}

#[tokio::test]
async fn a_node_with_another_key_is_refused() {
    let owner = start_owner().await;
    let stranger = Node::start_with("stranger", [8; 32], patient_limits()).await;
    let friend = Node::start("friend").await;
    stranger.run_at(0, &owner);
    friend.run_at(0, &owner);
    let location = |node: &Node| node.router.locations()[0].clone();
    let reachable = ShardLocation::At { node: "owner".to_owned(), is_reachable: true };
    wait_until("the friend is not connected", || location(&friend) == reachable).await;
    assert_eq!(location(&stranger), ShardLocation::At { node: "owner".to_owned(), is_reachable: false });
    assert_eq!(owner.router.connected_nodes(), ["friend"]);
    // And a node does not send anything to a node with another key.
    run_all(&stranger);
    friend.run_at(1, &stranger);
    let mut raw = TcpStream::connect(&owner.address).await.unwrap();
    raw.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    let mut rest = Vec::new();
    let _ = raw.read_to_end(&mut rest).await;
    assert!(matches!(friend.router.locations()[1], ShardLocation::At { is_reachable: false, .. }));
}

#[tokio::test]
async fn a_node_under_another_name_is_not_used() {
    let (front, owner) = (Node::start("front").await, start_owner().await);
    front.router.run_at(0, "somebody", &owner.address);
    front.run_at(1, &owner);
    let is_reachable = |shard: usize| {
        matches!(front.router.locations()[shard], ShardLocation::At { is_reachable: true, .. })
    };
    wait_until("the owner is not connected", || is_reachable(1)).await;
    assert!(!is_reachable(0));
}

#[tokio::test]
async fn a_node_that_does_not_answer_counts_as_dead() {
    let limits = RouterLimits {
        heartbeat: Duration::from_millis(10),
        idle_timeout: Duration::from_millis(200),
        ..patient_limits()
    };
    let front = Node::start_with("front", [7; 32], limits).await;
    let owner = start_owner().await;
    // The owner sends a heartbeat only twice a second, so the front considers it dead.
    front.run_at(0, &owner);
    let is_reachable = || matches!(front.router.locations()[0], ShardLocation::At { is_reachable: true, .. });
    wait_until("the owner was never reached", is_reachable).await;
    wait_until("the owner never counts as dead", || !is_reachable()).await;
}

#[tokio::test]
async fn a_stranger_cannot_take_the_places_of_nodes() {
    let limits =
        RouterLimits { connections: 2, handshakes: 8, handshakes_per_address: 4, ..patient_limits() };
    let owner = Node::start_with("owner", [7; 32], limits).await;
    run_all(&owner);
    let mut strangers = Vec::new();
    for _ in 0..12 {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.2:0".parse().unwrap()).unwrap();
        strangers.push(socket.connect(owner.address.parse().unwrap()).await.unwrap());
    }
    // The connections beyond the limit end, so all have been accepted.
    for stranger in &mut strangers[4..] {
        let mut byte = [0];
        assert!(!matches!(stranger.read(&mut byte).await, Ok(1..)));
    }
    let friends = [Node::start("friend").await, Node::start("another").await];
    for friend in &friends {
        friend.run_at(0, &owner);
        let is_reachable =
            || matches!(friend.router.locations()[0], ShardLocation::At { is_reachable: true, .. });
        wait_until("a node is kept out", is_reachable).await;
    }
}

/// The size of a large text.
const LARGE: usize = 100_000;

fn large_text(number: usize) -> String {
    let start = format!("large{number:03} ");
    let rest = "x".repeat(LARGE - start.len());
    start + &rest
}

#[tokio::test]
async fn a_listener_that_missed_much_does_not_cut_the_connection_of_its_node() {
    // Less than the listener has missed, and enough for a single event.
    for queued_bytes in [8 * 1024 * 1024, 1024 * 1024] {
        let limits = RouterLimits { message_bytes: 1024 * 1024, queued_bytes, ..patient_limits() };
        let (front, owner) = (
            Node::start_with("front", [7; 32], limits).await,
            Node::start_with("owner", [7; 32], limits).await,
        );
        run_all(&owner);
        for shard in 0..SHARDS {
            front.run_at(shard, &owner);
        }
        let (agent, ada) = (principal("bank", Role::Agent, &[]), principal("ada", Role::Listener, &[]));
        let session = start(&front.hub, &agent, &people()[1]).await;
        let id = subscribe(&front.hub, &ada, None).await;
        let mut listener = Listener::attach(&front.hub, &ada, &id, None).await;
        output(&front.hub, &agent, &session, "first").await;
        while next_chunk(&mut listener).await.1 != "first" {}
        let last = listener.last_id.clone().unwrap();
        drop(listener);
        for number in 0..20 {
            output(&front.hub, &agent, &session, &large_text(number)).await;
        }
        let connections = owner.router.connected_nodes();
        let mut listener = Listener::attach(&front.hub, &ada, &id, Some(&last)).await;
        if queued_bytes > 1024 * 1024 {
            // The text of each output comes in several parts.
            let mut text = String::new();
            while text.len() < 20 * LARGE {
                text += &next_chunk(&mut listener).await.1;
            }
            let expected: String = (0..20).map(large_text).collect();
            assert!(text == expected, "{} bytes", text.len());
        } else {
            assert!(listener.next().await.is_none(), "it is disconnected, and can try again");
        }
        // The agent is not affected.
        output(&front.hub, &agent, &session, "last").await;
        assert_eq!(owner.router.connected_nodes(), connections);
    }
}
