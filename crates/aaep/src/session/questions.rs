//! Questions (chapter 6): asked, answered once or defaulted, shown to all, and what may be done after them.
//!
//! ```text
//!           asked            reply, deadline, resolution, or the agent going on
//!   (none) ──────▶ open ─────────────────────────────────────────────────────▶ accepted ──▶ spent by one call
//!                                                                              refused, answered
//! ```

use super::question::{About, Heard, Question, Status, Wish};
use super::terms::{self, Ruling, ruling};
use super::{Clarification, Confirmation, MoreTime, Step, Waiting};
use crate::event::State;
use crate::fingerprint::Seen;
use crate::message::{ClarificationReply, ConfirmationReply, DeadlineExtend};
use crate::rule::{self, Findings, Rule};
use seal::{Timestamp, UnixMillis};

/// So many questions whose action was taken without a recorded reply are remembered in case it still comes.
const MOST_ACTED: usize = 64;

#[derive(Clone, Debug, Default)]
pub(super) struct Questions {
    list: Vec<Question>,
    tokens: Seen,
    /// The last refusal that has been shown: `true` if it was an acceptance of something else.
    refused: Option<bool>,
    /// The calls and digests of actions whose refusal has been shown.
    refused_actions: Seen,
}

impl Questions {
    pub(super) fn confirmation(
        &mut self,
        agent: usize,
        asked: &Confirmation<&str>,
        at: Option<Timestamp>,
        findings: &mut Findings,
    ) {
        let open_twin = self.list.iter().any(|question| {
            question.status == Status::Open
                && question.agent == agent
                && matches!(&question.about, About::Action { action, .. } if &**action == asked.action)
        });
        if open_twin {
            findings.push(
                rule::ASKED_TWICE,
                "/action".to_owned(),
                "its first question is still open".to_owned(),
            );
        }
        let about = About::Action {
            action: asked.action.into(),
            accept_by_default: asked.accept_by_default,
            irreversible: asked.irreversible,
            may_accept: asked.may_accept,
            may_reject: asked.may_reject,
            tool: asked.tool.map(Into::into),
            call: asked.call.map(Into::into),
            digest: asked.digest.map(Into::into),
        };
        self.ask(agent, asked.token, asked.timeout_seconds, at, about, findings);
    }

    pub(super) fn clarification(
        &mut self,
        agent: usize,
        asked: &Clarification<&str>,
        at: Option<Timestamp>,
        findings: &mut Findings,
    ) {
        let about = About::Meaning { question: asked.question.into(), kinds: asked.kinds() };
        self.ask(agent, asked.token, asked.timeout_seconds, at, about, findings);
    }

    fn ask(
        &mut self,
        agent: usize,
        token: &str,
        timeout_seconds: u64,
        at: Option<Timestamp>,
        about: About,
        findings: &mut Findings,
    ) {
        if !self.tokens.insert(token) {
            findings.push(rule::TOKEN_NEW, "/reply_token".to_owned(), format!("{token} was used before"));
        }
        let asked_at = at.map(|at| at.unix_millis());
        let timeout = terms::millis(timeout_seconds);
        self.list.push(Question {
            token: token.into(),
            agent,
            about,
            asked_at,
            timeout_seconds,
            deadline: asked_at.map(|asked| asked.saturating_add(timeout)),
            progress: 0,
            status: Status::Open,
            heard: Heard::Nothing,
            shown: false,
        });
    }

    /// Time has come to `now`: what is over takes its default (§6.4).
    pub(super) fn expire(&mut self, now: &Timestamp, findings: &mut Findings) {
        let now = now.unix_millis();
        for question in &mut self.list {
            if let Some(deadline) = question.deadline
                && question.status == Status::Open
                && now >= deadline
            {
                question.resolve(question.default(), Some(deadline), findings);
            }
        }
    }

    pub(super) fn reply(&mut self, reply: &ConfirmationReply, findings: &mut Findings) {
        let Some(question) = self.answerable(reply.reply_token.as_str(), &reply.timestamp, findings) else {
            return;
        };
        let About::Action { may_accept, may_reject, .. } = &question.about else {
            question.heard = Heard::Void;
            let found = "this token is a clarification's".to_owned();
            return findings.push(rule::REPLY_TOKEN_KNOWN, "/reply_token".to_owned(), found);
        };
        let status = match ruling(reply, *may_accept, *may_reject) {
            Some(Ruling::Accepted) => Status::Accepted { silent: false },
            Some(Ruling::Refused) => Status::Refused { modified: false },
            Some(Ruling::Modified) => Status::Refused { modified: true },
            None => {
                question.heard = Heard::Void;
                let found = format!("found {:?}", reply.decision.as_str());
                return findings.push(rule::REPLY_ALLOWED, "/decision".to_owned(), found);
            }
        };
        question.heard = Heard::InTime;
        let at = reply.timestamp.unix_millis();
        if let Status::Acted { millis } = question.status {
            question.replied_after(millis, status == Status::Accepted { silent: false }, at, findings);
        } else {
            question.resolve(status, Some(at), findings);
        }
    }

    pub(super) fn answer(&mut self, reply: &ClarificationReply, findings: &mut Findings) {
        let Some(question) = self.answerable(reply.reply_token.as_str(), &reply.timestamp, findings) else {
            return;
        };
        let About::Meaning { kinds, .. } = &question.about else {
            question.heard = Heard::Void;
            let found = "this token is a confirmation's".to_owned();
            return findings.push(rule::REPLY_TOKEN_KNOWN, "/reply_token".to_owned(), found);
        };
        match kinds.misfit(&reply.response) {
            // Counts as no reply: the question stays open (§6.5.5).
            Some(rule) => findings.push(rule, "/response".to_owned(), format!("found {:?}", reply.response)),
            None => question.resolve(Status::Answered, Some(reply.timestamp.unix_millis()), findings),
        }
    }

    /// The question of a token, if a reply at that time can still count.
    fn answerable(&mut self, token: &str, at: &Timestamp, findings: &mut Findings) -> Option<&mut Question> {
        let question = self.list.iter_mut().rev().find(|question| &*question.token == token);
        let unanswered = |status| matches!(status, Status::Open | Status::Presumed | Status::Acted { .. });
        let Some(question) = question.filter(|question| unanswered(question.status)) else {
            findings.push(
                rule::REPLY_ONCE,
                "/reply_token".to_owned(),
                format!("{token} is resolved already"),
            );
            return None;
        };
        let at = at.unix_millis();
        // Too late has no effect (§6.3.4); the default holds from the next event on.
        if question.deadline.is_some_and(|deadline| at >= deadline) {
            question.heard = Heard::Void;
            return None;
        }
        if question.asked_at.is_some_and(|asked| at <= asked) {
            let found = "it is not after the question's own".to_owned();
            findings.warn(rule::REPLY_TIME, "/timestamp".to_owned(), found);
        }
        Some(question)
    }

    pub(super) fn extend(&mut self, wish: &DeadlineExtend) {
        let question = self.list.iter_mut().find(|question| &*question.token == wish.reply_token.as_str());
        let Some(question) = question.filter(|question| question.status == Status::Open) else { return };
        if let (Some(asked), Some(deadline)) = (question.asked_at, question.deadline)
            && wish.timestamp.unix_millis() < deadline
        {
            let later = terms::extended(asked, question.timeout_seconds, deadline, wish.seconds);
            question.deadline = Some(later);
        }
    }

    /// An event tells that a question can be answered for longer. It is believed as far as a person can ask for it.
    pub(super) fn has_more_time(&mut self, told: &MoreTime<&str>) {
        let question = self.list.iter_mut().find(|question| &*question.token == told.token);
        let Some(question) = question.filter(|question| question.status == Status::Open) else { return };
        if let (Some(asked), Some(deadline)) = (question.asked_at, question.deadline) {
            let most = terms::extended(asked, question.timeout_seconds, deadline, Some(u64::MAX));
            question.deadline = Some(told.deadline.unix_millis().clamp(deadline, most));
        }
    }

    /// The person stopped the session: what is undecided is refused.
    pub(super) fn refuse_all(&mut self) {
        for question in &mut self.list {
            if matches!(question.status, Status::Open | Status::Presumed) {
                question.status = question.refusal();
            }
        }
    }

    pub(super) fn progress(&mut self) {
        for question in &mut self.list {
            question.progress = question.progress.saturating_add(1);
        }
    }

    /// `agent.state.changed`: it shows what is resolved, and by leaving `awaiting_input` it resolves what is not.
    pub(super) fn state_changed(
        &mut self,
        agent: usize,
        left: bool,
        to: &State,
        step: &Step<&str>,
        findings: &mut Findings,
    ) {
        let at = step.at.map(|at| at.unix_millis());
        let Some(resolution) = &step.resolution else {
            if left {
                for question in
                    self.list.iter_mut().filter(|it| it.agent == agent && it.status == Status::Open)
                {
                    question.passed_over(to, at, findings);
                }
            }
            return self.show(agent);
        };
        let place = self.list.iter().rposition(|question| &*question.token == resolution.token);
        if let Some(place) = place {
            self.list[place].resolved_by(resolution, at, findings);
            self.show_where(|question| &*question.token == resolution.token);
        }
    }

    /// An event shows that this producer has gone on.
    pub(super) fn show(&mut self, agent: usize) {
        self.show_where(|question| question.agent == agent);
    }

    fn show_where(&mut self, which: impl Fn(&Question) -> bool) {
        for question in &mut self.list {
            question.shown |= question.status != Status::Open && which(question);
        }
        let (refused, actions) = (&mut self.refused, &mut self.refused_actions);
        self.list.retain(|question| match question.status {
            _ if !question.shown => true,
            Status::Refused { modified } => {
                *refused = Some(modified);
                if let About::Action { call, digest, .. } = &question.about {
                    for name in [call, digest].into_iter().flatten() {
                        actions.insert(name);
                    }
                }
                false
            }
            Status::Answered => false,
            Status::Open | Status::Accepted { .. } | Status::Presumed | Status::Acted { .. } => true,
        });
    }

    /// A tool is about to run: what is irreversible or of high risk needs, and spends, an accepted question.
    pub(super) fn act(&mut self, wish: &Wish<'_>, findings: &mut Findings) {
        if wish.irreversible || wish.high_risk {
            self.spend(wish, findings);
        } else if let Some(rule) =
            self.list.iter().find_map(|question| question.forbids(wish)).or_else(|| self.refused_before(wish))
        {
            findings.push(rule, "/tool".to_owned(), "the person has not agreed to it".to_owned());
        }
        for question in &mut self.list {
            question.shown |= matches!(question.status, Status::Accepted { .. } | Status::Presumed);
        }
    }

    /// Whether this very call was refused, and nobody has agreed to it since.
    fn refused_before(&self, wish: &Wish<'_>) -> Option<Rule> {
        let named = |name: Option<&str>| name.is_some_and(|name| self.refused_actions.contains(name));
        let refused = named(wish.call) || named(wish.digest);
        (refused && !self.list.iter().any(|question| question.allows(wish))).then_some(rule::AFTER_REJECT)
    }

    fn spend(&mut self, wish: &Wish<'_>, findings: &mut Findings) {
        let pointer = || "/tool".to_owned();
        let best = self
            .list
            .iter()
            .filter(|question| question.allows(wish))
            .max_by_key(|question| {
                let true_to_it = !(wish.irreversible && question.says_reversible());
                let said = question.status == Status::Accepted { silent: false };
                (true_to_it, said, question.agent == wish.agent)
            })
            .map(|question| question.token.clone());
        if let Some(token) = best
            && let Some(place) = self.list.iter().position(|question| question.token == token)
        {
            let mut question = self.list.remove(place);
            if question.status == Status::Presumed {
                let found = format!("no reply to {token} is recorded; going on is taken as accepted");
                findings.warn(rule::IRREVERSIBLE_CONSENT, pointer(), found);
                question.status = Status::Acted { millis: wish.millis };
                self.acted(question.clone());
            }
            if wish.irreversible && question.status == (Status::Accepted { silent: true }) {
                findings.push(rule::IRREVERSIBLE_CONSENT, pointer(), "silence is no reply".to_owned());
            }
            if wish.irreversible && question.says_reversible() {
                let found = "the person was told that it can be undone".to_owned();
                findings.push(rule::IRREVERSIBLE_CONSENT, "/irreversible".to_owned(), found);
            }
            return;
        }
        let status = |status: fn(&Status) -> bool| {
            self.list.iter().rev().find(|question| question.is_confirmation() && status(&question.status))
        };
        let open = status(|status| *status == Status::Open);
        let refused =
            match status(|status| matches!(status, Status::Refused { .. })).map(|question| question.status) {
                Some(Status::Refused { modified }) => Some(modified),
                _ => self.refused,
            };
        let (rule, found) = if let Some(question) = open {
            (rule::BLOCKED, format!("{} is not answered", question.token))
        } else if refused == Some(true) {
            (rule::MODIFIED_ACTION, "the person asked for something else".to_owned())
        } else if refused.is_some() {
            (rule::AFTER_REJECT, "the person has refused".to_owned())
        } else if wish.irreversible {
            (rule::IRREVERSIBLE_CONSENT, "nobody was asked".to_owned())
        } else {
            (rule::HIGH_RISK_CONSENT, "nobody was asked".to_owned())
        };
        findings.push(rule, pointer(), found);
    }

    /// A question whose action was taken on a presumption is kept for a while: its reply may still be recorded.
    fn acted(&mut self, question: Question) {
        let is_acted = |question: &Question| matches!(question.status, Status::Acted { .. });
        if self.list.iter().filter(|question| is_acted(question)).count() >= MOST_ACTED
            && let Some(oldest) = self.list.iter().position(is_acted)
        {
            self.list.remove(oldest);
        }
        self.list.push(Question { shown: true, ..question });
    }

    /// A reply to a question came and is without effect: going on without another one is no acceptance.
    pub(super) fn void_reply(&mut self, token: &str) {
        let question = self.list.iter_mut().rev().find(|question| &*question.token == token);
        if let Some(question) = question.filter(|question| question.heard == Heard::Nothing) {
            question.heard = Heard::Void;
            if question.status == Status::Presumed {
                question.status = question.refusal();
            }
        }
    }

    /// The session ends: `well`, or by a failure or a stop that resolves what is open.
    pub(super) fn end(&mut self, well: bool, findings: &mut Findings) {
        for question in self.list.drain(..).filter(|question| well && !question.shown) {
            let rule = match question.status {
                Status::Refused { .. } => rule::REJECT_SHOWN,
                _ => rule::RESOLUTION_SHOWN,
            };
            let found = match question.status {
                Status::Open => format!("{} is still open", question.token),
                _ => format!("nothing shows how {} was resolved", question.token),
            };
            findings.push(rule, String::new(), found);
        }
    }

    /// Before a copy is made: see [`Seen`].
    pub(super) fn settle(&mut self) {
        self.tokens.settle();
        self.refused_actions.settle();
    }

    pub(super) fn knows(&self, token: &str) -> bool {
        self.tokens.contains(token)
    }

    pub(super) fn deadline_of(&self, token: &str) -> Option<UnixMillis> {
        self.list.iter().find(|question| *question.token == *token)?.deadline
    }

    pub(super) fn any_open(&self) -> bool {
        self.list.iter().any(|question| question.status == Status::Open)
    }

    pub(super) fn any_resolved(&self) -> bool {
        self.list.iter().any(|question| question.status != Status::Open)
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    pub(super) fn waiting(&self) -> Vec<Waiting> {
        let what = |question: &Question| match question.status {
            Status::Open => Some(Waiting::Answer {
                token: question.token.clone(),
                about: match &question.about {
                    About::Action { action, .. } => action.clone(),
                    About::Meaning { question, .. } => question.clone(),
                },
                deadline: question.deadline,
            }),
            _ if question.shown => None,
            _ => Some(Waiting::FollowUp { token: question.token.clone() }),
        };
        self.list.iter().filter_map(what).collect()
    }
}
