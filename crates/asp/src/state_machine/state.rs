//! States, roles, timers and the two interpretations of "any state".

seal::string_enum! {
    /// The state of a session.
    ///
    /// ```text
    ///                    ┌────────────┐   any live state: CLOSE, WITHDRAW ──► CLOSED
    ///  IDLE ─► INVITED ─►│ INTRODUCED │   any live state: ESCALATE ─► ESCALATED ─► back
    ///             │      └─────┬──────┘   any live state: timeout, broken chain ─► FAILED
    ///             ▼            ▼
    ///          FAILED     CONVERSING ◄─► AGREEING ─► EXECUTING ─► CLOSED
    /// ```
    State {
        /// No session exists yet.
        Idle "IDLE",
        /// An invitation was sent. First it is accepted, then both sides identify themselves (D2).
        Invited "INVITED",
        /// Both sides have identified themselves.
        Introduced "INTRODUCED",
        /// The sides negotiate.
        Conversing "CONVERSING",
        /// A COMMIT awaits its answer.
        Agreeing "AGREEING",
        /// The agreement is being carried out.
        Executing "EXECUTING",
        /// A third party decides. Only the escalation timer runs.
        Escalated "ESCALATED",
        /// The session ended normally.
        Closed "CLOSED",
        /// The session ended abnormally.
        Failed "FAILED",
    }
}

impl State {
    /// The live states: all except IDLE and the two terminal states (D3).
    pub const LIVE: [Self; 6] =
        [Self::Invited, Self::Introduced, Self::Conversing, Self::Agreeing, Self::Executing, Self::Escalated];

    /// Returns whether no transition leaves this state.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Closed | Self::Failed)
    }

    /// Returns whether this is a live state.
    pub fn is_live(self) -> bool {
        Self::LIVE.contains(&self)
    }
}

seal::string_enum! {
    /// A side of the session.
    Role {
        /// The side that sent the invitation.
        Inviter "inviter",
        /// The side that received the invitation.
        Invited "invited",
    }
}

impl Role {
    /// Returns the other side.
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

seal::string_enum! {
    /// The timers of a session (D9, D21).
    Timer {
        /// Limits the time to answer the invitation and identify both sides.
        Invitation "invitation",
        /// Limits the time between the introduction and the first message of the conversation (D21).
        Introduction "introduction",
        /// Limits the duration of the session.
        Session "session",
        /// Limits the time for a response, if a message sets such a limit. Its expiry does not change the state.
        Response "response",
        /// Limits the time to decide an escalation.
        Escalation "escalation",
    }
}

/// Which states "any state" on npayload's page covers (D3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AnyStateInterpretation {
    /// Every live state. CLOSE and WITHDRAW are allowed in each, and ESCALATE in each except ESCALATED.
    #[default]
    EveryLiveState,
    /// Only the states for which npayload's page lists the performative.
    ListedOnly,
}

impl AnyStateInterpretation {
    /// Both interpretations.
    pub const ALL: [Self; 2] = [Self::EveryLiveState, Self::ListedOnly];
}
