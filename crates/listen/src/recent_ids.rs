//! A bounded set of the most recent ids.

use std::collections::{HashSet, VecDeque};
use std::hash::{BuildHasher, Hash, RandomState};

/// A bounded set of the most recent ids, for deduplication. It stores hashes with a random key, so an attacker cannot construct
/// two ids that collide.
#[derive(Debug)]
pub struct RecentIds {
    hasher: RandomState,
    hashes: HashSet<u64>,
    order: VecDeque<u64>,
    limit: usize,
}

impl RecentIds {
    /// Creates a set that remembers at most `limit` ids, and at least one.
    pub fn new(limit: usize) -> Self {
        let hasher = RandomState::new();
        Self { hasher, hashes: HashSet::new(), order: VecDeque::new(), limit: limit.max(1) }
    }

    /// Adds an id and returns whether it is new.
    pub fn insert(&mut self, id: impl Hash) -> bool {
        let hash = self.hasher.hash_one(id);
        if !self.hashes.insert(hash) {
            return false;
        }
        self.order.push_back(hash);
        if self.order.len() > self.limit
            && let Some(oldest) = self.order.pop_front()
        {
            self.hashes.remove(&oldest);
        }
        true
    }

    /// Whether an id is in the set.
    pub fn contains(&self, id: impl Hash) -> bool {
        self.hashes.contains(&self.hasher.hash_one(id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_new_once_per_agent_until_it_is_evicted() {
        let mut ids = RecentIds::new(2);
        assert!(ids.insert(("bank", "evt_1")) && ids.insert(("post", "evt_1")));
        assert!(!ids.insert(("bank", "evt_1")) && !ids.insert(("post", "evt_1")));
        assert!(ids.insert(("bank", "evt_2")) && ids.contains(("bank", "evt_2")));
        assert!(ids.insert(("bank", "evt_1")), "only the two latest ids are remembered");
        assert!(ids.order.len() == 2 && ids.hashes.len() == 2);
    }
}
