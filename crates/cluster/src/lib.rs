//! Decides which node of a cluster owns which shard.
//!
//! Nodes know each other only through a table in the shared database ([`TableSnapshot`]). It names the owner of each
//! shard, the epoch of the ownership, and the end of the owner's lease by the clock of the database. A [`Membership`] is the
//! state machine of one node: it renews its leases, acquires free shards up to its fair share, and gives shards away when
//! an operator asks for it or the node stops.
//!
//! The state machine prevents nothing by itself, because a paused process cannot know that its lease has ended. What
//! prevents two writers is the epoch: every acquisition raises it, and every commit of a shard checks it in the same
//! transaction. The lease only decides when another node may acquire the shard.
//!
//! There is no I/O and no clock in this crate. The caller of [`Membership`]
//!
//! 1. passes every input with the current time to [`Membership::handle`],
//! 2. performs all actions from [`Membership::next_action`], and
//! 3. calls [`Membership::handle`] with [`Input::Timeout`] at [`Membership::next_deadline`].
//!
//! Times are durations since an arbitrary moment, by a clock that never goes back. They are never compared with the clock of
//! the database or of another node.
//!
//! ```
//! use std::time::Duration;
//! use cluster::{Action, InstanceId, Input, Membership, NodeConfig, Query};
//!
//! let config = NodeConfig { name: "a".to_owned(), instance: InstanceId([1; 8]), lease: Duration::from_secs(5) };
//! let mut node = Membership::new(config);
//! node.handle(Input::Timeout, Duration::ZERO);
//! let Some(Action::Query(_, Query::Heartbeat { renew, .. })) = node.next_action() else { unreachable!() };
//! assert!(renew.is_empty());
//! ```

mod balance;
mod membership;
mod query;
mod table;

pub use membership::{Action, Input, Membership, NodeConfig, StopReason};
pub use query::{Answer, Query, QueryId};
pub use table::{InstanceId, LeaseToken, NodeEntry, ShardEntry, ShardId, ShardOwner, TableSnapshot};
