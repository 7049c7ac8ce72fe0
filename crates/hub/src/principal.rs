//! Callers of the hub, their roles and permissions.

use std::sync::Arc;

use seal::{Digest, UnixMillis};
use serde::{Deserialize, Serialize};

use crate::Scope;
use crate::encoding::{millis, millis_option, text_form, text_option};

/// The role of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Publishes as one agent.
    Agent,
    /// Receives events and answers questions.
    Listener,
    /// Like a listener, and may also take over from agents.
    Receiver,
    /// Receives events but cannot answer.
    Observer,
    /// Operates the hub. May also do what a receiver may.
    Admin,
}

impl Role {
    /// All roles.
    pub const ALL: [Self; 5] = [Self::Agent, Self::Listener, Self::Receiver, Self::Observer, Self::Admin];

    /// Returns the role's name in tokens and configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Listener => "listener",
            Self::Receiver => "receiver",
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
        matches!(self, Self::Listener | Self::Receiver | Self::Observer | Self::Admin)
    }

    /// Whether the role's answers count.
    pub fn can_answer(self) -> bool {
        matches!(self, Self::Listener | Self::Receiver | Self::Admin)
    }

    /// Whether the role may take over from agents.
    pub fn can_take_handoffs(self) -> bool {
        matches!(self, Self::Receiver | Self::Admin)
    }
}

/// Who vouches for the name that listeners hear for an agent (`producer.agent_name`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum AgentNaming {
    /// Nobody: the agent names itself.
    #[default]
    SelfDeclared,
    /// The token, which has this name. The agent cannot change it.
    Token(Arc<str>),
    /// The program that runs the hub: the agent is a part of it and names itself.
    InProcess,
}

/// A browser's sign-in. The browser presents it instead of the token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SignIn {
    /// The random id of the sign-in.
    pub id: [u8; 16],
    /// When the browser must sign in again.
    #[serde(with = "millis")]
    pub expires_at: UnixMillis,
}

/// A caller that presented a token, or that needs none.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Principal {
    /// The token's name. All holders of a token share the principal's sessions and subscriptions.
    pub name: Arc<str>,
    /// The principal's role.
    #[serde(with = "text_form")]
    pub role: Role,
    /// The agent that the principal publishes as. If absent, the principal may publish as any agent (`--open`).
    pub agent_id: Option<Arc<str>>,
    /// The sessions that the principal may receive.
    pub scope: Arc<Scope>,
    /// Whether this is [`Self::local`], which may act both as an agent and as a listener.
    pub is_local: bool,
    /// The hash of the token that the principal presented, if any.
    #[serde(default, with = "text_option")]
    pub token_digest: Option<Digest>,
    /// When the token expires, if ever.
    #[serde(default, with = "millis_option")]
    pub expires_at: Option<UnixMillis>,
    /// The browser sign-in that stands for the token, if any.
    pub sign_in: Option<SignIn>,
    /// Who vouches for the agent's name.
    pub naming: AgentNaming,
}

impl Principal {
    /// Returns the principal of all callers that need no token: clients of a hub with `--open`, listeners on the Unix
    /// socket and on stdio, and the program that runs the hub.
    pub fn local() -> Self {
        Self {
            name: "local".into(),
            role: Role::Admin,
            agent_id: None,
            scope: Arc::default(),
            is_local: true,
            token_digest: None,
            expires_at: None,
            sign_in: None,
            naming: AgentNaming::SelfDeclared,
        }
    }

    /// Whether the principal presented a token. Limits per token apply neither to [`Self::local`] nor to an agent in the
    /// hub's own process.
    pub fn has_token(&self) -> bool {
        self.token_digest.is_some()
    }

    /// Whether both have the same token with the same rights. Their browser sign-ins may differ.
    pub fn has_same_token(&self, other: &Self) -> bool {
        let Self { name, role, agent_id, scope, is_local, token_digest, expires_at, sign_in: _, naming } =
            self;
        token_digest.is_some()
            && *token_digest == other.token_digest
            && *name == other.name
            && *role == other.role
            && *agent_id == other.agent_id
            && *scope == other.scope
            && *is_local == other.is_local
            && *expires_at == other.expires_at
            && *naming == other.naming
    }

    /// Returns the owner that is stored with what the principal creates: its name and the hash of its token. If an
    /// operator replaces a token by another one with the same name, the new token is another owner.
    pub fn owner(&self) -> String {
        match &self.token_digest {
            Some(digest) => format!("{}#{digest}", self.name),
            None => self.name.to_string(),
        }
    }

    /// Whether this is the stored owner. Does the same as comparing with [`Self::owner`], without building the text
    /// unless the name is equal.
    pub fn is_owner(&self, stored: &str) -> bool {
        stored.strip_prefix(&*self.name).is_some_and(|hash| match &self.token_digest {
            Some(digest) => hash.strip_prefix('#').and_then(Digest::parse) == Some(*digest),
            None => hash.is_empty(),
        })
    }

    /// Returns when the principal's token or browser sign-in expires, whichever is first.
    pub fn valid_until(&self) -> Option<UnixMillis> {
        self.expires_at.into_iter().chain(self.sign_in.map(|sign_in| sign_in.expires_at)).min()
    }

    /// Whether it may publish as an agent.
    pub fn can_publish(&self) -> bool {
        self.role == Role::Agent || self.is_local
    }
}
