//! Why a message had no effect: for the log, and for nobody else (§6.3.4, C-D1).

use std::fmt;

use crate::rule::{Finding, Rule};

/// Why a message had no effect. The sender is told nothing of it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ignored {
    /// It is not JSON.
    NotJson,
    /// It is no reply, nor one of sayso's own two messages.
    NotAReply,
    /// It is not what its type must be, letter for letter.
    Malformed(Vec<Finding>),
    /// It names another subscription than the one that its connection carries.
    OtherConnection,
    /// Its subscription is not open.
    NoSubscription,
    /// Its subscription is somebody else's.
    OtherIdentity,
    /// Its subscription may not answer this question, or does not hear this session.
    NotEntitled,
    /// There is no such question.
    Unknown,
    /// It answers a confirmation as a clarification, or the other way round.
    OtherKind,
    /// The question is resolved.
    Used,
    /// Something else has just been decided about the question.
    Pending,
    /// It came after the deadline.
    Late,
    /// It came in time, but says that the person decided after the deadline (C-D3).
    LateStamp,
    /// Its decision is none of the allowed replies.
    NotAllowed,
    /// Its response is none that the question accepts.
    DoesNotFit(Rule),
    /// The person has had all the time that can be given.
    NoMoreTime,
    /// The session is over.
    SessionOver,
}

impl Ignored {
    /// One word for it, for counting.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::NotJson => "not_json",
            Self::NotAReply => "not_a_reply",
            Self::Malformed(_) => "malformed",
            Self::OtherConnection => "other_connection",
            Self::NoSubscription => "no_subscription",
            Self::OtherIdentity => "other_identity",
            Self::NotEntitled => "not_entitled",
            Self::Unknown => "unknown",
            Self::OtherKind => "other_kind",
            Self::Used => "used",
            Self::Pending => "pending",
            Self::Late => "late",
            Self::LateStamp => "late_stamp",
            Self::NotAllowed => "not_allowed",
            Self::DoesNotFit(_) => "does_not_fit",
            Self::NoMoreTime => "no_more_time",
            Self::SessionOver => "session_over",
        }
    }
}

impl fmt::Display for Ignored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed(findings) => {
                write!(f, "malformed")?;
                findings.iter().try_for_each(|finding| write!(f, " {}", finding.rule.id()))
            }
            Self::DoesNotFit(rule) => write!(f, "does_not_fit {}", rule.id()),
            _ => f.write_str(self.as_str()),
        }
    }
}

impl std::error::Error for Ignored {}
