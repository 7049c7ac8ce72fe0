//! What a turn writes: the journal's entries, owned until the turn is over.

use std::sync::Arc;

use aaep::SessionId;
use journal::{Entry, Position};
use seal::UnixMillis;

/// One entry of the journal, owned.
#[derive(Clone, Debug)]
pub(crate) enum Write {
    Event {
        position: u64,
        session: SessionId,
        event_id: Arc<str>,
        at: UnixMillis,
        critical: bool,
        body: String,
    },
    SessionOpened {
        id: Box<str>,
        agent: Box<str>,
        principal: Box<str>,
        lease: UnixMillis,
        record: String,
    },
    SessionEnded {
        id: Box<str>,
        at: UnixMillis,
    },
    QuestionOpened {
        token: Box<str>,
        session: Box<str>,
        deadline: UnixMillis,
        record: String,
    },
    DeadlineMoved {
        token: Box<str>,
        deadline: UnixMillis,
    },
    Decided {
        token: Box<str>,
        decision: String,
        by: &'static str,
        receipt: String,
        at: UnixMillis,
    },
    Spent {
        token: Box<str>,
        call: String,
        at: UnixMillis,
    },
    SubscriptionOpened {
        id: Box<str>,
        principal: Box<str>,
        record: String,
    },
    SubscriptionChanged {
        id: Box<str>,
        record: String,
    },
    SubscriptionClosed {
        id: Box<str>,
    },
    Idempotent {
        principal: Box<str>,
        key: Box<str>,
        request: Vec<u8>,
        response: String,
        at: UnixMillis,
    },
    Attempt {
        at: UnixMillis,
        subscription: Box<str>,
        what: String,
    },
}

impl Write {
    /// As the journal takes it.
    pub(crate) fn entry(&self) -> Entry<'_> {
        match self {
            Self::Event { position, session, event_id, at, critical, body } => Entry::Event {
                position: Position::new(*position),
                session: session.as_str(),
                event_id,
                at: *at,
                critical: *critical,
                body: body.as_bytes(),
            },
            Self::SessionOpened { id, agent, principal, lease, record } => {
                Entry::SessionOpened { id, agent, principal, lease: *lease, record: record.as_bytes() }
            }
            Self::SessionEnded { id, at } => Entry::SessionEnded { id, at: *at },
            Self::QuestionOpened { token, session, deadline, record } => {
                Entry::QuestionOpened { token, session, deadline: *deadline, record: record.as_bytes() }
            }
            Self::DeadlineMoved { token, deadline } => Entry::DeadlineMoved { token, deadline: *deadline },
            Self::Decided { token, decision, by, receipt, at } => {
                Entry::Decided { token, decision, by, receipt: receipt.as_bytes(), at: *at }
            }
            Self::Spent { token, call, at } => Entry::Spent { token, call: call.as_bytes(), at: *at },
            Self::SubscriptionOpened { id, principal, record } => {
                Entry::SubscriptionOpened { id, principal, record: record.as_bytes() }
            }
            Self::SubscriptionChanged { id, record } => {
                Entry::SubscriptionChanged { id, record: record.as_bytes() }
            }
            Self::SubscriptionClosed { id } => Entry::SubscriptionClosed { id },
            Self::Idempotent { principal, key, request, response, at } => {
                Entry::Idempotent { principal, key, request, response: response.as_bytes(), at: *at }
            }
            Self::Attempt { at, subscription, what } => {
                Entry::Attempt { at: *at, subscription, what: what.as_bytes() }
            }
        }
    }
}
