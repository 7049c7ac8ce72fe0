//! One ASP session of the node: the participant, and what waits for the peer or for a person.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use asp::message::{Authenticator, Body, PinnedCards, TrustScore};
use asp::session::SessionRules;
use asp::state_machine::State;
use asp::{AgentCard, CommitmentId, MessageId, Participant, ParticipantConfig, StoredStep};
use seal::{Digest, UnixMillis};
use tokio::sync::watch;

use crate::NodeError;
use crate::journal_writer::StoredSession;
use crate::node::NodeConfig;
use crate::person::{HubSession, HubSessionState};
use crate::records::{ConsentOutcome, ConsentRequest, SessionInfo, SessionRecord};

/// Maximum number of refusals that a session remembers for the agent's program.
const MAX_REFUSALS: usize = 64;

/// A session, shared by the tasks that work on it.
#[derive(Debug)]
pub(crate) struct SessionHandle {
    pub(crate) info: SessionInfo,
    pub(crate) state: tokio::sync::Mutex<SessionState>,
    /// Counts the changes, for tasks that wait for one.
    changes: watch::Sender<u64>,
    summary: Mutex<SessionSummary>,
    /// What a person hears about the session.
    pub(crate) hub_session: HubSession,
    /// Held while the node fetches messages that it has lost.
    pub(crate) catching_up: tokio::sync::Mutex<()>,
}

/// The entry of a session in a list.
#[derive(Clone, Debug)]
pub(crate) struct SessionSummary {
    pub(crate) state: State,
    pub(crate) message_count: usize,
    pub(crate) updated_at: UnixMillis,
    /// The number of our messages that wait to be delivered.
    pub(crate) undelivered: u64,
    /// The oldest of them, and when it began to wait.
    pub(crate) oldest_undelivered: Option<(MessageId, UnixMillis)>,
    /// Whether a question waits for a person.
    pub(crate) asks_person: bool,
}

/// The state of a session.
#[derive(Debug)]
pub(crate) struct SessionState {
    pub(crate) participant: Participant,
    /// The message that waits for a person's answer.
    pub(crate) consent: Option<ConsentRequest>,
    /// The outcome of the last message that a person was asked about, for the agent's program.
    pub(crate) last_consent: Option<(ConsentRequest, ConsentOutcome)>,
    /// This node's messages that the peer or a person refused, the latest last.
    pub(crate) refusals: VecDeque<RefusalNotice>,
    /// The hub's session as it was when this session was restored. [`SessionHandle::hub_session`] has the current one.
    pub(crate) hub_session: HubSessionState,
    /// Whether a task delivers our messages.
    pub(crate) is_delivering: bool,
    /// The message that the node has stopped delivering.
    pub(crate) abandoned: Option<MessageId>,
    /// Whether both sides agreed on MessagePack, once that is known.
    pub(crate) message_pack: Option<bool>,
    /// The number of the peer's messages whose refusal is recorded.
    pub(crate) refused_count: usize,
    /// The last commitment whose escrow the peer could not cover, once that is recorded.
    pub(crate) unfunded_commitment: Option<CommitmentId>,
    /// Whether the journal's session has ended.
    pub(crate) is_ended: bool,
    /// Whether the effects of the session's end are recorded.
    pub(crate) is_end_recorded: bool,
    /// Whether a write failed. The state must then be read from the journal again, because the one in memory may be ahead.
    pub(crate) needs_reload: bool,
}

/// A message that was not sent, or that the peer did not accept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RefusalNotice {
    pub(crate) performative: String,
    pub(crate) code: String,
    pub(crate) reason: String,
}

impl SessionHandle {
    pub(crate) fn new(info: SessionInfo, state: SessionState, now: UnixMillis) -> Arc<Self> {
        let summary = state.summary(None, now);
        let hub_session = HubSession::new(state.hub_session.clone());
        Arc::new(Self {
            info,
            hub_session,
            state: tokio::sync::Mutex::new(state),
            changes: watch::Sender::new(0),
            summary: Mutex::new(summary),
            catching_up: tokio::sync::Mutex::new(()),
        })
    }

    /// Reports a change to the tasks that wait for one.
    pub(crate) fn report_change(&self, state: &SessionState, now: UnixMillis) {
        let mut summary = self.summary.lock().unwrap_or_else(PoisonError::into_inner);
        *summary = state.summary(summary.oldest_undelivered, now);
        drop(summary);
        self.changes.send_modify(|count| *count += 1);
    }

    /// Makes the tasks that wait for a change look again, although the session has not changed.
    pub(crate) fn wake(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    /// Returns a receiver that sees changes from now on.
    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Returns the number of changes since the node started.
    pub(crate) fn revision(&self) -> u64 {
        *self.changes.borrow()
    }

    pub(crate) fn summary(&self) -> SessionSummary {
        self.summary.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl SessionState {
    /// Creates a session that has not begun.
    pub(crate) fn new(config: &NodeConfig, info: &SessionInfo) -> Result<Self, NodeError> {
        let participant = Participant::new(participant_config(config, info)?).map_err(NodeError::Local)?;
        Ok(Self::with(participant))
    }

    fn with(participant: Participant) -> Self {
        Self {
            participant,
            consent: None,
            last_consent: None,
            refusals: VecDeque::new(),
            hub_session: HubSessionState::default(),
            is_delivering: false,
            abandoned: None,
            message_pack: None,
            refused_count: 0,
            unfunded_commitment: None,
            is_ended: false,
            is_end_recorded: false,
            needs_reload: false,
        }
    }

    /// Rebuilds a session from its stored facts.
    pub(crate) fn restore(config: &NodeConfig, stored: &StoredSession) -> Result<Self, NodeError> {
        let info = &stored.info;
        let steps = stored.records.iter().filter_map(|record| match record {
            SessionRecord::Step(step) => Some(step.clone()),
            _ => None,
        });
        let opened =
            StoredStep::Opened { session_id: info.id, role: info.role, peer: info.peer.agent_id().clone() };
        let mut participant =
            Participant::restore(participant_config(config, info)?, std::iter::once(opened).chain(steps))
                .map_err(|error| NodeError::DamagedSession(info.id, error.to_string()))?;
        // The effects of settled messages were stored with them.
        participant.take_settled();
        let mut state = Self::with(participant);
        state.is_ended = stored.is_ended;
        // The effects of this node's message that ends the session are recorded when it is settled; all others at once.
        state.is_end_recorded = state.state().is_terminal()
            && state.participant.unsettled_messages().next().is_none()
            || state.is_timed_out();
        for record in &stored.records {
            match record {
                SessionRecord::ConsentAsked(request) => state.consent = Some(request.clone()),
                SessionRecord::ConsentResolved { request, outcome } => {
                    if let Some(asked) = state.consent.take_if(|asked| asked.id == *request) {
                        state.last_consent = Some((asked, outcome.clone()));
                    }
                }
                SessionRecord::DeliveryAbandoned { message } => state.abandoned = Some(*message),
                SessionRecord::NarrationStarted { hub_session } => {
                    state.hub_session.id = Some(hub_session.clone());
                    state.hub_session.started_count += 1;
                }
                SessionRecord::EscrowUnfunded { commitment } => {
                    state.unfunded_commitment = Some(commitment.clone());
                }
                SessionRecord::Step(StoredStep::Refused { .. }) => state.refused_count += 1,
                SessionRecord::Step(_) => {}
            }
        }
        Ok(state)
    }

    /// Returns the state of the state machine; IDLE before the invitation.
    pub(crate) fn state(&self) -> State {
        self.participant.session().map_or(State::Idle, asp::session::AspSession::state)
    }

    fn summary(&self, known: Option<(MessageId, UnixMillis)>, now: UnixMillis) -> SessionSummary {
        let has_undelivered = self.has_undelivered();
        let undelivered = if has_undelivered { self.participant.unsettled_messages().count() } else { 0 };
        let oldest = self.participant.unsettled_messages().next().filter(|_| has_undelivered);
        SessionSummary {
            state: self.state(),
            message_count: self.message_count(),
            updated_at: now,
            undelivered: u64::try_from(undelivered).unwrap_or(u64::MAX),
            oldest_undelivered: oldest
                .map(|(id, _)| known.filter(|(known, _)| *known == id).unwrap_or((id, now))),
            asks_person: self.consent.is_some(),
        }
    }

    /// Returns the size of all messages, in bytes.
    pub(crate) fn message_bytes(&self) -> usize {
        let record = self.participant.record();
        record.map_or(0, |record| record.transcript().messages().map(str::len).sum())
    }

    pub(crate) fn message_count(&self) -> usize {
        self.participant.record().map_or(0, |record| record.transcript().len())
    }

    /// Returns the hash of the last message of our chain.
    pub(crate) fn head(&self) -> Digest {
        self.participant.record().map_or(Digest::ZERO, |record| record.transcript().head())
    }

    /// Returns the bodies of our messages that can still be rolled back.
    pub(crate) fn unsettled_bodies(&self) -> Vec<Body> {
        let mut reader = Authenticator::default();
        let texts = self.participant.unsettled_messages();
        texts.filter_map(|(_, text)| Some(reader.parse_unauthenticated(text).ok()?.body)).collect()
    }

    /// Returns how many messages can no longer be rolled back.
    pub(crate) fn settled_count(&self) -> usize {
        self.message_count().saturating_sub(self.participant.unsettled_messages().count())
    }

    /// Returns the latest escalation in the transcript.
    pub(crate) fn latest_escalation(&self) -> Option<Body> {
        let record = self.participant.record()?;
        let mut reader = Authenticator::default();
        let texts: Vec<&str> = record.transcript().messages().collect();
        texts.into_iter().rev().find_map(|text| {
            let body = reader.parse_unauthenticated(text).ok()?.body;
            matches!(body, Body::Escalate(_)).then_some(body)
        })
    }

    /// Returns whether the session ended because a timer expired.
    fn is_timed_out(&self) -> bool {
        let outcome = self.participant.session().and_then(asp::session::AspSession::outcome);
        outcome.is_some_and(|outcome| matches!(outcome.ending, asp::session::SessionEnding::TimedOut(_)))
    }

    /// Returns whether the node has stopped delivering our messages.
    pub(crate) fn is_delivery_abandoned(&self) -> bool {
        self.participant.unsettled_messages().any(|(id, _)| Some(id) == self.abandoned)
    }

    /// Returns whether one of this node's messages waits to be delivered.
    pub(crate) fn has_undelivered(&self) -> bool {
        self.participant.unsettled_messages().next().is_some_and(|(id, _)| Some(id) != self.abandoned)
    }

    /// Returns when the next timer expires.
    pub(crate) fn next_deadline(&self) -> Option<UnixMillis> {
        self.participant.session().and_then(asp::session::AspSession::next_deadline)
    }

    /// Remembers a refusal for the agent's program.
    pub(crate) fn note_refusal(&mut self, notice: RefusalNotice) {
        if self.refusals.len() == MAX_REFUSALS {
            self.refusals.pop_front();
        }
        self.refusals.push_back(notice);
    }
}

/// Returns the organization that messages state. It must not be empty, so an agent without one uses the host of its URI.
fn organization_of(card: &AgentCard) -> String {
    if !card.organization().is_empty() {
        return card.organization().to_owned();
    }
    let uri = card.agent_id().as_str();
    let rest = uri.strip_prefix("agent://").unwrap_or(uri);
    rest.split('/').next().unwrap_or(rest).to_owned()
}

fn participant_config(config: &NodeConfig, info: &SessionInfo) -> Result<ParticipantConfig, NodeError> {
    // A session continues with the keys with which it began.
    let identity = config.identity.for_card(&info.own).ok_or_else(|| {
        NodeError::DamagedSession(
            info.id,
            "the keys with which it began are not in the identity folder".to_owned(),
        )
    })?;
    Ok(ParticipantConfig {
        card: (*info.own).clone(),
        keys: identity.clone(),
        org_id: organization_of(&info.own),
        // An agent's claims about its own trust have no effect (D20).
        trust_score: TrustScore::new(0.0).ok_or(NodeError::Local(asp::LocalError::NoPeer))?,
        pinned_cards: PinnedCards::new([(*info.peer).clone()]),
        rules: SessionRules::default(),
        limits: config.limits.session.clone(),
    })
}
