//! Shards that move between nodes, and nodes that are lost.

use std::collections::BTreeMap;
use std::sync::Arc;

use aaep::{SessionId, SubscriptionId};
use hub::command::{AgentNotice, HubCommand, HubReply, SubscriberMessage, Unavailable};
use hub::{HubLimits, Principal, Role, Shard, ShardMap};
use journal::{SqliteJournal, SqliteSettings};
use seal::UnixMillis;
use tempfile::TempDir;
use wire::cluster::{RouterLimits, ShardLocation, ShardStop};
use wire::{AgentMessage, HubHandle};

use super::support::{
    Listener, Node, SHARDS, core, next_chunk, output, patient_limits, people, principal, start, subscribe,
    testing_question,
};

/// Nodes whose shards have their journals in one folder, of which each is open on one node at a time.
struct Cluster {
    nodes: Vec<Node>,
    folder: TempDir,
}

impl Cluster {
    async fn start(nodes: usize) -> Self {
        Self::start_with(nodes, patient_limits()).await
    }

    async fn start_with(nodes: usize, limits: RouterLimits) -> Self {
        let mut all = Vec::new();
        for number in 0..nodes {
            all.push(Node::start_with(&format!("node-{number}"), [7; 32], limits).await);
        }
        Self { nodes: all, folder: TempDir::new().unwrap() }
    }

    fn hub(&self, node: usize) -> &HubHandle {
        &self.nodes[node].hub
    }

    /// Runs a shard on a node, and does not tell the others.
    fn start_shard(&self, shard: u16, node: usize) {
        let path = self.folder.path().join(format!("{shard}.sqlite"));
        let journal = SqliteJournal::open(path, &SqliteSettings::default()).unwrap();
        let place = Shard::all_of(ShardMap::new(SHARDS)).swap_remove(usize::from(shard));
        let core = core(place, Box::new(journal), &HubLimits::default());
        self.nodes[node].router.run_here(shard, core).unwrap();
    }

    /// Tells the other nodes where a shard runs.
    fn announce(&self, shard: u16, owner: usize) {
        for (_, node) in self.nodes.iter().enumerate().filter(|(number, _)| *number != owner) {
            node.run_at(shard, &self.nodes[owner]);
        }
    }

    fn place(&self, shard: u16, owner: usize) {
        self.start_shard(shard, owner);
        self.announce(shard, owner);
    }

    fn move_shard(&self, shard: u16, from: usize, to: usize, reason: ShardStop) {
        self.nodes[from].router.stop(shard, reason);
        self.place(shard, to);
    }
}

fn follow(session: &SessionId) -> HubCommand {
    HubCommand::Follow { session: session.clone() }
}

fn ask(session: &SessionId) -> HubCommand {
    HubCommand::Ask {
        session: session.clone(),
        body: testing_question().into(),
        is_clarification: false,
        idempotency_key: None,
    }
}

fn answer(subscription: &SubscriptionId, token: &aaep::ReplyToken, decision: &str) -> HubCommand {
    let now = aaep::Timestamp::from_unix_millis(wire::unix_now()).unwrap();
    let text = format!(
        r#"{{"type":"confirmation.reply","reply_token":"{token}","decision":"{decision}","subscription_id":"{subscription}","timestamp":"{now}"}}"#
    );
    HubCommand::SendMessage { message: SubscriberMessage::parse(&text) }
}

/// Reads from a listener until it has this many chunks, and returns them by session.
async fn read_chunks(listener: &mut Listener, count: usize) -> BTreeMap<String, Vec<String>> {
    let mut chunks: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for _ in 0..count {
        let (session, text) = next_chunk(listener).await;
        chunks.entry(session).or_default().push(text);
    }
    chunks
}

#[tokio::test]
async fn a_listener_does_not_notice_that_shards_move() {
    for reason in [ShardStop::GivenAway, ShardStop::Lost] {
        let cluster = Cluster::start(3).await;
        for shard in 0..SHARDS {
            cluster.place(shard, usize::from(shard));
        }
        let (agent, ada) = (principal("bank", Role::Agent, &[]), principal("ada", Role::Listener, &[]));
        let mut sessions = Vec::new();
        for person in people() {
            sessions.push(start(cluster.hub(1), &agent, &person).await);
        }
        let id = subscribe(cluster.hub(0), &ada, None).await;
        let mut listener = Listener::attach(cluster.hub(0), &ada, &id, None).await;
        for _ in &sessions {
            listener.next_text().await;
        }
        let mut expected: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut count = 0;
        for round in 0..4_u16 {
            for part in 0..3 {
                for session in &sessions {
                    let text = format!("r{round}p{part}");
                    // The agent is connected to another node each time.
                    output(cluster.hub(usize::from(round % 3)), &agent, session, &text).await;
                    expected.entry(session.to_string()).or_default().push(text);
                    count += 1;
                }
            }
            for shard in 0..SHARDS {
                let from = usize::from((shard + round) % 3);
                cluster.move_shard(shard, from, (from + 1) % 3, reason);
            }
        }
        assert_eq!(read_chunks(&mut listener, count).await, expected, "{reason:?}");
        // The cursor that the client has is right, too.
        let last_id = listener.last_id.clone().unwrap();
        drop(listener);
        for session in &sessions {
            output(cluster.hub(2), &agent, session, "later").await;
        }
        let mut listener = Listener::attach(cluster.hub(1), &ada, &id, Some(&last_id)).await;
        let later: BTreeMap<_, _> =
            sessions.iter().map(|session| (session.to_string(), vec!["later".to_owned()])).collect();
        assert_eq!(read_chunks(&mut listener, sessions.len()).await, later, "{reason:?}");
    }
}

#[tokio::test]
async fn requests_wait_until_a_shard_has_an_owner_again() {
    let cluster = Cluster::start(2).await;
    for shard in 0..SHARDS {
        cluster.place(shard, 0);
    }
    let agent = principal("bank", Role::Agent, &[]);
    let session = start(cluster.hub(1), &agent, &people()[1]).await;
    cluster.nodes[0].router.stop(1, ShardStop::GivenAway);
    let hub = cluster.hub(1).clone();
    let (waiting, of_waiting) = (session.clone(), agent.clone());
    let held = tokio::spawn(async move { output(&hub, &of_waiting, &waiting, "held").await });
    tokio::task::yield_now().await;
    cluster.place(1, 1);
    held.await.unwrap();
    assert_eq!(cluster.nodes[1].router.locations()[1], ShardLocation::Here);
    assert!(matches!(&cluster.nodes[0].router.locations()[1], ShardLocation::At { node, .. } if node == "node-1"));
    let reply = cluster.hub(0).ask(agent, follow(&session)).await;
    assert!(matches!(reply, HubReply::SessionFollowed { .. }), "{reply:?}");
}

#[tokio::test]
async fn a_request_for_a_shard_without_an_owner_is_refused_after_a_time_limit() {
    let limits = RouterLimits { hold_time: std::time::Duration::from_millis(1), ..patient_limits() };
    let cluster = Cluster::start_with(1, limits).await;
    let agent = principal("bank", Role::Agent, &[]);
    let unknown = SessionId::parse("sess_12345678x1").unwrap();
    let reply = cluster.hub(0).ask(agent, follow(&unknown)).await;
    assert_eq!(reply, HubReply::Unavailable(Unavailable::NoOwner));
    let missing = cluster.nodes[0].router.readiness().unwrap_err();
    assert!(missing.contains("0, 1, 2"), "{missing}");
    let cluster = Cluster::start(1).await;
    for shard in 0..SHARDS {
        cluster.place(shard, 0);
    }
    let router = &cluster.nodes[0].router;
    assert_eq!(router.readiness(), Ok(()));
    router.set_draining(true);
    assert!(router.readiness().unwrap_err().contains("drained"));
}

#[tokio::test]
async fn only_a_limited_number_of_requests_is_held() {
    let cluster = Cluster::start_with(1, RouterLimits { held_requests: 1, ..patient_limits() }).await;
    let agent = principal("bank", Role::Agent, &[]);
    let unknown = SessionId::parse("sess_12345678x1").unwrap();
    let connection = cluster.hub(0).connect_agent(8);
    assert!(connection.submit(&agent, follow(&unknown)).is_some());
    assert!(connection.submit(&agent, follow(&unknown)).is_none());
}

#[tokio::test]
async fn a_question_is_answered_across_nodes_and_a_wait_survives_a_move() {
    let cluster = Cluster::start(3).await;
    for shard in 0..SHARDS {
        cluster.place(shard, 0);
    }
    let (agent, ada) = (principal("bank", Role::Agent, &[]), principal("ada", Role::Listener, &[]));
    let id = subscribe(cluster.hub(2), &ada, None).await;
    let mut listener = Listener::attach(cluster.hub(2), &ada, &id, None).await;
    let session = start(cluster.hub(1), &agent, &people()[1]).await;
    for (reason, from, to) in [(ShardStop::GivenAway, 0, 1), (ShardStop::Lost, 1, 2), (ShardStop::GivenAway, 2, 0)] {
        let reply = cluster.hub(1).ask(agent.clone(), ask(&session)).await;
        let HubReply::QuestionOpened { reply_token: token, .. } = reply else { panic!("{reply:?}") };
        let wait = HubCommand::Wait { session: session.clone(), token: token.clone(), until: UnixMillis::MAX };
        let (hub, waiting_agent) = (cluster.hub(1).clone(), agent.clone());
        let waiting = tokio::spawn(async move { hub.ask(waiting_agent, wait).await });
        while !listener.next_text().await.contains("awaiting.confirmation") {}
        cluster.move_shard(1, from, to, reason);
        assert_eq!(cluster.hub(2).ask(ada.clone(), answer(&id, &token, "accept")).await, HubReply::Done);
        let outcome = waiting.await.unwrap();
        let HubReply::QuestionResolved(outcome) = outcome else { panic!("{outcome:?}") };
        assert_eq!(outcome.by.as_str(), "reply", "{reason:?}");
        assert!(outcome.receipt.is_some());
    }
}

#[tokio::test]
async fn an_agent_connection_learns_of_an_answer_that_it_missed() {
    let cluster = Cluster::start(3).await;
    for shard in 0..SHARDS {
        cluster.place(shard, 0);
    }
    let (agent, ada) = (principal("bank", Role::Agent, &[]), principal("ada", Role::Listener, &[]));
    let id = subscribe(cluster.hub(2), &ada, None).await;
    let mut listener = Listener::attach(cluster.hub(2), &ada, &id, None).await;
    let mut connection = cluster.hub(1).connect_agent(64);
    let start = HubCommand::Start {
        body: format!(r#"{{"summary_normal":"Work.","requested_by":"{}"}}"#, people()[1]).into(),
        idempotency_key: None,
    };
    connection.submit(&agent, start).unwrap();
    let Some(AgentMessage::Reply(_, HubReply::SessionStarted { session_id: session })) = connection.recv().await
    else {
        panic!("not started")
    };
    for missed in [false, true, false] {
        connection.submit(&agent, ask(&session)).unwrap();
        let Some(AgentMessage::Reply(_, HubReply::QuestionOpened { reply_token: token, .. })) =
            connection.recv().await
        else {
            panic!("not asked")
        };
        while !listener.next_text().await.contains("awaiting.confirmation") {}
        let (from, to) = (0, 2);
        cluster.nodes[from].router.stop(1, ShardStop::GivenAway);
        cluster.start_shard(1, to);
        if !missed {
            cluster.announce(1, to);
        }
        assert_eq!(cluster.hub(2).ask(ada.clone(), answer(&id, &token, "accept")).await, HubReply::Done);
        cluster.announce(1, to);
        let Some(AgentMessage::Notice(AgentNotice::QuestionResolved { token: resolved, outcome, .. })) =
            connection.recv().await
        else {
            panic!("no notice")
        };
        assert_eq!((resolved, outcome.by.as_str()), (token, "reply"), "missed: {missed}");
        cluster.move_shard(1, to, from, ShardStop::GivenAway);
    }
    // There is no second notice.
    connection.submit(&agent, follow(&session)).unwrap();
    let next = connection.recv().await;
    assert!(matches!(next, Some(AgentMessage::Reply(_, HubReply::SessionFollowed { .. }))), "{next:?}");
}

#[tokio::test]
async fn agents_of_a_lost_node_are_disconnected_at_the_owner() {
    let cluster = Cluster::start(2).await;
    for shard in 0..SHARDS {
        cluster.place(shard, 0);
    }
    let (agent, ada) = (principal("bank", Role::Agent, &[]), principal("ada", Role::Listener, &[]));
    let id = subscribe(cluster.hub(0), &ada, None).await;
    let mut listener = Listener::attach(cluster.hub(0), &ada, &id, None).await;
    let mut connection = cluster.hub(1).connect_agent(64);
    let body = format!(r#"{{"summary_normal":"Work.","requested_by":"{}","lease_seconds":1}}"#, people()[1]);
    connection.submit(&agent, HubCommand::Start { body: body.into(), idempotency_key: None }).unwrap();
    let started = connection.recv().await;
    assert!(matches!(started, Some(AgentMessage::Reply(_, HubReply::SessionStarted { .. }))), "{started:?}");
    assert_eq!(cluster.nodes[0].router.connected_nodes(), ["node-1"]);
    // The node is lost. Its agent still holds its own connection to it.
    for shard in 0..SHARDS {
        cluster.nodes[1].router.stop(shard, ShardStop::Lost);
    }
    while !listener.next_text().await.contains("session.errored") {}
    assert!(cluster.nodes[0].router.connected_nodes().is_empty());
}

#[tokio::test]
async fn a_node_that_stops_closes_only_its_own_listeners() {
    let cluster = Cluster::start(2).await;
    for shard in 0..SHARDS {
        cluster.place(shard, 0);
    }
    let (ada, ben) = (principal("ada", Role::Listener, &[]), principal("ben", Role::Listener, &[]));
    let (of_ada, of_ben) = (subscribe(cluster.hub(0), &ada, None).await, subscribe(cluster.hub(1), &ben, None).await);
    let mut here = Listener::attach(cluster.hub(0), &ada, &of_ada, None).await;
    let mut there = Listener::attach(cluster.hub(1), &ben, &of_ben, None).await;
    assert_eq!(cluster.hub(1).ask(Principal::local(), HubCommand::ShutDown).await, HubReply::Done);
    assert!(there.next_text().await.contains("producer_shutdown"));
    assert!(there.next().await.is_none());
    let session = start(cluster.hub(1), &principal("bank", Role::Agent, &[]), "anybody").await;
    assert!(here.next_text().await.contains(session.as_str()));
}

#[tokio::test]
async fn removed_tokens_are_refused_by_the_owner_and_by_later_owners() {
    let cluster = Cluster::start(2).await;
    for shard in 0..SHARDS {
        cluster.place(shard, 0);
    }
    let agent = principal("bank", Role::Agent, &[]);
    let session = start(cluster.hub(1), &agent, &people()[1]).await;
    let set = HubCommand::SetValidTokens { principals: vec![principal("post", Role::Agent, &[])] };
    for hub in [cluster.hub(1), cluster.hub(0)] {
        let reply = hub.ask(agent.clone(), follow(&session)).await;
        assert!(matches!(reply, HubReply::SessionFollowed { .. }), "only the owner refuses: {reply:?}");
        assert_eq!(hub.ask(Principal::local(), set.clone()).await, HubReply::Done);
    }
    assert_eq!(cluster.hub(1).ask(agent.clone(), follow(&session)).await, HubReply::Forbidden);
    cluster.move_shard(1, 0, 1, ShardStop::GivenAway);
    assert_eq!(cluster.hub(0).ask(agent, follow(&session)).await, HubReply::Forbidden);
}

#[tokio::test]
async fn frames_are_sent_once_to_each_node() {
    // Two listeners with the same terms are in one delivery group, so their node gets each frame once.
    let cluster = Cluster::start(2).await;
    for shard in 0..SHARDS {
        cluster.place(shard, 0);
    }
    let agent = principal("bank", Role::Agent, &[]);
    let session = start(cluster.hub(1), &agent, &people()[1]).await;
    let mut listeners = Vec::new();
    for name in ["ada", "ben", "eve"] {
        let listener = principal(name, Role::Listener, &[]);
        let id = subscribe(cluster.hub(1), &listener, None).await;
        listeners.push(Listener::attach(cluster.hub(1), &listener, &id, None).await);
    }
    output(cluster.hub(1), &agent, &session, "hello").await;
    let mut bodies: Vec<Arc<hub::delivery::Frame>> = Vec::new();
    for listener in &mut listeners {
        loop {
            let frame = listener.next().await.unwrap();
            if frame.json().contains("hello") {
                bodies.push(frame.shared_body().cloned().unwrap());
                break;
            }
        }
    }
    // Shared frames are the same value in memory.
    assert!(bodies.windows(2).all(|pair| Arc::ptr_eq(&pair[0], &pair[1])));
}
