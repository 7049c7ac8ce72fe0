//! What a turn writes: the journal's entries, owned until the turn is over.

use std::sync::Arc;

use aaep::consent::By;
use aaep::{ReplyToken, SessionId, SubscriptionId};
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
        id: SessionId,
        agent: Box<str>,
        principal: Box<str>,
        lease: UnixMillis,
        record: String,
    },
    SessionEnded {
        id: SessionId,
        at: UnixMillis,
    },
    QuestionOpened {
        token: ReplyToken,
        session: SessionId,
        deadline: UnixMillis,
        record: String,
    },
    DeadlineMoved {
        token: ReplyToken,
        deadline: UnixMillis,
    },
    Decided {
        token: ReplyToken,
        decision: String,
        by: By,
        receipt: String,
        at: UnixMillis,
    },
    Spent {
        token: ReplyToken,
        call: String,
        at: UnixMillis,
    },
    SubscriptionOpened {
        id: SubscriptionId,
        principal: Box<str>,
        record: String,
    },
    SubscriptionChanged {
        id: SubscriptionId,
        record: String,
    },
    SubscriptionClosed {
        id: SubscriptionId,
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
            Self::SessionOpened { id, agent, principal, lease, record } => Entry::SessionOpened {
                id: id.as_str(),
                agent,
                principal,
                lease: *lease,
                record: record.as_bytes(),
            },
            Self::SessionEnded { id, at } => Entry::SessionEnded { id: id.as_str(), at: *at },
            Self::QuestionOpened { token, session, deadline, record } => Entry::QuestionOpened {
                token: token.as_str(),
                session: session.as_str(),
                deadline: *deadline,
                record: record.as_bytes(),
            },
            Self::DeadlineMoved { token, deadline } => {
                Entry::DeadlineMoved { token: token.as_str(), deadline: *deadline }
            }
            Self::Decided { token, decision, by, receipt, at } => Entry::Decided {
                token: token.as_str(),
                decision,
                by: by.as_str(),
                receipt: receipt.as_bytes(),
                at: *at,
            },
            Self::Spent { token, call, at } => {
                Entry::Spent { token: token.as_str(), call: call.as_bytes(), at: *at }
            }
            Self::SubscriptionOpened { id, principal, record } => {
                Entry::SubscriptionOpened { id: id.as_str(), principal, record: record.as_bytes() }
            }
            Self::SubscriptionChanged { id, record } => {
                Entry::SubscriptionChanged { id: id.as_str(), record: record.as_bytes() }
            }
            Self::SubscriptionClosed { id } => Entry::SubscriptionClosed { id: id.as_str() },
            Self::Idempotent { principal, key, request, response, at } => {
                Entry::Idempotent { principal, key, request, response: response.as_bytes(), at: *at }
            }
            Self::Attempt { at, subscription, what } => {
                Entry::Attempt { at: *at, subscription, what: what.as_bytes() }
            }
        }
    }
}
