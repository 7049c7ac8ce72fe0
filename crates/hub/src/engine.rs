//! Runs the hub's turns, on its own thread or on the caller's.
//!
//! While a turn is being written, the thread collects new requests. It runs them together in the next turn, so that
//! they share one disk write. If the journal is not on a disk, running a turn is cheaper than waking a thread;
//! [`Engine::run_turn`] then runs the turn on the caller's thread. Both ways use the same core. Turns run one after
//! another, and the outputs of a turn are performed before the next turn starts.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use seal::UnixMillis;

use crate::command::{Request, TurnOutput};
use crate::{Core, HubLimits};

/// A handle to a running hub.
#[derive(Clone, Debug)]
pub struct Engine {
    sender: Sender<EngineMessage>,
    runner: Arc<Mutex<TurnRunner>>,
}

/// A message to the engine's thread.
#[allow(clippy::large_enum_variant, reason = "nearly all are requests")]
enum EngineMessage {
    Request(Request),
    /// Wakes the thread, because there is a deadline before the time at which it would wake by itself.
    Wake,
}

impl Engine {
    /// Starts the thread. `clock` returns the time in milliseconds since 1970. `perform` takes the outputs of a turn
    /// out of the list and performs them. The thread ends when the last handle is dropped.
    pub fn start(
        core: Core,
        clock: impl Fn() -> UnixMillis + Send + 'static,
        perform: impl FnMut(&mut Vec<TurnOutput>) + Send + 'static,
    ) -> std::io::Result<(Self, JoinHandle<()>)> {
        let name = match core.shard() {
            shard if shard.map.is_single() => "hub".to_owned(),
            shard => format!("hub-{}", shard.index),
        };
        let (sender, receiver) = channel();
        let mut runner =
            TurnRunner { core, clock: Box::new(clock), perform: Box::new(perform), wake_at: UnixMillis::MIN };
        // Deadlines that passed while the hub was down are handled before any request.
        runner.run_turn([]);
        let runner = Arc::new(Mutex::new(runner));
        let thread = std::thread::Builder::new().name(name);
        let thread_runner = runner.clone();
        let handle = thread.spawn(move || run_thread(&thread_runner, &receiver))?;
        Ok((Self { sender, runner }, handle))
    }

    /// Sends a request to the thread. Returns `false` if the thread has ended.
    pub fn submit(&self, request: Request) -> bool {
        self.sender.send(EngineMessage::Request(request)).is_ok()
    }

    /// Runs a turn with this request on the caller's thread. When it returns, the outputs have been performed.
    /// Returns `false` if the engine has failed.
    pub fn run_turn(&self, request: Request) -> bool {
        let Some(mut runner) = lock(&self.runner) else { return false };
        runner.run_turn([request]);
        if runner.needs_earlier_wake() {
            let _ = self.sender.send(EngineMessage::Wake);
        }
        true
    }
}

/// Performs the outputs of a turn.
type PerformFn = dyn FnMut(&mut Vec<TurnOutput>) + Send;

/// The core with its clock and its output function.
struct TurnRunner {
    core: Core,
    clock: Box<dyn Fn() -> UnixMillis + Send>,
    perform: Box<PerformFn>,
    /// When the thread wakes if no message arrives.
    wake_at: UnixMillis,
}

impl TurnRunner {
    fn run_turn(&mut self, requests: impl IntoIterator<Item = Request>) {
        self.run_one_turn(requests);
        while self.core.has_queued_requests() {
            self.run_one_turn([]);
        }
    }

    fn run_one_turn(&mut self, requests: impl IntoIterator<Item = Request>) {
        let mut outputs = self.core.run_turn(requests, (self.clock)());
        if !outputs.is_empty() {
            (self.perform)(&mut outputs);
        }
        self.core.recycle_outputs(outputs);
    }

    /// Returns how long the thread may sleep if no request arrives, and stores when it will wake.
    fn schedule_sleep(&mut self) -> Duration {
        let HubLimits { max_sleep_ms, .. } = *self.core.limits();
        let now = (self.clock)();
        let sleep_ms = self.core.next_deadline().map_or(max_sleep_ms, |at| at.millis_since(now));
        let sleep_ms = sleep_ms.clamp(0, max_sleep_ms.max(0));
        self.wake_at = now.saturating_add(sleep_ms);
        Duration::from_millis(u64::try_from(sleep_ms).unwrap_or(0))
    }

    /// Whether there is a deadline before the time at which the thread wakes. Returns `true` only once per deadline,
    /// because the caller then wakes the thread.
    fn needs_earlier_wake(&mut self) -> bool {
        let Some(at) = self.core.next_deadline().filter(|at| *at < self.wake_at) else { return false };
        self.wake_at = at;
        true
    }
}

impl std::fmt::Debug for TurnRunner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.core.fmt(f)
    }
}

/// Locks the runner. Returns `None` after a panic inside a turn: the state may be inconsistent, so no further turns
/// run.
fn lock(runner: &Mutex<TurnRunner>) -> Option<MutexGuard<'_, TurnRunner>> {
    runner.lock().ok()
}

/// Runs turns on the engine's thread until the last handle is dropped.
fn run_thread(runner: &Mutex<TurnRunner>, receiver: &Receiver<EngineMessage>) {
    let Some(max_requests) = lock(runner).map(|runner| runner.core.limits().requests_per_turn) else {
        return;
    };
    let mut requests = Vec::new();
    loop {
        let Some(sleep) = lock(runner).map(|mut runner| runner.schedule_sleep()) else { return };
        let first = match receiver.recv_timeout(sleep) {
            Ok(message) => Some(message),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        for message in first.into_iter().chain(receiver.try_iter()).take(max_requests.max(1)) {
            if let EngineMessage::Request(request) = message {
                requests.push(request);
            }
        }
        let Some(mut runner) = lock(runner) else { return };
        runner.run_turn(requests.drain(..));
    }
}
