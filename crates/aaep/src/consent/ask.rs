//! Asking: from the event that asks to an open question.

use std::hash::BuildHasher;

use seal::{Digest, UnixMillis};
use thiserror::Error;

use crate::check::Checked;
use crate::event::{Event, Payload};
use crate::id::{ReplyToken, SubscriptionId};
use crate::json::Tape;
use crate::message::Response;
use crate::rule::{self, Face, Finding, Findings, Rule, Severity};
use crate::session::terms::{Kinds, millis};
use crate::session::{Body, Confirmation};

use super::question::About;
use super::reply::has_canonical_form;
use super::{Asked, By, Decided, Outcome, Question, Questions, Status};

impl<H: BuildHasher> Questions<H> {
    /// Asks: takes the event that is to be emitted, and the subscriptions that it goes to, which are those that may
    /// answer. The question's token is the event's, made by [`ReplyToken::generate`]; it is bound to the action whose
    /// digest the event carries ([`Action`](super::Action)), or else covers one call of its session.
    ///
    /// What is unlawful is refused with the rules that it breaks, and so is what the rules merely advise against but
    /// safety needs: silence that means yes to something irreversible (C-B2), and a token that could be guessed. Where
    /// nobody can answer, the default holds at once (C-C1) and the event is sent to nobody.
    pub fn ask(
        &mut self,
        event: &Event,
        repliers: impl IntoIterator<Item = SubscriptionId>,
        now: UnixMillis,
    ) -> Result<Decided, NotAsked> {
        let mut question = self.draft(event)?;
        // Where our clock has gone back behind the session's stamps, nobody gets longer than was asked for.
        if question.asked > now {
            question.asked = now;
            question.deadline = now.saturating_add(millis(question.timeout_seconds));
        }
        if self.is_ending(&question.session) {
            return Err(NotAsked::SessionOver);
        }
        if !self.is_new(&question.token) {
            return Err(NotAsked::TokenUsed);
        }
        self.room_for(&question)?;
        question.repliers =
            repliers.into_iter().filter(|id| self.subscriptions.principal(id, now).is_some()).collect();
        question.repliers.sort_unstable();
        question.repliers.dedup();
        let asked = Outcome::Asked(Asked {
            token: question.token.clone(),
            session: question.session.clone(),
            deadline: question.deadline,
            reminders: question.reminders(),
            repliers: question.repliers.clone(),
        });
        let mut decided = Decided::default();
        decided.outcomes.push(asked);
        if self.subscriptions.can_answer(&question, now) {
            decided.questions.push(question);
        } else {
            let answer = question.default_answer();
            decided.push_resolved(question.resolved(answer, By::Unreachable, now));
        }
        Ok(self.hold(decided))
    }

    fn draft(&self, event: &Event) -> Result<Question, NotAsked> {
        let text = event.to_json();
        let mut tape = Tape::default();
        let Ok(doc) = tape.read(&text) else { return Err(NotAsked::NotAQuestion) };
        let mut findings = Findings::new(Face::Strict);
        let checked = self.validator.check(&doc, &mut findings);
        let grave =
            |finding: &Finding| finding.severity == Severity::Error || finding.rule == rule::LOW_DEFAULT;
        let mut broken = findings.take();
        broken.retain(grave);
        let Checked::Event(step) = checked else { return Err(NotAsked::Unlawful(broken)) };
        let (token, timeout_seconds, about) = match &step.body {
            Body::Confirmation(asked) => {
                let asked = asked.as_ref();
                (&asked.token, asked.timeout_seconds, action(asked)?)
            }
            Body::Clarification(asked) => {
                let kinds = asked.kinds();
                let default = match &event.payload {
                    Payload::AwaitingClarification(payload) => payload.default_response.as_deref(),
                    _ => None,
                };
                let default = default.and_then(|default| response_of(default, &kinds));
                (&asked.token, asked.timeout_seconds, About::Meaning { kinds, default })
            }
            _ if broken.is_empty() => return Err(NotAsked::NotAQuestion),
            _ => return Err(NotAsked::Unlawful(broken)),
        };
        if broken.is_empty() && !is_random(token) {
            let found = format!("found {token:?}");
            let pointer = "/reply_token".to_owned();
            let severity = Severity::Error;
            broken.push(Finding { rule: rule::REPLY_TOKEN_RANDOM, severity, pointer, found });
        }
        let Ok(token) = ReplyToken::parse(token) else { return Err(NotAsked::Unlawful(broken)) };
        if !broken.is_empty() {
            return Err(NotAsked::Unlawful(broken));
        }
        let asked = event.envelope.timestamp.unix_millis();
        Ok(Question {
            token,
            session: event.envelope.session_id.clone(),
            agent: event.envelope.producer.agent_id.as_str().into(),
            event: event.envelope.event_id.clone(),
            asked,
            timeout_seconds,
            deadline: asked.saturating_add(millis(timeout_seconds)),
            status: Status::Open,
            about,
            repliers: Vec::new(),
            grace: None,
            told: [false; 2],
        })
    }

    /// No second question about the same action (§6.1), and no more than there is room for.
    fn room_for(&self, new: &Question) -> Result<(), NotAsked> {
        let (mut session, mut agent, mut all) = (0, 0, 0);
        for open in self.open_or_pending() {
            if open.is_twin(new) {
                return Err(NotAsked::AskedTwice(open.token.clone()));
            }
            session += usize::from(open.session == new.session);
            agent += usize::from(open.agent == new.agent);
            all += 1;
        }
        let limits = &self.limits;
        if session >= limits.open_in_session {
            return Err(NotAsked::TooMany(Full::Session));
        }
        if agent >= limits.open_of_agent {
            return Err(NotAsked::TooMany(Full::Agent));
        }
        if all >= limits.open_in_all {
            return Err(NotAsked::TooMany(Full::All));
        }
        Ok(())
    }
}

fn action<S: AsRef<str>>(asked: &Confirmation<S>) -> Result<About, NotAsked> {
    let owned = |text: &Option<S>| text.as_ref().map(|text| text.as_ref().into());
    let digest = match &asked.digest {
        Some(digest) => Some(Digest::parse(digest.as_ref()).ok_or(NotAsked::NoDigest)?),
        None => None,
    };
    // One action is one intended call (digest, section 19), or else one digest, or else the same words.
    let digest_text = digest.map(|digest| digest.to_string());
    let call = asked.call.as_ref().map(|call| ("call", call.as_ref()));
    let (kind, name) = call
        .or_else(|| digest_text.as_deref().map(|digest| ("digest", digest)))
        .unwrap_or(("words", asked.action.as_ref()));
    Ok(About::Action {
        key: Digest::of_all([kind.as_bytes(), b" ", name.as_bytes()]),
        accept_by_default: asked.accept_by_default,
        irreversible: asked.irreversible,
        may_accept: asked.may_accept,
        may_reject: asked.may_reject,
        tool: owned(&asked.tool),
        call: owned(&asked.call),
        digest,
    })
}

/// A default is written as text: what it means where text is no answer (digest, section 19).
fn response_of(default: &str, kinds: &Kinds) -> Option<Response> {
    let text = Response::Text(default.to_owned());
    let yes_no = match default {
        "true" => Some(Response::YesNo(true)),
        "false" => Some(Response::YesNo(false)),
        _ => None,
    };
    let mut tape = Tape::default();
    let number = tape.read(default).ok().and_then(|doc| doc.root().number().map(|number| number.as_f64()));
    let number = number.map(Response::Number);
    [Some(text), yes_no, number]
        .into_iter()
        .flatten()
        .find(|response| kinds.misfit(response).is_none() && has_canonical_form(response))
}

/// 128 bits as 32 hexadecimal digits (§6.2.1). A linter doubts digits alone; here they are chance, once in three million.
fn is_random(token: &str) -> bool {
    let tail = token.strip_prefix(ReplyToken::PREFIX).unwrap_or_default();
    tail.len() == 32 && tail.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Why a question cannot be asked.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum NotAsked {
    /// The event is none that asks.
    #[error("the event asks nothing")]
    NotAQuestion,
    /// The event breaks these rules.
    #[error("{}", messages(.0))]
    Unlawful(Vec<Finding>),
    /// Its `action_digest` is no digest.
    #[error("action_digest must be sha256: and 64 hexadecimal digits")]
    NoDigest,
    /// Its token was used before.
    #[error("{}", rule::TOKEN_NEW.sentence())]
    TokenUsed,
    /// This question about the same action is still open.
    #[error("{0} is still open; {rule}", rule = rule::ASKED_TWICE.sentence())]
    AskedTwice(ReplyToken),
    /// Too much is open already.
    #[error("too many questions {}", .0.as_str())]
    TooMany(Full),
    /// Its session is over.
    #[error("the session is over")]
    SessionOver,
}

/// Where too much is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// In the session.
    Session,
    /// Of the agent.
    Agent,
    /// In all.
    All,
}

impl Full {
    fn as_str(self) -> &'static str {
        match self {
            Self::Session => "are open in this session",
            Self::Agent => "of this agent are open",
            Self::All => "are open",
        }
    }
}

impl NotAsked {
    /// The first rule that it breaks, where it is one of the protocol's.
    pub fn rule(&self) -> Option<Rule> {
        match self {
            Self::Unlawful(findings) => findings.first().map(|finding| finding.rule),
            Self::TokenUsed => Some(rule::TOKEN_NEW),
            Self::AskedTwice(_) => Some(rule::ASKED_TWICE),
            Self::SessionOver => Some(rule::AFTER_END),
            Self::NoDigest => Some(rule::EXTENSION_BODY),
            Self::NotAQuestion | Self::TooMany(_) => None,
        }
    }
}

fn messages(findings: &[Finding]) -> String {
    findings.iter().map(Finding::message).collect::<Vec<_>>().join("; ")
}
