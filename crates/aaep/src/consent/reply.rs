//! Hearing what people say back: the checks of §6.3.4 and chapter 10, in the order of the digest's section 7.

use std::hash::BuildHasher;

use seal::{Timestamp, UnixMillis, number_text};

use crate::check::{Checked, Validator};
use crate::event::Decision;
use crate::id::{ReplyToken, SessionId, SubscriptionId};
use crate::json::{Doc, Tape};
use crate::message::{ClarificationReply, ConfirmationReply, DeadlineExtend, Message, Response, SessionStop};
use crate::rule::{self, Face, Findings, Severity};
use crate::session::terms::{Ruling, extended, ruling};

use super::question::About;
use super::{Answer, By, Decided, Extended, Ignored, Outcome, Question, Questions, Status, Stopped};

/// Who sent a message, as the transport has found out (§6.2.4, C-D2): nothing without one is ever looked at.
#[derive(Clone, Copy, Debug)]
pub struct Sender<'s> {
    /// Who they are.
    pub principal: &'s str,
    /// How the message came.
    pub link: Link<'s>,
}

/// How a message came, and so which subscription it can speak for.
#[derive(Clone, Copy, Debug)]
pub enum Link<'s> {
    /// On its own, like an HTTP request: it speaks for the subscription that it names, if that is the sender's.
    Shared,
    /// Over the connection of one subscription, which is the one that it must name.
    Of(&'s SubscriptionId),
}

/// A message of a person that is what it must be, letter for letter (§6.3.4, check 1).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Said {
    /// About a question: for [`Questions::hear`].
    Reply(Reply),
    /// About a session: for [`Questions::stop`].
    Stop(SessionStop),
}

/// A message about one question, that is what it must be.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply(Words);

#[derive(Clone, Debug, PartialEq)]
enum Words {
    Decision(ConfirmationReply),
    Response(ClarificationReply),
    MoreTime(DeadlineExtend),
}

impl Said {
    /// Reads what a person says, strictly: doubled keys, unknown members and half surrogates have no effect either.
    pub fn parse(text: &str) -> Result<Self, Ignored> {
        Self::read(&Tape::default().read(text).map_err(|_| Ignored::NotJson)?)
    }

    /// Like [`parse`](Self::parse), of a text that has been read.
    pub fn read(doc: &Doc<'_>) -> Result<Self, Ignored> {
        let mut findings = Findings::new(Face::Strict);
        let checked = Validator::new().check(doc, &mut findings);
        let mut broken = findings.take();
        broken.retain(|finding| finding.severity == Severity::Error);
        match checked {
            Checked::Message(message) if broken.is_empty() => match *message {
                Message::ConfirmationReply(reply) => Ok(Self::Reply(Reply(Words::Decision(reply)))),
                Message::ClarificationReply(reply) => Ok(Self::Reply(Reply(Words::Response(reply)))),
                Message::DeadlineExtend(wish) => Ok(Self::Reply(Reply(Words::MoreTime(wish)))),
                Message::SessionStop(stop) => Ok(Self::Stop(stop)),
                _ => Err(Ignored::NotAReply),
            },
            Checked::Event(_) | Checked::Unplaced(_) => Err(Ignored::NotAReply),
            _ => Err(Ignored::Malformed(broken)),
        }
    }
}

impl Reply {
    /// The token that it names.
    pub fn token(&self) -> &ReplyToken {
        match &self.0 {
            Words::Decision(reply) => &reply.reply_token,
            Words::Response(reply) => &reply.reply_token,
            Words::MoreTime(wish) => &wish.reply_token,
        }
    }

    /// The subscription that it names.
    pub fn subscription(&self) -> &SubscriptionId {
        match &self.0 {
            Words::Decision(reply) => &reply.subscription_id,
            Words::Response(reply) => &reply.subscription_id,
            Words::MoreTime(wish) => &wish.subscription_id,
        }
    }

    fn timestamp(&self) -> Timestamp {
        match &self.0 {
            Words::Decision(reply) => reply.timestamp,
            Words::Response(reply) => reply.timestamp,
            Words::MoreTime(wish) => wish.timestamp,
        }
    }
}

impl<H: BuildHasher> Questions<H> {
    /// Hears a reply, or the wish for more time. The sender is authenticated and the message read; then: its
    /// subscription is open, the sender's, and entitled; the token is known, of this kind, unused; our clock and the
    /// reply's own are before the deadline; the answer is one of those asked for. The first that passes resolves the
    /// question, and whatever fails changes nothing.
    pub fn hear(&mut self, reply: &Reply, sender: &Sender<'_>, now: UnixMillis) -> Result<Decided, Ignored> {
        let decided = self.judge(reply, sender, now)?;
        Ok(self.hold(decided))
    }

    fn judge(&self, reply: &Reply, sender: &Sender<'_>, now: UnixMillis) -> Result<Decided, Ignored> {
        let (fingerprint, question) = self.find(reply.token());
        let gone = self.is_gone(fingerprint);
        let pending = self.is_pending(fingerprint);
        let subscription = self.speaks_for(reply.subscription(), sender, now)?;
        let Some(question) = question else {
            return Err(if gone { Ignored::Used } else { Ignored::Unknown });
        };
        if question.repliers.binary_search(subscription).is_err() {
            return Err(Ignored::NotEntitled);
        }
        match (&question.about, &reply.0) {
            (About::Action { .. }, Words::Response(_)) | (About::Meaning { .. }, Words::Decision(_)) => {
                return Err(Ignored::OtherKind);
            }
            _ => {}
        }
        if !question.is_open() {
            return Err(Ignored::Used);
        }
        if pending {
            return Err(Ignored::Pending);
        }
        if now >= question.deadline {
            return Err(Ignored::Late);
        }
        if reply.timestamp().unix_millis() >= question.deadline {
            return Err(Ignored::LateStamp);
        }
        let (answer, modified, decided_by) = match (&question.about, &reply.0) {
            (About::Action { may_accept, may_reject, .. }, Words::Decision(reply)) => {
                let ruling = ruling(reply, *may_accept, *may_reject).ok_or(Ignored::NotAllowed)?;
                let decision = if ruling == Ruling::Accepted { Decision::Accept } else { Decision::Reject };
                (Answer::Decision(decision), ruling == Ruling::Modified, &reply.decided_by)
            }
            (About::Meaning { kinds, .. }, Words::Response(reply)) => {
                let misfit = kinds.misfit(&reply.response);
                let misfit = misfit.or((!has_canonical_form(&reply.response)).then_some(rule::RESPONSE_FITS));
                if let Some(rule) = misfit {
                    return Err(Ignored::DoesNotFit(rule));
                }
                (Answer::Response(reply.response.clone()), false, &reply.decided_by)
            }
            (_, Words::MoreTime(wish)) => return more_time(question, wish, subscription, now),
            _ => return Err(Ignored::OtherKind),
        };
        let (mut question, mut resolution) = question.clone().resolved(answer, By::Reply, now);
        if modified {
            question.status = Status::Refused { modified };
        }
        resolution.modified = modified;
        resolution.replied = Some(reply.timestamp());
        resolution.subscription = Some(subscription.clone());
        resolution.principal = Some(sender.principal.into());
        resolution.decided_by = decided_by.as_deref().map(Into::into);
        let mut decided = Decided::default();
        decided.push_resolved((question, resolution));
        Ok(decided)
    }

    /// The person stops the session: what is open is refused, and what was accepted covers nothing any more. `hears` is
    /// whether the subscription that the message names hears that session and may stop it, which only the hub knows.
    pub fn stop(
        &mut self,
        wish: &SessionStop,
        sender: &Sender<'_>,
        hears: bool,
        now: UnixMillis,
    ) -> Result<Decided, Ignored> {
        let subscription = self.speaks_for(&wish.subscription_id, sender, now)?.clone();
        if !hears {
            return Err(Ignored::NotEntitled);
        }
        if self.is_ending(&wish.session_id) {
            return Err(Ignored::SessionOver);
        }
        let mut decided = self.refuse_all(&wish.session_id, By::Stopped, now);
        for outcome in &mut decided.outcomes {
            if let Outcome::Resolved(resolution) = outcome {
                resolution.subscription = Some(subscription.clone());
                resolution.principal = Some(sender.principal.into());
                resolution.replied = Some(wish.timestamp);
            }
        }
        decided.outcomes.push(Outcome::Stopped(Stopped {
            session: wish.session_id.clone(),
            subscription,
            principal: sender.principal.into(),
            reason: wish.reason.as_deref().map(Into::into),
            at: now,
        }));
        Ok(self.hold(decided))
    }

    /// The subscription that a message speaks for, if it is open and the sender's (§10.2.2 T1, T8).
    fn speaks_for<'a>(
        &self,
        named: &'a SubscriptionId,
        sender: &Sender<'a>,
        now: UnixMillis,
    ) -> Result<&'a SubscriptionId, Ignored> {
        let subscription = match sender.link {
            Link::Shared => named,
            Link::Of(carried) if carried == named => carried,
            Link::Of(_) => return Err(Ignored::OtherConnection),
        };
        match self.subscriptions.principal(subscription, now) {
            None => Err(Ignored::NoSubscription),
            Some(principal) if principal != sender.principal => Err(Ignored::OtherIdentity),
            Some(_) => Ok(subscription),
        }
    }

    /// What is open in a session is refused, and the session is over.
    pub(super) fn refuse_all(&self, session: &SessionId, by: By, now: UnixMillis) -> Decided {
        let mut decided = Decided { over: Some(session.clone()), ..Decided::default() };
        for question in self.latest_of(session).filter(|question| question.is_open()) {
            decided.push_resolved(question.clone().resolved(question.refusal(), by, now));
        }
        decided
    }
}

/// More time, up to ten times the first (design, `sayso:deadline.extend`; WCAG 2.2.1).
fn more_time(
    question: &Question,
    wish: &DeadlineExtend,
    subscription: &SubscriptionId,
    now: UnixMillis,
) -> Result<Decided, Ignored> {
    let deadline = extended(question.asked, question.timeout_seconds, question.deadline, wish.seconds);
    if deadline == question.deadline {
        return Err(Ignored::NoMoreTime);
    }
    let outcome = Outcome::Extended(Extended {
        token: question.token.clone(),
        session: question.session.clone(),
        deadline,
        subscription: subscription.clone(),
    });
    Ok(Decided::one(question.clone().extended(deadline, now), outcome))
}

/// Whether a receipt can hold it: a number beyond 2^53 that a double would print as an integer has no canonical form.
pub(super) fn has_canonical_form(response: &Response) -> bool {
    let Response::Number(number) = response else { return true };
    let Some(text) = number_text(*number) else { return false };
    let mut tape = Tape::default();
    tape.read(&text).is_ok_and(|doc| doc.root().number().is_some_and(|number| !number.is_big()))
}
