//! One side of a live session: it has keys, speaks and hears.
//!
//! [`Participant::send`] puts a message on its own record and gives the bytes to send. [`Participant::receive`] takes what
//! arrives. A message of ours is settled when the other side goes on from it; until then it can still be undone, by a
//! refusal or by a race that it lost (D6, D8).

use std::sync::Arc;

use seal::{Keys, Random, Timestamp};

use crate::card::Card;
use crate::error::{Code, Error, Misbehaviour, Misuse, Refusal};
use crate::id::{MessageId, SessionId};
use crate::limits::Limits;
use crate::machine::{Role, State};
use crate::message::{
    Authenticator, Body, Cards, Constraints, Content, Draft, Envelope, Others, Reject, Sealed, TrustScore,
};
use crate::record::{Admission, Checkpoint, Record};
use crate::session::{Judgement, Rules, Session, Step};

/// What a participant is made of.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Its own card.
    pub card: Card,
    /// The keys that the card publishes.
    pub keys: Keys,
    /// Its organisation, as messages name it.
    pub org_id: String,
    /// What it says of its own trust.
    pub trust_score: TrustScore,
    /// The cards of those whom it deals with, pinned.
    pub known: Cards,
    /// Which table, and how it is read.
    pub rules: Rules,
    /// How much it takes.
    pub limits: Limits,
}

/// One side of one session.
#[derive(Debug)]
pub struct Participant {
    setup: Setup,
    cards: Cards,
    record: Option<Record>,
    /// What was sent and not yet settled, each with the way back.
    unsettled: Vec<Unsettled>,
    authenticator: Authenticator,
    dropped: u64,
}

/// A message that may yet be undone, and the way back.
#[derive(Debug)]
struct Unsettled {
    id: MessageId,
    body: Body,
    before: Checkpoint,
}

/// A message that is ours, on our record and ready to be sent.
#[derive(Clone, Debug)]
pub struct Sent {
    /// The bytes.
    pub text: Arc<str>,
    /// Its name.
    pub message_id: MessageId,
    /// What came of it here.
    pub steps: Vec<Step>,
}

/// What came of bytes that arrived.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Received {
    /// A message is on record.
    Taken {
        /// What it says.
        envelope: Box<Envelope>,
        /// What came of it.
        steps: Vec<Step>,
        /// Messages of ours that lost the race against it; they may be sent again.
        lost: Vec<Body>,
    },
    /// A message is refused; nothing has changed.
    Refused {
        /// Why.
        refusal: Refusal,
        /// The REJECT to send back, where the message could be named.
        answer: Option<Arc<str>>,
    },
    /// The other side refuses messages of ours. They are undone.
    Undone {
        /// What the other side says.
        refusal: Refusal,
        /// The messages, the refused one first.
        messages: Vec<Body>,
    },
    /// A refusal of something that is not ours to undo any more; nothing has changed.
    Ignored,
    /// The chain is broken; the session has failed.
    Failed(Step),
    /// Not authentic: dropped and counted, and never answered.
    Dropped(Misbehaviour),
}

impl Participant {
    /// A participant that waits for an invitation, or sends one with [`Self::invite`].
    pub fn new(setup: Setup) -> Result<Self, Misuse> {
        let card = &setup.card;
        if setup.keys.signing.verifying_key() != *card.signing_key()
            || setup.keys.dpop.verifying_key() != card.dpop_key()
        {
            return Err(Misuse::Keys);
        }
        let cards = Cards::new(setup.known.iter().cloned().chain([card.clone()]));
        Ok(Self {
            cards,
            setup,
            record: None,
            unsettled: Vec::new(),
            authenticator: Authenticator::default(),
            dropped: 0,
        })
    }

    /// Begins a session with the agent of that card, which must be pinned; the invitation is the first message to send.
    pub fn invite(&mut self, peer: &Card, now: i64, random: &mut impl Random) -> Result<SessionId, Misuse> {
        if self.cards.of(peer.agent_id()).is_none() {
            return Err(Misuse::NotAParticipant);
        }
        let id = SessionId::generate(now, random);
        let (rules, limits) = (self.setup.rules, &self.setup.limits);
        self.record = Some(Record::new(id, self.setup.card.clone(), peer.clone(), rules, limits));
        Ok(id)
    }

    /// The session on record, once there is one.
    pub fn record(&self) -> Option<&Record> {
        self.record.as_ref()
    }

    /// The machine, once there is a session.
    pub fn session(&self) -> Option<&Session> {
        self.record.as_ref().map(Record::session)
    }

    /// Its card.
    pub fn card(&self) -> &Card {
        &self.setup.card
    }

    /// How many messages were dropped because they did not authenticate.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Which side it is.
    pub fn role(&self) -> Option<Role> {
        self.record.as_ref()?.role_of(self.setup.card.agent_id())
    }

    /// Makes a message, puts it on record and gives the bytes to send.
    pub fn send(&mut self, body: Body, now: i64, random: &mut impl Random) -> Result<Sent, Error> {
        self.send_with(body, None, Judgement::default(), now, random)
    }

    /// As [`Self::send`], with what is asked of the answer, and what is known of the escrow that would be agreed to.
    pub fn send_with(
        &mut self,
        body: Body,
        constraints: Option<Constraints>,
        judgement: Judgement,
        now: i64,
        random: &mut impl Random,
    ) -> Result<Sent, Error> {
        body.check()
            .map_err(|wrong| Misuse::Unlawful(Refusal::new(Code::SchemaUnsupported, wrong.to_string())))?;
        let draft = self.draft(body, constraints, now, random)?;
        let sealed = self.seal(draft, random)?;
        let record = self.record.as_mut().ok_or(Misuse::NotAParticipant)?;
        let before = record.checkpoint();
        match record.admit(&sealed, judgement, Some(now)) {
            Admission::Taken(steps) => {
                let id = sealed.envelope.message_id;
                self.unsettled.push(Unsettled { id, body: sealed.envelope.body, before });
                Ok(Sent { text: sealed.text, message_id: id, steps })
            }
            Admission::Refused(refusal) => Err(Misuse::Unlawful(refusal).into()),
            Admission::Broken(_) => Err(Misuse::NotAParticipant.into()),
        }
    }

    /// Takes bytes that arrived. What the receiver found out about the sender and the escrow is the judgement.
    pub fn receive(
        &mut self,
        text: &str,
        judgement: Judgement,
        now: i64,
        random: &mut impl Random,
    ) -> Result<Received, Misuse> {
        let sealed = match self.authenticator.open(text, &self.cards, &self.setup.limits) {
            Ok(sealed) => sealed,
            Err(Error::Peer(why)) => {
                self.dropped += 1;
                return Ok(Received::Dropped(why));
            }
            Err(Error::Refused(refusal)) => return self.refused(refusal, now, random),
            Err(Error::Misuse(why)) => return Err(why),
        };
        if sealed.envelope.sender.agent_id == *self.setup.card.agent_id() {
            let why = Refusal {
                message: Some(sealed.envelope.message_id),
                ..Refusal::new(Code::Duplicate, "our own message")
            };
            return self.refused(why, now, random);
        }
        if let Some(undone) = self.take_refusal(&sealed) {
            return Ok(undone);
        }
        if self.record.is_none() {
            match Record::beginning(&sealed.envelope, &self.cards, self.setup.rules, &self.setup.limits) {
                Ok(record) => self.record = Some(record),
                Err(refusal) => {
                    let refusal = Refusal { message: Some(sealed.envelope.message_id), ..refusal };
                    return self.refused(refusal, now, random);
                }
            }
        }
        if self.has_lost_race(&sealed) {
            return self.yield_race(sealed, judgement, now, random);
        }
        let Some(record) = self.record.as_mut() else { return Ok(Received::Ignored) };
        let before = record.session().state();
        match record.admit(&sealed, judgement, Some(now)) {
            Admission::Taken(steps) => {
                self.unsettled.clear();
                Ok(Received::Taken { envelope: Box::new(sealed.envelope), steps, lost: Vec::new() })
            }
            Admission::Refused(refusal) => {
                let answer = self.refused(refusal, now, random);
                // A session that never began is not kept.
                if before == State::Idle {
                    self.record = None;
                }
                answer
            }
            Admission::Broken(step) => Ok(Received::Failed(step)),
        }
    }

    /// Lets timers run out.
    pub fn wake(&mut self, now: i64) -> Vec<Step> {
        self.record.as_mut().map(|record| record.wake(now)).unwrap_or_default()
    }

    fn draft(
        &self,
        body: Body,
        constraints: Option<Constraints>,
        now: i64,
        random: &mut impl Random,
    ) -> Result<Draft, Misuse> {
        let (Some(record), Some(role)) = (&self.record, self.role()) else {
            return Err(Misuse::NotAParticipant);
        };
        Ok(Draft {
            message_id: MessageId::generate(now, random),
            session_id: record.session_id(),
            sequence_number: record.transcript().next_number(role),
            timestamp: Timestamp::from_unix_millis(now).ok_or(Misuse::NotAParticipant)?,
            sender: self.setup.card.agent_id().clone(),
            org_id: self.setup.org_id.clone(),
            trust_score: self.setup.trust_score,
            recipient: record.card(role.other()).agent_id().clone(),
            body,
            content: Content::default(),
            constraints,
            previous_hash: record.transcript().head(),
            other: Others::default(),
        })
    }

    fn seal(&self, draft: Draft, random: &mut impl Random) -> Result<Sealed, Misuse> {
        let sealed = draft.seal(&self.setup.keys, random)?;
        let limit = self.setup.limits.message_bytes;
        if sealed.text.len() > limit { Err(Misuse::TooLong(limit)) } else { Ok(sealed) }
    }

    /// The REJECT that answers a refused message: on the head that we see, with our next number, neither of them used up,
    /// and on nobody's record (D6).
    fn refused(&self, refusal: Refusal, now: i64, random: &mut impl Random) -> Result<Received, Misuse> {
        let mut answer = None;
        if let Some(message) = refusal.message
            && self.record.is_some()
        {
            let body = Reject {
                code: refusal.code.word().to_owned(),
                reason: refusal.reason.clone(),
                reference: Some(message.into()),
                other: Others::default(),
            };
            let draft = self.draft(body.into(), None, now, random)?;
            answer = Some(self.seal(draft, random)?.text);
        }
        Ok(Received::Refused { refusal, answer })
    }

    /// A REJECT that names a message rather than a proposal or a commitment stands outside the machine (D6).
    fn take_refusal(&mut self, sealed: &Sealed) -> Option<Received> {
        let Body::Reject(reject) = &sealed.envelope.body else { return None };
        let message = MessageId::parse(reject.reference.as_ref()?.as_str()).ok()?;
        let ours =
            self.record.as_ref().is_some_and(|record| record.session_id() == sealed.envelope.session_id);
        let at = self.unsettled.iter().position(|sent| sent.id == message);
        let Some(at) = at.filter(|_| ours) else { return Some(Received::Ignored) };
        let undone: Vec<_> = self.unsettled.drain(at..).collect();
        if let (Some(record), Some(first)) = (&mut self.record, undone.first()) {
            record.rewind(first.before.clone());
        }
        let refusal = Refusal {
            code: Code::parse(&reject.code).unwrap_or(Code::Unspecified),
            reason: reject.reason.clone(),
            message: Some(message),
        };
        let messages = undone.into_iter().map(|sent| sent.body).collect();
        Some(Received::Undone { refusal, messages })
    }

    /// Two messages on one head: the inviter's wins, so that both sides agree without asking anybody (D8).
    fn has_lost_race(&self, sealed: &Sealed) -> bool {
        let link = sealed.envelope.integrity.previous_hash;
        self.role() == Some(Role::Invited)
            && self.unsettled.first().is_some_and(|sent| sent.before.point.head == link)
    }

    /// Takes what won in the place of what we sent, unless it is refused even there.
    fn yield_race(
        &mut self,
        sealed: Sealed,
        judgement: Judgement,
        now: i64,
        random: &mut impl Random,
    ) -> Result<Received, Misuse> {
        let Some(mut trial) = self.record.clone() else { return Ok(Received::Ignored) };
        if let Some(first) = self.unsettled.first() {
            trial.rewind(first.before.clone());
        }
        match trial.admit(&sealed, judgement, Some(now)) {
            Admission::Taken(steps) => {
                self.record = Some(trial);
                let lost = std::mem::take(&mut self.unsettled).into_iter().map(|sent| sent.body).collect();
                Ok(Received::Taken { envelope: Box::new(sealed.envelope), steps, lost })
            }
            Admission::Refused(refusal) => self.refused(refusal, now, random),
            Admission::Broken(step) => Ok(Received::Failed(step)),
        }
    }
}
