//! How much of a listener's queue is taken ahead of a write.

/// How many bytes of frames may be taken from a listener's queue for the next write.
///
/// A critical frame overtakes frames that are still in the queue, but not those that were taken from it. So a listener
/// with a backlog gets one frame at a time while its socket blocks. As soon as the socket accepts frames without
/// blocking, the listener gets many frames with each write again: otherwise the cost of a write for each frame would keep a
/// listener behind that could catch up.
#[derive(Debug, Default)]
pub(super) struct WriteBudget {
    /// The bytes that the sink has accepted since it last blocked.
    accepted_bytes: usize,
}

impl WriteBudget {
    /// Returns the number of bytes after which no further frame is taken. The last frame may exceed it.
    pub(super) fn max_bytes(&self, has_backlog: bool, in_flight_bytes: usize) -> usize {
        if has_backlog && self.accepted_bytes < in_flight_bytes { 1 } else { in_flight_bytes }
    }

    /// Records that the sink has accepted bytes.
    pub(super) fn record_accepted(&mut self, bytes: usize) {
        self.accepted_bytes = self.accepted_bytes.saturating_add(bytes);
    }

    /// Records that the sink accepts no more for now.
    pub(super) fn record_blocked(&mut self) {
        self.accepted_bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IN_FLIGHT: usize = 16 * 1024;

    #[test]
    fn a_listener_without_a_backlog_gets_many_frames_with_each_write() {
        assert_eq!(WriteBudget::default().max_bytes(false, IN_FLIGHT), IN_FLIGHT);
    }

    #[test]
    fn a_listener_with_a_backlog_gets_one_frame_at_a_time_while_its_socket_blocks() {
        let mut budget = WriteBudget::default();
        for _ in 0..100 {
            budget.record_accepted(IN_FLIGHT - 1);
            assert_eq!(budget.max_bytes(true, IN_FLIGHT), 1);
            budget.record_blocked();
        }
    }

    #[test]
    fn a_listener_with_a_backlog_gets_many_frames_once_its_socket_stops_blocking() {
        let mut budget = WriteBudget::default();
        budget.record_accepted(IN_FLIGHT - 1);
        assert_eq!(budget.max_bytes(true, IN_FLIGHT), 1);
        budget.record_accepted(1);
        assert_eq!(budget.max_bytes(true, IN_FLIGHT), IN_FLIGHT);
        budget.record_blocked();
        assert_eq!(budget.max_bytes(true, IN_FLIGHT), 1);
    }
}
