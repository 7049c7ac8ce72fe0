//! What can be read back.

use seal::UnixMillis;

use crate::Position;

/// What a hub needs to go on where it was.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Alive {
    /// Open sessions, in the order in which they were opened.
    pub sessions: Vec<OpenSession>,
    /// Undecided questions, by token.
    pub questions: Vec<OpenQuestion>,
    /// Decisions of open sessions that are not spent, by token.
    pub unspent: Vec<StoredDecision>,
    /// Open subscriptions, by id.
    pub subscriptions: Vec<OpenSubscription>,
    /// The position of the last event ever written.
    pub last: Position,
    /// Every event after this is there. A cursor before it has missed some.
    pub floor: Position,
}

/// An event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredEvent {
    /// Where it is.
    pub position: Position,
    /// The session that it belongs to.
    pub session: String,
    /// Its own id.
    pub event_id: String,
    /// When.
    pub at: UnixMillis,
    /// Whether it is critical.
    pub critical: bool,
    /// The event as it is sent.
    pub body: Vec<u8>,
}

/// A session that has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenSession {
    /// Its id.
    pub id: String,
    /// The agent.
    pub agent: String,
    /// Who owns it.
    pub principal: String,
    /// Until when the agent counts as there.
    pub lease: UnixMillis,
    /// The caller's own.
    pub record: Vec<u8>,
}

/// A session, whether or not it has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredSession {
    /// As it was opened.
    pub opened: OpenSession,
    /// Whether it has ended.
    pub ended: bool,
}

/// A question that nobody has answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenQuestion {
    /// Its token.
    pub token: String,
    /// The session that asks.
    pub session: String,
    /// Until when it can be answered.
    pub deadline: UnixMillis,
    /// The caller's own.
    pub record: Vec<u8>,
}

/// A question and its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredDecision {
    /// The question's token.
    pub token: String,
    /// The session that asked.
    pub session: String,
    /// The deadline that it had in the end.
    pub deadline: UnixMillis,
    /// The caller's own.
    pub record: Vec<u8>,
    /// What was decided.
    pub decision: String,
    /// By what.
    pub by: String,
    /// The proof.
    pub receipt: Vec<u8>,
    /// When.
    pub at: UnixMillis,
    /// What it was spent on.
    pub spent: Option<Spending>,
}

/// What a decision was spent on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spending {
    /// The call.
    pub call: Vec<u8>,
    /// When.
    pub at: UnixMillis,
}

/// A subscription that is not closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenSubscription {
    /// Its id.
    pub id: String,
    /// Who listens.
    pub principal: String,
    /// The caller's own.
    pub record: Vec<u8>,
    /// The listener has everything up to here.
    pub cursor: Position,
}

/// What was answered to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remembered {
    /// The digest of the request.
    pub request: Vec<u8>,
    /// The answer.
    pub response: Vec<u8>,
    /// When.
    pub at: UnixMillis,
}
