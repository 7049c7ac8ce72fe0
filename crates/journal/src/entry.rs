//! Journal entries and positions.

use seal::UnixMillis;

/// An event's position in the log. The first event has position 1; each later position is one higher.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position(u64);

impl Position {
    /// The position before the first event.
    pub const START: Self = Self(0);

    /// Creates the position with this number.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// Returns the number.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Returns the next position.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

/// One entry to write. The caller provides all times, in milliseconds since 1970.
///
/// Most entries have preconditions. If one of them is not met, the entire batch fails; see
/// [`ConflictReason`](crate::ConflictReason).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JournalEntry<'a> {
    /// An event. Its position must be the next one, its id must be unused, and its session must be open.
    ///
    /// Storing an event with a time-ordered id, such as a UUID of version 7, costs between a third and half as
    /// much as with a random id.
    Event {
        /// Its position in the log.
        position: Position,
        /// The session to which it belongs.
        session: &'a str,
        /// The event's id.
        event_id: &'a str,
        /// The time of the entry.
        at: UnixMillis,
        /// Whether the event is critical.
        is_critical: bool,
        /// The event as sent.
        body: &'a [u8],
    },
    /// A session begins. Its id must be unused.
    SessionOpened {
        /// Its id.
        id: &'a str,
        /// The agent.
        agent: &'a str,
        /// The principal that owns the session.
        principal: &'a str,
        /// When the session's lease expires.
        lease_expires_at: UnixMillis,
        /// Opaque data supplied by the caller.
        record: &'a [u8],
    },
    /// The session's lease is renewed. The session must be open.
    SessionTouched {
        /// The session.
        id: &'a str,
        /// When the renewed lease expires.
        lease_expires_at: UnixMillis,
        /// The new record, or `None` to keep the old one.
        record: Option<&'a [u8]>,
    },
    /// A session ends. It must be open, and all its questions must be decided. Its unspent decisions can no longer be
    /// spent.
    SessionEnded {
        /// The session.
        id: &'a str,
        /// The time of the entry.
        at: UnixMillis,
    },
    /// A question to a person. Its token must be unused, and its session must be open.
    QuestionOpened {
        /// The question's reply token.
        token: &'a str,
        /// The session that asks.
        session: &'a str,
        /// The deadline for an answer.
        deadline: UnixMillis,
        /// Opaque data supplied by the caller.
        record: &'a [u8],
    },
    /// A question's deadline changes. The question must be undecided.
    DeadlineMoved {
        /// The question.
        token: &'a str,
        /// The new deadline.
        deadline: UnixMillis,
    },
    /// A question is decided: its token is consumed and the receipt is stored. The question must exist and be
    /// undecided, so a question can be decided only once.
    QuestionDecided {
        /// The question.
        token: &'a str,
        /// The decision, in the caller's vocabulary.
        decision: &'a str,
        /// What decided the question, in the caller's vocabulary.
        decided_by: &'a str,
        /// The receipt.
        receipt: &'a [u8],
        /// The time of the entry.
        at: UnixMillis,
    },
    /// A decision is spent on a call. The question must be decided and unspent, and its session must be open. The
    /// caller must check that the decision was an acceptance.
    DecisionSpent {
        /// The question.
        token: &'a str,
        /// The call on which the decision is spent.
        call: &'a [u8],
        /// The time of the entry.
        at: UnixMillis,
    },
    /// A subscription begins, with its cursor at the start. No open subscription may have this id.
    SubscriptionOpened {
        /// Its id.
        id: &'a str,
        /// The principal that listens.
        principal: &'a str,
        /// Opaque data supplied by the caller.
        record: &'a [u8],
    },
    /// A subscription's terms change. It must be open.
    SubscriptionChanged {
        /// The subscription.
        id: &'a str,
        /// The new record.
        record: &'a [u8],
    },
    /// A subscription ends and is deleted. It must be open.
    SubscriptionClosed {
        /// The subscription.
        id: &'a str,
    },
    /// The listener has received everything up to a position. The subscription must be open, and the position must
    /// not be beyond the last event. A cursor never moves back; an earlier position has no effect.
    CursorMoved {
        /// The subscription.
        subscription: &'a str,
        /// The new position of the cursor.
        position: Position,
    },
    /// The response to a request with an idempotency key. The principal must not have used the key before.
    ResponseStored {
        /// The principal that used the key.
        principal: &'a str,
        /// The key.
        key: &'a str,
        /// A digest of the request.
        request: &'a [u8],
        /// The response.
        response: &'a [u8],
        /// The time of the entry.
        at: UnixMillis,
    },
    /// An agent's manifest, which replaces the agent's previous one. It has no preconditions.
    ManifestStored {
        /// The agent.
        agent: &'a str,
        /// Opaque data supplied by the caller, or `None` to delete the manifest.
        record: Option<&'a [u8]>,
    },
    /// An attempt to reply, stored for operators. It has no preconditions, and the `Journal` trait cannot read it back.
    ReplyAttempted {
        /// The time of the entry.
        at: UnixMillis,
        /// The name of the principal that sent the reply.
        principal: &'a str,
        /// The details of the attempt.
        details: &'a [u8],
    },
}
