//! Requests from the agent's own program: it invites a peer, and sends messages.

use std::pin::Pin;
use std::sync::Arc;

use asp::message::{Body, Constraints, Inform, InformType, Propose};
use asp::session::ReceiverChecks;
use asp::state_machine::{Role, State};
use asp::{
    AgentCard, AgentUri, AspError, LocalError, MessageId, OutgoingMessage, Participant, Performative,
    ProposalId, Refusal, RejectCode, SentMessage, StoredStep,
};
use seal::SystemRandom;
use seal::json::RawJson;
use wire::unix_now;

use crate::NodeError;
use crate::crash_point;
use crate::encoding;
use crate::journal_writer::Batch;
use crate::node::Node;
use crate::records::SessionRecord;
use crate::session::{SessionHandle, SessionState};

/// Maximum length of the subject of our invitations, in characters.
pub(crate) const MAX_SUBJECT_CHARS: usize = 500;

/// Why nothing is sent to a peer.
pub(crate) const REVOKED: &str = "the card of the other side is revoked, so nothing is sent to it";

/// A request to open a session.
#[derive(Clone, Debug)]
pub struct InvitationRequest {
    /// The peer: an agent URI, or the address of its card.
    pub peer: String,
    /// What the session is about.
    pub subject: String,
    /// The terms, a JSON object.
    pub terms: RawJson,
    /// When the invitation expires; by default 30 seconds after it was sent.
    pub valid_until: Option<seal::Timestamp>,
}

/// A request to send a message.
#[derive(Clone, Debug)]
pub struct MessageRequest {
    /// The kind of message.
    pub performative: Performative,
    /// Its body, a JSON object.
    pub body: String,
    /// What else the agent's program states.
    pub extras: MessageExtras,
}

/// What a message states besides its body.
#[derive(Clone, Debug, Default)]
pub struct MessageExtras {
    /// Constraints on the answer (D9, D23).
    pub constraints: Option<Constraints>,
    /// How many tokens the agent used for this message (D23).
    pub tokens_used: Option<u64>,
}

/// The outcome of sending a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SendOutcome {
    /// The message is stored, and will be delivered.
    Sent {
        /// Its id.
        message_id: MessageId,
        /// Its sequence number.
        sequence_number: u64,
        /// The state of the session after it.
        state: State,
    },
    /// A person is asked before the message is sent.
    AwaitingConsent {
        /// Identifies the question.
        reply_token: String,
    },
}

impl Node {
    /// Opens a session with a peer.
    pub async fn invite(self: &Arc<Self>, request: InvitationRequest) -> Result<asp::SessionId, NodeError> {
        let peer = self.resolve_peer(&request.peer).await?;
        let node = self.clone();
        crash_point::pass("request.before");
        let session = run_to_completion(Box::pin(async move { node.invite_peer(peer, request).await })).await;
        crash_point::pass("request.after");
        session
    }

    async fn invite_peer(
        self: &Arc<Self>,
        peer: Arc<AgentCard>,
        request: InvitationRequest,
    ) -> Result<asp::SessionId, NodeError> {
        let _creation = self.creation.lock().await;
        self.check_capacity(peer.agent_id())?;
        let now = unix_now();
        if request.subject.trim().is_empty() || request.subject.chars().count() > MAX_SUBJECT_CHARS {
            return Err(NodeError::Malformed(format!(
                "subject must have 1 to {MAX_SUBJECT_CHARS} characters."
            )));
        }
        if request.valid_until.is_some_and(|at| at.unix_millis() <= now) {
            return Err(NodeError::Malformed("validUntil must be in the future.".to_owned()));
        }
        // The participant chooses the id, so the session's data is complete only after the invitation.
        let placeholder = asp::SessionId::generate(now, &mut SystemRandom);
        let mut info = self.new_session_info(placeholder, peer, Role::Inviter, request.subject.clone());
        let mut state = SessionState::new(&self.config, &info)?;
        info.id = state.participant.invite(&info.peer, now, &mut SystemRandom).map_err(NodeError::Local)?;
        let proposal = ProposalId::parse(&format!("prop_{}", info.id))
            .map_err(|error| NodeError::Malformed(error.to_string()))?;
        let mut invitation = Propose::new(proposal, Propose::INVITATION_TYPE, request.subject, request.terms);
        invitation.valid_until = request.valid_until;
        if self.config.uses_message_pack {
            encoding::offer(&mut invitation);
        }
        let sent = send_signed(
            &mut state.participant,
            invitation.into(),
            MessageExtras::default(),
            ReceiverChecks::PASSED,
        )?;
        let id = info.id;
        let handle = SessionHandle::new(info.clone(), state, now);
        let mut state = handle.state.lock().await;
        let batch = Batch {
            opened: Some(info),
            ..Batch::of_session(id, vec![SessionRecord::Step(StoredStep::from(&sent))])
        };
        self.commit(&mut state, batch).await?;
        self.insert(&handle);
        self.counters.sent.increment(Performative::Propose);
        self.narrate_sent(&handle, &state, &sent);
        self.finish_change(&handle, &mut state).await?;
        Ok(id)
    }

    /// Sends a message, after a person's consent if the policy demands it.
    pub async fn send(
        self: &Arc<Self>,
        session: asp::SessionId,
        request: MessageRequest,
    ) -> Result<SendOutcome, NodeError> {
        let MessageRequest { performative, body, extras } = request;
        let mut body = Body::parse(performative, &body).map_err(|error| {
            NodeError::Refused(Refusal::new(RejectCode::SchemaUnsupported, error.to_string()))
        })?;
        let handle = self.session(session).await?;
        let node = self.clone();
        crash_point::pass("request.before");
        let outcome = run_to_completion(Box::pin(async move {
            let mut state = node.lock(&handle).await?;
            node.expire(&handle, &mut state).await?;
            node.check_not_revoked(&handle)?;
            if state.is_delivery_abandoned() {
                let reason = "the other side did not take an earlier message, so nothing more can be sent";
                return Err(NodeError::Refused(Refusal::new(RejectCode::Timeout, reason)));
            }
            let is_resolution =
                matches!(&body, Body::Inform(inform) if inform.kind == InformType::Resolution);
            if is_resolution && node.person.is_some() && node.policy().consent.escalate {
                let reason = "the person decides about this escalation, and the node sends the decision";
                return Err(NodeError::Refused(Refusal::new(RejectCode::PolicyViolation, reason)));
            }
            if node.config.uses_message_pack {
                encoding::accept_offer(&state, &mut body);
            }
            let outcome = node.send_or_ask(&handle, &mut state, body, extras).await;
            if let (Performative::Accept, Err(NodeError::Refused(refusal))) = (performative, &outcome) {
                node.record_unfunded_escrow(&handle, &mut state, refusal).await?;
            }
            outcome
        }))
        .await;
        crash_point::pass("request.after");
        outcome
    }

    /// Sends a message, or asks a person about it if the policy demands that.
    async fn send_or_ask(
        self: &Arc<Self>,
        handle: &Arc<SessionHandle>,
        state: &mut SessionState,
        body: Body,
        extras: MessageExtras,
    ) -> Result<SendOutcome, NodeError> {
        if self.needs_consent(state, &body) {
            if state.consent.is_some() {
                return Err(NodeError::AwaitingConsent);
            }
            let asked = self.ask_for_consent(handle, state, body, extras).await;
            return asked.inspect_err(|_| self.forget_unused_promise(handle, state));
        }
        let is_escalation = matches!(body, Body::Escalate(_));
        let sent = self.send_message(handle, state, body, extras).await;
        let outcome = sent.inspect_err(|_| self.forget_unused_promise(handle, state))?;
        if is_escalation {
            self.ask_about_escalation(handle, state).await;
        }
        Ok(outcome)
    }

    /// Frees the money that was reserved for a commitment which our agent has not accepted after all.
    fn forget_unused_promise(&self, handle: &SessionHandle, state: &SessionState) {
        if state.state() == State::Agreeing && state.consent.is_none() {
            self.peers().escrow.forget_promise(handle.info.id);
        }
    }

    /// Signs, stores and delivers a message.
    pub(crate) async fn send_message(
        self: &Arc<Self>,
        handle: &Arc<SessionHandle>,
        state: &mut SessionState,
        body: Body,
        extras: MessageExtras,
    ) -> Result<SendOutcome, NodeError> {
        self.check_not_revoked(handle)?;
        let checks = self.checks_of_own_message(handle, state, &body);
        let sent_performative = body.performative();
        let sent = send_signed(&mut state.participant, body, extras, checks)?;
        let sequence_number = state
            .participant
            .record()
            .map_or(0, |record| record.transcript().next_sequence_number(handle.info.role).saturating_sub(1));
        let batch = Batch::of_session(handle.info.id, vec![SessionRecord::Step(StoredStep::from(&sent))]);
        self.commit(state, batch).await?;
        if state.state() == State::Executing {
            self.peers().escrow.reserve(&handle.info, state.participant.session());
        }
        self.counters.sent.increment(sent_performative);
        self.narrate_sent(handle, state, &sent);
        self.finish_change(handle, state).await?;
        Ok(SendOutcome::Sent { message_id: sent.message_id, sequence_number, state: state.state() })
    }

    /// Fails if the operator has revoked the card of the peer. Then nothing is sent to it.
    pub(crate) fn check_not_revoked(&self, handle: &SessionHandle) -> Result<(), NodeError> {
        if self.is_revoked(&handle.info.peer) {
            return Err(NodeError::Refused(Refusal::new(RejectCode::Unauthorized, REVOKED)));
        }
        Ok(())
    }

    /// Sends what the protocol demands of the node itself: the identity after an accepted invitation. The inviter identifies
    /// itself first, so that the two messages do not race.
    pub(crate) async fn advance(
        self: &Arc<Self>,
        handle: &Arc<SessionHandle>,
        state: &mut SessionState,
    ) -> Result<(), NodeError> {
        let role = handle.info.role;
        let Some(session) = state.participant.session() else { return Ok(()) };
        let is_due = session.awaits_identity(role)
            && (role == Role::Inviter || !session.awaits_identity(Role::Inviter));
        if !is_due || self.is_revoked(&handle.info.peer) {
            return Ok(());
        }
        let mut identity = Inform::new(InformType::Identity);
        identity.card = RawJson::parse(handle.info.own.as_str()).ok();
        self.send_message(handle, state, identity.into(), MessageExtras::default()).await.map(drop)
    }

    /// Finds the card of a peer: pinned, or, if the policy permits it, fetched and pinned.
    async fn resolve_peer(self: &Arc<Self>, peer: &str) -> Result<Arc<AgentCard>, NodeError> {
        if let Ok(agent) = AgentUri::parse(peer) {
            if self.peers().is_revoked(&agent) {
                return Err(NodeError::Refused(Refusal::new(RejectCode::Unauthorized, REVOKED)));
            }
            if let Some(card) = self.peers().card(&agent) {
                return Ok(card);
            }
            if !self.config.trusts_on_first_use {
                return Err(NodeError::UnknownPeer(peer.to_owned()));
            }
            let card = self.fetch_peer_card(&agent).await?;
            return self.pin(card).await;
        }
        let card = self
            .client
            .fetch_card(peer)
            .await
            .map_err(|reason| NodeError::UnusableCard(peer.to_owned(), reason))?;
        let pinned = self.peers().card(card.agent_id());
        match pinned {
            Some(pinned) if pinned.signing_key() == card.signing_key() => Ok(pinned),
            Some(pinned) if !card.is_successor_of(&pinned) => Err(NodeError::UnusableCard(
                peer.to_owned(),
                "its keys differ from those of the pinned card, and the old key did not sign it".to_owned(),
            )),
            None if !self.config.trusts_on_first_use => {
                Err(NodeError::UnknownPeer(card.agent_id().to_string()))
            }
            _ => self.pin(card).await,
        }
    }
}

/// Signs a message and appends it to the participant's record.
pub(crate) fn send_signed(
    participant: &mut Participant,
    body: Body,
    extras: MessageExtras,
    checks: ReceiverChecks,
) -> Result<SentMessage, NodeError> {
    let MessageExtras { constraints, tokens_used } = extras;
    let message = OutgoingMessage { body, constraints, tokens_used, checks };
    participant.send_message(message, unix_now(), &mut SystemRandom).map_err(|error| match error {
        AspError::Local(LocalError::NotAllowed(refusal)) | AspError::Refused(refusal) => {
            NodeError::Refused(refusal)
        }
        AspError::Local(error) => NodeError::Local(error),
        AspError::Unauthenticated(error) => NodeError::Malformed(error.to_string()),
    })
}

/// Runs a future to its end, even if the caller goes away in the meantime. A session must not be left between a change in
/// memory and its record in the journal. The future is boxed, because it is large and a task is moved several times.
pub(crate) async fn run_to_completion<T: Send + 'static>(
    future: Pin<Box<dyn Future<Output = Result<T, NodeError>> + Send>>,
) -> Result<T, NodeError> {
    tokio::spawn(future).await.unwrap_or(Err(NodeError::Stopping))
}
