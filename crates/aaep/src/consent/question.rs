//! One question: its subject, deadline, possible repliers and status.

use seal::{Digest, UnixMillis};

use crate::event::Decision;
use crate::id::{EventId, ReplyToken, SessionId, SubscriptionId};
use crate::message::ClarificationResponse;
use crate::session::question_rules::{AcceptedResponses, CallIdentity, reminder_times};

use super::{QuestionAnswer, ReminderThreshold, Resolution, ResolvedBy};

/// One question in the registry; [its record](Question::to_record) is stored on disk.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Question {
    /// The reply token.
    pub token: ReplyToken,
    /// The session of the question.
    pub session_id: SessionId,
    /// The agent that asked.
    pub agent_id: Box<str>,
    /// The event with the question.
    pub event_id: EventId,
    /// When the timeout starts (§6.4): the event's timestamp, or the time at which the registry got
    /// the question if that is earlier.
    pub asked_at: UnixMillis,
    /// The original timeout in seconds.
    pub timeout_seconds: u64,
    /// When the default applies. The person may have extended it.
    pub deadline: UnixMillis,
    /// The status of the question.
    pub status: QuestionStatus,
    /// When the question was resolved.
    pub resolved_at: Option<UnixMillis>,
    pub(super) subject: QuestionSubject,
    /// The subscriptions that received the event and may answer (C-C3).
    pub(super) replier_ids: Vec<SubscriptionId>,
    /// After a restart, the question stays open without subscriptions until this time (C-C17).
    pub(super) grace_until: Option<UnixMillis>,
    /// Whether the reminders at half and at a tenth of the time were sent.
    pub(super) reminders_sent: [bool; 2],
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum QuestionSubject {
    /// Asks whether the agent may act.
    Confirmation {
        /// Identifies the action: equal for two questions about the same action (§6.1).
        key: Digest,
        accept_by_default: bool,
        irreversible: Option<bool>,
        high_risk: bool,
        may_accept: bool,
        may_reject: bool,
        tool: Option<Box<str>>,
        call_id: Option<Box<str>>,
        digest: Option<Digest>,
    },
    /// Asks what the person wants.
    Clarification { accepted: AcceptedResponses, default: Option<ClarificationResponse> },
}

/// The status of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum QuestionStatus {
    /// Waiting for an answer.
    Open,
    /// Accepted, but not used for a call yet.
    Accepted {
        /// Whether the default accepted it instead of a person.
        by_default: bool,
    },
    /// Accepted and used for its one call.
    Spent,
    /// Refused.
    Refused {
        /// Whether the person accepted only a modified action, which does not permit this call
        /// (§6.3.2).
        modified: bool,
    },
    /// A clarification that was answered, or can no longer be answered.
    Closed,
}

impl Question {
    /// Returns whether the question waits for an answer.
    pub fn is_open(&self) -> bool {
        self.status == QuestionStatus::Open
    }

    /// Returns whether the question is a confirmation.
    pub fn is_confirmation(&self) -> bool {
        matches!(self.subject, QuestionSubject::Confirmation { .. })
    }

    /// Returns the digest of the action that the question covers; `None` if the question has no
    /// digest.
    pub fn action_digest(&self) -> Option<Digest> {
        match &self.subject {
            QuestionSubject::Confirmation { digest, .. } => *digest,
            QuestionSubject::Clarification { .. } => None,
        }
    }

    /// Returns the tool that the question is about, if it names one.
    pub fn tool(&self) -> Option<&str> {
        match &self.subject {
            QuestionSubject::Confirmation { tool, .. } => tool.as_deref(),
            QuestionSubject::Clarification { .. } => None,
        }
    }

    /// Returns the call that the question is about, if it names one.
    pub fn call_id(&self) -> Option<&str> {
        match &self.subject {
            QuestionSubject::Confirmation { call_id, .. } => call_id.as_deref(),
            QuestionSubject::Clarification { .. } => None,
        }
    }

    /// Returns the subscriptions that may answer.
    pub fn replier_ids(&self) -> &[SubscriptionId] {
        &self.replier_ids
    }

    /// Returns the answer that applies if nobody replies (§6.4, §6.5.4).
    pub fn default_answer(&self) -> QuestionAnswer {
        match &self.subject {
            QuestionSubject::Confirmation {
                accept_by_default: true, irreversible, high_risk: false, ..
            } if *irreversible != Some(true) => QuestionAnswer::Decision(Decision::Accept),
            QuestionSubject::Confirmation { .. } => QuestionAnswer::Decision(Decision::Reject),
            QuestionSubject::Clarification { default, .. } => {
                default.clone().map_or(QuestionAnswer::Unavailable, QuestionAnswer::Response)
            }
        }
    }

    /// Returns the answer that applies if the question is cancelled or its session is stopped.
    pub(super) fn refusal_answer(&self) -> QuestionAnswer {
        if self.is_confirmation() {
            QuestionAnswer::Decision(Decision::Reject)
        } else {
            QuestionAnswer::Unavailable
        }
    }

    /// Returns whether the question stays open until a lost subscription reconnects. A question
    /// whose default is accept does not (C-C17).
    pub(super) fn waits_for_reconnect(&self) -> bool {
        self.default_answer() != QuestionAnswer::Decision(Decision::Accept)
    }

    /// Returns whether both questions are about the same action of the same producer.
    pub(super) fn is_about_same_action(&self, other: &Question) -> bool {
        match (&self.subject, &other.subject) {
            (QuestionSubject::Confirmation { key: a, .. }, QuestionSubject::Confirmation { key: b, .. }) => {
                a == b && self.session_id == other.session_id && self.agent_id == other.agent_id
            }
            _ => false,
        }
    }

    /// Returns whether the question covers a call. Compares the tool, the call id and the digest if
    /// they are known.
    pub(super) fn covers(&self, actual_call: &CallIdentity<'_>) -> bool {
        let QuestionSubject::Confirmation { tool, call_id: call, digest, .. } = &self.subject else {
            return false;
        };
        let digest = digest.map(|digest| digest.to_string());
        CallIdentity { tool: tool.as_deref(), call_id: call.as_deref(), digest: digest.as_deref() }
            .covers(actual_call)
    }

    /// Returns how specifically the question describes its call.
    pub(super) fn specificity(&self) -> usize {
        match &self.subject {
            QuestionSubject::Confirmation { tool, call_id: call, digest, .. } => {
                usize::from(tool.is_some())
                    + 2 * usize::from(call.is_some())
                    + 4 * usize::from(digest.is_some())
            }
            QuestionSubject::Clarification { .. } => 0,
        }
    }

    /// Returns whether the question said that the action cannot be undone.
    pub(super) fn declares_irreversible(&self) -> bool {
        matches!(self.subject, QuestionSubject::Confirmation { irreversible: Some(true), .. })
    }

    /// Returns whether the question said that the risk is high.
    pub(super) fn declares_high_risk(&self) -> bool {
        matches!(self.subject, QuestionSubject::Confirmation { high_risk: true, .. })
    }

    /// Returns when the open question next needs attention if nobody replies.
    pub(super) fn due_at(&self) -> Option<UnixMillis> {
        let reminder = self
            .reminder_times()
            .into_iter()
            .zip(self.reminders_sent)
            .find(|(_, is_sent)| !is_sent)
            .map(|(at, _)| at);
        self.is_open()
            .then(|| [Some(self.deadline), reminder, self.grace_until].into_iter().flatten().min())
            .flatten()
    }

    /// Returns when half and when a tenth of the time is left, if there are reminders.
    pub(super) fn reminder_times(&self) -> Vec<UnixMillis> {
        reminder_times(self.asked_at, self.deadline)
    }

    /// Returns the reminder that is due. If both reminders are due, returns the second.
    pub(super) fn due_reminder(&self, now: UnixMillis) -> Option<ReminderThreshold> {
        let due: Vec<bool> = self
            .reminder_times()
            .into_iter()
            .zip(self.reminders_sent)
            .map(|(at, is_sent)| at <= now && !is_sent)
            .collect();
        match due[..] {
            [_, true] => Some(ReminderThreshold::Tenth),
            [true, ..] => Some(ReminderThreshold::Half),
            _ => None,
        }
    }

    /// Marks a reminder as sent. The second reminder also marks the first as sent.
    pub(super) fn with_reminder_sent(mut self, threshold: ReminderThreshold) -> Self {
        self.reminders_sent[0] = true;
        self.reminders_sent[1] |= threshold == ReminderThreshold::Tenth;
        self
    }

    /// Moves the deadline. A reminder that was already sent is repeated if its new time is in the
    /// future (WCAG 2.2.1).
    pub(super) fn with_deadline(mut self, deadline: UnixMillis, now: UnixMillis) -> Self {
        self.deadline = deadline;
        for (at, is_sent) in self.reminder_times().into_iter().zip(&mut self.reminders_sent) {
            *is_sent &= at <= now;
        }
        self
    }

    /// Resolves the question and returns its resolution.
    pub(super) fn resolve(
        mut self,
        answer: QuestionAnswer,
        by: ResolvedBy,
        at: UnixMillis,
    ) -> (Self, Resolution) {
        self.resolved_at = Some(at);
        self.status = match (&answer, self.is_confirmation()) {
            (QuestionAnswer::Decision(Decision::Accept), true) => {
                QuestionStatus::Accepted { by_default: by != ResolvedBy::Reply }
            }
            (_, true) => QuestionStatus::Refused { modified: false },
            (_, false) => QuestionStatus::Closed,
        };
        let resolution = Resolution {
            token: self.token.clone(),
            session_id: self.session_id.clone(),
            agent_id: self.agent_id.clone(),
            event_id: self.event_id.clone(),
            action_digest: self.action_digest(),
            answer,
            modified: false,
            resolved_by: by,
            asked_at: self.asked_at,
            deadline: self.deadline,
            resolved_at: at,
            expires_at: None,
            replied_at: None,
            subscription_id: None,
            principal: None,
            decided_by: None,
        };
        (self, resolution)
    }
}
