//! Speaks one text at a time and replaces a failed engine.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};

use super::dispatcher_address::DispatcherAddress;
use super::engine_error::SpeechEngineError;
use super::espeak::Espeak;
use super::speech_rate::SpeechRate;
use super::speech_segment::{SpeechSegment, SsipPriority};
use super::ssip::{SsipConnection, SsipEventKind};
use super::{DISPATCHER, ESPEAK, NoSpeechEngine};
use crate::Phrases;

pub(super) enum SpeechCommand {
    /// Speaks a numbered text. Each segment has its own voice.
    Speak(u64, Vec<SpeechSegment>),
    Stop,
    SetRate(SpeechRate),
}

#[derive(Default)]
pub(super) struct SpeechStatus {
    last_finished: AtomicU64,
    notices: Mutex<VecDeque<String>>,
}

impl SpeechStatus {
    /// Returns the number of the last text that has ended.
    pub(super) fn last_finished(&self) -> u64 {
        self.last_finished.load(Ordering::Acquire)
    }

    pub(super) fn take_notice(&self) -> Option<String> {
        self.notices.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    fn mark_finished(&self, number: u64) {
        self.last_finished.fetch_max(number, Ordering::AcqRel);
    }

    fn push_notice(&self, notice: String) {
        self.notices.lock().unwrap_or_else(PoisonError::into_inner).push_back(notice);
    }
}

#[derive(Clone, Debug)]
pub(super) struct SpeechEngineSources {
    pub(super) dispatcher: Result<DispatcherAddress, SpeechEngineError>,
    pub(super) espeak: &'static str,
}

impl SpeechEngineSources {
    pub(super) fn from_env() -> Self {
        Self { dispatcher: DispatcherAddress::from_env(), espeak: ESPEAK }
    }

    pub(super) async fn find_engine(&self, rate: Option<SpeechRate>) -> Result<SpeechEngine, NoSpeechEngine> {
        match self.connect_dispatcher(rate).await {
            Ok(connection) => Ok(SpeechEngine::Dispatcher(connection)),
            Err(dispatcher) => match Espeak::detect(self.espeak, rate).await {
                Ok(espeak) => Ok(SpeechEngine::Espeak(espeak)),
                Err(espeak) => Err(NoSpeechEngine { dispatcher, espeak }),
            },
        }
    }

    async fn connect_dispatcher(
        &self,
        rate: Option<SpeechRate>,
    ) -> Result<SsipConnection, SpeechEngineError> {
        match &self.dispatcher {
            Ok(address) => SsipConnection::open(address, rate).await,
            Err(why) => Err(why.clone()),
        }
    }
}

pub(super) enum SpeechEngine {
    Dispatcher(SsipConnection),
    Espeak(Espeak),
    /// No engine is left.
    None,
}

/// How long a text may take to start, and how much longer than expected it may take.
const UTTERANCE_TIMEOUT: Duration = Duration::from_secs(30);
/// How long to wait for a failed engine to stop speaking.
const STOP_TIMEOUT: Duration = Duration::from_secs(1);
/// The longest expected time per character, at the slowest rate.
const MAX_TIME_PER_CHARACTER: Duration = Duration::from_millis(500);

struct SpeechUtterance {
    number: u64,
    segment: SpeechSegment,
    /// The segments that follow.
    remaining_segments: VecDeque<SpeechSegment>,
    /// The dispatcher's id for the text.
    message_id: Option<String>,
    /// Whether another program has already interrupted the text.
    was_interrupted: bool,
    /// When the engine counts as stuck.
    deadline: Option<Instant>,
}

impl SpeechEngine {
    pub(super) fn rate(&self) -> SpeechRate {
        match self {
            Self::Dispatcher(connection) => connection.rate(),
            Self::Espeak(espeak) => espeak.rate,
            Self::None => SpeechRate::default(),
        }
    }

    async fn speak(&mut self, utterance: &mut SpeechUtterance) -> Result<(), SpeechEngineError> {
        utterance.message_id = None;
        match self {
            Self::Dispatcher(connection) => {
                utterance.message_id = connection.speak(&utterance.segment).await?;
                if utterance.message_id.is_none() {
                    return Err(SpeechEngineError::TextRejected);
                }
                Ok(())
            }
            Self::Espeak(espeak) => espeak.speak(&utterance.segment),
            Self::None => Ok(()),
        }
    }

    async fn stop(&mut self, utterance: &SpeechUtterance) -> Result<(), SpeechEngineError> {
        match self {
            Self::Dispatcher(connection) => {
                connection.cancel(utterance.message_id.as_deref().unwrap_or_default()).await
            }
            Self::Espeak(espeak) => {
                espeak.stop().await;
                Ok(())
            }
            Self::None => Ok(()),
        }
    }

    async fn set_rate(&mut self, rate: SpeechRate) -> Result<(), SpeechEngineError> {
        match self {
            Self::Dispatcher(connection) => connection.set_rate(rate).await,
            Self::Espeak(espeak) => {
                espeak.rate = rate;
                Ok(())
            }
            Self::None => Ok(()),
        }
    }

    /// Waits for the next event about a text. Returns the text's id, which only the dispatcher assigns, and the event.
    async fn next_event(&mut self) -> Result<(Option<String>, SsipEventKind), SpeechEngineError> {
        match self {
            Self::Dispatcher(connection) => {
                connection.next_event().await.map(|event| (Some(event.message_id), event.kind))
            }
            Self::Espeak(espeak) => espeak.wait_finished().await.map(|()| (None, SsipEventKind::Ended)),
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

/// Runs until the command channel is closed.
pub(super) async fn run(
    sources: SpeechEngineSources,
    engine: SpeechEngine,
    mut commands: mpsc::UnboundedReceiver<SpeechCommand>,
    status: std::sync::Arc<SpeechStatus>,
    phrases: &'static Phrases,
) {
    let mut task = SpeechTask { sources, engine, current: None, dispatcher_worked: false, status, phrases };
    loop {
        let deadline = task.current.as_ref().and_then(|utterance| utterance.deadline);
        tokio::select! {
            biased;
            command = commands.recv() => match command {
                Some(command) => task.handle_command(command).await,
                None => break,
            },
            event = task.engine.next_event() => match event {
                Ok((message_id, event)) => task.handle_event(message_id.as_deref(), event).await,
                Err(error) => task.recover(error).await,
            },
            () = sleep_until_deadline(deadline) => task.recover(SpeechEngineError::SpeechTimeout).await,
        }
    }
    task.stop_current().await;
}

async fn sleep_until_deadline(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

struct SpeechTask {
    sources: SpeechEngineSources,
    engine: SpeechEngine,
    current: Option<SpeechUtterance>,
    /// Whether the dispatcher has spoken a complete text. If it has not, reconnecting to it is pointless.
    dispatcher_worked: bool,
    status: std::sync::Arc<SpeechStatus>,
    phrases: &'static Phrases,
}

impl SpeechTask {
    async fn handle_command(&mut self, command: SpeechCommand) {
        match command {
            SpeechCommand::Speak(number, segments) => {
                self.stop_current().await;
                let mut remaining_segments = VecDeque::from(segments);
                let Some(segment) = remaining_segments.pop_front() else {
                    return self.status.mark_finished(number);
                };
                self.start_utterance(SpeechUtterance {
                    number,
                    segment,
                    remaining_segments,
                    message_id: None,
                    was_interrupted: false,
                    deadline: None,
                })
                .await;
            }
            SpeechCommand::Stop => self.stop_current().await,
            SpeechCommand::SetRate(rate) => {
                if let Err(error) = self.engine.set_rate(rate).await {
                    self.recover(error).await;
                }
            }
        }
    }

    async fn start_utterance(&mut self, mut utterance: SpeechUtterance) {
        while let Err(error) = self.engine.speak(&mut utterance).await {
            self.replace_engine(error).await;
        }
        utterance.deadline = Some(Instant::now() + UTTERANCE_TIMEOUT);
        self.current = Some(utterance);
        match self.engine {
            SpeechEngine::Dispatcher(_) => {}
            SpeechEngine::Espeak(_) => self.extend_deadline(),
            SpeechEngine::None => self.finish_current(),
        }
    }

    fn extend_deadline(&mut self) {
        if let Some(utterance) = &mut self.current {
            let length = u32::try_from(utterance.segment.char_count()).unwrap_or(u32::MAX);
            utterance.deadline =
                Instant::now().checked_add(UTTERANCE_TIMEOUT + MAX_TIME_PER_CHARACTER.saturating_mul(length));
        }
    }

    /// Stops the current text and does not repeat it.
    async fn stop_current(&mut self) {
        if let Some(utterance) = self.current.take() {
            let result = self.engine.stop(&utterance).await;
            self.status.mark_finished(utterance.number);
            if let Err(error) = result {
                self.recover(error).await;
            }
        }
    }

    /// Starts the next segment. After the last one, marks the text as finished.
    async fn start_next_segment(&mut self) {
        let Some(mut utterance) = self.current.take() else { return };
        let Some(next) = utterance.remaining_segments.pop_front() else {
            return self.status.mark_finished(utterance.number);
        };
        utterance.segment = next;
        utterance.was_interrupted = false;
        self.start_utterance(utterance).await;
    }

    fn finish_current(&mut self) {
        if let Some(utterance) = self.current.take() {
            self.status.mark_finished(utterance.number);
        }
    }

    async fn handle_event(&mut self, message_id: Option<&str>, event: SsipEventKind) {
        // Ignores events about earlier texts.
        let Some(utterance) =
            self.current.as_mut().filter(|utterance| utterance.message_id.as_deref() == message_id)
        else {
            return;
        };
        match event {
            SsipEventKind::Started | SsipEventKind::Resumed => self.extend_deadline(),
            SsipEventKind::Paused => utterance.deadline = None,
            SsipEventKind::Ended => {
                self.dispatcher_worked = matches!(self.engine, SpeechEngine::Dispatcher(_));
                self.start_next_segment().await;
            }
            // Another program or the person interrupted the text. A critical text is repeated once.
            SsipEventKind::Cancelled
                if utterance.segment.priority == SsipPriority::Important && !utterance.was_interrupted =>
            {
                utterance.was_interrupted = true;
                if let Some(utterance) = self.current.take() {
                    self.start_utterance(utterance).await;
                }
            }
            SsipEventKind::Cancelled => self.finish_current(),
        }
    }

    /// Replaces the engine and repeats the current text.
    async fn recover(&mut self, error: SpeechEngineError) {
        self.replace_engine(error).await;
        if let Some(utterance) = self.current.take() {
            self.start_utterance(utterance).await;
        }
    }

    /// Replaces a failed engine: reconnects to the dispatcher if it worked before, otherwise uses `espeak-ng`, otherwise none.
    async fn replace_engine(&mut self, error: SpeechEngineError) {
        let why = error.describe(self.phrases, self.engine.name());
        // If the old engine recovers, it must not speak at the same time as the new one.
        if let Some(utterance) = &self.current {
            let _ = timeout(STOP_TIMEOUT, self.engine.stop(utterance)).await;
        }
        let rate = self.engine.rate();
        if std::mem::take(&mut self.dispatcher_worked)
            && let Ok(connection) = self.sources.connect_dispatcher(Some(rate)).await
        {
            self.engine = SpeechEngine::Dispatcher(connection);
            self.status.push_notice(self.phrases.speech_recovered(&why));
            return;
        }
        let next = match self.engine {
            SpeechEngine::Dispatcher(_) => {
                let espeak = Espeak::detect(self.sources.espeak, Some(rate)).await;
                espeak.map_err(|espeak_error| Some(espeak_error.describe(self.phrases, ESPEAK)))
            }
            SpeechEngine::Espeak(_) | SpeechEngine::None => Err(None),
        };
        let (engine, text) = match next {
            Ok(espeak) => (SpeechEngine::Espeak(espeak), self.phrases.speech_engine_switched(&why, ESPEAK)),
            Err(Some(espeak_error)) => {
                (SpeechEngine::None, self.phrases.speech_both_failed(&why, &espeak_error))
            }
            Err(None) => (SpeechEngine::None, self.phrases.speech_failed(&why)),
        };
        self.engine = engine;
        self.status.push_notice(text);
    }
}
