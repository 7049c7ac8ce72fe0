//! One listener: what is next for it, and how it is written.

use std::collections::VecDeque;
use std::io::{ErrorKind, IoSlice, Write};
use std::sync::Arc;

use hub::LaneId;
use hub::delivery::{Backlog, Cursor, Frame, Lane, Next};
use seal::UnixMillis;

use super::round::Tally;
use super::{Limits, Sink};
use crate::sse;

/// Who is let go has so many beats to take its last word.
pub(super) const PATIENCE: u8 = 2;
/// Who resumes from here has a gap.
const BEHIND: &str = "behind";

pub(super) struct Listener {
    pub(super) lane: LaneId,
    pub(super) cursor: Cursor,
    pub(super) sink: Sink,
    /// Taken out of the queue and not yet written whole.
    in_hand: VecDeque<Arc<Frame>>,
    /// Bytes of the first of these that are written.
    written: usize,
    pub(super) blocked: bool,
    /// Since then more waits for it than would be joined.
    behind_since: Option<UnixMillis>,
    /// It does not keep up, and this is what waits for it.
    backlog: Option<Box<Backlog>>,
    /// It gets what is its own and nothing else, and is let go after that, or after so many beats.
    pub(super) leaves_in: Option<u8>,
    pub(super) tally: Tally,
}

pub(super) enum Pumped {
    Good,
    Gone,
    TooSlow,
}

impl Listener {
    pub(super) fn new(lane: LaneId, cursor: Cursor, sink: Sink) -> Self {
        Self {
            lane,
            cursor,
            sink,
            in_hand: VecDeque::new(),
            written: 0,
            blocked: false,
            behind_since: None,
            backlog: None,
            leaves_in: None,
            tally: Tally::default(),
        }
    }

    /// Writes as much as it will take.
    pub(super) fn pump(&mut self, lane: &Lane, limits: &Limits) -> Pumped {
        while !self.blocked {
            let mut bytes: usize = self.in_hand.iter().map(|frame| frame.size()).sum();
            // For the slow one frame at a time: what is critical waits for all that is taken out.
            let most = if self.backlog.is_some() { 1 } else { limits.in_hand };
            let overtakes = !self.cursor.lacks_at_most(lane, limits.in_hand);
            while bytes < most {
                match self.next(lane, overtakes) {
                    Next::Frame(frame) => {
                        bytes += frame.size();
                        self.in_hand.push_back(frame);
                    }
                    Next::Nothing => break,
                    Next::TooSlow => return self.let_go(lane),
                }
            }
            if self.in_hand.is_empty() {
                self.behind_since = None;
                return if self.leaves_in.is_some() { Pumped::Gone } else { Pumped::Good };
            }
            if !self.write() {
                return Pumped::Gone;
            }
        }
        if self.leaves_in.is_some() || self.put_by(lane, limits) { Pumped::Good } else { self.let_go(lane) }
    }

    /// The next frame for it. What comes out of a backlog has no id: how it was joined, nobody knows after a while.
    fn next(&mut self, lane: &Lane, overtakes: bool) -> Next {
        if self.leaves_in.is_some() {
            return self.cursor.take_own().map_or(Next::Nothing, Next::Frame);
        }
        let Some(backlog) = &mut self.backlog else {
            return if overtakes { self.cursor.take(lane) } else { self.cursor.take_in_order(lane) };
        };
        if let Some(frame) = self.cursor.take_own().or_else(|| Some(backlog.pull(crate::clock())?.nameless()))
        {
            return Next::Frame(frame);
        }
        self.backlog = None;
        self.cursor.mark().map_or_else(|| self.cursor.take(lane), Next::Frame)
    }

    /// It takes no more for now. Who is far behind gets a backlog, in which what waits is joined; `false` if even that is
    /// too long.
    fn put_by(&mut self, lane: &Lane, limits: &Limits) -> bool {
        if self.cursor.is_lost(lane) {
            return false;
        }
        if self.backlog.is_none() {
            let behind = self.cursor.behind(lane);
            if behind <= limits.lanes.merge as u64 {
                self.behind_since = None;
                return true;
            }
            let now = crate::clock();
            let since = *self.behind_since.get_or_insert(now);
            // A burst is no reason to join, unless the lane would forget what it holds.
            if u128::from(now.millis_since(since).unsigned_abs()) < limits.burst.as_millis()
                && lane.share_behind(behind) < 0.25
            {
                return true;
            }
            self.behind_since = None;
            self.backlog = Some(Box::new(Backlog::new(limits.lanes)));
            self.cursor.give(Arc::new(Frame::mark(BEHIND)));
        }
        let Some(backlog) = &mut self.backlog else { return true };
        while let Next::Frame(frame) = self.cursor.follow(lane) {
            if !backlog.push(&frame) {
                return false;
            }
        }
        true
    }

    /// It goes over to another lane; who has a backlog takes along what it lacks of the first.
    pub(super) fn go_over(&mut self, from: &Lane, to: &Lane) {
        if let Some(backlog) = &mut self.backlog {
            while let Next::Frame(frame) = self.cursor.follow(from) {
                // Whether that is too much, the next round finds out.
                let _ = backlog.push(&frame);
            }
        }
        self.cursor.go_over(from, to);
    }

    /// It could not keep up. Of what is for it, it gets the frame that is begun and what it is told for farewell.
    fn let_go(&mut self, lane: &Lane) -> Pumped {
        self.in_hand.truncate(usize::from(self.written > 0));
        self.backlog = None;
        self.cursor = Cursor::at_end(lane);
        self.leaves_in = Some(PATIENCE);
        Pumped::TooSlow
    }

    fn write(&mut self) -> bool {
        match &mut self.sink {
            Sink::Pending => {
                self.blocked = true;
                true
            }
            Sink::Channel(channel) => {
                while let Some(frame) = self.in_hand.pop_front() {
                    let size = frame.size();
                    match channel.try_send(frame) {
                        Ok(()) => self.tally.add(size),
                        Err(tokio::sync::mpsc::error::TrySendError::Full(frame)) => {
                            self.in_hand.push_front(frame);
                            self.blocked = true;
                            return true;
                        }
                        Err(tokio::sync::mpsc::error::TrySendError::Closed(_)) => return false,
                    }
                }
                true
            }
            Sink::Socket(socket) => {
                let mut slices = [IoSlice::new(&[]); 64];
                let mut count = 0;
                for (slot, frame) in slices.iter_mut().zip(&self.in_hand) {
                    let from = if count == 0 { self.written } else { 0 };
                    *slot = IoSlice::new(sse::bytes(frame).get(from..).unwrap_or_default());
                    count += 1;
                }
                match socket.write_vectored(slices.get(..count).unwrap_or_default()) {
                    Ok(0) => return false,
                    Ok(written) => self.wrote(written),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => self.blocked = true,
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(_) => return false,
                }
                true
            }
        }
    }

    fn wrote(&mut self, bytes: usize) {
        self.written += bytes;
        while let Some(frame) = self.in_hand.front() {
            let length = sse::bytes(frame).len();
            if self.written < length {
                return;
            }
            self.written -= length;
            self.tally.add(length);
            self.in_hand.pop_front();
        }
    }
}
