//! One listener of the fan-out: selects its next frames and writes them.

use std::collections::VecDeque;
use std::io::{ErrorKind, IoSlice, Write};
use std::sync::Arc;

use hub::DeliveryGroupId;
use hub::delivery::{Backlog, Cursor, DeliveryQueue, Frame, NextFrame};
use seal::UnixMillis;

use super::event_loop::Tally;
use super::{FanoutLimits, ListenerSink};
use crate::sse;

/// Number of heartbeats during which a closing listener can still receive its last frames. It is removed at the next one.
pub(super) const CLOSE_HEARTBEATS: u8 = 2;
/// The event id that is sent to a listener that falls behind. If the listener resumes from this id, it gets a gap message.
const LAGGING_EVENT_ID: &str = "behind";

pub(super) struct FanoutListener {
    pub(super) group: DeliveryGroupId,
    pub(super) cursor: Cursor,
    pub(super) sink: ListenerSink,
    /// Frames that were taken from the queue and are not completely written.
    in_flight: VecDeque<Arc<Frame>>,
    /// How many bytes of the first in-flight frame have been written.
    written_bytes: usize,
    /// Whether the sink accepts no more frames for now.
    pub(super) is_blocked: bool,
    /// When the listener fell behind by more than the merge limit.
    behind_since: Option<UnixMillis>,
    /// The backlog of a slow listener.
    backlog: Option<Box<Backlog>>,
    /// Set while the listener is closing. A closing listener gets only its private frames. It is removed when it has received
    /// them, or at the heartbeat after this many.
    pub(super) heartbeats_until_close: Option<u8>,
    pub(super) tally: Tally,
}

pub(super) enum PumpResult {
    Connected,
    Disconnected,
    TooSlow,
}

impl FanoutListener {
    pub(super) fn new(group: DeliveryGroupId, cursor: Cursor, sink: ListenerSink) -> Self {
        Self {
            group,
            cursor,
            sink,
            in_flight: VecDeque::new(),
            written_bytes: 0,
            is_blocked: false,
            behind_since: None,
            backlog: None,
            heartbeats_until_close: None,
            tally: Tally::default(),
        }
    }

    /// Writes as much as the sink accepts.
    pub(super) fn pump(&mut self, queue: &DeliveryQueue, limits: &FanoutLimits) -> PumpResult {
        while !self.is_blocked {
            let mut bytes: usize = self.in_flight.iter().map(|frame| frame.size()).sum();
            // A slow listener gets one frame at a time, so that a critical frame waits for only one other frame.
            let max_bytes = if self.backlog.is_some() { 1 } else { limits.in_flight_bytes };
            let critical_first = !self.cursor.pending_fits_in(queue, limits.in_flight_bytes);
            while bytes < max_bytes {
                match self.next(queue, critical_first) {
                    NextFrame::Frame(frame) => {
                        bytes += frame.size();
                        self.in_flight.push_back(frame);
                    }
                    NextFrame::Empty => break,
                    NextFrame::Lagged => return self.disconnect_slow(queue),
                }
            }
            if self.in_flight.is_empty() {
                self.behind_since = None;
                return if self.heartbeats_until_close.is_some() {
                    PumpResult::Disconnected
                } else {
                    PumpResult::Connected
                };
            }
            if !self.write_in_flight() {
                return PumpResult::Disconnected;
            }
        }
        if self.heartbeats_until_close.is_some() || self.move_to_backlog(queue, limits) {
            PumpResult::Connected
        } else {
            self.disconnect_slow(queue)
        }
    }

    /// Returns the next frame. A frame from a backlog has no id, because the merge that produced it cannot be
    /// reproduced later.
    fn next(&mut self, queue: &DeliveryQueue, critical_first: bool) -> NextFrame {
        if self.heartbeats_until_close.is_some() {
            return self.cursor.take_private().map_or(NextFrame::Empty, NextFrame::Frame);
        }
        let Some(backlog) = &mut self.backlog else {
            return if critical_first { self.cursor.take(queue) } else { self.cursor.take_in_order(queue) };
        };
        if let Some(frame) =
            self.cursor.take_private().or_else(|| Some(backlog.pull(crate::unix_now())?.without_id()))
        {
            return NextFrame::Frame(frame);
        }
        self.backlog = None;
        self.cursor.resume_position().map_or_else(|| self.cursor.take(queue), NextFrame::Frame)
    }

    /// Handles a blocked sink. A listener that is far behind gets a backlog, which merges waiting frames. Returns `false`
    /// if frames were lost or the backlog is full.
    fn move_to_backlog(&mut self, queue: &DeliveryQueue, limits: &FanoutLimits) -> bool {
        if self.cursor.has_lost_frames(queue) {
            return false;
        }
        if self.backlog.is_none() {
            let lag = self.cursor.lag(queue);
            if lag <= limits.delivery.merge_above_frames as u64 {
                self.behind_since = None;
                return true;
            }
            let now = crate::unix_now();
            let since = *self.behind_since.get_or_insert(now);
            // Frames of a short burst are not merged, unless they use a quarter of the queue.
            if u128::from(now.millis_since(since).unsigned_abs()) < limits.burst_grace.as_millis()
                && queue.fill_ratio(lag) < 0.25
            {
                return true;
            }
            self.behind_since = None;
            self.backlog = Some(Box::new(Backlog::new(limits.delivery)));
            self.cursor.push_private(Arc::new(Frame::resume_position(LAGGING_EVENT_ID)));
        }
        let Some(backlog) = &mut self.backlog else { return true };
        while let NextFrame::Frame(frame) = self.cursor.take_from_queue(queue) {
            if !backlog.push(&frame) {
                return false;
            }
        }
        true
    }

    /// Moves the listener to another group. If it has a backlog, the frames still queued in the old group are moved into
    /// the backlog first.
    pub(super) fn move_to(&mut self, from: &DeliveryQueue, to: &DeliveryQueue) {
        if let Some(backlog) = &mut self.backlog {
            while let NextFrame::Frame(frame) = self.cursor.take_from_queue(from) {
                // The next round checks the limit.
                let _ = backlog.push(&frame);
            }
        }
        self.cursor.move_to(from, to);
    }

    /// Closes a listener that cannot keep up. It still gets the frame that is partly written, and its private
    /// frames.
    fn disconnect_slow(&mut self, queue: &DeliveryQueue) -> PumpResult {
        self.in_flight.truncate(usize::from(self.written_bytes > 0));
        self.backlog = None;
        self.cursor = Cursor::at_end(queue);
        self.heartbeats_until_close = Some(CLOSE_HEARTBEATS);
        PumpResult::TooSlow
    }

    /// Writes in-flight frames to the sink. Returns `false` if the sink is closed.
    fn write_in_flight(&mut self) -> bool {
        match &mut self.sink {
            ListenerSink::Pending => {
                self.is_blocked = true;
                true
            }
            ListenerSink::Channel(channel) => {
                while let Some(frame) = self.in_flight.pop_front() {
                    let size = frame.size();
                    match channel.try_send(frame) {
                        Ok(()) => self.tally.add(size),
                        Err(tokio::sync::mpsc::error::TrySendError::Full(frame)) => {
                            self.in_flight.push_front(frame);
                            self.is_blocked = true;
                            return true;
                        }
                        Err(tokio::sync::mpsc::error::TrySendError::Closed(_)) => return false,
                    }
                }
                true
            }
            ListenerSink::Socket(socket, _) => {
                let mut slices = [IoSlice::new(&[]); 64];
                let mut count = 0;
                for (slot, frame) in slices.iter_mut().zip(&self.in_flight) {
                    let start = if count == 0 { self.written_bytes } else { 0 };
                    *slot = IoSlice::new(sse::frame_bytes(frame).get(start..).unwrap_or_default());
                    count += 1;
                }
                match socket.write_vectored(slices.get(..count).unwrap_or_default()) {
                    Ok(0) => return false,
                    Ok(written) => self.advance(written),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => self.is_blocked = true,
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(_) => return false,
                }
                true
            }
        }
    }

    /// Removes the frames that are completely written after another `bytes` bytes.
    fn advance(&mut self, bytes: usize) {
        self.written_bytes += bytes;
        while let Some(frame) = self.in_flight.front() {
            let length = sse::frame_bytes(frame).len();
            if self.written_bytes < length {
                return;
            }
            self.written_bytes -= length;
            self.tally.add(length);
            self.in_flight.pop_front();
        }
    }
}
