//! Fan-out: one thread that writes to all streaming listeners.
//!
//! After a stream's head is sent, its socket comes here and costs a cursor and a place in the poll from then on. The thread
//! works in rounds: it takes all orders that have come in, puts their frames on the lanes, and writes to each listener of a
//! lane that grew as much as its socket takes, many frames in one call. What comes in meanwhile goes out together in the
//! next round. A socket that takes no more waits for its turn in the poll; nobody waits for it.

use std::collections::{HashMap, VecDeque};
use std::io::{ErrorKind, IoSlice, Read, Write};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use hub::delivery::{Backlog, Cursor, Frame, Lane, LaneLimits, Next};
use hub::{LaneId, ListenerId};
use mio::{Events, Interest, Poll, Token, Waker};

use crate::observe::Sent;

/// How far listeners may be behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// What waits for them.
    pub lanes: LaneLimits,
    /// So many bytes at most are taken out of a listener's queue before its socket has taken them: a critical frame waits
    /// for no more than that.
    pub in_hand: usize,
    /// Who catches up within that time is not slow: what waits for it stays as it is.
    pub burst: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        LaneLimits::default().into()
    }
}

impl From<LaneLimits> for Limits {
    fn from(lanes: LaneLimits) -> Self {
        Self { lanes, in_hand: 16 * 1024, burst: Duration::from_millis(500) }
    }
}

/// What the thread is told.
#[derive(Debug)]
#[non_exhaustive]
pub enum Order {
    /// Frames, each for a lane; lanes come into being by being named.
    Frames(Vec<(LaneId, Arc<Frame>)>),
    /// A listener joins a lane, with what is for it alone.
    Attach {
        /// Which.
        listener: ListenerId,
        /// Where.
        lane: LaneId,
        /// How it is reached.
        sink: Sink,
        /// What it is given first.
        own: Vec<Arc<Frame>>,
        /// The place in the log from which it would resume, if it knows of none.
        from: Option<u64>,
    },
    /// A listener goes over to another lane; what it has not been given of the old one comes first.
    Move {
        /// Which.
        listener: ListenerId,
        /// Where to.
        lane: LaneId,
    },
    /// A listener that was attached without a sink has one now.
    Connect {
        /// Which.
        listener: ListenerId,
        /// How it is reached.
        sink: Sink,
    },
    /// Something for one listener.
    Give {
        /// Which.
        listener: ListenerId,
        /// What.
        frame: Arc<Frame>,
    },
    /// The listener is to be let go, once it has been given what is its own.
    Close(ListenerId),
    /// The listener behind a channel has taken what was in it, or is gone.
    Ready(ListenerId),
    /// Everybody gets a comment, so that connections do not fall asleep and dead ones are noticed.
    Heartbeat,
    /// Somebody waits until there is no listener any more.
    Empty(tokio::sync::oneshot::Sender<()>),
    /// The end.
    Stop,
}

/// How a listener is reached.
#[derive(Debug)]
pub enum Sink {
    /// Not yet: what is for it waits.
    Pending,
    /// A socket whose stream is SSE.
    Socket(mio::net::TcpStream),
    /// Somebody who frames for himself, and says when he can take more.
    Channel(tokio::sync::mpsc::Sender<Arc<Frame>>),
}

/// What the thread tells.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum News {
    /// A listener is gone.
    Gone(ListenerId),
    /// A listener could not keep up and was let go.
    TooSlow(ListenerId),
}

/// A handle to the thread.
#[derive(Clone, Debug)]
pub struct Fanout {
    orders: Sender<Order>,
    waker: Arc<Waker>,
    sent: Arc<Sent>,
}

impl Fanout {
    /// Starts the thread. What it has to tell goes to `news`.
    pub fn start(
        limits: impl Into<Limits>,
        news: impl FnMut(News) + Send + 'static,
    ) -> std::io::Result<(Self, JoinHandle<()>)> {
        let poll = Poll::new()?;
        let waker = Arc::new(Waker::new(poll.registry(), WAKE)?);
        let (orders, inbox) = channel();
        let sent: Arc<Sent> = Arc::default();
        let thread = Round {
            poll,
            inbox,
            limits: limits.into(),
            lanes: HashMap::new(),
            listeners: HashMap::new(),
            grown: Vec::new(),
            news: Box::new(news),
            waits_for_end: Vec::new(),
            sent: sent.clone(),
            tally: Tally::default(),
        };
        let handle = std::thread::Builder::new().name("fan-out".to_owned()).spawn(move || thread.run())?;
        Ok((Self { orders, waker, sent }, handle))
    }

    /// What it has done.
    pub(crate) fn sent(&self) -> Arc<Sent> {
        self.sent.clone()
    }

    /// Gives an order. One given after the end is lost, as it should be.
    pub fn order(&self, order: Order) {
        if self.orders.send(order).is_ok() {
            let _ = self.waker.wake();
        }
    }
}

const WAKE: Token = Token(usize::MAX);
/// Who is let go has so many beats to take its last word.
const PATIENCE: u8 = 2;
/// Who resumes from here has a gap.
const BEHIND: &str = "behind";

struct Round {
    poll: Poll,
    inbox: Receiver<Order>,
    limits: Limits,
    lanes: HashMap<LaneId, Shared>,
    listeners: HashMap<ListenerId, Listener>,
    /// Lanes that have grown since the last round.
    grown: Vec<LaneId>,
    news: Box<dyn FnMut(News) + Send>,
    waits_for_end: Vec<tokio::sync::oneshot::Sender<()>>,
    sent: Arc<Sent>,
    /// What was sent in this round.
    tally: Tally,
}

/// Frames and bytes.
#[derive(Default)]
struct Tally(u64, u64);

struct Shared {
    lane: Lane,
    listeners: Vec<ListenerId>,
    is_grown: bool,
}

struct Listener {
    lane: LaneId,
    cursor: Cursor,
    sink: Sink,
    /// Taken out of the queue and not yet written whole.
    in_hand: VecDeque<Arc<Frame>>,
    /// Bytes of the first of these that are written.
    written: usize,
    blocked: bool,
    /// Since then more waits for it than would be joined.
    behind_since: Option<i64>,
    /// It does not keep up, and this is what waits for it.
    backlog: Option<Box<Backlog>>,
    /// It gets what is its own and nothing else, and is let go after that, or after so many beats.
    leaves_in: Option<u8>,
    tally: Tally,
}

enum Pumped {
    Good,
    Gone,
    TooSlow,
}

impl Round {
    fn run(mut self) {
        let mut events = Events::with_capacity(1024);
        loop {
            if !self.take_orders() {
                return;
            }
            self.write_grown();
            if self.listeners.is_empty() {
                for waiting in self.waits_for_end.drain(..) {
                    let _ = waiting.send(());
                }
            }
            self.count();
            if self.poll.poll(&mut events, None).is_err_and(|error| error.kind() != ErrorKind::Interrupted) {
                return;
            }
            for event in &events {
                if event.token() == WAKE {
                    continue;
                }
                let id = ListenerId(event.token().0 as u64);
                if event.is_readable() || event.is_read_closed() {
                    self.hear(id);
                }
                if event.is_writable() {
                    if let Some(listener) = self.listeners.get_mut(&id) {
                        listener.blocked = false;
                    }
                    self.pump(id);
                }
            }
        }
    }

    /// Takes all orders that are there; `false` at the end.
    fn take_orders(&mut self) -> bool {
        loop {
            match self.inbox.try_recv() {
                Ok(Order::Stop) | Err(TryRecvError::Disconnected) => return false,
                Ok(order) => self.follow(order),
                Err(TryRecvError::Empty) => return true,
            }
        }
    }

    fn follow(&mut self, order: Order) {
        match order {
            Order::Frames(frames) => {
                for (id, frame) in frames {
                    let shared = lane(&mut self.lanes, id, self.limits.lanes);
                    shared.lane.push(frame);
                    if !std::mem::replace(&mut shared.is_grown, true) {
                        self.grown.push(id);
                    }
                }
            }
            Order::Attach { listener, lane, sink, own, from } => self.attach(listener, lane, sink, own, from),
            Order::Move { listener: id, lane: to } => {
                let Some(listener) = self.listeners.get_mut(&id) else { return };
                let from = std::mem::replace(&mut listener.lane, to);
                lane(&mut self.lanes, to, self.limits.lanes).listeners.push(id);
                if let (Some(old), Some(new)) = (self.lanes.get(&from), self.lanes.get(&to)) {
                    listener.go_over(&old.lane, &new.lane);
                }
                self.leave(from, id);
            }
            Order::Connect { listener, sink } => self.connect(listener, sink),
            Order::Give { listener: id, frame } => {
                if let Some(listener) = self.listeners.get_mut(&id) {
                    listener.cursor.give(frame);
                    self.pump(id);
                }
            }
            Order::Close(id) => {
                if let Some(listener) = self.listeners.get_mut(&id) {
                    listener.leaves_in.get_or_insert(PATIENCE);
                    self.pump(id);
                }
            }
            Order::Ready(id) => {
                let Some(listener) = self.listeners.get_mut(&id) else { return };
                listener.blocked = false;
                if matches!(&listener.sink, Sink::Channel(channel) if channel.is_closed()) {
                    return self.lose(News::Gone(id));
                }
                self.pump(id);
            }
            Order::Heartbeat => self.beat(),
            Order::Empty(waiting) => self.waits_for_end.push(waiting),
            Order::Stop => {}
        }
    }

    fn beat(&mut self) {
        let beat = Arc::new(Frame::heartbeat());
        let all: Vec<_> = self.listeners.keys().copied().collect();
        for id in all {
            let Some(listener) = self.listeners.get_mut(&id) else { continue };
            match &mut listener.leaves_in {
                Some(0) => self.lose(News::Gone(id)),
                Some(beats) => *beats -= 1,
                None if listener.blocked => {}
                None => {
                    listener.cursor.give(beat.clone());
                    self.pump(id);
                }
            }
        }
    }

    fn connect(&mut self, id: ListenerId, mut sink: Sink) {
        if !self.register(id, &mut sink) {
            return self.lose(News::Gone(id));
        }
        if let Some(listener) = self.listeners.get_mut(&id) {
            self.sent.streams.add(u64::from(matches!(sink, Sink::Socket(_))));
            listener.sink = sink;
            listener.blocked = false;
            self.pump(id);
        }
    }

    fn register(&mut self, id: ListenerId, sink: &mut Sink) -> bool {
        let Sink::Socket(socket) = sink else { return true };
        let Ok(token) = usize::try_from(id.0) else { return false };
        let interest = Interest::READABLE | Interest::WRITABLE;
        self.poll.registry().register(socket, Token(token), interest).is_ok()
    }

    fn attach(
        &mut self,
        id: ListenerId,
        to: LaneId,
        mut sink: Sink,
        own: Vec<Arc<Frame>>,
        from: Option<u64>,
    ) {
        if !self.register(id, &mut sink) {
            (self.news)(News::Gone(id));
            return;
        }
        let shared = lane(&mut self.lanes, to, self.limits.lanes);
        let mut cursor = Cursor::at_end(&shared.lane).from(from);
        for frame in own {
            cursor.give(frame);
        }
        self.sent.streams.add(u64::from(matches!(sink, Sink::Socket(_))));
        shared.listeners.push(id);
        let listener = Listener {
            lane: to,
            cursor,
            sink,
            in_hand: VecDeque::new(),
            written: 0,
            blocked: false,
            behind_since: None,
            backlog: None,
            leaves_in: None,
            tally: Tally::default(),
        };
        self.listeners.insert(id, listener);
        self.pump(id);
    }

    /// Once a round.
    fn count(&mut self) {
        let Tally(frames, bytes) = std::mem::take(&mut self.tally);
        self.sent.frames.add(frames);
        self.sent.bytes.add(bytes);
    }

    fn write_grown(&mut self) {
        for id in std::mem::take(&mut self.grown) {
            let Some(shared) = self.lanes.get_mut(&id) else { continue };
            shared.is_grown = false;
            let mut lost = Vec::new();
            for listener_id in &shared.listeners {
                let Some(listener) = self.listeners.get_mut(listener_id) else { continue };
                let pumped = listener.pump(&shared.lane, &self.limits);
                self.tally.take(listener);
                match pumped {
                    Pumped::Good => {}
                    Pumped::Gone => lost.push(*listener_id),
                    Pumped::TooSlow => (self.news)(News::TooSlow(*listener_id)),
                }
            }
            for id in lost {
                self.lose(News::Gone(id));
            }
        }
    }

    fn pump(&mut self, id: ListenerId) {
        let Some(listener) = self.listeners.get_mut(&id) else { return };
        let Some(shared) = self.lanes.get(&listener.lane) else { return };
        let pumped = listener.pump(&shared.lane, &self.limits);
        self.tally.take(listener);
        match pumped {
            Pumped::Good => {}
            Pumped::Gone => self.lose(News::Gone(id)),
            Pumped::TooSlow => (self.news)(News::TooSlow(id)),
        }
    }

    /// A listener of SSE has nothing to say; that it hangs up is what there is to hear.
    fn hear(&mut self, id: ListenerId) {
        let Some(Listener { sink: Sink::Socket(socket), .. }) = self.listeners.get_mut(&id) else { return };
        let mut heard = [0; 512];
        // What it says all the same is read over, a little of it; a flood is a reason to part.
        for _ in 0..16 {
            match socket.read(&mut heard) {
                Ok(0) => return self.lose(News::Gone(id)),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return self.lose(News::Gone(id)),
            }
        }
        self.lose(News::Gone(id));
    }

    fn lose(&mut self, news: News) {
        let (News::Gone(id) | News::TooSlow(id)) = news;
        let Some(mut listener) = self.listeners.remove(&id) else { return };
        if let Sink::Socket(socket) = &mut listener.sink {
            self.sent.streams.take(1);
            let _ = self.poll.registry().deregister(socket);
        }
        self.leave(listener.lane, id);
        (self.news)(news);
    }

    fn leave(&mut self, from: LaneId, id: ListenerId) {
        if let Some(shared) = self.lanes.get_mut(&from) {
            shared.listeners.retain(|other| *other != id);
            if shared.listeners.is_empty() {
                self.lanes.remove(&from);
                self.grown.retain(|other| *other != from);
            }
        }
    }
}

impl Tally {
    fn add(&mut self, bytes: usize) {
        self.0 += 1;
        self.1 += bytes as u64;
    }

    fn take(&mut self, listener: &mut Listener) {
        let Self(frames, bytes) = std::mem::take(&mut listener.tally);
        self.0 += frames;
        self.1 += bytes;
    }
}

fn lane(lanes: &mut HashMap<LaneId, Shared>, id: LaneId, limits: LaneLimits) -> &mut Shared {
    lanes.entry(id).or_insert_with(|| Shared {
        lane: Lane::new(limits),
        listeners: Vec::new(),
        is_grown: false,
    })
}

impl Listener {
    /// Writes as much as it will take.
    fn pump(&mut self, lane: &Lane, limits: &Limits) -> Pumped {
        while !self.blocked {
            let mut bytes: usize = self.in_hand.iter().map(|frame| frame.sse().len()).sum();
            while bytes < limits.in_hand {
                match self.next(lane) {
                    Next::Frame(frame) => {
                        bytes += frame.sse().len();
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
    fn next(&mut self, lane: &Lane) -> Next {
        if self.leaves_in.is_some() {
            return self.cursor.take_own().map_or(Next::Nothing, Next::Frame);
        }
        let Some(backlog) = &mut self.backlog else { return self.cursor.take(lane) };
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
            if u128::from(now.abs_diff(since)) < limits.burst.as_millis() && lane.share_behind(behind) < 0.25
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
    fn go_over(&mut self, from: &Lane, to: &Lane) {
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
                    let size = frame.sse().len();
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
                    *slot = IoSlice::new(frame.sse().get(from..).unwrap_or_default());
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
            if self.written < frame.sse().len() {
                return;
            }
            self.written -= frame.sse().len();
            self.tally.add(frame.sse().len());
            self.in_hand.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_listener_behind_a_channel_that_is_gone_is_missed_at_once() {
        let (news, told) = channel();
        let (fanout, _) = Fanout::start(LaneLimits::default(), move |one| news.send(one).unwrap()).unwrap();
        let (sender, frames) = tokio::sync::mpsc::channel(1);
        let listener = ListenerId(7);
        let (lane, sink) = (LaneId(1), Sink::Channel(sender));
        fanout.order(Order::Attach { listener, lane, sink, own: Vec::new(), from: None });
        drop(frames);
        fanout.order(Order::Ready(listener));
        assert_eq!(told.recv_timeout(Duration::from_secs(30)), Ok(News::Gone(listener)));
    }
}
