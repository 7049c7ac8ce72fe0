//! Questions in a recording (chapter 6). A question is resolved once, by a reply or by its default.
//! An event shows the resolution. An accepted confirmation can be spent on one call.
//!
//! ```text
//!           asked            reply, deadline, resolution, or the agent continues
//!   (none) ──────▶ open ─────────────────────────────────────────────────────▶ accepted ──▶ spent by one call
//!                                                                              refused, closed
//! ```

use super::question::{AttemptedCall, ObservedQuestion, ObservedReply, ObservedStatus, ObservedSubject};
use super::question_rules::{self, ReplyVerdict, evaluate_reply};
use super::{Clarification, Confirmation, DeadlineExtension, PendingItem, SessionEvent};
use crate::event::AgentState;
use crate::fingerprint::SeenNames;
use crate::message::{ClarificationReply, ConfirmationReply, DeadlineExtend};
use crate::rule::{self, Findings, Rule};
use seal::{Timestamp, UnixMillis};

/// The maximum number of questions with a presumed acceptance that are kept after their call.
const MAX_PRESUMED_ACTIONS: usize = 64;

#[derive(Clone, Debug, Default)]
pub(super) struct ObservedQuestions {
    list: Vec<ObservedQuestion>,
    tokens: SeenNames,
    /// The producer of the last question whose refusal was shown, and whether the person accepted only a modified action;
    /// `None` if no refusal was shown.
    last_refusal: Option<(usize, bool)>,
    /// The call ids and digests of actions whose refusal was shown.
    refused_actions: SeenNames,
}

impl ObservedQuestions {
    pub(super) fn ask_confirmation(
        &mut self,
        producer: usize,
        confirmation: &Confirmation<&str>,
        at: Option<Timestamp>,
        findings: &mut Findings,
    ) {
        let has_open_duplicate = self.list.iter().any(|question| {
            question.status == ObservedStatus::Open
                && question.producer == producer
                && matches!(&question.subject, ObservedSubject::Confirmation { action, .. } if &**action == confirmation.action)
        });
        if has_open_duplicate {
            findings.push(
                rule::DUPLICATE_QUESTION,
                "/action".to_owned(),
                "the first question is still open".to_owned(),
            );
        }
        let subject = ObservedSubject::Confirmation {
            action: confirmation.action.into(),
            accept_by_default: confirmation.accept_by_default,
            irreversible: confirmation.irreversible,
            high_risk: confirmation.high_risk,
            may_accept: confirmation.may_accept,
            may_reject: confirmation.may_reject,
            tool: confirmation.tool.map(Into::into),
            call_id: confirmation.call_id.map(Into::into),
            digest: confirmation.digest.map(Into::into),
        };
        self.ask(producer, confirmation.token, confirmation.timeout_seconds, at, subject, findings);
    }

    pub(super) fn ask_clarification(
        &mut self,
        producer: usize,
        clarification: &Clarification<&str>,
        at: Option<Timestamp>,
        findings: &mut Findings,
    ) {
        let subject = ObservedSubject::Clarification {
            question: clarification.question.into(),
            accepted: clarification.accepted_responses(),
        };
        self.ask(producer, clarification.token, clarification.timeout_seconds, at, subject, findings);
    }

    fn ask(
        &mut self,
        producer: usize,
        token: &str,
        timeout_seconds: u64,
        at: Option<Timestamp>,
        subject: ObservedSubject,
        findings: &mut Findings,
    ) {
        if !self.tokens.insert(token) {
            findings.push(rule::TOKEN_NEW, "/reply_token".to_owned(), format!("{token} was used before"));
        }
        let asked_at = at.map(|at| at.unix_millis());
        let timeout = question_rules::seconds_to_millis(timeout_seconds);
        self.list.push(ObservedQuestion {
            token: token.into(),
            producer,
            subject,
            asked_at,
            timeout_seconds,
            deadline: asked_at.map(|asked_at| asked_at.saturating_add(timeout)),
            progress_count: 0,
            status: ObservedStatus::Open,
            reply: ObservedReply::NoReply,
            is_resolution_shown: false,
            is_acted_on: false,
        });
    }

    /// Applies the default of every open question whose deadline has been reached at `now` (§6.4).
    pub(super) fn expire(&mut self, now: &Timestamp, findings: &mut Findings) {
        let now = now.unix_millis();
        for question in &mut self.list {
            if let Some(deadline) = question.deadline
                && question.status == ObservedStatus::Open
                && now >= deadline
            {
                question.resolve(question.default_status(), Some(deadline), findings);
            }
        }
    }

    pub(super) fn apply_confirmation_reply(&mut self, reply: &ConfirmationReply, findings: &mut Findings) {
        let Some(question) = self.find_answerable(reply.reply_token.as_str(), &reply.timestamp, findings)
        else {
            return;
        };
        let ObservedSubject::Confirmation { may_accept, may_reject, .. } = &question.subject else {
            question.reply = ObservedReply::Ineffective;
            let found = "this token belongs to a clarification".to_owned();
            return findings.push(rule::REPLY_TOKEN_KNOWN, "/reply_token".to_owned(), found);
        };
        let is_unrestricted = !findings.checks(rule::REPLY_ALLOWED);
        let (may_accept, may_reject) = (*may_accept || is_unrestricted, *may_reject || is_unrestricted);
        let status = match evaluate_reply(reply, may_accept, may_reject) {
            Some(ReplyVerdict::Accepted) => ObservedStatus::Accepted { by_default: false },
            Some(ReplyVerdict::Refused) => ObservedStatus::Refused { modified: false },
            Some(ReplyVerdict::Modified) => ObservedStatus::Refused { modified: true },
            None => {
                question.reply = ObservedReply::Ineffective;
                let found = format!("found {:?}", reply.decision.as_str());
                return findings.push(rule::REPLY_ALLOWED, "/decision".to_owned(), found);
            }
        };
        question.reply = ObservedReply::InTime;
        let at = reply.timestamp.unix_millis();
        if let ObservedStatus::Acted { acted_at } = question.status {
            question.apply_reply_after_call(
                acted_at,
                status == ObservedStatus::Accepted { by_default: false },
                at,
                findings,
            );
        } else {
            question.resolve(status, Some(at), findings);
        }
    }

    pub(super) fn apply_clarification_reply(&mut self, reply: &ClarificationReply, findings: &mut Findings) {
        let Some(question) = self.find_answerable(reply.reply_token.as_str(), &reply.timestamp, findings)
        else {
            return;
        };
        let ObservedSubject::Clarification { accepted, .. } = &question.subject else {
            question.reply = ObservedReply::Ineffective;
            let found = "this token belongs to a confirmation".to_owned();
            return findings.push(rule::REPLY_TOKEN_KNOWN, "/reply_token".to_owned(), found);
        };
        let found = || format!("found {:?}", reply.response);
        let broken_rule = accepted.broken_rule(&reply.response);
        // A response that breaks a rule counts as no reply, so the question stays open (§6.5.5).
        if !broken_rule.is_some_and(|rule| findings.breaks(rule, "/response".to_owned(), found())) {
            question.resolve(ObservedStatus::Closed, Some(reply.timestamp.unix_millis()), findings);
        }
    }

    /// Returns the question with this token, if a reply at that time can still have an effect.
    fn find_answerable(
        &mut self,
        token: &str,
        at: &Timestamp,
        findings: &mut Findings,
    ) -> Option<&mut ObservedQuestion> {
        let question = self.list.iter_mut().rev().find(|question| &*question.token == token);
        let is_unanswered = |status| {
            matches!(status, ObservedStatus::Open | ObservedStatus::Presumed | ObservedStatus::Acted { .. })
        };
        let Some(question) = question.filter(|question| is_unanswered(question.status)) else {
            findings.push(
                rule::REPLY_ONCE,
                "/reply_token".to_owned(),
                format!("{token} is already resolved"),
            );
            return None;
        };
        let at = at.unix_millis();
        // A late reply has no effect (§6.3.4). The default applies from the next event on.
        if question.deadline.is_some_and(|deadline| at >= deadline) {
            question.reply = ObservedReply::Ineffective;
            return None;
        }
        if question.asked_at.is_some_and(|asked_at| at <= asked_at) {
            let found = "it is not later than the question's timestamp".to_owned();
            findings.warn(rule::REPLY_DECISION_AND_TIME, "/timestamp".to_owned(), found);
        }
        Some(question)
    }

    pub(super) fn extend_deadline(&mut self, request: &DeadlineExtend) {
        let question = self.list.iter_mut().find(|question| &*question.token == request.reply_token.as_str());
        let Some(question) = question.filter(|question| question.status == ObservedStatus::Open) else {
            return;
        };
        if let (Some(asked_at), Some(deadline)) = (question.asked_at, question.deadline)
            && request.timestamp.unix_millis() < deadline
        {
            let extended = question_rules::extended_deadline(
                asked_at,
                question.timeout_seconds,
                deadline,
                request.seconds,
            );
            question.deadline = Some(extended);
        }
    }

    /// Applies an extension that an event reports, up to the maximum that a person can request.
    pub(super) fn apply_reported_extension(&mut self, extension: &DeadlineExtension<&str>) {
        let question = self.list.iter_mut().find(|question| &*question.token == extension.token);
        let Some(question) = question.filter(|question| question.status == ObservedStatus::Open) else {
            return;
        };
        if let (Some(asked_at), Some(deadline)) = (question.asked_at, question.deadline) {
            let max_deadline = question_rules::extended_deadline(
                asked_at,
                question.timeout_seconds,
                deadline,
                Some(u64::MAX),
            );
            question.deadline = Some(extension.deadline.unix_millis().clamp(deadline, max_deadline));
        }
    }

    /// Refuses all undecided questions, because the person stopped the session.
    pub(super) fn refuse_all(&mut self) {
        for question in &mut self.list {
            if matches!(question.status, ObservedStatus::Open | ObservedStatus::Presumed) {
                question.status = question.refusal_status();
            }
        }
    }

    pub(super) fn count_progress(&mut self) {
        for question in &mut self.list {
            question.progress_count = question.progress_count.saturating_add(1);
        }
    }

    /// Handles `agent.state.changed`, which shows how questions were resolved. A change out of
    /// `awaiting_input` also resolves the open questions.
    pub(super) fn apply_state_change(
        &mut self,
        producer: usize,
        left_awaiting_input: bool,
        to: &AgentState,
        event: &SessionEvent<&str>,
        findings: &mut Findings,
    ) {
        let at = event.timestamp.map(|at| at.unix_millis());
        let Some(resolution) = &event.reported_resolution else {
            if left_awaiting_input {
                for question in self
                    .list
                    .iter_mut()
                    .filter(|it| it.producer == producer && it.status == ObservedStatus::Open)
                {
                    question.resolve_without_report(to, at, findings);
                }
            }
            return self.mark_shown(producer);
        };
        let index = self.list.iter().rposition(|question| &*question.token == resolution.token);
        if let Some(index) = index {
            self.list[index].apply_reported_resolution(resolution, at, findings);
            self.mark_shown_where(|question| &*question.token == resolution.token);
        }
    }

    /// Marks the resolved questions of this producer as shown.
    pub(super) fn mark_shown(&mut self, producer: usize) {
        self.mark_shown_where(|question| question.producer == producer);
    }

    fn mark_shown_where(&mut self, matches: impl Fn(&ObservedQuestion) -> bool) {
        for question in &mut self.list {
            question.is_resolution_shown |= question.status != ObservedStatus::Open && matches(question);
        }
        let (last_refusal, refused_actions) = (&mut self.last_refusal, &mut self.refused_actions);
        self.list.retain(|question| match question.status {
            _ if !question.is_resolution_shown => true,
            ObservedStatus::Refused { modified } => {
                *last_refusal = Some((question.producer, modified));
                if let ObservedSubject::Confirmation { call_id: call, digest, .. } = &question.subject {
                    for name in [call, digest].into_iter().flatten() {
                        refused_actions.insert(name);
                    }
                }
                false
            }
            ObservedStatus::Closed => false,
            ObservedStatus::Open
            | ObservedStatus::Accepted { .. }
            | ObservedStatus::Presumed
            | ObservedStatus::Acted { .. } => true,
        });
    }

    /// Checks a tool call. An irreversible or high-risk call needs an accepted question, which it
    /// spends.
    pub(super) fn check_call(&mut self, attempted: &AttemptedCall<'_>, findings: &mut Findings) {
        if attempted.irreversible || attempted.high_risk {
            self.spend(attempted, findings);
        } else if let Some(rule) = self
            .list
            .iter()
            .find_map(|question| question.forbids(attempted))
            .or_else(|| self.find_earlier_refusal(attempted))
        {
            findings.push(rule, "/tool".to_owned(), "the person has not agreed to this action".to_owned());
            self.note_reported_call(attempted);
        }
        if let Some(question) = self.find_awaiting_action(attempted) {
            question.is_acted_on = true;
        }
        for question in &mut self.list {
            question.is_resolution_shown |=
                matches!(question.status, ObservedStatus::Accepted { .. } | ObservedStatus::Presumed);
        }
    }

    /// Returns the accepted question that a call without danger acts on, preferably one that names the call. A dangerous
    /// call spends its question.
    fn find_awaiting_action(&mut self, attempted: &AttemptedCall<'_>) -> Option<&mut ObservedQuestion> {
        if attempted.irreversible || attempted.high_risk {
            return None;
        }
        let candidates = self.list.iter_mut().filter(|it| it.awaits_action() && it.allows(attempted));
        candidates.max_by_key(|question| (question.is_bound(), question.producer == attempted.producer))
    }

    /// Returns the broken rule if exactly this call was refused, and not accepted since then.
    fn find_earlier_refusal(&self, attempted: &AttemptedCall<'_>) -> Option<Rule> {
        let contains = |name: Option<&str>| name.is_some_and(|name| self.refused_actions.contains(name));
        let is_refused = contains(attempted.call_id) || contains(attempted.digest);
        (is_refused && !self.list.iter().any(|question| question.allows(attempted)))
            .then_some(rule::NO_ACTION_AFTER_REJECT)
    }

    fn spend(&mut self, attempted: &AttemptedCall<'_>, findings: &mut Findings) {
        let pointer = || "/tool".to_owned();
        let best = self
            .list
            .iter()
            .filter(|question| question.allows(attempted))
            .max_by_key(|question| {
                let is_consistent = !(attempted.irreversible && question.declares_reversible());
                let is_by_person = question.status == ObservedStatus::Accepted { by_default: false };
                (is_consistent, is_by_person, question.producer == attempted.producer)
            })
            .map(|question| question.token.clone());
        if let Some(token) = best
            && let Some(index) = self.list.iter().position(|question| question.token == token)
        {
            let mut question = self.list.remove(index);
            if question.status == ObservedStatus::Presumed {
                let found = format!("no reply to {token} is recorded; its acceptance is presumed");
                findings.warn(rule::IRREVERSIBLE_CONSENT, pointer(), found);
                question.status = ObservedStatus::Acted { acted_at: attempted.called_at };
                self.remember_presumed(question.clone());
            }
            if attempted.irreversible && question.status == (ObservedStatus::Accepted { by_default: true }) {
                findings.push(
                    rule::IRREVERSIBLE_CONSENT,
                    pointer(),
                    "nobody answered, and a default cannot permit an irreversible action".to_owned(),
                );
            }
            if attempted.irreversible && question.declares_reversible() {
                let found = "the person was told that the action can be undone".to_owned();
                findings.push(rule::IRREVERSIBLE_CONSENT, "/irreversible".to_owned(), found);
            }
            return;
        }
        // An agent learns nothing about the questions of other agents in the session.
        let find_by_status = |matches: fn(&ObservedStatus) -> bool| {
            let own = self.list.iter().rev().filter(|question| question.producer == attempted.producer);
            own.into_iter().find(|question| question.is_confirmation() && matches(&question.status))
        };
        let open = find_by_status(|status| *status == ObservedStatus::Open);
        let refusal_modified = match find_by_status(|status| matches!(status, ObservedStatus::Refused { .. }))
            .map(|question| question.status)
        {
            Some(ObservedStatus::Refused { modified }) => Some(modified),
            _ => self
                .last_refusal
                .filter(|(producer, _)| *producer == attempted.producer)
                .map(|(_, modified)| modified),
        };
        let (rule, found) = if let Some(question) = open {
            (rule::ACTION_WAITS, format!("{} is not answered", question.token))
        } else if refusal_modified == Some(true) {
            (rule::MODIFIED_ACTION, "the person asked for a different action".to_owned())
        } else if refusal_modified.is_some() {
            (rule::NO_ACTION_AFTER_REJECT, "the action was refused".to_owned())
        } else if attempted.irreversible {
            (rule::IRREVERSIBLE_CONSENT, "nobody was asked".to_owned())
        } else {
            (rule::HIGH_RISK_CONSENT, "nobody was asked".to_owned())
        };
        findings.push(rule, pointer(), found);
        self.note_reported_call(attempted);
    }

    /// Records that a call without consent was reported, so that the missing call after the acceptance is not reported as well.
    fn note_reported_call(&mut self, attempted: &AttemptedCall<'_>) {
        for question in self.list.iter_mut().filter(|question| question.producer == attempted.producer) {
            question.is_acted_on = true;
        }
    }

    /// Keeps a question whose acceptance was presumed, because its reply may be recorded later. If
    /// there are too many such questions, removes the oldest.
    fn remember_presumed(&mut self, question: ObservedQuestion) {
        let has_acted = |question: &ObservedQuestion| matches!(question.status, ObservedStatus::Acted { .. });
        if self.list.iter().filter(|question| has_acted(question)).count() >= MAX_PRESUMED_ACTIONS
            && let Some(oldest) = self.list.iter().position(has_acted)
        {
            self.list.remove(oldest);
        }
        self.list.push(ObservedQuestion { is_resolution_shown: true, ..question });
    }

    /// Records that an invalid reply was received. If the agent then continues without a valid
    /// reply, acceptance is no longer presumed.
    pub(super) fn note_invalid_reply(&mut self, token: &str) {
        let question = self.list.iter_mut().rev().find(|question| &*question.token == token);
        if let Some(question) = question.filter(|question| question.reply == ObservedReply::NoReply) {
            question.reply = ObservedReply::Ineffective;
            if question.status == ObservedStatus::Presumed {
                question.status = question.refusal_status();
            }
        }
    }

    /// Ends the session. If it completed, resolutions that were not shown and accepted actions that no
    /// call followed are reported; an error or a cancellation resolves all open questions.
    pub(super) fn end(&mut self, is_completed: bool, findings: &mut Findings) {
        for question in self.list.drain(..).filter(|_| is_completed) {
            if question.is_resolution_shown {
                if question.awaits_action() {
                    let found = format!("{} was accepted, but no call followed", question.token);
                    findings.push(rule::ACCEPTED_ACTION, String::new(), found);
                }
                continue;
            }
            let rule = match question.status {
                ObservedStatus::Refused { .. } => rule::REJECT_SHOWN,
                _ => rule::RESOLUTION_SHOWN,
            };
            let found = match question.status {
                ObservedStatus::Open => format!("{} is still open", question.token),
                _ => format!("no event shows how {} was resolved", question.token),
            };
            findings.push(rule, String::new(), found);
        }
    }

    /// Call this before the session is cloned, so that the clone is cheap. See [`SeenNames`].
    pub(super) fn merge_recent(&mut self) {
        self.tokens.merge_recent();
        self.refused_actions.merge_recent();
    }

    pub(super) fn contains_token(&self, token: &str) -> bool {
        self.tokens.contains(token)
    }

    pub(super) fn deadline_of(&self, token: &str) -> Option<UnixMillis> {
        self.list.iter().find(|question| *question.token == *token)?.deadline
    }

    pub(super) fn any_open(&self) -> bool {
        self.list.iter().any(|question| question.status == ObservedStatus::Open)
    }

    pub(super) fn any_resolved(&self) -> bool {
        self.list.iter().any(|question| question.status != ObservedStatus::Open)
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    pub(super) fn pending_items(&self) -> Vec<PendingItem> {
        let pending_item = |question: &ObservedQuestion| match question.status {
            ObservedStatus::Open => Some(PendingItem::Answer {
                token: question.token.clone(),
                text: match &question.subject {
                    ObservedSubject::Confirmation { action, .. } => action.clone(),
                    ObservedSubject::Clarification { question, .. } => question.clone(),
                },
                deadline: question.deadline,
            }),
            _ if question.is_resolution_shown => None,
            _ => Some(PendingItem::ResolutionNotice { token: question.token.clone() }),
        };
        self.list.iter().filter_map(pending_item).collect()
    }
}
