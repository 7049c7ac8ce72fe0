//! The position of one listener in its queue.

use std::borrow::Cow;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use super::{DeliveryQueue, Frame};

/// The position of one listener in its delivery queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    /// Frames for this listener only, such as missed events or a close. They are delivered before the queued frames that
    /// are not critical.
    private_frames: VecDeque<Arc<Frame>>,
    /// The number of the next frame in order.
    next_number: u64,
    /// The numbers of later frames that were already delivered.
    delivered_ahead: BTreeSet<u64>,
    /// The last frame that was delivered in order. A client that resumes from it misses nothing.
    last_in_order: Option<Arc<Frame>>,
    /// The log position at which the cursor started. A client resumes from it if it disconnects before it has received
    /// an event id.
    origin_position: Option<u64>,
    /// Like `origin_position`, for a listener of several shards.
    origin_id: Option<Box<str>>,
}

/// The next frame for a listener, if any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NextFrame {
    /// Deliver this frame.
    Frame(Arc<Frame>),
    /// There is nothing to deliver.
    Empty,
    /// The listener is so far behind that frames for it were dropped.
    Lagged,
}

impl Cursor {
    /// Creates a cursor that receives only new frames.
    pub fn at_end(queue: &DeliveryQueue) -> Self {
        Self { next_number: queue.end(), ..Self::default() }
    }

    /// Sets the log position from which a client resumes if it disconnects before it has received an event id.
    #[must_use]
    pub fn with_origin(self, origin: Option<u64>) -> Self {
        Self { origin_position: origin, ..self }
    }

    /// Sets the id from which a client of several shards resumes until it has received an id from this queue.
    #[must_use]
    pub fn with_origin_id(self, origin_id: Option<Box<str>>) -> Self {
        Self { origin_id, ..self }
    }

    /// Moves to the end of another queue. Undelivered frames of the old queue become private frames. Call
    /// [`has_lost_frames`](Self::has_lost_frames) first, because dropped frames cannot be detected after the move.
    pub fn move_to(&mut self, from: &DeliveryQueue, to: &DeliveryQueue) {
        let last_in_order = self.last_in_order.clone();
        let mut undelivered = VecDeque::new();
        while let NextFrame::Frame(frame) = self.take(from) {
            undelivered.push_back(frame);
        }
        self.private_frames = undelivered;
        self.last_in_order = last_in_order;
        self.next_number = to.end();
        self.delivered_ahead.clear();
    }

    /// Like [`move_to`](Self::move_to), but keeps the order and the ids of the undelivered frames. Returns the id after which a
    /// client resumes that has received all of them.
    pub fn move_in_order(&mut self, from: &DeliveryQueue, to: &DeliveryQueue) -> Option<String> {
        let newest = (self.next_number..from.end()).rev().find_map(|number| from.get(number)?.id());
        let newest = newest.or_else(|| self.private_frames.iter().rev().find_map(|frame| frame.id()));
        let newest = newest.map(Cow::Borrowed).or_else(|| self.resume_id()).map(Cow::into_owned);
        let last_in_order = self.last_in_order.clone();
        let mut undelivered = VecDeque::new();
        while let NextFrame::Frame(frame) = self.take_in_order(from) {
            undelivered.push_back(frame);
        }
        self.private_frames = undelivered;
        self.last_in_order = last_in_order;
        self.next_number = to.end();
        self.delivered_ahead.clear();
        newest
    }

    /// Whether frames for this listener were dropped.
    pub fn has_lost_frames(&self, queue: &DeliveryQueue) -> bool {
        self.next_number < queue.first_number
    }

    /// Adds a private frame.
    pub fn push_private(&mut self, frame: Arc<Frame>) {
        self.private_frames.push_back(frame);
    }

    /// Takes the next frame: critical frames first, then private frames, then the others in order. A critical frame
    /// waits for the private frames of its session that it must not overtake.
    pub fn take(&mut self, queue: &DeliveryQueue) -> NextFrame {
        if !self.private_frames.is_empty()
            && let Some(number) = self.next_critical(queue)
            && let Some(frame) = queue.get(number)
        {
            if let Some(resume_position) = self.take_initial_resume_position() {
                return NextFrame::Frame(resume_position);
            }
            let required = self.private_frames.iter().position(|earlier| frame.must_follow(earlier));
            return match required.and_then(|at| self.private_frames.remove(at)) {
                Some(frame) => NextFrame::Frame(frame.without_id()),
                None => self.take_from_queue(queue),
            };
        }
        self.take_private().map_or_else(|| self.take_from_queue(queue), NextFrame::Frame)
    }

    /// Whether all undelivered frames fit into `bytes`. Frames that are sent in one write need not overtake each other.
    pub fn pending_fits_in(&self, queue: &DeliveryQueue, bytes: usize) -> bool {
        self.bytes_left_of(queue, bytes).is_some()
    }

    /// Returns what is left of `bytes` after all undelivered frames, or `None` if they do not fit.
    pub fn bytes_left_of(&self, queue: &DeliveryQueue, bytes: usize) -> Option<usize> {
        let private = self.private_frames.iter().map(|frame| frame.size());
        let undelivered = (self.next_number..queue.end())
            .map(|number| queue.get(number).map_or(usize::MAX, |frame| frame.size()));
        private.chain(undelivered).try_fold(bytes, usize::checked_sub)
    }

    /// Takes the next frame: private frames first, then the queue in order.
    pub fn take_in_order(&mut self, queue: &DeliveryQueue) -> NextFrame {
        self.take_private().map_or_else(|| self.next_in_order(queue), NextFrame::Frame)
    }

    /// Whether a critical frame of the queue is undelivered.
    pub fn has_critical(&self, queue: &DeliveryQueue) -> bool {
        self.next_critical(queue).is_some()
    }

    /// Returns the number of the next critical frame to deliver, if any.
    fn next_critical(&self, queue: &DeliveryQueue) -> Option<u64> {
        let from = queue.criticals.partition_point(|number| *number < self.next_number);
        let mut criticals =
            queue.criticals.range(from..).copied().filter(|number| !self.delivered_ahead.contains(number));
        // Critical frames that pull nothing along go first.
        let pulls_nothing = |number: &u64| {
            queue
                .get(*number)
                .is_some_and(|frame| self.first_required_before(*number, frame, queue) == *number)
        };
        criticals.clone().find(pulls_nothing).or_else(|| criticals.next())
    }

    /// Takes the next private frame.
    pub fn take_private(&mut self) -> Option<Arc<Frame>> {
        let frame = self.private_frames.pop_front()?;
        self.record_delivery(&frame);
        Some(frame)
    }

    /// Returns a frame with the id from which the client can resume, if there is one.
    pub fn resume_position(&self) -> Option<Arc<Frame>> {
        Some(Arc::new(Frame::resume_position(&self.resume_id()?)))
    }

    /// Returns the id from which the client can resume, if there is one.
    pub fn resume_id(&self) -> Option<Cow<'_, str>> {
        let delivered = self.last_in_order.as_ref().and_then(|frame| frame.id());
        let id = delivered.or(self.origin_id.as_deref()).map(Cow::Borrowed);
        id.or_else(|| Some(position_to_id(self.origin_position?).into()))
    }

    fn record_delivery(&mut self, frame: &Arc<Frame>) {
        if frame.id().is_some() {
            self.last_in_order = Some(frame.clone());
        }
    }

    /// Returns a resume position if none of the delivered frames had an id. The caller must deliver it before the first
    /// frame without an id, because the client needs an id to resume from.
    fn take_initial_resume_position(&mut self) -> Option<Arc<Frame>> {
        if self.last_in_order.is_some() {
            return None;
        }
        let resume_position = self.resume_position()?;
        self.last_in_order = Some(resume_position.clone());
        Some(resume_position)
    }

    /// Takes the next frame from the queue: critical frames first, then the others in order. A critical frame that
    /// overtakes has no id.
    pub fn take_from_queue(&mut self, queue: &DeliveryQueue) -> NextFrame {
        if let Some(number) = self.next_critical(queue)
            && number > self.next_number
            && let Some(frame) = queue.get(number)
        {
            let number = self.first_required_before(number, frame, queue);
            if number > self.next_number {
                let Some(frame) = queue.get(number) else { return NextFrame::Lagged };
                if let Some(resume_position) = self.take_initial_resume_position() {
                    return NextFrame::Frame(resume_position);
                }
                self.delivered_ahead.insert(number);
                return NextFrame::Frame(frame.without_id());
            }
        }
        self.next_in_order(queue)
    }

    fn next_in_order(&mut self, queue: &DeliveryQueue) -> NextFrame {
        loop {
            if self.next_number >= queue.end() {
                return NextFrame::Empty;
            }
            let Some(frame) = queue.get(self.next_number) else { return NextFrame::Lagged };
            let was_delivered = self.delivered_ahead.remove(&self.next_number);
            self.next_number += 1;
            if !was_delivered && !self.private_frames.is_empty() {
                return NextFrame::Frame(frame.without_id());
            }
            if !was_delivered {
                let frame = frame.clone();
                self.record_delivery(&frame);
                return NextFrame::Frame(frame);
            }
        }
    }

    /// Returns the number of the first undelivered frame that must be delivered before the critical frame `number`, or
    /// `number` itself if there is none.
    fn first_required_before(&self, number: u64, frame: &Frame, queue: &DeliveryQueue) -> u64 {
        let is_required = |number: &u64| {
            queue.get(*number).is_some_and(|earlier| frame.must_follow(earlier))
                && !self.delivered_ahead.contains(number)
        };
        (self.next_number..number).find(is_required).unwrap_or(number)
    }

    /// Returns the number of queued frames after the last one that was delivered in order.
    pub fn lag(&self, queue: &DeliveryQueue) -> u64 {
        queue.end().saturating_sub(self.next_number)
    }
}

/// Returns an id for a log position, for use where there is no event id.
pub fn position_to_id(position: u64) -> String {
    format!("at_{position}")
}

/// Returns the log position in an id created by [`position_to_id`].
pub fn position_from_id(id: &str) -> Option<u64> {
    id.strip_prefix("at_")?.parse().ok()
}
