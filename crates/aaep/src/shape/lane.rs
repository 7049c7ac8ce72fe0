//! What is held of one session.

use std::collections::VecDeque;

use super::text::Text;
use seal::Timestamp;

#[derive(Clone, Debug)]
pub(super) struct Lane<T> {
    /// Outputs whose text waits for a boundary.
    pub(super) texts: Vec<Text<T>>,
    /// The numbers of its events in the queue, in order.
    pub(super) queued: VecDeque<u64>,
    /// The time of the event that left last: no later one has an earlier time (§3.2.5).
    pub(super) last: Option<Timestamp>,
    /// Its end has come, so that nothing else will.
    pub(super) ended: bool,
}

impl<T> Default for Lane<T> {
    fn default() -> Self {
        Self { texts: Vec::new(), queued: VecDeque::new(), last: None, ended: false }
    }
}

impl<T> Lane<T> {
    pub(super) fn is_idle(&self) -> bool {
        self.texts.is_empty() && self.queued.is_empty()
    }
}
