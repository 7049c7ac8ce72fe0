//! One shard as this node sees it: it runs here, at another node, or nowhere.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use hub::command::{HubCommand, HubReply, Request, RequestId, TurnOutput, Unavailable};
use hub::delivery::{CloseReason, Frame};
use hub::{ListenerId, Principal};
use rustc_hash::FxHashMap;

use super::hosted::HostedShard;
use super::peer::Peer;
use super::standing::{ConnectionRequest, RepairResult, Standing};
use super::RouterLimits;
use crate::fanout::FanoutCommand;
use crate::server::{ShardLink, ShardOutputs};

/// Where each listener resumes in this shard.
pub(super) type Positions = FxHashMap<ListenerId, Option<String>>;

/// A [`ShardLink`] whose shard moves between nodes.
///
/// While the shard can be reached, the slot is open, and requests go to it at once. Otherwise they are held, up to a time
/// limit. When the owner is lost, each request that it has not answered is held for the next owner, if it can be repeated, and
/// is answered with an error if not.
///
/// Locks are acquired in this order: `generation`, the pending replies of the outputs, `state`.
pub(super) struct ShardSlot {
    shard: u16,
    limits: RouterLimits,
    outputs: ShardOutputs,
    /// Counts the owners. Held while outputs are applied, so that nothing is applied after the owner has changed.
    generation: Mutex<u64>,
    state: Mutex<SlotState>,
}

#[derive(Default)]
struct SlotState {
    target: Target,
    is_open: bool,
    held: Vec<HeldRequest>,
    sent: FxHashMap<RequestId, SentRequest>,
    standing: Standing,
    /// The principals with valid tokens, for a shard that starts on this node.
    valid_principals: Option<Vec<Principal>>,
}

#[derive(Default)]
enum Target {
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
    /// The request, if it can be repeated.
    request: Option<Request>,
    connection_request: Option<ConnectionRequest>,
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
    _generation: MutexGuard<'s, u64>,
}

impl ShardSlot {
    pub(super) fn new(shard: u16, limits: RouterLimits, outputs: ShardOutputs) -> Self {
        Self { shard, limits, outputs, generation: Mutex::new(0), state: Mutex::default() }
    }

    pub(super) fn shard(&self) -> u16 {
        self.shard
    }

    fn lock(&self) -> MutexGuard<'_, SlotState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn location(&self) -> ShardLocation {
        let state = self.lock();
        match &state.target {
            Target::Nowhere => ShardLocation::Nowhere,
            Target::Here(_) => ShardLocation::Here,
            Target::At(peer) => {
                ShardLocation::At { node: peer.node().to_owned(), is_reachable: state.is_open }
            }
        }
    }

    /// Returns the shard, if it runs on this node.
    pub(super) fn hosted(&self) -> Option<Arc<HostedShard>> {
        match &self.lock().target {
            Target::Here(hosted) => Some(hosted.clone()),
            _ => None,
        }
    }

    pub(super) fn peer(&self) -> Option<Arc<Peer>> {
        match &self.lock().target {
            Target::At(peer) => Some(peer.clone()),
            _ => None,
        }
    }

    /// Returns permission to apply outputs of this generation, or `None` if there is another owner.
    pub(super) fn enter(&self, generation: u64) -> Option<CurrentOwner<'_>> {
        let current = self.generation.lock().unwrap_or_else(PoisonError::into_inner);
        (*current == generation).then_some(CurrentOwner { slot: self, _generation: current })
    }

    pub(super) fn generation(&self) -> u64 {
        *self.generation.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the current owner: no output of it is applied any more. Returns the new generation, and where the listeners resume.
    pub(super) fn close(&self) -> (u64, tokio::sync::oneshot::Receiver<Positions>) {
        let (sender, positions) = tokio::sync::oneshot::channel();
        let mut generation = self.generation.lock().unwrap_or_else(PoisonError::into_inner);
        *generation += 1;
        self.outputs.fanout.send(FanoutCommand::Park { shard: self.shard, positions: sender });
        let lost: Vec<RequestId> = {
            let mut state = self.lock();
            state.is_open = false;
            let until = Instant::now() + self.limits.hold_time;
            let sent = std::mem::take(&mut state.sent);
            let mut lost = Vec::new();
            for (id, sent) in sent {
                match sent.request {
                    Some(request) => state.held.push(HeldRequest { request, until }),
                    None => lost.push(id),
                }
            }
            // Ids grow, so this is the order in which the requests came.
            state.held.sort_by_key(|held| held.request.id);
            lost
        };
        let generation = *generation;
        for id in lost {
            self.outputs.apply_reply(id, HubReply::Unavailable(Unavailable::OutcomeUnknown));
        }
        (generation, positions)
    }

    /// Sets the owner. Requests are held until [`open`](Self::open).
    pub(super) fn set_peer(&self, peer: Option<Arc<Peer>>) {
        let mut state = self.lock();
        state.is_open = false;
        state.target = peer.map_or(Target::Nowhere, Target::At);
    }

    pub(super) fn set_hosted(&self, hosted: Arc<HostedShard>) {
        let mut state = self.lock();
        if let Some(principals) = state.valid_principals.clone() {
            let command = HubCommand::SetValidTokens { principals };
            let id = RequestId(self.outputs.next_id());
            hosted.submit(Request { id, principal: Principal::local(), command });
        }
        state.target = Target::Here(hosted);
    }

    /// Stops sending requests to the shard on this node, and returns it. Its outputs are still applied.
    pub(super) fn take_hosted(&self) -> Option<Arc<HostedShard>> {
        let mut state = self.lock();
        if !matches!(state.target, Target::Here(_)) {
            return None;
        }
        state.is_open = false;
        match std::mem::take(&mut state.target) {
            Target::Here(hosted) => Some(hosted),
            _ => None,
        }
    }

    /// Attaches the listeners and agent connections of this node to the current owner, sends the held requests, and from then on
    /// sends requests at once. Does nothing if there is another owner than that of this generation.
    pub(super) fn open(&self, generation: u64, positions: &Positions) {
        let Some(_current) = self.enter(generation) else { return };
        let mut state = self.lock();
        if state.is_open || matches!(state.target, Target::Nowhere) {
            return;
        }
        state.is_open = true;
        let held = std::mem::take(&mut state.held);
        let waiting: rustc_hash::FxHashSet<RequestId> = held.iter().map(|held| held.request.id).collect();
        let next_id = || RequestId(self.outputs.next_id());
        for repair in state.standing.repairs(positions, |id| waiting.contains(&id), next_id) {
            state.target.send(self.shard, repair);
        }
        for held in held {
            state.send(self.shard, held.request);
        }
    }

    /// Answers the held requests whose time is over.
    pub(super) fn expire(&self, now: Instant) {
        let expired: Vec<RequestId> = {
            let mut state = self.lock();
            let is_expired = |held: &mut HeldRequest| held.until <= now;
            state.held.extract_if(.., is_expired).map(|held| held.request.id).collect()
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
                if !matches!(state.target, Target::Here(_)) {
                    drop(state);
                    return self.outputs.reply_later(request.id, HubReply::Done);
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
                return self.outputs.reply_later(request.id, HubReply::Done);
            }
            HubCommand::PauseCheckpoints | HubCommand::ResumeCheckpoints
                if !matches!(state.target, Target::Here(_)) =>
            {
                drop(state);
                return self.outputs.reply_later(request.id, HubReply::Done);
            }
            HubCommand::CancelWait { request: id } => {
                state.sent.remove(id);
                state.held.retain(|held| held.request.id != *id);
            }
            HubCommand::Detach { listener, .. } => {
                if let Some(id) = state.standing.attach_request(*listener) {
                    state.held.retain(|held| held.request.id != id);
                }
            }
            HubCommand::DisconnectAgent { connection } => {
                let connection = *connection;
                state.held.retain_mut(|held| release_connection(&mut held.request, connection));
                for sent in state.sent.values_mut() {
                    sent.connection_request = None;
                    if let Some(request) = &mut sent.request
                        && !release_connection(request, connection)
                    {
                        sent.request = None;
                    }
                }
            }
            _ => {}
        }
        state.standing.note_request(&request);
        if state.is_open {
            return state.send(self.shard, request);
        }
        if !request.command.expects_reply() {
            // What the request ends is not set up at the next owner.
            return true;
        }
        if state.held.len() >= self.limits.held_requests {
            return false;
        }
        let until = Instant::now() + self.limits.hold_time;
        state.held.push(HeldRequest { request, until });
        true
    }

    fn run_turn(&self, request: Request) -> bool {
        let hosted = {
            let mut state = self.lock();
            match &state.target {
                Target::Here(hosted) if state.is_open => {
                    let hosted = hosted.clone();
                    state.standing.note_request(&request);
                    state.track(&request);
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

impl SlotState {
    /// Sends a request to the owner, and remembers it until its reply.
    fn send(&mut self, shard: u16, request: Request) -> bool {
        self.track(&request);
        self.target.send(shard, request)
    }

    fn track(&mut self, request: &Request) {
        if !request.command.expects_reply() {
            return;
        }
        // A copy costs something, and a shard on this node is seldom lost. Waits are what agents spend most of their time with.
        let is_kept = match self.target {
            Target::Here(_) => matches!(request.command, HubCommand::Wait { .. }),
            _ => request.command.is_repeatable(),
        };
        let sent = SentRequest {
            request: is_kept.then(|| request.clone()),
            connection_request: ConnectionRequest::of(request),
        };
        self.sent.insert(request.id, sent);
    }
}

impl Target {
    fn send(&self, shard: u16, request: Request) -> bool {
        match self {
            Self::Nowhere => false,
            Self::Here(hosted) => hosted.submit(request),
            Self::At(peer) => peer.send_request(shard, &request),
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
            let mut further = Vec::new();
            outputs.retain(|output| {
                let sent = match output {
                    TurnOutput::Reply(id, _) => state.sent.remove(id),
                    _ => None,
                };
                let connection_request = sent.as_ref().and_then(|sent| sent.connection_request.as_ref());
                match state.standing.note_output(output, connection_request) {
                    RepairResult::None => return true,
                    RepairResult::Done => {}
                    RepairResult::Close(listener) => further.push(TurnOutput::Close(listener)),
                    RepairResult::Notify(connection, notice) => {
                        further.push(TurnOutput::Notify(connection, notice));
                    }
                }
                false
            });
            outputs.append(&mut further);
        }
        slot.outputs.apply(slot.shard, outputs);
    }

    /// Ends a request that the owner did not handle, or whose outcome is unknown. It is repeated if that is possible.
    pub(super) fn return_request(&self, id: RequestId, was_handled: bool) {
        let slot = self.slot;
        let mut state = slot.lock();
        let Some(sent) = state.sent.remove(&id) else { return };
        let is_unchanged = !was_handled;
        match sent.request {
            Some(request) => {
                let until = Instant::now() + slot.limits.hold_time;
                state.held.push(HeldRequest { request, until });
                state.held.sort_by_key(|held| held.request.id);
            }
            None => {
                drop(state);
                let reason = if is_unchanged { Unavailable::NoOwner } else { Unavailable::OutcomeUnknown };
                slot.outputs.apply_reply(id, HubReply::Unavailable(reason));
            }
        }
    }
}
