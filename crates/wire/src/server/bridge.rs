//! The way to the hub's thread and back.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hub::command::{Answer, Command, Output, Request, RequestId};
use hub::{Core, Engine, ListenerId, Principal};
use tokio::sync::oneshot;

use crate::fanout::{self, Fanout, News, Order, Sink};
use crate::observe::Observe;

/// A handle to the hub and to the thread that writes to its listeners.
#[derive(Clone)]
pub struct Bridge {
    engine: Engine,
    fanout: Fanout,
    waiting: Arc<Waiting>,
    numbers: Arc<AtomicU64>,
    observe: Arc<Observe>,
}

type Waiting = Mutex<HashMap<RequestId, oneshot::Sender<Answer>>>;

impl Bridge {
    /// Starts the hub's thread and the fan-out's, with nobody to watch them.
    pub fn start(
        core: Core,
        limits: impl Into<fanout::Limits>,
        clock: impl Fn() -> i64 + Send + 'static,
    ) -> std::io::Result<Self> {
        Self::start_watched(core, limits, clock, Arc::default())
    }

    /// Starts the hub's thread and the fan-out's.
    pub fn start_watched(
        core: Core,
        limits: impl Into<fanout::Limits>,
        clock: impl Fn() -> i64 + Send + 'static,
        observe: Arc<Observe>,
    ) -> std::io::Result<Self> {
        let waiting: Arc<Waiting> = Arc::default();
        let numbers = Arc::new(AtomicU64::new(1));
        // The fan-out tells the hub who is gone; the hub is started after it, and the news wait for that.
        let (news, told) = std::sync::mpsc::channel();
        let (fanout, _) = Fanout::start(limits, move |one| {
            let _ = news.send(one);
        })?;
        observe.of_hub(core.counters());
        observe.of_fanout(fanout.sent());
        let (answers, writer, noted) = (waiting.clone(), fanout.clone(), observe.clone());
        let perform = move |outputs| perform(outputs, &answers, &writer, &noted);
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
        Ok(Self { engine, fanout, waiting, numbers, observe })
    }

    /// What is told of everything that happens here.
    pub fn observe(&self) -> &Arc<Observe> {
        &self.observe
    }

    /// Asks the hub and waits for its answer.
    pub async fn ask(&self, who: Principal, command: Command) -> Answer {
        self.observe.said(&command);
        let id = RequestId(self.numbers.fetch_add(1, Ordering::Relaxed));
        let (sender, answer) = oneshot::channel();
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).insert(id, sender);
        let gone = || Answer::Unavailable("the hub is stopping".to_owned());
        if !self.engine.ask(Request { id, who, command }) {
            return gone();
        }
        answer.await.unwrap_or_else(|_| gone())
    }

    /// A name for a connection that will listen.
    pub fn new_listener(&self) -> ListenerId {
        ListenerId(self.numbers.fetch_add(1, Ordering::Relaxed))
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
        let _ = tokio::time::timeout(patience, all).await;
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

/// Does what a turn says. Frames go out together.
fn perform(outputs: Vec<Output>, waiting: &Waiting, fanout: &Fanout, observe: &Observe) {
    let mut frames = Vec::new();
    let flush = |frames: &mut Vec<_>| {
        if !frames.is_empty() {
            fanout.order(Order::Frames(std::mem::take(frames)));
        }
    };
    for output in outputs {
        let order = match output {
            Output::Answer(id, answer) => {
                let asked = waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
                if let Some(asked) = asked {
                    let _ = asked.send(answer);
                }
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
