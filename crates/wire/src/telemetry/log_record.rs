//! The events of the log, with one function each. Nothing else writes to the log.
//!
//! Only `command_received` logs what agents and people say, and it is called only at level `trace`. All other fields are
//! ids that the hub generated, numbers, fixed strings, system errors, and secrets or names as [`HashPrefix`] values.

use std::fmt;

use aaep::SessionId;
use seal::Digest;

/// The target of all log events.
pub(super) const TARGET: &str = "sayso::log";

/// The kind and the message of the line that reports dropped lines. `log` writes this line itself.
pub(super) const DROPPED_LINES: (&str, &str) = ("log.dropped", "Lines of one kind were dropped.");

macro_rules! records {
    ($($name:ident($($field:ident: $type:ty),*) $level:ident $kind:literal $message:literal;)*) => {
        /// The kinds of all log lines. Several events may share one kind.
        pub const KINDS: &[&str] = &[DROPPED_LINES.0, $($kind),*];

        $(
            #[doc = $message]
            pub fn $name($($field: $type),*) {
                tracing::event!(name: $kind, target: TARGET, tracing::Level::$level, $($field = %$field,)* $message);
            }
        )*
    };
}

records! {
    started(version: &'static str, process: u32, transports: &str, data: &str) INFO "started" "The hub has started.";
    stopping() INFO "stopping" "The hub is stopping.";
    reloaded(what: &'static str) INFO "reloaded" "The certificate was reloaded.";
    reloaded_nothing(what: &'static str, why: &'static str) INFO "reloaded" "There is nothing to reload.";
    reloaded_tokens(what: &'static str, known: usize, added: usize, removed: usize)
        INFO "reloaded" "The tokens were reloaded.";
    reloaded_no_tokens(what: &'static str, known: usize, added: usize, removed: usize)
        WARN "reloaded" "The tokens were reloaded, and the file contains no token.";
    reload_failed(what: &'static str, why: &str, consequence: &'static str)
        ERROR "reload.failed" "The reload failed; the previous state stays in force.";
    node_connected(node: &str) INFO "node.connected" "Another node of the cluster was reached.";
    node_disconnected(node: &str, why: &str)
        WARN "node.disconnected" "Another node of the cluster cannot be reached. Its requests are held for a short time.";
    internal_connection_failed(why: &str)
        WARN "node.connection_ended" "A connection of another node, or to the internal port, has ended.";
    session_started(session: &SessionId) INFO "session.started" "An agent started a session.";
    session_ended(session: &SessionId) INFO "session.ended" "A session ended.";
    subscription_opened(subscription: HashPrefix<'_>) INFO "subscription.opened" "A subscription was accepted.";
    subscription_closed(subscription: HashPrefix<'_>) INFO "subscription.closed" "A subscription was closed.";
    subscription_rejected(reason: &str)
        WARN "subscription.rejected" "A subscription was rejected.";
    listener_joined(listener: u64, subscription: HashPrefix<'_>, listeners: u64)
        INFO "listener.joined" "A listener connected.";
    listener_left(listener: u64, listeners: u64) INFO "listener.left" "A listener disconnected.";
    listener_too_slow(listener: u64, listeners: u64)
        WARN "listener.too_slow" "A listener could not keep up and was disconnected.";
    listener_gap(listener: u64) WARN "listener.gap" "A listener resumed too late to receive everything that it missed.";
    question_asked(question: HashPrefix<'_>, session: &SessionId) INFO "question.asked" "An agent asked a question.";
    question_resolved(question: HashPrefix<'_>, by: &'static str)
        INFO "question.resolved" "A question was resolved. The answer is not logged.";
    handoff_requested(handoff: HashPrefix<'_>, session: &SessionId)
        INFO "handoff.requested" "An agent asked somebody to take over.";
    handoff_resolved(handoff: HashPrefix<'_>, outcome: &'static str)
        INFO "handoff.resolved" "A hand-off was resolved. The note is not logged.";
    reply_refused(why: &str, from: HashPrefix<'_>) WARN "reply.refused" "A reply was refused.";
    rule_violation(rules: RuleIds<'_>) INFO "rule.violation" "A request from an agent was refused because it breaks these rules.";
    hub_event_rejected(session: &SessionId, rules: RuleIds<'_>)
        ERROR "hub.event_rejected" "An event of the hub itself was rejected because it breaks these rules.";
    storage_failed(error: &str) ERROR "storage.failed" "A turn could not be stored and was discarded.";
    storage_unreadable(error: &str)
        ERROR "storage.failed" "The state could not be read after a failed write; the hub retries before the next turn.";
    consents_voided(consents: usize, questions: usize)
        ERROR "consents.voided" "The journal was restored or has lost entries: unspent consents are void, open questions are refused.";
    storage_recovered() INFO "storage.recovered" "The journal can be written again.";
    limit_reached(limit: &str) WARN "limit.reached" "A request exceeded a limit.";
    limit_reached_on(limit: &'static str, route: &'static str)
        WARN "limit.reached" "A request exceeded a limit.";
    auth_failed(route: &'static str) WARN "auth.failed" "A request had no valid token.";
    request(method: &'static str, route: &'static str, status: u16) DEBUG "request" "A request was answered.";
    commit(entries: usize, micros: u128) DEBUG "commit" "A turn was committed to the journal.";
}

/// Logs a command as it was received, with everything that an agent or a person said.
pub(super) fn command_received(command: &dyn fmt::Debug) {
    tracing::event!(name: COMMAND_KIND, target: TARGET, tracing::Level::TRACE, command = ?command, "A command, as it was received.");
}

/// The kind of the only line that contains what agents and people say.
pub const COMMAND_KIND: &str = "command";

/// A secret or a person's name, written as the first 12 hexadecimal digits of its SHA-256.
#[derive(Clone, Copy, Debug)]
pub struct HashPrefix<'t>(pub(super) &'t str);

impl fmt::Display for HashPrefix<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digest = Digest::of(self.0.as_bytes()).to_string();
        f.write_str(digest.get("sha256:".len()..).and_then(|digits| digits.get(..12)).unwrap_or_default())
    }
}

/// A list of rule ids.
#[derive(Clone, Copy, Debug)]
pub struct RuleIds<'t>(pub(super) &'t [&'static str]);

impl fmt::Display for RuleIds<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(","))
    }
}
