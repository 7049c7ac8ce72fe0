//! The hub's notes: lines in the log, and the life of a question as a span.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use hub::ListenerId;
use hub::watch::Note;
use seal::Digest;

use super::otlp::{Span, Trace};
use super::{Kind, Level, Observe};

/// When each open question was asked, by the short form of its token; only where there is a collector.
#[derive(Debug, Default)]
pub(super) struct Questions(Mutex<HashMap<String, SystemTime>>);

/// So many open questions are timed at most.
const TIMED: usize = 8_192;

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
        self.time_question(note);
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

    fn time_question(&self, note: &Note) {
        let Some(otlp) = &self.otlp else { return };
        let mut asked = self.questions.0.lock().unwrap_or_else(PoisonError::into_inner);
        match note {
            Note::QuestionAsked { token, .. } if asked.len() < TIMED => {
                asked.insert(short(token), SystemTime::now());
            }
            Note::QuestionResolved { token, by } => {
                let question = short(token);
                if let Some(begun) = asked.remove(&question) {
                    let span = Span::new("question".to_owned(), Trace::new(None), begun, SystemTime::now());
                    otlp.give(span.with("sayso.question", &question).with("sayso.by", by));
                }
            }
            _ => {}
        }
    }
}

/// What names a secret or a person without telling it: the first 12 digits of its SHA-256.
fn short(secret: &str) -> String {
    let digest = Digest::of(secret.as_bytes()).to_string();
    digest.chars().skip("sha256:".len()).take(12).collect()
}
