//! Writes the hub's log events to the log.

use hub::ListenerId;
use hub::telemetry::LogEvent;

use super::Telemetry;
use super::log_record::{self, HashPrefix, RuleIds};

impl Telemetry {
    /// Logs an event in the hub.
    pub(crate) fn log_hub_event(&self, event: &LogEvent) {
        match event {
            LogEvent::SessionStarted(session) => log_record::session_started(session),
            LogEvent::SessionEnded(session) => log_record::session_ended(session),
            LogEvent::SubscriptionOpened(id) => log_record::subscription_opened(HashPrefix(id.as_str())),
            LogEvent::SubscriptionClosed(id) => log_record::subscription_closed(HashPrefix(id.as_str())),
            LogEvent::SubscriptionRejected(reason) => log_record::subscription_rejected(reason),
            LogEvent::QuestionAsked { token, session } => {
                log_record::question_asked(HashPrefix(token.as_str()), session);
            }
            LogEvent::QuestionResolved { token, by } => {
                log_record::question_resolved(HashPrefix(token.as_str()), by.as_str());
            }
            LogEvent::HandoffRequested { token, session } => {
                log_record::handoff_requested(HashPrefix(token.as_str()), session);
            }
            LogEvent::HandoffResolved { token, result } => {
                log_record::handoff_resolved(HashPrefix(token.as_str()), result.as_str());
            }
            LogEvent::ReplyRefused { principal, reason } => {
                log_record::reply_refused(reason, HashPrefix(principal));
            }
            LogEvent::RuleViolations(rules) => log_record::rule_violation(RuleIds(rules)),
            LogEvent::HubEventRejected { session, rules } => {
                log_record::hub_event_rejected(session, RuleIds(rules));
            }
            LogEvent::LimitReached(reason) => log_record::limit_reached(reason),
            LogEvent::ListenerConnected { listener, subscription } => {
                log_record::listener_joined(
                    listener.0,
                    HashPrefix(subscription.as_str()),
                    self.listener_count(),
                );
            }
            LogEvent::ResumeGap(listener) => log_record::listener_gap(listener.0),
            LogEvent::WriteFailed(error) => log_record::storage_failed(error),
            LogEvent::RebuildFailed(error) => log_record::storage_unreadable(error),
            LogEvent::WritesRecovered => log_record::storage_recovered(),
            LogEvent::ConsentsVoided { consents, questions } => {
                log_record::consents_voided(*consents, *questions);
            }
            _ => {}
        }
    }

    /// Logs a listener that has disconnected or is too slow. Counts listeners that are too slow.
    pub(crate) fn record_listener_left(&self, listener: ListenerId, is_too_slow: bool) {
        let listeners = self.listener_count().saturating_sub(1);
        if !is_too_slow {
            return log_record::listener_left(listener.0, listeners);
        }
        if let Some(counters) = self.fanout.get() {
            counters.slow_listeners.add(1);
        }
        log_record::listener_too_slow(listener.0, listeners);
    }

    fn listener_count(&self) -> u64 {
        // A listener of several shards counts in each of them.
        let shards = self.shard_counters();
        shards.values().map(|hub| hub.listeners.get()).max().unwrap_or(0)
    }
}
