//! The latest ids that have been seen.

use std::collections::{HashSet, VecDeque};
use std::hash::{BuildHasher, Hash, RandomState};

/// The latest ids that have been seen, so that nothing is taken twice. They are kept as fingerprints with a key of their own,
/// so that nobody can choose two that are taken for one.
#[derive(Debug)]
pub struct RecentIds {
    hasher: RandomState,
    known: HashSet<u64>,
    order: VecDeque<u64>,
    limit: usize,
}

impl RecentIds {
    /// Remembers at most so many, and at least one.
    pub fn new(limit: usize) -> Self {
        let hasher = RandomState::new();
        Self { hasher, known: HashSet::new(), order: VecDeque::new(), limit: limit.max(1) }
    }

    /// Notes an id; says whether it is new.
    pub fn insert(&mut self, id: impl Hash) -> bool {
        let print = self.hasher.hash_one(id);
        if !self.known.insert(print) {
            return false;
        }
        self.order.push_back(print);
        if self.order.len() > self.limit
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
        true
    }

    /// Whether an id is known.
    pub fn contains(&self, id: impl Hash) -> bool {
        self.known.contains(&self.hasher.hash_one(id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_new_once_for_each_agent_until_it_is_forgotten() {
        let mut ids = RecentIds::new(2);
        assert!(ids.insert(("bank", "evt_1")) && ids.insert(("post", "evt_1")));
        assert!(!ids.insert(("bank", "evt_1")) && !ids.insert(("post", "evt_1")));
        assert!(ids.insert(("bank", "evt_2")) && ids.contains(("bank", "evt_2")));
        assert!(ids.insert(("bank", "evt_1")), "only two are kept");
        assert!(ids.order.len() == 2 && ids.known.len() == 2);
    }
}
