//! The hub: sessions and subscriptions between agents and their listeners.
//!
//! - [`Core`]: the state machine. Each turn handles requests, stores their effects, and returns replies and frames.
//! - [`Engine`]: runs the turns, on its own thread or on the caller's thread.
//! - [`HubLimits`]: the limits that the hub enforces.
//! - [`command`]: requests to the hub and its replies.
//! - [`delivery`]: queues of frames, and the position of each listener in a queue.
//! - [`encoding`]: the form in which nodes of a cluster send requests and outputs to each other.
//! - [`manifests`]: the manifests of agents.
//! - [`Principal`]: a caller of the hub and its permissions.
//! - [`Shard`], [`ShardMap`]: several cores that share the work of one hub.
//! - [`telemetry`]: counters and log events for operators.

mod agent_findings;
mod bound_arguments;
pub mod command;
mod compose;
mod core;
pub mod delivery;
pub mod encoding;
mod engine;
mod limits;
pub mod manifests;
mod owned_entry;
mod principal;
mod reply;
mod scope;
mod shards;
pub mod telemetry;

pub use agent_findings::agent_message;
pub use bound_arguments::ArgumentLimits;
pub use core::{Core, DEFAULT_LANGUAGE};
pub use engine::Engine;
pub use limits::{HandoffLimits, HubLimits};
pub use principal::{AgentNaming, Principal, Role, SignIn};
pub use scope::{InvalidScope, Scope};
pub use shards::{ResumeCursor, Shard, ShardMap, SharedLimits, StartRoute};
pub use telemetry::HubMetrics;

/// Identifies a delivery group: all listeners that receive the same events in the same form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeliveryGroupId(pub u64);

impl DeliveryGroupId {
    const SHARD_SHIFT: u32 = 48;

    /// Returns the id before the first id of a shard. No group has it.
    pub fn first_of(shard: u16) -> Self {
        Self(u64::from(shard) << Self::SHARD_SHIFT)
    }

    /// Returns the shard of the group.
    pub fn shard(self) -> u16 {
        u16::try_from(self.0 >> Self::SHARD_SHIFT).unwrap_or(u16::MAX)
    }
}

/// Identifies the connection of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct AgentConnectionId(pub u64);

/// Identifies the connection of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct ListenerId(pub u64);
