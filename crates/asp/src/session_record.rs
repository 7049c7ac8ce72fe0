//! A session's transcript and state machine together. Participants and auditors use it.
//!
//! Pass authenticated messages in order to [`SessionRecord::admit`]. It checks, in this order: the session id, the sender
//! and recipient, the number of messages, the chain link, whether the DPoP proof was used before, the timestamp, and the
//! transition. A refused message changes nothing.

use seal::UnixMillis;
use seal::dpop::ReplayCache;
use seal::json::Tape;

use crate::agent_card::AgentCard;
use crate::error::{Refusal, RejectCode};
use crate::id::{AgentUri, SessionId};
use crate::limits::{AspLimits, LEAVING_RESERVE_BYTES, MAX_CLOCK_SKEW_SECONDS};
use crate::message::{AuthenticatedMessage, Body, Envelope, InformType, PinnedCards};
use crate::session::{AspSession, IncomingMessage, Party, ReceiverChecks, SessionRules, Transition};
use crate::state_machine::Role;
use crate::transcript::{AppendError, ChainPosition, Transcript, max_clock_skew_ms};

/// A session's transcript and state machine.
#[derive(Clone, Debug)]
pub struct SessionRecord {
    session_id: SessionId,
    cards: [AgentCard; 2],
    session: AspSession,
    transcript: Transcript,
    seen_proofs: ReplayCache,
    max_messages: usize,
    max_bytes: usize,
}

/// A point from which a record can be resumed.
#[derive(Clone, Debug)]
pub struct Checkpoint {
    /// The position in the chain.
    pub position: ChainPosition,
    /// The state of the session.
    pub session: AspSession,
}

/// The result of admitting a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admission {
    /// The message was appended. The transitions of timers that expired before the message come first, then the message's own
    /// transition.
    Accepted(Vec<Transition>),
    /// The message was refused. Nothing has changed.
    Refused(Refusal),
    /// The message links to an unknown hash. The session has failed (D7).
    ChainBroken(Transition),
}

/// How long used DPoP proofs are remembered, in seconds (D16).
pub(crate) const PROOF_RETENTION_SECONDS: i64 = 600;

impl SessionRecord {
    /// Creates the record of a session that has not begun.
    pub fn new(
        session_id: SessionId,
        inviter: AgentCard,
        invited: AgentCard,
        rules: SessionRules,
        limits: &AspLimits,
    ) -> Self {
        let party = |card: &AgentCard| Party { agent: card.agent_id().clone(), level: card.level() };
        Self {
            session_id,
            session: AspSession::new(party(&inviter), party(&invited), rules, limits),
            cards: [inviter, invited],
            transcript: Transcript::default(),
            seen_proofs: ReplayCache::new(PROOF_RETENTION_SECONDS, limits.max_remembered_proofs),
            max_messages: limits.max_messages,
            max_bytes: limits.max_session_bytes,
        }
    }

    /// Creates the record of a session from its first message. The message's sender is the inviter. The invited side is the
    /// message's recipient or, if the message names none, the only other agent whose card is pinned.
    pub fn from_invitation(
        first: &Envelope,
        cards: &PinnedCards,
        rules: SessionRules,
        limits: &AspLimits,
    ) -> Result<Self, Refusal> {
        let unknown =
            |agent: &str| Refusal::new(RejectCode::Unauthorized, format!("no card is known for {agent}"));
        let sender = &first.sender.agent_id;
        let inviter = cards.get(sender).ok_or_else(|| unknown(sender.as_str()))?;
        let invited = if let Some(recipient) = &first.recipient {
            cards.get(&recipient.0).ok_or_else(|| unknown(recipient.0.as_str()))?
        } else {
            let mut others = cards.iter().filter(|card| card.agent_id() != sender);
            match (others.next(), others.next()) {
                (Some(only), None) => only,
                _ => {
                    return Err(Refusal::new(
                        RejectCode::Unauthorized,
                        "the message names no recipient, and the pinned cards do not determine one",
                    ));
                }
            }
        };
        if inviter.agent_id() == invited.agent_id() {
            return Err(Refusal::new(RejectCode::Unauthorized, "an agent cannot invite itself"));
        }
        Ok(Self::new(first.session_id, inviter.clone(), invited.clone(), rules, limits))
    }

    /// Resumes from a checkpoint. Earlier messages are not available.
    #[must_use]
    pub fn resume_from(mut self, checkpoint: Checkpoint) -> Self {
        self.session = checkpoint.session;
        self.transcript = Transcript::resume_from(checkpoint.position);
        self
    }

    /// Discards the texts of messages appended from now on ([`Transcript::without_texts`]).
    #[must_use]
    pub fn without_texts(mut self) -> Self {
        self.transcript = self.transcript.without_texts();
        self
    }

    /// Returns a checkpoint of the current position.
    pub fn checkpoint(&self) -> Checkpoint {
        Checkpoint { position: self.transcript.position(), session: self.session.clone() }
    }

    /// Returns the session id.
    pub fn session_id(&self) -> SessionId {
        self.session_id
    }

    /// Returns the session.
    pub fn session(&self) -> &AspSession {
        &self.session
    }

    /// Returns the transcript.
    pub fn transcript(&self) -> &Transcript {
        &self.transcript
    }

    /// Returns the role of an agent, if it takes part.
    pub fn role_of(&self, agent: &AgentUri) -> Option<Role> {
        self.session.role_of(agent)
    }

    /// Returns the card of one side.
    pub fn card(&self, role: Role) -> &AgentCard {
        &self.cards[role.index()]
    }

    /// Checks a message and appends it. `clock` is the current time if the message is received live. Without it,
    /// only the timestamps of the messages count.
    pub fn admit(
        &mut self,
        message: &AuthenticatedMessage,
        checks: ReceiverChecks,
        clock: Option<UnixMillis>,
    ) -> Admission {
        match self.apply(message, checks, clock) {
            Ok((session, transitions, sender)) => {
                self.transcript.append(message, sender);
                let _ = self.seen_proofs.insert(&message.jti, received_at_seconds(message, clock));
                if let Some(session) = session {
                    self.session = session;
                }
                Admission::Accepted(transitions)
            }
            Err(AppendError::Refused(refusal)) => {
                Admission::Refused(Refusal { message_id: Some(message.envelope.message_id), ..refusal })
            }
            Err(AppendError::ChainBroken) => self.fail_broken_chain(message, clock),
        }
    }

    /// Fails the session because of a broken chain (D7). Timers that expired earlier are handled first, so that both
    /// sides record the same ending.
    fn fail_broken_chain(&mut self, message: &AuthenticatedMessage, clock: Option<UnixMillis>) -> Admission {
        let at = clock.unwrap_or_else(|| message.envelope.timestamp.unix_millis());
        let mut session = self.session.clone();
        session.handle_timeout(at);
        let had_ended = self.session.outcome().is_some();
        let refusal = if let Some(outcome) = session.outcome().filter(|_| !had_ended) {
            Refusal::new(RejectCode::Timeout, format!("too late: {}", outcome.reason))
        } else if let Some(transition) = session.handle_broken_chain(at) {
            self.session = session;
            return Admission::ChainBroken(transition);
        } else {
            Refusal::new(RejectCode::InvalidStateTransition, "the message links to an unknown hash")
        };
        Admission::Refused(Refusal { message_id: Some(message.envelope.message_id), ..refusal })
    }

    /// Handles all timers that expired.
    pub fn handle_timeout(&mut self, now: UnixMillis) -> Vec<Transition> {
        self.session.handle_timeout(now)
    }

    pub(crate) fn rewind(&mut self, checkpoint: Checkpoint) {
        self.transcript.rewind(&checkpoint.position);
        self.session = checkpoint.session;
    }

    /// Checks a message and applies it to the session. If timers expired before the message, a changed copy of the session is
    /// returned and `self.session` is unchanged. Otherwise `self.session` is changed in place. A refused message never
    /// changes it.
    #[allow(clippy::type_complexity, reason = "there is only one caller")]
    fn apply(
        &mut self,
        message: &AuthenticatedMessage,
        checks: ReceiverChecks,
        clock: Option<UnixMillis>,
    ) -> Result<(Option<AspSession>, Vec<Transition>, Role), AppendError> {
        let envelope = &message.envelope;
        let refuse = |code, reason: &str| Err(AppendError::Refused(Refusal::new(code, reason)));
        if envelope.session_id != self.session_id {
            return refuse(RejectCode::InvalidStateTransition, "the message belongs to another session");
        }
        let Some(sender) = self.session.role_of(&envelope.sender.agent_id) else {
            return refuse(RejectCode::Unauthorized, "the sender is not in this session");
        };
        let other = &self.session.party(sender.other()).agent;
        if envelope.recipient.as_ref().is_some_and(|recipient| &recipient.0 != other) {
            return refuse(RejectCode::Unauthorized, "the recipient is not the other side of this session");
        }
        if self.transcript.len() >= self.max_messages {
            return refuse(RejectCode::CapacityUnavailable, "the session has reached its message limit");
        }
        self.transcript.check_append(message, sender)?;
        if clock.is_some() && !self.has_room_for(message, sender) {
            let reason =
                "the messages of this side have reached the size limit of the session, so it can only leave";
            return refuse(RejectCode::CapacityUnavailable, reason);
        }
        if self.seen_proofs.contains(&message.jti) {
            return refuse(RejectCode::Duplicate, "the DPoP proof was used before");
        }
        if self.seen_proofs.is_full(received_at_seconds(message, clock)) {
            return refuse(RejectCode::CapacityUnavailable, "the memory for used DPoP proofs is full");
        }
        let sent_at = envelope.timestamp.unix_millis();
        if clock
            .is_some_and(|now| sent_at.millis_since(now).unsigned_abs() > max_clock_skew_ms().unsigned_abs())
        {
            let reason =
                format!("the timestamp differs from the clock by more than {MAX_CLOCK_SKEW_SECONDS} s");
            return refuse(RejectCode::Timeout, &reason);
        }
        let incoming = IncomingMessage {
            message_id: envelope.message_id,
            sender,
            body: &envelope.body,
            sent_at,
            response_timeout_ms: envelope
                .constraints
                .as_ref()
                .and_then(|constraints| constraints.max_response_time_ms)
                .map(crate::message::DurationMillis::get),
            constraints: envelope.constraints.as_ref(),
            tokens_used: envelope.tokens_used(),
            checks: ReceiverChecks { is_card_pinned: self.is_card_pinned(&envelope.body, sender), ..checks },
        };
        if self.session.next_deadline().is_none_or(|deadline| deadline > sent_at) {
            let transition = self.session.handle_message(&incoming).map_err(AppendError::Refused)?;
            return Ok((None, vec![transition], sender));
        }
        let mut session = self.session.clone();
        let mut transitions = session.handle_timeout(sent_at);
        if let Some(outcome) = session.outcome().filter(|_| session.state().is_terminal()) {
            return refuse(RejectCode::Timeout, &format!("too late: {}", outcome.reason));
        }
        transitions.push(session.handle_message(&incoming).map_err(AppendError::Refused)?);
        Ok((Some(session), transitions, sender))
    }

    /// Returns whether the size limit of the session permits one more message from this side. A side may always leave.
    pub fn has_room_for(&self, message: &AuthenticatedMessage, sender: Role) -> bool {
        let is_leaving = match &message.envelope.body {
            Body::Close(_) | Body::Withdraw(_) | Body::Reject(_) => true,
            Body::Inform(inform) => inform.kind == InformType::Resolution,
            _ => false,
        };
        let reserve = if is_leaving { LEAVING_RESERVE_BYTES } else { 0 };
        let bytes = self.transcript.bytes_of(sender).saturating_add(message.text.len());
        bytes <= self.max_bytes.saturating_add(reserve)
    }

    /// Returns whether the body contains no card or contains the sender's pinned card (D17).
    fn is_card_pinned(&self, body: &Body, sender: Role) -> bool {
        let Body::Inform(inform) = body else { return true };
        let Some(card) = &inform.card else { return true };
        let mut tape = Tape::default();
        tape.read(card.as_str()).is_ok_and(|doc| self.card(sender).matches(&doc.root()))
    }
}

fn received_at_seconds(message: &AuthenticatedMessage, clock: Option<UnixMillis>) -> i64 {
    clock.unwrap_or_else(|| message.envelope.timestamp.unix_millis()).seconds()
}
