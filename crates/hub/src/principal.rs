//! Authenticated callers, their roles and permissions.

use std::sync::Arc;

use seal::Digest;

use crate::Scope;

/// The role of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Publishes as one agent.
    Agent,
    /// Receives events and answers questions.
    Listener,
    /// Receives events but cannot answer.
    Observer,
    /// Operates the hub.
    Admin,
}

impl Role {
    /// All roles.
    pub const ALL: [Self; 4] = [Self::Agent, Self::Listener, Self::Observer, Self::Admin];

    /// Returns the role's name in tokens and configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Listener => "listener",
            Self::Observer => "observer",
            Self::Admin => "admin",
        }
    }

    /// Returns the role with this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == name)
    }

    /// Whether the role may subscribe.
    pub fn can_subscribe(self) -> bool {
        matches!(self, Self::Listener | Self::Observer | Self::Admin)
    }

    /// Whether the role's answers count.
    pub fn can_answer(self) -> bool {
        matches!(self, Self::Listener | Self::Admin)
    }
}

/// A caller that presented a token, or that needs none.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Principal {
    /// The token's name. All holders of a token share the principal's sessions and subscriptions.
    pub name: Arc<str>,
    /// The principal's role.
    pub role: Role,
    /// The agent that the principal publishes as. If absent, the principal may publish as any agent (`--open`).
    pub agent_id: Option<Arc<str>>,
    /// The sessions that the principal may receive.
    pub scope: Arc<Scope>,
    /// Whether the principal was admitted without a token. If so, it may act both as an agent and as a listener.
    pub is_unauthenticated: bool,
    /// The hash of the token that the principal presented, if any.
    pub token_digest: Option<Digest>,
}

impl Principal {
    /// Returns the principal for every caller when authentication is off.
    pub fn unauthenticated() -> Self {
        Self {
            name: "local".into(),
            role: Role::Admin,
            agent_id: None,
            scope: Arc::default(),
            is_unauthenticated: true,
            token_digest: None,
        }
    }

    /// Whether the principal may publish as an agent.
    pub fn can_publish(&self) -> bool {
        self.role == Role::Agent || self.is_unauthenticated
    }
}
