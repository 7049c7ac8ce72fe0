//! A hub with several shards, on one node or on several: routing, listeners of several shards, limits, shards that fail, and
//! shards that move.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "a failed test panics")]

mod internal_network;
mod moves;
mod support;

/// Everything in one process.
mod on_one_node {
    use hub::HubLimits;
    use journal::Journal;
    use wire::HubHandle;

    use super::support;

    #[allow(clippy::unused_async, reason = "the other module's function waits")]
    async fn start_hub_with(
        limits: &HubLimits,
        journals: impl Iterator<Item = Box<dyn Journal>>,
    ) -> HubHandle {
        support::start_on_one_node(limits, journals)
    }

    include!("cases.rs");
}

/// Agents and listeners are connected to a node, and all shards run on another one.
mod on_another_node {
    use std::ops::Deref;

    use hub::{HubLimits, Shard, ShardMap};
    use journal::Journal;
    use wire::HubHandle;

    use super::support::{self, Node};

    struct TestHub {
        front: Node,
        _owner: Node,
    }

    impl Deref for TestHub {
        type Target = HubHandle;

        fn deref(&self) -> &HubHandle {
            &self.front.hub
        }
    }

    async fn start_hub_with(
        limits: &HubLimits,
        journals: impl Iterator<Item = Box<dyn Journal>>,
    ) -> TestHub {
        let (front, owner) = (Node::start("front").await, Node::start("owner").await);
        let shards = Shard::all_of(ShardMap::new(support::SHARDS)).into_iter();
        for (shard, journal) in shards.zip(journals) {
            let index = shard.index;
            owner.router.run_here(index, support::core(shard, journal, limits)).unwrap();
            front.run_at(index, &owner);
        }
        TestHub { front, _owner: owner }
    }

    include!("cases.rs");
}
