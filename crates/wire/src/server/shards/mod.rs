//! The front of all shards: it routes requests to shards, and combines their replies.
//!
//! Each shard is a [`ShardLink`]: requests go in, and the outputs of its turns come out through [`ShardOutputs`]. For a
//! shard in this process, the link is its [`Engine`].
//!
//! - `plan`: which shards handle a command.
//! - `flow`: a command that several shards handle, in stages.
//! - `pending`: who waits for which reply.

mod flow;
mod pending;
mod plan;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use hub::command::{HubCommand, HubReply, Request, RequestId, TurnOutput, Unavailable};
use hub::{Engine, ShardMap};

use crate::fanout::{Fanout, FanoutCommand, ListenerSink};
use crate::server::agent_messages::{AgentMessage, AgentMessageQueue};
use crate::telemetry::{Telemetry, in_shard};
pub(super) use flow::Flow;
pub(super) use pending::{PendingReplies, ReplyTarget};
pub(super) use plan::Plan;

/// One shard of the hub.
pub trait ShardLink: Send + Sync + 'static {
    /// Sends a request to the shard. Requests of one thread keep their order. Returns `false` if the shard has ended.
    fn submit(&self, request: Request) -> bool;

    /// Runs a turn with this request on the caller's thread, if the shard is in this process. When it returns, the outputs
    /// have been applied. Otherwise does the same as [`submit`](Self::submit).
    fn run_turn(&self, request: Request) -> bool {
        self.submit(request)
    }
}

impl ShardLink for Engine {
    fn submit(&self, request: Request) -> bool {
        Self::submit(self, request)
    }

    fn run_turn(&self, request: Request) -> bool {
        Self::run_turn(self, request)
    }
}

/// All shards of a hub, by number.
pub(super) type ShardLinks = Arc<[Arc<dyn ShardLink>]>;
type WeakShardLinks = Weak<[Arc<dyn ShardLink>]>;

/// Applies the outputs of the shards' turns: replies, notices, frames and log events.
#[derive(Clone)]
pub struct ShardOutputs {
    pub(super) pending: Arc<Mutex<PendingReplies>>,
    last_id: Arc<AtomicU64>,
    pub(crate) fanout: Fanout,
    pub(crate) telemetry: Arc<Telemetry>,
    pub(crate) map: ShardMap,
    /// Weak, because the links hold the outputs.
    links: Arc<OnceLock<WeakShardLinks>>,
}

impl std::fmt::Debug for ShardOutputs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ShardOutputs")
    }
}

impl ShardOutputs {
    pub(super) fn new(map: ShardMap, fanout: Fanout, telemetry: Arc<Telemetry>, id_base: u64) -> Self {
        let last_id = Arc::new(AtomicU64::new(id_base));
        let pending = Arc::new(Mutex::new(PendingReplies::new(last_id.clone())));
        Self { pending, last_id, fanout, telemetry, map, links: Arc::default() }
    }

    /// Sets the links, through which later stages of a command reach their shards.
    pub(super) fn set_links(&self, links: &ShardLinks) {
        let _ = self.links.set(Arc::downgrade(links));
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, PendingReplies> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns an id that nothing else has: no request, connection or listener.
    pub(crate) fn next_id(&self) -> u64 {
        self.last_id.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Applies the outputs of one turn of a shard, in order. The outputs of a shard's turns must be applied in the order of the
    /// turns. Consecutive frames are sent to the fan-out together.
    pub fn apply(&self, shard: u16, outputs: &mut Vec<TurnOutput>) {
        let mut frames = Vec::new();
        let flush = |frames: &mut Vec<_>| {
            if !frames.is_empty() {
                self.fanout.send(FanoutCommand::Frames(std::mem::take(frames)));
            }
        };
        for output in outputs.drain(..) {
            let command = match output {
                TurnOutput::Reply(id, reply) => {
                    self.apply_reply(id, reply);
                    continue;
                }
                TurnOutput::Notify(connection, notice) => {
                    self.lock().queue_message(
                        connection,
                        AgentMessage::Notice(notice),
                        AgentMessageQueue::push_and_wake,
                    );
                    continue;
                }
                TurnOutput::Frame(group, frame) => {
                    frames.push((group, frame));
                    continue;
                }
                TurnOutput::Join { listener, group, private_frames, resume_position, origin_id } => {
                    FanoutCommand::Attach {
                        listener,
                        group,
                        sink: ListenerSink::Pending,
                        private_frames,
                        resume_position,
                        origin_id,
                    }
                }
                TurnOutput::Log(event) => {
                    let shard = (!self.map.is_single()).then_some(shard);
                    in_shard(shard, || self.telemetry.log_hub_event(&event));
                    continue;
                }
                TurnOutput::Move(listener, group) => FanoutCommand::Move { listener, group },
                TurnOutput::Send(listener, frame) => FanoutCommand::SendTo { listener, frame },
                TurnOutput::Close(listener) => FanoutCommand::Close(listener),
                _ => continue,
            };
            flush(&mut frames);
            self.fanout.send(command);
        }
        flush(&mut frames);
    }

    /// Delivers a reply to the caller that waits for it. If it completes a stage of a flow, starts the next stage.
    pub(crate) fn apply_reply(&self, id: RequestId, reply: HubReply) {
        let mut pending = self.lock();
        let Some(target) = pending.take(id) else { return };
        match target {
            ReplyTarget::FlowStep { flow, index } => {
                let links = self.links.get().and_then(Weak::upgrade);
                self.advance_flow(&mut pending, links.as_ref(), flow, index, reply);
            }
            target => pending.deliver(id, target, reply),
        }
    }

    /// Starts a flow. `target` gets its outcome, under the id of the flow.
    pub(super) fn start_flow(&self, links: &ShardLinks, flow: Flow, target: ReplyTarget) -> RequestId {
        let mut pending = self.lock();
        let id = pending.next_request_id();
        pending.flows.insert(id, (flow, target));
        self.run_stages(&mut pending, Some(links), id);
        id
    }

    fn advance_flow(
        &self,
        pending: &mut PendingReplies,
        links: Option<&ShardLinks>,
        id: RequestId,
        index: usize,
        reply: HubReply,
    ) {
        let Some((flow, _)) = pending.flows.get_mut(&id) else { return };
        if flow.record(index, reply) {
            self.run_stages(pending, links, id);
        }
    }

    /// Sends the commands of the next stages until one of them waits for replies, or the flow is complete.
    fn run_stages(&self, pending: &mut PendingReplies, links: Option<&ShardLinks>, id: RequestId) {
        loop {
            let Some((flow, _)) = pending.flows.get_mut(&id) else { return };
            let connection = flow.connection;
            // A closed connection must not follow a session from now on.
            let is_closed = connection.is_some_and(|connection| !pending.has_connection(connection));
            let Some((flow, _)) = pending.flows.get_mut(&id) else { return };
            let commands = flow.next_stage();
            let principal = flow.principal.clone();
            let follows =
                commands.iter().any(|(_, command)| matches!(command, HubCommand::OnConnection { .. }));
            if commands.is_empty() || is_closed && follows {
                let Some((mut flow, target)) = pending.flows.remove(&id) else { return };
                let removed_listener = flow.take_removed_listener();
                for (shard, command) in flow.take_cleanup() {
                    let request =
                        Request { id: pending.next_request_id(), principal: principal.clone(), command };
                    if let Some(link) = links.and_then(|links| links.get(usize::from(shard))) {
                        link.submit(request);
                    }
                }
                if let Some(listener) = removed_listener {
                    self.fanout.send(FanoutCommand::Remove(listener));
                }
                pending.deliver(id, target, flow.into_outcome());
                return;
            }
            let mut is_complete = false;
            for (index, (shard, command)) in commands.into_iter().enumerate() {
                let request_id = pending.next_request_id();
                pending.insert(request_id, ReplyTarget::FlowStep { flow: id, index }, shard);
                let request = Request { id: request_id, principal: principal.clone(), command };
                let link = links.and_then(|links| links.get(usize::from(shard)));
                if link.is_none_or(|link| !link.submit(request)) {
                    pending.take(request_id);
                    let stopped = HubReply::Unavailable(Unavailable::Stopping);
                    if let Some((flow, _)) = pending.flows.get_mut(&id) {
                        is_complete |= flow.record(index, stopped);
                    }
                }
            }
            if !is_complete {
                return;
            }
        }
    }
}
