//! The way to the hub's thread and back.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use hub::command::{Command, Output, Reply, Request, RequestId, Unavailable};
use hub::{Core, Engine, LineId, ListenerId, Principal};
use rustc_hash::FxHashMap;
use seal::UnixMillis;
use tokio::sync::{OwnedRwLockReadGuard, RwLock, oneshot};

use super::told::{Told, Untaken};
use crate::fanout::{self, Fanout, News, Order, Sink};
use crate::observe::Observe;

/// A handle to the hub and to the thread that writes to its listeners.
#[derive(Clone)]
pub struct Bridge {
    engine: Engine,
    fanout: Fanout,
    waiting: Arc<Mutex<Waiting>>,
    numbers: Arc<AtomicU64>,
    observe: Arc<Observe>,
    /// Held by everybody who still has something to say to a listener.
    talks: Arc<RwLock<()>>,
}

/// Who is told what the hub says.
#[derive(Default)]
struct Waiting {
    asked: FxHashMap<RequestId, Asker>,
    lines: FxHashMap<LineId, Untaken>,
}

enum Asker {
    /// Somebody who waits for this one answer.
    Once(oneshot::Sender<Reply>),
    /// A line, which is told everything in the hub's own order.
    Line(LineId),
    /// A line on which somebody takes the turn himself, and then what is told.
    Here(LineId),
}

impl Waiting {
    /// Tells a line. One that does not take what it is told is let go; it comes back and is told again.
    fn tell(&mut self, line: LineId, told: Told, tell: fn(&Untaken, Told) -> bool) {
        if self.lines.get(&line).is_some_and(|untaken| !tell(untaken, told)) {
            self.lines.remove(&line);
        }
    }
}

impl Bridge {
    /// Starts the hub's thread and the fan-out's, with nobody to watch them.
    pub fn start(
        core: Core,
        limits: impl Into<fanout::Limits>,
        clock: impl Fn() -> UnixMillis + Send + 'static,
    ) -> std::io::Result<Self> {
        Self::start_watched(core, limits, clock, Arc::default())
    }

    /// Starts the hub's thread and the fan-out's.
    pub fn start_watched(
        core: Core,
        limits: impl Into<fanout::Limits>,
        clock: impl Fn() -> UnixMillis + Send + 'static,
        observe: Arc<Observe>,
    ) -> std::io::Result<Self> {
        let waiting: Arc<Mutex<Waiting>> = Arc::default();
        let numbers = Arc::new(AtomicU64::new(1));
        // The fan-out tells the hub who is gone; the hub is started after it, and the news wait for that.
        let (news, told) = std::sync::mpsc::channel();
        let (fanout, _) = Fanout::start(limits, move |one| {
            let _ = news.send(one);
        })?;
        observe.of_hub(core.counters());
        observe.of_fanout(fanout.sent());
        let (answers, writer, noted) = (waiting.clone(), fanout.clone(), observe.clone());
        let perform = move |outputs: &mut Vec<_>| perform(outputs.drain(..), &answers, &writer, &noted);
        let (engine, _) = Engine::start(core, clock, perform)?;
        let (to_hub, counter, noted) = (engine.clone(), numbers.clone(), observe.clone());
        std::thread::Builder::new().name("news".to_owned()).spawn(move || {
            for one in told {
                let (listener, too_slow) = match one {
                    News::Gone(listener) => (listener, false),
                    News::TooSlow(listener) => (listener, true),
                };
                noted.left(listener, too_slow);
                let id = RequestId(counter.fetch_add(1, Ordering::Relaxed));
                let command = Command::Detached { listener, too_slow };
                if !to_hub.ask(Request { id, who: Principal::anybody(), command }) {
                    return;
                }
            }
        })?;
        Ok(Self { engine, fanout, waiting, numbers, observe, talks: Arc::default() })
    }

    /// What is told of everything that happens here.
    pub fn observe(&self) -> &Arc<Observe> {
        &self.observe
    }

    /// Asks the hub and waits for its answer. A future that is dropped takes the question back.
    pub async fn ask(&self, who: Principal, command: Command) -> Reply {
        self.observe.said(&command);
        let (sender, answer) = oneshot::channel();
        let gone = || Reply::Unavailable(Unavailable::Stopping);
        let Some(id) = self.send(who, command, Some(Asker::Once(sender))) else { return gone() };
        let asked = Asked { bridge: self, id };
        let answer = answer.await.unwrap_or_else(|_| gone());
        drop(asked);
        answer
    }

    /// A line to the hub, which is told no more than `capacity` things that it has not taken.
    pub fn line(&self, capacity: usize) -> Line {
        let id = LineId(self.number());
        let untaken = Untaken::new(capacity);
        self.waiting().lines.insert(id, untaken.clone());
        Line { bridge: self.clone(), id, untaken }
    }

    fn send(&self, who: Principal, command: Command, asker: Option<Asker>) -> Option<RequestId> {
        let id = RequestId(self.number());
        let here = matches!(asker, Some(Asker::Here(_)));
        if let Some(asker) = asker {
            self.waiting().asked.insert(id, asker);
        }
        let request = Request { id, who, command };
        if if here { self.engine.turn(request) } else { self.engine.ask(request) } {
            return Some(id);
        }
        self.waiting().asked.remove(&id);
        None
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// A name for a connection that will listen.
    pub fn new_listener(&self) -> ListenerId {
        ListenerId(self.number())
    }

    /// The connection is ready for what waits for it.
    pub fn connect(&self, listener: ListenerId, sink: Sink) {
        self.fanout.order(Order::Connect { listener, sink });
    }

    /// The listener behind a channel has taken what was in it.
    pub fn ready(&self, listener: ListenerId) {
        self.fanout.order(Order::Ready(listener));
    }

    /// Tells every listener that the hub stops, and waits until they have been told or that much time has passed.
    pub async fn goodbye(&self, patience: Duration) {
        self.ask(Principal::anybody(), Command::Goodbye).await;
        let (told, all) = oneshot::channel();
        self.fanout.order(Order::Empty(told));
        let said = async {
            let _ = all.await;
            // What the fan-out has handed on, others still have to say.
            let _all = self.talks.write().await;
        };
        let _ = tokio::time::timeout(patience, said).await;
    }

    /// For whoever says for himself what a listener is told: the hub's farewell waits until this is dropped. None where it
    /// waits already.
    pub fn talk(&self) -> Option<OwnedRwLockReadGuard<()>> {
        self.talks.clone().try_read_owned().ok()
    }

    /// A sign of life to every listener.
    pub fn heartbeat(&self) {
        self.fanout.order(Order::Heartbeat);
    }
}

impl std::fmt::Debug for Bridge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the way to the hub")
    }
}

/// A question on its way. Who does not wait for the answer any more takes it back.
struct Asked<'b> {
    bridge: &'b Bridge,
    id: RequestId,
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        if self.bridge.waiting().asked.remove(&self.id).is_some() {
            let forget = Command::Forget { request: self.id };
            self.bridge.send(Principal::anybody(), forget, None);
        }
    }
}

/// An agent's line to the hub: what it asks is answered on it, and it is told of the sessions that it follows. They have
/// nobody who follows them here when it is dropped.
#[derive(Debug)]
pub struct Line {
    bridge: Bridge,
    id: LineId,
    untaken: Untaken,
}

impl Line {
    /// Asks; the answer comes with that name. `None` if the hub is gone.
    pub fn ask(&self, who: &Principal, command: Command) -> Option<RequestId> {
        let command = Command::On { line: self.id, command: Box::new(command) };
        self.bridge.send(who.clone(), command, Some(Asker::Line(self.id)))
    }

    /// The same, but the hub's turn is taken here and not by its thread. When this returns the answer is [at
    /// hand](Self::at_hand), and nobody who waits for what is told is woken for it. For hubs that write to no disk.
    pub fn ask_here(&self, who: &Principal, command: Command) -> Option<RequestId> {
        let command = Command::On { line: self.id, command: Box::new(command) };
        self.bridge.send(who.clone(), command, Some(Asker::Here(self.id)))
    }

    /// What has been told and is not taken yet.
    pub fn at_hand(&self) -> Option<Told> {
        self.untaken.take()
    }

    /// The next thing that is told; `None` after the line was let go. A future that is dropped loses nothing.
    pub async fn told(&mut self) -> Option<Told> {
        std::future::poll_fn(|context| self.poll_told(context)).await
    }

    /// The same for who waits for other things too. The last who asked is woken.
    pub fn poll_told(&self, context: &mut Context<'_>) -> Poll<Option<Told>> {
        self.untaken.poll(context)
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.bridge.waiting().lines.remove(&self.id);
        self.bridge.send(Principal::anybody(), Command::HungUp { line: self.id }, None);
    }
}

/// Does what a turn says. Frames go out together.
fn perform(
    outputs: impl Iterator<Item = Output>,
    waiting: &Mutex<Waiting>,
    fanout: &Fanout,
    observe: &Observe,
) {
    let mut frames = Vec::new();
    let flush = |frames: &mut Vec<_>| {
        if !frames.is_empty() {
            fanout.order(Order::Frames(std::mem::take(frames)));
        }
    };
    for output in outputs {
        let order = match output {
            Output::Reply(id, answer) => {
                let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
                match waiting.asked.remove(&id) {
                    Some(Asker::Once(sender)) => drop(sender.send(answer)),
                    Some(Asker::Line(line)) => waiting.tell(line, Told::Answer(id, answer), Untaken::tell),
                    Some(Asker::Here(line)) => waiting.tell(line, Told::Answer(id, answer), Untaken::leave),
                    None => {}
                }
                continue;
            }
            Output::Notice(line, notice) => {
                let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
                waiting.tell(line, Told::Notice(notice), Untaken::tell);
                continue;
            }
            Output::Frame(lane, frame) => {
                frames.push((lane, frame));
                continue;
            }
            Output::Join { listener, lane, own, from } => {
                Order::Attach { listener, lane, sink: Sink::Pending, own, from }
            }
            Output::Note(note) => {
                observe.note(&note);
                continue;
            }
            Output::Move(listener, lane) => Order::Move { listener, lane },
            Output::Give(listener, frame) => Order::Give { listener, frame },
            Output::Close(listener) => Order::Close(listener),
            _ => continue,
        };
        flush(&mut frames);
        fanout.order(order);
    }
    flush(&mut frames);
}
