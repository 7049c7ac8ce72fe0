//! The record of which shard of a hub a journal belongs to.

/// The shard of a journal, which is recorded in it. The number of shards never changes, except from 1 to more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardRecord {
    /// The number of the shard, from 0.
    pub index: u16,
    /// The number of shards of the hub.
    pub count: u16,
    /// Whether this is the journal of the only shard that the hub once had. It can contain sessions of people
    /// whose new sessions go to other shards.
    pub was_single: bool,
}

impl Default for ShardRecord {
    /// The only shard of a hub.
    fn default() -> Self {
        Self { index: 0, count: 1, was_single: false }
    }
}

impl ShardRecord {
    /// Returns the record of a new journal.
    pub fn new(index: u16, count: u16) -> Self {
        Self { index, count, was_single: false }
    }

    /// Whether both are the same shard of the same number of shards.
    pub fn is_same_shard(self, other: Self) -> bool {
        (self.index, self.count) == (other.index, other.count)
    }
}

impl std::fmt::Display for ShardRecord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "shard {} of {}", self.index, self.count)
    }
}
