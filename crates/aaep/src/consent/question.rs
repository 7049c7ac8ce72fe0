//! One question: what it is about, until when, who may answer, and how it stands.

use seal::{Digest, UnixMillis};

use crate::event::Decision;
use crate::id::{EventId, ReplyToken, SessionId, SubscriptionId};
use crate::message::Response;
use crate::session::terms::{Kinds, Named, reminders};

use super::{Answer, By, Left, Resolution};

/// One question, as it stands in the book and, as [a record](Question::to_record), on disk.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Question {
    /// Its token.
    pub token: ReplyToken,
    /// Its session.
    pub session: SessionId,
    /// The agent that asks.
    pub agent: Box<str>,
    /// The event that asked.
    pub event: EventId,
    /// The event's time, in milliseconds since 1970: its time runs from there (§6.4).
    pub asked: UnixMillis,
    /// How long it was to stay open at first.
    pub timeout_seconds: u64,
    /// When its default holds; a person may have moved it.
    pub deadline: UnixMillis,
    /// How it stands.
    pub status: Status,
    pub(super) about: About,
    /// The subscriptions that the event went to and that may answer (C-C3).
    pub(super) repliers: Vec<SubscriptionId>,
    /// The subscriptions may be gone until then, and it stays open all the same: the hub itself was away (C-C17).
    pub(super) grace: Option<UnixMillis>,
    /// Whether it was told that half, and that a tenth, of its time is left.
    pub(super) told: [bool; 2],
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum About {
    /// May this be done?
    Action {
        /// The same for two questions about one action (§6.1).
        key: Digest,
        accept_by_default: bool,
        irreversible: Option<bool>,
        may_accept: bool,
        may_reject: bool,
        tool: Option<Box<str>>,
        call: Option<Box<str>>,
        digest: Option<Digest>,
    },
    /// What did the person mean?
    Meaning { kinds: Kinds, default: Option<Response> },
}

/// How a question stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// It waits for an answer.
    Open,
    /// It is accepted, and no call has been made on it.
    Accepted {
        /// Nobody said so: its default did.
        silent: bool,
    },
    /// It was accepted, and the one call that it covers has been made.
    Spent,
    /// It is refused.
    Refused {
        /// The reply accepted something else (§6.3.2).
        modified: bool,
    },
    /// A clarification that has its answer, or never will.
    Answered,
}

impl Question {
    /// Whether it waits for an answer.
    pub fn is_open(&self) -> bool {
        self.status == Status::Open
    }

    /// Whether it asks for consent rather than for what was meant.
    pub fn is_confirmation(&self) -> bool {
        matches!(self.about, About::Action { .. })
    }

    /// The digest of the action that it is bound to, if it is bound to one.
    pub fn action_digest(&self) -> Option<Digest> {
        match &self.about {
            About::Action { digest, .. } => *digest,
            About::Meaning { .. } => None,
        }
    }

    /// The subscriptions that may answer.
    pub fn repliers(&self) -> &[SubscriptionId] {
        &self.repliers
    }

    /// What holds if nobody answers (§6.4, §6.5.4).
    pub fn default_answer(&self) -> Answer {
        match &self.about {
            About::Action { accept_by_default: true, irreversible, .. } if *irreversible != Some(true) => {
                Answer::Decision(Decision::Accept)
            }
            About::Action { .. } => Answer::Decision(Decision::Reject),
            About::Meaning { default, .. } => default.clone().map_or(Answer::Unavailable, Answer::Response),
        }
    }

    /// What holds if it is withdrawn, or its session stopped.
    pub(super) fn refusal(&self) -> Answer {
        if self.is_confirmation() { Answer::Decision(Decision::Reject) } else { Answer::Unavailable }
    }

    /// Whether a lost subscription may come back to answer it: only where silence means no (C-C17).
    pub(super) fn waits_for_return(&self) -> bool {
        self.default_answer() != Answer::Decision(Decision::Accept)
    }

    /// Whether both are about one action.
    pub(super) fn is_twin(&self, other: &Question) -> bool {
        match (&self.about, &other.about) {
            (About::Action { key: a, .. }, About::Action { key: b, .. }) => {
                a == b && self.session == other.session
            }
            _ => false,
        }
    }

    /// The call that it is about, as far as it says; `digest` holds the text of its digest.
    pub(super) fn covers(&self, made: &Named<'_>) -> bool {
        let About::Action { tool, call, digest, .. } = &self.about else { return false };
        let digest = digest.map(|digest| digest.to_string());
        Named { tool: tool.as_deref(), call: call.as_deref(), digest: digest.as_deref() }.covers(made)
    }

    /// How specific it is about the call that it covers.
    pub(super) fn precision(&self) -> usize {
        match &self.about {
            About::Action { tool, call, digest, .. } => {
                usize::from(tool.is_some())
                    + 2 * usize::from(call.is_some())
                    + 4 * usize::from(digest.is_some())
            }
            About::Meaning { .. } => 0,
        }
    }

    /// The person was told that it can be undone.
    pub(super) fn says_reversible(&self) -> bool {
        matches!(self.about, About::Action { irreversible: Some(false), .. })
    }

    /// When something is next to be done about it, if it is open and nobody answers.
    pub(super) fn due(&self) -> Option<UnixMillis> {
        let reminder = self.reminders().into_iter().zip(self.told).find(|(_, told)| !told).map(|(at, _)| at);
        self.is_open()
            .then(|| [Some(self.deadline), reminder, self.grace].into_iter().flatten().min())
            .flatten()
    }

    /// When half, and when a tenth, of its time is left, where that is told.
    pub(super) fn reminders(&self) -> Vec<UnixMillis> {
        reminders(self.asked, self.deadline)
    }

    /// Which reminder is due; if both are, the one that is still true.
    pub(super) fn reminder_due(&self, now: UnixMillis) -> Option<Left> {
        let due: Vec<bool> =
            self.reminders().into_iter().zip(self.told).map(|(at, told)| at <= now && !told).collect();
        match due[..] {
            [_, true] => Some(Left::Tenth),
            [true, ..] => Some(Left::Half),
            _ => None,
        }
    }

    /// It has been told that so much is left, and so that more was.
    pub(super) fn reminded(mut self, left: Left) -> Self {
        self.told[0] = true;
        self.told[1] |= left == Left::Tenth;
        self
    }

    /// Its deadline is moved. What was told of its time is told again if its moment lies ahead once more (WCAG 2.2.1).
    pub(super) fn extended(mut self, deadline: UnixMillis, now: UnixMillis) -> Self {
        self.deadline = deadline;
        for (at, told) in self.reminders().into_iter().zip(&mut self.told) {
            *told &= at <= now;
        }
        self
    }

    /// It is resolved; what it was, and what is to be told of it.
    pub(super) fn resolved(mut self, answer: Answer, by: By, at: UnixMillis) -> (Self, Resolution) {
        self.status = match (&answer, self.is_confirmation()) {
            (Answer::Decision(Decision::Accept), true) => Status::Accepted { silent: by != By::Reply },
            (_, true) => Status::Refused { modified: false },
            (_, false) => Status::Answered,
        };
        let resolution = Resolution {
            token: self.token.clone(),
            session: self.session.clone(),
            agent: self.agent.clone(),
            event: self.event.clone(),
            action_digest: self.action_digest(),
            answer,
            modified: false,
            by,
            asked: self.asked,
            deadline: self.deadline,
            at,
            replied: None,
            subscription: None,
            principal: None,
            decided_by: None,
        };
        (self, resolution)
    }
}
