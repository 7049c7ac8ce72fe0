//! States, roles, timers and the two readings.

use std::fmt;

/// Where a session is.
///
/// ```text
///                    ┌────────────┐   any live state: CLOSE, WITHDRAW ──► CLOSED
///  IDLE ─► INVITED ─►│ INTRODUCED │   any live state: ESCALATE ─► ESCALATED ─► back
///             │      └─────┬──────┘   any live state: timeout, broken chain ─► FAILED
///             ▼            ▼
///          FAILED     CONVERSING ◄─► AGREEING ─► EXECUTING ─► CLOSED
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// There is no session yet.
    Idle,
    /// An invitation was sent. It has two inner steps: unanswered, then identifying (D2).
    Invited,
    /// Both sides know each other.
    Introduced,
    /// They negotiate.
    Conversing,
    /// A COMMIT waits for its answer.
    Agreeing,
    /// What was agreed is being done.
    Executing,
    /// Somebody outside decides; the session stands still.
    Escalated,
    /// Ended in order.
    Closed,
    /// Ended out of order.
    Failed,
}

impl State {
    /// All nine.
    pub const ALL: [Self; 9] = [
        Self::Idle,
        Self::Invited,
        Self::Introduced,
        Self::Conversing,
        Self::Agreeing,
        Self::Executing,
        Self::Escalated,
        Self::Closed,
        Self::Failed,
    ];

    /// Those in which a session lives: all but IDLE and the two ends (D3).
    pub const LIVE: [Self; 6] =
        [Self::Invited, Self::Introduced, Self::Conversing, Self::Agreeing, Self::Executing, Self::Escalated];

    /// The page's word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Idle => "IDLE",
            Self::Invited => "INVITED",
            Self::Introduced => "INTRODUCED",
            Self::Conversing => "CONVERSING",
            Self::Agreeing => "AGREEING",
            Self::Executing => "EXECUTING",
            Self::Escalated => "ESCALATED",
            Self::Closed => "CLOSED",
            Self::Failed => "FAILED",
        }
    }

    /// Whether nothing can follow.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Closed | Self::Failed)
    }

    /// Whether a session lives in it.
    pub fn is_live(self) -> bool {
        Self::LIVE.contains(&self)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// A side of the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// The side that sent the invitation.
    Inviter,
    /// The side that it was sent to.
    Invited,
}

impl Role {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Inviter, Self::Invited];

    /// The other side.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::Inviter => Self::Invited,
            Self::Invited => Self::Inviter,
        }
    }

    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Inviter => "inviter",
            Self::Invited => "invited",
        }
    }

    pub(crate) fn index(self) -> usize {
        match self {
            Self::Inviter => 0,
            Self::Invited => 1,
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// What runs out (D9).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Timer {
    /// For the invitation to be answered and both sides to be known.
    Invitation,
    /// For the session as a whole.
    Session,
    /// For an answer to a message that set a time for it; it moves nothing.
    Response,
    /// For an escalation to be decided.
    Escalation,
}

impl Timer {
    /// All four.
    pub const ALL: [Self; 4] = [Self::Invitation, Self::Session, Self::Response, Self::Escalation];

    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Invitation => "invitation",
            Self::Session => "session",
            Self::Response => "response",
            Self::Escalation => "escalation",
        }
    }
}

impl fmt::Display for Timer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// What "any state" means (D3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reading {
    /// Every live state: CLOSE, WITHDRAW and ESCALATE work there.
    #[default]
    Open,
    /// Only what the page's list of performatives for each state names.
    Table,
}

impl Reading {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Open, Self::Table];
}
