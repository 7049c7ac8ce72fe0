//! A shard that runs on this node: its engine, and how its outputs are split among the nodes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;

use hub::command::{HubCommand, HubReply, Request, RequestId, TurnOutput};
use hub::{AgentConnectionId, Core, DeliveryGroupId, Engine, ListenerId, Principal};
use rustc_hash::{FxHashMap, FxHashSet};

use super::node_number::NodeNumber;
use super::node_sessions::NodeSessions;
use super::slot::ShardSlot;

/// A shard that runs on this node.
pub(super) struct HostedShard {
    engine: Engine,
    listeners: Arc<Mutex<GroupTable>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// Which nodes need the frames of which delivery groups.
#[derive(Default)]
struct GroupTable {
    /// The listeners that are attached, or will be in a later turn.
    attached: FxHashSet<ListenerId>,
    /// The listeners whose requests to attach have no reply yet.
    attaching: FxHashMap<RequestId, ListenerId>,
    group_of: FxHashMap<ListenerId, DeliveryGroupId>,
    /// The number of listeners of each node in each group.
    nodes: FxHashMap<DeliveryGroupId, FxHashMap<NodeNumber, usize>>,
    /// The number of listeners that are on other nodes.
    remote_listeners: usize,
}

impl HostedShard {
    /// Starts the engine. Its outputs are applied as those of this generation of the slot.
    pub(super) fn start(
        core: Core,
        slot: &Arc<ShardSlot>,
        generation: u64,
        sessions: &Arc<NodeSessions>,
    ) -> std::io::Result<Self> {
        let listeners: Arc<Mutex<GroupTable>> = Arc::default();
        let splitter = OutputSplitter {
            slot: Arc::downgrade(slot),
            generation,
            sessions: sessions.clone(),
            listeners: listeners.clone(),
        };
        let perform = move |outputs: &mut Vec<TurnOutput>| splitter.perform(outputs);
        let (engine, thread) = Engine::start(core, crate::unix_now, perform)?;
        Ok(Self { engine, listeners, thread: Mutex::new(Some(thread)) })
    }

    /// Takes the engine's thread, which ends after the last handle to this shard was dropped.
    pub(super) fn take_thread(&self) -> Option<JoinHandle<()>> {
        self.thread.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(super) fn submit(&self, request: Request) -> bool {
        self.note(&request);
        self.engine.submit(request)
    }

    pub(super) fn run_turn(&self, request: Request) -> bool {
        self.note(&request);
        self.engine.run_turn(request)
    }

    fn note(&self, request: &Request) {
        match &request.command {
            HubCommand::Attach { listener, .. } | HubCommand::AttachFromStart { listener, .. } => {
                let mut table = lock(&self.listeners);
                table.attached.insert(*listener);
                table.attaching.insert(request.id, *listener);
            }
            HubCommand::Detach { listener, .. } => lock(&self.listeners).remove(*listener),
            _ => {}
        }
    }
}

fn lock(table: &Mutex<GroupTable>) -> MutexGuard<'_, GroupTable> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

impl GroupTable {
    fn join(&mut self, listener: ListenerId, group: DeliveryGroupId) {
        self.leave(listener);
        let (node, _) = NodeNumber::split(listener.0);
        self.group_of.insert(listener, group);
        *self.nodes.entry(group).or_default().entry(node).or_default() += 1;
        self.remote_listeners += usize::from(node != NodeNumber::HERE);
    }

    fn leave(&mut self, listener: ListenerId) {
        let Some(group) = self.group_of.remove(&listener) else { return };
        let (node, _) = NodeNumber::split(listener.0);
        self.remote_listeners -= usize::from(node != NodeNumber::HERE);
        let Some(nodes) = self.nodes.get_mut(&group) else { return };
        if let Some(count) = nodes.get_mut(&node) {
            *count -= 1;
            if *count == 0 {
                nodes.remove(&node);
            }
        }
        if nodes.is_empty() {
            self.nodes.remove(&group);
        }
    }

    fn remove(&mut self, listener: ListenerId) {
        self.attached.remove(&listener);
        self.leave(listener);
    }
}

/// Sends the outputs of the engine's turns to the nodes that they are for.
struct OutputSplitter {
    /// Weak, because the slot holds the engine.
    slot: Weak<ShardSlot>,
    generation: u64,
    sessions: Arc<NodeSessions>,
    listeners: Arc<Mutex<GroupTable>>,
}

impl OutputSplitter {
    fn perform(&self, outputs: &mut Vec<TurnOutput>) {
        let Some(slot) = self.slot.upgrade() else { return outputs.clear() };
        let Some(current) = slot.enter(self.generation) else { return outputs.clear() };
        let mut remote: FxHashMap<NodeNumber, Vec<TurnOutput>> = FxHashMap::default();
        {
            let mut table = lock(&self.listeners);
            outputs.retain_mut(|output| table.route(output, &mut remote));
        }
        for (node, outputs) in remote {
            for listener in self.sessions.send_outputs(node, slot.shard(), &outputs) {
                lock(&self.listeners).remove(listener);
                if let Some(hosted) = slot.hosted() {
                    let command = HubCommand::Detach { listener, is_too_slow: false };
                    hosted.submit(Request { id: RequestId(0), principal: Principal::local(), command });
                }
            }
        }
        current.apply(outputs);
    }
}

impl GroupTable {
    /// Adds an output to those of the other nodes that need it. Returns whether this node needs it, too.
    fn route(
        &mut self,
        output: &mut TurnOutput,
        remote: &mut FxHashMap<NodeNumber, Vec<TurnOutput>>,
    ) -> bool {
        let (node, own_id) = match &*output {
            TurnOutput::Frame(group, _) => {
                if self.remote_listeners == 0 {
                    return true;
                }
                let Some(nodes) = self.nodes.get(group) else { return false };
                for node in nodes.keys().filter(|node| **node != NodeNumber::HERE) {
                    remote.entry(*node).or_default().push(output.clone());
                }
                return nodes.contains_key(&NodeNumber::HERE);
            }
            TurnOutput::Reply(RequestId(id), _)
            | TurnOutput::Notify(AgentConnectionId(id), _)
            | TurnOutput::Join { listener: ListenerId(id), .. }
            | TurnOutput::Move(ListenerId(id), _)
            | TurnOutput::Send(ListenerId(id), _)
            | TurnOutput::Close(ListenerId(id)) => NodeNumber::split(*id),
            _ => return true,
        };
        match &*output {
            TurnOutput::Reply(id, reply) => {
                if let Some(listener) = self.attaching.remove(id)
                    && *reply != HubReply::Done
                {
                    self.remove(listener);
                }
            }
            TurnOutput::Join { listener, group, .. } => {
                if !self.attached.contains(listener) {
                    return false;
                }
                self.join(*listener, *group);
            }
            TurnOutput::Move(listener, group) if self.group_of.contains_key(listener) => {
                self.join(*listener, *group);
            }
            TurnOutput::Close(listener) => self.remove(*listener),
            _ => {}
        }
        if node == NodeNumber::HERE {
            return true;
        }
        let mut output = output.clone();
        match &mut output {
            TurnOutput::Reply(RequestId(id), _)
            | TurnOutput::Notify(AgentConnectionId(id), _)
            | TurnOutput::Join { listener: ListenerId(id), .. }
            | TurnOutput::Move(ListenerId(id), _)
            | TurnOutput::Send(ListenerId(id), _)
            | TurnOutput::Close(ListenerId(id)) => *id = own_id,
            _ => {}
        }
        remote.entry(node).or_default().push(output);
        false
    }
}
