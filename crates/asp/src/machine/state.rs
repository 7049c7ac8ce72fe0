//! States, roles, timers and the two readings.

seal::word_enum! {
    /// Where a session is.
    ///
    /// ```text
    ///                    ┌────────────┐   any live state: CLOSE, WITHDRAW ──► CLOSED
    ///  IDLE ─► INVITED ─►│ INTRODUCED │   any live state: ESCALATE ─► ESCALATED ─► back
    ///             │      └─────┬──────┘   any live state: timeout, broken chain ─► FAILED
    ///             ▼            ▼
    ///          FAILED     CONVERSING ◄─► AGREEING ─► EXECUTING ─► CLOSED
    /// ```
    State word {
        /// There is no session yet.
        Idle "IDLE",
        /// An invitation was sent. It has two inner steps: unanswered, then identifying (D2).
        Invited "INVITED",
        /// Both sides know each other.
        Introduced "INTRODUCED",
        /// They negotiate.
        Conversing "CONVERSING",
        /// A COMMIT waits for its answer.
        Agreeing "AGREEING",
        /// What was agreed is being done.
        Executing "EXECUTING",
        /// Somebody outside decides; the session stands still.
        Escalated "ESCALATED",
        /// Ended in order.
        Closed "CLOSED",
        /// Ended out of order.
        Failed "FAILED",
    }
}

impl State {
    /// Those in which a session lives: all but IDLE and the two ends (D3).
    pub const LIVE: [Self; 6] =
        [Self::Invited, Self::Introduced, Self::Conversing, Self::Agreeing, Self::Executing, Self::Escalated];

    /// Whether nothing can follow.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Closed | Self::Failed)
    }

    /// Whether a session lives in it.
    pub fn is_live(self) -> bool {
        Self::LIVE.contains(&self)
    }
}

seal::word_enum! {
    /// A side of the session.
    Role word {
        /// The side that sent the invitation.
        Inviter "inviter",
        /// The side that it was sent to.
        Invited "invited",
    }
}

impl Role {
    /// The other side.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::Inviter => Self::Invited,
            Self::Invited => Self::Inviter,
        }
    }

    pub(crate) fn index(self) -> usize {
        match self {
            Self::Inviter => 0,
            Self::Invited => 1,
        }
    }
}

seal::word_enum! {
    /// What runs out (D9).
    Timer word {
        /// For the invitation to be answered and both sides to be known.
        Invitation "invitation",
        /// For the session as a whole.
        Session "session",
        /// For an answer to a message that set a time for it; it moves nothing.
        Response "response",
        /// For an escalation to be decided.
        Escalation "escalation",
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
