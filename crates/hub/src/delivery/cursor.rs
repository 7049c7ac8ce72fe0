//! Where one listener is.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use super::{Frame, Lane};

/// Where one listener is in its lane.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    /// What is for this listener alone and comes first: what it missed, or a close.
    own: VecDeque<Arc<Frame>>,
    /// The next frame in order.
    next: u64,
    /// Frames after that which were given ahead of their turn.
    ahead: BTreeSet<u64>,
    /// The last that was given in its turn, from which a client would resume without lacking anything.
    last: Option<Arc<Frame>>,
    /// The place in the log where it began, before there is such a one, if the client knows of none.
    origin: Option<u64>,
}

/// What a listener is to be given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// This frame.
    Frame(Arc<Frame>),
    /// Nothing until something happens.
    Nothing,
    /// It has fallen so far behind that frames for it are gone.
    TooSlow,
}

impl Cursor {
    /// One that hears what comes from now on.
    pub fn at_end(lane: &Lane) -> Self {
        Self { next: lane.end(), ..Self::default() }
    }

    /// Says from where in the log it would resume before it has been given anything, if it does not know that already.
    #[must_use]
    pub fn from(self, origin: Option<u64>) -> Self {
        Self { origin, ..self }
    }

    /// Goes over to the end of another lane. What it has not been given of the first it keeps as its own; whether frames
    /// of that were gone already, [`is_lost`](Self::is_lost) says before.
    pub fn go_over(&mut self, from: &Lane, to: &Lane) {
        let last = self.last.clone();
        let mut lacks = VecDeque::new();
        while let Next::Frame(frame) = self.take(from) {
            lacks.push_back(frame);
        }
        self.own = lacks;
        self.last = last;
        self.next = to.end();
        self.ahead.clear();
    }

    /// Whether frames for it are gone.
    pub fn is_lost(&self, lane: &Lane) -> bool {
        self.next < lane.first
    }

    /// Gives it something of its own, before all else.
    pub fn give(&mut self, frame: Arc<Frame>) {
        self.own.push_back(frame);
    }

    /// Takes the next frame: its own first, then criticals, then the others in order. A critical waits for what is its own
    /// only as far as that is of its session.
    pub fn take(&mut self, lane: &Lane) -> Next {
        if !self.own.is_empty()
            && let Some(number) = self.urgent(lane)
            && let Some(frame) = lane.get(number)
        {
            if let Some(mark) = self.begin() {
                return Next::Frame(mark);
            }
            let along = self.own.iter().position(|one| frame.takes_along(one));
            return match along.and_then(|at| self.own.remove(at)) {
                Some(frame) => Next::Frame(frame.nameless()),
                None => self.follow(lane),
            };
        }
        self.take_own().map_or_else(|| self.follow(lane), Next::Frame)
    }

    /// Whether all that it lacks is no more than so many bytes: what goes out in one write need not overtake.
    pub fn lacks_at_most(&self, lane: &Lane, bytes: usize) -> bool {
        let own = self.own.iter().map(|frame| frame.size());
        let lacks =
            (self.next..lane.end()).map(|number| lane.get(number).map_or(usize::MAX, |frame| frame.size()));
        let mut left = bytes;
        own.chain(lacks).all(|length| match left.checked_sub(length) {
            Some(rest) => {
                left = rest;
                true
            }
            None => false,
        })
    }

    /// Takes the next frame: its own first, then those of its lane in order.
    pub fn take_in_order(&mut self, lane: &Lane) -> Next {
        self.take_own().map_or_else(|| self.in_order(lane), Next::Frame)
    }

    /// The critical frame that is next to go, if there is one.
    fn urgent(&self, lane: &Lane) -> Option<u64> {
        let from = lane.criticals.partition_point(|number| *number < self.next);
        let mut urgent = lane.criticals.range(from..).copied().filter(|number| !self.ahead.contains(number));
        // One that takes others with it lets those go first that do not.
        let alone = |number: &u64| {
            lane.get(*number).is_some_and(|frame| self.before(*number, frame, lane) == *number)
        };
        urgent.clone().find(alone).or_else(|| urgent.next())
    }

    /// Takes the next frame that is its own.
    pub fn take_own(&mut self) -> Option<Arc<Frame>> {
        let frame = self.own.pop_front()?;
        self.note(&frame);
        Some(frame)
    }

    /// What tells a client from where to resume, if there is something to tell.
    pub fn mark(&self) -> Option<Arc<Frame>> {
        let place = self.origin.map(place_id);
        let id = self.last.as_ref().and_then(|frame| frame.id()).or(place.as_deref())?;
        Some(Arc::new(Frame::mark(id)))
    }

    fn note(&mut self, frame: &Arc<Frame>) {
        if frame.id().is_some() {
            self.last = Some(frame.clone());
        }
    }

    /// Before the first that has no id, one that has nothing else: there must be something to resume from.
    fn begin(&mut self) -> Option<Arc<Frame>> {
        if self.last.is_some() {
            return None;
        }
        let mark = self.mark()?;
        self.last = Some(mark.clone());
        Some(mark)
    }

    /// Takes the next frame of its lane: criticals first, without an id where they overtake others, then these in order.
    pub fn follow(&mut self, lane: &Lane) -> Next {
        if let Some(number) = self.urgent(lane)
            && number > self.next
            && let Some(frame) = lane.get(number)
        {
            let number = self.before(number, frame, lane);
            if number > self.next {
                let Some(frame) = lane.get(number) else { return Next::TooSlow };
                if let Some(mark) = self.begin() {
                    return Next::Frame(mark);
                }
                self.ahead.insert(number);
                return Next::Frame(frame.nameless());
            }
        }
        self.in_order(lane)
    }

    fn in_order(&mut self, lane: &Lane) -> Next {
        loop {
            if self.next >= lane.end() {
                return Next::Nothing;
            }
            let Some(frame) = lane.get(self.next) else { return Next::TooSlow };
            let given = self.ahead.remove(&self.next);
            self.next += 1;
            if !given && !self.own.is_empty() {
                return Next::Frame(frame.nameless());
            }
            if !given {
                let frame = frame.clone();
                self.note(&frame);
                return Next::Frame(frame);
            }
        }
    }

    /// The first of what must come before a critical frame, itself if there is nothing: what its session said before. Only
    /// a question leaves text behind.
    fn before(&self, number: u64, frame: &Frame, lane: &Lane) -> u64 {
        let earlier = |number: &u64| {
            lane.get(*number).is_some_and(|one| frame.takes_along(one)) && !self.ahead.contains(number)
        };
        (self.next..number).find(earlier).unwrap_or(number)
    }

    /// How many frames of its lane it has not been given.
    pub fn behind(&self, lane: &Lane) -> u64 {
        lane.end().saturating_sub(self.next)
    }
}

/// The id by which a place in the log is named where there is no event to name it.
pub fn place_id(position: u64) -> String {
    format!("at_{position}")
}

/// The place that an id names, if it is such a one.
pub fn id_place(id: &str) -> Option<u64> {
    id.strip_prefix("at_")?.parse().ok()
}
