//! Ids that have been seen, the latest of them.

use std::collections::{HashSet, VecDeque};

#[derive(Debug)]
pub(super) struct Seen {
    known: HashSet<Box<str>>,
    order: VecDeque<Box<str>>,
    limit: usize,
}

impl Seen {
    pub(super) fn new(limit: usize) -> Self {
        Self { known: HashSet::new(), order: VecDeque::new(), limit: limit.max(1) }
    }

    /// Notes an id; says whether it is new.
    pub(super) fn insert(&mut self, id: &str) -> bool {
        if !self.known.insert(id.into()) {
            return false;
        }
        self.order.push_back(id.into());
        if self.order.len() > self.limit
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
        true
    }

    pub(super) fn contains(&self, id: &str) -> bool {
        self.known.contains(id)
    }
}
