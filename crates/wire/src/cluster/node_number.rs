//! Numbers that make the ids of all connected nodes distinct.

use hub::command::{HubCommand, Request, RequestId};
use hub::{AgentConnectionId, ListenerId};

/// Identifies a connected node, among those that were ever connected to this process.
///
/// The ids of requests, listeners and agent connections of another node become distinct from those of this node by this number
/// in their high bits. A node can therefore name only its own listeners and connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct NodeNumber(u32);

impl NodeNumber {
    /// This node.
    pub(super) const HERE: Self = Self(0);

    /// Number of low bits that hold the node's own id.
    const SHIFT: u32 = 40;
    const OWN_MASK: u64 = (1 << Self::SHIFT) - 1;

    /// Returns the number of the connection with this sequence number, which counts from 1.
    pub(super) fn of_connection(sequence: u64) -> Self {
        Self(u32::try_from(sequence % (1 << (u64::BITS - Self::SHIFT))).unwrap_or_default().max(1))
    }

    /// Returns the node of an id, and the id that the node itself uses.
    pub(super) fn split(id: u64) -> (Self, u64) {
        (Self(u32::try_from(id >> Self::SHIFT).unwrap_or_default()), id & Self::OWN_MASK)
    }

    /// Makes the id of a listener distinct from those of other nodes.
    pub(super) fn distinct_listener(self, ListenerId(mut id): ListenerId) -> ListenerId {
        self.distinct(&mut id);
        ListenerId(id)
    }

    fn distinct(self, id: &mut u64) {
        *id = (*id & Self::OWN_MASK) | (u64::from(self.0) << Self::SHIFT);
    }

    /// Makes the ids in a request of this node distinct from those of other nodes.
    pub(super) fn make_distinct(self, request: &mut Request) {
        self.distinct(&mut request.id.0);
        self.make_command_distinct(&mut request.command);
    }

    fn make_command_distinct(self, command: &mut HubCommand) {
        match command {
            HubCommand::Attach { listener: ListenerId(id), .. }
            | HubCommand::AttachFromStart { listener: ListenerId(id), .. }
            | HubCommand::Detach { listener: ListenerId(id), .. }
            | HubCommand::CancelWait { request: RequestId(id) }
            | HubCommand::DisconnectAgent { connection: AgentConnectionId(id) } => self.distinct(id),
            HubCommand::OnConnection { connection: AgentConnectionId(id), command } => {
                self.distinct(id);
                self.make_command_distinct(command);
            }
            _ => {}
        }
    }
}
