//! Tracks who waits for which reply from the hub.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hub::AgentConnectionId;
use hub::command::{HubReply, RequestId};
use rustc_hash::FxHashMap;
use tokio::sync::oneshot;

use super::Flow;
use crate::server::agent_messages::{AgentMessage, AgentMessageQueue};

/// The recipients of the hub's replies and notices.
pub(in crate::server) struct PendingReplies {
    requests: FxHashMap<RequestId, PendingRequest>,
    pub(in crate::server) connections: FxHashMap<AgentConnectionId, AgentMessageQueue>,
    /// The flows, by the id of the request that started each, with the recipients of their outcomes.
    pub(super) flows: FxHashMap<RequestId, (Flow, ReplyTarget)>,
    last_id: Arc<AtomicU64>,
}

struct PendingRequest {
    target: ReplyTarget,
    /// The shard that handles the request.
    shard: u16,
}

pub(in crate::server) enum ReplyTarget {
    /// A caller that waits for this one reply.
    OneShot(oneshot::Sender<HubReply>),
    /// An agent connection, which receives replies and notices in the hub's order.
    Connection(AgentConnectionId),
    /// An agent connection whose caller runs the hub's turn on its own thread and takes the reply afterwards.
    InlineConnection(AgentConnectionId),
    /// A step of a flow.
    FlowStep {
        flow: RequestId,
        /// The number of the step in its stage.
        index: usize,
    },
}

impl PendingReplies {
    pub(super) fn new(last_id: Arc<AtomicU64>) -> Self {
        Self {
            requests: FxHashMap::default(),
            connections: FxHashMap::default(),
            flows: FxHashMap::default(),
            last_id,
        }
    }

    /// Returns an id that nothing else has: no request, connection or listener.
    pub(in crate::server) fn next_id(&self) -> u64 {
        self.last_id.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(super) fn next_request_id(&self) -> RequestId {
        RequestId(self.next_id())
    }

    pub(in crate::server) fn insert(&mut self, id: RequestId, target: ReplyTarget, shard: u16) {
        self.requests.insert(id, PendingRequest { target, shard });
    }

    /// Removes a request. Returns who waits for its reply.
    pub(in crate::server) fn take(&mut self, id: RequestId) -> Option<ReplyTarget> {
        self.requests.remove(&id).map(|request| request.target)
    }

    /// Removes a request that nobody waits for any more. Returns its shard.
    pub(in crate::server) fn cancel(&mut self, id: RequestId) -> Option<u16> {
        self.requests.remove(&id).map(|request| request.shard)
    }

    pub(super) fn has_connection(&self, connection: AgentConnectionId) -> bool {
        self.connections.contains_key(&connection)
    }

    /// Delivers a reply.
    pub(super) fn deliver(&mut self, id: RequestId, target: ReplyTarget, reply: HubReply) {
        match target {
            ReplyTarget::OneShot(sender) => drop(sender.send(reply)),
            ReplyTarget::Connection(connection) => {
                let message = AgentMessage::Reply(id, reply);
                self.queue_message(connection, message, AgentMessageQueue::push_and_wake);
            }
            ReplyTarget::InlineConnection(connection) => {
                let message = AgentMessage::Reply(id, reply);
                self.queue_message(connection, message, AgentMessageQueue::push_silently);
            }
            ReplyTarget::FlowStep { .. } => {}
        }
    }

    /// Queues a message for a connection, with `push`. A connection whose queue is full is removed. The agent is expected
    /// to reconnect and catch up.
    pub(super) fn queue_message(
        &mut self,
        connection: AgentConnectionId,
        message: AgentMessage,
        push: fn(&AgentMessageQueue, AgentMessage) -> bool,
    ) {
        if self.connections.get(&connection).is_some_and(|queue| !push(queue, message)) {
            self.connections.remove(&connection);
        }
    }
}
