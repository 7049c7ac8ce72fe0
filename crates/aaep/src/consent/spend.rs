//! Spending: an accepted question covers one call, of the action that was asked about, in its session.

use std::hash::BuildHasher;

use seal::Digest;
use thiserror::Error;

use crate::id::{ReplyToken, SessionId};
use crate::rule::{self, Rule};
use crate::session::terms::Named;

use super::{Action, Decided, NotAnAction, Outcome, Question, Questions, Spent, Status};

/// A call that needs consent: irreversible, or of high risk.
#[derive(Clone, Copy, Debug)]
pub struct Call<'c> {
    /// Its session.
    pub session: &'c SessionId,
    /// The question that it says covers it; if it says none, one that does is found.
    pub token: Option<&'c ReplyToken>,
    /// The tool.
    pub tool: &'c str,
    /// Its `tool_call_id`.
    pub call: Option<&'c str>,
    /// Its arguments, as JSON; needed where the question is bound to them.
    pub arguments: Option<&'c str>,
    /// Whether it can never be undone.
    pub irreversible: bool,
}

impl<H: BuildHasher> Questions<H> {
    /// Lets an accepted question cover this call, and no other after it. What is bound to an action covers that action
    /// only; what is not covers any one call of its session, as in plain AAEP.
    pub fn spend(&mut self, call: &Call<'_>) -> Result<Decided, NotGranted> {
        let digest = match call.arguments {
            Some(arguments) => {
                Some(Action::new(call.tool, arguments).map_err(NotGranted::NotAnAction)?.digest())
            }
            None => None,
        };
        if self.is_ending(call.session) {
            return Err(NotGranted::SessionOver);
        }
        let question = match call.token {
            Some(token) => self.named(token, call, digest)?,
            None => self.fitting(call, digest)?,
        };
        let mut question = question.clone();
        question.status = Status::Spent;
        let spent = Spent { token: question.token.clone(), session: question.session.clone(), digest };
        Ok(self.hold(Decided::one(question, Outcome::Spent(spent))))
    }

    /// The accepted question that covers this call, if one does. It is not spent: what could do little harm needs no consent,
    /// and may be done on one all the same.
    pub fn covering(&self, call: &Call<'_>) -> Option<&ReplyToken> {
        let digest = call.arguments.and_then(|arguments| Action::new(call.tool, arguments).ok());
        let digest = digest.map(|action| action.digest());
        let found = match call.token {
            Some(token) => self.named(token, call, digest),
            None => self.fitting(call, digest),
        };
        found.ok().map(|question| &question.token)
    }

    fn named(
        &self,
        token: &ReplyToken,
        call: &Call<'_>,
        digest: Option<Digest>,
    ) -> Result<&Question, NotGranted> {
        let (fingerprint, question) = self.find(token);
        match question {
            None if self.is_gone(fingerprint) => Err(NotGranted::Gone),
            None => Err(NotGranted::NotAsked),
            Some(question) => self.grants(question, call, digest).map(|()| question),
        }
    }

    /// Of those that cover the call, the one that says most about it, and by a person's word rather than by silence.
    fn fitting(&self, call: &Call<'_>, digest: Option<Digest>) -> Result<&Question, NotGranted> {
        let mut best: Option<&Question> = None;
        let mut refusal = NotGranted::NotAsked;
        let rank = |question: &Question| {
            (question.status == Status::Accepted { silent: false }, question.precision())
        };
        for question in self.of_session(call.session).filter(|question| question.is_confirmation()) {
            match self.grants(question, call, digest) {
                Ok(()) if best.is_none_or(|best| rank(best) < rank(question)) => best = Some(question),
                Ok(()) => {}
                Err(why) => refusal = why,
            }
        }
        best.ok_or(refusal)
    }

    fn grants(&self, question: &Question, call: &Call<'_>, digest: Option<Digest>) -> Result<(), NotGranted> {
        if question.session != *call.session {
            return Err(NotGranted::OtherSession);
        }
        if !question.is_confirmation() {
            return Err(NotGranted::NotAsked);
        }
        let silent = match question.status {
            Status::Open => return Err(NotGranted::Undecided),
            Status::Refused { modified } => return Err(NotGranted::Refused { modified }),
            Status::Spent => return Err(NotGranted::Spent),
            Status::Answered => return Err(NotGranted::NotAsked),
            Status::Accepted { silent } => silent,
        };
        if self.is_pending(self.fingerprint(question.token.as_str())) {
            return Err(NotGranted::Spent);
        }
        let digest = digest.map(|digest| digest.to_string());
        let made = Named { tool: Some(call.tool), call: call.call, digest: digest.as_deref() };
        if !question.covers(&made) {
            return Err(NotGranted::OtherAction);
        }
        if call.irreversible && silent {
            return Err(NotGranted::Silence);
        }
        if call.irreversible && question.says_reversible() {
            return Err(NotGranted::ToldReversible);
        }
        Ok(())
    }
}

/// Why no question covers a call.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum NotGranted {
    /// The arguments are none that an answer can be bound to.
    #[error("no answer can be bound to these arguments: {0}")]
    NotAnAction(#[source] NotAnAction),
    /// Nobody was asked.
    #[error("nobody was asked")]
    NotAsked,
    /// The question is of another session.
    #[error("the question is of another session")]
    OtherSession,
    /// The question is not answered yet.
    #[error("the question is not answered")]
    Undecided,
    /// The person refused.
    #[error("{}", if *modified { "the person asked for something else" } else { "the person has refused" })]
    Refused {
        /// They asked for something else instead (§6.3.2).
        modified: bool,
    },
    /// The question was about another action.
    #[error("the person was asked about another action")]
    OtherAction,
    /// A call has been made on it already.
    #[error("a call has been made on this answer already")]
    Spent,
    /// Nobody said yes: the default did, and that is not enough for what cannot be undone (C-B2).
    #[error("silence is no reply")]
    Silence,
    /// The person was told that it can be undone.
    #[error("the person was told that it can be undone")]
    ToldReversible,
    /// The session is over.
    #[error("the session is over")]
    SessionOver,
    /// The question was resolved long ago, or its session is over.
    #[error("the question is of no more use")]
    Gone,
}

impl NotGranted {
    /// The rule that making the call all the same would break.
    pub fn rule(&self, irreversible: bool) -> Rule {
        match self {
            Self::Undecided => rule::BLOCKED,
            Self::Refused { modified: true } => rule::MODIFIED_ACTION,
            Self::Refused { modified: false } => rule::AFTER_REJECT,
            Self::SessionOver => rule::AFTER_END,
            _ if irreversible => rule::IRREVERSIBLE_CONSENT,
            _ => rule::HIGH_RISK_CONSENT,
        }
    }
}
