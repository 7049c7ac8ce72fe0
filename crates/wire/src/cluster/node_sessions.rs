//! The other nodes that are connected to this one, because it owns shards.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};

use hub::command::{HubCommand, HubReply, Request, RequestId, TurnOutput, Unavailable};
use hub::delivery::Frame;
use hub::encoding::{self, Blob};
use hub::{AgentConnectionId, ListenerId, Principal};
use rustc_hash::{FxHashMap, FxHashSet};

use super::RouterLimits;
use super::connection::MessageSender;
use super::node_number::NodeNumber;
use super::protocol::{Message, MessageKind};
use super::slot::ShardSlot;

/// Outputs are sent together up to this number of bytes.
const OUTPUT_BYTES: usize = 256 * 1024;

/// The nodes that are connected to this one.
#[derive(Default)]
pub(super) struct NodeSessions {
    sessions: RwLock<FxHashMap<NodeNumber, Arc<NodeSession>>>,
    sequence: AtomicU64,
}

/// A connected node.
pub(super) struct NodeSession {
    number: NodeNumber,
    name: String,
    sender: MessageSender,
    max_pending: usize,
    /// How many bytes may wait to be sent if they contain what a listener has missed.
    max_missed_bytes: usize,
    state: Mutex<NodeSessionState>,
}

#[derive(Default)]
struct NodeSessionState {
    /// The requests without a reply, by the node's own request id.
    pending: FxHashMap<u64, PendingNodeRequest>,
    listeners: FxHashMap<ListenerId, FxHashSet<u16>>,
    connections: FxHashMap<AgentConnectionId, FxHashSet<u16>>,
}

/// A request of another node.
struct PendingNodeRequest {
    shard: u16,
    /// The listener that it attaches.
    listener: Option<ListenerId>,
}

impl NodeSessions {
    /// Adds a node, and announces the shards that run here. An earlier connection of the same node is closed.
    pub(super) fn add(
        &self,
        name: &str,
        sender: MessageSender,
        limits: &RouterLimits,
        slots: &[Arc<ShardSlot>],
    ) -> Arc<NodeSession> {
        let sequence = self.sequence.fetch_add(1, Ordering::Relaxed) + 1;
        let session = Arc::new(NodeSession {
            number: NodeNumber::of_connection(sequence),
            name: name.to_owned(),
            sender,
            max_pending: limits.pending_requests,
            max_missed_bytes: limits.queued_bytes / 2,
            state: Mutex::default(),
        });
        let mut sessions = self.sessions.write().unwrap_or_else(PoisonError::into_inner);
        for earlier in sessions.values().filter(|earlier| earlier.name == name) {
            earlier.sender.close();
        }
        sessions.insert(session.number, session.clone());
        // While the lock is held, no later announcement can overtake these.
        for slot in slots.iter().filter(|slot| slot.hosted().is_some()) {
            session.sender.send(&Message::of_shard(MessageKind::Started, slot.shard()));
        }
        session
    }

    /// Removes a node, detaches its listeners, and disconnects its agents.
    pub(super) fn remove(&self, session: &NodeSession, slots: &[Arc<ShardSlot>]) {
        self.sessions.write().unwrap_or_else(PoisonError::into_inner).remove(&session.number);
        let NodeSessionState { pending, listeners, connections } = std::mem::take(&mut *session.lock());
        let submit = |shard: u16, command: HubCommand| {
            let hosted = slots.get(usize::from(shard)).and_then(|slot| slot.hosted());
            if let Some(hosted) = hosted {
                let mut request = Request { id: RequestId(0), principal: Principal::local(), command };
                session.number.make_distinct(&mut request);
                hosted.submit(request);
            }
        };
        for (request, PendingNodeRequest { shard, .. }) in pending {
            submit(shard, HubCommand::CancelWait { request: RequestId(request) });
        }
        for (listener, shards) in listeners {
            for shard in shards {
                submit(shard, HubCommand::Detach { listener, is_too_slow: false });
            }
        }
        for (connection, shards) in connections {
            for shard in shards {
                submit(shard, HubCommand::DisconnectAgent { connection });
            }
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, FxHashMap<NodeNumber, Arc<NodeSession>>> {
        self.sessions.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the names of the connected nodes.
    pub(super) fn names(&self) -> Vec<String> {
        self.read().values().map(|session| session.name.clone()).collect()
    }

    pub(super) fn announce_started(&self, shard: u16) {
        for session in self.read().values() {
            session.sender.send(&Message::of_shard(MessageKind::Started, shard));
        }
    }

    /// Announces that a shard has stopped, after its last outputs. The outcome of requests without a reply is unknown.
    pub(super) fn announce_stopped(&self, shard: u16) {
        for session in self.read().values() {
            session.sender.send(&Message::of_shard(MessageKind::Stopped, shard));
            let lost: Vec<u64> = {
                let mut state = session.lock();
                for shards in state.listeners.values_mut() {
                    shards.remove(&shard);
                }
                state.listeners.retain(|_, shards| !shards.is_empty());
                for shards in state.connections.values_mut() {
                    shards.remove(&shard);
                }
                state.connections.retain(|_, shards| !shards.is_empty());
                state.pending.extract_if(|_, request| request.shard == shard).map(|(id, _)| id).collect()
            };
            for id in lost {
                session.sender.send(&Message::of_request(MessageKind::Lost, shard, id));
            }
        }
    }

    /// Sends outputs of a shard to a node. Returns the listeners that have missed more than can be sent now. They are closed at
    /// their node, and the caller must detach them.
    #[must_use]
    pub(super) fn send_outputs(
        &self,
        node: NodeNumber,
        shard: u16,
        outputs: &[TurnOutput],
    ) -> Vec<ListenerId> {
        let session = self.read().get(&node).cloned();
        session.map(|session| session.send_outputs(shard, outputs)).unwrap_or_default()
    }
}

impl NodeSession {
    fn lock(&self) -> MutexGuard<'_, NodeSessionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send_outputs(&self, shard: u16, outputs: &[TurnOutput]) -> Vec<ListenerId> {
        let mut bodies = Vec::new();
        let mut bytes = 0;
        let mut refused = Vec::new();
        for output in outputs {
            if let TurnOutput::Join { listener, private_frames, .. } = output
                && !self.has_room(private_frames)
            {
                let own = self.number.distinct_listener(*listener);
                refused.push(own);
                remove_shard(&mut self.lock().listeners, &own, shard);
                let mut join = output.clone();
                if let TurnOutput::Join { private_frames, .. } = &mut join {
                    private_frames.clear();
                }
                // Only a listener that has joined can be closed.
                bodies.extend([join, TurnOutput::Close(*listener)].iter().filter_map(encode));
                continue;
            }
            match output {
                TurnOutput::Reply(id, reply) => {
                    let mut state = self.lock();
                    let pending = state.pending.remove(&id.0);
                    if let Some(listener) = pending.and_then(|pending| pending.listener)
                        && *reply != HubReply::Done
                    {
                        remove_shard(&mut state.listeners, &listener, shard);
                    }
                }
                TurnOutput::Close(listener) => {
                    let listener = self.number.distinct_listener(*listener);
                    remove_shard(&mut self.lock().listeners, &listener, shard);
                }
                _ => {}
            }
            let Some(body) = self.encode_output(shard, output, &mut bodies) else { continue };
            bytes += body.0.len();
            bodies.push(body);
            if bytes >= OUTPUT_BYTES {
                self.flush(shard, &mut bodies);
                bytes = 0;
            }
        }
        self.flush(shard, &mut bodies);
        refused
    }

    /// Whether the frames that a listener has missed can be sent now. They must leave room for everything else, because a
    /// connection that has too much to send is closed.
    fn has_room(&self, private_frames: &[Arc<Frame>]) -> bool {
        let bytes: usize = private_frames.iter().map(|frame| frame.json().len()).sum();
        bytes <= OUTPUT_BYTES || self.sender.queued_bytes() + bytes <= self.max_missed_bytes
    }

    fn flush(&self, shard: u16, bodies: &mut Vec<Blob>) {
        if !bodies.is_empty() {
            let outputs = Message::of_shard(MessageKind::Outputs, shard).with_bodies(std::mem::take(bodies));
            self.sender.send(&outputs);
        }
    }

    /// Encodes an output. Sends most private frames of a `Join` before it, because they may be more than a message may hold.
    fn encode_output(&self, shard: u16, output: &TurnOutput, earlier: &mut Vec<Blob>) -> Option<Blob> {
        if let TurnOutput::Join { listener, group, private_frames, resume_position, origin_id } = output
            && private_frames.iter().map(|frame| frame.json().len()).sum::<usize>() > OUTPUT_BYTES
        {
            self.flush(shard, earlier);
            let join = |private_frames: &[_]| TurnOutput::Join {
                listener: *listener,
                group: *group,
                private_frames: private_frames.to_vec(),
                resume_position: *resume_position,
                origin_id: origin_id.clone(),
            };
            let mut part_bytes = 0;
            let parts = private_frames.chunk_by(|frame, _| {
                part_bytes += frame.json().len();
                let is_same_part = part_bytes < OUTPUT_BYTES;
                if !is_same_part {
                    part_bytes = 0;
                }
                is_same_part
            });
            for part in parts {
                let part = encode(&join(part))?;
                self.sender.send(&Message::of_shard(MessageKind::JoinPart, shard).with_bodies(vec![part]));
            }
            return encode(&join(&[]));
        }
        encode(output)
    }

    /// Handles a request of the node.
    pub(super) fn handle_request(&self, shard: u16, id: u64, body: &[u8], slots: &[Arc<ShardSlot>]) {
        let mut request = match encoding::decode_request(RequestId(id), body) {
            Ok(request) => request,
            Err(error) => {
                let reason = format!("another node cannot read the request: {error}");
                return self.reply(shard, id, HubReply::Unavailable(Unavailable::Forwarded(reason)));
            }
        };
        let expects_reply = request.command.expects_reply();
        if is_internal(&request.command) {
            return self.reply(shard, id, HubReply::Forbidden);
        }
        self.number.make_distinct(&mut request);
        {
            let mut state = self.lock();
            if expects_reply {
                if state.pending.len() >= self.max_pending {
                    drop(state);
                    let reason = "too many requests of a node are waiting for a reply".to_owned();
                    return self.reply(shard, id, HubReply::Unavailable(Unavailable::Forwarded(reason)));
                }
                let listener = match &request.command {
                    HubCommand::Attach { listener, .. } | HubCommand::AttachFromStart { listener, .. } => {
                        Some(*listener)
                    }
                    _ => None,
                };
                state.pending.insert(id, PendingNodeRequest { shard, listener });
            }
            state.note(&request.command, shard);
        }
        let hosted = slots.get(usize::from(shard)).and_then(|slot| slot.hosted());
        let was_accepted = hosted.is_some_and(|hosted| hosted.submit(request));
        if !was_accepted && expects_reply && self.lock().pending.remove(&id).is_some() {
            self.sender.send(&Message::of_request(MessageKind::Refused, shard, id));
        }
    }

    fn reply(&self, shard: u16, id: u64, reply: HubReply) {
        // A reply has no listener that could be refused.
        let _ = self.send_outputs(shard, &[TurnOutput::Reply(RequestId(id), reply)]);
    }
}

/// Whether only the node of a shard may send the command.
fn is_internal(command: &HubCommand) -> bool {
    match command {
        HubCommand::ShutDown
        | HubCommand::PauseCheckpoints
        | HubCommand::ResumeCheckpoints
        | HubCommand::SetValidTokens { .. } => true,
        HubCommand::OnConnection { command, .. } => is_internal(command),
        _ => false,
    }
}

fn encode(output: &TurnOutput) -> Option<Blob> {
    encoding::encode_output(output).ok().flatten().map(Blob::from)
}

impl NodeSessionState {
    fn note(&mut self, command: &HubCommand, shard: u16) {
        match command {
            HubCommand::Attach { listener, .. } | HubCommand::AttachFromStart { listener, .. } => {
                self.listeners.entry(*listener).or_default().insert(shard);
            }
            HubCommand::Detach { listener, .. } => {
                remove_shard(&mut self.listeners, listener, shard);
            }
            HubCommand::OnConnection { connection, .. } => {
                self.connections.entry(*connection).or_default().insert(shard);
            }
            HubCommand::DisconnectAgent { connection } => {
                remove_shard(&mut self.connections, connection, shard);
            }
            HubCommand::CancelWait { request } => {
                self.pending.remove(&NodeNumber::split(request.0).1);
            }
            _ => {}
        }
    }
}

fn remove_shard<K: std::hash::Hash + Eq>(all: &mut FxHashMap<K, FxHashSet<u16>>, key: &K, shard: u16) {
    if let Some(shards) = all.get_mut(key) {
        shards.remove(&shard);
        if shards.is_empty() {
            all.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::connection::{message_queue, split};

    /// Sends a command as another node does, to a node that runs no shard. Returns the answer.
    async fn answer(command: HubCommand) -> (MessageKind, Option<HubReply>) {
        let limits = RouterLimits::default();
        let (near, far) = tokio::io::duplex(64 * 1024);
        let (sender, mut queue) = message_queue(&limits);
        let (_near_reader, mut writer) = split(near, &limits);
        let (mut reader, _far_writer) = split(far, &limits);
        let session = NodeSessions::default().add("other", sender, &limits, &[]);
        let request = Request { id: RequestId(9), principal: Principal::local(), command };
        session.handle_request(0, 9, &encoding::encode_request(&request).unwrap(), &[]);
        let message = tokio::select! {
            message = reader.read() => message.unwrap(),
            result = writer.run(&mut queue) => panic!("{result:?}"),
        };
        let reply = message.bodies.first().map(|body| encoding::decode_output(&body.0).unwrap());
        let reply = reply.map(|output| match output {
            TurnOutput::Reply(RequestId(9), reply) => reply,
            other => panic!("{other:?}"),
        });
        (message.kind, reply)
    }

    #[tokio::test]
    async fn commands_for_a_shard_as_a_whole_are_refused_from_other_nodes() {
        let commands = || {
            [
                HubCommand::ShutDown,
                HubCommand::PauseCheckpoints,
                HubCommand::ResumeCheckpoints,
                HubCommand::SetValidTokens { principals: Vec::new() },
            ]
        };
        let connection = AgentConnectionId(1);
        let on_connection =
            commands().map(|command| HubCommand::OnConnection { connection, command: Box::new(command) });
        for command in commands().into_iter().chain(on_connection) {
            let name = format!("{command:?}");
            assert_eq!(answer(command).await, (MessageKind::Outputs, Some(HubReply::Forbidden)), "{name}");
        }
        // Other commands go to the shard, which this node does not run.
        assert_eq!(answer(HubCommand::DeleteManifest).await, (MessageKind::Refused, None));
    }
}
