//! Open questions.

use aaep::event::{
    AwaitingClarification, AwaitingConfirmation, Decision, Event, ResponseKind, Reversibility, RiskLevel,
    TextDirection,
};
use aaep::{ReplyToken, SessionId, consent};
use seal::UnixMillis;

use super::agent_identity::AgentIdentity;
use super::question_call::QuestionCall;
use crate::Phrases;

/// An open question of an agent.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ListenerQuestion {
    /// The number by which the person refers to it. Numbers are not reused.
    pub number: u32,
    /// The token that a reply must carry.
    pub reply_token: ReplyToken,
    /// The session that waits for the answer.
    pub session_id: SessionId,
    /// The agent's display name, with its id if nobody confirms the name.
    pub agent_name: String,
    /// The content of the question.
    pub body: QuestionBody,
    /// The call that it is about, if the hub reports one. Always `None` for a clarification.
    pub call: Option<QuestionCall>,
    /// Further details: sanitized, one per line.
    pub details: Vec<String>,
    /// When it was asked.
    pub asked_at: UnixMillis,
    /// The deadline for an answer.
    pub deadline: UnixMillis,
    /// How long the agent waits for an answer, without extensions, in seconds.
    pub timeout_seconds: u64,
    /// The language of the agent's text.
    pub language: Option<Box<str>>,
    /// The agent's texts, if sayso's own text around them is in another language.
    pub(super) quotes: Option<Vec<String>>,
    /// The direction of the agent's text.
    pub direction: TextDirection,
    /// Whether the person has answered. The outcome is not known yet.
    pub is_answered: bool,
    pub(super) decision: Option<Decision>,
    /// When it was opened here.
    pub(super) opened_at: UnixMillis,
    /// How far the local clock is ahead of the producer's, in milliseconds. Zero unless the clocks contradict each other.
    pub(super) clock_skew_ms: i64,
    /// When the question counts as closed, unless it arrives again first.
    pub(super) stale_at: Option<UnixMillis>,
    /// When the hub's reply to a request for more time is due, if one is pending.
    pub(super) more_time_reply_due: Option<UnixMillis>,
    /// The pending reminders: when half and when a tenth of the time remains.
    pub(super) reminders: Vec<UnixMillis>,
}

/// The content of a question. All texts are sanitized, except the values of choices.
#[derive(Clone, Debug)]
pub enum QuestionBody {
    /// A request for permission.
    Confirmation {
        /// The agent's summary, if it gave one.
        summary: Option<String>,
        /// The action that the agent wants to perform.
        action: String,
        /// Its consequence.
        consequence: String,
        /// Its risk.
        risk: Option<RiskLevel>,
        /// Whether it can be undone, if known.
        reversibility: Option<Reversibility>,
        /// The decision that counts without an answer.
        default_decision: Decision,
        /// Whether accept is allowed as a reply, and whether reject is.
        allowed: (bool, bool),
    },
    /// A request for information.
    Clarification {
        /// The question.
        question: String,
        /// Why the agent asks.
        context: Option<String>,
        /// The choices: the value that is sent, and the label that the person hears.
        choices: Vec<(String, String)>,
        /// The accepted kinds of response.
        response_kinds: Vec<ResponseKind>,
        /// The response that counts without an answer.
        default_response: Option<String>,
    },
}

impl ListenerQuestion {
    /// Whether a yes must be typed as a whole word: for high risk, and for anything not known to be reversible.
    pub fn requires_explicit_yes(&self) -> bool {
        let QuestionBody::Confirmation { risk, reversibility, .. } = &self.body else { return false };
        let is_reversible =
            matches!(reversibility, Some(Reversibility::Reversible | Reversibility::ReversibleWithEffort));
        *risk == Some(RiskLevel::High) || !is_reversible
    }

    /// Whether the question is about an action of high risk or one that cannot be undone, and the answer is not bound to
    /// one exact call.
    pub(super) fn is_dangerously_unbound(&self) -> bool {
        let QuestionBody::Confirmation { risk, reversibility, .. } = &self.body else { return false };
        let is_dangerous =
            *risk == Some(RiskLevel::High) || *reversibility == Some(Reversibility::Irreversible);
        is_dangerous && !self.call.as_ref().is_some_and(|call| call.is_bound)
    }

    /// Returns the action, or the question.
    pub fn prompt_text(&self) -> &str {
        match &self.body {
            QuestionBody::Confirmation { action, .. } => action,
            QuestionBody::Clarification { question, .. } => question,
        }
    }

    /// Returns the remaining time in milliseconds.
    pub fn remaining_ms(&self, now: UnixMillis) -> i64 {
        self.deadline.millis_since(now).max(0)
    }

    /// Whether this kind of response is accepted. Without `accepted_response_kinds` it is a choice if there are choices, else free
    /// text (C-D6).
    pub fn accepts(&self, kind: &ResponseKind) -> bool {
        matches!(&self.body, QuestionBody::Clarification { response_kinds, .. } if response_kinds.contains(kind))
    }

    pub(super) fn from_confirmation(
        phrases: &Phrases,
        event: &Event,
        asked: &AwaitingConfirmation,
        summary: Option<&str>,
    ) -> Self {
        let line = |text: &str| crate::sanitize(text, true);
        let allowed = |word: &str| {
            asked.allowed_replies.as_ref().is_none_or(|words| words.iter().any(|allowed| allowed == word))
        };
        let reversibility = match (&asked.reversibility, asked.irreversible) {
            (Some(Reversibility::Irreversible), _) | (_, Some(true)) => Some(Reversibility::Irreversible),
            (Some(other), _) => Some(other.clone()),
            (None, Some(false)) => Some(Reversibility::Reversible),
            (None, None) => None,
        };
        let mut details = Vec::new();
        for detail in [&asked.summary_detailed, &asked.summary_normal].into_iter().flatten() {
            details.push(line(detail));
        }
        if let Some(context) = &asked.extra_context {
            details.push(phrases.agent_adds(&line(context.as_str())));
        }
        let subject = QuestionBody::Confirmation {
            summary: summary.map(line),
            action: line(&asked.action),
            consequence: line(&asked.consequence),
            risk: asked.risk_level.clone(),
            reversibility,
            default_decision: asked.default_decision.clone(),
            allowed: (allowed("accept"), allowed("reject")),
        };
        Self::new(phrases, event, &asked.reply_token, asked.timeout_seconds, subject, details)
    }

    pub(super) fn from_clarification(
        phrases: &Phrases,
        event: &Event,
        asked: &AwaitingClarification,
    ) -> Self {
        let line = |text: &str| crate::sanitize(text, true);
        let choices: Vec<_> = asked
            .choices
            .iter()
            .flatten()
            .map(|choice| (choice.value.clone(), line(&choice.label)))
            .collect();
        let kinds = asked.accepted_response_kinds.clone().unwrap_or_else(|| {
            vec![if choices.is_empty() { ResponseKind::FreeText } else { ResponseKind::MultipleChoice }]
        });
        let details =
            asked.summary_detailed.iter().chain(&asked.summary_normal).map(|text| line(text)).collect();
        let subject = QuestionBody::Clarification {
            question: line(&asked.question),
            context: asked.context.as_deref().map(line),
            choices,
            response_kinds: kinds,
            default_response: asked.default_response.as_deref().map(line),
        };
        Self::new(phrases, event, &asked.reply_token, asked.timeout_seconds, subject, details)
    }

    fn new(
        phrases: &Phrases,
        event: &Event,
        token: &ReplyToken,
        timeout: u64,
        subject: QuestionBody,
        details: Vec<String>,
    ) -> Self {
        let asked = event.envelope.timestamp.unix_millis();
        let millis = i64::try_from(timeout).unwrap_or(i64::MAX).saturating_mul(1000);
        let hints = event.envelope.localization_hints.as_ref();
        Self {
            number: 0,
            reply_token: token.clone(),
            session_id: event.envelope.session_id.clone(),
            agent_name: super::wording::agent_name(phrases, event),
            body: subject,
            call: None,
            details,
            asked_at: asked,
            deadline: asked.saturating_add(millis),
            timeout_seconds: timeout,
            language: hints.and_then(|hints| hints.primary_language.as_deref()).map(Into::into),
            quotes: super::wording::agent_quotes(phrases, event),
            direction: super::wording::text_direction(event),
            is_answered: false,
            decision: None,
            opened_at: asked,
            clock_skew_ms: 0,
            stale_at: None,
            more_time_reply_due: None,
            reminders: Vec::new(),
        }
    }

    /// Adds what the hub reports: who asks, and which call the question is about.
    pub(super) fn add_hub_facts(
        &mut self,
        phrases: &Phrases,
        identity: &AgentIdentity,
        call: Option<QuestionCall>,
    ) {
        self.agent_name = identity.label(phrases);
        self.details.extend(identity.describe_id(phrases));
        self.call = call.filter(|_| matches!(self.body, QuestionBody::Confirmation { .. }));
        self.details.extend(self.call.iter().map(|call| {
            if call.is_bound { phrases.exact_call(&call.text) } else { phrases.uses_tool(&call.text) }
        }));
    }

    /// Assigns the number and starts the time to answer. The sender considers the question open. If the local clock says that it has
    /// expired or has not been asked yet, the clocks differ, so the time starts now.
    pub(super) fn open(mut self, number: u32, now: UnixMillis) -> Self {
        self.number = number;
        self.opened_at = now;
        let timeout = self.deadline.millis_since(self.asked_at);
        let late = now.millis_since(self.asked_at);
        if late < -CLOCK_TOLERANCE_MS || late >= timeout {
            self.clock_skew_ms = late;
        }
        self.asked_at = self.asked_at.saturating_add(self.clock_skew_ms).min(now);
        self.deadline = self.asked_at.saturating_add(timeout);
        self.set_reminders(now);
        self
    }

    /// Whether the question is known to be open. After a gap, that is unknown until the question arrives again.
    pub(crate) fn is_known_open(&self) -> bool {
        self.stale_at.is_none()
    }

    /// Converts a local time to the producer's clock.
    pub(super) fn to_producer_time(&self, now: UnixMillis) -> UnixMillis {
        now.saturating_sub(self.clock_skew_ms)
    }

    /// Applies a deadline that the hub sent at `sent_at`, both by the hub's clock. Returns whether it is later than the known one.
    pub(super) fn extend_deadline(
        &mut self,
        deadline: UnixMillis,
        sent_at: UnixMillis,
        now: UnixMillis,
    ) -> bool {
        // If the hub's message shows less skew than assumed, the local clock was right: the question arrived late, and its deadline
        // had already been extended.
        let late = now.millis_since(sent_at);
        if self.clock_skew_ms > 0 && late < self.clock_skew_ms.saturating_sub(CLOCK_TOLERANCE_MS) {
            let ahead = if now < deadline { 0 } else { late.max(0) };
            let by = self.clock_skew_ms.saturating_sub(ahead);
            self.asked_at = self.asked_at.saturating_sub(by);
            self.deadline = self.deadline.saturating_sub(by);
            self.clock_skew_ms = ahead;
        }
        let deadline = deadline.saturating_add(self.clock_skew_ms);
        if deadline <= self.deadline {
            return false;
        }
        self.deadline = deadline;
        self.set_reminders(now);
        true
    }

    fn set_reminders(&mut self, now: UnixMillis) {
        self.reminders = consent::reminder_times(self.asked_at, self.deadline);
        self.reminders.retain(|at| *at > now);
    }
}

/// Differences between two clocks below this are ignored, in milliseconds.
const CLOCK_TOLERANCE_MS: i64 = 2000;
