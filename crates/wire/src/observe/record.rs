//! The lines that the log can hold: a function for each, and nothing else writes to the log.
//!
//! What agents and people say stays out of it, because no function takes it but `said`, which is called at level `trace` only.
//! Fields are ids that the hub made, numbers, words of ours, errors of the system, and names as [`Hashed`] values.

use std::fmt;

use aaep::SessionId;
use seal::Digest;

/// The target of all events for the log.
pub(super) const TARGET: &str = "sayso::log";

/// The kind and the message of the line that says how many lines were left out. The log writes it itself.
pub(super) const LEFT_OUT: (&str, &str) = ("log.left_out", "So many lines of a kind were left out.");

macro_rules! records {
    ($($name:ident($($field:ident: $type:ty),*) $level:ident $kind:literal $message:literal;)*) => {
        /// The kinds of all lines. Several lines may be of one kind.
        pub const KINDS: &[&str] = &[LEFT_OUT.0, $($kind),*];

        $(
            #[doc = $message]
            pub fn $name($($field: $type),*) {
                tracing::event!(name: $kind, target: TARGET, tracing::Level::$level, $($field = %$field,)* $message);
            }
        )*
    };
}

records! {
    started(version: &'static str, process: u32, wires: &str, data: &str) INFO "started" "The hub has begun.";
    stopping() INFO "stopping" "The hub ends.";
    reloaded(what: &'static str) INFO "reloaded" "The certificate was read again.";
    reloaded_nothing(what: &'static str, why: &'static str) INFO "reloaded" "Nothing is read again.";
    reloaded_tokens(what: &'static str, known: usize, added: usize, removed: usize)
        INFO "reloaded" "Tokens were read again.";
    reloaded_no_tokens(what: &'static str, known: usize, added: usize, removed: usize)
        WARN "reloaded" "Tokens were read again, and none is left.";
    reload_failed(what: &'static str, why: &str, so: &'static str)
        ERROR "reload.failed" "They could not be read again; what was read before stays in force.";
    session_started(session: &SessionId) INFO "session.started" "An agent has started a session.";
    session_ended(session: &SessionId) INFO "session.ended" "A session has ended.";
    subscription_opened(subscription: Hashed<'_>) INFO "subscription.opened" "A subscription was accepted.";
    subscription_closed(subscription: Hashed<'_>) INFO "subscription.closed" "A subscription is closed.";
    subscription_rejected(reason: &str)
        WARN "subscription.rejected" "A subscription was rejected, with its reason code.";
    listener_joined(listener: u64, subscription: Hashed<'_>, listeners: u64)
        INFO "listener.joined" "A connection listens.";
    listener_left(listener: u64, listeners: u64) INFO "listener.left" "A connection listens no more.";
    listener_slow(listener: u64, listeners: u64)
        WARN "listener.slow" "A listener could not keep up and was disconnected.";
    listener_gap(listener: u64) WARN "listener.gap" "A listener came back too late to be told all that it missed.";
    question_asked(question: Hashed<'_>, session: &SessionId) INFO "question.asked" "An agent has asked.";
    question_resolved(question: Hashed<'_>, by: &'static str)
        INFO "question.resolved" "A question was resolved; by what, not how.";
    reply_refused(why: &str, from: Hashed<'_>) WARN "reply.refused" "A reply was not taken.";
    rule_broken(rules: Rules<'_>) INFO "rule.broken" "What an agent said was refused; these rules say so.";
    hub_unsaid(session: &SessionId, rules: Rules<'_>)
        ERROR "hub.unsaid" "What the hub itself had to say was refused by these rules.";
    storage_failed(error: &str) ERROR "storage.failed" "A turn could not be stored, so nothing of it happened.";
    storage_unreadable(error: &str)
        ERROR "storage.failed" "The state could not be read after a failed write; it is read before the next turn.";
    storage_good() INFO "storage.good" "The disk takes writes again.";
    limit_hit(limit: &str) WARN "limit.hit" "Somebody asked for more than a limit allows.";
    limit_hit_on(limit: &'static str, route: &'static str)
        WARN "limit.hit" "Somebody asked for more than a limit allows.";
    login_refused(route: &'static str) WARN "login.refused" "A request without a token that is known.";
    request(method: &'static str, route: &'static str, status: u16) DEBUG "request" "A request was answered.";
    commit(entries: usize, micros: u128) DEBUG "commit" "A turn was written.";
}

/// What was said, as it came.
pub(super) fn said(command: &dyn fmt::Debug) {
    tracing::event!(name: SAID, target: TARGET, tracing::Level::TRACE, command = ?command, "What was said, as it came.");
}

/// The kind of the only line that holds what agents and people say.
pub const SAID: &str = "said";

/// A secret or the name of a person, written as the first 12 digits of its SHA-256.
#[derive(Clone, Copy, Debug)]
pub struct Hashed<'t>(pub(super) &'t str);

impl fmt::Display for Hashed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digest = Digest::of(self.0.as_bytes()).to_string();
        f.write_str(digest.get("sha256:".len()..).and_then(|digits| digits.get(..12)).unwrap_or_default())
    }
}

/// Ids of rules.
#[derive(Clone, Copy, Debug)]
pub struct Rules<'t>(pub(super) &'t [&'static str]);

impl fmt::Display for Rules<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(","))
    }
}
