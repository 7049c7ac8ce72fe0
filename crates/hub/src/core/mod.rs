//! The hub as a state machine, without a clock, disk or sockets of its own.
//!
//! [`Core::run_turn`] takes the waiting requests and the current time. It handles each request and stages the
//! effects. Then it writes them to the journal in one batch, applies them, and returns the outputs. If the batch
//! cannot be written, no part of the turn is applied. Instead, the state is rebuilt from the journal, and every sender
//! gets an error. [`Core::next_deadline`] says when a turn is due without a request.

mod agent_connections;
mod agent_liveness;
mod agent_manifests;
mod attach;
mod delivery_groups;
mod handoffs;
mod hub_messages;
mod id_generator;
mod journal_recovery;
mod late_join;
mod notifications;
mod output;
mod pending_waits;
mod producers;
mod publish;
mod questions;
mod quotas;
mod rate_limit;
mod restore;
mod retention;
mod sayso_capabilities;
mod scratch;
mod sessions;
mod shaper_limit;
mod subscriber_messages;
mod subscription;
mod supplied_states;
mod supplied_summary;
mod telemetry;
mod token_registry;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::RandomState;
use std::sync::Arc;

use aaep::check::Validator;
use aaep::consent::{QuestionRegistry, StagedChange};
use aaep::event::{Event, Producer};
use aaep::negotiate::Offer;
use aaep::{ReplyToken, SessionId, SubscriptionId};
use journal::Journal;
use rustc_hash::FxHashMap;
use seal::{Random, UnixMillis};

use crate::command::{
    AgentNotice, HubCommand, HubReply, MalformedRequest, QuestionOutcome, Request, RequestId, TurnOutput,
    Unavailable,
};
use crate::delivery::Frame;
use crate::owned_entry::OwnedEntry;
use crate::shards::{CountGuard, CountKind, CountRequest};
use crate::telemetry::{HubMetrics, LogEvent};
use crate::{AgentConnectionId, HubLimits, Principal, Shard};
pub(crate) use sessions::{read_producer, requested_by};
pub(crate) use supplied_summary::SuppliedSummary;

use agent_connections::AgentConnections;
use agent_manifests::{ManifestChange, ManifestRegistry};
use attach::AttachPoint;
use delivery_groups::DeliveryGroups;
use handoffs::HandoffRegistry;
use pending_waits::PendingWaits;
pub(crate) use quotas::RateLimit;
pub(crate) use rate_limit::PerMinuteLimiter;
use scratch::{RandomPool, ScratchBuffers};
use subscription::LiveSubscription;
use token_registry::TokenRegistry;

/// An event and its frame, which listeners receive after the event is stored.
#[derive(Clone, Debug)]
pub(crate) struct CommittedEvent {
    pub(crate) event: Event,
    pub(crate) frame: Arc<Frame>,
}

impl AsRef<Event> for CommittedEvent {
    fn as_ref(&self) -> &Event {
        &self.event
    }
}

/// The state of the hub.
pub struct Core {
    journal: Box<dyn Journal>,
    random: RandomPool,
    limits: HubLimits,
    offer: Offer,
    /// The language of sessions that state none.
    default_language: Box<str>,
    validator: Validator,
    sessions: FxHashMap<SessionId, sessions::LiveSession>,
    subscriptions: HashMap<SubscriptionId, LiveSubscription>,
    tokens: TokenRegistry,
    manifests: ManifestRegistry,
    /// Sessions of agents that ran in the previous process, and so no longer exist.
    orphans: HashSet<SessionId>,
    /// The subscription of each connected listener.
    listeners: HashMap<crate::ListenerId, SubscriptionId>,
    delivery_groups: DeliveryGroups,
    questions: QuestionRegistry<RandomState>,
    handoffs: HandoffRegistry,
    /// Which shard of the hub this is.
    shard: Shard,
    /// The ending of the ids that this shard creates.
    id_suffix: Box<str>,
    /// Counts the open questions, if there are several shards.
    question_counts: HashMap<ReplyToken, CountGuard>,
    pending_waits: PendingWaits,
    agent_connections: AgentConnections,
    /// One entry per open session, at or before the end of its lease. Renewing a lease does not update the entry; when
    /// the entry is due, the check reads the new end of the lease.
    lease_checks: BTreeSet<(UnixMillis, SessionId)>,
    /// The log position of the last event.
    last_position: u64,
    staged: StagedTurn,
    /// Requests that wait for the next turn: first those that were deferred, then those for which the last turn had no
    /// room.
    queued_requests: Vec<Request>,
    /// Subscriptions without a connection, by the time at which they expire.
    resume_deadlines: BTreeSet<(UnixMillis, SubscriptionId)>,
    /// When the tokens and browser sign-ins of open subscriptions expire.
    credential_deadlines: BTreeSet<(UnixMillis, SubscriptionId)>,
    /// Whether the state must be rebuilt from the journal before the next turn, because a write failed.
    needs_rebuild: bool,
    /// The time before which the hub does nothing on its own, because a write failed.
    retry_at: UnixMillis,
    /// Whether the last turn could not be written.
    last_write_failed: bool,
    counters: Arc<HubMetrics>,
    /// Events up to this log position may have been deleted.
    trimmed_up_to: u64,
    /// When the hub next looks for records to delete.
    next_trim_at: UnixMillis,
    scratch: ScratchBuffers,
}

/// The language of sessions that state none, unless [`Core::set_default_language`] sets another.
pub const DEFAULT_LANGUAGE: &str = "en";

/// How long the hub waits after a failed write before it acts on its own again, in milliseconds.
const WRITE_RETRY_BACKOFF_MS: i64 = 1_000;

/// The facts about the current turn that request handlers need.
#[derive(Clone, Copy, Debug)]
struct TurnContext {
    now: UnixMillis,
    /// The agent connection that the request arrived on.
    connection: Option<AgentConnectionId>,
}

/// Marks a request about a question that already has a staged change. The next turn handles the request, after that
/// change is stored.
struct DeferToNextTurn;

/// The effects of a turn, applied once they are stored.
#[derive(Default)]
struct StagedTurn {
    writes: Vec<OwnedEntry>,
    /// Size of the staged events, and of the replies to be stored under an idempotency key.
    bytes: usize,
    /// The value of `bytes` before the current request.
    bytes_before_request: usize,
    /// Actions to perform after the commit, in order.
    post_commit: Vec<PostCommit>,
    /// Questions that were resolved in this turn, for agents that wait for the answer or follow the session later in
    /// the same turn.
    resolved: Vec<(ReplyToken, SessionId, QuestionOutcome)>,
    /// Replies other than those to pending waits.
    replies: Vec<(RequestId, HubReply)>,
    /// Notices for agent connections.
    notices: Vec<(AgentConnectionId, AgentNotice)>,
    /// Sessions that ended.
    ended_sessions: Vec<SessionId>,
}

/// An action to perform after the turn is stored.
enum PostCommit {
    /// Deliver an event to the listeners in scope.
    Event { committed: Arc<CommittedEvent>, agent: Arc<str>, person: Option<Arc<str>> },
    /// Apply a change to the questions.
    ApplyQuestionChange(StagedChange),
    /// Apply a change to the manifests of agents.
    ApplyManifest(ManifestChange),
    /// Return this `TurnOutput` unchanged.
    Emit(TurnOutput),
    /// Complete an attach, with the frames that the listener missed.
    Attach(attach::PendingAttach),
    /// Move the listener of a subscription to the delivery group of its new terms.
    MoveListener(SubscriptionId),
}

impl Core {
    /// Creates the only shard of a hub, with the state that is stored in the journal.
    pub fn new(
        journal: Box<dyn Journal>,
        producer: Producer,
        limits: HubLimits,
        random: impl FnMut(&mut [u8]) + Send + 'static,
        now: UnixMillis,
    ) -> Result<Self, journal::JournalError> {
        Self::in_shard(Shard::default(), journal, producer, limits, random, now)
    }

    /// Creates one shard of a hub, with the state that is stored in its journal.
    pub fn in_shard(
        shard: Shard,
        journal: Box<dyn Journal>,
        producer: Producer,
        limits: HubLimits,
        random: impl FnMut(&mut [u8]) + Send + 'static,
        now: UnixMillis,
    ) -> Result<Self, journal::JournalError> {
        let mut core = Self {
            journal,
            random: RandomPool::new(random),
            limits,
            offer: Offer::new(producer),
            default_language: DEFAULT_LANGUAGE.into(),
            validator: Validator::new(),
            sessions: FxHashMap::default(),
            subscriptions: HashMap::new(),
            tokens: TokenRegistry::default(),
            manifests: ManifestRegistry::default(),
            orphans: HashSet::new(),
            listeners: HashMap::new(),
            delivery_groups: DeliveryGroups::new(limits.shaping, shard.index),
            questions: QuestionRegistry::new(limits.questions, RandomState::new()),
            handoffs: HandoffRegistry::default(),
            id_suffix: shard.id_suffix().into(),
            question_counts: HashMap::new(),
            pending_waits: PendingWaits::default(),
            agent_connections: AgentConnections::default(),
            lease_checks: BTreeSet::new(),
            last_position: 0,
            scratch: ScratchBuffers::default(),
            staged: StagedTurn::default(),
            queued_requests: Vec::new(),
            resume_deadlines: BTreeSet::new(),
            credential_deadlines: BTreeSet::new(),
            needs_rebuild: false,
            retry_at: UnixMillis::MIN,
            last_write_failed: false,
            counters: Arc::default(),
            trimmed_up_to: 0,
            next_trim_at: now,
            shard,
        };
        if core.restore(now)? {
            core.void_consents(now)?;
        }
        Ok(core)
    }

    /// Announces the URI of the hub's own manifest to listeners from now on, and sends the signed manifest to those that
    /// require one (C-F2).
    pub fn set_hub_manifest(&mut self, uri: Option<String>, signed: String) {
        self.offer.manifest_uri = uri;
        self.offer.signed_manifest = Some(signed);
    }

    /// Sets the language of sessions that state none. The default is [`DEFAULT_LANGUAGE`].
    pub fn set_default_language(&mut self, language: &str) {
        self.default_language = language.into();
    }

    /// Returns which shard of the hub this is.
    pub fn shard(&self) -> &Shard {
        &self.shard
    }

    /// Returns the limits.
    pub fn limits(&self) -> &HubLimits {
        &self.limits
    }

    /// Runs a turn. If the turn is full, the remaining requests are handled in the next one; see
    /// [`has_queued_requests`](Self::has_queued_requests).
    pub fn run_turn(
        &mut self,
        requests: impl IntoIterator<Item = Request>,
        now: UnixMillis,
    ) -> Vec<TurnOutput> {
        let mut requests = std::mem::take(&mut self.queued_requests).into_iter().chain(requests);
        if self.needs_rebuild
            && let Err(error) = self.rebuild(now)
        {
            self.retry_at = now.saturating_add(WRITE_RETRY_BACKOFF_MS);
            let reason = Unavailable::RebuildFailed(Arc::new(error));
            let mut outputs = Vec::new();
            for request in requests {
                if let HubCommand::DisconnectAgent { connection } = request.command {
                    self.agent_connections.remove_connection(connection);
                }
                if request.command.expects_reply() {
                    outputs.push(TurnOutput::Reply(request.id, HubReply::Unavailable(reason.clone())));
                }
            }
            return outputs;
        }
        let context = TurnContext { now, connection: None };
        let mut deferred = Vec::new();
        while !self.is_turn_full()
            && let Some(request) = requests.next()
        {
            deferred.extend(self.handle_or_defer(request, &context));
        }
        self.queued_requests = deferred.into_iter().chain(requests).collect();
        self.run_timers(&context);
        self.commit_turn(&context)
    }

    /// Whether requests wait for the next turn, because the last one was full or because they were deferred. The next turn
    /// is then due at once.
    pub fn has_queued_requests(&self) -> bool {
        !self.queued_requests.is_empty()
    }

    /// Takes back the list of outputs after they were delivered, so that the next turn can reuse it.
    pub(crate) fn recycle_outputs(&mut self, mut outputs: Vec<TurnOutput>) {
        outputs.clear();
        self.scratch.outputs = outputs;
    }

    /// Returns when the next turn is due if no request arrives.
    pub fn next_deadline(&self) -> Option<UnixMillis> {
        if self.has_queued_requests() {
            return Some(UnixMillis::MIN);
        }
        let deadlines = [
            self.questions.next_deadline(),
            self.handoffs.next_deadline(),
            self.delivery_groups.next_deadline(),
            self.pending_waits.next_deadline(),
            self.next_trim(),
            self.lease_checks.first().map(|(at, _)| *at),
            self.resume_deadlines.first().map(|(until, _)| *until),
            self.credential_deadlines.first().map(|(until, _)| *until),
        ];
        let earliest = deadlines.into_iter().flatten().min();
        let retry = (self.needs_rebuild || self.last_write_failed).then_some(self.retry_at);
        earliest.map(|at| at.max(self.retry_at)).into_iter().chain(retry).min()
    }

    /// Handles a request and stages its reply. Returns the request if it is deferred.
    fn handle_or_defer(&mut self, request: Request, context: &TurnContext) -> Option<Request> {
        match self.handle(request.id, &request.principal, &request.command, context) {
            Ok(Some(reply)) => self.staged.replies.push((request.id, reply)),
            Ok(None) => {}
            Err(DeferToNextTurn) => return Some(request),
        }
        None
    }

    /// Handles a request. Returns `None` if the reply comes later or the sender expects none.
    fn handle(
        &mut self,
        id: RequestId,
        principal: &Principal,
        command: &HubCommand,
        context: &TurnContext,
    ) -> Result<Option<HubReply>, DeferToNextTurn> {
        if !self.tokens.accepts(principal, context.now) {
            return Ok(Some(HubReply::Forbidden));
        }
        Ok(Some(match command {
            HubCommand::SetValidTokens { principals } => self.set_valid_tokens(principals, context),
            HubCommand::EndSignIn { token_digest, id } => self.end_sign_in(token_digest, *id, context),
            HubCommand::Subscribe { request } => self.subscribe(principal, request.as_deref(), context),
            HubCommand::AddSubscription { accepted } => self.add_subscription(principal, accepted, context),
            HubCommand::Attach { subscription, last_event_id, listener } => {
                let start = last_event_id.clone().map_or(AttachPoint::Now, AttachPoint::Event);
                self.attach(principal, subscription, start, *listener, context)
            }
            HubCommand::AttachFromStart { subscription, listener } => {
                self.attach(principal, subscription, AttachPoint::Start, *listener, context)
            }
            HubCommand::Detach { listener, is_too_slow } => {
                self.detach(*listener, *is_too_slow, context);
                return Ok(None);
            }
            HubCommand::ShutDown => {
                self.shut_down();
                HubReply::Done
            }
            HubCommand::PauseCheckpoints => done_or_unavailable(self.journal.pause_checkpoints()),
            HubCommand::ResumeCheckpoints => done_or_unavailable(self.journal.resume_checkpoints()),
            HubCommand::SendMessage { message } => self.handle_message(principal, None, message, context)?,
            HubCommand::SendMessageOnSubscription { subscription, message } => {
                self.handle_message(principal, Some(subscription), message, context)?
            }
            HubCommand::Start { body, idempotency_key: key } => {
                self.start_session(principal, body, key.as_deref(), false, context)
            }
            HubCommand::StartWithForeignParent { body, idempotency_key: key } => {
                self.start_session(principal, body, key.as_deref(), true, context)
            }
            HubCommand::CheckParent { session } => self.check_parent(principal, session),
            HubCommand::FindResponse { body, idempotency_key: key } => {
                self.find_start_response(principal, body, key)
            }
            HubCommand::PublishManifest { document } => {
                self.publish_manifest_of_agent(principal, document, context)
            }
            HubCommand::DeleteManifest => self.delete_manifest_of_agent(principal),
            HubCommand::ReplicateManifest { agent, document } => {
                self.replicate_manifest(agent, document.as_deref())
            }
            HubCommand::FindManifest { file_name } => self.find_manifest(file_name),
            HubCommand::Publish { session, events, idempotency_key: key } => {
                self.publish(principal, session, events, key.as_deref(), context)
            }
            HubCommand::StreamOutput {
                session,
                output_id,
                producer,
                text,
                language,
                content_type,
                coalesce_hint,
                complete,
                agent_reports_next_state,
                idempotency_key: key,
            } => {
                let (id, language, producer) =
                    (output_id.as_deref(), language.as_deref(), producer.as_deref());
                let (content_type, complete, agent_reports_next_state) =
                    (content_type.as_deref(), *complete, *agent_reports_next_state);
                let request = output::OutputRequest {
                    id,
                    producer,
                    text,
                    language,
                    content_type,
                    coalesce_hint: coalesce_hint.as_deref(),
                    complete,
                    agent_reports_next_state,
                };
                self.stream_output(principal, session, &request, key.as_deref(), context)
            }
            HubCommand::Ask { session, body, is_clarification, idempotency_key: key } => {
                self.ask(principal, session, body, *is_clarification, key.as_deref(), context)
            }
            HubCommand::HandOff { session, body, idempotency_key: key } => {
                self.hand_off(principal, session, body, key.as_deref(), context)
            }
            HubCommand::Invite { session, body, idempotency_key: key } => {
                self.invite(principal, session, body, key.as_deref(), context)
            }
            HubCommand::Join { session, body, idempotency_key: key } => {
                self.join(principal, session, body, key.as_deref(), context)
            }
            HubCommand::Wait { session, token, until } => {
                return Ok(self.wait(id, principal, session, token, *until, context));
            }
            HubCommand::Withdraw { session, token } => {
                return self.withdraw(id, principal, session, token, context);
            }
            HubCommand::CancelWait { request } => {
                self.cancel_wait(*request);
                return Ok(None);
            }
            // The next arm refuses nested `OnConnection` commands, which are meaningless and could overflow the stack.
            HubCommand::OnConnection { connection, command }
                if !matches!(**command, HubCommand::OnConnection { .. }) =>
            {
                return self.handle_on_connection(id, principal, *connection, command, context);
            }
            HubCommand::OnConnection { .. } => MalformedRequest::NestedConnection.into(),
            HubCommand::Follow { session } => self.follow_reply(principal, session),
            HubCommand::DisconnectAgent { connection } => {
                self.disconnect_agent(*connection, context);
                return Ok(None);
            }
        }))
    }

    /// Handles all deadlines that have passed.
    fn run_timers(&mut self, context: &TurnContext) {
        let change = self.questions.handle_deadlines(context.now);
        self.stage_question_change(change, context);
        self.expire_handoffs(context);
        self.close_expired_subscriptions(context);
        self.close_unauthorized_subscriptions(context);
        self.detach_over_limit(context);
        self.expire_leases(context);
        self.expire_waits(context);
        self.trim(context);
    }

    /// Writes the staged effects, applies them, and returns the outputs.
    fn commit_turn(&mut self, context: &TurnContext) -> Vec<TurnOutput> {
        let mut staged = std::mem::take(&mut self.staged);
        if let Err(error) = self.write_batch(&staged.writes) {
            return self.abort_turn(staged, error, context);
        }
        let mut outputs = std::mem::take(&mut self.scratch.outputs);
        self.record_turn(&staged, &mut outputs);
        self.probe_journal(context, &mut outputs);
        // A listener that attaches in this turn joins only after the turn's events were delivered to the others,
        // because it gets these events as missed frames.
        let mut attaching = Vec::new();
        for action in staged.post_commit.drain(..) {
            match action {
                PostCommit::Event { committed, agent, person } => {
                    self.delivery_groups.publish(
                        &committed,
                        &agent,
                        person.as_deref(),
                        context.now,
                        &mut outputs,
                    );
                }
                PostCommit::ApplyQuestionChange(change) => self.questions.commit(change),
                PostCommit::ApplyManifest(change) => self.apply_manifest(change),
                PostCommit::Emit(output) => outputs.push(output),
                PostCommit::Attach(attach) => attaching.push(attach),
                PostCommit::MoveListener(subscription) => self.move_listener(&subscription, &mut outputs),
            }
        }
        self.delivery_groups.flush_due(self.last_position, context.now, &mut outputs);
        for attach in attaching {
            self.complete_attach(attach, context, &mut outputs);
        }
        outputs.extend(staged.replies.drain(..).map(|(id, reply)| TurnOutput::Reply(id, reply)));
        self.push_wait_replies(&mut outputs);
        outputs.extend(
            staged.notices.drain(..).map(|(connection, notice)| TurnOutput::Notify(connection, notice)),
        );
        for session in staged.ended_sessions.drain(..) {
            self.agent_connections.remove_session(&session);
        }
        for write in staged.writes.drain(..) {
            if let OwnedEntry::Event { body, .. } = write {
                self.scratch.recycle_text(body);
            }
        }
        staged.resolved.clear();
        (staged.bytes, staged.bytes_before_request) = (0, 0);
        // The next turn reuses the buffers.
        self.staged = staged;
        outputs
    }

    /// Writes one batch to the journal.
    fn write_batch(&mut self, writes: &[OwnedEntry]) -> Result<(), journal::JournalError> {
        match writes {
            [] => Ok(()),
            [entry] => self.journal.commit(&[entry.as_entry()]),
            entries => self.journal.commit(&entries.iter().map(OwnedEntry::as_entry).collect::<Vec<_>>()),
        }
    }

    /// Discards a turn that was not written. Senders may repeat their requests.
    fn abort_turn(
        &mut self,
        staged: StagedTurn,
        error: journal::JournalError,
        context: &TurnContext,
    ) -> Vec<TurnOutput> {
        let mut outputs = Vec::new();
        for action in staged.post_commit {
            match action {
                PostCommit::ApplyQuestionChange(change) => self.questions.abandon(change),
                // These connections are already removed from `listeners`, so they are closed here.
                PostCommit::Emit(close @ TurnOutput::Close(_)) => outputs.push(close),
                _ => {}
            }
        }
        let log_event = LogEvent::WriteFailed(error.to_string());
        let reason = Unavailable::WriteFailed(Arc::new(error));
        let unavailable = |(id, _)| TurnOutput::Reply(id, HubReply::Unavailable(reason.clone()));
        outputs.extend(staged.replies.into_iter().map(unavailable));
        for request in self.pending_waits.take_all() {
            outputs.push(TurnOutput::Reply(request, HubReply::Unavailable(reason.clone())));
        }
        // Clients whose connections are closed reconnect and resume from the stored events.
        outputs.extend(std::mem::take(&mut self.listeners).into_keys().map(TurnOutput::Close));
        outputs.push(TurnOutput::Log(log_event));
        self.retry_at = context.now.saturating_add(WRITE_RETRY_BACKOFF_MS);
        self.next_trim_at = context.now;
        self.needs_rebuild = true;
        self.last_write_failed = true;
        // If this fails, `needs_rebuild` stays set and the next turn tries again.
        if let Err(error) = self.rebuild(context.now) {
            outputs.push(TurnOutput::Log(LogEvent::RebuildFailed(error.to_string())));
        }
        outputs
    }

    /// Rebuilds the state from the journal. Agent connections stay open.
    fn rebuild(&mut self, now: UnixMillis) -> Result<(), journal::JournalError> {
        self.restore(now)?;
        self.agent_connections.retain_sessions(|session| self.sessions.contains_key(session));
        Ok(())
    }

    /// Adds an open item to the counts that all shards share. Dropping the guard removes it again. With only one shard, returns
    /// no guard, because the shard itself knows all items.
    fn count_with_other_shards(
        &self,
        requests: &[CountRequest<'_>],
    ) -> Result<Option<CountGuard>, CountKind> {
        if self.shard.map.is_single() { Ok(None) } else { self.shard.limits.acquire(requests).map(Some) }
    }

    fn fill_random(&mut self, bytes: &mut [u8]) {
        self.random.fill(bytes);
    }
}

fn done_or_unavailable(outcome: Result<(), journal::JournalError>) -> HubReply {
    outcome.map_or_else(HubReply::from, |()| HubReply::Done)
}

impl std::fmt::Debug for Core {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Core")
            .field("sessions", &self.sessions.len())
            .field("subscriptions", &self.subscriptions.len())
            .field("listeners", &self.listeners.len())
            .field("delivery_groups", &self.delivery_groups.len())
            .field("pending_waits", &self.pending_waits.len())
            .field("agent_connections", &self.agent_connections.len())
            .field("resume_deadlines", &self.resume_deadlines.len())
            .field("credential_deadlines", &self.credential_deadlines.len())
            .field("questions", &self.questions.questions().count())
            .field("position", &self.last_position)
            .finish_non_exhaustive()
    }
}
