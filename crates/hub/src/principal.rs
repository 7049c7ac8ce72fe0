//! Who is there, and what he may do.

use std::sync::Arc;

use seal::Digest;

use crate::Scope;

/// What a token is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Speaks, as one agent and no other.
    Agent,
    /// Hears and answers.
    Listener,
    /// Hears and cannot answer.
    Observer,
    /// Runs the hub.
    Admin,
}

impl Role {
    /// All four.
    pub const ALL: [Self; 4] = [Self::Agent, Self::Listener, Self::Observer, Self::Admin];

    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Listener => "listener",
            Self::Observer => "observer",
            Self::Admin => "admin",
        }
    }

    /// The role of that word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.word() == word)
    }

    /// Whether it may subscribe.
    pub fn hears(self) -> bool {
        matches!(self, Self::Listener | Self::Observer | Self::Admin)
    }

    /// Whether its answers count.
    pub fn answers(self) -> bool {
        matches!(self, Self::Listener | Self::Admin)
    }
}

/// Somebody who has shown a token, or is let in without one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Principal {
    /// The token's name; what belongs to a principal belongs to all who have its token.
    pub name: Arc<str>,
    /// What it may do.
    pub role: Role,
    /// The agent as which it speaks; an agent without one may speak as any (`--open`).
    pub agent_id: Option<Arc<str>>,
    /// What it may hear.
    pub scope: Arc<Scope>,
    /// Let in without a token: it may be agent and listener at once.
    pub open: bool,
    /// The hash of the token that was shown, if one was.
    pub token: Option<Digest>,
}

impl Principal {
    /// Everybody, where nobody is asked.
    pub fn anybody() -> Self {
        Self {
            name: "local".into(),
            role: Role::Admin,
            agent_id: None,
            scope: Arc::default(),
            open: true,
            token: None,
        }
    }

    /// Whether it may speak as an agent.
    pub fn speaks(&self) -> bool {
        self.role == Role::Agent || self.open
    }
}
