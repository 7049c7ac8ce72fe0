//! The handle to the hub's thread, with the replies that callers wait for.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hub::command::{HubCommand, HubReply, Request, RequestId, Unavailable};
use hub::manifests::PublishedManifests;
use hub::{AgentConnectionId, Core, Engine, ListenerId, Principal, ShardMap};
use seal::UnixMillis;
use seal::es256::SigningKey;
use tokio::sync::{OwnedRwLockReadGuard, RwLock, oneshot};

use super::agent_messages::{AgentMessage, AgentMessageQueue};
use super::receipt_signer::ReceiptSigner;
use super::shards::{Plan, ReplyTarget, ShardLink, ShardLinks, ShardOutputs};
use crate::fanout::{self, Fanout, FanoutCommand, FanoutReport, ListenerSink};
use crate::telemetry::Telemetry;

/// Reads the time for one shard.
type ClockFn = Box<dyn Fn() -> UnixMillis + Send>;

/// A handle to all shards of the hub and to the thread that writes to its listeners.
#[derive(Clone)]
pub struct HubHandle {
    /// The shards, by number.
    links: ShardLinks,
    outputs: ShardOutputs,
    /// The manifests that the hub publishes. `None` if a shard is asked for them.
    manifests: Option<PublishedManifests>,
    /// Signs the receipts that agents receive, if the hub has a key.
    receipt_signer: Option<Arc<ReceiptSigner>>,
    /// The writer task of each listener holds a read lock. Shutdown waits for these tasks by acquiring the write lock.
    shutdown_lock: Arc<RwLock<()>>,
}

impl HubHandle {
    /// Starts the hub's thread and the fan-out's thread, with telemetry of their own.
    pub fn start(
        core: Core,
        limits: impl Into<fanout::FanoutLimits>,
        clock: impl Fn() -> UnixMillis + Send + 'static,
    ) -> std::io::Result<Self> {
        let engines = vec![(core, Box::new(clock) as ClockFn)];
        Self::start_engines(engines, ShardMap::default(), limits, Arc::default())
    }

    /// Starts the threads of all shards and the fan-out's thread. `cores` are the shards, by number.
    pub fn start_shards(
        cores: Vec<Core>,
        limits: impl Into<fanout::FanoutLimits>,
        clock: impl Fn() -> UnixMillis + Clone + Send + 'static,
        telemetry: Arc<Telemetry>,
    ) -> std::io::Result<Self> {
        let map = cores.first().map(|core| core.shard().map).unwrap_or_default();
        if usize::from(map.count()) != cores.len() {
            return Err(std::io::Error::other("the number of cores is not the number of shards"));
        }
        let with_clock = |core| (core, Box::new(clock.clone()) as ClockFn);
        Self::start_engines(cores.into_iter().map(with_clock).collect(), map, limits, telemetry)
    }

    fn start_engines(
        mut engines: Vec<(Core, ClockFn)>,
        map: ShardMap,
        limits: impl Into<fanout::FanoutLimits>,
        telemetry: Arc<Telemetry>,
    ) -> std::io::Result<Self> {
        // A crash may have prevented some shards from storing a manifest.
        if let Some(((first, _), others)) = engines.split_first_mut() {
            let documents = if others.is_empty() { Vec::new() } else { first.documents_of_agents() };
            for (core, _) in others {
                core.adopt_documents_of_agents(&documents).map_err(std::io::Error::other)?;
            }
        }
        telemetry.set_hub_counters(engines.iter().map(|(core, _)| core.counters()).collect());
        let manifests = engines.first().map(|(core, _)| core.published_manifests()).unwrap_or_default();
        Self::with_links(map, 0, limits, telemetry, manifests, |outputs| {
            let start = |(shard, (core, clock)): (u16, (Core, ClockFn))| {
                let outputs = outputs.clone();
                let (engine, _) =
                    Engine::start(core, clock, move |turn: &mut Vec<_>| outputs.apply(shard, turn))?;
                Ok(Arc::new(engine) as Arc<dyn ShardLink>)
            };
            (0..).zip(engines).map(start).collect()
        })
    }

    /// Starts the fan-out's thread, and the front of shards that `start` returns, by number. The outputs of the shards are
    /// applied with the [`ShardOutputs`] that it receives. Ids of requests, connections and listeners are larger than
    /// `id_base`.
    pub fn with_links(
        map: ShardMap,
        id_base: u64,
        limits: impl Into<fanout::FanoutLimits>,
        telemetry: Arc<Telemetry>,
        manifests: PublishedManifests,
        start: impl FnOnce(&ShardOutputs) -> std::io::Result<Vec<Arc<dyn ShardLink>>>,
    ) -> std::io::Result<Self> {
        // The fan-out reports disconnected listeners to the hub. The hub starts later, so a channel holds the reports until
        // it runs.
        let (report_sender, reports) = std::sync::mpsc::channel();
        let (fanout, _) = Fanout::start(limits, move |report| {
            let _ = report_sender.send(report);
        })?;
        telemetry.set_fanout_counters(fanout.counters());
        let outputs = ShardOutputs::new(map, fanout, telemetry, id_base);
        let links: ShardLinks = start(&outputs)?.into();
        outputs.set_links(&links);
        let manifests = Some(manifests);
        let hub = Self { links, outputs, manifests, receipt_signer: None, shutdown_lock: Arc::default() };
        let forward_reports = {
            let (links, outputs) = (hub.links.clone(), hub.outputs.clone());
            move || {
                for report in reports {
                    let (listener, is_too_slow) = match report {
                        FanoutReport::Disconnected(listener) => (listener, false),
                        FanoutReport::TooSlow(listener) => (listener, true),
                    };
                    outputs.telemetry.record_listener_left(listener, is_too_slow);
                    send_to_all(&links, &outputs, &HubCommand::Detach { listener, is_too_slow });
                }
            }
        };
        std::thread::Builder::new().name("fanout-reports".to_owned()).spawn(forward_reports)?;
        Ok(hub)
    }

    /// Signs the receipt in every outcome that an agent receives through this handle or a clone of it.
    #[must_use]
    pub fn with_receipt_key(self, key: SigningKey) -> Self {
        Self { receipt_signer: Some(Arc::new(ReceiptSigner::new(key))), ..self }
    }

    /// Returns the public key that verifies the signatures of receipts, as a JWK.
    pub fn receipt_key(&self) -> Option<&str> {
        self.receipt_signer.as_deref().map(ReceiptSigner::public_key)
    }

    /// Returns the telemetry of this hub.
    pub fn telemetry(&self) -> &Arc<Telemetry> {
        &self.outputs.telemetry
    }

    /// Returns the shards of this hub.
    pub fn shards(&self) -> ShardMap {
        self.outputs.map
    }

    /// Asks a shard for manifests, because this process may run none.
    #[must_use]
    pub(crate) fn with_manifests_of_shards(self) -> Self {
        Self { manifests: None, ..self }
    }

    /// Finds a manifest that the hub publishes, by its file name.
    pub(crate) async fn find_manifest(&self, file_name: &str) -> HubReply {
        let Some(manifests) = &self.manifests else {
            let command = HubCommand::FindManifest { file_name: file_name.to_owned() };
            return self.ask(Principal::local(), command).await;
        };
        manifests.get(file_name).map_or(HubReply::NotFound, |manifest| {
            let document = &manifest.document;
            HubReply::ManifestFound { json: document.json.clone(), signed: document.signed.clone() }
        })
    }

    /// Sends a command to the hub and waits for its reply. Dropping the future cancels the wait.
    pub async fn ask(&self, principal: Principal, command: HubCommand) -> HubReply {
        self.outputs.telemetry.log_command(&command);
        let (sender, receiver) = oneshot::channel();
        let stopped = || HubReply::Unavailable(Unavailable::Stopping);
        let Some(id) = self.send(principal, command, ReplyTarget::OneShot(sender)) else {
            return stopped();
        };
        let guard = RequestGuard { hub: self, id };
        let mut reply = receiver.await.unwrap_or_else(|_| stopped());
        drop(guard);
        if let Some(signer) = &self.receipt_signer {
            signer.sign_reply(&mut reply);
        }
        reply
    }

    /// Opens an agent connection to the hub. It queues at most `capacity` messages.
    pub fn connect_agent(&self, capacity: usize) -> AgentConnection {
        let id = AgentConnectionId(self.next_id());
        let messages = AgentMessageQueue::new(capacity);
        self.outputs.lock().connections.insert(id, messages.clone());
        AgentConnection { hub: self.clone(), id, messages }
    }

    fn send(&self, principal: Principal, command: HubCommand, target: ReplyTarget) -> Option<RequestId> {
        let (shard, command) = if self.outputs.map.is_single() {
            (0, command)
        } else {
            match Plan::new(self.outputs.map, &principal, command) {
                Plan::Single(shard, command) => (shard, command),
                Plan::Flow(flow) => {
                    // A flow never runs inline.
                    let target = match target {
                        ReplyTarget::InlineConnection(connection) => ReplyTarget::Connection(connection),
                        target => target,
                    };
                    return Some(self.outputs.start_flow(&self.links, *flow, target));
                }
            }
        };
        let link = self.links.get(usize::from(shard))?;
        let runs_inline = matches!(target, ReplyTarget::InlineConnection(_));
        let id = {
            let mut pending = self.outputs.lock();
            let id = RequestId(pending.next_id());
            pending.insert(id, target, shard);
            id
        };
        let request = Request { id, principal, command };
        let was_accepted = if runs_inline { link.run_turn(request) } else { link.submit(request) };
        if was_accepted {
            return Some(id);
        }
        self.outputs.lock().cancel(id);
        None
    }

    fn next_id(&self) -> u64 {
        self.outputs.lock().next_id()
    }

    /// Creates an id for a new listener.
    pub fn new_listener_id(&self) -> ListenerId {
        ListenerId(self.next_id())
    }

    /// Connects a listener to its sink, so that the fan-out can write to it.
    pub fn connect_listener(&self, listener: ListenerId, sink: ListenerSink) {
        self.outputs.fanout.send(FanoutCommand::Connect { listener, sink });
    }

    /// Tells the fan-out that a listener has emptied its channel.
    pub fn listener_ready(&self, listener: ListenerId) {
        self.outputs.fanout.send(FanoutCommand::Ready(listener));
    }

    /// Informs every listener that the hub is shutting down. Waits until all listeners have received this message or the time
    /// limit has passed.
    pub async fn announce_shutdown(&self, time_limit: Duration) {
        self.ask(Principal::local(), HubCommand::ShutDown).await;
        let (sender, emptied) = oneshot::channel();
        self.outputs.fanout.send(FanoutCommand::NotifyWhenEmpty(sender));
        let all_written = async {
            let _ = emptied.await;
            // Frames that the fan-out handed to other tasks must still be written.
            let _exclusive = self.shutdown_lock.write().await;
        };
        let _ = tokio::time::timeout(time_limit, all_written).await;
    }

    /// Delays shutdown until the returned guard is dropped, for tasks that write to a listener themselves. Returns `None`
    /// if shutdown has already begun.
    pub fn delay_shutdown(&self) -> Option<OwnedRwLockReadGuard<()>> {
        self.shutdown_lock.clone().try_read_owned().ok()
    }

    /// Sends a heartbeat to every listener.
    pub fn send_heartbeats(&self) {
        self.outputs.fanout.send(FanoutCommand::Heartbeat);
    }
}

impl std::fmt::Debug for HubHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HubHandle")
    }
}

/// Cancels the wait for the reply to a pending request when dropped.
struct RequestGuard<'h> {
    hub: &'h HubHandle,
    id: RequestId,
}

impl Drop for RequestGuard<'_> {
    fn drop(&mut self) {
        let shard = self.hub.outputs.lock().cancel(self.id);
        if let Some(link) = shard.and_then(|shard| self.hub.links.get(usize::from(shard))) {
            let command = HubCommand::CancelWait { request: self.id };
            let id = RequestId(self.hub.next_id());
            link.submit(Request { id, principal: Principal::local(), command });
        }
    }
}

/// An agent's connection to the hub. It receives the replies to its commands, and notices about the sessions that it
/// follows. Dropping it ends the connection and stops following the sessions.
#[derive(Debug)]
pub struct AgentConnection {
    hub: HubHandle,
    id: AgentConnectionId,
    messages: AgentMessageQueue,
}

impl AgentConnection {
    /// Submits a command. Returns the request id that the reply will carry, or `None` if the hub has stopped.
    pub fn submit(&self, principal: &Principal, command: HubCommand) -> Option<RequestId> {
        let command = HubCommand::OnConnection { connection: self.id, command: Box::new(command) };
        self.hub.send(principal.clone(), command, ReplyTarget::Connection(self.id))
    }

    /// Like [`Self::submit`], but runs the hub's turn on the calling thread. After it returns, the reply can be taken with
    /// [`Self::try_recv`], without waking a waiting task. Only for hubs whose journal does not write to a disk.
    pub fn submit_inline(&self, principal: &Principal, command: HubCommand) -> Option<RequestId> {
        let command = HubCommand::OnConnection { connection: self.id, command: Box::new(command) };
        self.hub.send(principal.clone(), command, ReplyTarget::InlineConnection(self.id))
    }

    /// Takes the next message, if one is queued.
    pub fn try_recv(&self) -> Option<AgentMessage> {
        self.messages.pop().map(|message| self.signed(message))
    }

    /// Waits for the next message. Returns `None` after the connection was closed. Cancel-safe.
    pub async fn recv(&mut self) -> Option<AgentMessage> {
        std::future::poll_fn(|context| self.poll_recv(context)).await
    }

    /// Polls for the next message. Only the task that polled last is woken.
    pub fn poll_recv(&self, context: &mut Context<'_>) -> Poll<Option<AgentMessage>> {
        self.messages.poll_pop(context).map(|message| message.map(|message| self.signed(message)))
    }

    /// Signs the receipt in a message, if it has one and the hub has a key.
    fn signed(&self, mut message: AgentMessage) -> AgentMessage {
        if let Some(signer) = &self.hub.receipt_signer {
            signer.sign_message(&mut message);
        }
        message
    }
}

impl Drop for AgentConnection {
    fn drop(&mut self) {
        self.hub.outputs.lock().connections.remove(&self.id);
        let command = HubCommand::DisconnectAgent { connection: self.id };
        send_to_all(&self.hub.links, &self.hub.outputs, &command);
    }
}

/// Sends a command without a reply to every shard.
fn send_to_all(links: &ShardLinks, outputs: &ShardOutputs, command: &HubCommand) {
    for link in links.iter() {
        let id = RequestId(outputs.lock().next_id());
        link.submit(Request { id, principal: Principal::local(), command: command.clone() });
    }
}
