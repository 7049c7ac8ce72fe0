//! Records that can be read back.

use seal::UnixMillis;

use crate::Position;

/// The state that a hub needs to continue after a restart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LiveState {
    /// Open sessions, in the order in which they were opened.
    pub sessions: Vec<OpenSession>,
    /// Undecided questions, ordered by token.
    pub questions: Vec<OpenQuestion>,
    /// Unspent decisions of open sessions, ordered by token.
    pub unspent_decisions: Vec<StoredDecision>,
    /// Open subscriptions, ordered by id.
    pub subscriptions: Vec<OpenSubscription>,
    /// The manifests of agents, ordered by agent.
    pub manifests: Vec<StoredManifest>,
    /// The position of the last event ever written.
    pub last_position: Position,
    /// Events up to this position may have been deleted; all later events are stored.
    pub trimmed_up_to: Position,
    /// Whether the journal was restored from a backup or has lost entries, and nothing was written since. An unspent
    /// decision may then have been spent before, so the caller must void all of them before it writes anything else.
    pub must_void_consents: bool,
}

/// A stored event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredEvent {
    /// Its position in the log.
    pub position: Position,
    /// The session to which it belongs.
    pub session: String,
    /// The event's id.
    pub event_id: String,
    /// The time of the entry.
    pub at: UnixMillis,
    /// Whether the event is critical.
    pub is_critical: bool,
    /// The event as sent.
    pub body: Vec<u8>,
}

/// The data of a session. It changes only while the session is open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenSession {
    /// Its id.
    pub id: String,
    /// The agent.
    pub agent: String,
    /// The principal that owns the session.
    pub principal: String,
    /// When the session's lease expires.
    pub lease_expires_at: UnixMillis,
    /// Opaque data supplied by the caller.
    pub record: Vec<u8>,
}

/// A session, whether or not it has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredSession {
    /// The session's data.
    pub session: OpenSession,
    /// Whether it has ended.
    pub is_ended: bool,
}

/// An undecided question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenQuestion {
    /// The question's reply token.
    pub token: String,
    /// The session that asks.
    pub session: String,
    /// The deadline for an answer.
    pub deadline: UnixMillis,
    /// Opaque data supplied by the caller.
    pub record: Vec<u8>,
}

/// A decided question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredDecision {
    /// The question's reply token.
    pub token: String,
    /// The session that asked.
    pub session: String,
    /// The deadline, including any extensions.
    pub deadline: UnixMillis,
    /// Opaque data supplied by the caller.
    pub record: Vec<u8>,
    /// The decision, in the caller's vocabulary.
    pub decision: String,
    /// What decided the question, in the caller's vocabulary.
    pub decided_by: String,
    /// The receipt.
    pub receipt: Vec<u8>,
    /// When the question was decided.
    pub decided_at: UnixMillis,
    /// The call on which the decision was spent, if any.
    pub spent_on: Option<DecisionUse>,
}

/// The use of a decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecisionUse {
    /// The call on which the decision was spent.
    pub call: Vec<u8>,
    /// When the decision was spent.
    pub at: UnixMillis,
}

/// An open subscription.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenSubscription {
    /// Its id.
    pub id: String,
    /// The principal that listens.
    pub principal: String,
    /// Opaque data supplied by the caller.
    pub record: Vec<u8>,
    /// The listener has received everything up to this position.
    pub cursor: Position,
}

/// The manifest of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredManifest {
    /// The agent.
    pub agent: String,
    /// Opaque data supplied by the caller.
    pub record: Vec<u8>,
}

/// The stored response to a request with an idempotency key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredResponse {
    /// The digest of the request.
    pub request: Vec<u8>,
    /// The response.
    pub response: Vec<u8>,
    /// When the response was stored.
    pub at: UnixMillis,
}
