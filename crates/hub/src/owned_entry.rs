//! Journal entries that a turn collects before it writes them.

use std::sync::Arc;

use aaep::consent::ResolvedBy;
use aaep::{ReplyToken, SessionId, SubscriptionId};
use journal::{JournalEntry, Position};
use seal::UnixMillis;

use crate::command::HandoffResult;

/// An owned journal entry.
#[derive(Clone, Debug)]
pub(crate) enum OwnedEntry {
    Event {
        position: u64,
        session: SessionId,
        event_id: Arc<str>,
        at: UnixMillis,
        is_critical: bool,
        body: String,
    },
    SessionOpened {
        id: SessionId,
        agent: Box<str>,
        principal: Box<str>,
        lease_expires_at: UnixMillis,
        record: String,
    },
    SessionTouched {
        id: SessionId,
        lease_expires_at: UnixMillis,
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
    QuestionDecided {
        token: ReplyToken,
        decision: String,
        by: ResolvedBy,
        receipt: String,
        at: UnixMillis,
    },
    DecisionSpent {
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
    ResponseStored {
        principal: Box<str>,
        key: Box<str>,
        request: Vec<u8>,
        response: String,
        at: UnixMillis,
    },
    HandoffOpened {
        token: ReplyToken,
        session: SessionId,
        deadline: UnixMillis,
        record: String,
    },
    HandoffDecided {
        token: ReplyToken,
        result: HandoffResult,
        receipt: String,
        at: UnixMillis,
    },
    ManifestStored {
        agent: Arc<str>,
        record: Option<String>,
    },
    ReplyAttempted {
        at: UnixMillis,
        principal: Box<str>,
        result: String,
    },
}

impl OwnedEntry {
    /// Borrows the entry in the form that the journal accepts.
    pub(crate) fn as_entry(&self) -> JournalEntry<'_> {
        match self {
            Self::Event { position, session, event_id, at, is_critical, body } => JournalEntry::Event {
                position: Position::new(*position),
                session: session.as_str(),
                event_id,
                at: *at,
                is_critical: *is_critical,
                body: body.as_bytes(),
            },
            Self::SessionOpened { id, agent, principal, lease_expires_at, record } => {
                JournalEntry::SessionOpened {
                    id: id.as_str(),
                    agent,
                    principal,
                    lease_expires_at: *lease_expires_at,
                    record: record.as_bytes(),
                }
            }
            Self::SessionTouched { id, lease_expires_at, record } => JournalEntry::SessionTouched {
                id: id.as_str(),
                lease_expires_at: *lease_expires_at,
                record: Some(record.as_bytes()),
            },
            Self::SessionEnded { id, at } => JournalEntry::SessionEnded { id: id.as_str(), at: *at },
            // The journal stores a hand-off like a question; its record says which of the two it is.
            Self::QuestionOpened { token, session, deadline, record }
            | Self::HandoffOpened { token, session, deadline, record } => JournalEntry::QuestionOpened {
                token: token.as_str(),
                session: session.as_str(),
                deadline: *deadline,
                record: record.as_bytes(),
            },
            Self::DeadlineMoved { token, deadline } => {
                JournalEntry::DeadlineMoved { token: token.as_str(), deadline: *deadline }
            }
            Self::QuestionDecided { token, decision, by, receipt, at } => JournalEntry::QuestionDecided {
                token: token.as_str(),
                decision,
                decided_by: by.as_str(),
                receipt: receipt.as_bytes(),
                at: *at,
            },
            Self::HandoffDecided { token, result, receipt, at } => JournalEntry::QuestionDecided {
                token: token.as_str(),
                decision: result.as_str(),
                decided_by: result.as_str(),
                receipt: receipt.as_bytes(),
                at: *at,
            },
            Self::DecisionSpent { token, call, at } => {
                JournalEntry::DecisionSpent { token: token.as_str(), call: call.as_bytes(), at: *at }
            }
            Self::SubscriptionOpened { id, principal, record } => {
                JournalEntry::SubscriptionOpened { id: id.as_str(), principal, record: record.as_bytes() }
            }
            Self::SubscriptionChanged { id, record } => {
                JournalEntry::SubscriptionChanged { id: id.as_str(), record: record.as_bytes() }
            }
            Self::SubscriptionClosed { id } => JournalEntry::SubscriptionClosed { id: id.as_str() },
            Self::ResponseStored { principal, key, request, response, at } => JournalEntry::ResponseStored {
                principal,
                key,
                request,
                response: response.as_bytes(),
                at: *at,
            },
            Self::ManifestStored { agent, record } => {
                JournalEntry::ManifestStored { agent, record: record.as_ref().map(String::as_bytes) }
            }
            Self::ReplyAttempted { at, principal, result } => {
                JournalEntry::ReplyAttempted { at: *at, principal, details: result.as_bytes() }
            }
        }
    }
}
