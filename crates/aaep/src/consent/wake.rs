//! What happens without a reply: time passes, listeners come and go, the agent withdraws.

use std::hash::BuildHasher;

use seal::UnixMillis;

use crate::id::{ReplyToken, SessionId, SubscriptionId};

use super::{By, Decided, Ignored, Outcome, Question, Questions, Reminder};

impl<H: BuildHasher> Questions<H> {
    /// Time has come to `now`: questions that are over take their default, and so do those that nobody can answer any
    /// more; people who have little time left are reminded. Call it at [`next_deadline`](Self::next_deadline); later or
    /// twice does no harm.
    pub fn wake(&mut self, now: UnixMillis) -> Decided {
        while let Some(lost) = self.subscriptions.lost_for_good(now) {
            self.close(&lost);
        }
        let mut decided = Decided::default();
        for question in self.open() {
            self.look_at(question, now, &mut decided);
        }
        self.hold(decided)
    }

    fn look_at(&self, question: &Question, now: UnixMillis, decided: &mut Decided) {
        let over = if now >= question.deadline {
            Some(By::Timeout)
        } else if !self.subscriptions.can_answer(question, now)
            && question.grace.is_none_or(|until| now >= until)
        {
            Some(By::Closure)
        } else {
            None
        };
        if let Some(by) = over {
            decided.push_resolved(question.clone().resolved(question.default_answer(), by, now));
        } else if let Some(left) = question.reminder_due(now) {
            decided.outcomes.push(Outcome::Reminder(Reminder {
                token: question.token.clone(),
                session: question.session.clone(),
                left,
                remaining: question.deadline.millis_since(now),
            }));
            decided.questions.push(without_grace(question, now).reminded(left));
        } else if question.grace.is_some_and(|until| now >= until) {
            decided.questions.push(without_grace(question, now));
        }
    }

    /// A subscription is open, and this is whose it is: questions that are asked from now on may go to it. One that was
    /// lost is resumed. Says whether it could be: not if it is somebody else's, or was closed before.
    pub fn subscription_opened(&mut self, id: &SubscriptionId, principal: &str) -> bool {
        !self.is_gone(self.fingerprint(id.as_str())) && self.subscriptions.open(id, principal)
    }

    /// A subscription has lost its connection, and may resume within `window` milliseconds (C-C17); none means that it
    /// is closed. Questions whose silence means yes do not wait for it.
    pub fn subscription_lost(&mut self, id: &SubscriptionId, now: UnixMillis, window: i64) -> Decided {
        if window <= 0 {
            return self.subscription_closed(id, now);
        }
        self.subscriptions.lose(id, now.saturating_add(window));
        self.wake(now)
    }

    /// A lost subscription has its connection again. Says whether it is still open.
    pub fn subscription_resumed(&mut self, id: &SubscriptionId, now: UnixMillis) -> bool {
        self.subscriptions.principal(id, now).is_some() && self.subscriptions.resume(id)
    }

    /// A subscription is closed: questions that nobody else can answer take their default now (§5.8.2, C-C16, C-C24).
    pub fn subscription_closed(&mut self, id: &SubscriptionId, now: UnixMillis) -> Decided {
        self.close(id);
        self.wake(now)
    }

    fn close(&mut self, id: &SubscriptionId) {
        self.subscriptions.close(id);
        self.bury(self.fingerprint(id.as_str()));
    }

    /// A late joiner was sent an open question too, and so may answer it (digest, section 19).
    pub fn entitle(
        &mut self,
        token: &ReplyToken,
        subscription: &SubscriptionId,
        now: UnixMillis,
    ) -> Result<Decided, Ignored> {
        if self.subscriptions.principal(subscription, now).is_none() {
            return Err(Ignored::NoSubscription);
        }
        let mut question = self.open_question(token, now)?.clone();
        question.repliers.retain(|id| self.subscriptions.is_known(id));
        if let Err(place) = question.repliers.binary_search(subscription) {
            question.repliers.insert(place, subscription.clone());
        }
        question.grace = None;
        Ok(self.hold(Decided { questions: vec![question], ..Decided::default() }))
    }

    /// The agent withdraws a question: it is refused, and its token is dead (§6.8).
    pub fn cancel(&mut self, token: &ReplyToken, now: UnixMillis) -> Result<Decided, Ignored> {
        let question = self.open_question(token, now)?;
        let mut decided = Decided::default();
        decided.push_resolved(question.clone().resolved(question.refusal(), By::Cancelled, now));
        Ok(self.hold(decided))
    }

    /// A session ends, however it does: its open questions are refused (§6.8), and nothing can be done on its others.
    pub fn end(&mut self, session: &SessionId, now: UnixMillis) -> Decided {
        if self.is_ending(session) {
            return Decided::default();
        }
        let decided = self.refuse_all(session, By::Cancelled, now);
        self.hold(decided)
    }

    fn open_question(&self, token: &ReplyToken, now: UnixMillis) -> Result<&Question, Ignored> {
        let (fingerprint, question) = self.find(token);
        match question {
            None if self.is_gone(fingerprint) => Err(Ignored::Used),
            None => Err(Ignored::Unknown),
            Some(question) if !question.is_open() => Err(Ignored::Used),
            Some(_) if self.is_pending(fingerprint) => Err(Ignored::Pending),
            Some(question) if now >= question.deadline => Err(Ignored::Late),
            Some(question) => Ok(question),
        }
    }
}

/// Grace that is over is no reason to be woken again.
fn without_grace(question: &Question, now: UnixMillis) -> Question {
    let mut question = question.clone();
    question.grace = question.grace.filter(|until| now < *until);
    question
}
