//! Several nodes that serve the shards of one hub.
//!
//! Each shard runs on one node, its owner. Every node accepts every request, and its [`ShardRouter`] sends it to the owner. A
//! listener's stream stays on the node that it connected to, and the owner sends each frame once to each node that has a listener
//! for it. When a shard moves, the node attaches its listeners and agent connections to the new owner, from where they were.
//!
//! - [`ShardRouter`]: the shards as one node sees them. The caller decides which shard runs where.
//! - `slot`: one shard, with the requests that wait for it.
//! - `standing`: what must be set up again when a shard moves.
//! - `hosted`: a shard that runs on this node.
//! - `node_sessions`, `node_number`: the nodes that send requests to this one.
//! - `peer`: the connection to a node that owns shards.
//! - `connection`, `protocol`: messages between two nodes.
//! - [`ClusterKey`]: how nodes authenticate to each other.

mod connection;
mod hosted;
mod key;
mod limits;
mod node_number;
mod node_sessions;
mod peer;
mod protocol;
mod router;
mod slot;
mod standing;

pub use key::{ClusterKey, ClusterKeyError};
pub use limits::RouterLimits;
pub use router::{ShardRouter, ShardStop};
pub use slot::ShardLocation;
