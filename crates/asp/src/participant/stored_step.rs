//! The steps of a participant that its caller stores, and the reconstruction of a participant from them.

use std::sync::Arc;

use seal::{Digest, UnixMillis};
use thiserror::Error;

use super::{Participant, ParticipantConfig, ReceiveOutcome, SentMessage, UnsettledMessage};
use crate::error::{AspError, LocalError, Refusal, RejectCode};
use crate::id::{AgentUri, MessageId, SessionId};
use crate::message::AuthenticatedMessage;
use crate::session::{ReceiverChecks, Transition};
use crate::session_record::{Admission, SessionRecord};
use crate::state_machine::Role;

/// One step of a participant. A caller that survives restarts stores each step before it acts on it, in the original order,
/// and passes all of them to [`Participant::restore`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoredStep {
    /// A session began. The step is required for the inviter; for the invited side, the invitation is enough.
    Opened {
        /// The session.
        session_id: SessionId,
        /// The other side. Its card must be pinned.
        peer: AgentUri,
        /// This side's role.
        role: Role,
    },
    /// This side sent a message.
    Sent {
        /// The message.
        text: Arc<str>,
    },
    /// A message from the other side was accepted.
    Received {
        /// The message as it was received.
        text: Arc<str>,
    },
    /// A message from the other side was refused with a REJECT. The step keeps a later copy of the message from being accepted
    /// after the other side has rolled it back.
    Refused {
        /// The hash of the message.
        hash: Digest,
        /// When it was refused.
        at: UnixMillis,
    },
    /// The other side accepted one of our messages ([`Participant::settle`]).
    Settled {
        /// The message.
        message_id: MessageId,
    },
    /// The other side refused one of our messages, which was rolled back.
    RolledBack {
        /// The REJECT as it was received.
        reject_text: Arc<str>,
    },
    /// Our messages from this one on were rolled back, because the other side's chain, which we have adopted
    /// ([`Participant::take_over`]), continues without them.
    Superseded {
        /// The first of these messages.
        message_id: MessageId,
    },
    /// Timers expired ([`Participant::handle_timeout`]). Without this step, the participant still has the same state after
    /// the next `handle_timeout`, but an overdue response may be reported twice.
    TimersExpired {
        /// The time that was passed to `handle_timeout`.
        at: UnixMillis,
    },
    /// A message from the other side broke the chain, and the session failed (D7).
    ChainBroken {
        /// The message as it was received.
        text: Arc<str>,
        /// When it was received.
        at: UnixMillis,
    },
}

impl StoredStep {
    /// Returns the step to store after [`Participant::handle`] has returned `outcome` for `message` at the time `now`.
    /// Returns `None` if nothing changed that a restart must not lose.
    pub fn from_outcome(
        message: &AuthenticatedMessage,
        outcome: &ReceiveOutcome,
        now: UnixMillis,
    ) -> Option<Self> {
        let text = || message.text.clone();
        match outcome {
            ReceiveOutcome::Accepted { .. } => Some(Self::Received { text: text() }),
            ReceiveOutcome::Refused { reject: Some(_), .. } => {
                Some(Self::Refused { hash: message.hash, at: now })
            }
            ReceiveOutcome::RolledBack { .. } => Some(Self::RolledBack { reject_text: text() }),
            ReceiveOutcome::Failed(_) => Some(Self::ChainBroken { text: text(), at: now }),
            ReceiveOutcome::Refused { reject: None, .. }
            | ReceiveOutcome::Ignored
            | ReceiveOutcome::Dropped(_) => None,
        }
    }
}

impl From<&SentMessage> for StoredStep {
    fn from(sent: &SentMessage) -> Self {
        Self::Sent { text: sent.text.clone() }
    }
}

/// Why a participant could not be restored.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RestoreError {
    /// The configuration is invalid.
    #[error(transparent)]
    Config(#[from] LocalError),
    /// A stored step does not fit the steps before it, or its message is not authentic.
    #[error("step {index} of the stored session is invalid: {error}")]
    InvalidStep {
        /// The index of the step, from 0.
        index: usize,
        /// The error.
        #[source]
        error: AspError,
    },
}

impl Participant {
    /// Rebuilds a participant from its steps in their original order. The configuration must have the cards and keys of the
    /// time when the session began.
    ///
    /// Every message is authenticated again, but no time is compared with a clock. Afterwards, the caller must call
    /// [`Self::handle_timeout`] with the current time, because deadlines may have passed in the meantime.
    pub fn restore(
        config: ParticipantConfig,
        steps: impl IntoIterator<Item = StoredStep>,
    ) -> Result<Self, RestoreError> {
        let mut participant = Self::new(config)?;
        for (index, step) in steps.into_iter().enumerate() {
            participant.repeat(&step).map_err(|error| RestoreError::InvalidStep { index, error })?;
        }
        Ok(participant)
    }

    /// Adopts a step that the other side has kept and this side has lost: a message of either side, or that our messages are
    /// not in the other side's chain. `checks` states what this side knows about the sender and the escrow. Returns the
    /// transitions that can no longer be rolled back. No time is compared with a clock.
    pub fn take_over(
        &mut self,
        step: &StoredStep,
        checks: ReceiverChecks,
    ) -> Result<Vec<Transition>, AspError> {
        let mut transitions = Vec::new();
        if let StoredStep::Received { text } = step {
            let received = self.repeat_receiving(text, checks)?;
            transitions.extend(self.take_settled());
            transitions.extend(received);
        } else {
            self.repeat(step)?;
            transitions.extend(self.take_settled());
        }
        Ok(transitions)
    }

    /// Repeats a step that was accepted before the restart.
    fn repeat(&mut self, step: &StoredStep) -> Result<(), AspError> {
        match step {
            StoredStep::Opened { session_id, peer, role } => self.repeat_opening(*session_id, peer, *role),
            StoredStep::Sent { text } => self.repeat_sending(text),
            StoredStep::Received { text } => self.repeat_receiving(text, ReceiverChecks::PASSED).map(drop),
            StoredStep::Refused { hash, at } => {
                // A full memory was full before the restart too.
                let _ = self.refused_hashes.insert(&hash.to_string(), at.seconds());
                Ok(())
            }
            StoredStep::Settled { message_id } => {
                self.settle(*message_id);
                Ok(())
            }
            StoredStep::RolledBack { reject_text } => {
                let message = self.authenticate_stored(reject_text)?;
                match self.handle_reject(&message) {
                    Some(ReceiveOutcome::RolledBack { .. }) => Ok(()),
                    _ => Err(invalid("the REJECT names no message that can be rolled back").into()),
                }
            }
            StoredStep::Superseded { message_id } => {
                let index = self.unsettled.iter().position(|sent| sent.id == *message_id);
                let index = index.ok_or_else(|| invalid("the message cannot be rolled back"))?;
                self.roll_back_from(index);
                Ok(())
            }
            StoredStep::TimersExpired { at } => {
                self.handle_timeout(*at);
                Ok(())
            }
            StoredStep::ChainBroken { text, at } => {
                let message = self.authenticate_stored(text)?;
                match self.admit(&message, ReceiverChecks::PASSED, Some(*at))? {
                    ReceiveOutcome::Failed(_) => Ok(()),
                    _ => Err(invalid("the message does not break the chain").into()),
                }
            }
        }
    }

    fn repeat_opening(&mut self, session_id: SessionId, peer: &AgentUri, role: Role) -> Result<(), AspError> {
        let own = &self.config.card;
        let pinned = self.cards.get(peer).filter(|card| card.agent_id() != own.agent_id());
        let peer = pinned.ok_or(LocalError::NoPeer)?.clone();
        if self.record.is_some() {
            return Err(invalid("the session was already opened").into());
        }
        let (inviter, invited) = match role {
            Role::Inviter => (own.clone(), peer),
            Role::Invited => (peer, own.clone()),
        };
        let (rules, limits) = (self.config.rules, &self.config.limits);
        self.record = Some(SessionRecord::new(session_id, inviter, invited, rules, limits));
        Ok(())
    }

    fn repeat_receiving(&mut self, text: &str, checks: ReceiverChecks) -> Result<Vec<Transition>, AspError> {
        let message = self.authenticate_stored(text)?;
        if self.is_own(&message) {
            return Err(invalid("the message was sent by this agent").into());
        }
        if self.record.is_none() {
            let (rules, limits) = (self.config.rules, &self.config.limits);
            let record = SessionRecord::from_invitation(&message.envelope, &self.cards, rules, limits)?;
            self.record = Some(record);
        }
        match self.admit_or_yield(&message, checks, None)? {
            ReceiveOutcome::Accepted { transitions, .. } => Ok(transitions),
            _ => Err(invalid("the message was not accepted").into()),
        }
    }

    fn repeat_sending(&mut self, text: &str) -> Result<(), AspError> {
        let message = self.authenticate_stored(text)?;
        if !self.is_own(&message) {
            return Err(invalid("the message was not sent by this agent").into());
        }
        let record = self.record.as_mut().ok_or(LocalError::NoPeer)?;
        let checkpoint = record.checkpoint();
        match record.admit(&message, ReceiverChecks::PASSED, None) {
            Admission::Accepted(transitions) => {
                let AuthenticatedMessage { text, envelope, .. } = message;
                let (id, body) = (envelope.message_id, envelope.body);
                self.unsettled.push(UnsettledMessage { id, text, body, checkpoint, transitions });
                Ok(())
            }
            Admission::Refused(refusal) => Err(refusal.into()),
            Admission::ChainBroken(_) => Err(invalid("the message breaks the chain").into()),
        }
    }

    fn is_own(&self, message: &AuthenticatedMessage) -> bool {
        message.envelope.sender.agent_id == *self.config.card.agent_id()
    }

    fn authenticate_stored(&mut self, text: &str) -> Result<AuthenticatedMessage, AspError> {
        self.authenticator.authenticate(text, &self.cards, &self.config.limits)
    }
}

fn invalid(reason: &str) -> Refusal {
    Refusal::new(RejectCode::InvalidStateTransition, reason)
}
