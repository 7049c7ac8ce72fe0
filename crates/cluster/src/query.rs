//! The queries that a node sends to the database.

use std::time::Duration;

use crate::{LeaseToken, ShardId, TableSnapshot};

/// Identifies a query, so that a late answer to an earlier one is recognized.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueryId(pub(crate) u64);

/// A query. Each one is one transaction. It may have been performed even if its answer is lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Query {
    /// Reports that the node is alive, renews leases, and reads the table.
    Heartbeat {
        /// The leases to renew.
        renew: Vec<(ShardId, LeaseToken)>,
        /// Whether the node gives its shards away and acquires none.
        is_draining: bool,
        /// How long the node and its leases last from now.
        lease: Duration,
    },
    /// Acquires each shard that is free, or that this process holds already, and whose epoch is still the expected one. Raises
    /// the epoch of each acquired shard by one.
    Acquire {
        /// The shards with their expected epochs.
        shards: Vec<(ShardId, i64)>,
        /// The token of this acquisition.
        token: LeaseToken,
        /// How long the leases last from now.
        lease: Duration,
    },
    /// Releases the shard if its owner still has this token. Raises the epoch, which refuses a commit that is still on its
    /// way.
    Release {
        /// The shard.
        shard: ShardId,
        /// The token of the acquisition.
        token: LeaseToken,
    },
    /// Removes the node from the table.
    Leave,
}

/// The answer to a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The answer to [`Query::Heartbeat`].
    Heartbeat {
        /// The shards whose leases were renewed. The others have another owner.
        renewed: Vec<ShardId>,
        /// The table after the renewal.
        table: TableSnapshot,
    },
    /// The answer to [`Query::Heartbeat`] if a live process with another instance uses the node's name.
    NameTaken,
    /// The answer to [`Query::Acquire`]: the acquired shards with their new epochs.
    Acquired(Vec<(ShardId, i64)>),
    /// The answer to [`Query::Release`] and [`Query::Leave`].
    Done,
    /// There is no answer, so the query may have been performed, or may be performed later.
    Failed,
}
