//! The messages between two nodes.
//!
//! The node that connects is the *front*: it sends requests of its agents and listeners. The other one is the *owner* of shards:
//! it announces which shards it runs, and sends their outputs. A request gets exactly one of a reply among the outputs,
//! [`MessageKind::Refused`] and [`MessageKind::Lost`].

use hub::encoding::Blob;
use serde::{Deserialize, Serialize};

/// The version of the protocol that this program speaks.
pub(super) const PROTOCOL: u32 = 1;
/// The oldest version that it understands.
pub(super) const OLDEST_PROTOCOL: u32 = 1;

/// A message. Each kind uses some of the fields.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Message {
    pub(super) kind: MessageKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) shard: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) bodies: Vec<Blob>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) hello: Option<Hello>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum MessageKind {
    /// The first message in each direction, with `hello`.
    Hello,
    /// The connection is refused. The first body says why.
    Rejected,
    /// Shows that the node is alive.
    Ping,
    /// From the owner: it runs `shard` from now on.
    Started,
    /// From the owner: it no longer runs `shard`. All outputs have been sent.
    Stopped,
    /// From the front: a request for `shard`, with its `id`. The body is the encoded request.
    Request,
    /// From the owner: it does not run the shard, so it did not handle the request `id`.
    Refused,
    /// From the owner: it is unknown whether the request `id` was performed.
    Lost,
    /// From the owner: outputs of `shard`, in order.
    Outputs,
    /// From the owner: some of the private frames of a `Join` that follows, as a `Join` without the rest.
    JoinPart,
    /// A kind that this version does not know. It is ignored.
    #[serde(other)]
    Unknown,
}

/// How a node introduces itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Hello {
    /// The version that the node speaks.
    pub(super) protocol: u32,
    /// The oldest version that it understands.
    pub(super) oldest: u32,
    /// The name of the node.
    pub(super) node: String,
    /// The number of shards of the cluster.
    pub(super) shards: u16,
}

impl Hello {
    pub(super) fn new(node: &str, shards: u16) -> Self {
        Self { protocol: PROTOCOL, oldest: OLDEST_PROTOCOL, node: node.to_owned(), shards }
    }

    /// Returns why the two nodes cannot work together, if so.
    pub(super) fn refusal(&self, other: &Self) -> Option<String> {
        if self.protocol < other.oldest || other.protocol < self.oldest {
            return Some(format!(
                "node {:?} speaks version {} of the internal protocol and node {:?} version {}; update one of them",
                self.node, self.protocol, other.node, other.protocol
            ));
        }
        if self.shards != other.shards {
            return Some(format!(
                "node {:?} has {} shards and node {:?} has {}",
                self.node, self.shards, other.node, other.shards
            ));
        }
        None
    }
}

impl Message {
    pub(super) fn new(kind: MessageKind) -> Self {
        Self { kind, shard: None, id: None, bodies: Vec::new(), hello: None }
    }

    pub(super) fn hello(hello: Hello) -> Self {
        Self { hello: Some(hello), ..Self::new(MessageKind::Hello) }
    }

    pub(super) fn of_shard(kind: MessageKind, shard: u16) -> Self {
        Self { shard: Some(shard), ..Self::new(kind) }
    }

    pub(super) fn of_request(kind: MessageKind, shard: u16, id: u64) -> Self {
        Self { id: Some(id), ..Self::of_shard(kind, shard) }
    }

    pub(super) fn with_bodies(self, bodies: Vec<Blob>) -> Self {
        Self { bodies, ..self }
    }
}
