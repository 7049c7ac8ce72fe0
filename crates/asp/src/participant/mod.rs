//! One side of a live session. It signs messages with the agent's keys and handles received messages.
//!
//! [`Participant::send`] appends a message to the participant's own record and returns the bytes to send.
//! [`Participant::receive`] handles received bytes. To authenticate in another thread, use [`Authenticator::authenticate`]
//! there and pass the result to [`Participant::handle`]. A sent message is rolled back if the other side refuses it or if it
//! loses a race (D6, D8). Once the other side has built on a message, that message is settled and can no longer be rolled
//! back.
//!
//! [`Participant::restore`] rebuilds a participant after a restart from the steps that the caller has stored
//! ([`StoredStep`]).

mod stored_step;

pub use stored_step::{RestoreError, StoredStep};

use std::sync::Arc;

use seal::dpop::ReplayCache;
use seal::json::RawJson;
use seal::{AgentKeys, Random, Timestamp, UnixMillis};

use crate::agent_card::AgentCard;
use crate::error::{AspError, AuthenticationError, LocalError, Refusal, RejectCode};
use crate::id::{MessageId, SessionId};
use crate::limits::AspLimits;
use crate::message::{
    AuthenticatedMessage, Authenticator, Body, Constraints, Content, Envelope, ExtraMembers, MessageDraft,
    MessageSigner, PinnedCards, Reject, TrustScore,
};
use crate::session::{AspSession, ReceiverChecks, SessionRules, Transition};
use crate::session_record::{Admission, Checkpoint, PROOF_RETENTION_SECONDS, SessionRecord};
use crate::state_machine::Role;

/// The configuration of a participant.
#[derive(Clone, Debug)]
pub struct ParticipantConfig {
    /// The agent's own card.
    pub card: AgentCard,
    /// The keys that the card publishes.
    pub keys: AgentKeys,
    /// The organization id that the agent's messages state.
    pub org_id: String,
    /// The trust score that the agent states about itself.
    pub trust_score: TrustScore,
    /// The pinned cards of the peers.
    pub pinned_cards: PinnedCards,
    /// The transition table, and the meaning of "any state" in the specification.
    pub rules: SessionRules,
    /// The resource limits.
    pub limits: AspLimits,
}

/// One side of one session.
#[derive(Debug)]
pub struct Participant {
    config: ParticipantConfig,
    /// The pinned cards of the peers, and the agent's own card.
    cards: PinnedCards,
    record: Option<SessionRecord>,
    /// Sent messages that are not settled.
    unsettled: Vec<UnsettledMessage>,
    /// The transitions of messages that were settled since the last [`Participant::take_settled`].
    settled_transitions: Vec<Transition>,
    /// The hashes of refused messages. They are remembered while a copy could still be accepted.
    refused_hashes: ReplayCache,
    authenticator: Authenticator,
    signer: MessageSigner,
    dropped_count: u64,
}

/// A message that may still be rolled back, with a checkpoint of the record before the message.
#[derive(Debug)]
struct UnsettledMessage {
    id: MessageId,
    text: Arc<str>,
    body: Body,
    checkpoint: Checkpoint,
    /// What the message caused here.
    transitions: Vec<Transition>,
}

/// A message to send with [`Participant::send_message`].
#[derive(Clone, Debug)]
pub struct OutgoingMessage {
    /// Its body.
    pub body: Body,
    /// Constraints on the answer (D9, D23).
    pub constraints: Option<Constraints>,
    /// How many tokens the agent used for this message (D23).
    pub tokens_used: Option<u64>,
    /// The sender's own checks, such as whether the escrow is covered.
    pub checks: ReceiverChecks,
}

/// A message that [`Participant::send`] has appended to our record. The caller transmits its text. The message may still be
/// rolled back, so the caller must not do anything irreversible, such as paying or reporting the end of the session, before
/// the message is settled ([`Participant::is_settled`]).
#[derive(Clone, Debug)]
pub struct SentMessage {
    /// The bytes to send.
    pub text: Arc<str>,
    /// Its id.
    pub message_id: MessageId,
    /// The transitions that it caused here.
    pub transitions: Vec<Transition>,
}

/// The result of receiving bytes.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ReceiveOutcome {
    /// A message was appended.
    Accepted {
        /// The message.
        envelope: Box<Envelope>,
        /// The transitions that it caused.
        transitions: Vec<Transition>,
        /// Our messages that lost a race against this message. They may be sent again.
        superseded: Vec<Body>,
    },
    /// A message was refused. Nothing has changed.
    Refused {
        /// The refusal.
        refusal: Refusal,
        /// The REJECT to send back, if there is one. A REJECT needs a session and the id of the refused message. Our own
        /// messages, recorded messages and messages that do not begin a session with us are refused without a REJECT.
        reject: Option<Arc<str>>,
    },
    /// The other side refused one of our messages. That message and our later ones were rolled back.
    RolledBack {
        /// The refusal that the other side sent.
        refusal: Refusal,
        /// The bodies that were rolled back, the refused one first.
        messages: Vec<Body>,
    },
    /// The other side sent a REJECT, but the message that it names cannot be rolled back. Nothing has changed.
    Ignored,
    /// The chain is broken. The session has failed.
    Failed(Transition),
    /// The message failed authentication. It was dropped and counted, and is never answered.
    Dropped(AuthenticationError),
}

impl Participant {
    /// Creates a participant that waits for an invitation, or sends one after [`Self::invite`].
    pub fn new(config: ParticipantConfig) -> Result<Self, LocalError> {
        let card = &config.card;
        if config.keys.signing.verifying_key() != *card.signing_key()
            || config.keys.dpop.verifying_key() != card.dpop_key()
        {
            return Err(LocalError::KeyMismatch);
        }
        let cards = PinnedCards::new(config.pinned_cards.iter().cloned().chain([card.clone()]));
        Ok(Self {
            cards,
            refused_hashes: ReplayCache::new(PROOF_RETENTION_SECONDS, config.limits.max_remembered_proofs),
            config,
            record: None,
            unsettled: Vec::new(),
            settled_transitions: Vec::new(),
            authenticator: Authenticator::default(),
            signer: MessageSigner::default(),
            dropped_count: 0,
        })
    }

    /// Begins a session with an agent whose card is pinned. The caller must then send the invitation as the first message.
    pub fn invite(
        &mut self,
        peer: &AgentCard,
        now: UnixMillis,
        random: &mut impl Random,
    ) -> Result<SessionId, LocalError> {
        let own = self.config.card.agent_id();
        let pinned = self.cards.get(peer.agent_id()).filter(|card| card.agent_id() != own);
        let pinned = pinned.ok_or(LocalError::NoPeer)?.clone();
        let id = SessionId::generate(now, random);
        let (rules, limits) = (self.config.rules, &self.config.limits);
        self.record = Some(SessionRecord::new(id, self.config.card.clone(), pinned, rules, limits));
        Ok(id)
    }

    /// Returns the session record, if a session has begun.
    pub fn record(&self) -> Option<&SessionRecord> {
        self.record.as_ref()
    }

    /// Returns the session, if one has begun.
    pub fn session(&self) -> Option<&AspSession> {
        self.record.as_ref().map(SessionRecord::session)
    }

    /// Returns the agent's own card.
    pub fn card(&self) -> &AgentCard {
        &self.config.card
    }

    /// Returns how many messages were dropped because they failed authentication.
    pub fn dropped_count(&self) -> u64 {
        self.dropped_count
    }

    /// Returns this side's role, if a session has begun.
    pub fn role(&self) -> Option<Role> {
        self.record.as_ref()?.role_of(self.config.card.agent_id())
    }

    /// Creates a message, appends it to the record and returns the bytes to send.
    pub fn send(
        &mut self,
        body: Body,
        now: UnixMillis,
        random: &mut impl Random,
    ) -> Result<SentMessage, AspError> {
        self.send_with(body, None, ReceiverChecks::PASSED, now, random)
    }

    /// Like [`Self::send`], with constraints on the answer and with the sender's own checks, such as whether the
    /// escrow is covered.
    pub fn send_with(
        &mut self,
        body: Body,
        constraints: Option<Constraints>,
        checks: ReceiverChecks,
        now: UnixMillis,
        random: &mut impl Random,
    ) -> Result<SentMessage, AspError> {
        self.send_message(OutgoingMessage { body, constraints, tokens_used: None, checks }, now, random)
    }

    /// Like [`Self::send_with`], and can also state how many tokens the agent used for the message.
    pub fn send_message(
        &mut self,
        message: OutgoingMessage,
        now: UnixMillis,
        random: &mut impl Random,
    ) -> Result<SentMessage, AspError> {
        let OutgoingMessage { body, constraints, tokens_used, checks } = message;
        body.validate().map_err(|error| {
            LocalError::NotAllowed(Refusal::new(RejectCode::SchemaUnsupported, error.to_string()))
        })?;
        let mut draft = self.draft(body, constraints, now, random)?;
        if let Some(tokens) = tokens_used {
            let json = RawJson::parse(&tokens.to_string()).map_err(LocalError::NotJson)?;
            draft.other.set(Envelope::TOKENS_USED, json);
        }
        let message = self.sign(draft, random)?;
        let record = self.record.as_mut().ok_or(LocalError::NoPeer)?;
        let checkpoint = record.checkpoint();
        match record.admit(&message, checks, Some(now)) {
            Admission::Accepted(transitions) => {
                let id = message.envelope.message_id;
                let (text, body) = (message.text, message.envelope.body);
                let unsettled = UnsettledMessage {
                    id,
                    text: text.clone(),
                    body,
                    checkpoint,
                    transitions: transitions.clone(),
                };
                self.unsettled.push(unsettled);
                Ok(SentMessage { text, message_id: id, transitions })
            }
            Admission::Refused(refusal) => Err(LocalError::NotAllowed(refusal).into()),
            Admission::ChainBroken(_) => Err(LocalError::NoPeer.into()),
        }
    }

    /// Handles received bytes: authenticates them and calls [`Self::handle`]. `checks` states what the receiver knows about
    /// the sender and the escrow.
    pub fn receive(
        &mut self,
        text: &str,
        checks: ReceiverChecks,
        now: UnixMillis,
        random: &mut impl Random,
    ) -> Result<ReceiveOutcome, LocalError> {
        match self.authenticator.authenticate(text, &self.cards, &self.config.limits) {
            Ok(message) => self.handle(&message, checks, now, random),
            Err(error) => self.handle_authentication_error(error, now, random),
        }
    }

    /// Handles the error of [`Authenticator::authenticate`]: drops the message, or answers with a REJECT if it is authentic
    /// but malformed (D7).
    pub fn handle_authentication_error(
        &mut self,
        error: AspError,
        now: UnixMillis,
        random: &mut impl Random,
    ) -> Result<ReceiveOutcome, LocalError> {
        match error {
            AspError::Unauthenticated(error) => Ok(self.drop_message(error)),
            AspError::Refused(refusal) => self.reject_refused(refusal, now, random),
            AspError::Local(error) => Err(error),
        }
    }

    fn drop_message(&mut self, error: AuthenticationError) -> ReceiveOutcome {
        self.dropped_count += 1;
        ReceiveOutcome::Dropped(error)
    }

    /// Handles a message that was authenticated with [`Self::cards`], possibly in another thread. A message that was
    /// authenticated with another card of its sender is dropped.
    pub fn handle(
        &mut self,
        message: &AuthenticatedMessage,
        checks: ReceiverChecks,
        now: UnixMillis,
        random: &mut impl Random,
    ) -> Result<ReceiveOutcome, LocalError> {
        if let Err(error) = self.check_key(message) {
            return Ok(self.drop_message(error));
        }
        let (sender, id) = (&message.envelope.sender.agent_id, message.envelope.message_id);
        let refusal = |code, reason: &str| Refusal { message_id: Some(id), ..Refusal::new(code, reason) };
        // No REJECT is sent if the message is our own, is already recorded, or does not begin a session with us.
        let without_reject = |refusal| Ok(ReceiveOutcome::Refused { refusal, reject: None });
        if sender == self.config.card.agent_id() {
            return without_reject(refusal(RejectCode::Duplicate, "this is our own message"));
        }
        if self.record.as_ref().is_some_and(|record| record.role_of(sender).is_none()) {
            return Ok(self.drop_message(AuthenticationError::UnknownSender(sender.to_string())));
        }
        if let Some(rolled_back) = self.handle_reject(message) {
            return Ok(rolled_back);
        }
        let is_new_session = self.record.is_none();
        if is_new_session {
            match SessionRecord::from_invitation(
                &message.envelope,
                &self.cards,
                self.config.rules,
                &self.config.limits,
            ) {
                Ok(record) if record.role_of(self.config.card.agent_id()).is_some() => {
                    self.record = Some(record);
                }
                Ok(_) => {
                    return without_reject(refusal(
                        RejectCode::Unauthorized,
                        "the invitation is for another agent",
                    ));
                }
                Err(error) => return without_reject(refusal(error.code, &error.reason)),
            }
        }
        if self.record.as_ref().is_some_and(|record| record.transcript().contains(&id)) {
            return without_reject(refusal(RejectCode::Duplicate, "this message was received before"));
        }
        let outcome = match self.find_earlier_refusal(message) {
            Some((code, reason)) => Err(refusal(code, reason)),
            None => self.admit_or_yield(message, checks, Some(now)),
        };
        outcome.or_else(|refusal| {
            // The sender rolls the message back, so a later copy must not be accepted. This is best effort: while
            // `refused_hashes` is full, a later copy is still accepted.
            let _ = self.refused_hashes.insert(&message.hash.to_string(), now.seconds());
            let outcome = self.reject_refused(refusal, now, random);
            // Discard the record of a session that did not begin.
            if is_new_session {
                self.record = None;
            }
            outcome
        })
    }

    /// Marks a message and all earlier ones as settled. Call it when the transport confirms that the other side accepted the
    /// message. Without this call, the other side's next message settles them.
    pub fn settle(&mut self, message: MessageId) {
        if let Some(index) = self.unsettled.iter().position(|sent| sent.id == message) {
            self.settle_first(index + 1);
        }
    }

    /// Returns the transitions of our messages that were settled since the last call, in order. Only now may the caller
    /// perform their irreversible effects.
    pub fn take_settled(&mut self) -> Vec<Transition> {
        std::mem::take(&mut self.settled_transitions)
    }

    fn settle_first(&mut self, count: usize) {
        // A sent message is large because of its checkpoint, so only its transitions are moved.
        for sent in self.unsettled.iter_mut().take(count) {
            self.settled_transitions.append(&mut sent.transitions);
        }
        self.unsettled.drain(..count);
    }

    /// Returns whether one of our messages can no longer be rolled back. Also returns `true` for a message that
    /// [`Self::receive`] has already rolled back.
    pub fn is_settled(&self, message: MessageId) -> bool {
        self.unsettled.iter().all(|sent| sent.id != message)
    }

    /// Returns the sent messages that are not settled, in the order in which they were sent. After a restart, the caller
    /// transmits them again.
    pub fn unsettled_messages(&self) -> impl Iterator<Item = (MessageId, &Arc<str>)> {
        self.unsettled.iter().map(|sent| (sent.id, &sent.text))
    }

    /// Returns the transitions of the messages that are not settled, in order.
    pub fn unsettled_transitions(&self) -> impl Iterator<Item = &Transition> {
        self.unsettled.iter().flat_map(|sent| &sent.transitions)
    }

    /// Returns the cards that authenticate the messages of this session: the pinned cards and the agent's own card.
    pub fn cards(&self) -> &PinnedCards {
        &self.cards
    }

    /// Returns the resource limits.
    pub fn limits(&self) -> &AspLimits {
        &self.config.limits
    }

    /// Handles all timers that expired.
    pub fn handle_timeout(&mut self, now: UnixMillis) -> Vec<Transition> {
        self.record.as_mut().map(|record| record.handle_timeout(now)).unwrap_or_default()
    }

    fn draft(
        &self,
        body: Body,
        constraints: Option<Constraints>,
        now: UnixMillis,
        random: &mut impl Random,
    ) -> Result<MessageDraft, LocalError> {
        let (Some(record), Some(role)) = (&self.record, self.role()) else {
            return Err(LocalError::NoPeer);
        };
        Ok(MessageDraft {
            message_id: MessageId::generate(now, random),
            session_id: record.session_id(),
            sequence_number: record.transcript().next_sequence_number(role),
            timestamp: Timestamp::from_unix_millis(now).ok_or(LocalError::NoPeer)?,
            sender: self.config.card.agent_id().clone(),
            org_id: self.config.org_id.clone(),
            trust_score: self.config.trust_score,
            recipient: record.card(role.other()).agent_id().clone(),
            body,
            content: Content::default(),
            constraints,
            previous_hash: record.transcript().head(),
            other: ExtraMembers::default(),
        })
    }

    fn sign(
        &mut self,
        draft: MessageDraft,
        random: &mut impl Random,
    ) -> Result<AuthenticatedMessage, LocalError> {
        let message = self.signer.sign(draft, &self.config.keys, random)?;
        let limit = self.config.limits.max_message_bytes;
        if message.text.len() > limit { Err(LocalError::TooLong(limit)) } else { Ok(message) }
    }

    /// Builds the REJECT for a refused message. The REJECT carries our current head and next sequence number. Neither side
    /// records it, so the sequence number can be used again (D6).
    fn reject_refused(
        &mut self,
        refusal: Refusal,
        now: UnixMillis,
        random: &mut impl Random,
    ) -> Result<ReceiveOutcome, LocalError> {
        let mut reject = None;
        if let Some(message_id) = refusal.message_id
            && self.record.is_some()
        {
            let mut body = Reject::new(refusal.code.as_str(), refusal.reason.clone());
            body.reference = Some(message_id.into());
            let draft = self.draft(body.into(), None, now, random)?;
            reject = Some(self.sign(draft, random)?.text);
        }
        Ok(ReceiveOutcome::Refused { refusal, reject })
    }

    /// Handles a REJECT that names a message. Unlike a REJECT of a proposal or commitment, it does not reach the state
    /// machine (D6).
    fn handle_reject(&mut self, message: &AuthenticatedMessage) -> Option<ReceiveOutcome> {
        let Body::Reject(reject) = &message.envelope.body else { return None };
        let rejected_id = MessageId::parse(reject.reference.as_ref()?.as_str()).ok()?;
        let is_same_session =
            self.record.as_ref().is_some_and(|record| record.session_id() == message.envelope.session_id);
        let index = self.unsettled.iter().position(|sent| sent.id == rejected_id);
        let Some(index) = index.filter(|_| is_same_session) else { return Some(ReceiveOutcome::Ignored) };
        let messages = self.roll_back_from(index);
        let refusal = Refusal {
            code: RejectCode::parse(&reject.code).unwrap_or(RejectCode::Unspecified),
            reason: reject.reason.clone(),
            message_id: Some(rejected_id),
        };
        Some(ReceiveOutcome::RolledBack { refusal, messages })
    }

    /// Rolls back our unsettled messages from this one on, and returns their bodies.
    fn roll_back_from(&mut self, index: usize) -> Vec<Body> {
        let rolled_back: Vec<_> = self.unsettled.drain(index..).collect();
        if let (Some(record), Some(first)) = (&mut self.record, rolled_back.first()) {
            record.rewind(first.checkpoint.clone());
        }
        rolled_back.into_iter().map(|sent| sent.body).collect()
    }

    /// Remembers a message that was refused without [`Self::handle`], so that a later copy is not accepted. Returns false if it is
    /// remembered already, or the memory is full.
    pub fn remember_refusal(&mut self, hash: &seal::Digest, now: UnixMillis) -> bool {
        let hash = hash.to_string();
        !self.refused_hashes.contains(&hash) && self.refused_hashes.insert(&hash, now.seconds()).is_ok()
    }

    /// Returns whether this message, or the one before it, was refused before.
    pub fn was_refused(&self, message: &AuthenticatedMessage) -> bool {
        self.find_earlier_refusal(message).is_some()
    }

    /// Finds an earlier refusal of this message or of the message before it. A refused message stays refused. A
    /// message that links to a refused one is stale, but does not break the chain (D6, D8).
    fn find_earlier_refusal(&self, message: &AuthenticatedMessage) -> Option<(RejectCode, &'static str)> {
        if self.refused_hashes.is_empty() {
            return None;
        }
        let link = &message.envelope.integrity.previous_hash;
        if self.refused_hashes.contains(&message.hash.to_string()) {
            Some((RejectCode::Duplicate, "this message was refused before"))
        } else if self.refused_hashes.contains(&link.to_string()) {
            Some((RejectCode::StaleHead, "the previous message was refused"))
        } else {
            None
        }
    }

    /// Returns the index of our first message that lost a race against this message, if any. If both sides extend the same
    /// head, the inviter's message wins, so that both sides agree without a further exchange (D8).
    fn find_lost_race(&self, message: &AuthenticatedMessage) -> Option<usize> {
        let link = message.envelope.integrity.previous_hash;
        let index = self.unsettled.iter().position(|sent| sent.checkpoint.position.head == link);
        index.filter(|_| self.role() == Some(Role::Invited))
    }

    fn check_key(&self, message: &AuthenticatedMessage) -> Result<(), AuthenticationError> {
        let sender = &message.envelope.sender.agent_id;
        match self.cards.get(sender) {
            None => Err(AuthenticationError::UnknownSender(sender.to_string())),
            Some(card) if *card.signing_key() != message.signing_key => {
                Err(AuthenticationError::InvalidSignature)
            }
            Some(_) => Ok(()),
        }
    }

    /// Appends a message from the other side. If it wins a race against our messages, they are rolled back.
    fn admit_or_yield(
        &mut self,
        message: &AuthenticatedMessage,
        checks: ReceiverChecks,
        clock: Option<UnixMillis>,
    ) -> Result<ReceiveOutcome, Refusal> {
        match self.find_lost_race(message) {
            Some(index) => self.yield_race(message, index, checks, clock),
            None => self.admit(message, checks, clock),
        }
    }

    /// Replaces our messages with the winning message, unless the winning message would be refused at that position.
    fn yield_race(
        &mut self,
        message: &AuthenticatedMessage,
        index: usize,
        checks: ReceiverChecks,
        clock: Option<UnixMillis>,
    ) -> Result<ReceiveOutcome, Refusal> {
        let (Some(record), Some(first)) = (&self.record, self.unsettled.get(index)) else {
            return Ok(ReceiveOutcome::Ignored);
        };
        let mut trial = record.clone();
        trial.rewind(first.checkpoint.clone());
        match trial.admit(message, checks, clock) {
            Admission::Accepted(transitions) => {
                self.record = Some(trial);
                // Our earlier messages are settled, because the winning message builds on them.
                self.settle_first(index);
                let superseded = self.unsettled.drain(..).map(|sent| sent.body).collect();
                Ok(ReceiveOutcome::Accepted {
                    envelope: Box::new(message.envelope.clone()),
                    transitions,
                    superseded,
                })
            }
            Admission::Refused(refusal) => Err(refusal),
            Admission::ChainBroken(transition) => Ok(ReceiveOutcome::Failed(transition)),
        }
    }

    fn admit(
        &mut self,
        message: &AuthenticatedMessage,
        checks: ReceiverChecks,
        clock: Option<UnixMillis>,
    ) -> Result<ReceiveOutcome, Refusal> {
        let Some(record) = &mut self.record else { return Ok(ReceiveOutcome::Ignored) };
        match record.admit(message, checks, clock) {
            Admission::Accepted(transitions) => {
                self.settle_first(self.unsettled.len());
                Ok(ReceiveOutcome::Accepted {
                    envelope: Box::new(message.envelope.clone()),
                    transitions,
                    superseded: Vec::new(),
                })
            }
            Admission::Refused(refusal) => Err(refusal),
            Admission::ChainBroken(transition) => {
                // FAILED is terminal, so no refusal or race may roll it back.
                self.settle_first(self.unsettled.len());
                Ok(ReceiveOutcome::Failed(transition))
            }
        }
    }
}
