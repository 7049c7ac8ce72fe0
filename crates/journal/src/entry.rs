//! What can be written.

use seal::UnixMillis;

/// An event's place in the log: 1 for the first, each one more than the last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position(u64);

impl Position {
    /// Before the first event.
    pub const START: Self = Self(0);

    /// The position with this number.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// Its number.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The one after.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

/// One thing to write. Times are milliseconds since 1970, brought by the caller.
///
/// Where an entry says *else a conflict*, the whole batch is void; see [`Reason`](crate::Reason).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Entry<'a> {
    /// An event. Its position is one more than the last, its id is of no event kept, its session is open; else a conflict.
    ///
    /// Ids that grow with time (as UUID version 7 does) are two to three times as cheap to store as random ones.
    Event {
        /// Where it goes.
        position: Position,
        /// The session that it belongs to.
        session: &'a str,
        /// Its own id.
        event_id: &'a str,
        /// When.
        at: UnixMillis,
        /// Whether it is critical.
        critical: bool,
        /// The event as it is sent.
        body: &'a [u8],
    },
    /// A session begins; its id is of no session kept, else a conflict.
    SessionOpened {
        /// Its id.
        id: &'a str,
        /// The agent.
        agent: &'a str,
        /// Who owns it.
        principal: &'a str,
        /// Until when the agent counts as there.
        lease: UnixMillis,
        /// What else the caller wants back.
        record: &'a [u8],
    },
    /// The agent is still there. The session is open, else a conflict.
    SessionTouched {
        /// The session.
        id: &'a str,
        /// The new lease.
        lease: UnixMillis,
        /// A new record, or the old one stays.
        record: Option<&'a [u8]>,
    },
    /// A session ends. It is open and every question of it is decided, else a conflict. What was decided and not spent can
    /// no longer be.
    SessionEnded {
        /// The session.
        id: &'a str,
        /// When.
        at: UnixMillis,
    },
    /// A question to the person. Its token is of no question kept, its session is open; else a conflict.
    QuestionOpened {
        /// Its token.
        token: &'a str,
        /// The session that asks.
        session: &'a str,
        /// Until when it can be answered.
        deadline: UnixMillis,
        /// What else the caller wants back.
        record: &'a [u8],
    },
    /// The person gets more time. The question is open, else a conflict.
    DeadlineMoved {
        /// The question.
        token: &'a str,
        /// The new deadline.
        deadline: UnixMillis,
    },
    /// The token is consumed, the decision made, its receipt kept. The question is open, else a conflict: a question that
    /// never was cannot be decided, and none twice.
    Decided {
        /// The question.
        token: &'a str,
        /// What was decided, in the caller's words.
        decision: &'a str,
        /// By what.
        by: &'a str,
        /// The proof.
        receipt: &'a [u8],
        /// When.
        at: UnixMillis,
    },
    /// What was allowed is done. The question is decided, not yet spent, and its session open; else a conflict.
    /// Whether the decision was a yes is the caller's to know.
    Spent {
        /// The question.
        token: &'a str,
        /// The call that spends it.
        call: &'a [u8],
        /// When.
        at: UnixMillis,
    },
    /// A subscription begins, with its cursor at the start; its id is of no open subscription, else a conflict.
    SubscriptionOpened {
        /// Its id.
        id: &'a str,
        /// Who listens.
        principal: &'a str,
        /// What else the caller wants back.
        record: &'a [u8],
    },
    /// A subscription's terms change. It is open, else a conflict.
    SubscriptionChanged {
        /// The subscription.
        id: &'a str,
        /// The new record.
        record: &'a [u8],
    },
    /// A subscription ends and is forgotten. It is open, else a conflict.
    SubscriptionClosed {
        /// The subscription.
        id: &'a str,
    },
    /// The listener has everything up to here. The subscription is open and the position not beyond the last event, else a
    /// conflict. A cursor never goes back: an earlier position changes nothing.
    Cursor {
        /// The subscription.
        subscription: &'a str,
        /// How far.
        position: Position,
    },
    /// What was answered to a request with an idempotency key. This principal has not used the key, else a conflict.
    Idempotent {
        /// Whose key.
        principal: &'a str,
        /// The key.
        key: &'a str,
        /// A digest of the request.
        request: &'a [u8],
        /// The answer.
        response: &'a [u8],
        /// When.
        at: UnixMillis,
    },
    /// Somebody tried to answer. Never a conflict, and never read back through the trait: it is there for an operator to
    /// look at.
    Attempt {
        /// When.
        at: UnixMillis,
        /// Which subscription it came from; it need not exist.
        subscription: &'a str,
        /// What happened.
        what: &'a [u8],
    },
}
