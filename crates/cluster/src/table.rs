//! The table of nodes and shards, as one read of the database returned it.

use std::fmt;
use std::time::Duration;

/// The number of a shard, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShardId(pub u16);

impl fmt::Display for ShardId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A random number that identifies one run of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InstanceId(pub [u8; 8]);

/// Identifies one acquisition. No two acquisitions have the same token, so a late renewal or release by an earlier owner
/// has no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseToken {
    /// The process that acquired.
    pub instance: InstanceId,
    /// Counts the acquisitions of the process.
    pub number: u64,
}

impl LeaseToken {
    /// Returns the token as it is stored.
    pub fn to_bytes(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        let (instance, number) = bytes.split_at_mut(8);
        instance.copy_from_slice(&self.instance.0);
        number.copy_from_slice(&self.number.to_be_bytes());
        bytes
    }

    /// Reads a stored token.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (instance, number) = bytes.split_first_chunk::<8>()?;
        let number = u64::from_be_bytes(number.try_into().ok()?);
        Some(Self { instance: InstanceId(*instance), number })
    }
}

/// A node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeEntry {
    /// Its name, which is unique in the cluster.
    pub name: String,
    /// The run of its process.
    pub instance: InstanceId,
    /// Where other nodes reach it.
    pub address: String,
    /// How long it counts as alive without another heartbeat. Zero if its time has passed.
    pub remaining: Duration,
    /// Whether it gives its shards away and acquires none.
    pub is_draining: bool,
    /// Whether an operator has asked it to drain.
    pub drain_requested: bool,
}

impl NodeEntry {
    /// Whether the node may acquire shards.
    pub fn can_own(&self) -> bool {
        !self.remaining.is_zero() && !self.is_draining && !self.drain_requested
    }
}

/// A shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardEntry {
    /// The shard.
    pub shard: ShardId,
    /// The epoch of the last acquisition.
    pub epoch: i64,
    /// The owner, until it releases the shard or another node acquires it.
    pub owner: Option<ShardOwner>,
    /// How long the owner's lease lasts without a renewal. Zero if it has ended.
    pub remaining: Duration,
}

impl ShardEntry {
    /// Whether any node may acquire the shard.
    pub fn is_free(&self) -> bool {
        self.owner.is_none() || self.remaining.is_zero()
    }
}

/// The owner of a shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardOwner {
    /// The name of the node.
    pub name: String,
    /// Where other nodes reach it.
    pub address: String,
    /// Its acquisition. `None` if something other than a cluster node owns the shard.
    pub token: Option<LeaseToken>,
}

/// All nodes and shards at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableSnapshot {
    /// The nodes, including those that have ended without leaving.
    pub nodes: Vec<NodeEntry>,
    /// The shards. Their number is fixed when the table is created.
    pub shards: Vec<ShardEntry>,
    /// How often an operator has asked for a balanced distribution.
    pub rebalance_requests: i64,
}
