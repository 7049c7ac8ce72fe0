//! The connection from this node to another one that owns shards.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use hub::command::{Request, RequestId, TurnOutput};
use hub::delivery::Frame;
use hub::{ListenerId, encoding};
use rustc_hash::{FxHashMap, FxHashSet};
use tokio::net::TcpStream;
use tokio::task::AbortHandle;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::ServerName;

use super::connection::{MessageReader, MessageSender, MessageWriter, message_queue, split};
use super::protocol::{Hello, Message, MessageKind};
use super::router::RouterState;
use super::slot::ConnectionNumber;
use crate::telemetry::log_record;

/// The first pause before a further attempt to connect.
const MIN_BACKOFF: Duration = Duration::from_millis(50);
/// The name in the TLS handshake. It is not checked, because the key identifies the other node.
const TLS_NAME: &str = "sayso.internal";

/// Another node, to which this node stays connected until the value is dropped.
pub(super) struct Peer {
    node: String,
    address: String,
    state: Mutex<PeerState>,
    task: Mutex<Option<AbortHandle>>,
}

#[derive(Default)]
struct PeerState {
    connection: Option<(ConnectionNumber, MessageSender)>,
    /// The shards that the node runs.
    shards: FxHashSet<u16>,
}

impl Drop for Peer {
    fn drop(&mut self) {
        if let Some(task) = self.task.get_mut().unwrap_or_else(PoisonError::into_inner).take() {
            task.abort();
        }
    }
}

impl Peer {
    /// Connects to a node, and connects again whenever the connection is lost.
    pub(super) fn start(node: &str, address: &str, router: &Arc<RouterState>) -> Arc<Self> {
        let peer = Arc::new(Self {
            node: node.to_owned(),
            address: address.to_owned(),
            state: Mutex::default(),
            task: Mutex::default(),
        });
        let task = router.runtime.spawn(run(Arc::downgrade(&peer), Arc::downgrade(router)));
        *peer.task.lock().unwrap_or_else(PoisonError::into_inner) = Some(task.abort_handle());
        peer
    }

    pub(super) fn node(&self) -> &str {
        &self.node
    }

    pub(super) fn is(&self, node: &str, address: &str) -> bool {
        self.node == node && self.address == address
    }

    fn lock(&self) -> MutexGuard<'_, PeerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the connection, if the node runs the shard.
    pub(super) fn connection_for(&self, shard: u16) -> Option<ConnectionNumber> {
        let state = self.lock();
        let (number, _) = state.connection.as_ref()?;
        state.shards.contains(&shard).then_some(*number)
    }

    /// Sends a request. Returns `false` if there is no connection.
    pub(super) fn send_request(&self, shard: u16, request: &Request) -> bool {
        let Ok(body) = encoding::encode_request(request) else { return false };
        let message = Message::of_request(MessageKind::Request, shard, request.id.0);
        let message = message.with_bodies(vec![body.into()]);
        self.lock().connection.as_ref().is_some_and(|(_, sender)| sender.send(&message))
    }
}

async fn run(peer: Weak<Peer>, router: Weak<RouterState>) {
    let mut backoff = MIN_BACKOFF;
    let mut last_error = String::new();
    loop {
        let (Some(current), Some(state)) = (peer.upgrade(), router.upgrade()) else { return };
        let (address, node, max_backoff) =
            (current.address.clone(), current.node.clone(), state.limits.max_backoff);
        let connected = connect(&address, &node, &state);
        drop(current);
        let result = match connected.await {
            Ok((reader, writer)) => {
                backoff = MIN_BACKOFF;
                last_error.clear();
                log_record::node_connected(&node);
                run_connection(&peer, state, reader, writer).await
            }
            Err(error) => {
                drop(state);
                Err(error)
            }
        };
        let error = result.err().map(|error| error.to_string()).unwrap_or_default();
        if error != last_error {
            log_record::node_disconnected(&node, &error);
            last_error = error;
        }
        tokio::time::sleep(backoff).await;
        backoff = (backoff * 2).min(max_backoff);
    }
}

type Connected = (MessageReader<TlsStream<TcpStream>>, MessageWriter<TlsStream<TcpStream>>);

async fn connect(address: &str, node: &str, router: &Arc<RouterState>) -> io::Result<Connected> {
    let limits = router.limits;
    let handshake = async {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let name = ServerName::try_from(TLS_NAME).map_err(io::Error::other)?;
        let stream = TlsConnector::from(router.key.client.clone()).connect(name, stream).await?;
        let (mut reader, mut writer) = split(stream, &limits);
        let own = Hello::new(&router.node, router.shard_count());
        writer.write(&Message::hello(own.clone())).await?;
        let answer = reader.read().await?;
        match answer {
            Message { kind: MessageKind::Hello, hello: Some(other), .. } => {
                if let Some(reason) = own.refusal(&other) {
                    return Err(io::Error::other(reason));
                }
                if other.node != node {
                    return Err(io::Error::other(format!("the node there is {:?}", other.node)));
                }
                Ok((reader, writer))
            }
            Message { kind: MessageKind::Rejected, bodies, .. } => {
                let reason = bodies.first().map(|reason| String::from_utf8_lossy(&reason.0).into_owned());
                Err(io::Error::other(reason.unwrap_or_default()))
            }
            _ => Err(io::Error::other("the other node did not introduce itself")),
        }
    };
    timeout(limits.connect_timeout, handshake).await?
}

async fn run_connection(
    peer: &Weak<Peer>,
    router: Arc<RouterState>,
    mut reader: MessageReader<TlsStream<TcpStream>>,
    mut writer: MessageWriter<TlsStream<TcpStream>>,
) -> io::Result<()> {
    let number = router.next_connection();
    let (sender, mut queue) = message_queue(&router.limits);
    let Some(current) = peer.upgrade() else { return Ok(()) };
    *current.lock() = PeerState { connection: Some((number, sender)), shards: FxHashSet::default() };
    drop(current);
    let mut guard = ConnectionGuard { peer: peer.clone(), router, number, parts: FxHashMap::default() };
    let read = async {
        loop {
            let message = reader.read().await?;
            guard.handle(message);
        }
    };
    tokio::select! {
        result = read => result,
        result = writer.run(&mut queue) => result,
    }
}

/// Handles the messages of a connection, and ends what depends on it when it is dropped.
struct ConnectionGuard {
    peer: Weak<Peer>,
    router: Arc<RouterState>,
    number: ConnectionNumber,
    /// The private frames of listeners that will join.
    parts: FxHashMap<(u16, ListenerId), Vec<Arc<Frame>>>,
}

impl ConnectionGuard {
    fn handle(&mut self, message: Message) {
        let Some(shard) = message.shard else { return };
        let Some(slot) = self.router.slots.get(usize::from(shard)).cloned() else { return };
        let Some(peer) = self.peer.upgrade() else { return };
        match (message.kind, message.id) {
            (MessageKind::Started, _) => {
                peer.lock().shards.insert(shard);
                if slot.is_at(&peer) {
                    slot.open();
                }
            }
            (MessageKind::Stopped, _) => {
                peer.lock().shards.remove(&shard);
                if slot.is_at(&peer) {
                    slot.close();
                }
            }
            (MessageKind::Refused, Some(id)) => slot.return_request(self.number, RequestId(id), true),
            (MessageKind::Lost, Some(id)) => slot.return_request(self.number, RequestId(id), false),
            (MessageKind::JoinPart, _) => {
                for body in &message.bodies {
                    if let Ok(TurnOutput::Join { listener, private_frames, .. }) =
                        encoding::decode_output(&body.0)
                    {
                        self.parts.entry((shard, listener)).or_default().extend(private_frames);
                    }
                }
            }
            (MessageKind::Outputs, _) => {
                let mut outputs = Vec::with_capacity(message.bodies.len());
                for body in &message.bodies {
                    // An output of an unknown kind is not for this version.
                    let Ok(mut output) = encoding::decode_output(&body.0) else { continue };
                    if let TurnOutput::Join { listener, private_frames, .. } = &mut output
                        && let Some(mut parts) = self.parts.remove(&(shard, *listener))
                    {
                        parts.append(private_frames);
                        *private_frames = parts;
                    }
                    outputs.push(output);
                }
                slot.apply_remote(self.number, &mut outputs);
            }
            _ => {}
        }
    }
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        let peer = self.peer.upgrade();
        if let Some(peer) = &peer {
            *peer.lock() = PeerState::default();
        }
        for slot in &self.router.slots {
            if peer.as_ref().is_some_and(|peer| slot.is_at(peer)) {
                slot.close();
            }
            slot.end_connection(self.number);
        }
    }
}
