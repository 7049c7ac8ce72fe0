//! Hubs with several shards, on one node or on several.

use std::sync::Arc;
use std::time::Duration;

use aaep::event::Producer;
use aaep::message::Message;
use aaep::{SessionId, SubscriptionId};
use hub::command::{HubCommand, HubReply};
use hub::delivery::{DeliveryLimits, Frame};
use hub::{AgentNaming, Core, HubLimits, Principal, Role, Scope, Shard, ShardMap};
use journal::{Journal, JournalEntry, JournalError, MemoryJournal};
use seal::{Digest, Random, SystemRandom, UnixMillis};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use wire::HubHandle;
use wire::cluster::{ClusterKey, RouterLimits, ShardRouter};
use wire::fanout::ListenerSink;

/// How long to wait before a test fails. Even a slow machine needs much less.
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_mins(2);
pub(crate) const SHARDS: u16 = 3;

pub(crate) fn principal(name: &str, role: Role, scope: &[&str]) -> Principal {
    let mut granted = Scope::default();
    for entry in scope {
        granted.add(entry).unwrap();
    }
    Principal {
        name: name.into(),
        role,
        agent_id: (role == Role::Agent).then(|| name.into()),
        scope: Arc::new(granted),
        is_local: false,
        token_digest: Some(Digest::of(name.as_bytes())),
        expires_at: None,
        sign_in: None,
        naming: AgentNaming::SelfDeclared,
    }
}

/// Returns a person of each shard.
pub(crate) fn people() -> Vec<String> {
    let map = ShardMap::new(SHARDS);
    let of =
        |shard| (0..1_000).map(|n| format!("p{n}")).find(|person| map.of_person(person) == shard).unwrap();
    (0..SHARDS).map(of).collect()
}

pub(crate) fn start_body(person: &str) -> String {
    format!(
        r#"{{"summary_normal":"Work.","requested_by":"user:{person}","localization_hints":{{"primary_language":"en"}}}}"#
    )
}

pub(crate) async fn start(hub: &HubHandle, agent: &Principal, person: &str) -> SessionId {
    let command = HubCommand::Start { body: start_body(person).into(), idempotency_key: None };
    let reply = hub.ask(agent.clone(), command).await;
    let HubReply::SessionStarted { session_id } = reply else { panic!("{reply:?}") };
    session_id
}

pub(crate) async fn subscribe(hub: &HubHandle, listener: &Principal, after: Option<&str>) -> SubscriptionId {
    let after = after.map(|after| format!(r#","sayso":{{"after":"{after}"}}"#)).unwrap_or_default();
    let request = format!(
        r#"{{"type":"subscription.request","aaep_version":"1.0.0","subscriber_id":"test","capabilities":{{"supports_confirmation_reply":true{after}}}}}"#
    );
    let reply = hub.ask(listener.clone(), HubCommand::subscribe(Message::parse(&request))).await;
    let HubReply::Subscribed { accepted, .. } = reply else { panic!("{reply:?}") };
    accepted.subscription_id
}

/// Creates the core of one shard.
pub(crate) fn core(shard: Shard, journal: Box<dyn Journal>, limits: &HubLimits) -> Core {
    let random = |bytes: &mut [u8]| SystemRandom.fill(bytes);
    Core::in_shard(shard, journal, Producer::new("hub"), *limits, random, wire::unix_now()).unwrap()
}

/// Starts all shards on one node.
pub(crate) fn start_on_one_node(
    limits: &HubLimits,
    journals: impl Iterator<Item = Box<dyn Journal>>,
) -> HubHandle {
    let shards = Shard::all_of(ShardMap::new(SHARDS)).into_iter();
    let cores = shards.zip(journals).map(|(shard, journal)| core(shard, journal, limits)).collect();
    HubHandle::start_shards(cores, DeliveryLimits::default(), wire::unix_now, Arc::default()).unwrap()
}

pub(crate) fn memory_journals() -> impl Iterator<Item = Box<dyn Journal>> {
    (0..SHARDS).map(|_| Box::new(MemoryJournal::default()) as Box<dyn Journal>)
}

/// Limits that a busy machine keeps.
pub(crate) fn patient_limits() -> RouterLimits {
    RouterLimits {
        hold_time: TEST_TIMEOUT,
        connect_timeout: TEST_TIMEOUT,
        idle_timeout: TEST_TIMEOUT,
        max_backoff: Duration::from_millis(50),
        ..RouterLimits::default()
    }
}

/// A node of a cluster.
pub(crate) struct Node {
    pub(crate) name: String,
    pub(crate) router: ShardRouter,
    pub(crate) hub: HubHandle,
    pub(crate) address: String,
    server: AbortHandle,
}

impl Drop for Node {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Node {
    pub(crate) async fn start(name: &str) -> Self {
        Self::start_with(name, [7; 32], patient_limits()).await
    }

    pub(crate) async fn start_with(name: &str, secret: [u8; 32], limits: RouterLimits) -> Self {
        let key = ClusterKey::from_secret(&secret).unwrap();
        let map = ShardMap::new(SHARDS);
        let (router, hub) =
            ShardRouter::start(name, key, map, limits, DeliveryLimits::default(), Arc::default()).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let server = tokio::spawn(router.clone().serve(listener)).abort_handle();
        Self { name: name.to_owned(), router, hub, address, server }
    }

    pub(crate) fn run_at(&self, shard: u16, owner: &Node) {
        self.router.run_at(shard, &owner.name, &owner.address);
    }
}

/// Waits until a condition holds.
pub(crate) async fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let wait = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(TEST_TIMEOUT, wait).await.unwrap_or_else(|_| panic!("{what}"));
}

/// A connected listener.
pub(crate) struct Listener {
    pub(crate) frames: mpsc::Receiver<Arc<Frame>>,
    pub(crate) last_id: Option<String>,
}

impl Listener {
    pub(crate) async fn attach(
        hub: &HubHandle,
        principal: &Principal,
        id: &SubscriptionId,
        after: Option<&str>,
    ) -> Self {
        let listener = hub.new_listener_id();
        let (sender, frames) = mpsc::channel(1_000);
        let last_event_id = after.map(str::to_owned);
        let attach = HubCommand::Attach { subscription: id.clone(), last_event_id, listener };
        assert_eq!(hub.ask(principal.clone(), attach).await, HubReply::Done);
        hub.connect_listener(listener, ListenerSink::Channel(sender));
        Self { frames, last_id: None }
    }

    /// Returns the next frame with an event or a message.
    pub(crate) async fn next(&mut self) -> Option<Arc<Frame>> {
        loop {
            let frame =
                tokio::time::timeout(TEST_TIMEOUT, self.frames.recv()).await.expect("no frame came")?;
            if let Some(id) = frame.id() {
                self.last_id = Some(id.to_owned());
            }
            if !frame.json().is_empty() {
                return Some(frame);
            }
        }
    }

    pub(crate) async fn next_text(&mut self) -> String {
        self.next().await.expect("the connection ended").json().to_owned()
    }
}

/// Returns the member `summary_normal`, or the type of a message without one.
pub(crate) fn summary(json: &str) -> String {
    let value: serde_json::Value = serde_json::from_str(json).unwrap();
    value["summary_normal"].as_str().or(value["type"].as_str()).unwrap().to_owned()
}


pub(crate) fn testing_question() -> String {
    r#"{"action":"Pay 5 euros","consequence":"The money leaves your account.","risk_level":"high","irreversible":true,"default_decision":"reject","allowed_replies":["accept","reject"],"timeout_seconds":60,"summary_normal":"Pay?"}"#.to_owned()
}

pub(crate) async fn output(hub: &HubHandle, agent: &Principal, session: &SessionId, text: &str) {
    let command = HubCommand::StreamOutput {
        session: session.clone(),
        output_id: Some(format!("out_{}", text.chars().take(8).collect::<String>())),
        producer: None,
        text: text.to_owned(),
        language: None,
        content_type: None,
        coalesce_hint: None,
        complete: true,
        agent_reports_next_state: true,
        idempotency_key: None,
    };
    let reply = hub.ask(agent.clone(), command).await;
    assert!(matches!(reply, HubReply::EventsPublished { .. }), "{reply:?}");
}

/// Returns the session and the text of the next output. Skips changes of state.
pub(crate) async fn next_chunk(listener: &mut Listener) -> (String, String) {
    loop {
        let json = listener.next_text().await;
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        let session = value["session_id"].as_str().unwrap_or_else(|| panic!("not an event: {json}"));
        if let Some(text) = value["chunk"].as_str() {
            return (session.to_owned(), text.to_owned());
        }
        assert!(json.contains("state.changed"), "{json}");
    }
}

/// A journal that accepts no subscription.
pub(crate) struct NoSubscriptions(pub(crate) MemoryJournal);

impl Journal for NoSubscriptions {
    fn commit(&mut self, batch: &[JournalEntry<'_>]) -> Result<(), JournalError> {
        if batch.iter().any(|entry| matches!(entry, JournalEntry::SubscriptionOpened { .. })) {
            return Err(JournalError::Full);
        }
        self.0.commit(batch)
    }

    fn restore(&mut self) -> Result<journal::stored::LiveState, JournalError> {
        self.0.restore()
    }

    fn events(
        &mut self,
        after: journal::Position,
        limit: usize,
    ) -> Result<Vec<journal::stored::StoredEvent>, JournalError> {
        self.0.events(after, limit)
    }

    fn session_events(
        &mut self,
        session: &str,
        after: journal::Position,
        limit: usize,
    ) -> Result<Vec<journal::stored::StoredEvent>, JournalError> {
        self.0.session_events(session, after, limit)
    }

    fn event_position(&mut self, event_id: &str) -> Result<Option<journal::Position>, JournalError> {
        self.0.event_position(event_id)
    }

    fn session(&mut self, id: &str) -> Result<Option<journal::stored::StoredSession>, JournalError> {
        self.0.session(id)
    }

    fn stored_response(
        &mut self,
        principal: &str,
        key: &str,
    ) -> Result<Option<journal::stored::StoredResponse>, JournalError> {
        self.0.stored_response(principal, key)
    }

    fn decision(&mut self, token: &str) -> Result<Option<journal::stored::StoredDecision>, JournalError> {
        self.0.decision(token)
    }

    fn trim(
        &mut self,
        retention: &journal::Retention,
        now: UnixMillis,
    ) -> Result<journal::TrimReport, JournalError> {
        self.0.trim(retention, now)
    }

    fn pause_checkpoints(&mut self) -> Result<(), JournalError> {
        self.0.pause_checkpoints()
    }

    fn resume_checkpoints(&mut self) -> Result<(), JournalError> {
        self.0.resume_checkpoints()
    }

    fn size_bytes(&mut self) -> Result<u64, JournalError> {
        self.0.size_bytes()
    }
}
