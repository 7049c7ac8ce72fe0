//! Catching up: fetches the messages that this node has lost from the peer, for example after an old backup was restored.
//!
//! Every fetched message is verified, and stored like any other. Messages of this node's agent carry its own signature. A message of
//! the peer is confirmed if one of this node's own messages follows it in the chain, because this node would not have built on a
//! message that it had not accepted. All others are checked as if they had just arrived. What this node refuses or has rolled back is
//! not adopted.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use asp::message::{AuthenticatedMessage, Authenticator, Body, PinnedCards};
use asp::session::{IncomingMessage, ReceiverChecks, Transition};
use asp::state_machine::State;
use asp::{AgentUri, LEAVING_RESERVE_BYTES, MessageId, RejectCode, StoredStep};
use seal::Digest;
use seal::json::Tape;
use wire::unix_now;

use crate::NodeError;
use crate::journal_writer::Batch;
use crate::node::Node;
use crate::peer_client::PeerError;
use crate::records::SessionRecord;
use crate::session::{RefusalNotice, SessionHandle, SessionState};
use crate::trust_events::MAX_MESSAGE_AGE_MS;

/// How long a peer waits before it sends a message again that this node cannot handle before it has caught up.
const RETRY_AFTER: Duration = Duration::from_secs(5);
/// How long one attempt to catch up may take.
const MAX_DURATION: Duration = Duration::from_mins(1);
/// Maximum number of sessions that catch up at the same time, each with another peer.
const MAX_CATCH_UPS: usize = 8;

/// The peers with which a session catches up now. One peer cannot take the places of the others.
#[derive(Debug, Default)]
pub(crate) struct CatchUps(Mutex<HashSet<AgentUri>>);

/// A place among the [`CatchUps`], until it is dropped.
struct CatchUpPlace<'c> {
    catch_ups: &'c CatchUps,
    peer: AgentUri,
}

impl CatchUps {
    /// Takes a place. Returns `None` if a session with this peer catches up already, or too many others do.
    fn begin(&self, peer: &AgentUri) -> Option<CatchUpPlace<'_>> {
        let mut peers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let has_place = peers.len() < MAX_CATCH_UPS && peers.insert(peer.clone());
        has_place.then(|| CatchUpPlace { catch_ups: self, peer: peer.clone() })
    }
}

impl Drop for CatchUpPlace<'_> {
    fn drop(&mut self) {
        self.catch_ups.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.peer);
    }
}

/// What is known about the messages of a peer's chain while this node catches up.
struct CatchUp {
    /// The hash of the message up to which the node catches up.
    target: Digest,
    /// When this attempt ends.
    deadline: Instant,
    /// A message that one of our own messages follows.
    confirmed: Option<Digest>,
    /// A message that no message of ours follows.
    unconfirmed: Option<Digest>,
}

/// What became of a page of messages.
enum PageOutcome {
    /// The messages are adopted.
    Adopted,
    /// The node refuses the message with this hash, unless one of our messages on a later page confirms it.
    NeedsConfirmation(Digest),
    /// The message after the adopted ones cannot be adopted.
    Stuck(String),
}

/// What was adopted from a page.
#[derive(Default)]
struct Adoption {
    steps: Vec<StoredStep>,
    transitions: Vec<Transition>,
    /// Our messages that are not in the peer's chain.
    superseded: Vec<Body>,
    received: Vec<asp::Performative>,
    /// Our messages that this node has sent and no longer has, because they were rolled back.
    rolled_back: HashSet<MessageId>,
}

impl Node {
    /// Fetches the messages that the peer has and we have lost, ours included, until our chain has the hash `target`. Returns
    /// whether it has it now. Fails if the peer does not answer, so that the caller tries again.
    pub(crate) async fn catch_up(
        self: &Arc<Self>,
        handle: &Arc<SessionHandle>,
        target: Digest,
    ) -> Result<bool, NodeError> {
        let before = {
            let state = self.lock(handle).await?;
            if has_hash(&state, &target) {
                return Ok(true);
            }
            if state.state().is_terminal() {
                return Ok(false);
            }
            state.message_count()
        };
        let busy = || NodeError::catching_up("the node is already fetching them", Duration::from_secs(1));
        let _session = handle.catching_up.try_lock().map_err(|_| busy())?;
        let _of_peer = self.catch_ups.begin(handle.info.peer.agent_id()).ok_or_else(busy)?;
        let deadline = Instant::now() + MAX_DURATION;
        let mut catch_up = CatchUp { target, deadline, confirmed: None, unconfirmed: None };
        let result = self.catch_up_by_pages(handle, &mut catch_up).await;
        let mut state = self.lock(handle).await?;
        let adopted = state.message_count().saturating_sub(before);
        if adopted > 0 {
            tracing::warn!(target: "sayso::log", kind = "asp.caught_up", session = %handle.info.id, messages = adopted);
            self.narrate_latest(handle, &state);
        }
        self.expire(handle, &mut state).await?;
        if matches!(result, Ok(true)) {
            self.advance(handle, &mut state).await?;
        }
        self.finish_change(handle, &mut state).await?;
        result
    }

    async fn catch_up_by_pages(
        self: &Arc<Self>,
        handle: &Arc<SessionHandle>,
        catch_up: &mut CatchUp,
    ) -> Result<bool, NodeError> {
        loop {
            let position = {
                let state = self.lock(handle).await?;
                if has_hash(&state, &catch_up.target) {
                    return Ok(true);
                }
                if state.state().is_terminal() {
                    return Ok(false);
                }
                state.settled_count()
            };
            let page = self.fetch_page(handle, position, catch_up.deadline).await?;
            if page.is_empty() {
                return Ok(false);
            }
            let mut state = self.lock(handle).await?;
            if state.settled_count() != position {
                // The session has gone on in the meantime.
                continue;
            }
            let outcome = self.adopt_page(handle, &mut state, &page, catch_up).await?;
            drop(state);
            match outcome {
                PageOutcome::Adopted => {}
                PageOutcome::NeedsConfirmation(hash) => {
                    let last = page.last().map_or(hash, |message| message.hash);
                    if self.is_confirmed_later(handle, position + page.len(), last, catch_up.deadline).await?
                    {
                        catch_up.confirmed = Some(hash);
                    } else {
                        catch_up.unconfirmed = Some(hash);
                    }
                }
                PageOutcome::Stuck(reason) => {
                    tracing::warn!(target: "sayso::log", kind = "asp.not_caught_up", session = %handle.info.id, %reason);
                    return Ok(false);
                }
            }
        }
    }

    /// Fetches a page of the peer's chain. Returns its messages up to the first one that is not authentic or does not follow the one
    /// before it.
    async fn fetch_page(
        &self,
        handle: &SessionHandle,
        position: usize,
        deadline: Instant,
    ) -> Result<Vec<AuthenticatedMessage>, NodeError> {
        let peer = &handle.info.peer;
        if Instant::now() >= deadline {
            return Err(NodeError::catching_up("it takes too long", RETRY_AFTER));
        }
        if self.is_revoked(peer) {
            return Err(NodeError::catching_up("the card of the other side is revoked", RETRY_AFTER));
        }
        let delay = self.peers().delay_until_allowed(peer.agent_id(), unix_now());
        if let Some(delay) = delay {
            return Err(NodeError::catching_up("the other side does not answer", delay));
        }
        let fetched = self.client.messages(peer, handle.info.id, position).await;
        let has_answered = matches!(fetched, Ok(_) | Err(PeerError::Busy(_) | PeerError::InvalidAnswer(_)));
        self.record_contact(peer.agent_id(), has_answered);
        let texts = fetched.map_err(|error| {
            let delay = if let PeerError::Busy(delay) = &error { *delay } else { None };
            NodeError::catching_up(&error.to_string(), delay.unwrap_or(RETRY_AFTER))
        })?;
        let cards = PinnedCards::new([(*handle.info.peer).clone(), (*handle.info.own).clone()]);
        let mut page: Vec<AuthenticatedMessage> = Vec::with_capacity(texts.len());
        for text in &texts {
            let message = Authenticator::default().authenticate(text, &cards, &self.config.limits.session);
            let Ok(message) = message else { break };
            let previous = page.last().map(|message| message.hash);
            if previous.is_some_and(|previous| previous != message.envelope.integrity.previous_hash) {
                break;
            }
            page.push(message);
        }
        Ok(page)
    }

    /// Returns whether one of our own messages follows this one on a later page of the peer's chain. The peer can sign any number of
    /// its own messages, so the node looks only as far as a session can reach.
    async fn is_confirmed_later(
        &self,
        handle: &SessionHandle,
        mut position: usize,
        mut last: Digest,
        deadline: Instant,
    ) -> Result<bool, NodeError> {
        let limits = &self.config.limits.session;
        let mut bytes_left = limits.max_session_bytes.saturating_add(LEAVING_RESERVE_BYTES);
        while position < limits.max_messages && bytes_left > 0 {
            let page = self.fetch_page(handle, position, deadline).await?;
            if page.first().is_none_or(|first| first.envelope.integrity.previous_hash != last) {
                return Ok(false);
            }
            if page.iter().any(|message| is_own(handle, message)) {
                return Ok(true);
            }
            last = page.last().map_or(last, |message| message.hash);
            position += page.len();
            let bytes: usize = page.iter().map(|message| message.text.len()).sum();
            bytes_left = bytes_left.saturating_sub(bytes);
        }
        Ok(false)
    }

    /// Adopts the messages of a page up to the target, and stores them.
    async fn adopt_page(
        self: &Arc<Self>,
        handle: &Arc<SessionHandle>,
        state: &mut SessionState,
        page: &[AuthenticatedMessage],
        catch_up: &CatchUp,
    ) -> Result<PageOutcome, NodeError> {
        let is_confirming = |message: &AuthenticatedMessage| {
            is_own(handle, message) || catch_up.confirmed == Some(message.hash)
        };
        let confirmed_count = page.iter().rposition(is_confirming).map_or(0, |index| index + 1);
        let mut adoption = Adoption::default();
        if page.iter().any(|message| is_own(handle, message)) {
            adoption.rolled_back = self.rolled_back_messages(handle, state).await?;
        }
        let mut outcome = PageOutcome::Adopted;
        for (index, message) in page.iter().enumerate() {
            let stopped = self.adopt(handle, state, message, index < confirmed_count, &mut adoption);
            if let Err(reason) = stopped {
                let is_undecided = !is_own(handle, message)
                    && index >= confirmed_count
                    && catch_up.unconfirmed != Some(message.hash)
                    && message.envelope.integrity.previous_hash == state.head();
                outcome = if is_undecided {
                    PageOutcome::NeedsConfirmation(message.hash)
                } else {
                    PageOutcome::Stuck(reason)
                };
                break;
            }
            if message.hash == catch_up.target {
                break;
            }
        }
        if adoption.steps.is_empty() {
            return Ok(outcome);
        }
        let Adoption { steps, transitions, superseded, received, .. } = adoption;
        // The effects of these messages on trust and money were lost with them.
        let node_records = self.effects_until_end(&handle.info, state, &transitions, unix_now());
        let records = steps.into_iter().map(SessionRecord::Step).collect();
        let batch = Batch { node_records, ..Batch::of_session(handle.info.id, records) };
        self.commit(state, batch).await?;
        if !superseded.is_empty() {
            self.peers().escrow.forget_promise(handle.info.id);
        }
        for body in superseded {
            state.note_refusal(RefusalNotice::stale(body.performative()));
        }
        for performative in received {
            self.counters.received.increment(performative);
        }
        if state.state() == State::Executing {
            self.peers().escrow.reserve(&handle.info, state.participant.session());
        }
        handle.report_change(state, unix_now());
        Ok(outcome)
    }

    /// Adopts one message in memory, or returns why that is not possible. Then it may have rolled back our unsettled messages, which the
    /// peer's chain does not contain.
    fn adopt(
        &self,
        handle: &SessionHandle,
        state: &mut SessionState,
        message: &AuthenticatedMessage,
        is_confirmed: bool,
        adoption: &mut Adoption,
    ) -> Result<(), String> {
        let (id, text) = (message.envelope.message_id, message.text.clone());
        let mut take_over = |state: &mut SessionState, step: StoredStep, checks| {
            let transitions =
                state.participant.take_over(&step, checks).map_err(|error| error.to_string())?;
            adoption.transitions.extend(transitions);
            adoption.steps.push(step);
            Ok::<(), String>(())
        };
        let unsettled = state.participant.unsettled_messages().next().map(|(id, text)| (id, text.clone()));
        if let Some((first, own)) = unsettled {
            if own == text {
                // The peer has stored it, and we have lost its acknowledgement.
                return take_over(state, StoredStep::Settled { message_id: first }, ReceiverChecks::PASSED);
            }
            if previous_hash_of(&own) != Some(message.envelope.integrity.previous_hash) {
                return Err("the other side's messages do not continue ours".to_owned());
            }
            let step = StoredStep::Superseded { message_id: first };
            let bodies = state.unsettled_bodies();
            take_over(state, step, ReceiverChecks::PASSED)?;
            adoption.superseded.extend(bodies);
            return self.adopt(handle, state, message, is_confirmed, adoption);
        }
        if message.envelope.integrity.previous_hash != state.head() {
            return Err("the other side's messages do not continue ours".to_owned());
        }
        if is_own(handle, message) {
            if adoption.rolled_back.contains(&id) {
                return Err(format!("our message {id} was rolled back"));
            }
            take_over(state, StoredStep::Sent { text }, ReceiverChecks::PASSED)?;
            return take_over(state, StoredStep::Settled { message_id: id }, ReceiverChecks::PASSED);
        }
        if state.participant.was_refused(message) {
            return Err(format!("the message {id} was refused"));
        }
        let checks =
            if is_confirmed { ReceiverChecks::PASSED } else { self.judge_as_new(handle, state, message)? };
        take_over(state, StoredStep::Received { text }, checks)
            .inspect_err(|_| self.peers().escrow.forget_promise(handle.info.id))?;
        adoption.received.push(message.envelope.performative());
        Ok(())
    }

    /// Checks a message of the peer that nothing confirms, as if it had just arrived. Its sender chose its time, so an acceptance also
    /// has to be in time now.
    fn judge_as_new(
        &self,
        handle: &SessionHandle,
        state: &SessionState,
        message: &AuthenticatedMessage,
    ) -> Result<ReceiverChecks, String> {
        let envelope = &message.envelope;
        // A message from the future would make each message of ours too old for the chain.
        if envelope.timestamp.unix_millis().millis_since(unix_now()) > MAX_MESSAGE_AGE_MS {
            return Err(format!("the message {} has a time in the future", envelope.message_id));
        }
        let record = state.participant.record().ok_or("there is no session")?;
        if !record.has_room_for(message, handle.info.role.other()) {
            return Err("the session has reached its size limit".to_owned());
        }
        let checks = self.checks_of_message(handle, state, message);
        if matches!(envelope.body, Body::Accept(_)) {
            let now = unix_now();
            let mut session = record.session().clone();
            session.handle_timeout(now);
            let arriving = IncomingMessage {
                message_id: envelope.message_id,
                sender: handle.info.role.other(),
                body: &envelope.body,
                sent_at: now,
                response_timeout_ms: None,
                constraints: None,
                tokens_used: None,
                checks,
            };
            session.handle_message(&arriving).map_err(|refusal| {
                self.peers().escrow.forget_promise(handle.info.id);
                format!("the acceptance {} does not count any more: {refusal}", envelope.message_id)
            })?;
        }
        Ok(checks)
    }

    /// Returns our messages that the node has sent and that are no longer in our chain.
    async fn rolled_back_messages(
        &self,
        handle: &SessionHandle,
        state: &SessionState,
    ) -> Result<HashSet<MessageId>, NodeError> {
        let stored = self.journal.read(handle.info.id).await?.ok_or(NodeError::UnknownSession)?;
        let sent = stored.records.iter().filter_map(|record| match record {
            SessionRecord::Step(StoredStep::Sent { text }) => message_id_of(text),
            _ => None,
        });
        let record = state.participant.record();
        let is_in_chain = |id: &MessageId| record.is_some_and(|record| record.transcript().contains(id));
        Ok(sent.filter(|id| !is_in_chain(id)).collect())
    }
}

/// Returns whether our chain has this hash.
pub(crate) fn has_hash(state: &SessionState, hash: &Digest) -> bool {
    state.participant.record().is_some_and(|record| record.transcript().has_hash(hash))
}

fn is_own(handle: &SessionHandle, message: &AuthenticatedMessage) -> bool {
    message.envelope.sender.agent_id == *handle.info.own.agent_id()
}

fn previous_hash_of(text: &str) -> Option<Digest> {
    Some(Authenticator::default().parse_unauthenticated(text).ok()?.integrity.previous_hash)
}

fn message_id_of(text: &str) -> Option<MessageId> {
    let mut tape = Tape::default();
    let doc = tape.read(text).ok()?;
    MessageId::parse(&doc.root().member("messageId")?.text()?).ok()
}

impl RefusalNotice {
    /// One of our messages lost a race.
    pub(crate) fn stale(performative: asp::Performative) -> Self {
        Self {
            performative: performative.as_str().to_owned(),
            code: RejectCode::StaleHead.as_str().to_owned(),
            reason: "the other side's message came first; send it again if it still fits".to_owned(),
        }
    }
}
