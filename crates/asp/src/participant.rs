//! One side of a live session: it has keys, speaks and hears.
//!
//! [`Participant::send`] puts a message on its own record and gives the bytes to send. [`Participant::receive`] takes what
//! arrives. A message of ours is settled when the other side goes on from it; until then it can still be undone, by a
//! refusal or by a race that it lost (D6, D8).

use std::sync::Arc;

use seal::dpop::Replays;
use seal::{Keys, Random, Timestamp, UnixMillis};

use crate::card::Card;
use crate::error::{Code, Error, Misbehaviour, Misuse, Refusal};
use crate::id::{MessageId, SessionId};
use crate::limits::Limits;
use crate::machine::Role;
use crate::message::{
    Authenticator, Body, Cards, Constraints, Content, Draft, Envelope, Others, Reject, Sealed, Sealer,
    TrustScore,
};
use crate::record::{Admission, Checkpoint, PROOF_MEMORY_SECONDS, Record};
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
    /// The hashes of messages that were refused, for as long as a copy of them could still be received.
    refused: Replays,
    authenticator: Authenticator,
    sealer: Sealer,
    dropped: u64,
}

/// A message that may yet be undone, and the way back.
#[derive(Debug)]
struct Unsettled {
    id: MessageId,
    body: Body,
    before: Checkpoint,
}

/// A message that is ours, on our record and ready to be sent. It may yet be undone: what cannot be taken back, such as money
/// or the news of an end, waits until it is settled ([`Participant::is_settled`]).
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
            refused: Replays::new(PROOF_MEMORY_SECONDS, setup.limits.proofs),
            setup,
            record: None,
            unsettled: Vec::new(),
            authenticator: Authenticator::default(),
            sealer: Sealer::default(),
            dropped: 0,
        })
    }

    /// Begins a session with the agent of that card, which must be pinned; the invitation is the first message to send.
    pub fn invite(
        &mut self,
        peer: &Card,
        now: UnixMillis,
        random: &mut impl Random,
    ) -> Result<SessionId, Misuse> {
        let own = self.setup.card.agent_id();
        let pinned = self.cards.of(peer.agent_id()).filter(|card| card.agent_id() != own);
        let pinned = pinned.ok_or(Misuse::NotAParticipant)?.clone();
        let id = SessionId::generate(now, random);
        let (rules, limits) = (self.setup.rules, &self.setup.limits);
        self.record = Some(Record::new(id, self.setup.card.clone(), pinned, rules, limits));
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
    pub fn send(&mut self, body: Body, now: UnixMillis, random: &mut impl Random) -> Result<Sent, Error> {
        self.send_with(body, None, Judgement::default(), now, random)
    }

    /// As [`Self::send`], with what is asked of the answer, and what is known of the escrow that would be agreed to.
    pub fn send_with(
        &mut self,
        body: Body,
        constraints: Option<Constraints>,
        judgement: Judgement,
        now: UnixMillis,
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
        now: UnixMillis,
        random: &mut impl Random,
    ) -> Result<Received, Misuse> {
        let sealed = match self.authenticator.open(text, &self.cards, &self.setup.limits) {
            Ok(sealed) => sealed,
            Err(Error::Peer(why)) => {
                self.dropped += 1;
                return Ok(Received::Dropped(why));
            }
            Err(Error::Refused(refusal)) => return self.answered(refusal, now, random),
            Err(Error::Misuse(why)) => return Err(why),
        };
        let (sender, id) = (&sealed.envelope.sender.agent_id, sealed.envelope.message_id);
        let refusal = |code, why: &str| Refusal { message: Some(id), ..Refusal::new(code, why) };
        // An answer to our own message, or to one that is on record, would refuse what nobody undoes, or undo what stands.
        let silent = |refusal| Ok(Received::Refused { refusal, answer: None });
        if sender == self.setup.card.agent_id() {
            return silent(refusal(Code::Duplicate, "our own message"));
        }
        if self.record.as_ref().is_some_and(|record| record.role_of(sender).is_none()) {
            self.dropped += 1;
            return Ok(Received::Dropped(Misbehaviour::Stranger(sender.to_string())));
        }
        if let Some(undone) = self.take_refusal(&sealed) {
            return Ok(undone);
        }
        let begins = self.record.is_none();
        if begins {
            match Record::beginning(&sealed.envelope, &self.cards, self.setup.rules, &self.setup.limits) {
                Ok(record) if record.role_of(self.setup.card.agent_id()).is_some() => {
                    self.record = Some(record);
                }
                Ok(_) => return silent(refusal(Code::Unauthorized, "the invitation is for somebody else")),
                Err(why) => return silent(refusal(why.code, &why.reason)),
            }
        }
        if self.record.as_ref().is_some_and(|record| record.transcript().has(&id)) {
            return silent(refusal(Code::Duplicate, "this message was received before"));
        }
        let heard = match self.refused_before(&sealed) {
            Some((code, why)) => Err(refusal(code, why)),
            None => match self.lost_race(&sealed) {
                Some(at) => self.yield_race(&sealed, at, judgement, now),
                None => self.admit(&sealed, judgement, now),
            },
        };
        heard.or_else(|refusal| {
            // Its sender undoes it, so a copy that comes later must not be taken. Full, the memory lets that happen.
            let _ = self.refused.take(&sealed.hash.to_string(), now.seconds());
            let answered = self.answered(refusal, now, random);
            // A session that never began is not kept.
            if begins {
                self.record = None;
            }
            answered
        })
    }

    /// The other side has taken this message of ours, as the transport says: it and those before it can no longer be undone.
    /// Without such word, they are settled by the other side's next message.
    pub fn settle(&mut self, message: MessageId) {
        if let Some(at) = self.unsettled.iter().position(|sent| sent.id == message) {
            self.unsettled.drain(..=at);
        }
    }

    /// Whether a message of ours can no longer be undone.
    pub fn is_settled(&self, message: MessageId) -> bool {
        self.unsettled.iter().all(|sent| sent.id != message)
    }

    /// Lets timers run out.
    pub fn wake(&mut self, now: UnixMillis) -> Vec<Step> {
        self.record.as_mut().map(|record| record.wake(now)).unwrap_or_default()
    }

    fn draft(
        &self,
        body: Body,
        constraints: Option<Constraints>,
        now: UnixMillis,
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

    fn seal(&mut self, draft: Draft, random: &mut impl Random) -> Result<Sealed, Misuse> {
        let sealed = self.sealer.seal(draft, &self.setup.keys, random)?;
        let limit = self.setup.limits.message_bytes;
        if sealed.text.len() > limit { Err(Misuse::TooLong(limit)) } else { Ok(sealed) }
    }

    /// The REJECT that answers a refused message: on the head that we see, with our next number, neither of them used up,
    /// and on nobody's record (D6).
    fn answered(
        &mut self,
        refusal: Refusal,
        now: UnixMillis,
        random: &mut impl Random,
    ) -> Result<Received, Misuse> {
        let mut answer = None;
        if let Some(message) = refusal.message
            && self.record.is_some()
        {
            let mut body = Reject::new(refusal.code.word(), refusal.reason.clone());
            body.reference = Some(message.into());
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

    /// What was refused stays refused; what follows it is stale, and breaks no chain (D6, D8).
    fn refused_before(&self, sealed: &Sealed) -> Option<(Code, &'static str)> {
        let link = &sealed.envelope.integrity.previous_hash;
        if self.refused.has(&sealed.hash.to_string()) {
            Some((Code::Duplicate, "this message was refused before"))
        } else if self.refused.has(&link.to_string()) {
            Some((Code::StaleHead, "the message that it follows was refused"))
        } else {
            None
        }
    }

    /// Two messages on one head: the inviter's wins, so that both sides agree without asking anybody (D8). The first of
    /// ours that has lost, if one has.
    fn lost_race(&self, sealed: &Sealed) -> Option<usize> {
        let link = sealed.envelope.integrity.previous_hash;
        let at = self.unsettled.iter().position(|sent| sent.before.point.head == link);
        at.filter(|_| self.role() == Some(Role::Invited))
    }

    /// Takes what won in the place of what we sent, unless it is refused even there.
    fn yield_race(
        &mut self,
        sealed: &Sealed,
        at: usize,
        judgement: Judgement,
        now: UnixMillis,
    ) -> Result<Received, Refusal> {
        let (Some(record), Some(first)) = (&self.record, self.unsettled.get(at)) else {
            return Ok(Received::Ignored);
        };
        let mut trial = record.clone();
        trial.rewind(first.before.clone());
        match trial.admit(sealed, judgement, Some(now)) {
            Admission::Taken(steps) => {
                self.record = Some(trial);
                // What came before is settled: the winner goes on from it.
                let lost = self.unsettled.drain(..).skip(at).map(|sent| sent.body).collect();
                Ok(Received::Taken { envelope: Box::new(sealed.envelope.clone()), steps, lost })
            }
            Admission::Refused(refusal) => Err(refusal),
            Admission::Broken(step) => Ok(Received::Failed(step)),
        }
    }

    fn admit(&mut self, sealed: &Sealed, judgement: Judgement, now: UnixMillis) -> Result<Received, Refusal> {
        let Some(record) = &mut self.record else { return Ok(Received::Ignored) };
        match record.admit(sealed, judgement, Some(now)) {
            Admission::Taken(steps) => {
                self.unsettled.clear();
                Ok(Received::Taken { envelope: Box::new(sealed.envelope.clone()), steps, lost: Vec::new() })
            }
            Admission::Refused(refusal) => Err(refusal),
            Admission::Broken(step) => {
                // Nothing leaves FAILED: no refusal and no race goes back behind it.
                self.unsettled.clear();
                Ok(Received::Failed(step))
            }
        }
    }
}
