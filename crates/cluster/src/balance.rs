//! How shards are distributed among nodes.

use std::hash::{Hash, Hasher};

use rustc_hash::FxHasher;

use crate::{ShardId, TableSnapshot};

/// Returns the number of shards of this node in an even distribution. The first nodes by name have one more, if the number of
/// shards is not a multiple of the number of nodes.
pub(crate) fn fair_share(table: &TableSnapshot, me: &str) -> usize {
    let others = table.nodes.iter().filter(|node| node.can_own() && node.name != me);
    let (before, after): (Vec<_>, Vec<_>) = others.partition(|node| node.name.as_str() < me);
    let nodes = before.len() + after.len() + 1;
    let (share, rest) = (table.shards.len() / nodes, table.shards.len() % nodes);
    share + usize::from(before.len() < rest)
}

/// Returns how much the node with this name prefers the shard (rendezvous hashing). Nodes that compete for the same shards try
/// different ones first.
pub(crate) fn preference(name: &str, shard: ShardId) -> u64 {
    let mut hasher = FxHasher::default();
    name.hash(&mut hasher);
    shard.hash(&mut hasher);
    // The low bits of this hash are not well mixed.
    let hash = hasher.finish();
    (hash ^ (hash >> 29)).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// Returns whether no other live node prefers the shard more.
pub(crate) fn is_preferred(table: &TableSnapshot, me: &str, shard: ShardId) -> bool {
    let own = preference(me, shard);
    table.nodes.iter().all(|node| !node.can_own() || preference(&node.name, shard) <= own)
}
