//! Opening a question from its event.

use std::hash::BuildHasher;

use seal::{Digest, UnixMillis};
use thiserror::Error;

use crate::check::CheckedDocument;
use crate::event::{Event, Payload};
use crate::id::{ReplyToken, SubscriptionId};
use crate::json::Tape;
use crate::message::ClarificationResponse;
use crate::rule::{self, Finding, Findings, Rule, Severity, ValidationMode};
use crate::session::question_rules::{AcceptedResponses, seconds_to_millis};
use crate::session::{Confirmation, SessionEventBody};

use super::question::QuestionSubject;
use super::reply::has_canonical_form;
use super::{
    ConsentOutcome, Question, QuestionOpened, QuestionRegistry, QuestionStatus, ResolvedBy, StagedChange,
};

impl<H: BuildHasher> QuestionRegistry<H> {
    /// Asks a question. Takes the event to emit, and the subscriptions that receive it and may
    /// answer. The event must contain a token from [`ReplyToken::generate`]. If the event contains
    /// the digest of an action ([`BoundAction`](super::BoundAction)), the question covers that
    /// action; otherwise it covers no irreversible or high-risk call.
    ///
    /// An invalid event is refused with the rules that it breaks. Two cases that the rules only
    /// discourage are also refused, because they are unsafe: a default of accept for an
    /// irreversible or high-risk action (C-B2), and a token that can be guessed. If nobody can answer, the
    /// default applies immediately (C-C1) and nobody receives the event.
    pub fn ask(
        &mut self,
        event: &Event,
        repliers: impl IntoIterator<Item = SubscriptionId>,
        now: UnixMillis,
    ) -> Result<StagedChange, AskError> {
        let mut question = self.build_question(event, now)?;
        if self.is_ending(&question.session_id) {
            return Err(AskError::SessionEnded);
        }
        if !self.is_unused_token(&question.token) {
            return Err(AskError::TokenUsed);
        }
        self.check_can_open(&question)?;
        question.replier_ids =
            repliers.into_iter().filter(|id| self.subscriptions.principal(id, now).is_some()).collect();
        question.replier_ids.sort_unstable();
        question.replier_ids.dedup();
        let opened = ConsentOutcome::Opened(QuestionOpened {
            token: question.token.clone(),
            session_id: question.session_id.clone(),
            deadline: question.deadline,
            reminder_times: question.reminder_times(),
            replier_ids: question.replier_ids.clone(),
        });
        let mut change = StagedChange::default();
        change.outcomes.push(opened);
        if self.subscriptions.can_answer(&question) {
            change.questions.push(question);
        } else {
            let answer = question.default_answer();
            change.push_resolved(question.resolve(answer, ResolvedBy::Unreachable, now));
        }
        Ok(self.stage(change))
    }

    fn build_question(&self, event: &Event, now: UnixMillis) -> Result<Question, AskError> {
        let text = event.to_json();
        let mut tape = Tape::default();
        let Ok(doc) = tape.read(&text) else { return Err(AskError::NotAQuestion) };
        let mut findings = Findings::new(ValidationMode::Strict);
        let checked = self.validator.check(&doc, &mut findings);
        let is_serious = |finding: &Finding| {
            finding.severity == Severity::Error
                || finding.rule == rule::LOW_RISK_DEFAULT
                || finding.rule == rule::REVERSIBLE_DEFAULT
        };
        let mut violations = findings.take();
        violations.retain(is_serious);
        let CheckedDocument::Event(session_event) = checked else {
            return Err(AskError::RuleViolations(violations));
        };
        let (token, timeout_seconds, subject) = match &session_event.body {
            SessionEventBody::Confirmation(question) => {
                let question = question.as_ref();
                (&question.token, question.timeout_seconds, build_subject(question)?)
            }
            SessionEventBody::Clarification(question) => {
                let accepted = question.accepted_responses();
                let default = match &event.payload {
                    Payload::AwaitingClarification(payload) => payload.default_response.as_deref(),
                    _ => None,
                };
                let default = default.and_then(|default| parse_default_response(default, &accepted));
                (
                    &question.token,
                    question.timeout_seconds,
                    QuestionSubject::Clarification { accepted, default },
                )
            }
            _ if violations.is_empty() => return Err(AskError::NotAQuestion),
            _ => return Err(AskError::RuleViolations(violations)),
        };
        if violations.is_empty() && !has_random_token_form(token) {
            let found = format!("found {token:?}");
            let pointer = "/reply_token".to_owned();
            let severity = Severity::Error;
            violations.push(Finding { rule: rule::REPLY_TOKEN_RANDOM, severity, pointer, actual: found });
        }
        let Ok(token) = ReplyToken::parse(token) else { return Err(AskError::RuleViolations(violations)) };
        if !violations.is_empty() {
            return Err(AskError::RuleViolations(violations));
        }
        // If the hub's clock is behind the event's timestamp, the deadline counts from now, so the person
        // gets no more time than the agent requested.
        let asked_at = event.envelope.timestamp.unix_millis().min(now);
        Ok(Question {
            token,
            session_id: event.envelope.session_id.clone(),
            agent_id: event.envelope.producer.agent_id.as_str().into(),
            event_id: event.envelope.event_id.clone(),
            asked_at,
            timeout_seconds,
            deadline: asked_at.saturating_add(seconds_to_millis(timeout_seconds)),
            status: QuestionStatus::Open,
            resolved_at: None,
            subject,
            replier_ids: Vec::new(),
            grace_until: None,
            reminders_sent: [false; 2],
        })
    }

    /// Checks that no other question about the same action is open (§6.1), and that the limits
    /// allow another question.
    fn check_can_open(&self, new: &Question) -> Result<(), AskError> {
        let (mut in_session, mut from_agent, mut total) = (0, 0, 0);
        for open in self.open_or_staged() {
            if open.is_about_same_action(new) {
                return Err(AskError::DuplicateQuestion(open.token.clone()));
            }
            in_session += usize::from(open.session_id == new.session_id);
            from_agent += usize::from(open.agent_id == new.agent_id);
            total += 1;
        }
        let limits = &self.limits;
        if in_session >= limits.max_open_per_session {
            return Err(AskError::TooMany(LimitScope::Session));
        }
        if from_agent >= limits.max_open_per_agent {
            return Err(AskError::TooMany(LimitScope::Agent));
        }
        if total >= limits.max_open_total {
            return Err(AskError::TooMany(LimitScope::Total));
        }
        Ok(())
    }
}

fn build_subject<S: AsRef<str>>(confirmation: &Confirmation<S>) -> Result<QuestionSubject, AskError> {
    let to_owned = |text: &Option<S>| text.as_ref().map(|text| text.as_ref().into());
    let digest = match &confirmation.digest {
        Some(digest) => Some(Digest::parse(digest.as_ref()).ok_or(AskError::InvalidDigest)?),
        None => None,
    };
    // Two questions are about the same action if they have the same call id. Without call ids the
    // digests are compared, and without digests the texts.
    let digest_text = digest.map(|digest| digest.to_string());
    let call = confirmation.call_id.as_ref().map(|call| ("call", call.as_ref()));
    // The kinds are part of the stored key and must not change.
    let (kind, name) = call
        .or_else(|| digest_text.as_deref().map(|digest| ("digest", digest)))
        .unwrap_or(("words", confirmation.action.as_ref()));
    Ok(QuestionSubject::Confirmation {
        key: Digest::of_parts([kind.as_bytes(), b" ", name.as_bytes()]),
        accept_by_default: confirmation.accept_by_default,
        irreversible: confirmation.irreversible,
        high_risk: confirmation.high_risk,
        may_accept: confirmation.may_accept,
        may_reject: confirmation.may_reject,
        tool: to_owned(&confirmation.tool),
        call_id: to_owned(&confirmation.call_id),
        digest,
    })
}

/// Converts a default response, which is always text, into a kind of response that the question
/// accepts.
fn parse_default_response(default: &str, accepted: &AcceptedResponses) -> Option<ClarificationResponse> {
    let text = ClarificationResponse::Text(default.to_owned());
    let yes_no = match default {
        "true" => Some(ClarificationResponse::YesNo(true)),
        "false" => Some(ClarificationResponse::YesNo(false)),
        _ => None,
    };
    let mut tape = Tape::default();
    let number = tape.read(default).ok().and_then(|doc| doc.root().as_number().map(|number| number.as_f64()));
    let number = number.map(ClarificationResponse::Number);
    [Some(text), yes_no, number]
        .into_iter()
        .flatten()
        .find(|response| accepted.broken_rule(response).is_none() && has_canonical_form(response))
}

/// Returns whether a token has the form of a random token (§6.2.1): 32 hexadecimal digits, which are
/// 128 bits, optionally followed by `x` and the number of a shard. A token without letters is
/// accepted, because about one random token in three million has no letters.
fn has_random_token_form(token: &str) -> bool {
    let tail = token.strip_prefix(ReplyToken::PREFIX).unwrap_or_default();
    let is_hex = |digits: &[u8]| digits.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    match tail.as_bytes().split_first_chunk::<32>() {
        Some((random, [])) => is_hex(random),
        Some((random, [b'x', shard @ ..])) => {
            is_hex(random) && (1..=3).contains(&shard.len()) && shard.iter().all(u8::is_ascii_digit)
        }
        _ => false,
    }
}

/// Why a question cannot be asked.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AskError {
    /// The event is not a question.
    #[error("the event is not a question")]
    NotAQuestion,
    /// The event breaks these rules.
    #[error("{}", join_messages(.0))]
    RuleViolations(Vec<Finding>),
    /// The `action_digest` is not a digest.
    #[error("action_digest must be sha256: followed by 64 hexadecimal digits")]
    InvalidDigest,
    /// The token was already used.
    #[error("{}", rule::TOKEN_NEW.sentence())]
    TokenUsed,
    /// A question about the same action is still open. Holds its token.
    #[error("{0} is still open; {rule}", rule = rule::DUPLICATE_QUESTION.sentence())]
    DuplicateQuestion(ReplyToken),
    /// Too many questions are open.
    #[error("too many questions {}", .0.as_str())]
    TooMany(LimitScope),
    /// The session has ended.
    #[error("the session has ended")]
    SessionEnded,
}

/// Which limit on open questions was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitScope {
    /// The limit per session.
    Session,
    /// The limit per agent.
    Agent,
    /// The total limit.
    Total,
}

impl LimitScope {
    fn as_str(self) -> &'static str {
        match self {
            Self::Session => "are open in this session",
            Self::Agent => "from this agent are open",
            Self::Total => "are open",
        }
    }
}

impl AskError {
    /// Returns the first broken rule, if the error is about a rule.
    pub fn rule(&self) -> Option<Rule> {
        match self {
            Self::RuleViolations(findings) => findings.first().map(|finding| finding.rule),
            Self::TokenUsed => Some(rule::TOKEN_NEW),
            Self::DuplicateQuestion(_) => Some(rule::DUPLICATE_QUESTION),
            Self::SessionEnded => Some(rule::NOTHING_AFTER_END),
            Self::InvalidDigest => Some(rule::EXTENSION_BODY),
            Self::NotAQuestion | Self::TooMany(_) => None,
        }
    }
}

fn join_messages(findings: &[Finding]) -> String {
    findings.iter().map(Finding::message).collect::<Vec<_>>().join("; ")
}
