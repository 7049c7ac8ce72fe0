//! The thirteen performatives: what a message does.

use std::fmt;

/// What a message does (npayload ASP, "Allowed Performatives Per State").
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Performative {
    /// Offers something; of the type `session-invitation`, a session.
    Propose,
    /// Accepts an invitation, a proposal or a commitment.
    Accept,
    /// Refuses one.
    Reject,
    /// Refuses a proposal or commitment and offers another in its place.
    Counter,
    /// Tells.
    Inform,
    /// Asks for information.
    Query,
    /// Asks what something means, or says it.
    Clarify,
    /// Binds its sender, if the other side accepts.
    Commit,
    /// Hands a part to another agent.
    Delegate,
    /// Remarks on something, expecting nothing.
    Observe,
    /// Takes its sender out of the session.
    Withdraw,
    /// Asks a person or another authority to decide.
    Escalate,
    /// Ends the session.
    Close,
}

impl Performative {
    /// All thirteen, in the order of the page's list for CONVERSING.
    pub const ALL: [Self; 13] = [
        Self::Propose,
        Self::Accept,
        Self::Reject,
        Self::Counter,
        Self::Inform,
        Self::Query,
        Self::Clarify,
        Self::Commit,
        Self::Delegate,
        Self::Observe,
        Self::Withdraw,
        Self::Escalate,
        Self::Close,
    ];

    /// The word on the wire.
    pub fn word(self) -> &'static str {
        match self {
            Self::Propose => "PROPOSE",
            Self::Accept => "ACCEPT",
            Self::Reject => "REJECT",
            Self::Counter => "COUNTER",
            Self::Inform => "INFORM",
            Self::Query => "QUERY",
            Self::Clarify => "CLARIFY",
            Self::Commit => "COMMIT",
            Self::Delegate => "DELEGATE",
            Self::Observe => "OBSERVE",
            Self::Withdraw => "WITHDRAW",
            Self::Escalate => "ESCALATE",
            Self::Close => "CLOSE",
        }
    }

    /// The performative of that word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|performative| performative.word() == word)
    }
}

impl fmt::Display for Performative {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}
