//! The thread: orders in, rounds of writing, news out.

use std::collections::HashMap;
use std::io::{ErrorKind, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError};

use hub::delivery::{Cursor, Frame, Lane, LaneLimits};
use hub::{LaneId, ListenerId};
use mio::{Events, Interest, Poll, Token};

use super::listener::{Listener, PATIENCE, Pumped};
use super::{Limits, News, Order, Sink};
use crate::observe::Sent;

pub(super) const WAKE: Token = Token(usize::MAX);

pub(super) struct Round {
    poll: Poll,
    inbox: Receiver<Order>,
    /// Somebody has woken it since it looked.
    woken: Arc<AtomicBool>,
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
pub(super) struct Tally(u64, u64);

struct Shared {
    lane: Lane,
    listeners: Vec<ListenerId>,
    is_grown: bool,
}

impl Round {
    pub(super) fn new(
        poll: Poll,
        (inbox, woken): (Receiver<Order>, Arc<AtomicBool>),
        limits: Limits,
        news: Box<dyn FnMut(News) + Send>,
        sent: Arc<Sent>,
    ) -> Self {
        Self {
            poll,
            inbox,
            woken,
            limits,
            lanes: HashMap::new(),
            listeners: HashMap::new(),
            grown: Vec::new(),
            news,
            waits_for_end: Vec::new(),
            sent,
            tally: Tally::default(),
        }
    }

    pub(super) fn run(mut self) {
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
        // Before it looks: who orders after that wakes it again.
        self.woken.swap(false, Ordering::AcqRel);
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
        let listener = Listener::new(to, cursor, sink);
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
    pub(super) fn add(&mut self, bytes: usize) {
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
