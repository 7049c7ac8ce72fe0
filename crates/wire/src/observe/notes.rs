//! The hub's notes as lines of the log.

use hub::ListenerId;
use hub::watch::Note;

use super::Observe;
use super::record::{self, Hashed, Rules};

impl Observe {
    /// Something happened in the hub.
    pub(crate) fn note(&self, note: &Note) {
        match note {
            Note::SessionStarted(session) => record::session_started(session),
            Note::SessionEnded(session) => record::session_ended(session),
            Note::SubscriptionOpened(id) => record::subscription_opened(Hashed(id.as_str())),
            Note::SubscriptionClosed(id) => record::subscription_closed(Hashed(id.as_str())),
            Note::SubscriptionRejected(reason) => record::subscription_rejected(reason),
            Note::QuestionAsked { token, session } => {
                record::question_asked(Hashed(token.as_str()), session);
            }
            Note::QuestionResolved { token, by } => {
                record::question_resolved(Hashed(token.as_str()), by.as_str());
            }
            Note::ReplyRefused { principal, why } => record::reply_refused(why, Hashed(principal)),
            Note::Unlawful(rules) => record::rule_broken(Rules(rules)),
            Note::Unsaid { session, rules } => record::hub_unsaid(session, Rules(rules)),
            Note::Full(why) => record::limit_hit(why),
            Note::Joined { listener, subscription } => {
                record::listener_joined(listener.0, Hashed(subscription.as_str()), self.listeners());
            }
            Note::Gap(listener) => record::listener_gap(listener.0),
            Note::NotStored(error) => record::storage_failed(error),
            Note::NotRead(error) => record::storage_unreadable(error),
            Note::StoredAgain => record::storage_good(),
            _ => {}
        }
    }

    /// A listener has left.
    pub(crate) fn left(&self, listener: ListenerId, too_slow: bool) {
        let listeners = self.listeners().saturating_sub(1);
        if !too_slow {
            return record::listener_left(listener.0, listeners);
        }
        if let Some(sent) = self.sent.get() {
            sent.too_slow.add(1);
        }
        record::listener_slow(listener.0, listeners);
    }

    fn listeners(&self) -> u64 {
        self.hub.get().map_or(0, |hub| hub.listeners.get())
    }
}
