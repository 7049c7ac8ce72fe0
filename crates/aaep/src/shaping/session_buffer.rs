//! The held text and events of one session.

use std::collections::VecDeque;

use super::held_text::HeldText;
use seal::Timestamp;

#[derive(Clone, Debug)]
pub(super) struct SessionBuffer<T> {
    /// Outputs whose text waits for a boundary.
    pub(super) texts: Vec<HeldText<T>>,
    /// The numbers under which the session's held events are in the queue, oldest first.
    pub(super) queued_ids: VecDeque<u64>,
    /// The timestamp of the last sent event. Later events must not have an earlier timestamp
    /// (§3.2.5).
    pub(super) last_timestamp: Option<Timestamp>,
    /// Whether the session has ended.
    pub(super) is_ended: bool,
}

impl<T> Default for SessionBuffer<T> {
    fn default() -> Self {
        Self { texts: Vec::new(), queued_ids: VecDeque::new(), last_timestamp: None, is_ended: false }
    }
}

impl<T> SessionBuffer<T> {
    pub(super) fn is_idle(&self) -> bool {
        self.texts.is_empty() && self.queued_ids.is_empty()
    }
}
