//! The fan-out thread. It processes commands, writes in rounds, and reports disconnected listeners.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::{ErrorKind, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError};

use hub::delivery::{Cursor, DeliveryLimits, DeliveryQueue, Frame};
use hub::{DeliveryGroupId, ListenerId};
use mio::{Events, Interest, Poll, Token};
use rustc_hash::FxHashMap;

use super::listener::{CLOSE_HEARTBEATS, FanoutListener, PumpResult, Queues, ShardStream};
use super::{FanoutCommand, FanoutLimits, FanoutReport, ListenerSink};
use crate::telemetry::FanoutCounters;

pub(super) const WAKE_TOKEN: Token = Token(usize::MAX);

pub(super) struct FanoutLoop {
    poll: Poll,
    commands: Receiver<FanoutCommand>,
    /// Whether the thread has been woken since it last read its commands.
    is_wake_pending: Arc<AtomicBool>,
    limits: FanoutLimits,
    groups: HashMap<DeliveryGroupId, DeliveryGroup>,
    listeners: HashMap<ListenerId, FanoutListener>,
    /// Groups with new frames since the last round.
    dirty_groups: Vec<DeliveryGroupId>,
    report: Box<dyn FnMut(FanoutReport) + Send>,
    empty_waiters: Vec<tokio::sync::oneshot::Sender<()>>,
    counters: Arc<FanoutCounters>,
    /// The number of frames and bytes sent in this round.
    tally: Tally,
}

/// A number of frames and their number of bytes.
#[derive(Default)]
pub(super) struct Tally(u64, u64);

pub(super) struct DeliveryGroup {
    pub(super) queue: DeliveryQueue,
    listeners: Vec<ListenerId>,
    is_dirty: bool,
}

impl FanoutLoop {
    pub(super) fn new(
        poll: Poll,
        (commands, is_wake_pending): (Receiver<FanoutCommand>, Arc<AtomicBool>),
        limits: FanoutLimits,
        report: Box<dyn FnMut(FanoutReport) + Send>,
        counters: Arc<FanoutCounters>,
    ) -> Self {
        Self {
            poll,
            commands,
            is_wake_pending,
            limits,
            groups: HashMap::new(),
            listeners: HashMap::new(),
            dirty_groups: Vec::new(),
            report,
            empty_waiters: Vec::new(),
            counters,
            tally: Tally::default(),
        }
    }

    pub(super) fn run(mut self) {
        let mut events = Events::with_capacity(1024);
        loop {
            if !self.process_commands() {
                return;
            }
            self.write_dirty_groups();
            if self.listeners.is_empty() {
                for waiter in self.empty_waiters.drain(..) {
                    let _ = waiter.send(());
                }
            }
            self.flush_tally();
            if self.poll.poll(&mut events, None).is_err_and(|error| error.kind() != ErrorKind::Interrupted) {
                return;
            }
            for event in &events {
                if event.token() == WAKE_TOKEN {
                    continue;
                }
                let id = ListenerId(event.token().0 as u64);
                if event.is_readable() || event.is_read_closed() {
                    self.check_disconnect(id);
                }
                if event.is_writable() {
                    if let Some(listener) = self.listeners.get_mut(&id) {
                        listener.is_blocked = false;
                    }
                    self.pump(id);
                }
            }
        }
    }

    /// Processes all queued commands. Returns `false` when the thread should stop.
    fn process_commands(&mut self) -> bool {
        // Cleared before reading, so that a later sender wakes the thread again.
        self.is_wake_pending.swap(false, Ordering::AcqRel);
        loop {
            match self.commands.try_recv() {
                Ok(FanoutCommand::Stop) | Err(TryRecvError::Disconnected) => return false,
                Ok(command) => self.apply(command),
                Err(TryRecvError::Empty) => return true,
            }
        }
    }

    fn apply(&mut self, command: FanoutCommand) {
        match command {
            FanoutCommand::Frames(frames) => {
                for (id, frame) in frames {
                    let group = group_entry(&mut self.groups, id, self.limits.delivery);
                    group.queue.push(frame);
                    if !std::mem::replace(&mut group.is_dirty, true) {
                        self.dirty_groups.push(id);
                    }
                }
            }
            FanoutCommand::Attach { listener, group, sink, private_frames, resume_position, origin_id } => {
                let origin = (resume_position, origin_id);
                self.attach(listener, group, sink, private_frames, origin);
            }
            FanoutCommand::Move { listener: id, group: to } => {
                let Some(listener) = self.listeners.get_mut(&id) else { return };
                let Some(from) = listener.group_of_shard(to.shard()) else { return };
                group_entry(&mut self.groups, to, self.limits.delivery).listeners.push(id);
                if let (Some(old), Some(new)) = (self.groups.get(&from), self.groups.get(&to)) {
                    listener.move_to(to, &old.queue, &new.queue);
                }
                self.leave_group(from, id);
            }
            FanoutCommand::Connect { listener, sink } => self.connect(listener, sink),
            FanoutCommand::SendTo { listener: id, frame } => {
                if let Some(listener) = self.listeners.get_mut(&id) {
                    listener.push_message(frame);
                    self.pump(id);
                }
            }
            FanoutCommand::Close(id) => self.close(id),
            FanoutCommand::Park { shard, positions } => {
                let _ = positions.send(self.park(shard));
            }
            FanoutCommand::Remove(id) => self.remove_listener(FanoutReport::Disconnected(id)),
            FanoutCommand::Ready(id) => {
                let Some(listener) = self.listeners.get_mut(&id) else { return };
                listener.is_blocked = false;
                if matches!(&listener.sink, ListenerSink::Channel(channel) if channel.is_closed()) {
                    return self.remove_listener(FanoutReport::Disconnected(id));
                }
                self.pump(id);
            }
            FanoutCommand::Heartbeat => self.send_heartbeats(),
            FanoutCommand::NotifyWhenEmpty(waiter) => self.empty_waiters.push(waiter),
            FanoutCommand::Stop => {}
        }
    }

    /// Moves all listeners of a shard to a group without frames.
    fn park(&mut self, shard: u16) -> FxHashMap<ListenerId, Option<String>> {
        let empty = DeliveryGroupId::first_of(shard);
        let groups = |listener: &FanoutListener| listener.group_of_shard(shard);
        let parked: Vec<_> =
            self.listeners.iter().filter_map(|(id, listener)| Some((*id, groups(listener)?))).collect();
        let mut positions = FxHashMap::default();
        for (id, from) in parked {
            let Some(listener) = self.listeners.get_mut(&id) else { continue };
            if from == empty {
                positions.insert(id, listener.parked_position(shard));
                continue;
            }
            group_entry(&mut self.groups, empty, self.limits.delivery).listeners.push(id);
            let mut has_lost_frames = false;
            if let (Some(old), Some(new)) = (self.groups.get(&from), self.groups.get(&empty)) {
                has_lost_frames = !listener.park(empty, &old.queue, &new.queue);
                positions.insert(id, listener.parked_position(shard));
            }
            self.leave_group(from, id);
            if has_lost_frames {
                self.close(id);
            }
        }
        positions
    }

    /// Closes a listener after it has received its private frames.
    fn close(&mut self, id: ListenerId) {
        if let Some(listener) = self.listeners.get_mut(&id) {
            listener.heartbeats_until_close.get_or_insert(CLOSE_HEARTBEATS);
            self.pump(id);
        }
    }

    fn send_heartbeats(&mut self) {
        let heartbeat = Arc::new(Frame::heartbeat());
        let ids: Vec<_> = self.listeners.keys().copied().collect();
        for id in ids {
            let Some(listener) = self.listeners.get_mut(&id) else { continue };
            match &mut listener.heartbeats_until_close {
                Some(0) => self.remove_listener(FanoutReport::Disconnected(id)),
                Some(remaining) => *remaining -= 1,
                None if listener.is_blocked => {}
                None => {
                    listener.push_message(heartbeat.clone());
                    self.pump(id);
                }
            }
        }
    }

    fn connect(&mut self, id: ListenerId, mut sink: ListenerSink) {
        if !self.register(id, &mut sink) {
            return self.remove_listener(FanoutReport::Disconnected(id));
        }
        if let Some(listener) = self.listeners.get_mut(&id) {
            self.counters.open_streams.add(u64::from(matches!(sink, ListenerSink::Socket(..))));
            listener.sink = sink;
            listener.is_blocked = false;
            self.pump(id);
        }
    }

    /// Registers a socket for polling. Returns `false` if that fails.
    fn register(&mut self, id: ListenerId, sink: &mut ListenerSink) -> bool {
        let ListenerSink::Socket(socket, _) = sink else { return true };
        let Ok(token) = usize::try_from(id.0) else { return false };
        let interest = Interest::READABLE | Interest::WRITABLE;
        self.poll.registry().register(socket, Token(token), interest).is_ok()
    }

    fn attach(
        &mut self,
        id: ListenerId,
        group_id: DeliveryGroupId,
        mut sink: ListenerSink,
        private_frames: Vec<Arc<Frame>>,
        (resume_position, origin_id): (Option<u64>, Option<Box<str>>),
    ) {
        if !self.register(id, &mut sink) {
            (self.report)(FanoutReport::Disconnected(id));
            return;
        }
        if let Some(listener) = self.listeners.get_mut(&id)
            && let Some(from) = listener.group_of_shard(group_id.shard())
        {
            group_entry(&mut self.groups, group_id, self.limits.delivery).listeners.push(id);
            if let (Some(old), Some(new)) = (self.groups.get(&from), self.groups.get(&group_id)) {
                listener.rejoin(group_id, &old.queue, &new.queue, private_frames);
            }
            self.leave_group(from, id);
            return self.pump(id);
        }
        let group = group_entry(&mut self.groups, group_id, self.limits.delivery);
        let cursor = Cursor::at_end(&group.queue).with_origin(resume_position).with_origin_id(origin_id);
        let stream = ShardStream::new(group_id, cursor);
        self.counters.open_streams.add(u64::from(matches!(sink, ListenerSink::Socket(..))));
        group.listeners.push(id);
        let listener = match self.listeners.entry(id) {
            Entry::Occupied(entry) => {
                let listener = entry.into_mut();
                listener.add_stream(stream);
                listener
            }
            Entry::Vacant(entry) => entry.insert(FanoutListener::new(stream, sink)),
        };
        for frame in private_frames {
            listener.push_private(group_id.shard(), frame);
        }
        self.pump(id);
    }

    /// Adds the tally to the counters, once per round.
    fn flush_tally(&mut self) {
        let Tally(frames, bytes) = std::mem::take(&mut self.tally);
        self.counters.frames.add(frames);
        self.counters.bytes.add(bytes);
    }

    fn write_dirty_groups(&mut self) {
        for id in std::mem::take(&mut self.dirty_groups) {
            let Some(group) = self.groups.get_mut(&id) else { continue };
            group.is_dirty = false;
            if group.listeners.is_empty() {
                // The frames were sent before the hub knew that the last listener had left.
                self.groups.remove(&id);
                continue;
            }
            let Some(group) = self.groups.get(&id) else { continue };
            let mut disconnected = Vec::new();
            for listener_id in &group.listeners {
                let Some(listener) = self.listeners.get_mut(listener_id) else { continue };
                let queues = Queues { main: &group.queue, all: &self.groups };
                let result = listener.pump_group(id, queues, &self.limits);
                self.tally.absorb(listener);
                match result {
                    PumpResult::Connected => {}
                    PumpResult::Disconnected => disconnected.push(*listener_id),
                    PumpResult::TooSlow => (self.report)(FanoutReport::TooSlow(*listener_id)),
                }
            }
            for id in disconnected {
                self.remove_listener(FanoutReport::Disconnected(id));
            }
        }
    }

    fn pump(&mut self, id: ListenerId) {
        let Some(listener) = self.listeners.get_mut(&id) else { return };
        let main = listener.main_group();
        let Some(group) = self.groups.get(&main) else { return };
        let queues = Queues { main: &group.queue, all: &self.groups };
        let result = listener.pump_group(main, queues, &self.limits);
        self.tally.absorb(listener);
        match result {
            PumpResult::Connected => {}
            PumpResult::Disconnected => self.remove_listener(FanoutReport::Disconnected(id)),
            PumpResult::TooSlow => (self.report)(FanoutReport::TooSlow(id)),
        }
    }

    /// Checks whether an SSE client has disconnected. A socket that becomes readable normally means a disconnect, because SSE
    /// clients send nothing.
    fn check_disconnect(&mut self, id: ListenerId) {
        let Some(FanoutListener { sink: ListenerSink::Socket(socket, _), .. }) = self.listeners.get_mut(&id)
        else {
            return;
        };
        let mut buffer = [0; 512];
        // Unexpected input is ignored up to a limit. A client that sends more is removed.
        for _ in 0..16 {
            match socket.read(&mut buffer) {
                Ok(0) => return self.remove_listener(FanoutReport::Disconnected(id)),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return self.remove_listener(FanoutReport::Disconnected(id)),
            }
        }
        self.remove_listener(FanoutReport::Disconnected(id));
    }

    fn remove_listener(&mut self, report: FanoutReport) {
        let (FanoutReport::Disconnected(id) | FanoutReport::TooSlow(id)) = report;
        let Some(mut listener) = self.listeners.remove(&id) else { return };
        if let ListenerSink::Socket(socket, _) = &mut listener.sink {
            self.counters.open_streams.subtract(1);
            let _ = self.poll.registry().deregister(socket);
        }
        for group in listener.groups().collect::<Vec<_>>() {
            self.leave_group(group, id);
        }
        // Frees the connection's slot before anybody learns that the listener has left.
        drop(listener);
        (self.report)(report);
    }

    fn leave_group(&mut self, from: DeliveryGroupId, id: ListenerId) {
        if let Some(group) = self.groups.get_mut(&from) {
            group.listeners.retain(|other| *other != id);
            if group.listeners.is_empty() {
                self.groups.remove(&from);
                self.dirty_groups.retain(|other| *other != from);
            }
        }
    }
}

impl Tally {
    pub(super) fn add(&mut self, bytes: usize) {
        self.0 += 1;
        self.1 += bytes as u64;
    }

    fn absorb(&mut self, listener: &mut FanoutListener) {
        let Self(frames, bytes) = std::mem::take(&mut listener.tally);
        self.0 += frames;
        self.1 += bytes;
    }
}

fn group_entry(
    groups: &mut HashMap<DeliveryGroupId, DeliveryGroup>,
    id: DeliveryGroupId,
    limits: DeliveryLimits,
) -> &mut DeliveryGroup {
    groups.entry(id).or_insert_with(|| DeliveryGroup {
        queue: DeliveryQueue::new(limits),
        listeners: Vec::new(),
        is_dirty: false,
    })
}
