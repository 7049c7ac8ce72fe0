//! Delivery: lanes of frames, and where each listener is in one.
//!
//! Listeners with equal terms hear the same stream, so an event is shaped and encoded once for all of them: a [`Lane`] holds
//! the frames, a [`Cursor`] says how far one listener has come. An idle listener costs its cursor. A critical frame goes
//! before everything that a listener has not been given yet, and takes with it what its session had said before and would
//! be a lie after it; all else keeps its order.

use std::collections::{BTreeSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use aaep::event::{Event, Payload};

/// One event as it goes to listeners: encoded once, shared by all.
#[derive(Debug, PartialEq, Eq)]
pub struct Frame {
    bytes: Box<[u8]>,
    json: (u32, u32),
    /// The place of the event in the hub's log.
    pub position: u64,
    /// It overtakes.
    pub critical: bool,
    /// The session that it belongs to, as a number; 0 for none.
    session: u64,
    /// What it is in its session.
    part: Part,
}

/// What an event is in its session, as far as order cares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Text or progress: a question may overtake it.
    Text,
    /// A question, or the state that leads to it: it takes with it what tells the state of its session.
    Question,
    /// Anything else; where it is critical, it takes with it all that its session said before.
    Other,
    /// Likewise, and nothing follows it.
    Last,
}

impl Part {
    /// What an event is.
    pub fn of(event: &Event) -> Self {
        match &event.payload {
            Payload::OutputStreaming(_) | Payload::ProgressUpdated(_) => Self::Text,
            Payload::AwaitingConfirmation(_) | Payload::AwaitingClarification(_) => Self::Question,
            Payload::StateChanged(change) if change.to_state == "awaiting_input" => Self::Question,
            _ if event.envelope.event_type.is_terminal() => Self::Last,
            _ => Self::Other,
        }
    }
}

impl Frame {
    /// Frames an event for SSE (B.1.3); the JSON inside is what every other wire sends. The JSON must be on one line.
    pub fn event(id: &str, json: &str, position: u64, critical: bool) -> Self {
        let head = format!("event: aaep.event\nid: {id}\ndata: ");
        let mut bytes = Vec::with_capacity(head.len() + json.len() + 2);
        bytes.extend_from_slice(head.as_bytes());
        bytes.extend_from_slice(json.as_bytes());
        bytes.extend_from_slice(b"\n\n");
        Self::new(bytes, head.len(), json.len(), position, critical)
    }

    /// Frames a message of the handshake, such as a close; it has no id, so that nobody resumes from it.
    pub fn message(json: &str) -> Self {
        let head = "event: aaep.message\ndata: ";
        let bytes = format!("{head}{json}\n\n").into_bytes();
        Self::new(bytes, head.len(), json.len(), 0, true)
    }

    /// A comment that keeps a connection from falling asleep.
    pub fn heartbeat() -> Self {
        Self::new(b":\n\n".to_vec(), 0, 0, 0, false)
    }

    fn new(bytes: Vec<u8>, from: usize, length: usize, position: u64, critical: bool) -> Self {
        let at = |at: usize| u32::try_from(at).unwrap_or(0);
        let json = (at(from), at(from + length));
        Self { bytes: bytes.into(), json, position, critical, session: 0, part: Part::Other }
    }

    /// Says which session it belongs to, and what it is there.
    #[must_use]
    pub fn of_session(mut self, session: &str, part: Part) -> Self {
        let mut hasher = DefaultHasher::new();
        session.hash(&mut hasher);
        (self.session, self.part) = (hasher.finish() | 1, part);
        self
    }

    /// The frame as SSE sends it.
    pub fn sse(&self) -> &[u8] {
        &self.bytes
    }

    /// The event alone, as the other wires send it; empty for a heartbeat.
    pub fn json(&self) -> &str {
        let bytes = self.bytes.get(self.json.0 as usize..self.json.1 as usize).unwrap_or_default();
        std::str::from_utf8(bytes).unwrap_or("")
    }
}

/// The frames of one shape, the newest last; the oldest are forgotten as the limits say.
#[derive(Debug)]
pub struct Lane {
    frames: VecDeque<Arc<Frame>>,
    /// The number of the first frame that is kept.
    first: u64,
    /// The numbers of the critical ones among those kept.
    criticals: VecDeque<u64>,
    bytes: usize,
    limits: LaneLimits,
}

/// How far a listener may fall behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneLimits {
    /// Frames.
    pub frames: usize,
    /// Bytes.
    pub bytes: usize,
}

impl Default for LaneLimits {
    fn default() -> Self {
        Self { frames: 10_000, bytes: 4 * 1024 * 1024 }
    }
}

impl Lane {
    /// An empty lane.
    pub fn new(limits: LaneLimits) -> Self {
        Self { frames: VecDeque::new(), first: 0, criticals: VecDeque::new(), bytes: 0, limits }
    }

    /// Puts a frame on the end.
    pub fn push(&mut self, frame: Arc<Frame>) {
        if frame.critical {
            self.criticals.push_back(self.end());
        }
        self.bytes += frame.bytes.len();
        self.frames.push_back(frame);
        while self.frames.len() > self.limits.frames
            || self.bytes > self.limits.bytes && self.frames.len() > 1
        {
            if let Some(gone) = self.frames.pop_front() {
                self.bytes -= gone.bytes.len();
                self.first += 1;
            }
        }
        while self.criticals.front().is_some_and(|number| *number < self.first) {
            self.criticals.pop_front();
        }
    }

    /// The number that the next frame will have.
    pub fn end(&self) -> u64 {
        self.first + self.frames.len() as u64
    }

    fn get(&self, number: u64) -> Option<&Arc<Frame>> {
        usize::try_from(number.checked_sub(self.first)?).ok().and_then(|at| self.frames.get(at))
    }
}

/// Where one listener is in its lane.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    /// What is for this listener alone and comes first: what it missed, or a close.
    own: VecDeque<Arc<Frame>>,
    /// The next frame in order.
    next: u64,
    /// Frames after that which were given ahead of their turn.
    ahead: BTreeSet<u64>,
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
        Self { own: VecDeque::new(), next: lane.end(), ahead: BTreeSet::new() }
    }

    /// Goes over to the end of another lane. What it has not been given of the first it keeps as its own; whether frames
    /// of that were gone already, [`is_lost`](Self::is_lost) says before.
    pub fn go_over(&mut self, from: &Lane, to: &Lane) {
        let mut own = std::mem::take(&mut self.own);
        while let Next::Frame(frame) = self.take(from) {
            own.push_back(frame);
        }
        *self = Self { own, ..Self::at_end(to) };
    }

    /// Whether frames for it are gone.
    pub fn is_lost(&self, lane: &Lane) -> bool {
        self.next < lane.first
    }

    /// Gives it something of its own, before all else.
    pub fn give(&mut self, frame: Arc<Frame>) {
        self.own.push_back(frame);
    }

    /// Takes the next frame: its own first, then criticals, then the others in order.
    pub fn take(&mut self, lane: &Lane) -> Next {
        if let Some(frame) = self.own.pop_front() {
            return Next::Frame(frame);
        }
        let from = lane.criticals.partition_point(|number| *number < self.next);
        let mut urgent = lane.criticals.range(from..).copied().filter(|number| !self.ahead.contains(number));
        // One that takes others with it lets those go first that do not.
        let alone = |number: &u64| {
            lane.get(*number).is_some_and(|frame| self.before(*number, frame, lane) == *number)
        };
        let urgent = urgent.clone().find(alone).or_else(|| urgent.next());
        if let Some(number) = urgent
            && number > self.next
            && let Some(frame) = lane.get(number)
        {
            let number = self.before(number, frame, lane);
            if number > self.next {
                self.ahead.insert(number);
                return lane.get(number).map_or(Next::TooSlow, |frame| Next::Frame(frame.clone()));
            }
        }
        loop {
            if self.next >= lane.end() {
                return Next::Nothing;
            }
            let Some(frame) = lane.get(self.next) else { return Next::TooSlow };
            let given = self.ahead.remove(&self.next);
            self.next += 1;
            if !given {
                return Next::Frame(frame.clone());
            }
        }
    }

    /// The first of what must come before a critical frame, itself if there is nothing: what its session said before. Only
    /// a question leaves text behind.
    fn before(&self, number: u64, frame: &Frame, lane: &Lane) -> u64 {
        if frame.session == 0 {
            return number;
        }
        let goes_along = |one: &Frame| {
            one.session == frame.session && (frame.part != Part::Question || one.part != Part::Text)
        };
        let earlier = |number: &u64| {
            lane.get(*number).is_some_and(|one| goes_along(one)) && !self.ahead.contains(number)
        };
        (self.next..number).find(earlier).unwrap_or(number)
    }

    /// How many frames it has not been given.
    pub fn behind(&self, lane: &Lane) -> u64 {
        lane.end().saturating_sub(self.next) + self.own.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(id: u64, critical: bool) -> Arc<Frame> {
        Arc::new(Frame::event(&format!("evt_{id}"), "{}", id, critical))
    }

    fn drain(cursor: &mut Cursor, lane: &Lane) -> Vec<u64> {
        let mut taken = Vec::new();
        while let Next::Frame(frame) = cursor.take(lane) {
            taken.push(frame.position);
        }
        taken
    }

    #[test]
    fn a_frame_is_sse_and_json_at_once() {
        let frame = Frame::event("evt_1", r#"{"a":1}"#, 7, false);
        assert_eq!(frame.sse(), b"event: aaep.event\nid: evt_1\ndata: {\"a\":1}\n\n");
        assert_eq!(frame.json(), r#"{"a":1}"#);
        assert_eq!((Frame::heartbeat().sse(), Frame::heartbeat().json()), (b":\n\n".as_slice(), ""));
    }

    #[test]
    fn a_listener_that_keeps_up_hears_everything_in_order() {
        let mut lane = Lane::new(LaneLimits::default());
        let mut cursor = Cursor::at_end(&lane);
        for number in 0..10 {
            lane.push(frame(number, number == 4));
            assert_eq!(drain(&mut cursor, &lane), [number]);
        }
        assert_eq!(cursor.behind(&lane), 0);
    }

    #[test]
    fn a_critical_frame_goes_before_what_was_not_given_yet_and_comes_once() {
        let mut lane = Lane::new(LaneLimits::default());
        let mut cursor = Cursor::at_end(&lane);
        for number in 0..6 {
            lane.push(frame(number, number == 3 || number == 5));
        }
        assert_eq!(drain(&mut cursor, &lane), [3, 5, 0, 1, 2, 4]);
        lane.push(frame(6, true));
        assert_eq!(drain(&mut cursor, &lane), [6]);
    }

    #[test]
    fn the_last_word_of_a_session_takes_with_it_what_it_said_before() {
        let mut lane = Lane::new(LaneLimits::default());
        let mut cursor = Cursor::at_end(&lane);
        let said = |id: u64, session: &str, critical: bool, part: Part| {
            let frame = Frame::event(&format!("evt_{id}"), "{}", id, critical);
            Arc::new(frame.of_session(session, part))
        };
        for frame in [
            said(0, "a", false, Part::Text),
            said(1, "b", false, Part::Text),
            said(2, "a", false, Part::Text),
            said(3, "b", true, Part::Question),
            said(4, "b", true, Part::Last),
            said(5, "a", false, Part::Other),
        ] {
            lane.push(frame);
        }
        assert_eq!(drain(&mut cursor, &lane), [3, 1, 4, 0, 2, 5]);
        assert!(cursor.ahead.is_empty());
        for frame in [
            said(6, "c", false, Part::Text),
            said(7, "c", true, Part::Last),
            said(8, "a", true, Part::Question),
            said(9, "d", true, Part::Last),
        ] {
            lane.push(frame);
        }
        assert_eq!(drain(&mut cursor, &lane), [8, 9, 6, 7], "and nobody else waits for that");
        for frame in [
            said(10, "e", false, Part::Other),
            said(11, "e", false, Part::Text),
            said(12, "f", false, Part::Text),
            said(13, "e", true, Part::Question),
        ] {
            lane.push(frame);
        }
        assert_eq!(drain(&mut cursor, &lane), [10, 13, 11, 12], "no question before its session");
    }

    #[test]
    fn who_goes_over_to_another_lane_keeps_what_it_was_not_given() {
        let mut lane = Lane::new(LaneLimits::default());
        let mut other = Lane::new(LaneLimits::default());
        let mut cursor = Cursor::at_end(&lane);
        other.push(frame(1, true));
        for number in 2..5 {
            lane.push(frame(number, number == 3));
        }
        cursor.give(frame(100, false));
        cursor.go_over(&lane, &other);
        other.push(frame(5, false));
        assert_eq!(drain(&mut cursor, &other), [100, 3, 2, 4, 5]);
    }

    #[test]
    fn what_is_its_own_comes_first() {
        let mut lane = Lane::new(LaneLimits::default());
        let mut cursor = Cursor::at_end(&lane);
        lane.push(frame(1, true));
        cursor.give(frame(100, false));
        assert_eq!(drain(&mut cursor, &lane), [100, 1]);
    }

    #[test]
    fn who_falls_too_far_behind_is_told_so() {
        let mut lane = Lane::new(LaneLimits { frames: 3, bytes: usize::MAX });
        let mut cursor = Cursor::at_end(&lane);
        for number in 0..4 {
            lane.push(frame(number, false));
        }
        assert_eq!(cursor.take(&lane), Next::TooSlow);
        let mut lane = Lane::new(LaneLimits { frames: 100, bytes: 100 });
        let mut cursor = Cursor::at_end(&lane);
        for number in 0..4 {
            lane.push(frame(number, false));
        }
        assert_eq!(cursor.take(&lane), Next::TooSlow);
    }
}
