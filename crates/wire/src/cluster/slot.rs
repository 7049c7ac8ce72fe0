//! One shard as this node sees it: it runs here, at another node, or nowhere.

use std::collections::VecDeque;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hub::command::{HubCommand, HubReply, Request, RequestId, TurnOutput, Unavailable};
use hub::delivery::{CloseReason, Frame};
use hub::{ListenerId, Principal};
use rustc_hash::{FxHashMap, FxHashSet};
use tokio::sync::mpsc::UnboundedSender;

use super::RouterLimits;
use super::hosted::HostedShard;
use super::peer::Peer;
use super::standing::{RepairResult, RequestEffect, Standing};
use crate::fanout::FanoutCommand;
use crate::server::{ShardLink, ShardOutputs};

/// How long requests are held after the owner refused one.
const REFUSAL_PAUSE: Duration = Duration::from_millis(50);

/// Number of listeners and agent connections that are attached to a new owner at the same time. Each listener may get many missed
/// events, and a connection to another node that has too much to send is closed.
const MAX_CONCURRENT_REPAIRS: usize = 16;

/// Where each listener resumes in this shard.
pub(super) type Positions = FxHashMap<ListenerId, Option<String>>;

/// A [`ShardLink`] whose shard moves between nodes.
///
/// While the shard can be reached, the slot is open, and requests go to it at once. Otherwise they are held, up to a time
/// limit. When the owner is lost, each request that it has not answered is held for the next owner, if it can be repeated, and
/// is answered with an error if not.
///
/// Locks are acquired in this order: `owner`, the pending replies of the outputs, `state`.
pub(super) struct ShardSlot {
    shard: u16,
    limits: RouterLimits,
    outputs: ShardOutputs,
    /// Replies that cannot be applied where they arise, because the pending replies may be locked there.
    later: UnboundedSender<(RequestId, HubReply)>,
    owner: Mutex<OwnerState>,
    state: Mutex<SlotState>,
}

/// Locked while outputs are applied, so that nothing is applied after the owner has changed.
#[derive(Default)]
struct OwnerState {
    /// Counts the owners.
    generation: u64,
    /// Where the listeners resume, once the fan-out has answered.
    parked: Option<Receiver<Positions>>,
    positions: Positions,
}

#[derive(Default)]
struct SlotState {
    target: ShardTarget,
    /// The connection to the owner, if requests go to it at once.
    open_via: Option<ConnectionNumber>,
    /// When held requests are sent again, after the owner refused one because it is about to stop the shard.
    paused_until: Option<Instant>,
    held: Vec<HeldRequest>,
    sent: FxHashMap<RequestId, SentRequest>,
    standing: Standing,
    /// Requests that attach listeners and connections to a new owner, and wait for the replies to earlier ones.
    waiting_repairs: VecDeque<Request>,
    /// The principals with valid tokens, for a shard that starts on this node.
    valid_principals: Option<Vec<Principal>>,
    counts: ShardCounts,
}

/// What the metrics of a shard count on this node.
#[derive(Clone, Copy, Default)]
pub(super) struct ShardCounts {
    /// How often the shard was started on this node.
    pub(super) starts: u64,
    /// Requests that were sent to another node.
    pub(super) forwarded: u64,
    /// Requests that had to wait for an owner.
    pub(super) held: u64,
    /// Requests that wait for an owner now.
    pub(super) waiting: u64,
}

#[derive(Default)]
enum ShardTarget {
    #[default]
    Nowhere,
    Here(Arc<HostedShard>),
    At(Arc<Peer>),
}

struct HeldRequest {
    request: Request,
    until: Instant,
}

struct SentRequest {
    via: ConnectionNumber,
    /// The request. `None` if it is not kept.
    request: Option<Request>,
    effect: RequestEffect,
}

/// Identifies a connection to another node, among all that this process ever made. Zero stands for this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ConnectionNumber(pub(super) u64);

impl ConnectionNumber {
    pub(super) const HERE: Self = Self(0);
}

/// Where a shard runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShardLocation {
    /// Nowhere.
    Nowhere,
    /// On this node.
    Here,
    /// On another node.
    At {
        /// The name of the node.
        node: String,
        /// Whether the node can be reached and runs the shard.
        is_reachable: bool,
    },
}

/// Permission to apply outputs, while no other owner can take over.
pub(super) struct CurrentOwner<'s> {
    slot: &'s ShardSlot,
    owner: MutexGuard<'s, OwnerState>,
}

impl ShardSlot {
    pub(super) fn new(
        shard: u16,
        limits: RouterLimits,
        outputs: ShardOutputs,
        later: UnboundedSender<(RequestId, HubReply)>,
    ) -> Self {
        Self { shard, limits, outputs, later, owner: Mutex::default(), state: Mutex::default() }
    }

    pub(super) fn shard(&self) -> u16 {
        self.shard
    }

    fn lock(&self) -> MutexGuard<'_, SlotState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_owner(&self) -> CurrentOwner<'_> {
        CurrentOwner { slot: self, owner: self.owner.lock().unwrap_or_else(PoisonError::into_inner) }
    }

    pub(super) fn location(&self) -> ShardLocation {
        let state = self.lock();
        match &state.target {
            ShardTarget::Nowhere => ShardLocation::Nowhere,
            ShardTarget::Here(_) => ShardLocation::Here,
            ShardTarget::At(peer) => {
                ShardLocation::At { node: peer.node().to_owned(), is_reachable: state.open_via.is_some() }
            }
        }
    }

    pub(super) fn counts(&self) -> ShardCounts {
        let state = self.lock();
        ShardCounts { waiting: u64::try_from(state.held.len()).unwrap_or(u64::MAX), ..state.counts }
    }

    /// Returns the shard, if it runs on this node.
    pub(super) fn hosted(&self) -> Option<Arc<HostedShard>> {
        match &self.lock().target {
            ShardTarget::Here(hosted) => Some(hosted.clone()),
            _ => None,
        }
    }

    /// Whether the owner is this node.
    pub(super) fn is_at(&self, peer: &Arc<Peer>) -> bool {
        matches!(&self.lock().target, ShardTarget::At(owner) if Arc::ptr_eq(owner, peer))
    }

    /// Returns permission to apply outputs of the shard on this node, or `None` if there has been another owner since.
    pub(super) fn enter(&self, generation: u64) -> Option<CurrentOwner<'_>> {
        let current = self.lock_owner();
        (current.owner.generation == generation).then_some(current)
    }

    /// Ends the current owner: no output of it is applied any more. Returns the new generation.
    pub(super) fn close(&self) -> u64 {
        let mut current = self.lock_owner();
        current.owner.generation += 1;
        let (sender, parked) = std::sync::mpsc::channel();
        self.outputs.fanout.send(FanoutCommand::Park { shard: self.shard, positions: sender });
        current.owner.parked = Some(parked);
        {
            let mut state = self.lock();
            let state = &mut *state;
            if state.open_via.take().is_some() && matches!(state.target, ShardTarget::At(_)) {
                // The former owner may continue to run the shard.
                for command in state.standing.departures() {
                    let id = RequestId(self.outputs.next_id());
                    state.target.send(self.shard, &Request { id, principal: Principal::local(), command });
                }
            }
        }
        current.end_connection(ConnectionNumber::HERE);
        current.owner.generation
    }

    /// Sets the owner. Requests are held until [`open`](Self::open).
    pub(super) fn set_peer(&self, peer: Option<Arc<Peer>>) {
        self.lock().target = peer.map_or(ShardTarget::Nowhere, ShardTarget::At);
    }

    pub(super) fn set_hosted(&self, hosted: Arc<HostedShard>) {
        let mut state = self.lock();
        if let Some(principals) = state.valid_principals.clone() {
            let command = HubCommand::SetValidTokens { principals };
            let id = RequestId(self.outputs.next_id());
            hosted.submit(Request { id, principal: Principal::local(), command });
        }
        state.target = ShardTarget::Here(hosted);
        state.counts.starts += 1;
    }

    /// Stops sending requests to the shard on this node, and returns it. Its outputs are still applied.
    pub(super) fn take_hosted(&self) -> Option<Arc<HostedShard>> {
        let mut state = self.lock();
        if !matches!(state.target, ShardTarget::Here(_)) {
            return None;
        }
        state.open_via = None;
        match std::mem::take(&mut state.target) {
            ShardTarget::Here(hosted) => Some(hosted),
            _ => None,
        }
    }

    /// If the owner can be reached, attaches the listeners and agent connections of this node to it, sends the held requests, and
    /// from then on sends requests at once.
    pub(super) fn open(&self) {
        let mut current = self.lock_owner();
        if let Some(parked) = current.owner.parked.take() {
            // The fan-out answers as soon as it has written what it is writing.
            current.owner.positions = parked.recv().unwrap_or_default();
        }
        let mut state = self.lock();
        let state = &mut *state;
        if state.open_via.is_some() {
            return;
        }
        state.open_via = match &state.target {
            ShardTarget::Nowhere => None,
            ShardTarget::Here(_) => Some(ConnectionNumber::HERE),
            ShardTarget::At(peer) => peer.connection_for(self.shard),
        };
        if state.open_via.is_none() {
            return;
        }
        let held = std::mem::take(&mut state.held);
        let waiting: FxHashSet<RequestId> = held.iter().map(|held| held.request.id).collect();
        let next_id = || RequestId(self.outputs.next_id());
        let repairs = state.standing.repairs(&current.owner.positions, |id| waiting.contains(&id), next_id);
        state.waiting_repairs = repairs.into();
        state.send_repairs(self.shard, MAX_CONCURRENT_REPAIRS);
        state.paused_until = None;
        state.held = held;
        state.send_held(self.shard);
    }

    /// Applies outputs that came over a connection to another node.
    pub(super) fn apply_remote(&self, connection: ConnectionNumber, outputs: &mut Vec<TurnOutput>) {
        let current = self.lock_owner();
        {
            let state = self.lock();
            let is_current = state.open_via == Some(connection);
            outputs.retain(|output| match output {
                TurnOutput::Reply(id, _) => {
                    state.sent.get(id).map_or(is_current, |sent| sent.via == connection)
                }
                _ => is_current,
            });
        }
        current.apply(outputs);
    }

    /// Ends a request that the owner did not handle, or whose outcome is unknown. It is sent again if that is possible.
    pub(super) fn return_request(&self, connection: ConnectionNumber, id: RequestId, was_refused: bool) {
        let current = self.lock_owner();
        let is_sent = self.lock().sent.get(&id).is_some_and(|sent| sent.via == connection);
        if is_sent {
            current.return_requests(vec![id], was_refused);
        }
    }

    /// Ends all requests that were sent over a connection that has ended.
    pub(super) fn end_connection(&self, connection: ConnectionNumber) {
        self.lock_owner().end_connection(connection);
    }

    /// Sends refused requests again, and answers the held requests whose time is over.
    pub(super) fn expire(&self, now: Instant) {
        let expired: Vec<RequestId> = {
            let mut state = self.lock();
            if state.paused_until.is_some_and(|until| until <= now) {
                state.paused_until = None;
                state.send_held(self.shard);
            }
            let is_expired = |held: &mut HeldRequest| held.until <= now;
            let expired: Vec<_> = state.held.extract_if(.., is_expired).collect();
            for held in &expired {
                state.standing.forget_request(&held.request);
            }
            expired.into_iter().map(|held| held.request.id).collect()
        };
        for id in expired {
            self.outputs.apply_reply(id, HubReply::Unavailable(Unavailable::NoOwner));
        }
    }
}

impl ShardLink for ShardSlot {
    fn submit(&self, request: Request) -> bool {
        let mut state = self.lock();
        match &request.command {
            HubCommand::SetValidTokens { principals } => {
                state.valid_principals = Some(principals.clone());
                // Every node tells its own shards.
                if !matches!(state.target, ShardTarget::Here(_)) {
                    drop(state);
                    return self.later.send((request.id, HubReply::Done)).is_ok();
                }
            }
            HubCommand::ShutDown => {
                // Only this node stops, so listeners of other nodes continue.
                for (listener, subscription) in state.standing.subscriptions() {
                    let frame = Frame::close(subscription.as_str(), CloseReason::ProducerShutdown);
                    self.outputs.fanout.send(FanoutCommand::SendTo { listener, frame: Arc::new(frame) });
                    self.outputs.fanout.send(FanoutCommand::Close(listener));
                }
                drop(state);
                return self.later.send((request.id, HubReply::Done)).is_ok();
            }
            HubCommand::PauseCheckpoints | HubCommand::ResumeCheckpoints
                if !matches!(state.target, ShardTarget::Here(_)) =>
            {
                drop(state);
                return self.later.send((request.id, HubReply::Done)).is_ok();
            }
            HubCommand::CancelWait { request: id } => {
                state.sent.remove(id);
                state.held.retain(|held| held.request.id != *id);
            }
            HubCommand::Detach { listener, .. } => {
                if let Some(id) = state.standing.attach_request(*listener) {
                    self.drop_held(&mut state, |held| held.request.id != id);
                }
            }
            HubCommand::DisconnectAgent { connection } => {
                let connection = *connection;
                let state = &mut *state;
                self.drop_held(state, |held| release_connection(&mut held.request, connection));
                for sent in state.sent.values_mut() {
                    if let Some(request) = &mut sent.request
                        && !release_connection(request, connection)
                    {
                        sent.request = None;
                    }
                }
            }
            _ => {}
        }
        if !state.standing.note_request(&request) {
            return true;
        }
        let expects_reply = request.command.expects_reply();
        if state.open_via.is_some() && (state.paused_until.is_none() || !expects_reply) {
            return state.send(self.shard, request);
        }
        if !expects_reply {
            // What the request ends is not set up at the next owner.
            return true;
        }
        if state.held.len() >= self.limits.held_requests {
            state.standing.forget_request(&request);
            return false;
        }
        let until = Instant::now() + self.limits.hold_time;
        state.held.push(HeldRequest { request, until });
        state.counts.held += 1;
        true
    }

    fn run_turn(&self, request: Request) -> bool {
        let hosted = {
            let mut state = self.lock();
            match &state.target {
                ShardTarget::Here(hosted) if state.open_via.is_some() => {
                    let hosted = hosted.clone();
                    state.standing.note_request(&request);
                    state.sent.insert(request.id, SentRequest::new(ConnectionNumber::HERE, None, &request));
                    Some(hosted)
                }
                _ => None,
            }
        };
        match hosted {
            Some(hosted) => hosted.run_turn(request),
            None => self.submit(request),
        }
    }
}

/// Removes a closed agent connection from a request that arrived on it. Returns `false` if nothing of the request remains.
fn release_connection(request: &mut Request, closed: hub::AgentConnectionId) -> bool {
    let HubCommand::OnConnection { connection, command } = &mut request.command else { return true };
    if *connection != closed {
        return true;
    }
    let inner = std::mem::replace(&mut **command, HubCommand::ShutDown);
    let remains = !matches!(inner, HubCommand::Follow { .. });
    request.command = inner;
    remains
}

impl ShardSlot {
    /// Drops the held requests that `remains` rejects. A caller that waits for one gets an error.
    fn drop_held(&self, state: &mut SlotState, mut remains: impl FnMut(&mut HeldRequest) -> bool) {
        for dropped in state.held.extract_if(.., |held| !remains(held)) {
            let _ = self.later.send((dropped.request.id, HubReply::Unavailable(Unavailable::NoOwner)));
        }
    }
}

impl SlotState {
    /// Sends up to this many of the waiting repairs, if the owner can be reached.
    fn send_repairs(&mut self, shard: u16, count: usize) {
        let mut sent = 0;
        while sent < count && self.open_via.is_some() {
            let Some(repair) = self.waiting_repairs.pop_front() else { return };
            if self.standing.is_current(&repair) {
                self.target.send(shard, &repair);
                sent += 1;
            }
        }
    }

    /// Sends the held requests, if the owner can be reached.
    fn send_held(&mut self, shard: u16) {
        if self.open_via.is_some() && self.paused_until.is_none() {
            for held in std::mem::take(&mut self.held) {
                self.send(shard, held.request);
            }
        }
    }

    /// Sends a request to the owner, and remembers it until its reply.
    fn send(&mut self, shard: u16, request: Request) -> bool {
        let via = self.open_via.unwrap_or(ConnectionNumber::HERE);
        if !request.command.expects_reply() {
            return self.target.send(shard, &request);
        }
        if let ShardTarget::Here(hosted) = &self.target {
            // A copy costs something, and a shard on this node is seldom lost. Agents spend most of their time with waits.
            let is_wait = matches!(request.command, HubCommand::Wait { .. });
            let kept = is_wait.then(|| request.clone());
            self.sent.insert(request.id, SentRequest::new(via, kept, &request));
            return hosted.submit(request);
        }
        self.target.send(shard, &request);
        self.counts.forwarded += 1;
        let sent = SentRequest::new(via, None, &request);
        self.sent.insert(request.id, SentRequest { request: Some(request), ..sent });
        true
    }
}

impl SentRequest {
    fn new(via: ConnectionNumber, kept: Option<Request>, request: &Request) -> Self {
        Self { via, request: kept, effect: RequestEffect::of(request) }
    }
}

impl ShardTarget {
    fn send(&self, shard: u16, request: &Request) -> bool {
        match self {
            Self::Nowhere => false,
            Self::Here(hosted) => hosted.submit(request.clone()),
            Self::At(peer) => peer.send_request(shard, request),
        }
    }
}

impl CurrentOwner<'_> {
    /// Applies outputs for this node.
    pub(super) fn apply(&self, outputs: &mut Vec<TurnOutput>) {
        let slot = self.slot;
        {
            let mut state = slot.lock();
            let state = &mut *state;
            let (mut further, mut finished_repairs) = (Vec::new(), 0);
            outputs.retain(|output| {
                let sent = match output {
                    TurnOutput::Reply(id, _) => state.sent.remove(id),
                    _ => None,
                };
                let effect = sent.map_or(RequestEffect::None, |sent| sent.effect);
                match state.standing.note_output(output, &effect) {
                    RepairResult::None => return true,
                    RepairResult::Done => {}
                    RepairResult::Close(listener) => further.push(TurnOutput::Close(listener)),
                }
                finished_repairs += usize::from(matches!(output, TurnOutput::Reply(..)));
                false
            });
            state.send_repairs(slot.shard, finished_repairs);
            outputs.append(&mut further);
        }
        slot.outputs.apply(slot.shard, outputs);
    }

    fn end_connection(&self, connection: ConnectionNumber) {
        let ids: Vec<RequestId> = {
            let state = self.slot.lock();
            state.sent.iter().filter(|(_, sent)| sent.via == connection).map(|(id, _)| *id).collect()
        };
        self.return_requests(ids, false);
    }

    /// Holds these requests for the next owner, or answers them with an error if they may not be repeated.
    fn return_requests(&self, ids: Vec<RequestId>, was_refused: bool) {
        if ids.is_empty() {
            return;
        }
        let slot = self.slot;
        let mut lost = Vec::new();
        {
            let mut state = slot.lock();
            let state = &mut *state;
            let until = Instant::now() + slot.limits.hold_time;
            for id in ids {
                let request = state.sent.remove(&id).and_then(|sent| sent.request);
                match request.filter(|request| was_refused || request.command.is_repeatable()) {
                    Some(request) => {
                        state.held.push(HeldRequest { request, until });
                        state.counts.held += 1;
                    }
                    None => lost.push(id),
                }
            }
            // Ids grow, so this is the order in which the requests came.
            state.held.sort_by_key(|held| held.request.id);
            if was_refused {
                state.paused_until = Some(Instant::now() + REFUSAL_PAUSE);
            } else {
                state.send_held(slot.shard);
            }
        }
        for id in lost {
            slot.outputs.apply_reply(id, HubReply::Unavailable(Unavailable::OutcomeUnknown));
        }
    }
}
