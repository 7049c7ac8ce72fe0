//! One listener of the fan-out: selects its next frames and writes them.

use std::collections::{HashMap, VecDeque};
use std::io::{ErrorKind, IoSlice, Write};
use std::sync::Arc;

use hub::delivery::{Backlog, Cursor, DeliveryQueue, Frame, FrameKind, NextFrame};
use hub::{DeliveryGroupId, ResumeCursor};
use seal::UnixMillis;

use super::event_loop::{DeliveryGroup, Tally};
use super::{FanoutLimits, ListenerSink};
use crate::sse;

/// Number of heartbeats during which a closing listener can still receive its last frames. It is removed at the next one.
pub(super) const CLOSE_HEARTBEATS: u8 = 2;
/// The event id that is sent to a listener that falls behind. If the listener resumes from this id, it gets a gap message.
const LAGGING_EVENT_ID: &str = "behind";

/// The stream that a listener receives from one shard.
pub(super) struct ShardStream {
    pub(super) group: DeliveryGroupId,
    pub(super) cursor: Cursor,
    /// While the stream has no group with frames: the id after which it resumes.
    parked_position: Option<String>,
}

impl ShardStream {
    pub(super) fn new(group: DeliveryGroupId, cursor: Cursor) -> Self {
        Self { group, cursor, parked_position: None }
    }
}

pub(super) struct FanoutListener {
    main: ShardStream,
    /// The streams of further shards; empty if the listener hears only one shard.
    others: Vec<ShardStream>,
    /// The number of the stream that is asked first for the next frame, so that no shard is starved.
    next_stream: usize,
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
    /// Whether a listener of several shards has not received [`LAGGING_EVENT_ID`] yet.
    must_send_lagging: bool,
    /// Set while the listener is closing. A closing listener gets only its private frames. It is removed when it has received
    /// them, or at the heartbeat after this many.
    pub(super) heartbeats_until_close: Option<u8>,
    /// Whether a message that ends the connection, or one about missing events, is already queued. Each shard sends its own.
    has_close_frame: bool,
    has_gap_frame: bool,
    pub(super) tally: Tally,
}

pub(super) enum PumpResult {
    Connected,
    Disconnected,
    TooSlow,
}

/// The queues from which a listener takes frames.
#[derive(Clone, Copy)]
pub(super) struct Queues<'q> {
    /// The queue of one of the listener's groups, which saves looking it up.
    pub(super) main: &'q DeliveryQueue,
    pub(super) all: &'q HashMap<DeliveryGroupId, DeliveryGroup>,
}

impl<'q> Queues<'q> {
    fn get(self, group: DeliveryGroupId) -> Option<&'q DeliveryQueue> {
        self.all.get(&group).map(|group| &group.queue)
    }
}

impl FanoutListener {
    pub(super) fn new(main: ShardStream, sink: ListenerSink) -> Self {
        Self {
            main,
            others: Vec::new(),
            next_stream: 0,
            sink,
            in_flight: VecDeque::new(),
            written_bytes: 0,
            is_blocked: false,
            behind_since: None,
            backlog: None,
            must_send_lagging: false,
            heartbeats_until_close: None,
            has_close_frame: false,
            has_gap_frame: false,
            tally: Tally::default(),
        }
    }

    /// Adds the stream of another shard.
    pub(super) fn add_stream(&mut self, stream: ShardStream) {
        self.others.push(stream);
    }

    pub(super) fn main_group(&self) -> DeliveryGroupId {
        self.main.group
    }

    fn streams(&self) -> impl Iterator<Item = &ShardStream> {
        std::iter::once(&self.main).chain(&self.others)
    }

    pub(super) fn groups(&self) -> impl Iterator<Item = DeliveryGroupId> {
        self.streams().map(|stream| stream.group)
    }

    fn stream_mut(&mut self, shard: u16) -> &mut ShardStream {
        let other = self.others.iter_mut().find(|stream| stream.group.shard() == shard);
        other.unwrap_or(&mut self.main)
    }

    pub(super) fn group_of_shard(&self, shard: u16) -> Option<DeliveryGroupId> {
        self.groups().find(|group| group.shard() == shard)
    }

    /// Adds a private frame of one shard.
    pub(super) fn push_private(&mut self, shard: u16, frame: Arc<Frame>) {
        if frame.is_gap() && std::mem::replace(&mut self.has_gap_frame, true) {
            return;
        }
        self.stream_mut(shard).cursor.push_private(frame);
    }

    /// Adds a message or a heartbeat. A second message that ends the connection is dropped.
    pub(super) fn push_message(&mut self, frame: Arc<Frame>) {
        if frame.close_reason().is_some() && std::mem::replace(&mut self.has_close_frame, true) {
            return;
        }
        self.main.cursor.push_private(frame);
    }

    /// Writes as much as the sink accepts, after new frames in one of the listener's groups. `queues.main` is the queue of
    /// that group.
    pub(super) fn pump_group(
        &mut self,
        group: DeliveryGroupId,
        queues: Queues<'_>,
        limits: &FanoutLimits,
    ) -> PumpResult {
        let queues = if group == self.main.group {
            queues
        } else {
            let Some(main) = queues.get(self.main.group) else { return PumpResult::Connected };
            Queues { main, ..queues }
        };
        self.pump(queues, limits)
    }

    /// Writes as much as the sink accepts. `queues.main` is the queue of the main group.
    fn pump(&mut self, queues: Queues<'_>, limits: &FanoutLimits) -> PumpResult {
        // Before the sink is connected, not all shards may have joined, so the ids of frames would be incomplete.
        self.is_blocked |= matches!(self.sink, ListenerSink::Pending);
        while !self.is_blocked {
            let mut bytes: usize = self.in_flight.iter().map(|frame| frame.size()).sum();
            // A slow listener gets one frame at a time, so that a critical frame waits for only one other frame.
            let max_bytes = if self.backlog.is_some() { 1 } else { limits.in_flight_bytes };
            let critical_first = !self.pending_fits_in(queues, limits.in_flight_bytes);
            while bytes < max_bytes {
                match self.next(queues, critical_first) {
                    NextFrame::Frame(frame) => {
                        bytes += frame.size();
                        self.in_flight.push_back(frame);
                    }
                    NextFrame::Empty => break,
                    NextFrame::Lagged => return self.disconnect_slow(queues),
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
        if self.heartbeats_until_close.is_some() || self.move_to_backlog(queues, limits) {
            PumpResult::Connected
        } else {
            self.disconnect_slow(queues)
        }
    }

    /// Returns the streams of further shards with their queues.
    fn others_with_queues<'l>(
        &'l self,
        queues: Queues<'l>,
    ) -> impl Iterator<Item = (&'l ShardStream, &'l DeliveryQueue)> {
        self.others.iter().filter_map(move |stream| Some((stream, queues.get(stream.group)?)))
    }

    /// Whether all undelivered frames fit into `bytes`.
    fn pending_fits_in(&self, queues: Queues<'_>, bytes: usize) -> bool {
        if self.others.is_empty() {
            return self.main.cursor.pending_fits_in(queues.main, bytes);
        }
        let main = self.main.cursor.bytes_left_of(queues.main, bytes);
        let take = |left: Option<usize>, (stream, queue): (&ShardStream, _)| {
            stream.cursor.bytes_left_of(queue, left?)
        };
        self.others_with_queues(queues).fold(main, take).is_some()
    }

    /// Returns the next frame. A frame from a backlog has no id, because the merge that produced it cannot be
    /// reproduced later.
    fn next(&mut self, queues: Queues<'_>, critical_first: bool) -> NextFrame {
        if !self.others.is_empty() {
            return self.next_of_several(queues, critical_first);
        }
        let cursor = &mut self.main.cursor;
        if self.heartbeats_until_close.is_some() {
            return cursor.take_private().map_or(NextFrame::Empty, NextFrame::Frame);
        }
        let Some(backlog) = &mut self.backlog else {
            return if critical_first { cursor.take(queues.main) } else { cursor.take_in_order(queues.main) };
        };
        if let Some(frame) =
            cursor.take_private().or_else(|| Some(backlog.pull(crate::unix_now())?.without_id()))
        {
            return NextFrame::Frame(frame);
        }
        self.backlog = None;
        cursor.resume_position().map_or_else(|| cursor.take(queues.main), NextFrame::Frame)
    }

    /// Like [`next`](Self::next), for a listener of several shards. An id names the position in each of them.
    fn next_of_several(&mut self, queues: Queues<'_>, critical_first: bool) -> NextFrame {
        if self.heartbeats_until_close.is_some() {
            let frame = self.take_private();
            return frame.map_or(NextFrame::Empty, |frame| NextFrame::Frame(self.with_cursor(&frame)));
        }
        if self.backlog.is_none() {
            return match self.take_of_several(queues, critical_first) {
                NextFrame::Frame(frame) => NextFrame::Frame(self.with_cursor(&frame)),
                other => other,
            };
        }
        if std::mem::take(&mut self.must_send_lagging) {
            return NextFrame::Frame(Arc::new(Frame::resume_position(LAGGING_EVENT_ID)));
        }
        // The cursors are ahead of what was delivered, so nothing has an id until the backlog is empty.
        while let Some(frame) = self.take_private() {
            if !frame.json().is_empty() || frame.id().is_none() {
                return NextFrame::Frame(if frame.id().is_some() { frame.without_id() } else { frame });
            }
        }
        if let Some(frame) = self.backlog.as_mut().and_then(|backlog| backlog.pull(crate::unix_now())) {
            return NextFrame::Frame(frame.without_id());
        }
        self.backlog = None;
        NextFrame::Frame(Arc::new(Frame::resume_position(&self.resume_cursor())))
    }

    fn take_private(&mut self) -> Option<Arc<Frame>> {
        let main = self.main.cursor.take_private();
        main.or_else(|| self.others.iter_mut().find_map(|stream| stream.cursor.take_private()))
    }

    /// Takes the next frame of any shard: if `critical_first`, a critical one if there is any.
    fn take_of_several(&mut self, queues: Queues<'_>, critical_first: bool) -> NextFrame {
        let count = 1 + self.others.len();
        let first = self.next_stream;
        let rounds = if critical_first { 2 } else { 1 };
        for number in 0..rounds * count {
            let index = (first + number) % count;
            let (stream, queue) = match index.checked_sub(1).and_then(|other| self.others.get_mut(other)) {
                Some(stream) => {
                    let Some(queue) = queues.get(stream.group) else { continue };
                    (stream, queue)
                }
                None => (&mut self.main, queues.main),
            };
            let cursor = &mut stream.cursor;
            if critical_first && number < count && !cursor.has_critical(queue) {
                continue;
            }
            let next = if critical_first { cursor.take(queue) } else { cursor.take_in_order(queue) };
            if next != NextFrame::Empty {
                self.next_stream = (index + 1) % count;
                return next;
            }
        }
        NextFrame::Empty
    }

    /// Returns the frame with the position in every shard as its id, if the frame has an id.
    fn with_cursor(&self, frame: &Arc<Frame>) -> Arc<Frame> {
        if frame.id().is_none() {
            return frame.clone();
        }
        Arc::new(frame.with_own_id(&self.resume_cursor()))
    }

    fn resume_cursor(&self) -> String {
        let mut cursor = ResumeCursor::default();
        for ShardStream { group, cursor: position, .. } in self.streams() {
            cursor.set(group.shard(), &position.resume_id().unwrap_or_default());
        }
        cursor.to_string()
    }

    /// Handles a blocked sink. A listener that is far behind gets a backlog, which merges waiting frames. Returns `false`
    /// if frames were lost or the backlog is full.
    fn move_to_backlog(&mut self, queues: Queues<'_>, limits: &FanoutLimits) -> bool {
        if self.main.cursor.has_lost_frames(queues.main)
            || self.others_with_queues(queues).any(|(stream, queue)| stream.cursor.has_lost_frames(queue))
        {
            return false;
        }
        if self.backlog.is_none() {
            let others = self.others_with_queues(queues).map(|(stream, queue)| (&stream.cursor, queue));
            let (mut lag, mut fill_ratio) = (0, 0.0);
            for (cursor, queue) in std::iter::once((&self.main.cursor, queues.main)).chain(others) {
                lag += cursor.lag(queue);
                fill_ratio += queue.fill_ratio(cursor.lag(queue));
            }
            if lag <= limits.delivery.merge_above_frames as u64 {
                self.behind_since = None;
                return true;
            }
            let now = crate::unix_now();
            let since = *self.behind_since.get_or_insert(now);
            // Frames of a short burst are not merged, unless they use a quarter of the queue.
            if u128::from(now.millis_since(since).unsigned_abs()) < limits.burst_grace.as_millis()
                && fill_ratio < 0.25
            {
                return true;
            }
            self.behind_since = None;
            self.backlog = Some(Box::new(Backlog::new(limits.delivery)));
            if self.others.is_empty() {
                self.main.cursor.push_private(Arc::new(Frame::resume_position(LAGGING_EVENT_ID)));
            } else {
                self.must_send_lagging = true;
            }
        }
        let Some(backlog) = &mut self.backlog else { return true };
        for (index, stream) in std::iter::once(&mut self.main).chain(&mut self.others).enumerate() {
            let queue = if index == 0 { Some(queues.main) } else { queues.get(stream.group) };
            while let Some(NextFrame::Frame(frame)) = queue.map(|queue| stream.cursor.take_from_queue(queue))
            {
                if !backlog.push(&frame) {
                    return false;
                }
            }
        }
        true
    }

    /// Moves the listener to another group of the same shard. If it has a backlog, the frames still queued in the old group
    /// are moved into the backlog first.
    pub(super) fn move_to(&mut self, to_group: DeliveryGroupId, from: &DeliveryQueue, to: &DeliveryQueue) {
        let shard = to_group.shard();
        let others = self.others.iter_mut().find(|stream| stream.group.shard() == shard);
        let stream = others.unwrap_or(&mut self.main);
        stream.group = to_group;
        if let Some(backlog) = &mut self.backlog {
            while let NextFrame::Frame(frame) = stream.cursor.take_from_queue(from) {
                // The next round checks the limit.
                let _ = backlog.push(&frame);
            }
        }
        stream.cursor.move_to(from, to);
    }

    /// Moves the listener to a group without frames, because the owner of the shard has changed. Returns `false` if frames were
    /// lost.
    pub(super) fn park(&mut self, empty: DeliveryGroupId, from: &DeliveryQueue, to: &DeliveryQueue) -> bool {
        let stream = self.stream_mut(empty.shard());
        let has_all_frames = !stream.cursor.has_lost_frames(from);
        stream.group = empty;
        stream.parked_position = stream.cursor.move_in_order(from, to);
        has_all_frames
    }

    /// Returns the id after which a listener without a group with frames resumes.
    pub(super) fn parked_position(&mut self, shard: u16) -> Option<String> {
        self.stream_mut(shard).parked_position.clone()
    }

    /// Moves the listener to a group of the shard's new owner. It receives these private frames after its undelivered ones.
    pub(super) fn rejoin(
        &mut self,
        group: DeliveryGroupId,
        from: &DeliveryQueue,
        to: &DeliveryQueue,
        private_frames: Vec<Arc<Frame>>,
    ) {
        let stream = self.stream_mut(group.shard());
        stream.cursor.move_in_order(from, to);
        stream.group = group;
        stream.parked_position = None;
        self.has_gap_frame = false;
        for frame in private_frames {
            // What a slow listener misses comes after what waits for it already.
            match &mut self.backlog {
                Some(backlog) if frame.kind() == FrameKind::Event => {
                    // The next round checks the limit.
                    let _ = backlog.push(&frame);
                }
                _ => self.push_private(group.shard(), frame),
            }
        }
    }

    /// Closes a listener that cannot keep up. It still gets the frame that is partly written, and its private
    /// frames.
    fn disconnect_slow(&mut self, queues: Queues<'_>) -> PumpResult {
        self.in_flight.truncate(usize::from(self.written_bytes > 0));
        self.backlog = None;
        self.main.cursor = Cursor::at_end(queues.main);
        for stream in &mut self.others {
            if let Some(queue) = queues.get(stream.group) {
                stream.cursor = Cursor::at_end(queue);
            }
        }
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
                let mut skipped = self.written_bytes;
                let parts = self.in_flight.iter().flat_map(|frame| sse::frame_parts(frame));
                for (slot, part) in slices.iter_mut().zip(parts.filter(|part| !part.is_empty())) {
                    let start = skipped.min(part.len());
                    skipped -= start;
                    *slot = IoSlice::new(part.get(start..).unwrap_or_default());
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
            let length = sse::frame_length(frame);
            if self.written_bytes < length {
                return;
            }
            self.written_bytes -= length;
            self.tally.add(length);
            self.in_flight.pop_front();
        }
    }
}
