//! What a turn adds to the hub's numbers, and what it notes.

use std::sync::Arc;

use super::{After, Core, Staged, TurnContext, WRITE_RETRY_BACKOFF_MS};
use crate::command::{Output, Reply};
use crate::watch::Note;
use crate::write::Write;
use crate::{Counters, ListenerId};

impl Core {
    /// The hub's numbers, to be read from anywhere.
    pub fn counters(&self) -> Arc<Counters> {
        self.counters.clone()
    }

    /// A turn is on disk.
    pub(super) fn count(&mut self, staged: &Staged, outputs: &mut Vec<Output>) {
        if !staged.writes.is_empty() && std::mem::take(&mut self.last_write_failed) {
            outputs.push(Output::Note(Note::StoredAgain));
        }
        let counters = &self.counters;
        let (mut events, mut asked, mut resolved) = (0, 0, 0);
        let mut note = |note| outputs.push(Output::Note(note));
        for write in &staged.writes {
            match write {
                Write::Event { .. } => events += 1,
                Write::SessionOpened { id, .. } => {
                    counters.sessions_started.add(1);
                    note(Note::SessionStarted(id.clone()));
                }
                Write::SessionEnded { id, .. } => {
                    counters.sessions_ended.add(1);
                    note(Note::SessionEnded(id.clone()));
                }
                Write::QuestionOpened { token, session, .. } => {
                    asked += 1;
                    note(Note::QuestionAsked { token: token.clone(), session: session.clone() });
                }
                Write::Decided { token, decision, by, .. } => {
                    resolved += 1;
                    counters.questions_resolved.one(&[by.as_str(), decision]);
                    note(Note::QuestionResolved { token: token.clone(), by: *by });
                }
                Write::DeadlineMoved { .. } => counters.questions_extended.add(1),
                Write::Spent { .. } => counters.consents_spent.add(1),
                Write::SubscriptionOpened { id, .. } => {
                    counters.subscriptions_accepted.add(1);
                    note(Note::SubscriptionOpened(id.clone()));
                }
                Write::SubscriptionClosed { id } => note(Note::SubscriptionClosed(id.clone())),
                Write::Attempt { subscription, what, .. } => {
                    counters.replies.one(&[what]);
                    if what != "taken" {
                        note(Note::ReplyRefused { principal: subscription.clone(), why: what.clone() });
                    }
                }
                Write::SubscriptionChanged { .. } | Write::Idempotent { .. } => {}
            }
        }
        for (_, answer) in &staged.answers {
            match answer {
                Reply::Unlawful(findings) => {
                    let rules: Vec<_> = findings.iter().map(|finding| finding.rule.id()).collect();
                    for rule in &rules {
                        counters.refused.one(&[rule]);
                    }
                    note(Note::Unlawful(rules));
                }
                Reply::SubscriptionRejected(rejected) => {
                    let code = rejected.reason_code.as_str();
                    counters.subscriptions_rejected.one(&[code]);
                    note(Note::SubscriptionRejected(code.to_owned()));
                }
                Reply::LimitReached(limit) => {
                    counters.full.add(1);
                    note(Note::Full(limit.to_string()));
                }
                _ => {}
            }
        }
        for after in &staged.after {
            if let After::Attach(attach) = after {
                let (listener, subscription) = attach.who();
                note(Note::Joined { listener, subscription: subscription.clone() });
            }
        }
        counters.turns.add(1);
        counters.events.add(events);
        counters.questions_asked.add(asked);
        counters.questions_open.add(asked);
        counters.questions_open.take(resolved);
        counters.sessions_open.set(self.sessions.len());
        counters.subscriptions_open.set(self.subscriptions.len());
        counters.listeners.set(self.listeners.len());
    }

    /// What is so after everything was read from the journal.
    pub(super) fn recount(&self) {
        let open = self.questions.questions().filter(|question| question.is_open()).count();
        self.counters.questions_open.set(open);
        self.counters.sessions_open.set(self.sessions.len());
        self.counters.subscriptions_open.set(self.subscriptions.len());
        self.counters.listeners.set(self.listeners.len());
    }

    /// A listener came back with an event that it had: what came after is known, or not any more.
    pub(super) fn returned(&self, known: Option<bool>, listener: ListenerId, outputs: &mut Vec<Output>) {
        match known {
            None => {}
            Some(true) => self.counters.resumes_complete.add(1),
            Some(false) => {
                self.counters.resumes_gap.add(1);
                outputs.push(Output::Note(Note::Gap(listener)));
            }
        }
    }

    /// After a turn that was not written, whether the disk takes writes again is found out even if nobody asks for one.
    pub(super) fn try_disk(&mut self, context: &TurnContext, outputs: &mut Vec<Output>) {
        if !self.last_write_failed || self.needs_rebuild || context.now < self.retry_at {
            return;
        }
        let what = "the disk takes writes again".to_owned();
        let trial = Write::Attempt { at: context.now, subscription: "".into(), what };
        if self.journal.commit(&[trial.entry()]).is_ok() {
            self.last_write_failed = false;
            outputs.push(Output::Note(Note::StoredAgain));
        } else {
            self.retry_at = context.now.saturating_add(WRITE_RETRY_BACKOFF_MS);
        }
    }
}
