//! One text at a time, and what is done when an engine is lost.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};

use super::espeak::Espeak;
use super::pace::Pace;
use super::place::Place;
use super::spoken::{Priority, Spoken};
use super::ssip::{Connection, Fate};
use super::trouble::Trouble;
use super::{DISPATCHER, ESPEAK, NoVoice};
use crate::Phrases;

pub(super) enum Order {
    /// The next text, by its number, in parts for different voices.
    Say(u64, Vec<Spoken>),
    Stop,
    Pace(Pace),
}

#[derive(Default)]
pub(super) struct Progress {
    ended: AtomicU64,
    news: Mutex<VecDeque<String>>,
}

impl Progress {
    /// The number of the last text that has ended.
    pub(super) fn ended(&self) -> u64 {
        self.ended.load(Ordering::Acquire)
    }

    pub(super) fn news(&self) -> Option<String> {
        self.news.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    fn end(&self, number: u64) {
        self.ended.fetch_max(number, Ordering::AcqRel);
    }

    fn tell(&self, news: String) {
        self.news.lock().unwrap_or_else(PoisonError::into_inner).push_back(news);
    }
}

#[derive(Clone, Debug)]
pub(super) struct Sources {
    pub(super) dispatcher: Result<Place, Trouble>,
    pub(super) espeak: &'static str,
}

impl Sources {
    pub(super) fn usual() -> Self {
        Self { dispatcher: Place::usual(), espeak: ESPEAK }
    }

    pub(super) async fn find(&self, pace: Option<Pace>) -> Result<Engine, NoVoice> {
        match self.dispatcher(pace).await {
            Ok(connection) => Ok(Engine::Dispatcher(connection)),
            Err(dispatcher) => match Espeak::find(self.espeak, pace).await {
                Ok(espeak) => Ok(Engine::Espeak(espeak)),
                Err(espeak) => Err(NoVoice { dispatcher, espeak }),
            },
        }
    }

    async fn dispatcher(&self, pace: Option<Pace>) -> Result<Connection, Trouble> {
        match &self.dispatcher {
            Ok(place) => Connection::open(place, pace).await,
            Err(why) => Err(why.clone()),
        }
    }
}

pub(super) enum Engine {
    Dispatcher(Connection),
    Espeak(Espeak),
    /// Nothing does any more.
    None,
}

/// For a text to begin, and besides its length to end.
const PATIENCE: Duration = Duration::from_secs(30);
/// For one that is lost to fall silent.
const MOMENT: Duration = Duration::from_secs(1);
/// For each character of a text, at the slowest pace.
const CHARACTER: Duration = Duration::from_millis(500);

struct Saying {
    number: u64,
    spoken: Spoken,
    /// What follows in other voices.
    rest: VecDeque<Spoken>,
    /// What the dispatcher calls it.
    message: Option<String>,
    /// Somebody else has cut it off once.
    was_cut: bool,
    /// When it is too late for it to go on.
    late: Option<Instant>,
}

impl Engine {
    pub(super) fn pace(&self) -> Pace {
        match self {
            Self::Dispatcher(connection) => connection.pace(),
            Self::Espeak(espeak) => espeak.pace,
            Self::None => Pace::default(),
        }
    }

    async fn say(&mut self, saying: &mut Saying) -> Result<(), Trouble> {
        saying.message = None;
        match self {
            Self::Dispatcher(connection) => {
                saying.message = connection.speak(&saying.spoken).await?;
                if saying.message.is_none() {
                    return Err(Trouble::NotTaken);
                }
                Ok(())
            }
            Self::Espeak(espeak) => espeak.say(&saying.spoken),
            Self::None => Ok(()),
        }
    }

    async fn stop(&mut self, saying: &Saying) -> Result<(), Trouble> {
        match self {
            Self::Dispatcher(connection) => {
                connection.cancel(saying.message.as_deref().unwrap_or_default()).await
            }
            Self::Espeak(espeak) => {
                espeak.stop().await;
                Ok(())
            }
            Self::None => Ok(()),
        }
    }

    async fn set_pace(&mut self, pace: Pace) -> Result<(), Trouble> {
        match self {
            Self::Dispatcher(connection) => connection.set_pace(pace).await,
            Self::Espeak(espeak) => {
                espeak.pace = pace;
                Ok(())
            }
            Self::None => Ok(()),
        }
    }

    /// What became of a text, and which; nothing comes while there is nothing to tell.
    async fn next(&mut self) -> Result<(Option<String>, Fate), Trouble> {
        match self {
            Self::Dispatcher(connection) => {
                connection.next_event().await.map(|event| (Some(event.message), event.fate))
            }
            Self::Espeak(espeak) => espeak.ended().await.map(|()| (None, Fate::Ended)),
            Self::None => std::future::pending().await,
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Dispatcher(_) => DISPATCHER,
            Self::Espeak(_) => ESPEAK,
            Self::None => "nothing",
        }
    }
}

/// Speaks until nobody orders anything any more.
pub(super) async fn run(
    sources: Sources,
    engine: Engine,
    mut orders: mpsc::UnboundedReceiver<Order>,
    progress: std::sync::Arc<Progress>,
    phrases: &'static Phrases,
) {
    let mut task = Speaking { sources, engine, saying: None, is_proven: false, progress, phrases };
    loop {
        let late = task.saying.as_ref().and_then(|saying| saying.late);
        tokio::select! {
            biased;
            order = orders.recv() => match order {
                Some(order) => task.obey(order).await,
                None => break,
            },
            fate = task.engine.next() => match fate {
                Ok((message, fate)) => task.became(message.as_deref(), fate).await,
                Err(lost) => task.is_lost(lost).await,
            },
            () = until(late) => task.is_lost(Trouble::NoSound).await,
        }
    }
    task.silence().await;
}

async fn until(late: Option<Instant>) {
    match late {
        Some(late) => sleep_until(late).await,
        None => std::future::pending().await,
    }
}

struct Speaking {
    sources: Sources,
    engine: Engine,
    saying: Option<Saying>,
    /// A dispatcher has said something from beginning to end: should it be lost, it is worth to be reached again.
    is_proven: bool,
    progress: std::sync::Arc<Progress>,
    phrases: &'static Phrases,
}

impl Speaking {
    async fn obey(&mut self, order: Order) {
        match order {
            Order::Say(number, spoken) => {
                self.silence().await;
                let mut rest = VecDeque::from(spoken);
                let Some(spoken) = rest.pop_front() else { return self.progress.end(number) };
                self.say(Saying { number, spoken, rest, message: None, was_cut: false, late: None }).await;
            }
            Order::Stop => self.silence().await,
            Order::Pace(pace) => {
                if let Err(lost) = self.engine.set_pace(pace).await {
                    self.is_lost(lost).await;
                }
            }
        }
    }

    async fn say(&mut self, mut saying: Saying) {
        while let Err(lost) = self.engine.say(&mut saying).await {
            self.replace(lost).await;
        }
        saying.late = Some(Instant::now() + PATIENCE);
        self.saying = Some(saying);
        match self.engine {
            Engine::Dispatcher(_) => {}
            Engine::Espeak(_) => self.begun(),
            Engine::None => self.end(),
        }
    }

    fn begun(&mut self) {
        if let Some(saying) = &mut self.saying {
            let length = u32::try_from(saying.spoken.length()).unwrap_or(u32::MAX);
            saying.late = Instant::now().checked_add(PATIENCE + CHARACTER.saturating_mul(length));
        }
    }

    /// What is being said ends, and is not said again.
    async fn silence(&mut self) {
        if let Some(saying) = self.saying.take() {
            let stopped = self.engine.stop(&saying).await;
            self.progress.end(saying.number);
            if let Err(lost) = stopped {
                self.is_lost(lost).await;
            }
        }
    }

    /// A part has been said: the next one, if there is one.
    async fn go_on(&mut self) {
        let Some(mut saying) = self.saying.take() else { return };
        let Some(next) = saying.rest.pop_front() else { return self.progress.end(saying.number) };
        saying.spoken = next;
        saying.was_cut = false;
        self.say(saying).await;
    }

    fn end(&mut self) {
        if let Some(saying) = self.saying.take() {
            self.progress.end(saying.number);
        }
    }

    async fn became(&mut self, message: Option<&str>, fate: Fate) {
        // Of what was said before, nothing more matters.
        let Some(saying) = self.saying.as_mut().filter(|saying| saying.message.as_deref() == message) else {
            return;
        };
        match fate {
            Fate::Begun | Fate::Resumed => self.begun(),
            Fate::Paused => saying.late = None,
            Fate::Ended => {
                self.is_proven = matches!(self.engine, Engine::Dispatcher(_));
                self.go_on().await;
            }
            // Somebody else cut it off: another program, or the person elsewhere. What is critical is heard all the same.
            Fate::Cancelled if saying.spoken.priority == Priority::Important && !saying.was_cut => {
                saying.was_cut = true;
                if let Some(saying) = self.saying.take() {
                    self.say(saying).await;
                }
            }
            Fate::Cancelled => self.end(),
        }
    }

    /// The next engine goes on, with what this one was saying.
    async fn is_lost(&mut self, lost: Trouble) {
        self.replace(lost).await;
        if let Some(saying) = self.saying.take() {
            self.say(saying).await;
        }
    }

    /// The dispatcher again, if it was good before; else `espeak-ng`; else none.
    async fn replace(&mut self, lost: Trouble) {
        let why = lost.in_words(self.phrases, self.engine.name());
        // Should it come to itself later, it must not speak along with the next.
        if let Some(saying) = &self.saying {
            let _ = timeout(MOMENT, self.engine.stop(saying)).await;
        }
        let pace = self.engine.pace();
        if std::mem::take(&mut self.is_proven)
            && let Ok(connection) = self.sources.dispatcher(Some(pace)).await
        {
            self.engine = Engine::Dispatcher(connection);
            self.progress.tell(self.phrases.speech_reached_again(&why));
            return;
        }
        let next = match self.engine {
            Engine::Dispatcher(_) => {
                let espeak = Espeak::find(self.sources.espeak, Some(pace)).await;
                espeak.map_err(|also| Some(also.in_words(self.phrases, ESPEAK)))
            }
            Engine::Espeak(_) | Engine::None => Err(None),
        };
        let (engine, text) = match next {
            Ok(espeak) => (Engine::Espeak(espeak), self.phrases.speech_goes_on(&why, ESPEAK)),
            Err(Some(also)) => (Engine::None, self.phrases.speech_both_end(&why, &also)),
            Err(None) => (Engine::None, self.phrases.speech_ends(&why)),
        };
        self.engine = engine;
        self.progress.tell(text);
    }
}
