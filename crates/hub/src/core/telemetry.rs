//! Updates counters and emits log events after each turn.

use std::sync::Arc;

use super::subscriber_messages::REPLY_APPLIED;
use super::{Core, PostCommit, StagedTurn};
use crate::command::{HubReply, TurnOutput};
use crate::owned_entry::OwnedEntry;
use crate::telemetry::LogEvent;
use crate::{HubMetrics, ListenerId};

impl Core {
    /// Returns the hub's counters, which can be read from any thread.
    pub fn counters(&self) -> Arc<HubMetrics> {
        self.counters.clone()
    }

    /// Counts and logs a turn after it was committed.
    pub(super) fn record_turn(&mut self, staged: &StagedTurn, outputs: &mut Vec<TurnOutput>) {
        if !staged.writes.is_empty() && std::mem::take(&mut self.last_write_failed) {
            outputs.push(TurnOutput::Log(LogEvent::WritesRecovered));
        }
        let counters = &self.counters;
        let (mut events, mut opened, mut resolved) = (0, 0, 0);
        let mut log = |event| outputs.push(TurnOutput::Log(event));
        for write in &staged.writes {
            match write {
                OwnedEntry::Event { .. } => events += 1,
                OwnedEntry::SessionOpened { id, .. } => {
                    counters.sessions_started.add(1);
                    log(LogEvent::SessionStarted(id.clone()));
                }
                OwnedEntry::SessionEnded { id, .. } => {
                    counters.sessions_ended.add(1);
                    log(LogEvent::SessionEnded(id.clone()));
                }
                OwnedEntry::QuestionOpened { token, session, .. } => {
                    opened += 1;
                    log(LogEvent::QuestionAsked { token: token.clone(), session: session.clone() });
                }
                OwnedEntry::QuestionDecided { token, decision, by, .. } => {
                    resolved += 1;
                    counters.questions_resolved.increment(&[by.as_str(), decision]);
                    log(LogEvent::QuestionResolved { token: token.clone(), by: *by });
                }
                OwnedEntry::HandoffOpened { token, session, .. } => {
                    counters.handoffs_requested.add(1);
                    log(LogEvent::HandoffRequested { token: token.clone(), session: session.clone() });
                }
                OwnedEntry::HandoffDecided { token, result, .. } => {
                    counters.handoffs_resolved.increment(&[result.as_str()]);
                    log(LogEvent::HandoffResolved { token: token.clone(), result: *result });
                }
                OwnedEntry::DeadlineMoved { .. } => counters.questions_extended.add(1),
                OwnedEntry::DecisionSpent { .. } => counters.consents_spent.add(1),
                OwnedEntry::SubscriptionOpened { id, .. } => {
                    counters.subscriptions_accepted.add(1);
                    log(LogEvent::SubscriptionOpened(id.clone()));
                }
                OwnedEntry::SubscriptionClosed { id } => log(LogEvent::SubscriptionClosed(id.clone())),
                OwnedEntry::ReplyAttempted { principal, result, .. } => {
                    counters.replies.increment(&[result]);
                    if result != REPLY_APPLIED {
                        log(LogEvent::ReplyRefused { principal: principal.clone(), reason: result.clone() });
                    }
                }
                OwnedEntry::SessionTouched { .. }
                | OwnedEntry::SubscriptionChanged { .. }
                | OwnedEntry::ResponseStored { .. }
                | OwnedEntry::ManifestStored { .. } => {}
            }
        }
        for (_, reply) in &staged.replies {
            match reply {
                HubReply::RuleViolations(findings) => {
                    let rules: Vec<_> = findings.iter().map(|finding| finding.rule.id()).collect();
                    for rule in &rules {
                        counters.rule_violations.increment(&[rule]);
                    }
                    log(LogEvent::RuleViolations(rules));
                }
                HubReply::SubscriptionRejected(rejected) => {
                    let code = rejected.reason_code.as_str();
                    counters.subscriptions_rejected.increment(&[code]);
                    log(LogEvent::SubscriptionRejected(code.to_owned()));
                }
                HubReply::LimitReached(limit) => {
                    counters.limit_refusals.add(1);
                    log(LogEvent::LimitReached(limit.to_string()));
                }
                _ => {}
            }
        }
        for action in &staged.post_commit {
            if let PostCommit::Attach(attach) = action {
                let (listener, subscription) = attach.ids();
                log(LogEvent::ListenerConnected { listener, subscription: subscription.clone() });
            }
        }
        counters.turns.add(1);
        counters.events.add(events);
        counters.questions_asked.add(opened);
        counters.questions_open.add(opened);
        counters.questions_open.subtract(resolved);
        counters.sessions_open.set(self.sessions.len());
        counters.subscriptions_open.set(self.subscriptions.len());
        counters.listeners.set(self.listeners.len());
    }

    /// Sets the gauges after the state was restored from the journal.
    pub(super) fn reset_gauges(&self) {
        let open = self.questions.questions().filter(|question| question.is_open()).count();
        self.counters.questions_open.set(open);
        self.counters.sessions_open.set(self.sessions.len());
        self.counters.subscriptions_open.set(self.subscriptions.len());
        self.counters.listeners.set(self.listeners.len());
    }

    /// Counts and logs a resume. `is_complete` says whether every missed event was available; `None` means that the
    /// client did not resume.
    pub(super) fn record_resume(
        &self,
        is_complete: Option<bool>,
        listener: ListenerId,
        outputs: &mut Vec<TurnOutput>,
    ) {
        match is_complete {
            None => {}
            Some(true) => self.counters.resumes_complete.add(1),
            Some(false) => {
                self.counters.resumes_gap.add(1);
                outputs.push(TurnOutput::Log(LogEvent::ResumeGap(listener)));
            }
        }
    }
}
