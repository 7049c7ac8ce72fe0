//! A simulated speech synthesizer. It makes no sound. It handles one text after another, each for as long as espeak-ng
//! would speak it, and can be stopped. It records the texts and the key presses between them.

use std::process::{Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::transcript::{EntryStatus, Transcript, TranscriptEntry};

/// The default speech rate of espeak-ng and Orca.
const WORDS_PER_MINUTE: &str = "175";
/// How long to wait for an expected text. This is long, because the machine may be slow.
const SPEECH_TIMEOUT: Duration = Duration::from_mins(3);
/// How long the synthesizer must be silent before the screen reader counts as finished.
const SILENCE_DURATION: Duration = Duration::from_secs(3);

/// Receives the events of an utterance.
pub(super) trait SpeechObserver: Send + Sync {
    fn notify(&self, id: usize, event: SpeechEvent);
}

#[derive(Clone, Copy)]
pub(super) enum SpeechEvent {
    Started,
    Ended,
    Cancelled,
}

pub(super) struct SimulatedSynthesizer {
    state: Mutex<SynthesizerState>,
    changed: Condvar,
}

#[derive(Default)]
struct SynthesizerState {
    scenarios: Vec<Transcript>,
    queue: std::collections::VecDeque<Utterance>,
    /// The id of the current utterance, until it ends or is cancelled.
    current: Option<usize>,
    change_count: usize,
}

struct Utterance {
    id: usize,
    scenario: usize,
    entry: usize,
    text: String,
    observer: Arc<dyn SpeechObserver>,
}

impl SimulatedSynthesizer {
    /// Starts a synthesizer that runs until the process ends.
    pub(super) fn start() -> Arc<Self> {
        // Entries before the first scenario are recorded too, but not used.
        let state =
            SynthesizerState { scenarios: vec![Transcript::default()], ..SynthesizerState::default() };
        let synthesizer = Arc::new(Self { state: Mutex::new(state), changed: Condvar::new() });
        let speaker = Arc::clone(&synthesizer);
        std::thread::spawn(move || {
            loop {
                let utterance = speaker.take_next();
                speaker.speak(&utterance);
            }
        });
        synthesizer
    }

    /// Adds a text to the queue.
    pub(super) fn enqueue(&self, id: usize, text: String, observer: Arc<dyn SpeechObserver>) {
        let mut state = self.state();
        let (scenario, entry) =
            state.write(TranscriptEntry { text: text.clone(), status: EntryStatus::Waiting });
        state.queue.push_back(Utterance { id, scenario, entry, text, observer });
        self.finish_change(state);
    }

    /// Cancels the current utterance and empties the queue.
    pub(super) fn stop(&self) {
        let mut state = self.state();
        let dropped: Vec<Utterance> = state.queue.drain(..).collect();
        for utterance in &dropped {
            state.set_status(utterance, EntryStatus::Dropped);
        }
        state.current = None;
        self.finish_change(state);
        for utterance in dropped {
            utterance.observer.notify(utterance.id, SpeechEvent::Cancelled);
        }
    }

    /// Records a key press.
    pub(super) fn record_key(&self, text: String) {
        self.record(text, EntryStatus::KeyPress);
    }

    /// Records something that neither the person nor the screen reader did.
    pub(super) fn record_event(&self, text: String) {
        self.record(text, EntryStatus::Event);
    }

    fn record(&self, text: String, status: EntryStatus) {
        let mut state = self.state();
        state.write(TranscriptEntry { text, status });
        self.finish_change(state);
    }

    /// Starts the next scenario.
    pub(super) fn next_scenario(&self) {
        self.state().scenarios.push(Transcript::default());
    }

    pub(super) fn transcripts(&self) -> Vec<Transcript> {
        self.state().scenarios.iter().skip(1).cloned().collect()
    }

    /// Waits until this text was heard to its end in the current scenario.
    pub(super) fn wait_for(&self, text: &str) -> Result<(), String> {
        let state = self.state();
        let missing = |state: &mut SynthesizerState| {
            !state.scenarios.last().is_some_and(|scenario| scenario.was_heard(text))
        };
        let (_state, wait) = self
            .changed
            .wait_timeout_while(state, SPEECH_TIMEOUT, missing)
            .unwrap_or_else(PoisonError::into_inner);
        if wait.timed_out() { Err(format!("`{text}` was never heard")) } else { Ok(()) }
    }

    /// Waits until the synthesizer is silent.
    pub(super) fn wait_for_quiet(&self) -> Result<(), String> {
        let deadline = Instant::now() + SPEECH_TIMEOUT;
        while Instant::now() < deadline {
            let state = self.state();
            let previous_count = state.change_count;
            let (state, wait) = self
                .changed
                .wait_timeout_while(state, SILENCE_DURATION, |state| state.change_count == previous_count)
                .unwrap_or_else(PoisonError::into_inner);
            if wait.timed_out() && state.current.is_none() && state.queue.is_empty() {
                return Ok(());
            }
        }
        Err("the screen reader did not stop speaking".to_owned())
    }

    fn take_next(&self) -> Utterance {
        let mut state = self.state();
        loop {
            if let Some(utterance) = state.queue.pop_front() {
                state.current = Some(utterance.id);
                // The status stays `CutOff` unless the utterance completes.
                state.set_status(&utterance, EntryStatus::CutOff);
                self.finish_change(state);
                return utterance;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn speak(&self, utterance: &Utterance) {
        utterance.observer.notify(utterance.id, SpeechEvent::Started);
        let duration = speech_duration(&utterance.text);
        let (mut state, _) = self
            .changed
            .wait_timeout_while(self.state(), duration, |state| state.current == Some(utterance.id))
            .unwrap_or_else(PoisonError::into_inner);
        let is_complete = state.current == Some(utterance.id);
        if is_complete {
            state.current = None;
            state.set_status(utterance, EntryStatus::Heard);
        }
        self.finish_change(state);
        utterance
            .observer
            .notify(utterance.id, if is_complete { SpeechEvent::Ended } else { SpeechEvent::Cancelled });
    }

    fn state(&self) -> MutexGuard<'_, SynthesizerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn finish_change(&self, mut state: MutexGuard<'_, SynthesizerState>) {
        state.change_count += 1;
        drop(state);
        self.changed.notify_all();
    }
}

impl SynthesizerState {
    fn write(&mut self, entry: TranscriptEntry) -> (usize, usize) {
        let scenario = self.scenarios.len() - 1;
        let index = self.scenarios.last_mut().map_or(0, |scenario| scenario.add_entry(entry));
        (scenario, index)
    }

    fn set_status(&mut self, utterance: &Utterance, status: EntryStatus) {
        if let Some(scenario) = self.scenarios.get_mut(utterance.scenario) {
            scenario.set_status(utterance.entry, status);
        }
    }
}

/// Returns how long espeak-ng needs for a text. Its output has 22050 samples of two bytes per second.
fn speech_duration(text: &str) -> Duration {
    let output = Command::new("espeak-ng")
        .args(["-v", "en-us", "-s", WORDS_PER_MINUTE, "--stdout", "--", text])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    let bytes = output.map_or(0, |output| output.stdout.len());
    Duration::from_millis((bytes as u64) * 1000 / 44100)
}
