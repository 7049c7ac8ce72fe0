//! The voice: says one thing after another, each for as long as espeak-ng would, until it is told to stop. What it was given is
//! kept, with what the person did in between.

use std::process::{Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::transcript::{Entry, How, Transcript};

/// Words a minute, as espeak-ng and Orca have it where nothing is set.
const PACE: &str = "175";
/// So long is waited for words that must come. A machine may be slow; nothing is measured here.
const PATIENCE: Duration = Duration::from_mins(3);
/// Silence that is the end of what a screen reader had to say.
const QUIET: Duration = Duration::from_secs(3);

/// Who is told what becomes of their words.
pub(super) trait Speaker: Send + Sync {
    fn told(&self, id: usize, what: Told);
}

#[derive(Clone, Copy)]
pub(super) enum Told {
    Begun,
    Ended,
    Cut,
}

pub(super) struct Voice {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    scenes: Vec<Transcript>,
    waiting: std::collections::VecDeque<Words>,
    /// What is being said, until it is cut.
    saying: Option<usize>,
    changes: usize,
}

struct Words {
    id: usize,
    scene: usize,
    entry: usize,
    text: String,
    speaker: Arc<dyn Speaker>,
}

impl Voice {
    /// A voice that speaks until the process ends.
    pub(super) fn start() -> Arc<Self> {
        // What comes before the first scene is kept too, but nobody asks for it.
        let state = State { scenes: vec![Transcript::default()], ..State::default() };
        let voice = Arc::new(Self { state: Mutex::new(state), changed: Condvar::new() });
        let speaking = Arc::clone(&voice);
        std::thread::spawn(move || {
            loop {
                let words = speaking.next();
                speaking.say(&words);
            }
        });
        voice
    }

    /// Takes words to say, in their turn.
    pub(super) fn give(&self, id: usize, text: String, speaker: Arc<dyn Speaker>) {
        let mut state = self.state();
        let (scene, entry) = state.write(Entry { text: text.clone(), how: How::Waiting });
        state.waiting.push_back(Words { id, scene, entry, text, speaker });
        self.change(state);
    }

    /// Says nothing more of what it was given.
    pub(super) fn stop(&self) {
        let mut state = self.state();
        let dropped: Vec<Words> = state.waiting.drain(..).collect();
        for words in &dropped {
            state.becomes(words, How::Dropped);
        }
        state.saying = None;
        self.change(state);
        for words in dropped {
            words.speaker.told(words.id, Told::Cut);
        }
    }

    /// The person did something.
    pub(super) fn note(&self, text: String) {
        let mut state = self.state();
        state.write(Entry { text, how: How::Pressed });
        self.change(state);
    }

    /// What comes from now on belongs to the next scene.
    pub(super) fn next_scene(&self) {
        self.state().scenes.push(Transcript::default());
    }

    pub(super) fn transcripts(&self) -> Vec<Transcript> {
        self.state().scenes.iter().skip(1).cloned().collect()
    }

    /// Waits until this was heard to its end, in this scene.
    pub(super) fn wait_for(&self, text: &str) -> Result<(), String> {
        let state = self.state();
        let missing = |state: &mut State| !state.scenes.last().is_some_and(|scene| scene.heard(text));
        let (_state, wait) =
            self.changed.wait_timeout_while(state, PATIENCE, missing).unwrap_or_else(PoisonError::into_inner);
        if wait.timed_out() { Err(format!("`{text}` was never heard")) } else { Ok(()) }
    }

    /// Waits until nothing is said any more.
    pub(super) fn wait_for_quiet(&self) -> Result<(), String> {
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            let state = self.state();
            let before = state.changes;
            let (state, wait) = self
                .changed
                .wait_timeout_while(state, QUIET, |state| state.changes == before)
                .unwrap_or_else(PoisonError::into_inner);
            if wait.timed_out() && state.saying.is_none() && state.waiting.is_empty() {
                return Ok(());
            }
        }
        Err("the screen reader does not stop speaking".to_owned())
    }

    fn next(&self) -> Words {
        let mut state = self.state();
        loop {
            if let Some(words) = state.waiting.pop_front() {
                state.saying = Some(words.id);
                // So it is until it has been said whole.
                state.becomes(&words, How::Cut);
                self.change(state);
                return words;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn say(&self, words: &Words) {
        words.speaker.told(words.id, Told::Begun);
        let lasts = duration(&words.text);
        let (mut state, _) = self
            .changed
            .wait_timeout_while(self.state(), lasts, |state| state.saying == Some(words.id))
            .unwrap_or_else(PoisonError::into_inner);
        let whole = state.saying == Some(words.id);
        if whole {
            state.saying = None;
            state.becomes(words, How::Heard);
        }
        self.change(state);
        words.speaker.told(words.id, if whole { Told::Ended } else { Told::Cut });
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, mut state: MutexGuard<'_, State>) {
        state.changes += 1;
        drop(state);
        self.changed.notify_all();
    }
}

impl State {
    fn write(&mut self, entry: Entry) -> (usize, usize) {
        let scene = self.scenes.len() - 1;
        let place = self.scenes.last_mut().map_or(0, |scene| scene.write(entry));
        (scene, place)
    }

    fn becomes(&mut self, words: &Words, how: How) {
        if let Some(scene) = self.scenes.get_mut(words.scene) {
            scene.becomes(words.entry, how);
        }
    }
}

/// How long espeak-ng speaks: its sound has 22050 samples of two bytes each second.
fn duration(text: &str) -> Duration {
    let made = Command::new("espeak-ng")
        .args(["-v", "en-us", "-s", PACE, "--stdout", "--", text])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    let bytes = made.map_or(0, |made| made.stdout.len());
    Duration::from_millis((bytes as u64) * 1000 / 44100)
}
