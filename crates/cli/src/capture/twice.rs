//! What came again after a lost connection: the hub repeats what overtook something, and stands for it with the same id.

use std::collections::{HashSet, VecDeque};
use std::hash::{BuildHasher, RandomState};

/// So many ids are remembered. The hub repeats less: it lets go who is further behind.
pub(super) const IDS: usize = 65_536;

/// The latest ids, as fingerprints with a key of their own, so that nobody can choose two that are taken for one.
pub(super) struct Twice {
    hasher: RandomState,
    known: HashSet<u64>,
    order: VecDeque<u64>,
    limit: usize,
}

impl Twice {
    pub(super) fn new(limit: usize) -> Self {
        Self { hasher: RandomState::new(), known: HashSet::new(), order: VecDeque::new(), limit }
    }

    /// Notes an event of an agent; says whether it is new.
    pub(super) fn is_new(&mut self, agent: &str, id: &str) -> bool {
        let print = self.hasher.hash_one((agent, id));
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_new_once_for_each_agent_until_it_is_forgotten() {
        let mut twice = Twice::new(2);
        assert!(twice.is_new("bank", "evt_1") && twice.is_new("post", "evt_1"));
        assert!(!twice.is_new("bank", "evt_1") && !twice.is_new("post", "evt_1"));
        assert!(twice.is_new("bank", "evt_2"));
        assert!(twice.is_new("bank", "evt_1"), "only two are kept");
        assert!(twice.order.len() == 2 && twice.known.len() == 2);
    }
}
