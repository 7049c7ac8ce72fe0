//! Spending: an accepted question covers one call of the confirmed action in its session.

use std::hash::BuildHasher;

use seal::{Digest, UnixMillis};
use thiserror::Error;

use crate::id::{ReplyToken, SessionId};
use crate::rule::{self, Rule};
use crate::session::question_rules::CallIdentity;

use super::{
    ActionError, BoundAction, ConsentOutcome, ConsentSpent, Question, QuestionRegistry, QuestionStatus,
    StagedChange,
};

/// A tool call. It needs consent if it is irreversible or of high risk.
#[derive(Clone, Copy, Debug)]
pub struct GuardedCall<'c> {
    /// The session of the call.
    pub session_id: &'c SessionId,
    /// The producer of the call. Only an answer to its own question covers it, because the person
    /// agreed that this producer acts (§A.9).
    pub agent_id: &'c str,
    /// The question that covers the call. If absent, the registry searches for it.
    pub token: Option<&'c ReplyToken>,
    /// The tool's name.
    pub tool: &'c str,
    /// The `tool_call_id`.
    pub call_id: Option<&'c str>,
    /// The arguments as JSON; required if the call needs consent.
    pub arguments: Option<&'c str>,
    /// Whether the call cannot be undone.
    pub irreversible: bool,
    /// Whether the call has a high risk.
    pub high_risk: bool,
}

impl GuardedCall<'_> {
    /// Returns whether the call needs a person's consent.
    pub fn needs_consent(&self) -> bool {
        self.irreversible || self.high_risk
    }
}

impl<H: BuildHasher> QuestionRegistry<H> {
    /// Spends an accepted question on this call. Afterwards the question covers no other call.
    ///
    /// A call that needs consent must be exactly the action that the question is bound to. A person
    /// must have accepted it within
    /// [`max_consent_age_ms`](super::ConsentLimits::max_consent_age_ms). If the call is irreversible
    /// or of high risk, the question must have said so.
    pub fn spend(&mut self, call: &GuardedCall<'_>, now: UnixMillis) -> Result<StagedChange, SpendError> {
        let digest = match call.arguments {
            Some(arguments) => {
                Some(BoundAction::new(call.tool, arguments).map_err(SpendError::InvalidAction)?.digest())
            }
            None => None,
        };
        if self.is_ending(call.session_id) {
            return Err(SpendError::SessionEnded);
        }
        let question = match call.token {
            Some(token) => self.find_by_token(token, call, digest, now)?,
            None => self.find_best_match(call, digest, now)?,
        };
        let mut question = question.clone();
        question.status = QuestionStatus::Spent;
        let spent =
            ConsentSpent { token: question.token.clone(), session_id: question.session_id.clone(), digest };
        Ok(self.stage(StagedChange::single(question, ConsentOutcome::ConsentSpent(spent))))
    }

    fn find_by_token(
        &self,
        token: &ReplyToken,
        call: &GuardedCall<'_>,
        digest: Option<Digest>,
        now: UnixMillis,
    ) -> Result<&Question, SpendError> {
        let (fingerprint, question) = self.find(token);
        match question {
            None if self.is_retired(fingerprint) => Err(SpendError::Expired),
            None => Err(SpendError::NotAsked),
            Some(question) => self.check_grant(question, call, digest, now).map(|()| question),
        }
    }

    /// Finds the best question for the call. A question that a person accepted is preferred to a
    /// question that was accepted by default, then the most specific question is preferred.
    fn find_best_match(
        &self,
        call: &GuardedCall<'_>,
        digest: Option<Digest>,
        now: UnixMillis,
    ) -> Result<&Question, SpendError> {
        let mut best: Option<&Question> = None;
        let mut last_error = SpendError::NotAsked;
        let rank = |question: &Question| {
            (question.status == QuestionStatus::Accepted { by_default: false }, question.specificity())
        };
        for question in self.session_questions(call.session_id).filter(|question| question.is_confirmation())
        {
            match self.check_grant(question, call, digest, now) {
                Ok(()) if best.is_none_or(|best| rank(best) < rank(question)) => best = Some(question),
                Ok(()) => {}
                // Another producer's question matters only if this producer asked none.
                Err(SpendError::WrongProducer) if last_error != SpendError::NotAsked => {}
                Err(error) => last_error = error,
            }
        }
        best.ok_or(last_error)
    }

    fn check_grant(
        &self,
        question: &Question,
        call: &GuardedCall<'_>,
        digest: Option<Digest>,
        now: UnixMillis,
    ) -> Result<(), SpendError> {
        if question.session_id != *call.session_id {
            return Err(SpendError::WrongSession);
        }
        if *question.agent_id != *call.agent_id {
            return Err(SpendError::WrongProducer);
        }
        if !question.is_confirmation() {
            return Err(SpendError::NotAsked);
        }
        let by_default = match question.status {
            QuestionStatus::Open => return Err(SpendError::Undecided),
            QuestionStatus::Refused { modified } => return Err(SpendError::Refused { modified }),
            QuestionStatus::Spent => return Err(SpendError::AlreadySpent),
            QuestionStatus::Closed => return Err(SpendError::NotAsked),
            QuestionStatus::Accepted { by_default } => by_default,
        };
        if self.has_staged_change(self.fingerprint(question.token.as_str())) {
            return Err(SpendError::AlreadySpent);
        }
        let digest = digest.map(|digest| digest.to_string());
        let actual_call =
            CallIdentity { tool: Some(call.tool), call_id: call.call_id, digest: digest.as_deref() };
        if !question.covers(&actual_call) {
            return Err(SpendError::WrongAction);
        }
        if !call.needs_consent() {
            return Ok(());
        }
        // The clock may have gone back, so the difference counts in both directions.
        let is_recent = question
            .resolved_at
            .is_some_and(|at| now.get().abs_diff(at.get()) <= self.limits.max_consent_age_ms.unsigned_abs());
        if by_default {
            Err(SpendError::DefaultOnly)
        } else if question.action_digest().is_none() {
            Err(SpendError::Unbound)
        } else if call.irreversible && !question.declares_irreversible() {
            Err(SpendError::IrreversibilityNotDeclared)
        } else if call.high_risk && !question.declares_high_risk() {
            Err(SpendError::RiskNotDeclared)
        } else if !is_recent {
            Err(SpendError::Expired)
        } else {
            Ok(())
        }
    }
}

/// Why no question covers a call.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SpendError {
    /// The arguments have no digest.
    #[error("cannot compute a digest of the arguments: {0}")]
    InvalidAction(#[source] ActionError),
    /// No question was asked about this call.
    #[error("nobody was asked")]
    NotAsked,
    /// The question belongs to another session.
    #[error("the question belongs to another session")]
    WrongSession,
    /// The question was asked by another producer of the session. The error message is the same as for [`Self::NotAsked`], because an agent
    /// learns nothing about the questions of other agents.
    #[error("nobody was asked")]
    WrongProducer,
    /// The question is still open.
    #[error("the question is not answered yet")]
    Undecided,
    /// The question was refused, by a person or by default.
    #[error("{}", if *modified { "the person asked for a different action" } else { "the action was refused" })]
    Refused {
        /// Whether the person accepted only a modified action (§6.3.2).
        modified: bool,
    },
    /// The question was about another action.
    #[error("the person was asked about another action")]
    WrongAction,
    /// The question was already used for a call.
    #[error("this answer was already used for a call")]
    AlreadySpent,
    /// The question was accepted only by default, which is not enough for an irreversible or
    /// high-risk action (C-B2).
    #[error("nobody answered, and a default cannot permit an irreversible or high-risk action")]
    DefaultOnly,
    /// The question is not bound to a tool and arguments.
    #[error(
        "the question named no tool and arguments, so its answer permits no irreversible or high-risk call"
    )]
    Unbound,
    /// The question did not say that the action is irreversible.
    #[error("the person was not told that the action cannot be undone")]
    IrreversibilityNotDeclared,
    /// The question did not say that the risk is high.
    #[error("the person was not told that the risk is high")]
    RiskNotDeclared,
    /// The session has ended.
    #[error("the session has ended")]
    SessionEnded,
    /// The question was answered too long ago, or the registry has already removed it.
    #[error("the answer has expired; ask again")]
    Expired,
}

impl SpendError {
    /// Returns the rule that the call would break.
    pub fn rule(&self, irreversible: bool) -> Rule {
        match self {
            Self::Undecided => rule::ACTION_WAITS,
            Self::Refused { modified: true } => rule::MODIFIED_ACTION,
            Self::Refused { modified: false } => rule::NO_ACTION_AFTER_REJECT,
            Self::SessionEnded => rule::NOTHING_AFTER_END,
            _ if irreversible => rule::IRREVERSIBLE_CONSENT,
            _ => rule::HIGH_RISK_CONSENT,
        }
    }
}
