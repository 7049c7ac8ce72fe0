//! Changes that no reply causes: deadlines, subscriptions that open and close, and cancellation by the
//! agent.

use std::hash::BuildHasher;

use seal::UnixMillis;

use crate::id::{ReplyToken, SessionId, SubscriptionId};

use super::{ConsentOutcome, IgnoreReason, Question, QuestionRegistry, Reminder, ResolvedBy, StagedChange};

impl<H: BuildHasher> QuestionRegistry<H> {
    /// Handles everything that is due at `now`. Questions that expired, or that nobody can answer
    /// any more, get their default. People with little time left are reminded. Call this method at
    /// [`next_deadline`](Self::next_deadline). Calling it later or twice is harmless.
    pub fn handle_deadlines(&mut self, now: UnixMillis) -> StagedChange {
        while let Some(expired) = self.subscriptions.next_expired(now) {
            self.close(&expired);
        }
        let mut change = StagedChange::default();
        for question in self.open_questions() {
            self.handle_due_question(question, now, &mut change);
        }
        self.stage(change)
    }

    fn handle_due_question(&self, question: &Question, now: UnixMillis, change: &mut StagedChange) {
        let resolved_by = if now >= question.deadline {
            Some(ResolvedBy::Timeout)
        } else if !self.subscriptions.can_answer(question)
            && question.grace_until.is_none_or(|until| now >= until)
        {
            Some(ResolvedBy::Closure)
        } else {
            None
        };
        if let Some(by) = resolved_by {
            change.push_resolved(question.clone().resolve(question.default_answer(), by, now));
        } else if let Some(threshold) = question.due_reminder(now) {
            change.outcomes.push(ConsentOutcome::Reminder(Reminder {
                token: question.token.clone(),
                session_id: question.session_id.clone(),
                threshold,
                remaining_ms: question.deadline.millis_since(now),
            }));
            change.questions.push(without_expired_grace(question, now).with_reminder_sent(threshold));
        } else if question.grace_until.is_some_and(|until| now >= until) {
            change.questions.push(without_expired_grace(question, now));
        }
    }

    /// Opens a subscription of a principal, or resumes a lost subscription. From now on, the subscription
    /// can receive questions. Returns false if it belongs to another principal or was closed
    /// before.
    pub fn subscription_opened(&mut self, id: &SubscriptionId, principal: &str) -> bool {
        !self.is_retired(self.fingerprint(id.as_str())) && self.subscriptions.open(id, principal)
    }

    /// Marks a subscription as disconnected. It may resume within `window_ms` milliseconds (C-C17);
    /// if that is 0, it is closed immediately. A question whose default is accept is resolved now, without
    /// waiting for the subscription to resume.
    pub fn subscription_lost(
        &mut self,
        id: &SubscriptionId,
        now: UnixMillis,
        window_ms: i64,
    ) -> StagedChange {
        if window_ms <= 0 {
            return self.subscription_closed(id, now);
        }
        self.subscriptions.mark_disconnected(id, now.saturating_add(window_ms));
        self.handle_deadlines(now)
    }

    /// Resumes a lost subscription. Returns whether it is still open.
    pub fn subscription_resumed(&mut self, id: &SubscriptionId, now: UnixMillis) -> bool {
        self.subscriptions.principal(id, now).is_some() && self.subscriptions.resume(id)
    }

    /// Closes a subscription. Questions that nobody else can answer get their default now (§5.8.2,
    /// C-C16, C-C24).
    pub fn subscription_closed(&mut self, id: &SubscriptionId, now: UnixMillis) -> StagedChange {
        self.close(id);
        self.handle_deadlines(now)
    }

    fn close(&mut self, id: &SubscriptionId) {
        self.subscriptions.close(id);
        self.retire(self.fingerprint(id.as_str()));
    }

    /// Allows a late joiner that received an open question to answer it as well.
    pub fn add_replier(
        &mut self,
        token: &ReplyToken,
        subscription: &SubscriptionId,
        now: UnixMillis,
    ) -> Result<StagedChange, IgnoreReason> {
        if self.subscriptions.principal(subscription, now).is_none() {
            return Err(IgnoreReason::SubscriptionNotOpen);
        }
        let mut question = self.open_question(token, now)?.clone();
        question.replier_ids.retain(|id| self.subscriptions.contains(id));
        if let Err(index) = question.replier_ids.binary_search(subscription) {
            question.replier_ids.insert(index, subscription.clone());
        }
        question.grace_until = None;
        Ok(self.stage(StagedChange { questions: vec![question], ..StagedChange::default() }))
    }

    /// Cancels a question on behalf of its agent. It is resolved as rejected, and its token can no
    /// longer be used (§6.8).
    pub fn cancel_question(
        &mut self,
        token: &ReplyToken,
        now: UnixMillis,
    ) -> Result<StagedChange, IgnoreReason> {
        let question = self.open_question(token, now)?;
        let mut change = StagedChange::default();
        change.push_resolved(question.clone().resolve(question.refusal_answer(), ResolvedBy::Cancelled, now));
        Ok(self.stage(change))
    }

    /// Resolves all open questions as rejected, even those whose deadline has passed. A hub calls this if it has
    /// lost journal entries, because a question that looks open may have been answered.
    pub fn refuse_open_questions(&mut self, now: UnixMillis) -> StagedChange {
        let mut change = StagedChange::default();
        for question in self.open_questions() {
            let refusal = question.clone().resolve(question.refusal_answer(), ResolvedBy::Cancelled, now);
            change.push_resolved(refusal);
        }
        self.stage(change)
    }

    /// Ends a session. Its open questions are resolved as rejected (§6.8), and consents given in it can
    /// no longer be used.
    pub fn end_session(&mut self, session: &SessionId, now: UnixMillis) -> StagedChange {
        if self.is_ending(session) {
            return StagedChange::default();
        }
        let change = self.refuse_all(session, ResolvedBy::Cancelled, now);
        self.stage(change)
    }

    fn open_question(&self, token: &ReplyToken, now: UnixMillis) -> Result<&Question, IgnoreReason> {
        let (fingerprint, question) = self.find(token);
        match question {
            None if self.is_retired(fingerprint) => Err(IgnoreReason::AlreadyResolved),
            None => Err(IgnoreReason::UnknownToken),
            Some(question) if !question.is_open() => Err(IgnoreReason::AlreadyResolved),
            Some(_) if self.has_staged_change(fingerprint) => Err(IgnoreReason::ChangeStaged),
            Some(question) if now >= question.deadline => Err(IgnoreReason::Late),
            Some(question) => Ok(question),
        }
    }
}

/// Returns a copy of the question. If the grace period for listeners to return after a restart
/// has passed, the copy has no `grace_until`, because otherwise [`QuestionRegistry::next_deadline`] would keep returning
/// that time.
fn without_expired_grace(question: &Question, now: UnixMillis) -> Question {
    let mut question = question.clone();
    question.grace_until = question.grace_until.filter(|until| now < *until);
    question
}
