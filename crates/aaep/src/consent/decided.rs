//! What was decided, before it is committed.

use seal::{Digest, UnixMillis};

use crate::id::{ReplyToken, SessionId, SubscriptionId};

use super::{Question, Resolution};

/// What was decided, and how the questions' records read from now on. Nothing of it holds before it is
/// [committed](super::Questions::commit); until then its questions are pending.
#[derive(Debug, Default)]
#[must_use = "what is decided must be written down and committed, or abandoned"]
pub struct Decided {
    pub(super) questions: Vec<Question>,
    pub(super) over: Option<SessionId>,
    pub(super) outcomes: Vec<Outcome>,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Outcome {
    /// A question is open.
    Asked(Asked),
    /// A question is resolved: tell the agent, and every listener (C-D9).
    Resolved(Box<Resolution>),
    /// The person has more time.
    Extended(Extended),
    /// It is time to remind the person (§6.4.3).
    Reminder(Reminder),
    /// An accepted question covers a call, and no other from now on.
    Spent(Spent),
    /// The person stopped the session: it is to end `cancelled_by: user`.
    Stopped(Stopped),
}

/// A question that is open.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Asked {
    /// Its token.
    pub token: ReplyToken,
    /// Its session.
    pub session: SessionId,
    /// When its default holds.
    pub deadline: UnixMillis,
    /// When the person will be reminded.
    pub reminders: Vec<UnixMillis>,
    /// To whom the event goes: the subscriptions that may answer.
    pub repliers: Vec<SubscriptionId>,
}

/// A deadline that was moved.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Extended {
    /// The question's token.
    pub token: ReplyToken,
    /// Its session.
    pub session: SessionId,
    /// When its default holds now.
    pub deadline: UnixMillis,
    /// Who asked for more time.
    pub subscription: SubscriptionId,
}

/// How much of a question's time is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Left {
    /// Half.
    Half,
    /// A tenth.
    Tenth,
}

/// Little time is left.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reminder {
    /// The question's token.
    pub token: ReplyToken,
    /// Its session.
    pub session: SessionId,
    /// Which reminder it is.
    pub left: Left,
    /// How many milliseconds are left.
    pub remaining: i64,
}

/// A question that was accepted and has been used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Spent {
    /// The question's token.
    pub token: ReplyToken,
    /// Its session.
    pub session: SessionId,
    /// The digest of the call that it covers, if the call has one.
    pub digest: Option<Digest>,
}

/// A session that the person stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stopped {
    /// The session.
    pub session: SessionId,
    /// Over which subscription.
    pub subscription: SubscriptionId,
    /// Who that was, as the transport knows them.
    pub principal: Box<str>,
    /// Why, as they say.
    pub reason: Option<Box<str>>,
    /// When, by our clock.
    pub at: UnixMillis,
}

impl Decided {
    /// What happened, in order.
    pub fn outcomes(&self) -> &[Outcome] {
        &self.outcomes
    }

    /// How the questions concerned stand from now on: their records are to be stored, each under its token.
    pub fn questions(&self) -> &[Question] {
        &self.questions
    }

    /// The session that is over with it: its records are of no more use.
    pub fn session_over(&self) -> Option<&SessionId> {
        self.over.as_ref()
    }

    /// Those of the outcomes that resolve a question.
    pub fn resolutions(&self) -> impl Iterator<Item = &Resolution> {
        self.outcomes.iter().filter_map(|outcome| match outcome {
            Outcome::Resolved(resolution) => Some(&**resolution),
            _ => None,
        })
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.outcomes.is_empty() && self.questions.is_empty() && self.over.is_none()
    }

    pub(super) fn one(question: Question, outcome: Outcome) -> Self {
        Self { questions: vec![question], over: None, outcomes: vec![outcome] }
    }

    pub(super) fn push_resolved(&mut self, (question, resolution): (Question, Resolution)) {
        self.questions.push(question);
        self.outcomes.push(Outcome::Resolved(Box::new(resolution)));
    }
}
