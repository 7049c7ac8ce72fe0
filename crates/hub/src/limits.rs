//! How much the hub takes on; `docs/limits.md` has what happens beyond it.

use aaep::{consent, shape};
use journal::Retention;

/// How much the hub takes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Open sessions.
    pub sessions: usize,
    /// Open subscriptions.
    pub subscriptions: usize,
    /// Open subscriptions of one principal; without authentication all are of one, and this is not looked at.
    pub subscriptions_per_principal: usize,
    /// Critical events of one agent in a minute, beside its questions, which have limits of their own.
    pub criticals_per_minute: usize,
    /// Questions of one agent to one person in a minute.
    pub questions_per_minute: usize,
    /// Events in one request.
    pub events_in_request: usize,
    /// Tools, outputs and questions that are open in one session, each.
    pub open_in_session: usize,
    /// Questions.
    pub questions: consent::Limits,
    /// For so long an agent counts as there without a sign of life, in milliseconds.
    pub lease: i64,
    /// For so long a subscription waits for its first connection, in milliseconds.
    pub attach_window: i64,
    /// For so long a subscription outlives its connection, in milliseconds (C-C17).
    pub resume_window: i64,
    /// At most so many events are replayed to a listener that returns.
    pub replay: usize,
    /// No wait for an answer is longer, in milliseconds.
    pub longest_wait: i64,
    /// Waits of one principal.
    pub waits_of_principal: usize,
    /// Lines that follow one session.
    pub followers: usize,
    /// What is held back for a listener.
    pub shape: shape::Limits,
    /// So many requests at most make one turn.
    pub requests_in_turn: usize,
    /// The clock is looked at so often at least, in milliseconds, so that one that jumps keeps nobody waiting.
    pub longest_sleep: i64,
    /// What is kept of what is over. A step of it is taken in a turn, so that nobody waits long for it.
    pub retention: Retention,
    /// How often is looked for what may be forgotten, in milliseconds.
    pub trim_every: i64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            sessions: 10_000,
            subscriptions: 100_000,
            subscriptions_per_principal: 1_000,
            criticals_per_minute: 60,
            questions_per_minute: 120,
            events_in_request: 1_000,
            open_in_session: 256,
            questions: consent::Limits::default(),
            lease: 300_000,
            attach_window: 30_000,
            resume_window: 30_000,
            replay: 1_024,
            longest_wait: 300_000,
            waits_of_principal: 1_024,
            followers: 16,
            shape: shape::Limits::default(),
            requests_in_turn: 1_024,
            longest_sleep: 1_000,
            retention: Retention { step: 200, ..Retention::default() },
            trim_every: 60_000,
        }
    }
}
