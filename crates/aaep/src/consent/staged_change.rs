//! Changes that are decided but not committed yet.

use seal::{Digest, UnixMillis};

use crate::id::{ReplyToken, SessionId, SubscriptionId};

use super::{Question, Resolution};

/// Decided effects, and the questions as they will be after the commit. The change takes effect when
/// it is [committed](super::QuestionRegistry::commit); until then, no other change to its questions
/// is possible.
#[derive(Debug, Default)]
#[must_use = "a staged change must be stored and committed, or abandoned"]
pub struct StagedChange {
    pub(super) questions: Vec<Question>,
    pub(super) ended_session: Option<SessionId>,
    pub(super) outcomes: Vec<ConsentOutcome>,
}

/// One effect of a change.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ConsentOutcome {
    /// A question was opened.
    Opened(QuestionOpened),
    /// A question was resolved. The agent and every listener must be notified (C-D9).
    Resolved(Box<Resolution>),
    /// The deadline of a question was extended.
    DeadlineExtended(DeadlineExtended),
    /// The person must be reminded (§6.4.3).
    Reminder(Reminder),
    /// A consent was spent on a call, and permits no other.
    ConsentSpent(ConsentSpent),
    /// The person stopped the session. It must end with `cancelled_by: user`.
    SessionStopped(SessionStopped),
}

/// A question that was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct QuestionOpened {
    /// The reply token.
    pub token: ReplyToken,
    /// The session of the question.
    pub session_id: SessionId,
    /// When the default applies.
    pub deadline: UnixMillis,
    /// When the person will be reminded.
    pub reminder_times: Vec<UnixMillis>,
    /// The subscriptions that receive the event and may answer.
    pub replier_ids: Vec<SubscriptionId>,
}

/// A deadline that was extended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeadlineExtended {
    /// The question's token.
    pub token: ReplyToken,
    /// The session of the question.
    pub session_id: SessionId,
    /// The new deadline.
    pub deadline: UnixMillis,
    /// The subscription that asked for more time.
    pub subscription_id: SubscriptionId,
}

/// How much of a question's time is left when the person is reminded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReminderThreshold {
    /// Half of the time is left.
    Half,
    /// A tenth of the time is left.
    Tenth,
}

/// A reminder that little time is left.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reminder {
    /// The question's token.
    pub token: ReplyToken,
    /// The session of the question.
    pub session_id: SessionId,
    /// The threshold that was reached.
    pub threshold: ReminderThreshold,
    /// The remaining time in milliseconds.
    pub remaining_ms: i64,
}

/// A consent that was spent on a call.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConsentSpent {
    /// The question's token.
    pub token: ReplyToken,
    /// The session of the question.
    pub session_id: SessionId,
    /// The digest of the call, if known.
    pub digest: Option<Digest>,
}

/// A session that the person stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionStopped {
    /// The session.
    pub session_id: SessionId,
    /// The subscription that sent the stop message.
    pub subscription_id: SubscriptionId,
    /// The principal of that subscription, as authenticated by the transport.
    pub principal: Box<str>,
    /// The person's reason.
    pub reason: Option<Box<str>>,
    /// When the session was stopped, by the hub's clock.
    pub stopped_at: UnixMillis,
}

impl StagedChange {
    /// Returns the outcomes in order.
    pub fn outcomes(&self) -> &[ConsentOutcome] {
        &self.outcomes
    }

    /// Returns the changed questions. Store the record of each under its token.
    pub fn questions(&self) -> &[Question] {
        &self.questions
    }

    /// Returns the session that this change ends. Its records are no longer needed.
    pub fn ended_session(&self) -> Option<&SessionId> {
        self.ended_session.as_ref()
    }

    /// Returns the resolutions among the outcomes.
    pub fn resolutions(&self) -> impl Iterator<Item = &Resolution> {
        self.outcomes.iter().filter_map(|outcome| match outcome {
            ConsentOutcome::Resolved(resolution) => Some(&**resolution),
            _ => None,
        })
    }

    /// Returns whether the change is empty.
    pub fn is_empty(&self) -> bool {
        self.outcomes.is_empty() && self.questions.is_empty() && self.ended_session.is_none()
    }

    pub(super) fn single(question: Question, outcome: ConsentOutcome) -> Self {
        Self { questions: vec![question], ended_session: None, outcomes: vec![outcome] }
    }

    pub(super) fn push_resolved(&mut self, (question, resolution): (Question, Resolution)) {
        self.questions.push(question);
        self.outcomes.push(ConsentOutcome::Resolved(Box::new(resolution)));
    }
}
