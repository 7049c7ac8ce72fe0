//! Requests from peers: they open sessions, send messages, and read the messages that they have missed.

use std::sync::Arc;

use asp::message::{AuthenticatedMessage, Authenticator, Body, PinnedCards};
use asp::session::ReceiverChecks;
use asp::state_machine::{Role, State};
use asp::trust::TrustEventKind;
use asp::{AgentCard, AspError, MessageId, ReceiveOutcome, Refusal, RejectCode, SessionId, StoredStep};
use seal::{Digest, SystemRandom};
use wire::unix_now;

use crate::NodeError;
use crate::catch_up::has_hash;
use crate::crash_point;
use crate::journal_writer::Batch;
use crate::node::Node;
use crate::person::one_line;
use crate::records::SessionRecord;
use crate::send::{MAX_SUBJECT_CHARS, run_to_completion};
use crate::session::{RefusalNotice, SessionHandle, SessionState};

/// The answer to a peer's message.
#[derive(Clone, Debug)]
pub(crate) enum ReceiveReply {
    /// The message is stored.
    Stored { message_id: MessageId, sequence_number: u64, state: State },
    /// The message was refused. Nothing has changed.
    Refused { refusal: Refusal, reject: Option<Arc<str>> },
    /// The message is not authentic, and is not answered further.
    Dropped(String),
}

impl Node {
    /// Handles a message from the peer whose card is `peer`. `session` is the session in the address; an invitation has none.
    pub(crate) async fn receive(
        self: &Arc<Self>,
        peer: Arc<AgentCard>,
        session: Option<SessionId>,
        text: &str,
    ) -> Result<ReceiveReply, NodeError> {
        if self.is_revoked(&peer) {
            // The card was revoked after the sender was authenticated.
            let refusal = Refusal::new(RejectCode::Unauthorized, "the card of this agent is revoked");
            return Ok(ReceiveReply::Refused { refusal, reject: None });
        }
        let known = match session.or_else(|| session_of(text)) {
            Some(id) => match self.session(id).await {
                Ok(handle) => Some(handle),
                Err(NodeError::UnknownSession) => None,
                Err(error) => return Err(error),
            },
            None => None,
        };
        if let Some(handle) = &known
            && handle.info.peer.agent_id() != peer.agent_id()
        {
            // Other agents do not learn that the session exists.
            return Err(NodeError::UnknownSession);
        }
        if known.is_none() && session.is_some() {
            return Err(NodeError::UnknownSession);
        }
        // A session continues with the keys with which it began.
        let card = known.as_ref().map_or(&peer, |handle| &handle.info.peer).clone();
        let cards = PinnedCards::new([(*card).clone(), (*self.card).clone()]);
        let authenticated = Authenticator::default().authenticate(text, &cards, &self.config.limits.session);
        let (node, text) = (self.clone(), text.to_owned());
        crash_point::pass("receive.before");
        let reply = run_to_completion(Box::pin(async move {
            match (authenticated, known) {
                (Ok(message), Some(handle)) => node.receive_in(&handle, &message).await,
                (Ok(message), None) => node.receive_invitation(card, &message).await,
                (Err(AspError::Refused(refusal)), Some(handle)) => {
                    node.refuse_malformed(&handle, refusal, integrity_hash(&text)).await
                }
                (Err(AspError::Refused(refusal)), None) => {
                    Ok(ReceiveReply::Refused { refusal, reject: None })
                }
                (Err(error), _) => {
                    node.counters.dropped.add(1);
                    node.record_violation(&card).await;
                    Ok(ReceiveReply::Dropped(error.to_string()))
                }
            }
        }))
        .await;
        if let Ok(ReceiveReply::Refused { refusal, .. }) = &reply {
            self.counters.count_refused_by_us(refusal.code);
        }
        crash_point::pass("receive.after");
        reply
    }

    /// Opens a session for an invitation, unless it is refused.
    async fn receive_invitation(
        self: &Arc<Self>,
        peer: Arc<AgentCard>,
        message: &AuthenticatedMessage,
    ) -> Result<ReceiveReply, NodeError> {
        let creation = self.creation.lock().await;
        let id = message.envelope.session_id;
        match self.session(id).await {
            // Another copy of the invitation was faster.
            Ok(handle) => {
                drop(creation);
                return if handle.info.peer.agent_id() == peer.agent_id() {
                    self.receive_in(&handle, message).await
                } else {
                    Err(NodeError::UnknownSession)
                };
            }
            Err(NodeError::UnknownSession) => {}
            Err(error) => return Err(error),
        }
        self.check_capacity(peer.agent_id())?;
        let subject = match &message.envelope.body {
            // The peer chooses its length. A person hears it, and the list of sessions shows it.
            Body::Propose(invitation) => one_line(&invitation.subject, MAX_SUBJECT_CHARS),
            _ => String::new(),
        };
        let info = self.new_session_info(id, peer, Role::Invited, subject);
        let mut state = SessionState::new(&self.config, &info)?;
        let (now, checks) = (unix_now(), self.checks_of_peer(&info.peer, None));
        let outcome =
            state.participant.handle(message, checks, now, &mut SystemRandom).map_err(NodeError::Local)?;
        if !matches!(outcome, ReceiveOutcome::Accepted { .. }) {
            return Ok(refused_reply(outcome));
        }
        let handle = SessionHandle::new(info.clone(), state, now);
        let mut state = handle.state.lock().await;
        let step = StoredStep::Received { text: message.text.clone() };
        let batch = Batch { opened: Some(info), ..Batch::of_session(id, vec![SessionRecord::Step(step)]) };
        self.commit(&mut state, batch).await?;
        self.insert(&handle);
        self.counters.received.increment(message.envelope.performative());
        self.narrate_message(&handle, &state, message, &outcome);
        self.finish_change(&handle, &mut state).await?;
        Ok(stored_reply(message, &state))
    }

    /// Handles a message in a known session.
    async fn receive_in(
        self: &Arc<Self>,
        handle: &Arc<SessionHandle>,
        message: &AuthenticatedMessage,
    ) -> Result<ReceiveReply, NodeError> {
        if self.misses_messages(handle, message).await? {
            // This node has lost what it had acknowledged, for example because an old backup was restored.
            let mut state = self.lock(handle).await?;
            self.expire(handle, &mut state).await?;
            drop(state);
            self.catch_up(handle, message.envelope.integrity.previous_hash).await?;
        }
        let mut state = self.lock(handle).await?;
        if is_stored(&state, message) {
            // The peer did not get our answer to its first attempt.
            return Ok(stored_reply(message, &state));
        }
        self.expire(handle, &mut state).await?;
        if state.refused_count >= self.config.limits.refusals_per_session {
            // Each refusal must be remembered, and there are too many.
            let reason = "too many messages of this session were refused, so it accepts no more";
            let refusal = Refusal::new(RejectCode::CapacityUnavailable, reason);
            return Ok(ReceiveReply::Refused { refusal, reject: None });
        }
        let (now, checks) = (unix_now(), self.checks_of_message(handle, &state, message));
        let outcome =
            state.participant.handle(message, checks, now, &mut SystemRandom).map_err(NodeError::Local)?;
        if state.is_ended {
            // Nothing can be stored in an ended session, and nothing has changed.
            return Ok(refused_reply(outcome));
        }
        let is_acceptance = matches!(message.envelope.body, Body::Accept(_));
        if is_acceptance && !matches!(outcome, ReceiveOutcome::Accepted { .. }) {
            self.peers().escrow.forget_promise(handle.info.id);
        }
        self.store_outcome(handle, &mut state, message, &outcome).await?;
        match outcome {
            ReceiveOutcome::Accepted { superseded, .. } => {
                if !superseded.is_empty() {
                    self.peers().escrow.forget_promise(handle.info.id);
                }
                for body in superseded {
                    state.note_refusal(RefusalNotice::stale(body.performative()));
                }
                let reply = stored_reply(message, &state);
                // The message is stored, whatever happens to our next one.
                let next = async {
                    self.advance(handle, &mut state).await?;
                    self.finish_change(handle, &mut state).await
                };
                Self::log_failure(handle.info.id, next.await);
                Ok(reply)
            }
            other => {
                self.finish_change(handle, &mut state).await?;
                Ok(refused_reply(other))
            }
        }
    }

    /// Stores what a message changed, together with its effects and those of our messages that it settled.
    pub(crate) async fn store_outcome(
        self: &Arc<Self>,
        handle: &Arc<SessionHandle>,
        state: &mut SessionState,
        message: &AuthenticatedMessage,
        outcome: &ReceiveOutcome,
    ) -> Result<(), NodeError> {
        let now = unix_now();
        let Some(step) = StoredStep::from_outcome(message, outcome, now) else { return Ok(()) };
        match outcome {
            ReceiveOutcome::Accepted { .. } => {
                self.counters.received.increment(message.envelope.performative());
            }
            ReceiveOutcome::RolledBack { refusal, .. } => {
                self.counters.count_refused_by_peer(refusal.code.as_str());
            }
            ReceiveOutcome::Refused { .. } => state.refused_count += 1,
            _ => {}
        }
        let mut transitions = state.participant.take_settled();
        match outcome {
            ReceiveOutcome::Accepted { transitions: own, .. } => transitions.extend(own.iter().cloned()),
            ReceiveOutcome::Failed(transition) => transitions.push(transition.clone()),
            _ => {}
        }
        let mut node_records = self.effects_until_end(&handle.info, state, &transitions, now);
        node_records.extend(self.violation_in(&handle.info, state, message, outcome, now));
        let mut batch = Batch::of_session(handle.info.id, vec![SessionRecord::Step(step)]);
        batch.node_records = node_records;
        self.commit(state, batch).await?;
        self.narrate_message(handle, state, message, outcome);
        Ok(())
    }

    /// Refuses a message that is authentic but malformed. The refusal is stored like others, so a repeated message counts once.
    async fn refuse_malformed(
        self: &Arc<Self>,
        handle: &Arc<SessionHandle>,
        refusal: Refusal,
        hash: Option<Digest>,
    ) -> Result<ReceiveReply, NodeError> {
        let mut state = self.lock(handle).await?;
        let now = unix_now();
        let is_recorded = state.is_ended || state.refused_count >= self.config.limits.refusals_per_session;
        if let Some(hash) = hash.filter(|_| !is_recorded)
            && state.participant.remember_refusal(&hash, now)
        {
            state.refused_count += 1;
            let step = SessionRecord::Step(StoredStep::Refused { hash, at: now });
            let mut batch = Batch::of_session(handle.info.id, vec![step]);
            let kind = TrustEventKind::ProtocolViolation;
            batch.node_records.extend(self.limited_violation(&handle.info, &state, kind, now));
            self.commit(&mut state, batch).await?;
        }
        let outcome = state
            .participant
            .handle_authentication_error(AspError::Refused(refusal), now, &mut SystemRandom)
            .map_err(NodeError::Local)?;
        Ok(refused_reply(outcome))
    }

    /// Returns whether a message of this session links to a hash that our chain does not have, while the session is open.
    async fn misses_messages(
        &self,
        handle: &SessionHandle,
        message: &AuthenticatedMessage,
    ) -> Result<bool, NodeError> {
        let state = self.lock(handle).await?;
        Ok(message.envelope.session_id == handle.info.id
            && !state.state().is_terminal()
            && !is_stored(&state, message)
            && !state.participant.was_refused(message)
            && !has_hash(&state, &message.envelope.integrity.previous_hash))
    }

    /// Returns the messages of a session from this position in the chain on, at most `limit` and a page, with the number of all.
    pub(crate) async fn messages_since(
        self: &Arc<Self>,
        session: SessionId,
        since: usize,
        limit: usize,
    ) -> Result<(Vec<String>, usize), NodeError> {
        let handle = self.session(session).await?;
        let state = self.lock(&handle).await?;
        let Some(record) = state.participant.record() else { return Ok((Vec::new(), 0)) };
        let transcript = record.transcript();
        let messages = transcript.messages().skip(since).take(limit);
        let messages = self.config.limits.page(messages).map(str::to_owned).collect();
        Ok((messages, transcript.len()))
    }

    /// What this node knows about the sender of a message, apart from its session.
    pub(crate) fn checks_of_peer(&self, peer: &AgentCard, body: Option<&Body>) -> ReceiverChecks {
        let policy = self.policy();
        self.peers().checks(peer, body, &policy, unix_now())
    }
}

fn is_stored(state: &SessionState, message: &AuthenticatedMessage) -> bool {
    let record = state.participant.record();
    record.is_some_and(|record| {
        record.transcript().message(&message.envelope.message_id) == Some(&message.text)
    })
}

fn stored_reply(message: &AuthenticatedMessage, state: &SessionState) -> ReceiveReply {
    ReceiveReply::Stored {
        message_id: message.envelope.message_id,
        sequence_number: message.envelope.sequence_number,
        state: state.state(),
    }
}

fn refused_reply(outcome: ReceiveOutcome) -> ReceiveReply {
    match outcome {
        ReceiveOutcome::Refused { refusal, reject } => ReceiveReply::Refused { refusal, reject },
        ReceiveOutcome::Dropped(error) => ReceiveReply::Dropped(error.to_string()),
        ReceiveOutcome::Failed(_) => ReceiveReply::Refused {
            refusal: Refusal::new(
                RejectCode::InvalidStateTransition,
                "the message links to an unknown hash, so the session has failed",
            ),
            reject: None,
        },
        _ => ReceiveReply::Refused {
            refusal: Refusal::new(RejectCode::InvalidStateTransition, "the message has no effect"),
            reject: None,
        },
    }
}

/// Returns the hash that an authentic message states.
fn integrity_hash(text: &str) -> Option<Digest> {
    let mut tape = seal::json::Tape::default();
    let doc = tape.read(text).ok()?;
    Digest::parse(&doc.root().member("integrity")?.member("hash")?.text()?)
}

/// Returns the session that a message names, before the message is authenticated.
fn session_of(text: &str) -> Option<SessionId> {
    let mut tape = seal::json::Tape::default();
    let doc = tape.read(text).ok()?;
    SessionId::parse(&doc.root().member("sessionId")?.text()?).ok()
}
