//! Who takes the hub's turns: a thread, or whoever asks.
//!
//! The thread puts whatever has come in while the last turn was written into the next, so that many requests cost one write
//! to a disk. Where nothing is written to a disk, a turn is cheaper than waking a thread: there [`Engine::turn`] takes it
//! where the request is made. Both take turns of the same core, one after the other, and what follows from a turn is done
//! before the next begins.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use seal::UnixMillis;

use crate::command::{Output, Request};
use crate::{Core, Limits};

/// A handle to the hub that takes its turns.
#[derive(Clone, Debug)]
pub struct Engine {
    inbox: Sender<Call>,
    turns: Arc<Mutex<Turns>>,
}

/// What the thread is woken for.
#[allow(clippy::large_enum_variant, reason = "nearly all are requests")]
enum Call {
    Ask(Request),
    /// Something is due earlier than when it fell asleep.
    Look,
}

impl Engine {
    /// Starts the thread. `clock` tells the time in milliseconds since 1970; `perform` does what a turn says, and takes
    /// it out of the list. It ends when the last handle is gone.
    pub fn start(
        core: Core,
        clock: impl Fn() -> UnixMillis + Send + 'static,
        perform: impl FnMut(&mut Vec<Output>) + Send + 'static,
    ) -> std::io::Result<(Self, JoinHandle<()>)> {
        let (inbox, calls) = channel();
        let mut turns =
            Turns { core, clock: Box::new(clock), perform: Box::new(perform), sleeps_until: UnixMillis::MIN };
        // What was due while nobody was here is done before anybody is heard.
        turns.take([]);
        let turns = Arc::new(Mutex::new(turns));
        let thread = std::thread::Builder::new().name("hub".to_owned());
        let taken = turns.clone();
        let handle = thread.spawn(move || run(&taken, &calls))?;
        Ok((Self { inbox, turns }, handle))
    }

    /// Asks the thread. After the end nobody answers.
    pub fn ask(&self, request: Request) -> bool {
        self.inbox.send(Call::Ask(request)).is_ok()
    }

    /// Takes a turn with this request alone, here and now: when it returns, what follows from it is done. After the end
    /// nobody answers.
    pub fn turn(&self, request: Request) -> bool {
        let Some(mut turns) = lock(&self.turns) else { return false };
        turns.take([request]);
        if turns.due_before_it_wakes() {
            let _ = self.inbox.send(Call::Look);
        }
        true
    }
}

/// Does what a turn says.
type Perform = dyn FnMut(&mut Vec<Output>) + Send;

/// The core, and what its turns need.
struct Turns {
    core: Core,
    clock: Box<dyn Fn() -> UnixMillis + Send>,
    perform: Box<Perform>,
    /// The thread looks at the clock at this time at the latest.
    sleeps_until: UnixMillis,
}

impl Turns {
    fn take(&mut self, requests: impl IntoIterator<Item = Request>) {
        let mut outputs = self.core.turn(requests, (self.clock)());
        if !outputs.is_empty() {
            (self.perform)(&mut outputs);
        }
        self.core.reuse(outputs);
    }

    /// For how long the thread may sleep, if nobody asks.
    fn rest(&mut self) -> Duration {
        let Limits { longest_sleep, .. } = *self.core.limits();
        let now = (self.clock)();
        let rest = self.core.next_deadline().map_or(longest_sleep, |at| at.millis_since(now));
        let rest = rest.clamp(0, longest_sleep.max(0));
        self.sleeps_until = now.saturating_add(rest);
        Duration::from_millis(u64::try_from(rest).unwrap_or(0))
    }

    /// Whether something is due while the thread would still sleep; it is told so once.
    fn due_before_it_wakes(&mut self) -> bool {
        let Some(at) = self.core.next_deadline().filter(|at| *at < self.sleeps_until) else { return false };
        self.sleeps_until = at;
        true
    }
}

impl std::fmt::Debug for Turns {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.core.fmt(f)
    }
}

/// A turn that broke off in the middle is nobody's to go on with: there are no more.
fn lock(turns: &Mutex<Turns>) -> Option<MutexGuard<'_, Turns>> {
    turns.lock().ok()
}

fn run(turns: &Mutex<Turns>, calls: &Receiver<Call>) {
    let Some(most) = lock(turns).map(|turns| turns.core.limits().requests_in_turn) else { return };
    let mut requests = Vec::new();
    loop {
        let Some(rest) = lock(turns).map(|mut turns| turns.rest()) else { return };
        let first = match calls.recv_timeout(rest) {
            Ok(call) => Some(call),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        for call in first.into_iter().chain(calls.try_iter()).take(most.max(1)) {
            if let Call::Ask(request) = call {
                requests.push(request);
            }
        }
        let Some(mut turns) = lock(turns) else { return };
        turns.take(requests.drain(..));
    }
}
