//! Handling of replies, with the checks of §6.3.4 and chapter 10.

use std::hash::BuildHasher;

use seal::{Timestamp, UnixMillis, format_number};

use crate::check::{CheckedDocument, Validator};
use crate::event::Decision;
use crate::id::{ReplyToken, SessionId, SubscriptionId};
use crate::json::{Doc, Tape};
use crate::message::{
    ClarificationReply, ClarificationResponse, ConfirmationReply, DeadlineExtend, HandoffAcknowledge,
    HandoffReject, Message, SessionStop,
};
use crate::rule::{self, Findings, Severity, ValidationMode};
use crate::session::question_rules::{ReplyVerdict, evaluate_reply, extended_deadline};

use super::question::QuestionSubject;
use super::{
    ConsentOutcome, DeadlineExtended, IgnoreReason, Question, QuestionAnswer, QuestionRegistry,
    QuestionStatus, ResolvedBy, SessionStopped, StagedChange,
};

/// The authenticated sender of a message (§6.2.4, C-D2). Messages without an authenticated sender
/// are never examined.
#[derive(Clone, Copy, Debug)]
pub struct MessageSender<'s> {
    /// The sender's principal.
    pub principal: &'s str,
    /// How the message arrived.
    pub channel: ReplyChannel<'s>,
}

/// How a message arrived, which limits the subscriptions that the message can name.
#[derive(Clone, Copy, Debug)]
pub enum ReplyChannel<'s> {
    /// As a separate request, such as an HTTP POST. It may name any subscription of the sender.
    Shared,
    /// Over the connection of one subscription, which the message must name.
    Subscription(&'s SubscriptionId),
}

/// A valid message from a person (§6.3.4, check 1).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ConsentMessage {
    /// A message about a question, for [`QuestionRegistry::handle_reply`].
    Reply(Reply),
    /// A message about a session, for [`QuestionRegistry::stop_session`].
    Stop(SessionStop),
    /// The answer to a hand-off. It is not consent to anything, so it does not concern the [`QuestionRegistry`].
    Handoff(HandoffReply),
}

/// The answer of somebody who may take over from an agent (§4.4.3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandoffReply {
    /// Whether the sender takes over.
    pub is_acknowledged: bool,
    /// The hand-off's token.
    pub reply_token: ReplyToken,
    /// The subscription that the message names.
    pub subscription_id: SubscriptionId,
    /// When the sender answered.
    pub timestamp: Timestamp,
    /// A message for the agent and for everyone who listens to the session.
    pub note: Option<String>,
}

impl From<HandoffAcknowledge> for HandoffReply {
    fn from(message: HandoffAcknowledge) -> Self {
        let HandoffAcknowledge { reply_token, subscription_id, timestamp, note, .. } = message;
        Self { is_acknowledged: true, reply_token, subscription_id, timestamp, note }
    }
}

impl From<HandoffReject> for HandoffReply {
    fn from(message: HandoffReject) -> Self {
        let HandoffReject { reply_token, subscription_id, timestamp, note, .. } = message;
        Self { is_acknowledged: false, reply_token, subscription_id, timestamp, note }
    }
}

/// A valid message about one question.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply(ReplyBody);

#[derive(Clone, Debug, PartialEq)]
enum ReplyBody {
    Decision(ConfirmationReply),
    Response(ClarificationReply),
    ExtendDeadline(DeadlineExtend),
}

impl ConsentMessage {
    /// Parses a message strictly. Duplicate keys, unknown members and lone surrogates make it
    /// invalid.
    pub fn parse(text: &str) -> Result<Self, IgnoreReason> {
        Self::read(&Tape::default().read(text).map_err(|_| IgnoreReason::NotJson)?)
    }

    /// Like [`parse`](Self::parse), for a parsed document.
    pub fn read(doc: &Doc<'_>) -> Result<Self, IgnoreReason> {
        let mut findings = Findings::new(ValidationMode::Strict);
        let checked = Validator::new().check(doc, &mut findings);
        let mut violations = findings.take();
        violations.retain(|finding| finding.severity == Severity::Error);
        match checked {
            CheckedDocument::Message(message) if violations.is_empty() => match *message {
                Message::ConfirmationReply(reply) => Ok(Self::Reply(Reply(ReplyBody::Decision(reply)))),
                Message::ClarificationReply(reply) => Ok(Self::Reply(Reply(ReplyBody::Response(reply)))),
                Message::DeadlineExtend(request) => {
                    Ok(Self::Reply(Reply(ReplyBody::ExtendDeadline(request))))
                }
                Message::SessionStop(stop) => Ok(Self::Stop(stop)),
                Message::HandoffAcknowledge(message) => Ok(Self::Handoff(message.into())),
                Message::HandoffReject(message) => Ok(Self::Handoff(message.into())),
                _ => Err(IgnoreReason::NotAReply),
            },
            CheckedDocument::Event(_) | CheckedDocument::EventWithoutSession(_) => {
                Err(IgnoreReason::NotAReply)
            }
            _ => Err(IgnoreReason::Malformed(violations)),
        }
    }
}

impl ConsentMessage {
    /// Returns the message as JSON, which [`parse`](Self::parse) accepts.
    pub fn to_json(&self) -> String {
        let message = match self {
            Self::Reply(Reply(ReplyBody::Decision(reply))) => Message::ConfirmationReply(reply.clone()),
            Self::Reply(Reply(ReplyBody::Response(reply))) => Message::ClarificationReply(reply.clone()),
            Self::Reply(Reply(ReplyBody::ExtendDeadline(request))) => {
                Message::DeadlineExtend(request.clone())
            }
            Self::Stop(stop) => Message::SessionStop(stop.clone()),
            Self::Handoff(reply) => reply.to_message(),
        };
        message.to_json()
    }

    /// Whether the message has no further effect if it arrives twice. More time would be granted twice.
    pub fn is_repeatable(&self) -> bool {
        !matches!(self, Self::Reply(Reply(ReplyBody::ExtendDeadline(_))))
    }
}

impl HandoffReply {
    fn to_message(&self) -> Message {
        let Self { is_acknowledged, reply_token, subscription_id, timestamp, note } = self.clone();
        if is_acknowledged {
            let mut message = HandoffAcknowledge::new(reply_token, subscription_id, timestamp);
            message.note = note;
            Message::HandoffAcknowledge(message)
        } else {
            let mut message = HandoffReject::new(reply_token, subscription_id, timestamp);
            message.note = note;
            Message::HandoffReject(message)
        }
    }
}

impl Reply {
    /// Returns the reply token.
    pub fn reply_token(&self) -> &ReplyToken {
        match &self.0 {
            ReplyBody::Decision(reply) => &reply.reply_token,
            ReplyBody::Response(reply) => &reply.reply_token,
            ReplyBody::ExtendDeadline(request) => &request.reply_token,
        }
    }

    /// Returns the subscription that the message names.
    pub fn subscription_id(&self) -> &SubscriptionId {
        match &self.0 {
            ReplyBody::Decision(reply) => &reply.subscription_id,
            ReplyBody::Response(reply) => &reply.subscription_id,
            ReplyBody::ExtendDeadline(request) => &request.subscription_id,
        }
    }

    fn timestamp(&self) -> Timestamp {
        match &self.0 {
            ReplyBody::Decision(reply) => reply.timestamp,
            ReplyBody::Response(reply) => reply.timestamp,
            ReplyBody::ExtendDeadline(request) => request.timestamp,
        }
    }
}

impl<H: BuildHasher> QuestionRegistry<H> {
    /// Handles a reply or a request for more time from an authenticated sender. The first reply that
    /// passes all checks resolves the question. A message that fails a check changes nothing. The
    /// checks, in this order:
    ///
    /// 1. The subscription is open and belongs to the sender.
    /// 2. The token is known.
    /// 3. The subscription may answer this question.
    /// 4. The reply fits the kind of the question.
    /// 5. The question is open, and no other change to it is being stored.
    /// 6. Both the hub's clock and the reply's timestamp are before the deadline.
    /// 7. The answer is allowed, or the deadline can be extended.
    pub fn handle_reply(
        &mut self,
        reply: &Reply,
        sender: &MessageSender<'_>,
        now: UnixMillis,
    ) -> Result<StagedChange, IgnoreReason> {
        let change = self.evaluate(reply, sender, now)?;
        Ok(self.stage(change))
    }

    fn evaluate(
        &self,
        reply: &Reply,
        sender: &MessageSender<'_>,
        now: UnixMillis,
    ) -> Result<StagedChange, IgnoreReason> {
        let (fingerprint, question) = self.find(reply.reply_token());
        let is_retired = self.is_retired(fingerprint);
        let has_staged_change = self.has_staged_change(fingerprint);
        let subscription = self.authorize_subscription(reply.subscription_id(), sender, now)?;
        let Some(question) = question else {
            return Err(if is_retired { IgnoreReason::AlreadyResolved } else { IgnoreReason::UnknownToken });
        };
        if question.replier_ids.binary_search(subscription).is_err() {
            return Err(IgnoreReason::NotEntitled);
        }
        match (&question.subject, &reply.0) {
            (QuestionSubject::Confirmation { .. }, ReplyBody::Response(_))
            | (QuestionSubject::Clarification { .. }, ReplyBody::Decision(_)) => {
                return Err(IgnoreReason::WrongKind);
            }
            _ => {}
        }
        if !question.is_open() {
            return Err(IgnoreReason::AlreadyResolved);
        }
        if has_staged_change {
            return Err(IgnoreReason::ChangeStaged);
        }
        if now >= question.deadline {
            return Err(IgnoreReason::Late);
        }
        if reply.timestamp().unix_millis() >= question.deadline {
            return Err(IgnoreReason::LateTimestamp);
        }
        let (answer, modified, decided_by) = match (&question.subject, &reply.0) {
            (QuestionSubject::Confirmation { may_accept, may_reject, .. }, ReplyBody::Decision(reply)) => {
                let verdict =
                    evaluate_reply(reply, *may_accept, *may_reject).ok_or(IgnoreReason::NotAllowed)?;
                let decision =
                    if verdict == ReplyVerdict::Accepted { Decision::Accept } else { Decision::Reject };
                (QuestionAnswer::Decision(decision), verdict == ReplyVerdict::Modified, &reply.decided_by)
            }
            (QuestionSubject::Clarification { accepted, .. }, ReplyBody::Response(reply)) => {
                let broken_rule = accepted.broken_rule(&reply.response);
                let broken_rule =
                    broken_rule.or((!has_canonical_form(&reply.response)).then_some(rule::RESPONSE_FITS));
                if let Some(rule) = broken_rule {
                    return Err(IgnoreReason::InvalidResponse(rule));
                }
                (QuestionAnswer::Response(reply.response.clone()), false, &reply.decided_by)
            }
            (_, ReplyBody::ExtendDeadline(request)) => {
                return extend_deadline(question, request, subscription, now);
            }
            _ => return Err(IgnoreReason::WrongKind),
        };
        let (mut question, mut resolution) = question.clone().resolve(answer, ResolvedBy::Reply, now);
        if modified {
            question.status = QuestionStatus::Refused { modified };
        }
        resolution.modified = modified;
        resolution.expires_at =
            resolution.is_accepted().then(|| now.saturating_add(self.limits.max_consent_age_ms));
        resolution.replied_at = Some(reply.timestamp());
        resolution.subscription_id = Some(subscription.clone());
        resolution.principal = Some(sender.principal.into());
        resolution.decided_by = decided_by.as_deref().map(Into::into);
        let mut change = StagedChange::default();
        change.push_resolved((question, resolution));
        Ok(change)
    }

    /// Stops a session on behalf of the person. Its open questions are refused, and its accepted
    /// questions can no longer be spent. `receives_session` says whether the named subscription receives
    /// the session and may stop it, which only the hub knows.
    pub fn stop_session(
        &mut self,
        request: &SessionStop,
        sender: &MessageSender<'_>,
        receives_session: bool,
        now: UnixMillis,
    ) -> Result<StagedChange, IgnoreReason> {
        let subscription = self.authorize_subscription(&request.subscription_id, sender, now)?.clone();
        if !receives_session {
            return Err(IgnoreReason::NotEntitled);
        }
        if self.is_ending(&request.session_id) {
            return Err(IgnoreReason::SessionEnded);
        }
        let mut change = self.refuse_all(&request.session_id, ResolvedBy::Stopped, now);
        for outcome in &mut change.outcomes {
            if let ConsentOutcome::Resolved(resolution) = outcome {
                resolution.subscription_id = Some(subscription.clone());
                resolution.principal = Some(sender.principal.into());
                resolution.replied_at = Some(request.timestamp);
            }
        }
        change.outcomes.push(ConsentOutcome::SessionStopped(SessionStopped {
            session_id: request.session_id.clone(),
            subscription_id: subscription,
            principal: sender.principal.into(),
            reason: request.reason.as_deref().map(Into::into),
            stopped_at: now,
        }));
        Ok(self.stage(change))
    }

    /// Returns the subscription that a message names, if it is open and belongs to the sender
    /// (§10.2.2 T1, T8).
    fn authorize_subscription<'a>(
        &self,
        named: &'a SubscriptionId,
        sender: &MessageSender<'a>,
        now: UnixMillis,
    ) -> Result<&'a SubscriptionId, IgnoreReason> {
        let subscription = match sender.channel {
            ReplyChannel::Shared => named,
            ReplyChannel::Subscription(connected) if connected == named => connected,
            ReplyChannel::Subscription(_) => return Err(IgnoreReason::WrongConnection),
        };
        match self.subscriptions.principal(subscription, now) {
            None => Err(IgnoreReason::SubscriptionNotOpen),
            Some(principal) if principal != sender.principal => Err(IgnoreReason::WrongPrincipal),
            Some(_) => Ok(subscription),
        }
    }

    /// Returns the change that refuses all open questions of a session and ends the session.
    pub(super) fn refuse_all(&self, session: &SessionId, by: ResolvedBy, now: UnixMillis) -> StagedChange {
        let mut change = StagedChange { ended_session: Some(session.clone()), ..StagedChange::default() };
        for question in self.latest_in_session(session).filter(|question| question.is_open()) {
            change.push_resolved(question.clone().resolve(question.refusal_answer(), by, now));
        }
        change
    }
}

/// Extends a deadline (`sayso:deadline.extend`; WCAG 2.2.1). The person gets at most ten times the
/// original timeout.
fn extend_deadline(
    question: &Question,
    request: &DeadlineExtend,
    subscription: &SubscriptionId,
    now: UnixMillis,
) -> Result<StagedChange, IgnoreReason> {
    let deadline =
        extended_deadline(question.asked_at, question.timeout_seconds, question.deadline, request.seconds);
    if deadline == question.deadline {
        return Err(IgnoreReason::ExtensionExhausted);
    }
    let outcome = ConsentOutcome::DeadlineExtended(DeadlineExtended {
        token: question.token.clone(),
        session_id: question.session_id.clone(),
        deadline,
        subscription_id: subscription.clone(),
    });
    Ok(StagedChange::single(question.clone().with_deadline(deadline, now), outcome))
}

/// Returns whether a receipt can contain the response. A number that is written as an integer
/// beyond 2^53 has no canonical form.
pub(super) fn has_canonical_form(response: &ClarificationResponse) -> bool {
    let ClarificationResponse::Number(number) = response else { return true };
    let Some(text) = format_number(*number) else { return false };
    let mut tape = Tape::default();
    tape.read(&text).is_ok_and(|doc| doc.root().as_number().is_some_and(|number| !number.is_unsafe_integer()))
}
