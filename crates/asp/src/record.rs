//! A session on record: the transcript and the machine together, as either side or an auditor holds them.
//!
//! Feed it authenticated messages in their order with [`Record::admit`]. It asks, in this order: the right session, the
//! right people, a message that fits on the end of the chain, a proof that was not used before, a time that can be, and
//! a move that is lawful. A refusal changes nothing.

use seal::UnixMillis;
use seal::dpop::Replays;
use seal::json::Tape;

use crate::card::Card;
use crate::error::{Code, Refusal};
use crate::id::{AgentUri, SessionId};
use crate::limits::{Limits, PROOF_SECONDS};
use crate::machine::Role;
use crate::message::{Body, Cards, Envelope, Sealed};
use crate::session::{Incoming, Judgement, Party, Rules, Session, Step};
use crate::transcript::{Misfit, Point, Transcript, skew};

/// A session on record.
#[derive(Clone, Debug)]
pub struct Record {
    session_id: SessionId,
    cards: [Card; 2],
    session: Session,
    transcript: Transcript,
    proofs: Replays,
    messages: usize,
}

/// Where a record can be taken up again.
#[derive(Clone, Debug)]
pub struct Checkpoint {
    /// Where the chain is.
    pub point: Point,
    /// Where the machine is.
    pub session: Session,
}

/// What came of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It is on record. Timers that ran out before it come first, the message's own step is last.
    Taken(Vec<Step>),
    /// It is not, and nothing has changed.
    Refused(Refusal),
    /// Its link is none: the session has failed (D7).
    Broken(Step),
}

/// D16
pub(crate) const PROOF_MEMORY_SECONDS: i64 = 600;

impl Record {
    /// The record of a session that is yet to begin.
    pub fn new(session_id: SessionId, inviter: Card, invited: Card, rules: Rules, limits: &Limits) -> Self {
        let party = |card: &Card| Party { agent: card.agent_id().clone(), level: card.level() };
        Self {
            session_id,
            session: Session::new(party(&inviter), party(&invited), rules, limits),
            cards: [inviter, invited],
            transcript: Transcript::default(),
            proofs: Replays::new(PROOF_MEMORY_SECONDS, limits.proofs),
            messages: limits.messages,
        }
    }

    /// The record that a first message would begin: its sender invites its recipient, or the only other agent whose card
    /// is known.
    pub fn beginning(
        first: &Envelope,
        cards: &Cards,
        rules: Rules,
        limits: &Limits,
    ) -> Result<Self, Refusal> {
        let unknown = |who: &str| Refusal::new(Code::Unauthorized, format!("no card is known for {who}"));
        let sender = &first.sender.agent_id;
        let inviter = cards.of(sender).ok_or_else(|| unknown(sender.as_str()))?;
        let invited = if let Some(recipient) = &first.recipient {
            cards.of(&recipient.0).ok_or_else(|| unknown(recipient.0.as_str()))?
        } else {
            let mut others = cards.iter().filter(|card| card.agent_id() != sender);
            match (others.next(), others.next()) {
                (Some(only), None) => only,
                _ => return Err(unknown("the recipient, who is not named")),
            }
        };
        if inviter.agent_id() == invited.agent_id() {
            return Err(Refusal::new(Code::Unauthorized, "nobody invites himself"));
        }
        Ok(Self::new(first.session_id, inviter.clone(), invited.clone(), rules, limits))
    }

    /// Goes on from a checkpoint: messages before it are neither needed nor known.
    #[must_use]
    pub fn resumed(mut self, checkpoint: Checkpoint) -> Self {
        self.session = checkpoint.session;
        self.transcript = Transcript::from(checkpoint.point);
        self
    }

    /// Forgets the messages' texts from now on ([`Transcript::forgetful`]).
    #[must_use]
    pub fn forgetful(mut self) -> Self {
        self.transcript = self.transcript.forgetful();
        self
    }

    /// Where it is.
    pub fn checkpoint(&self) -> Checkpoint {
        Checkpoint { point: self.transcript.point(), session: self.session.clone() }
    }

    /// The session's name.
    pub fn session_id(&self) -> SessionId {
        self.session_id
    }

    /// The machine.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// The messages.
    pub fn transcript(&self) -> &Transcript {
        &self.transcript
    }

    /// The side with that name.
    pub fn role_of(&self, agent: &AgentUri) -> Option<Role> {
        self.session.role_of(agent)
    }

    /// The card of that side.
    pub fn card(&self, role: Role) -> &Card {
        &self.cards[role.index()]
    }

    /// Takes a message. `clock` is the present time for live receipt; without it, only the messages' own times count.
    pub fn admit(&mut self, message: &Sealed, judgement: Judgement, clock: Option<UnixMillis>) -> Admission {
        match self.examine(message, judgement, clock) {
            Ok((session, steps, sender)) => {
                self.transcript.append(message, sender);
                let _ = self.proofs.take(&message.jti, seconds(message, clock));
                if let Some(session) = session {
                    self.session = session;
                }
                Admission::Taken(steps)
            }
            Err(Misfit::Refused(refusal)) => {
                Admission::Refused(Refusal { message: Some(message.envelope.message_id), ..refusal })
            }
            Err(Misfit::Broken) => self.break_chain(message, clock),
        }
    }

    /// D7. Timers that ran out before come first, so that both sides tell the same end.
    fn break_chain(&mut self, message: &Sealed, clock: Option<UnixMillis>) -> Admission {
        let at = clock.unwrap_or_else(|| message.envelope.timestamp.unix_millis());
        let mut session = self.session.clone();
        session.wake(at);
        let ended_before = self.session.outcome().is_some();
        let refusal = if let Some(outcome) = session.outcome().filter(|_| !ended_before) {
            Refusal::new(Code::Timeout, format!("too late: {}", outcome.reason))
        } else if let Some(step) = session.break_chain(at) {
            self.session = session;
            return Admission::Broken(step);
        } else {
            Refusal::new(Code::InvalidStateTransition, "links to nothing that the chain has had")
        };
        Admission::Refused(Refusal { message: Some(message.envelope.message_id), ..refusal })
    }

    /// Lets timers run out.
    pub fn wake(&mut self, now: UnixMillis) -> Vec<Step> {
        self.session.wake(now)
    }

    pub(crate) fn rewind(&mut self, checkpoint: Checkpoint) {
        self.transcript.rewind(&checkpoint.point);
        self.session = checkpoint.session;
    }

    /// Judges a message. The session that follows from it is returned beside the old one where timers ran out first, and
    /// is the changed old one otherwise; a refusal leaves it as it was either way.
    #[allow(clippy::type_complexity, reason = "one caller, just above")]
    fn examine(
        &mut self,
        message: &Sealed,
        judgement: Judgement,
        clock: Option<UnixMillis>,
    ) -> Result<(Option<Session>, Vec<Step>, Role), Misfit> {
        let envelope = &message.envelope;
        let refuse = |code, why: &str| Err(Misfit::Refused(Refusal::new(code, why)));
        if envelope.session_id != self.session_id {
            return refuse(Code::InvalidStateTransition, "the message belongs to another session");
        }
        let Some(sender) = self.session.role_of(&envelope.sender.agent_id) else {
            return refuse(Code::Unauthorized, "the sender is not in this session");
        };
        let other = &self.session.party(sender.other()).agent;
        if envelope.recipient.as_ref().is_some_and(|recipient| &recipient.0 != other) {
            return refuse(Code::Unauthorized, "the recipient is not the other side of this session");
        }
        if self.transcript.len() >= self.messages {
            return refuse(Code::CapacityUnavailable, "the session has as many messages as are allowed");
        }
        self.transcript.check(message, sender)?;
        if self.proofs.has(&message.jti) {
            return refuse(Code::Duplicate, "the DPoP proof was used before");
        }
        if self.proofs.is_full(seconds(message, clock)) {
            return refuse(Code::CapacityUnavailable, "too many DPoP proofs are remembered");
        }
        let at = envelope.timestamp.unix_millis();
        if clock.is_some_and(|now| at.millis_since(now).unsigned_abs() > skew().unsigned_abs()) {
            let why = format!("the timestamp is more than {PROOF_SECONDS} s from now");
            return refuse(Code::Timeout, &why);
        }
        let incoming = Incoming {
            sender,
            body: &envelope.body,
            at,
            answer_within: envelope
                .constraints
                .as_ref()
                .and_then(|constraints| constraints.max_response_time_ms)
                .map(crate::message::Millis::get),
            judgement: Judgement { card_pinned: self.is_card_pinned(&envelope.body, sender), ..judgement },
        };
        if self.session.next_deadline().is_none_or(|deadline| deadline > at) {
            let step = self.session.feed(&incoming).map_err(Misfit::Refused)?;
            return Ok((None, vec![step], sender));
        }
        let mut session = self.session.clone();
        let mut steps = session.wake(at);
        if let Some(outcome) = session.outcome().filter(|_| session.state().is_terminal()) {
            return refuse(Code::Timeout, &format!("too late: {}", outcome.reason));
        }
        steps.push(session.feed(&incoming).map_err(Misfit::Refused)?);
        Ok((Some(session), steps, sender))
    }

    /// D17
    fn is_card_pinned(&self, body: &Body, sender: Role) -> bool {
        let Body::Inform(inform) = body else { return true };
        let Some(card) = &inform.card else { return true };
        let mut tape = Tape::default();
        tape.read(card.as_str()).is_ok_and(|doc| self.card(sender).is(&doc.root()))
    }
}

fn seconds(message: &Sealed, clock: Option<UnixMillis>) -> i64 {
    clock.unwrap_or_else(|| message.envelope.timestamp.unix_millis()).seconds()
}
