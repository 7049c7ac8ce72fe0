//! Open questions.

use aaep::event::{
    AwaitingClarification, AwaitingConfirmation, Decision, Event, ResponseKind, Reversibility, RiskLevel,
    TextDirection,
};
use aaep::{ReplyToken, SessionId, consent};
use seal::UnixMillis;

use super::agent_identity::AgentIdentity;
use super::question_call::QuestionCall;
use super::session_facts::describe_json;
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
    /// Further details from the agent: sanitized, one per line.
    pub details: Vec<String>,
    /// sayso's own details, one per line: the agent's id and the call. No text from the agent replaces them.
    pub hub_details: Vec<String>,
    /// When it was asked.
    pub asked_at: UnixMillis,
    /// The deadline for an answer.
    pub deadline: UnixMillis,
    /// How long the agent waits for an answer, without extensions, in seconds.
    pub timeout_seconds: u64,
    /// The language of the agent's text.
    pub language: Option<Box<str>>,
    /// The direction of the agent's text.
    pub direction: TextDirection,
    /// Whether the person has answered. The outcome is not known yet.
    pub is_answered: bool,
    /// The decision that the person has sent.
    pub(super) decision: Option<Decision>,
    /// When it was opened here.
    pub(super) opened_at: UnixMillis,
    /// How far the local clock is ahead of the producer's, in milliseconds. Zero unless the clocks contradict each other.
    pub(super) clock_skew_ms: i64,
    /// When the question counts as closed, unless it arrives again first.
    pub(super) stale_at: Option<UnixMillis>,
    /// When the hub's reply to a request for more time is due, if one is pending.
    pub(super) more_time_reply_due: Option<UnixMillis>,
    /// When the person hears that more time was requested, unless the hub replies first.
    pub(super) more_time_notice_due: Option<UnixMillis>,
    /// The pending reminders: when half and when a tenth of the time remains.
    pub(super) reminders: Vec<UnixMillis>,
}

/// The content of a question. All texts are sanitized, except the values of choices.
#[derive(Clone, Debug)]
pub enum QuestionBody {
    /// A request for permission.
    Confirmation {
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
        /// Whether accept is an allowed reply.
        may_accept: bool,
        /// Whether reject is an allowed reply.
        may_reject: bool,
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

    /// Whether the question itself states the call. The details state it instead if the answer is not bound to it, if it is too long,
    /// if the action says the same, or if the action can be undone and its risk is not high.
    pub(super) fn states_call(&self, call: &QuestionCall) -> bool {
        call.is_bound
            && call.is_short()
            && self.requires_explicit_yes()
            && !call.is_said_by(self.prompt_text())
    }

    /// Whether silence counts as a yes.
    pub(super) fn is_accepted_by_default(&self) -> bool {
        matches!(self.body, QuestionBody::Confirmation { default_decision: Decision::Accept, .. })
    }

    /// Returns the action of a confirmation, or the question of a clarification.
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

    /// Whether this kind of response is accepted. If the event has no `accepted_response_kinds`, only a choice is accepted, or free
    /// text if there are no choices (C-D6).
    pub fn accepts(&self, kind: &ResponseKind) -> bool {
        matches!(&self.body, QuestionBody::Clarification { response_kinds, .. } if response_kinds.contains(kind))
    }

    pub(super) fn from_confirmation(
        phrases: &Phrases,
        event: &Event,
        request: &AwaitingConfirmation,
    ) -> Self {
        let sanitize_line = |text: &str| crate::sanitize(text, true);
        let is_allowed = |reply: &str| {
            request.allowed_replies.as_ref().is_none_or(|replies| replies.iter().any(|one| one == reply))
        };
        let reversibility = match (&request.reversibility, request.irreversible) {
            (Some(Reversibility::Irreversible), _) | (_, Some(true)) => Some(Reversibility::Irreversible),
            (Some(other), _) => Some(other.clone()),
            (None, Some(false)) => Some(Reversibility::Reversible),
            (None, None) => None,
        };
        let mut details = Vec::new();
        for detail in
            [&request.summary_detailed, &request.summary_normal, &request.summary_terse].into_iter().flatten()
        {
            details.push(sanitize_line(detail));
        }
        if let Some(context) = &request.extra_context {
            details.push(describe_json(context.as_str()));
        }
        let body = QuestionBody::Confirmation {
            action: sanitize_line(&request.action),
            consequence: sanitize_line(&request.consequence),
            risk: request.risk_level.clone(),
            reversibility,
            default_decision: request.default_decision.clone(),
            may_accept: is_allowed("accept"),
            may_reject: is_allowed("reject"),
        };
        Self::new(phrases, event, &request.reply_token, request.timeout_seconds, body, details)
    }

    pub(super) fn from_clarification(
        phrases: &Phrases,
        event: &Event,
        request: &AwaitingClarification,
    ) -> Self {
        let sanitize_line = |text: &str| crate::sanitize(text, true);
        let choices: Vec<_> = request
            .choices
            .iter()
            .flatten()
            .map(|choice| (choice.value.clone(), sanitize_line(&choice.label)))
            .collect();
        let response_kinds = request.accepted_response_kinds.clone().unwrap_or_else(|| {
            vec![if choices.is_empty() { ResponseKind::FreeText } else { ResponseKind::MultipleChoice }]
        });
        let details = request
            .summary_detailed
            .iter()
            .chain(&request.summary_normal)
            .chain(&request.summary_terse)
            .map(|text| sanitize_line(text))
            .collect();
        // A person hears the label of a choice, not its value.
        let default_label =
            choices.iter().find(|(value, _)| request.default_response.as_ref() == Some(value));
        let default_label = default_label.map(|(_, label)| label.clone());
        let body = QuestionBody::Clarification {
            question: sanitize_line(&request.question),
            context: request.context.as_deref().map(sanitize_line),
            choices,
            response_kinds,
            default_response: default_label.or(request.default_response.as_deref().map(sanitize_line)),
        };
        Self::new(phrases, event, &request.reply_token, request.timeout_seconds, body, details)
    }

    fn new(
        phrases: &Phrases,
        event: &Event,
        token: &ReplyToken,
        timeout_seconds: u64,
        body: QuestionBody,
        details: Vec<String>,
    ) -> Self {
        let asked_at = event.envelope.timestamp.unix_millis();
        let timeout_ms = i64::try_from(timeout_seconds).unwrap_or(i64::MAX).saturating_mul(1000);
        let hints = event.envelope.localization_hints.as_ref();
        Self {
            number: 0,
            reply_token: token.clone(),
            session_id: event.envelope.session_id.clone(),
            agent_name: super::wording::agent_name(phrases, event),
            body,
            call: None,
            details,
            hub_details: Vec::new(),
            asked_at,
            deadline: asked_at.saturating_add(timeout_ms),
            timeout_seconds,
            language: hints.and_then(|hints| hints.primary_language.as_deref()).map(Into::into),
            direction: super::wording::text_direction(event),
            is_answered: false,
            decision: None,
            opened_at: asked_at,
            clock_skew_ms: 0,
            stale_at: None,
            more_time_reply_due: None,
            more_time_notice_due: None,
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
        self.hub_details.extend(identity.describe_id(phrases));
        self.call = call.filter(|_| matches!(self.body, QuestionBody::Confirmation { .. }));
        let call = self.call.as_ref().filter(|call| !self.states_call(call));
        self.hub_details.extend(call.map(|call| {
            if call.is_bound { phrases.exact_call(&call.text) } else { phrases.uses_tool(&call.text) }
        }));
    }

    /// Assigns the number and starts the time to answer. The sender considers the question open. If the local clock says that it has
    /// expired or has not been asked yet, the clocks differ, so the time starts now.
    pub(super) fn open(mut self, number: u32, now: UnixMillis) -> Self {
        self.number = number;
        self.opened_at = now;
        let timeout_ms = self.deadline.millis_since(self.asked_at);
        let delay_ms = now.millis_since(self.asked_at);
        if delay_ms < -CLOCK_TOLERANCE_MS || delay_ms >= timeout_ms {
            self.clock_skew_ms = delay_ms;
        }
        self.asked_at = self.asked_at.saturating_add(self.clock_skew_ms).min(now);
        self.deadline = self.asked_at.saturating_add(timeout_ms);
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
        let delay_ms = now.millis_since(sent_at);
        if self.clock_skew_ms > 0 && delay_ms < self.clock_skew_ms.saturating_sub(CLOCK_TOLERANCE_MS) {
            let skew_ms = if now < deadline { 0 } else { delay_ms.max(0) };
            let correction_ms = self.clock_skew_ms.saturating_sub(skew_ms);
            self.asked_at = self.asked_at.saturating_sub(correction_ms);
            self.deadline = self.deadline.saturating_sub(correction_ms);
            self.clock_skew_ms = skew_ms;
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
