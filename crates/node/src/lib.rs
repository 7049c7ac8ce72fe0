//! The ASP node: it runs an agent's sessions with agents on other machines, keeps them in a journal, and asks a person before a
//! commitment binds.
//!
//! - [`Node`]: the sessions of one agent. [`Node::run`] does its work; [`NodeService`] serves it over HTTP.
//! - [`Identity`]: the agent's keys and card.
//! - [`Policy`]: who may do what, and what a person is asked about.
//! - [`NodeLimits`]: the limits.
//! - [`Person`]: the hub through which a person is asked and hears what happens.
//! - `session`, `send`, `receive`, `outbox`: one session, this node's messages, the peer's messages, and the delivery of this node's messages.
//! - `catch_up`: messages that this node has lost, and fetches from the peer.
//! - `consent`: messages that wait for a person.
//! - `dispute_questions`: disputes that a person decides.
//! - `effects`, `peers`, `escrow_book`, `disputes`: the effects of sessions on trust and money.
//! - `records`, `journal_writer`: the durable facts.
//! - `ended_sessions`: a cache of sessions that have ended, for clients that still read them. `address_limiter`: the rate of registrations.
//! - `metrics`: the node's own metrics. `routes`: its HTTP routes.
//! - `crash_point`: points at which tests abort the process.
//! - `encoding`: JSON or MessagePack between nodes.
//! - `dpop`, `peer_client`, `peer_socket`: requests and WebSockets between nodes; `stream`: the messages that peers read as they arrive.
//!
//! Every change is stored before anybody learns about it: a received message before it is acknowledged, an outgoing message before
//! it leaves. After a restart, the node continues from the stored facts.

mod address_limiter;
mod catch_up;
mod consent;
mod crash_point;
mod dispute_questions;
mod disputes;
mod dpop;
mod effects;
mod encoding;
mod ended_sessions;
mod error;
mod escrow_book;
mod identity;
mod journal_writer;
mod limits;
mod metrics;
mod narration;
mod node;
mod outbox;
mod peer_client;
mod peer_socket;
mod peers;
mod person;
mod policy;
mod receive;
mod records;
mod routes;
mod send;
mod session;
mod stream;
mod timers;
mod trust_events;
mod view;

pub use error::NodeError;
pub use identity::{Identity, IdentityError, read_card};
pub use limits::NodeLimits;
pub use node::{Node, NodeConfig};
pub use peer_client::{PeerTransport, fetch_card, fetch_card_text, register_card};
pub use person::{Person, PersonConfig};
pub use policy::{ConsentPolicy, Policy, PolicyError};
pub use routes::NodeService;
pub use send::{InvitationRequest, MessageExtras, MessageRequest, SendOutcome};
