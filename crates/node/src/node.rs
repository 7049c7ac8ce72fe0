//! The node: its sessions, and the operations that its own tasks share.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use asp::session::{AspSession, Effect};
use asp::state_machine::State;
use asp::{AgentCard, AgentUri, SessionId, StoredStep};
use client::{Backoff, TrustRoots};
use journal::{Journal, Retention};
use tokio::sync::{Notify, Semaphore, watch};
use wire::unix_now;

use crate::NodeError;
use crate::address_limiter::AddressLimiter;
use crate::catch_up::CatchUps;
use crate::dpop::ProofVerifier;
use crate::ended_sessions::EndedSessionCache;
use crate::identity::Identity;
use crate::journal_writer::{Batch, JournalWriter};
use crate::limits::NodeLimits;
use crate::metrics::NodeCounters;
use crate::peer_client::{PeerClient, PeerTransport};
use crate::peers::Peers;
use crate::person::Person;
use crate::policy::Policy;
use crate::records::{NodeRecord, SessionInfo, SessionRecord};
use crate::session::{SessionHandle, SessionState};
use crate::timers::Timers;
use crate::view::describe_ended;

/// Maximum number of cards that are fetched at the same time for agents that are not pinned.
const MAX_CARD_FETCHES: usize = 8;
/// Maximum number of ended sessions that are rebuilt at the same time. It is 1 because rebuilding takes processor time from
/// open sessions.
const MAX_REBUILDS: usize = 1;
/// The time between two searches for sessions that are old enough to be deleted.
const TRIM_INTERVAL: Duration = Duration::from_hours(1);
/// The pause between two steps of one deletion, in which the journal can be written.
const TRIM_PAUSE: Duration = Duration::from_millis(20);
/// The delays between attempts to continue a restored session.
const RESUME_BACKOFF: Backoff = Backoff::new(Duration::from_millis(200), Duration::from_secs(30));

/// The configuration of a node.
#[derive(Debug)]
pub struct NodeConfig {
    /// The agent's keys and card.
    pub identity: Identity,
    /// The pinned cards of peers.
    pub pinned: Vec<AgentCard>,
    /// Whether the card of an unknown agent is pinned on first contact.
    pub trusts_on_first_use: bool,
    /// Whether the node stores the cards of other agents and answers searches.
    pub is_registry: bool,
    /// Who may do what, and what a person is asked about.
    pub policy: Policy,
    /// The limits.
    pub limits: NodeLimits,
    /// The certificate authorities that are trusted for TLS connections to other nodes.
    pub trust_roots: TrustRoots,
    /// How messages are delivered to other nodes.
    pub peer_transport: PeerTransport,
    /// Whether MessagePack is offered in invitations, and such an offer accepted.
    pub uses_message_pack: bool,
    /// Whether clients use TLS, to this node or to a proxy in front of it.
    pub clients_use_tls: bool,
}

/// One agent's node.
#[derive(Debug)]
pub struct Node {
    pub(crate) config: Arc<NodeConfig>,
    /// The agent's current card.
    pub(crate) card: Arc<AgentCard>,
    pub(crate) client: PeerClient,
    pub(crate) verifier: ProofVerifier,
    pub(crate) journal: JournalWriter,
    pub(crate) person: Option<Person>,
    pub(crate) timers: Timers,
    /// Limits how many cards of unknown agents are fetched at the same time.
    pub(crate) card_fetches: Semaphore,
    /// Limits how many sessions fetch the messages that they have lost at the same time.
    pub(crate) catch_ups: CatchUps,
    /// Notified after a trial call to a peer that did not answer, for sessions that wait for its circuit breaker.
    pub(crate) contact_made: Notify,
    /// Limits how many cards are registered.
    pub(crate) registrations: AddressLimiter,
    pub(crate) counters: NodeCounters,
    /// The policy in force, which a reload replaces.
    policy: RwLock<Arc<Policy>>,
    peers: Mutex<Peers>,
    sessions: Mutex<HashMap<SessionId, Arc<SessionHandle>>>,
    ended: Mutex<EndedSessionCache>,
    rebuilds: Semaphore,
    /// Open sessions that cannot be restored, and why. Nothing happens in them, and above all nothing is accepted.
    quarantined: Mutex<BTreeMap<SessionId, String>>,
    /// Held while a session is created, so that two copies of an invitation create one session.
    pub(crate) creation: tokio::sync::Mutex<()>,
    /// Held while a dispute is resolved, so that it is resolved once.
    pub(crate) resolving: tokio::sync::Mutex<()>,
    /// Notified when a dispute is resolved.
    pub(crate) disputes_changed: Notify,
    stopping: watch::Sender<bool>,
}

impl Node {
    /// Restores a node from its journal. [`Self::run`] then does its work.
    pub fn open(
        config: NodeConfig,
        journal: Box<dyn Journal>,
        person: Option<Person>,
    ) -> Result<Arc<Self>, NodeError> {
        let now = unix_now();
        let (journal, stored) = JournalWriter::start(journal)?;
        let mut peers = Peers::new(&config).map_err(|error| NodeError::Malformed(error.to_string()))?;
        for record in &stored.node_records {
            peers.apply(record, &config.limits);
        }
        let node = Self {
            card: Arc::new(config.identity.card.clone()),
            client: PeerClient::new(
                &config.identity,
                config.trust_roots.clone(),
                &config.limits,
                config.peer_transport,
            ),
            verifier: ProofVerifier::new(config.limits.remembered_proofs, now),
            journal,
            person,
            timers: Timers::default(),
            card_fetches: Semaphore::new(MAX_CARD_FETCHES),
            catch_ups: CatchUps::default(),
            contact_made: Notify::new(),
            registrations: AddressLimiter::default(),
            counters: NodeCounters::default(),
            policy: RwLock::new(Arc::new(config.policy.clone())),
            peers: Mutex::new(peers),
            sessions: Mutex::default(),
            ended: Mutex::default(),
            rebuilds: Semaphore::new(MAX_REBUILDS),
            quarantined: Mutex::default(),
            creation: tokio::sync::Mutex::new(()),
            resolving: tokio::sync::Mutex::new(()),
            disputes_changed: Notify::new(),
            stopping: watch::Sender::new(false),
            config: Arc::new(config),
        };
        for (id, reason) in stored.unreadable_sessions {
            node.quarantine(id, reason);
        }
        for session in stored.open_sessions {
            match SessionState::restore(&node.config, &session) {
                Ok(state) => node.insert(&SessionHandle::new(session.info, state, now)),
                Err(error) => node.quarantine(session.info.id, error.to_string()),
            }
        }
        Ok(Arc::new(node))
    }

    /// Does the node's own work until the node stops: delivers messages, handles expired timers, and waits for the answers of
    /// people. Work that was interrupted by a restart continues.
    pub async fn run(self: &Arc<Self>) {
        let mut records = self.peers().pinning_events(unix_now());
        records.extend(self.peers().escrow.new_deposits(&self.policy(), unix_now()));
        if let Err(error) = self.append_node_records(records).await {
            tracing::error!(target: "sayso::log", kind = "asp.failed", %error);
        }
        self.record_endorsements().await;
        for handle in self.handles() {
            // A session that waits for the journal or the hub does not hold up the others.
            let node = self.clone();
            tokio::spawn(async move { node.resume_until_done(&handle).await });
        }
        self.resume_dispute_questions();
        let node = self.clone();
        tokio::spawn(async move {
            let mut stopping = std::pin::pin!(node.stopped());
            tokio::select! {
                () = node.delete_old_sessions() => {}
                () = &mut stopping => {}
            }
        });
        let mut stopping = std::pin::pin!(self.stopped());
        loop {
            tokio::select! {
                expired = self.timers.next_expired() => {
                    for id in expired {
                        if let Some(handle) = self.find_open(id) {
                            // One session that waits for the hub does not hold up the deadlines of the others.
                            let node = self.clone();
                            tokio::spawn(async move { node.handle_expired(&handle).await });
                        }
                    }
                }
                () = &mut stopping => return,
            }
        }
    }

    /// Replaces the policy and the cards that the operator pinned. The streams of agents whose cards are no longer accepted end.
    /// The limits, the circuit breaker of known peers and the constants of the trust computation stay as they were at the start.
    pub async fn reload(&self, policy: Policy, pinned: Vec<AgentCard>) -> Result<(), NodeError> {
        let policy = Arc::new(policy);
        *self.policy.write().unwrap_or_else(PoisonError::into_inner) = policy.clone();
        let records = {
            let mut peers = self.peers();
            peers.replace_pinned(&policy, pinned, &self.config.limits);
            let mut records = peers.pinning_events(unix_now());
            records.extend(peers.escrow.new_deposits(&policy, unix_now()));
            records
        };
        for handle in self.handles() {
            handle.wake();
        }
        self.append_node_records(records).await?;
        self.record_endorsements().await;
        Ok(())
    }

    /// Deletes the records of sessions that ended, once they are old enough. A deletion that fails is repeated at the next interval.
    async fn delete_old_sessions(&self) {
        let max_age = self.config.limits.ended_session_retention.as_millis();
        let max_event_age_ms = Some(i64::try_from(max_age).unwrap_or(i64::MAX));
        let retention = Retention { max_event_age_ms, ..Retention::default() };
        loop {
            let has_more = self.journal.trim(retention, unix_now()).await.unwrap_or_else(|error| {
                tracing::error!(target: "sayso::log", kind = "asp.failed", %error);
                false
            });
            tokio::time::sleep(if has_more { TRIM_PAUSE } else { TRIM_INTERVAL }).await;
        }
    }

    /// Records the endorsements in the policy, after the cards that they depend on.
    async fn record_endorsements(&self) {
        let records = self.peers().endorsement_events(unix_now());
        if let Err(error) = self.append_node_records(records).await {
            tracing::error!(target: "sayso::log", kind = "asp.failed", %error);
        }
    }

    /// Returns the policy in force.
    pub(crate) fn policy(&self) -> Arc<Policy> {
        self.policy.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Keeps the journal file unchanged while it is copied, or ends that.
    pub async fn pause_checkpoints(&self, is_paused: bool) -> Result<(), NodeError> {
        self.journal.pause_checkpoints(is_paused).await.map_err(NodeError::from)
    }

    /// Returns whether the node is stopping.
    pub(crate) fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }

    /// Makes [`Self::run`] and all deliveries end. Stored messages are delivered after the next start.
    pub fn stop(&self) {
        self.stopping.send_replace(true);
    }

    /// Completes when the node stops.
    pub(crate) fn stopped(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut stopping = self.stopping.subscribe();
        async move {
            let _ = stopping.wait_for(|is_stopping| *is_stopping).await.map(drop);
        }
    }

    /// Continues a restored session, and tries again if the journal cannot be written.
    async fn resume_until_done(self: &Arc<Self>, handle: &Arc<SessionHandle>) {
        let mut backoff = RESUME_BACKOFF;
        let mut stopping = std::pin::pin!(self.stopped());
        while let Err(error) = self.resume(handle).await {
            Self::log_failure(handle.info.id, Err(error));
            tokio::select! {
                () = tokio::time::sleep(backoff.delay()) => backoff.grow(),
                () = &mut stopping => return,
            }
        }
    }

    /// Continues a restored session. What was done by an earlier attempt is not done again.
    async fn resume(self: &Arc<Self>, handle: &Arc<SessionHandle>) -> Result<(), NodeError> {
        let mut state = self.lock(handle).await?;
        self.expire(handle, &mut state).await?;
        if state.state() == State::Executing {
            self.peers().escrow.reserve(&handle.info, state.participant.session());
        }
        self.advance(handle, &mut state).await?;
        self.finish_change(handle, &mut state).await?;
        self.resume_narration(handle, &state).await;
        match state.consent.clone() {
            Some(request) => self.await_consent(handle, request),
            None => self.resume_escalation(handle, &mut state).await,
        }
        Ok(())
    }

    async fn handle_expired(self: &Arc<Self>, handle: &Arc<SessionHandle>) {
        let result = async {
            let mut state = self.lock(handle).await?;
            self.expire(handle, &mut state).await?;
            self.finish_change(handle, &mut state).await
        };
        if result.await.is_err() {
            // Tries again in a second.
            self.timers.set(handle.info.id, Some(unix_now().saturating_add(1_000)));
        }
    }

    pub(crate) fn log_failure(session: SessionId, result: Result<(), NodeError>) {
        if let Err(error) = result {
            tracing::error!(target: "sayso::log", kind = "asp.failed", session = %session, %error);
        }
    }

    /// Locks a session. If a write failed, the session is read from the journal again.
    pub(crate) async fn lock<'h>(
        &self,
        handle: &'h SessionHandle,
    ) -> Result<tokio::sync::MutexGuard<'h, SessionState>, NodeError> {
        let mut state = handle.state.lock().await;
        if state.needs_reload {
            let stored = self.journal.read(handle.info.id).await?.ok_or(NodeError::UnknownSession)?;
            let is_delivering = state.is_delivering;
            *state = SessionState { is_delivering, ..SessionState::restore(&self.config, &stored)? };
        }
        Ok(state)
    }

    /// Makes facts durable, then applies them. After an error, the session is read from the journal again.
    pub(crate) async fn commit(&self, state: &mut SessionState, batch: Batch) -> Result<(), NodeError> {
        let node_records = batch.node_records.clone();
        if let Err(error) = self.journal.append(batch, unix_now()).await {
            state.needs_reload = true;
            return Err(error.into());
        }
        self.apply_node_records(&node_records);
        Ok(())
    }

    /// Makes facts about the node or its peers durable, then applies them.
    pub(crate) async fn append_node_records(
        &self,
        records: Vec<crate::records::NodeRecord>,
    ) -> Result<(), NodeError> {
        self.journal.append(Batch::of_node(records.clone()), unix_now()).await?;
        self.apply_node_records(&records);
        Ok(())
    }

    pub(crate) fn apply_node_records(&self, records: &[crate::records::NodeRecord]) {
        if records.is_empty() {
            return;
        }
        let mut peers = self.peers();
        for record in records {
            peers.apply(record, &self.config.limits);
        }
    }

    /// Handles timers that have expired.
    pub(crate) async fn expire(
        self: &Arc<Self>,
        handle: &Arc<SessionHandle>,
        state: &mut SessionState,
    ) -> Result<(), NodeError> {
        let now = unix_now();
        if state.next_deadline().is_none_or(|deadline| deadline > now) {
            return Ok(());
        }
        // If the session ends now, this also records the effects of messages whose delivery is not settled, because nothing is
        // recorded after the end.
        let mut transitions: Vec<_> = state.participant.unsettled_transitions().cloned().collect();
        let expired = state.participant.handle_timeout(now);
        let has_ended = state.state().is_terminal();
        if !has_ended {
            transitions.clear();
        }
        let is_overdue = expired.iter().flat_map(|transition| &transition.effects).any(|effect| {
            matches!(effect, Effect::TimerExpired { awaiting_response: Some(role), .. } if *role == handle.info.role)
        });
        transitions.extend(expired);
        let node_records = self.effects_until_end(&handle.info, state, &transitions, now);
        let mut batch = Batch::of_session(
            handle.info.id,
            vec![SessionRecord::Step(StoredStep::TimersExpired { at: now })],
        );
        batch.node_records = node_records;
        self.commit(state, batch).await?;
        handle.report_change(state, now);
        // The end of the session is announced separately.
        if let Some(awaited) = state.participant.session().and_then(AspSession::awaited_response)
            && is_overdue
        {
            self.narrate_overdue(handle, awaited.message_id);
        }
        Ok(())
    }

    /// Updates the deadline of a session, starts the delivery of its messages, and ends it in the journal if nothing is left to
    /// do.
    pub(crate) async fn finish_change(
        self: &Arc<Self>,
        handle: &Arc<SessionHandle>,
        state: &mut SessionState,
    ) -> Result<(), NodeError> {
        let now = unix_now();
        self.timers.set(handle.info.id, state.next_deadline());
        handle.report_change(state, now);
        if state.has_undelivered() {
            self.start_delivery(handle, state);
            return Ok(());
        }
        if state.state().is_terminal() && state.consent.is_none() && !state.is_ended {
            // A message that could not be delivered still counts here.
            let undelivered: Vec<_> = state.participant.unsettled_transitions().cloned().collect();
            let mut node_records = self.effects_until_end(&handle.info, state, &undelivered, now);
            node_records.push(NodeRecord::SessionEnded {
                id: handle.info.id,
                summary: describe_ended(handle, state),
            });
            let batch =
                Batch { session: Some(handle.info.id), node_records, ends_session: true, ..Batch::default() };
            self.commit(state, batch).await?;
            state.is_ended = true;
            self.timers.set(handle.info.id, None);
            self.keep_ended(handle, state);
            self.sessions().remove(&handle.info.id);
            handle.report_change(state, now);
            self.client.end_session(handle.info.id);
            self.peers().escrow.forget_promise(handle.info.id);
            self.finish_narration(handle, state);
        }
        Ok(())
    }

    /// Returns a session, open or ended.
    pub(crate) async fn session(&self, id: SessionId) -> Result<Arc<SessionHandle>, NodeError> {
        if let Some(handle) = self.find_open(id) {
            return Ok(handle);
        }
        let find_ended = || self.ended.lock().unwrap_or_else(PoisonError::into_inner).get(id);
        if let Some(handle) = find_ended() {
            return Ok(handle);
        }
        if let Some(reason) = self.quarantined().get(&id) {
            return Err(NodeError::DamagedSession(id, reason.clone()));
        }
        // A new invitation does not wait until an old session is rebuilt.
        if !self.journal.contains(id).await? {
            return Err(NodeError::UnknownSession);
        }
        let _rebuild = self.rebuilds.acquire().await.map_err(|_| NodeError::Stopping)?;
        if let Some(handle) = find_ended() {
            return Ok(handle);
        }
        let stored = self.journal.read(id).await?.ok_or(NodeError::UnknownSession)?;
        if !stored.is_ended {
            // The session began while the journal was read.
            return self.find_open(id).ok_or(NodeError::UnknownSession);
        }
        let config = self.config.clone();
        let restored = tokio::task::spawn_blocking(move || {
            SessionState::restore(&config, &stored).map(|state| (stored.info, state))
        });
        self.counters.rebuilt.add(1);
        let (info, state) = restored.await.map_err(|_| NodeError::Stopping)??;
        let bytes = state.message_bytes();
        let handle = SessionHandle::new(info, state, unix_now());
        self.keep(handle.clone(), bytes);
        Ok(handle)
    }

    /// Caches an ended session for clients that still read it.
    fn keep_ended(&self, handle: &Arc<SessionHandle>, state: &SessionState) {
        self.keep(handle.clone(), state.message_bytes());
    }

    fn keep(&self, handle: Arc<SessionHandle>, bytes: usize) {
        let max_sessions = self.config.limits.kept_ended_sessions;
        self.ended.lock().unwrap_or_else(PoisonError::into_inner).insert(handle, bytes, max_sessions);
    }

    /// Quarantines a session that cannot be restored, and logs that.
    fn quarantine(&self, id: SessionId, reason: String) {
        tracing::error!(
            target: "sayso::log",
            kind = "asp.quarantined",
            session = %id,
            error = %reason,
            "A stored session cannot be restored. Nothing happens in it until its data or keys are restored."
        );
        self.quarantined().insert(id, reason);
    }

    /// Returns the open sessions that cannot be restored, and why.
    pub(crate) fn quarantined(&self) -> MutexGuard<'_, BTreeMap<SessionId, String>> {
        self.quarantined.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn find_open(&self, id: SessionId) -> Option<Arc<SessionHandle>> {
        self.sessions().get(&id).cloned()
    }

    pub(crate) fn insert(&self, handle: &Arc<SessionHandle>) {
        self.sessions().insert(handle.info.id, handle.clone());
    }

    /// Returns all open sessions, the oldest first.
    pub(crate) fn handles(&self) -> Vec<Arc<SessionHandle>> {
        let mut handles: Vec<_> = self.sessions().values().cloned().collect();
        handles.sort_unstable_by_key(|handle| handle.info.id);
        handles
    }

    /// Checks whether one more session may be opened with this peer.
    pub(crate) fn check_capacity(&self, peer: &AgentUri) -> Result<(), NodeError> {
        let sessions = self.sessions();
        if sessions.len() >= self.config.limits.sessions {
            return Err(NodeError::LimitReached("the node has too many open sessions"));
        }
        let with_peer = sessions.values().filter(|handle| handle.info.peer.agent_id() == peer).count();
        if with_peer >= self.config.limits.sessions_per_peer {
            return Err(NodeError::LimitReached("there are too many open sessions with this agent"));
        }
        Ok(())
    }

    pub(crate) fn peers(&self) -> MutexGuard<'_, Peers> {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<SessionId, Arc<SessionHandle>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether the operator has revoked the card of this agent. The node sends nothing to it.
    pub(crate) fn is_revoked(&self, peer: &AgentCard) -> bool {
        self.peers().is_revoked(peer.agent_id())
    }

    /// Records whether a peer has answered, and wakes the sessions that wait for that.
    pub(crate) fn record_contact(&self, agent: &AgentUri, has_answered: bool) {
        let is_awaited = self.peers().record_contact(agent, has_answered, unix_now());
        if is_awaited {
            self.contact_made.notify_waiters();
        }
    }

    /// Returns the agent's own card.
    pub fn card(&self) -> &AgentCard {
        &self.card
    }

    /// Returns the data of a new session.
    pub(crate) fn new_session_info(
        &self,
        id: SessionId,
        peer: Arc<AgentCard>,
        role: asp::state_machine::Role,
        subject: String,
    ) -> SessionInfo {
        SessionInfo { id, own: self.card.clone(), peer, role, subject }
    }
}
