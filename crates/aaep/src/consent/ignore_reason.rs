//! Reasons for ignoring a message. They are only for the log (§6.3.4, C-D1).

use std::fmt;

use crate::rule::{Finding, Rule};

/// Why a message was ignored. The sender never learns the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum IgnoreReason {
    /// The message is not JSON.
    NotJson,
    /// The message is neither a reply nor one of sayso's own messages.
    NotAReply,
    /// The message is not valid for its type.
    Malformed(Vec<Finding>),
    /// The message names a different subscription than its connection.
    WrongConnection,
    /// The subscription is not open.
    SubscriptionNotOpen,
    /// The subscription belongs to another principal.
    WrongPrincipal,
    /// The subscription may not answer this question, or does not receive this session.
    NotEntitled,
    /// The question does not exist.
    UnknownToken,
    /// A confirmation was answered as a clarification, or the other way round.
    WrongKind,
    /// The question is already resolved.
    AlreadyResolved,
    /// Another change to the question is not committed yet.
    ChangeStaged,
    /// The message arrived after the deadline.
    Late,
    /// The message arrived in time, but its timestamp is after the deadline (C-D3).
    LateTimestamp,
    /// The decision is not one of the allowed replies.
    NotAllowed,
    /// The question does not accept this response.
    InvalidResponse(Rule),
    /// The deadline cannot be extended any further.
    ExtensionExhausted,
    /// The session has ended.
    SessionEnded,
}

impl IgnoreReason {
    /// Returns a short name for metrics and logs. Operators see these names, so they stay the same
    /// when a variant is renamed.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::NotJson => "not_json",
            Self::NotAReply => "not_a_reply",
            Self::Malformed(_) => "malformed",
            Self::WrongConnection => "other_connection",
            Self::SubscriptionNotOpen => "no_subscription",
            Self::WrongPrincipal => "other_identity",
            Self::NotEntitled => "not_entitled",
            Self::UnknownToken => "unknown",
            Self::WrongKind => "other_kind",
            Self::AlreadyResolved => "used",
            Self::ChangeStaged => "pending",
            Self::Late => "late",
            Self::LateTimestamp => "late_stamp",
            Self::NotAllowed => "not_allowed",
            Self::InvalidResponse(_) => "does_not_fit",
            Self::ExtensionExhausted => "no_more_time",
            Self::SessionEnded => "session_over",
        }
    }
}

impl fmt::Display for IgnoreReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed(findings) => {
                write!(f, "malformed")?;
                findings.iter().try_for_each(|finding| write!(f, " {}", finding.rule.id()))
            }
            Self::InvalidResponse(rule) => write!(f, "does_not_fit {}", rule.id()),
            _ => f.write_str(self.as_str()),
        }
    }
}

impl std::error::Error for IgnoreReason {}
