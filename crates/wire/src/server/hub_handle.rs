//! The handle to the hub's thread, with the replies that callers wait for.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use hub::command::{HubCommand, HubReply, Request, RequestId, TurnOutput, Unavailable};
use hub::manifests::PublishedManifests;
use hub::{AgentConnectionId, Core, Engine, ListenerId, Principal};
use rustc_hash::FxHashMap;
use seal::UnixMillis;
use seal::es256::SigningKey;
use tokio::sync::{OwnedRwLockReadGuard, RwLock, oneshot};

use super::agent_messages::{AgentMessage, AgentMessageQueue};
use super::receipt_signer::ReceiptSigner;
use crate::fanout::{self, Fanout, FanoutCommand, FanoutReport, ListenerSink};
use crate::telemetry::Telemetry;

/// A handle to the hub and to the thread that writes to its listeners.
#[derive(Clone)]
pub struct HubHandle {
    engine: Engine,
    fanout: Fanout,
    pending: Arc<Mutex<PendingReplies>>,
    next_id: Arc<AtomicU64>,
    telemetry: Arc<Telemetry>,
    manifests: PublishedManifests,
    /// Signs the receipts that agents receive, if the hub has a key.
    receipt_signer: Option<Arc<ReceiptSigner>>,
    /// The writer task of each listener holds a read lock. Shutdown waits for these tasks by acquiring the write lock.
    shutdown_lock: Arc<RwLock<()>>,
}

/// The recipients of the hub's replies and notices.
#[derive(Default)]
struct PendingReplies {
    requests: FxHashMap<RequestId, ReplyTarget>,
    connections: FxHashMap<AgentConnectionId, AgentMessageQueue>,
}

enum ReplyTarget {
    /// A caller that waits for this one reply.
    OneShot(oneshot::Sender<HubReply>),
    /// An agent connection, which receives replies and notices in the hub's order.
    Connection(AgentConnectionId),
    /// An agent connection whose caller runs the hub's turn on its own thread and takes the reply afterwards.
    InlineConnection(AgentConnectionId),
}

impl PendingReplies {
    /// Queues a message for a connection, with `push`. A connection whose queue is full is removed. The agent is expected
    /// to reconnect and catch up.
    fn queue_message(
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

impl HubHandle {
    /// Starts the hub's thread and the fan-out's thread, with telemetry of their own.
    pub fn start(
        core: Core,
        limits: impl Into<fanout::FanoutLimits>,
        clock: impl Fn() -> UnixMillis + Send + 'static,
    ) -> std::io::Result<Self> {
        Self::start_with_telemetry(core, limits, clock, Arc::default())
    }

    /// Starts the hub's thread and the fan-out's thread.
    pub fn start_with_telemetry(
        core: Core,
        limits: impl Into<fanout::FanoutLimits>,
        clock: impl Fn() -> UnixMillis + Send + 'static,
        telemetry: Arc<Telemetry>,
    ) -> std::io::Result<Self> {
        let pending: Arc<Mutex<PendingReplies>> = Arc::default();
        let next_id = Arc::new(AtomicU64::new(1));
        // The fan-out reports disconnected listeners to the hub. The hub starts later, so a channel holds the reports until
        // it runs.
        let (report_sender, reports) = std::sync::mpsc::channel();
        let (fanout, _) = Fanout::start(limits, move |report| {
            let _ = report_sender.send(report);
        })?;
        telemetry.set_hub_counters(core.counters());
        telemetry.set_fanout_counters(fanout.counters());
        let manifests = core.published_manifests();
        let apply = {
            let (pending, fanout, telemetry) = (pending.clone(), fanout.clone(), telemetry.clone());
            move |outputs: &mut Vec<_>| apply_outputs(outputs.drain(..), &pending, &fanout, &telemetry)
        };
        let (engine, _) = Engine::start(core, clock, apply)?;
        let forward_reports = {
            let (engine, next_id, telemetry) = (engine.clone(), next_id.clone(), telemetry.clone());
            move || {
                for report in reports {
                    let (listener, is_too_slow) = match report {
                        FanoutReport::Disconnected(listener) => (listener, false),
                        FanoutReport::TooSlow(listener) => (listener, true),
                    };
                    telemetry.record_listener_left(listener, is_too_slow);
                    let id = RequestId(next_id.fetch_add(1, Ordering::Relaxed));
                    let command = HubCommand::Detach { listener, is_too_slow };
                    if !engine.submit(Request { id, principal: Principal::local(), command }) {
                        return;
                    }
                }
            }
        };
        std::thread::Builder::new().name("fanout-reports".to_owned()).spawn(forward_reports)?;
        Ok(Self {
            engine,
            fanout,
            pending,
            next_id,
            telemetry,
            manifests,
            receipt_signer: None,
            shutdown_lock: Arc::default(),
        })
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
        &self.telemetry
    }

    /// Returns the manifests that the hub publishes.
    pub(crate) fn manifests(&self) -> &PublishedManifests {
        &self.manifests
    }

    /// Sends a command to the hub and waits for its reply. Dropping the future cancels the wait.
    pub async fn ask(&self, principal: Principal, command: HubCommand) -> HubReply {
        self.telemetry.log_command(&command);
        let (sender, receiver) = oneshot::channel();
        let stopped = || HubReply::Unavailable(Unavailable::Stopping);
        let Some(id) = self.send(principal, command, Some(ReplyTarget::OneShot(sender))) else {
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
        self.pending().connections.insert(id, messages.clone());
        AgentConnection { hub: self.clone(), id, messages }
    }

    fn send(
        &self,
        principal: Principal,
        command: HubCommand,
        target: Option<ReplyTarget>,
    ) -> Option<RequestId> {
        let id = RequestId(self.next_id());
        let runs_inline = matches!(target, Some(ReplyTarget::InlineConnection(_)));
        if let Some(target) = target {
            self.pending().requests.insert(id, target);
        }
        let request = Request { id, principal, command };
        let was_accepted =
            if runs_inline { self.engine.run_turn(request) } else { self.engine.submit(request) };
        if was_accepted {
            return Some(id);
        }
        self.pending().requests.remove(&id);
        None
    }

    fn pending(&self) -> MutexGuard<'_, PendingReplies> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Creates an id for a new listener.
    pub fn new_listener_id(&self) -> ListenerId {
        ListenerId(self.next_id())
    }

    /// Connects a listener to its sink, so that the fan-out can write to it.
    pub fn connect_listener(&self, listener: ListenerId, sink: ListenerSink) {
        self.fanout.send(FanoutCommand::Connect { listener, sink });
    }

    /// Tells the fan-out that a listener has emptied its channel.
    pub fn listener_ready(&self, listener: ListenerId) {
        self.fanout.send(FanoutCommand::Ready(listener));
    }

    /// Tells every listener that the hub is shutting down. Waits until all listeners have received this message or the time
    /// limit has passed.
    pub async fn announce_shutdown(&self, time_limit: Duration) {
        self.ask(Principal::local(), HubCommand::ShutDown).await;
        let (sender, emptied) = oneshot::channel();
        self.fanout.send(FanoutCommand::NotifyWhenEmpty(sender));
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
        self.fanout.send(FanoutCommand::Heartbeat);
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
        if self.hub.pending().requests.remove(&self.id).is_some() {
            let cancel = HubCommand::CancelWait { request: self.id };
            self.hub.send(Principal::local(), cancel, None);
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
        self.hub.send(principal.clone(), command, Some(ReplyTarget::Connection(self.id)))
    }

    /// Like [`Self::submit`], but runs the hub's turn on the calling thread. After it returns, the reply can be taken with
    /// [`Self::try_recv`], without waking a waiting task. Only for hubs whose journal does not write to a disk.
    pub fn submit_inline(&self, principal: &Principal, command: HubCommand) -> Option<RequestId> {
        let command = HubCommand::OnConnection { connection: self.id, command: Box::new(command) };
        self.hub.send(principal.clone(), command, Some(ReplyTarget::InlineConnection(self.id)))
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
        self.hub.pending().connections.remove(&self.id);
        self.hub.send(Principal::local(), HubCommand::DisconnectAgent { connection: self.id }, None);
    }
}

/// Applies the outputs of a turn. Consecutive frames are sent to the fan-out together.
fn apply_outputs(
    outputs: impl Iterator<Item = TurnOutput>,
    pending: &Mutex<PendingReplies>,
    fanout: &Fanout,
    telemetry: &Telemetry,
) {
    let mut frames = Vec::new();
    let flush = |frames: &mut Vec<_>| {
        if !frames.is_empty() {
            fanout.send(FanoutCommand::Frames(std::mem::take(frames)));
        }
    };
    for output in outputs {
        let command = match output {
            TurnOutput::Reply(id, reply) => {
                let mut pending = pending.lock().unwrap_or_else(PoisonError::into_inner);
                match pending.requests.remove(&id) {
                    Some(ReplyTarget::OneShot(sender)) => drop(sender.send(reply)),
                    Some(ReplyTarget::Connection(connection)) => pending.queue_message(
                        connection,
                        AgentMessage::Reply(id, reply),
                        AgentMessageQueue::push_and_wake,
                    ),
                    Some(ReplyTarget::InlineConnection(connection)) => pending.queue_message(
                        connection,
                        AgentMessage::Reply(id, reply),
                        AgentMessageQueue::push_silently,
                    ),
                    None => {}
                }
                continue;
            }
            TurnOutput::Notify(connection, notice) => {
                let mut pending = pending.lock().unwrap_or_else(PoisonError::into_inner);
                pending.queue_message(
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
            TurnOutput::Join { listener, group, private_frames, resume_position } => FanoutCommand::Attach {
                listener,
                group,
                sink: ListenerSink::Pending,
                private_frames,
                resume_position,
            },
            TurnOutput::Log(event) => {
                telemetry.log_hub_event(&event);
                continue;
            }
            TurnOutput::Move(listener, group) => FanoutCommand::Move { listener, group },
            TurnOutput::Send(listener, frame) => FanoutCommand::SendTo { listener, frame },
            TurnOutput::Close(listener) => FanoutCommand::Close(listener),
            _ => continue,
        };
        flush(&mut frames);
        fanout.send(command);
    }
    flush(&mut frames);
}
