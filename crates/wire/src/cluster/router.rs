//! The router of a node: all shards as the node sees them, and the connections to and from other nodes.

use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hub::command::{HubReply, RequestId};
use hub::{Core, ShardMap};
use rustc_hash::FxHashMap;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::connection::{MessageReader, MessageWriter, message_queue, split};
use super::hosted::HostedShard;
use super::node_sessions::{NodeSession, NodeSessions};
use super::peer::Peer;
use super::protocol::{Hello, Message, MessageKind};
use super::slot::{ConnectionNumber, ShardCounts, ShardLocation, ShardSlot};
use super::{ClusterKey, RouterLimits};
use crate::fanout::FanoutLimits;
use crate::http_server::back_off_after_accept_error;
use crate::server::{HubHandle, ShardLink, ShardOutputs};
use crate::telemetry::{ServiceMetric, Telemetry, log_record};

/// How often held requests are checked.
const EXPIRY_INTERVAL: Duration = Duration::from_millis(100);

/// Why a shard stops on this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShardStop {
    /// The node gives it away. Requests that it has received are still handled.
    GivenAway,
    /// Another node may own it. Nothing is sent on its behalf any more.
    Lost,
}

/// All shards of a cluster as one node sees them. Each runs on this node, at another node, or nowhere.
///
/// The caller decides which shard runs where, and tells the router. Clones share the router.
#[derive(Clone)]
pub struct ShardRouter(Arc<RouterState>);

impl std::fmt::Debug for ShardRouter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ShardRouter").field("node", &self.0.node).finish_non_exhaustive()
    }
}

pub(super) struct RouterState {
    pub(super) node: String,
    pub(super) key: ClusterKey,
    pub(super) limits: RouterLimits,
    pub(super) slots: Vec<Arc<ShardSlot>>,
    pub(super) runtime: Handle,
    outputs: ShardOutputs,
    sessions: Arc<NodeSessions>,
    peers: Mutex<Vec<Arc<Peer>>>,
    /// One lock for each shard, held while it starts, stops or changes its owner.
    changes: Vec<Mutex<()>>,
    connections: AtomicU64,
    is_draining: AtomicBool,
    /// The epoch of each shard, as the caller last read it.
    epochs: Vec<AtomicU64>,
}

impl RouterState {
    pub(super) fn shard_count(&self) -> u16 {
        self.outputs.map.count()
    }

    pub(super) fn next_connection(&self) -> ConnectionNumber {
        ConnectionNumber(self.connections.fetch_add(1, Ordering::Relaxed) + 1)
    }
}

impl ShardRouter {
    /// Starts the router of a node, and the front of all shards. No shard runs anywhere yet. Must be called in a Tokio
    /// runtime, on which the connections run.
    pub fn start(
        node: &str,
        key: ClusterKey,
        map: ShardMap,
        limits: RouterLimits,
        fanout_limits: impl Into<FanoutLimits>,
        telemetry: Arc<Telemetry>,
    ) -> io::Result<(Self, HubHandle)> {
        let runtime = Handle::try_current().map_err(io::Error::other)?;
        let (later, replies) = unbounded_channel();
        let mut started = None;
        let manifests = hub::manifests::PublishedManifests::default();
        let hub = HubHandle::with_links(map, 0, fanout_limits, telemetry, manifests, |outputs| {
            let slot = |shard| Arc::new(ShardSlot::new(shard, limits, outputs.clone(), later.clone()));
            let slots: Vec<_> = map.all().into_iter().map(slot).collect();
            started = Some((slots.clone(), outputs.clone()));
            Ok(slots.into_iter().map(|slot| slot as Arc<dyn ShardLink>).collect())
        })?;
        let (slots, outputs) = started.ok_or_else(|| io::Error::other("the shards were not started"))?;
        let state = Arc::new(RouterState {
            node: node.to_owned(),
            key,
            limits,
            slots,
            runtime: runtime.clone(),
            outputs,
            sessions: Arc::default(),
            peers: Mutex::default(),
            changes: map.all().iter().map(|_| Mutex::default()).collect(),
            connections: AtomicU64::new(0),
            is_draining: AtomicBool::new(false),
            epochs: map.all().iter().map(|_| AtomicU64::new(0)).collect(),
        });
        runtime.spawn(expire_requests(Arc::downgrade(&state), replies));
        Ok((Self(state), hub.with_manifests_of_shards()))
    }

    /// Returns a shard, locked against other changes.
    fn lock_slot(&self, shard: u16) -> Option<(&Arc<ShardSlot>, MutexGuard<'_, ()>)> {
        let index = usize::from(shard);
        let (slot, change) = (self.0.slots.get(index)?, self.0.changes.get(index)?);
        Some((slot, change.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    fn lock_peers(&self) -> MutexGuard<'_, Vec<Arc<Peer>>> {
        self.0.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Disconnects from nodes that own no shard any more.
    fn drop_unused_peers(&self) {
        let is_used = |peer: &Arc<Peer>| self.0.slots.iter().any(|slot| slot.is_at(peer));
        let unused: Vec<_> = self.lock_peers().extract_if(.., |peer| !is_used(peer)).collect();
        drop(unused);
    }

    /// Runs a shard on this node. Blocks until its first turn has ended.
    pub fn run_here(&self, shard: u16, core: Core) -> io::Result<()> {
        let (slot, _change) =
            self.lock_slot(shard).ok_or_else(|| io::Error::other("there is no such shard"))?;
        if slot.hosted().is_some() {
            return Err(io::Error::other("the shard already runs on this node"));
        }
        let generation = slot.close();
        slot.set_peer(None);
        self.drop_unused_peers();
        self.0.outputs.telemetry.set_shard_counters(shard, Some(core.counters()));
        let hosted = HostedShard::start(core, slot, generation, &self.0.sessions)?;
        slot.set_hosted(Arc::new(hosted));
        slot.open();
        self.0.sessions.announce_started(shard);
        Ok(())
    }

    /// Sends the requests of a shard to another node. Has no effect if they already go there. If the shard runs on this node, it
    /// is stopped as lost.
    pub fn run_at(&self, shard: u16, node: &str, address: &str) {
        let is_there = |slot: &ShardSlot, peer: &Arc<Peer>| peer.is(node, address) && slot.is_at(peer);
        let known = |slot: &ShardSlot| self.lock_peers().iter().any(|peer| is_there(slot, peer));
        if self.0.slots.get(usize::from(shard)).is_none_or(|slot| known(slot)) {
            return;
        }
        let Some((slot, _change)) = self.lock_slot(shard) else { return };
        self.stop_hosted(slot, ShardStop::Lost);
        slot.close();
        {
            let mut peers = self.lock_peers();
            let known = peers.iter().find(|peer| peer.is(node, address)).cloned();
            let peer = known.unwrap_or_else(|| {
                let peer = Peer::start(node, address, &self.0);
                peers.push(peer.clone());
                peer
            });
            slot.set_peer(Some(peer));
        }
        slot.open();
        self.drop_unused_peers();
    }

    /// Stops a shard on this node, or stops sending its requests to another node. Requests are then held. Blocks until the last
    /// turn of the shard has ended and its journal is closed.
    pub fn stop(&self, shard: u16, reason: ShardStop) {
        let Some((slot, _change)) = self.lock_slot(shard) else { return };
        if !self.stop_hosted(slot, reason) && slot.location() != ShardLocation::Nowhere {
            slot.close();
            slot.set_peer(None);
            self.drop_unused_peers();
        }
    }

    fn stop_hosted(&self, slot: &Arc<ShardSlot>, reason: ShardStop) -> bool {
        let Some(hosted) = slot.take_hosted() else { return false };
        let thread = hosted.take_thread();
        let wait = move || {
            drop(hosted);
            // The thread handles what it has received, and then drops the core.
            thread.map(std::thread::JoinHandle::join)
        };
        match reason {
            ShardStop::GivenAway => {
                wait();
                slot.close();
            }
            ShardStop::Lost => {
                slot.close();
                wait();
            }
        }
        self.0.outputs.telemetry.set_shard_counters(slot.shard(), None);
        self.0.sessions.announce_stopped(slot.shard());
        true
    }

    /// States whether the node gives its shards away, so that load balancers send no more requests to it.
    pub fn set_draining(&self, is_draining: bool) {
        self.0.is_draining.store(is_draining, Ordering::Relaxed);
    }

    /// Sets the epoch of a shard's ownership, which is shown as a metric.
    pub fn set_epoch(&self, shard: u16, epoch: u64) {
        if let Some(known) = self.0.epochs.get(usize::from(shard)) {
            known.store(epoch, Ordering::Relaxed);
        }
    }

    /// Returns where each shard runs.
    pub fn locations(&self) -> Vec<ShardLocation> {
        self.0.slots.iter().map(|slot| slot.location()).collect()
    }

    /// Returns the names of the nodes that send requests to this one.
    pub fn connected_nodes(&self) -> Vec<String> {
        self.0.sessions.names()
    }

    /// Whether requests for every shard can be handled. The error names the shards that run nowhere or cannot be reached.
    pub fn readiness(&self) -> Result<(), String> {
        if self.0.is_draining.load(Ordering::Relaxed) {
            return Err("This node is being drained.".to_owned());
        }
        let locations = self.locations();
        let missing = locations.iter().enumerate().filter(|(_, location)| !is_reachable(location));
        let missing: Vec<String> = missing.map(|(shard, _)| shard.to_string()).collect();
        if missing.is_empty() {
            return Ok(());
        }
        Err(format!("These shards run nowhere, or their nodes cannot be reached: {}.", missing.join(", ")))
    }

    /// Returns the metrics of the shards, and of the connections between the nodes.
    pub(crate) fn metrics(&self) -> Vec<ServiceMetric> {
        let locations = self.locations();
        let is = |holds: fn(&ShardLocation) -> bool| {
            by_shard(locations.iter().map(move |location| u64::from(holds(location))))
        };
        let counts: Vec<ShardCounts> = self.0.slots.iter().map(|slot| slot.counts()).collect();
        let count = |of: fn(&ShardCounts) -> u64| by_shard(counts.iter().map(of));
        let epochs = by_shard(self.0.epochs.iter().map(|epoch| epoch.load(Ordering::Relaxed)));
        let nodes = u64::try_from(self.connected_nodes().len()).unwrap_or(u64::MAX);
        let (gauge, counter) = (ServiceMetric::labelled_gauge, ServiceMetric::labelled_counter);
        let shard = &["shard"];
        vec![
            gauge(
                "sayso_shard_here",
                "1 if the shard runs on this node.",
                shard,
                is(|location| *location == ShardLocation::Here),
            ),
            gauge(
                "sayso_shard_reachable",
                "1 if this node can serve requests for the shard.",
                shard,
                is(is_reachable),
            ),
            gauge(
                "sayso_shard_epoch",
                "How often a node has taken, confirmed or released the shard.",
                shard,
                epochs,
            ),
            counter(
                "sayso_shard_starts",
                "Times the shard has started on this node.",
                shard,
                count(|counts| counts.starts),
            ),
            counter(
                "sayso_requests_forwarded",
                "Requests sent to the node that runs the shard.",
                shard,
                count(|counts| counts.forwarded),
            ),
            counter(
                "sayso_requests_held",
                "Requests that waited because the shard could not be reached.",
                shard,
                count(|counts| counts.held),
            ),
            gauge(
                "sayso_requests_waiting_for_shard",
                "Requests that wait because the shard cannot be reached.",
                shard,
                count(|counts| counts.waiting),
            ),
            ServiceMetric::gauge(
                "sayso_nodes_connected",
                "Other nodes that send requests to this one.",
                nodes,
            ),
        ]
    }

    /// Accepts connections of other nodes until the future is dropped.
    pub async fn serve(self, listener: TcpListener) {
        let nodes = Arc::new(Semaphore::new(self.0.limits.connections));
        let handshakes: Arc<Handshakes> = Arc::default();
        loop {
            let Ok((stream, address)) = listener.accept().await else {
                back_off_after_accept_error().await;
                continue;
            };
            // A connection beyond the limits is closed. A stranger can therefore take no place of a node.
            let Some(handshake) = handshakes.begin(address.ip(), &self.0.limits) else { continue };
            let (state, nodes) = (self.0.clone(), nodes.clone());
            tokio::spawn(async move {
                let served = async {
                    let connected = accept_node(&state, stream).await?;
                    drop(handshake);
                    let Ok(_permit) = nodes.try_acquire() else {
                        return Err(io::Error::other("too many nodes are connected"));
                    };
                    serve_node(&state, connected).await
                };
                if let Err(error) = served.await {
                    log_record::internal_connection_failed(&error.to_string());
                }
            });
        }
    }
}

/// Labels values with their shards.
fn by_shard(values: impl Iterator<Item = u64>) -> Vec<(Vec<String>, u64)> {
    (0_u16..).zip(values).map(|(shard, value)| (vec![shard.to_string()], value)).collect()
}

fn is_reachable(location: &ShardLocation) -> bool {
    matches!(location, ShardLocation::Here | ShardLocation::At { is_reachable: true, .. })
}

/// Applies late replies, and answers requests that were held for too long.
async fn expire_requests(
    router: std::sync::Weak<RouterState>,
    mut replies: UnboundedReceiver<(RequestId, HubReply)>,
) {
    let mut interval = tokio::time::interval(EXPIRY_INTERVAL);
    loop {
        let reply = tokio::select! {
            reply = replies.recv() => reply,
            _ = interval.tick() => None,
        };
        let Some(router) = router.upgrade() else { return };
        if let Some((id, reply)) = reply {
            router.outputs.apply_reply(id, reply);
            continue;
        }
        let now = Instant::now();
        for slot in &router.slots {
            slot.expire(now);
        }
    }
}

/// The connections whose handshake has not ended, by address.
#[derive(Default)]
struct Handshakes(Mutex<FxHashMap<IpAddr, usize>>);

/// A place among the [`Handshakes`], until it is dropped.
struct HandshakePlace {
    handshakes: Arc<Handshakes>,
    address: IpAddr,
}

impl Handshakes {
    fn lock(&self) -> MutexGuard<'_, FxHashMap<IpAddr, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a place. Returns `None` if there are too many.
    fn begin(self: &Arc<Self>, address: IpAddr, limits: &RouterLimits) -> Option<HandshakePlace> {
        let address = address.to_canonical();
        let mut places = self.lock();
        let of_address = places.get(&address).copied().unwrap_or_default();
        if of_address >= limits.handshakes_per_address || places.values().sum::<usize>() >= limits.handshakes
        {
            return None;
        }
        places.insert(address, of_address + 1);
        Some(HandshakePlace { handshakes: self.clone(), address })
    }
}

impl Drop for HandshakePlace {
    fn drop(&mut self) {
        let mut places = self.handshakes.lock();
        if let Some(count) = places.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                places.remove(&self.address);
            }
        }
    }
}

/// A connection of another node that has the key of the cluster, and the name of the node.
type ConnectedNode = (MessageReader<TlsStream<TcpStream>>, MessageWriter<TlsStream<TcpStream>>, String);

/// Performs the handshake with another node.
async fn accept_node(router: &Arc<RouterState>, stream: TcpStream) -> io::Result<ConnectedNode> {
    let limits = router.limits;
    stream.set_nodelay(true)?;
    let handshake = async {
        let stream = TlsAcceptor::from(router.key.server.clone()).accept(stream).await?;
        let (mut reader, mut writer) = split(stream, &limits);
        let Message { kind: MessageKind::Hello, hello: Some(other), .. } = reader.read().await? else {
            return Err(io::Error::other("a node did not introduce itself"));
        };
        let own = Hello::new(&router.node, router.shard_count());
        if let Some(reason) = own.refusal(&other) {
            let body = reason.clone().into_bytes().into();
            writer.write(&Message::new(MessageKind::Rejected).with_bodies(vec![body])).await?;
            return Err(io::Error::other(reason));
        }
        writer.write(&Message::hello(own)).await?;
        Ok((reader, writer, other.node))
    };
    timeout(limits.connect_timeout, handshake).await?
}

/// Serves another node until its connection ends.
async fn serve_node(
    router: &Arc<RouterState>,
    (mut reader, mut writer, node): ConnectedNode,
) -> io::Result<()> {
    let limits = router.limits;
    let (sender, mut queue) = message_queue(&limits);
    let session = router.sessions.add(&node, sender, &limits, &router.slots);
    let _guard = SessionGuard { router: router.clone(), session: session.clone() };
    let read = async {
        loop {
            let message = reader.read().await?;
            if let Message { kind: MessageKind::Request, shard: Some(shard), id: Some(id), bodies, .. } =
                message
                && let Some(body) = bodies.first()
            {
                session.handle_request(shard, id, &body.0, &router.slots);
            }
        }
    };
    tokio::select! {
        result = read => result,
        result = writer.run(&mut queue) => result,
    }
}

/// Ends what depends on the connection of a node when it is dropped.
struct SessionGuard {
    router: Arc<RouterState>,
    session: Arc<NodeSession>,
}

impl Drop for SessionGuard {
    fn drop(&mut self) {
        self.router.sessions.remove(&self.session, &self.router.slots);
    }
}
