//! Retention: deletes the oldest data first.

use std::collections::{HashMap, HashSet};

use seal::UnixMillis;

use super::{MemoryJournal, QuestionEntry};
use crate::{Position, Retention, TrimReport};

impl MemoryJournal {
    /// Deletes what exceeds the limits. Only events and reply attempts are deleted in steps.
    pub(super) fn trim_step(&mut self, retention: &Retention, now: UnixMillis) -> TrimReport {
        let mut report = TrimReport::default();
        let is_too_old =
            |max_age_ms: Option<i64>, at| max_age_ms.is_some_and(|age_ms| at < now.saturating_sub(age_ms));
        let state_bytes = self.state_bytes();
        let is_too_large = |bytes: usize| {
            retention.max_bytes.is_some_and(|max_bytes| (bytes + state_bytes) as u64 > max_bytes)
        };
        self.delete_events(retention.max_rows_per_step, &mut report, |at, bytes| {
            is_too_old(retention.max_event_age_ms, at) || is_too_large(bytes)
        });
        while let Some(attempt) = self.attempts.front() {
            // To save space, events are deleted before attempts.
            let should_delete = is_too_old(retention.max_event_age_ms, attempt.at)
                || !report.has_more && is_too_large(self.log_bytes);
            if !should_delete {
                break;
            }
            if report.attempts == retention.max_rows_per_step as u64 {
                report.has_more = true;
                break;
            }
            self.log_bytes -= attempt.bytes;
            self.attempts.pop_front();
            report.attempts += 1;
        }
        let sessions = &self.sessions;
        self.questions.retain(|_, question| {
            let is_session_open = sessions.get(&question.open.session).is_some_and(|entry| !entry.is_ended);
            let is_expired = !is_session_open
                && question
                    .decision
                    .as_ref()
                    .is_some_and(|decision| is_too_old(retention.max_decision_age_ms, decision.decided_at));
            report.decisions += u64::from(is_expired);
            !is_expired
        });
        self.delete_sessions(&mut report);
        self.stored_responses.retain(|_, response| {
            let is_expired = is_too_old(retention.max_idempotency_key_age_ms, response.at);
            report.idempotency_keys += u64::from(is_expired);
            !is_expired
        });
        if let Some(max) = retention.max_idempotency_keys_per_principal {
            self.delete_surplus_keys(usize::try_from(max).unwrap_or(usize::MAX), &mut report);
        }
        report.trimmed_up_to = self.trimmed_up_to;
        report.is_over_limit = !report.has_more && is_too_large(self.log_bytes);
        report
    }

    /// Returns the size of the sessions, questions, subscriptions, stored responses and manifests, in bytes.
    pub(super) fn state_bytes(&self) -> usize {
        let sessions = self.sessions.values().map(|entry| &entry.session);
        let sessions = sessions.map(|session| {
            session.id.len() + session.agent.len() + session.principal.len() + session.record.len()
        });
        let questions = self.questions.values().map(QuestionEntry::size_bytes);
        let subscriptions = self.subscriptions.values();
        let subscriptions = subscriptions.map(|subscription| {
            subscription.id.len() + subscription.principal.len() + subscription.record.len()
        });
        let responses = self.stored_responses.iter();
        let responses = responses.map(|((principal, key), stored)| {
            principal.len() + key.len() + stored.request.len() + stored.response.len()
        });
        let manifests = self.manifests.iter().map(|(agent, record)| agent.len() + record.len());
        sessions.chain(questions).chain(subscriptions).chain(responses).chain(manifests).sum()
    }

    fn delete_events(
        &mut self,
        max_rows: usize,
        report: &mut TrimReport,
        should_delete: impl Fn(UnixMillis, usize) -> bool,
    ) {
        for examined in 0.. {
            let Some((position, event)) = self.events.range(self.trimmed_up_to.next()..).next() else {
                return;
            };
            if !should_delete(event.at, self.log_bytes) {
                return;
            }
            if examined == max_rows {
                report.has_more = true;
                return;
            }
            let position = *position;
            if !self.is_session_open(&event.session) {
                self.delete_event(position, report);
            }
            self.trimmed_up_to = position;
        }
    }

    /// Deletes the events of ended sessions up to `trimmed_up_to`, and then the sessions that nothing refers to.
    fn delete_sessions(&mut self, report: &mut TrimReport) {
        let ended = self.sessions.values().filter(|entry| entry.is_ended);
        let deletable = ended.flat_map(|entry| entry.positions.range(..=self.trimmed_up_to).copied());
        for position in deletable.collect::<Vec<Position>>() {
            self.delete_event(position, report);
        }
        let with_questions: HashSet<&str> =
            self.questions.values().map(|question| &*question.open.session).collect();
        self.sessions.retain(|id, entry| {
            !entry.is_ended || !entry.positions.is_empty() || with_questions.contains(&**id)
        });
    }

    /// Deletes the oldest idempotency keys of each principal that has more than `max`.
    fn delete_surplus_keys(&mut self, max: usize, report: &mut TrimReport) {
        if self.stored_responses.len() <= max {
            return;
        }
        let mut keys_by_principal: HashMap<&str, Vec<_>> = HashMap::new();
        for (principal_and_key, response) in &self.stored_responses {
            keys_by_principal.entry(&principal_and_key.0).or_default().push((response.at, principal_and_key));
        }
        let mut surplus = Vec::new();
        for mut keys in keys_by_principal.into_values().filter(|keys| keys.len() > max) {
            keys.sort_unstable();
            surplus.extend(
                keys.drain(..keys.len() - max).map(|(_, principal_and_key)| principal_and_key.clone()),
            );
        }
        for principal_and_key in surplus {
            self.stored_responses.remove(&principal_and_key);
            report.idempotency_keys += 1;
        }
    }

    fn delete_event(&mut self, position: Position, report: &mut TrimReport) {
        let Some(event) = self.events.remove(&position) else { return };
        self.position_by_event_id.remove(&event.id);
        if let Some(entry) = self.sessions.get_mut(&*event.session) {
            entry.positions.remove(&position);
        }
        self.log_bytes -= event.body.len();
        report.events += 1;
    }
}

impl QuestionEntry {
    fn size_bytes(&self) -> usize {
        let receipt = self.decision.as_ref().map_or(0, |decision| decision.receipt.len());
        self.open.token.len() + self.open.session.len() + self.open.record.len() + receipt
    }
}
