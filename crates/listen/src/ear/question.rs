//! Open questions.

use aaep::event::{
    AwaitingClarification, AwaitingConfirmation, Decision, Event, ResponseKind, Reversibility, RiskLevel,
    TextDirection,
};
use aaep::{ReplyToken, SessionId, consent};
use seal::UnixMillis;

use crate::Phrases;

/// A question that an agent waits for.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Question {
    /// By this number the person names it. It is given once and never again.
    pub number: u32,
    /// What the answer is tied to.
    pub token: ReplyToken,
    /// The session that waits.
    pub session: SessionId,
    /// The agent's name for people.
    pub agent: String,
    /// What is asked.
    pub subject: Subject,
    /// More about it, for who wants to know: harmless, a line each.
    pub details: Vec<String>,
    /// When it was asked, in milliseconds since 1970.
    pub asked: UnixMillis,
    /// Until when it can be answered.
    pub deadline: UnixMillis,
    /// How long the agent waits without being asked for more.
    pub timeout_seconds: u64,
    /// The language of what the agent said.
    pub language: Option<Box<str>>,
    /// What of it stands among words of sayso's own in another language.
    pub(super) quotes: Option<Vec<String>>,
    /// Which way that runs.
    pub direction: TextDirection,
    /// The person has answered; what becomes of it is not known yet.
    pub is_answered: bool,
    pub(super) said: Option<Decision>,
    /// How far this clock is ahead of the producer's, where they cannot both be right.
    pub(super) ahead: i64,
    /// Unless it is told again by then, it is over.
    pub(super) unsure: Option<UnixMillis>,
    /// More time was asked for; until then the hub says whether there is.
    pub(super) wished: Option<UnixMillis>,
    /// When half, and a tenth, of the time is left, unless it was said.
    pub(super) reminders: Vec<UnixMillis>,
}

/// What is asked; all text is harmless.
#[derive(Clone, Debug)]
pub enum Subject {
    /// May this be done?
    Confirmation {
        /// The question as the agent put it, where it did.
        summary: Option<String>,
        /// What would be done.
        action: String,
        /// What would come of it.
        consequence: String,
        /// How much harm it could do.
        risk: Option<RiskLevel>,
        /// How it could be undone, where the agent says so.
        reversibility: Option<Reversibility>,
        /// What holds without an answer.
        default: Decision,
        /// Whether a yes, and whether a no, is taken.
        allowed: (bool, bool),
    },
    /// What was meant?
    Clarification {
        /// The question.
        question: String,
        /// Why the agent asks.
        context: Option<String>,
        /// The answers to choose from: the value that is sent, and what the person is told.
        choices: Vec<(String, String)>,
        /// What an answer may be.
        kinds: Vec<ResponseKind>,
        /// What holds without an answer.
        default: Option<String>,
    },
}

impl Question {
    /// Whether a yes must be typed as a whole word: what could do much harm, and what cannot be undone for all that is known.
    pub fn is_grave(&self) -> bool {
        let Subject::Confirmation { risk, reversibility, .. } = &self.subject else { return false };
        let undone =
            matches!(reversibility, Some(Reversibility::Reversible | Reversibility::ReversibleWithEffort));
        *risk == Some(RiskLevel::High) || !undone
    }

    /// What would be done, or what is asked.
    pub fn what(&self) -> &str {
        match &self.subject {
            Subject::Confirmation { action, .. } => action,
            Subject::Clarification { question, .. } => question,
        }
    }

    /// Milliseconds that are left.
    pub fn remaining(&self, now: UnixMillis) -> i64 {
        self.deadline.millis_since(now).max(0)
    }

    /// Whether an answer may be of that kind; nothing said is free text, or a choice if there are choices (C-D6).
    pub fn takes(&self, kind: &ResponseKind) -> bool {
        matches!(&self.subject, Subject::Clarification { kinds, .. } if kinds.contains(kind))
    }

    pub(super) fn confirmation(
        phrases: &Phrases,
        event: &Event,
        asked: &AwaitingConfirmation,
        summary: Option<&str>,
    ) -> Self {
        let line = |text: &str| crate::plain(text, true);
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
        let subject = Subject::Confirmation {
            summary: summary.map(line),
            action: line(&asked.action),
            consequence: line(&asked.consequence),
            risk: asked.risk_level.clone(),
            reversibility,
            default: asked.default_decision.clone(),
            allowed: (allowed("accept"), allowed("reject")),
        };
        Self::of(phrases, event, &asked.reply_token, asked.timeout_seconds, subject, details)
    }

    pub(super) fn clarification(phrases: &Phrases, event: &Event, asked: &AwaitingClarification) -> Self {
        let line = |text: &str| crate::plain(text, true);
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
        let subject = Subject::Clarification {
            question: line(&asked.question),
            context: asked.context.as_deref().map(line),
            choices,
            kinds,
            default: asked.default_response.as_deref().map(line),
        };
        Self::of(phrases, event, &asked.reply_token, asked.timeout_seconds, subject, details)
    }

    fn of(
        phrases: &Phrases,
        event: &Event,
        token: &ReplyToken,
        timeout: u64,
        subject: Subject,
        details: Vec<String>,
    ) -> Self {
        let asked = event.envelope.timestamp.unix_millis();
        let millis = i64::try_from(timeout).unwrap_or(i64::MAX).saturating_mul(1000);
        let hints = event.envelope.localization_hints.as_ref();
        Self {
            number: 0,
            token: token.clone(),
            session: event.envelope.session_id.clone(),
            agent: super::words::agent(phrases, event),
            subject,
            details,
            asked,
            deadline: asked.saturating_add(millis),
            timeout_seconds: timeout,
            language: hints.and_then(|hints| hints.primary_language.as_deref()).map(Into::into),
            quotes: super::words::quotes(phrases, event),
            direction: super::words::direction(event),
            is_answered: false,
            said: None,
            ahead: 0,
            unsure: None,
            wished: None,
            reminders: Vec::new(),
        }
    }

    /// Takes its place among the questions of this listener. Whoever sends a question holds it to be open, so that a clock
    /// by which it is over, or was not asked yet, is wrong here: then its time begins now.
    pub(super) fn opened(mut self, number: u32, now: UnixMillis) -> Self {
        self.number = number;
        let timeout = self.deadline.millis_since(self.asked);
        let late = now.millis_since(self.asked);
        if late < -CLOCKS || late >= timeout {
            self.ahead = late;
        }
        self.asked = self.asked.saturating_add(self.ahead).min(now);
        self.deadline = self.asked.saturating_add(timeout);
        self.set_reminders(now);
        self
    }

    /// Whether it is known to be open: after a gap it is not, until it is told again.
    pub(crate) fn is_sure(&self) -> bool {
        self.unsure.is_none()
    }

    /// A time by the producer's clock.
    pub(super) fn by_producer(&self, now: UnixMillis) -> UnixMillis {
        now.saturating_sub(self.ahead)
    }

    /// The hub told, at that time by its clock, that it can be answered until then; says whether that is later than was known.
    pub(super) fn moved(&mut self, deadline: UnixMillis, told: UnixMillis, now: UnixMillis) -> bool {
        // It was not this clock that was wrong: the question was heard late, and was open for longer than it said.
        let late = now.millis_since(told);
        if self.ahead > 0 && late < self.ahead.saturating_sub(CLOCKS) {
            let ahead = if now < deadline { 0 } else { late.max(0) };
            let by = self.ahead.saturating_sub(ahead);
            self.asked = self.asked.saturating_sub(by);
            self.deadline = self.deadline.saturating_sub(by);
            self.ahead = ahead;
        }
        let deadline = deadline.saturating_add(self.ahead);
        if deadline <= self.deadline {
            return false;
        }
        self.deadline = deadline;
        self.set_reminders(now);
        true
    }

    fn set_reminders(&mut self, now: UnixMillis) {
        self.reminders = consent::reminders(self.asked, self.deadline);
        self.reminders.retain(|at| *at > now);
    }
}

/// Clocks that differ by less agree.
const CLOCKS: i64 = 2000;
