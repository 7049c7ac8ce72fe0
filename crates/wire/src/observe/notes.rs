//! The hub's notes as lines of the log.

use hub::ListenerId;
use hub::watch::Note;
use seal::Digest;

use super::{Kind, Level, Observe};

impl Observe {
    /// Something happened in the hub.
    pub(crate) fn note(&self, note: &Note) {
        let (level, kind) = match note {
            Note::SessionStarted(_) => (Level::Info, Kind::SessionStarted),
            Note::SessionEnded(_) => (Level::Info, Kind::SessionEnded),
            Note::SubscriptionOpened(_) => (Level::Info, Kind::SubscriptionOpened),
            Note::SubscriptionClosed(_) => (Level::Info, Kind::SubscriptionClosed),
            Note::SubscriptionRejected(_) => (Level::Warn, Kind::SubscriptionRejected),
            Note::QuestionAsked { .. } => (Level::Info, Kind::QuestionAsked),
            Note::QuestionResolved { .. } => (Level::Info, Kind::QuestionResolved),
            Note::ReplyRefused { .. } => (Level::Warn, Kind::ReplyRefused),
            Note::Unlawful(_) => (Level::Info, Kind::RuleBroken),
            Note::Unsaid { .. } => (Level::Error, Kind::Unsaid),
            Note::Full(_) => (Level::Warn, Kind::LimitHit),
            Note::Joined { .. } => (Level::Info, Kind::ListenerJoined),
            Note::Gap(_) => (Level::Warn, Kind::ListenerGap),
            Note::NotStored(_) => (Level::Error, Kind::StorageFailed),
            Note::StoredAgain => (Level::Info, Kind::StorageGood),
            _ => return,
        };
        if !self.log.is_on(level) {
            return;
        }
        let say = |fields: &[(&str, &str)]| self.log.entry(level, kind, fields);
        match note {
            Note::SessionStarted(session) | Note::SessionEnded(session) => say(&[("session", session)]),
            Note::SubscriptionOpened(id) | Note::SubscriptionClosed(id) => {
                say(&[("subscription", &short(id))]);
            }
            Note::SubscriptionRejected(reason) => say(&[("reason", reason)]),
            Note::QuestionAsked { token, session } => {
                say(&[("question", &short(token)), ("session", session)]);
            }
            Note::QuestionResolved { token, by } => say(&[("question", &short(token)), ("by", by)]),
            Note::ReplyRefused { principal, why } => say(&[("why", why), ("from", &short(principal))]),
            Note::Unlawful(rules) => say(&[("rules", &rules.join(","))]),
            Note::Unsaid { session, rules } => say(&[("session", session), ("rules", &rules.join(","))]),
            Note::Full(why) => say(&[("limit", why)]),
            Note::Joined { listener, subscription } => {
                let (id, listeners) = (listener.0.to_string(), self.listeners().to_string());
                say(&[("listener", &id), ("subscription", &short(subscription)), ("listeners", &listeners)]);
            }
            Note::Gap(listener) => say(&[("listener", &listener.0.to_string())]),
            Note::NotStored(error) => say(&[("error", error)]),
            _ => say(&[]),
        }
    }

    /// A listener has left.
    pub(crate) fn left(&self, listener: ListenerId, too_slow: bool) {
        let (level, kind) =
            if too_slow { (Level::Warn, Kind::ListenerSlow) } else { (Level::Info, Kind::ListenerLeft) };
        if let Some(sent) = self.sent.get().filter(|_| too_slow) {
            sent.too_slow.add(1);
        }
        if self.log.is_on(level) {
            let listeners = self.listeners().saturating_sub(1).to_string();
            self.log.entry(level, kind, &[("listener", &listener.0.to_string()), ("listeners", &listeners)]);
        }
    }

    fn listeners(&self) -> u64 {
        self.hub.get().map_or(0, |hub| hub.listeners.get())
    }
}

/// What names a secret or a person without telling it: the first 12 digits of its SHA-256.
fn short(secret: &str) -> String {
    let digest = Digest::of(secret.as_bytes()).to_string();
    digest.chars().skip("sha256:".len()).take(12).collect()
}
