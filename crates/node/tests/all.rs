//! Restored sessions while the journal cannot be written, with a node in this process.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test reports a failure by panicking"
)]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use asp::{AgentCard, AgentEndpoints, AgentProfile, AgentUri, ConformanceLevel, SessionId};
use client::TrustRoots;
use journal::stored::{LiveState, StoredDecision, StoredEvent, StoredResponse, StoredSession};
use journal::{Journal, JournalEntry, JournalError, MemoryJournal, Position, Retention, TrimReport};
use node::{ConsentPolicy, Identity, InvitationRequest, Node, NodeConfig, PeerTransport, Policy};
use seal::json::RawJson;
use seal::{AgentKeys, SystemRandom, Timestamp, UnixMillis};

/// A journal in memory that outlives the node, and whose next commits fail.
#[derive(Clone, Default)]
struct SharedJournal(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    journal: MemoryJournal,
    failures_left: usize,
    failed: usize,
}

impl SharedJournal {
    fn with<T>(&self, call: impl FnOnce(&mut MemoryJournal) -> T) -> T {
        call(&mut self.0.lock().unwrap().journal)
    }

    fn fail_next(&self, count: usize) {
        self.0.lock().unwrap().failures_left = count;
    }

    fn failed(&self) -> usize {
        self.0.lock().unwrap().failed
    }

    /// Returns the stored facts of a session.
    fn records(&self, session: SessionId) -> Vec<String> {
        let events = self.with(|journal| journal.session_events(&session.to_string(), Position::START, 1000));
        events.unwrap().into_iter().map(|event| String::from_utf8(event.body).unwrap()).collect()
    }
}

impl Journal for SharedJournal {
    fn commit(&mut self, batch: &[JournalEntry<'_>]) -> Result<(), JournalError> {
        let mut state = self.0.lock().unwrap();
        if state.failures_left > 0 {
            state.failures_left -= 1;
            state.failed += 1;
            return Err(JournalError::Full);
        }
        state.journal.commit(batch)
    }

    fn restore(&mut self) -> Result<LiveState, JournalError> {
        self.with(MemoryJournal::restore)
    }

    fn events(&mut self, after: Position, limit: usize) -> Result<Vec<StoredEvent>, JournalError> {
        self.with(|journal| journal.events(after, limit))
    }

    fn session_events(
        &mut self,
        session: &str,
        after: Position,
        limit: usize,
    ) -> Result<Vec<StoredEvent>, JournalError> {
        self.with(|journal| journal.session_events(session, after, limit))
    }

    fn event_position(&mut self, event_id: &str) -> Result<Option<Position>, JournalError> {
        self.with(|journal| journal.event_position(event_id))
    }

    fn session(&mut self, id: &str) -> Result<Option<StoredSession>, JournalError> {
        self.with(|journal| journal.session(id))
    }

    fn stored_response(
        &mut self,
        principal: &str,
        key: &str,
    ) -> Result<Option<StoredResponse>, JournalError> {
        self.with(|journal| journal.stored_response(principal, key))
    }

    fn decision(&mut self, token: &str) -> Result<Option<StoredDecision>, JournalError> {
        self.with(|journal| journal.decision(token))
    }

    fn trim(&mut self, retention: &Retention, now: UnixMillis) -> Result<TrimReport, JournalError> {
        self.with(|journal| journal.trim(retention, now))
    }

    fn pause_checkpoints(&mut self) -> Result<(), JournalError> {
        self.with(MemoryJournal::pause_checkpoints)
    }

    fn resume_checkpoints(&mut self) -> Result<(), JournalError> {
        self.with(MemoryJournal::resume_checkpoints)
    }

    fn size_bytes(&mut self) -> Result<u64, JournalError> {
        self.with(MemoryJournal::size_bytes)
    }
}

/// An agent whose address nobody answers.
fn identity(name: &str) -> Identity {
    let keys = AgentKeys::generate(&mut SystemRandom);
    let profile = AgentProfile {
        agent_id: AgentUri::parse(&format!("agent://127.0.0.1:1/{name}")).unwrap(),
        name: name.to_owned(),
        description: String::new(),
        organization: "org:test".to_owned(),
        capabilities: Vec::new(),
        level: ConformanceLevel::Full,
        endpoints: AgentEndpoints::default(),
        max_transaction_value: None,
        currency: None,
    };
    Identity { card: AgentCard::sign(&profile, &keys).unwrap(), keys, previous: Vec::new() }
}

fn open(own: &Identity, peer: &Identity, journal: &SharedJournal) -> Arc<Node> {
    let policy = Policy::new(ConsentPolicy::NEVER_ASK);
    let config = NodeConfig {
        identity: own.clone(),
        pinned: vec![peer.card.clone()],
        trusts_on_first_use: false,
        is_registry: false,
        limits: policy.limits.clone(),
        policy,
        trust_roots: TrustRoots::default(),
        peer_transport: PeerTransport::Http,
        uses_message_pack: false,
        clients_use_tls: false,
    };
    Node::open(config, Box::new(journal.clone()), None).unwrap()
}

/// Waits for a change that has no notification.
async fn wait_until(what: &str, is_met: impl Fn() -> bool) {
    let waiting = async {
        while !is_met() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), waiting).await.unwrap_or_else(|_| panic!("no {what}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restored_session_continues_when_the_journal_can_be_written_again() {
    let (own, peer, journal) = (identity("own"), identity("peer"), SharedJournal::default());
    let node = open(&own, &peer, &journal);
    let in_a_second = UnixMillis::from(std::time::SystemTime::now()).saturating_add(1000);
    let invitation = InvitationRequest {
        peer: peer.card.agent_id().to_string(),
        subject: "a talk".to_owned(),
        terms: RawJson::parse("{}").unwrap(),
        valid_until: Timestamp::from_unix_millis(in_a_second),
    };
    let session = node.invite(invitation).await.unwrap();
    node.stop();
    drop(node);
    wait_until("deadline", || UnixMillis::from(std::time::SystemTime::now()) > in_a_second).await;
    // After the start, the first writes fail: those of the node itself, and the timeout of the session.
    let node = open(&own, &peer, &journal);
    journal.fail_next(4);
    let has_expired = || journal.records(session).iter().any(|record| record.contains("timers_expired"));
    assert!(!has_expired());
    let running = tokio::spawn({
        let node = node.clone();
        async move { node.run().await }
    });
    wait_until("timeout", has_expired).await;
    assert_eq!(journal.failed(), 4);
    let expirations =
        journal.records(session).iter().filter(|record| record.contains("timers_expired")).count();
    assert_eq!(expirations, 1);
    node.stop();
    running.await.unwrap();
}

/// Stores an ended session with one record for each time.
fn store_ended(journal: &SharedJournal, id: SessionId, times: &[UnixMillis]) {
    let (id, mut journal) = (id.to_string(), journal.clone());
    let mut position = journal.restore().unwrap().last_position;
    let opened = JournalEntry::SessionOpened {
        id: &id,
        agent: "agent://127.0.0.1:1/peer",
        principal: "asp-node",
        lease_expires_at: UnixMillis::MAX,
        record: b"{}",
    };
    journal.commit(&[opened]).unwrap();
    for (number, at) in times.iter().enumerate() {
        position = position.next();
        let event_id = format!("{id}-{number}");
        let body = b"{}";
        let event = JournalEntry::Event {
            position,
            session: &id,
            event_id: &event_id,
            at: *at,
            is_critical: false,
            body,
        };
        journal.commit(&[event]).unwrap();
    }
    let at = *times.last().unwrap();
    journal.commit(&[JournalEntry::SessionEnded { id: &id, at }]).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_records_of_old_ended_sessions_are_deleted() {
    let (own, peer, journal) = (identity("own"), identity("peer"), SharedJournal::default());
    let now = UnixMillis::from(std::time::SystemTime::now());
    let days_ago = |days: i64| now.saturating_sub(days * 86_400_000);
    let [old, recent] = [(); 2].map(|()| SessionId::generate(now, &mut SystemRandom));
    store_ended(&journal, old, &[days_ago(400), days_ago(366)]);
    store_ended(&journal, recent, &[days_ago(364), days_ago(363)]);
    let node = open(&own, &peer, &journal);
    let invitation = InvitationRequest {
        peer: peer.card.agent_id().to_string(),
        subject: "a talk".to_owned(),
        terms: RawJson::parse("{}").unwrap(),
        valid_until: Timestamp::from_unix_millis(now.saturating_add(3_600_000)),
    };
    let live = node.invite(invitation).await.unwrap();
    node.stop();
    drop(node);
    let count = |session: &str| journal.clone().session_events(session, Position::START, 1000).unwrap().len();
    let live_records = count(&live.to_string());
    let node = open(&own, &peer, &journal);
    let running = tokio::spawn({
        let node = node.clone();
        async move { node.run().await }
    });
    let exists = |id: SessionId| journal.clone().session(&id.to_string()).unwrap().is_some();
    wait_until("deletion", || !exists(old)).await;
    assert_eq!(count(&old.to_string()), 0);
    assert_eq!((exists(recent), count(&recent.to_string())), (true, 2));
    assert_eq!(count(&live.to_string()), live_records, "an open session keeps everything");
    // What the node knows about its peers is kept.
    assert!(count("asp-node") > 0);
    node.stop();
    running.await.unwrap();
}
