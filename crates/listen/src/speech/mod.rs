//! Speech: announcements said aloud, through speech-dispatcher where there is one, else by `espeak-ng` as a process.
//!
//! ```text
//!   terminal ──▶ Queue ──▶ Speaker (a Voice) ──▶ speaking, a task ──▶ ssip::Connection   speech-dispatcher
//!                             ▲ is it free? news ◀──────┘        └──▶ espeak::Espeak      a process for each text
//! ```
//!
//! - `spoken`: an announcement as it is said: its words, language and priority, with nothing in it but text.
//! - `place`: where speech-dispatcher is, and starting it.
//! - `trouble`: why an engine cannot speak.
//! - `ssip`: its protocol. `espeak`: the process.
//! - `speaking`: one text at a time; what is done when an engine is lost.
//!
//! One announcement at a time is given to an engine, and the next when it has ended. What an engine was saying when it was lost
//! is said again by the next one.

mod espeak;
mod pace;
mod place;
mod speaking;
mod spoken;
mod ssip;
#[cfg(test)]
mod tests;
mod trouble;

pub use pace::Pace;

use std::sync::Arc;

use tokio::sync::mpsc;

use crate::{Announcement, Phrases, Voice};
use speaking::{Order, Progress, Sources};
use spoken::Spoken;
use trouble::Trouble;

/// Speaks announcements. It needs a Tokio runtime around it.
pub struct Speaker {
    orders: mpsc::UnboundedSender<Order>,
    progress: Arc<Progress>,
    /// How many announcements it was given.
    given: u64,
    /// What was said last; its word is not said again for what is of the same kind.
    last: Option<crate::Kind>,
    pace: Pace,
    phrases: &'static Phrases,
}

/// Nothing here can speak.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoVoice {
    /// Why speech-dispatcher cannot.
    dispatcher: Trouble,
    /// Why espeak-ng cannot.
    espeak: Trouble,
}

impl NoVoice {
    /// Why, for a person.
    pub fn in_words(&self, phrases: &Phrases) -> String {
        let dispatcher = self.dispatcher.in_words(phrases, DISPATCHER);
        phrases.speech_none(&dispatcher, &self.espeak.in_words(phrases, ESPEAK))
    }
}

const DISPATCHER: &str = "speech-dispatcher";
const ESPEAK: &str = "espeak-ng";

impl Speaker {
    /// Finds a voice: speech-dispatcher, which is started if it does not run; else `espeak-ng`.
    ///
    /// Without a pace, speech-dispatcher keeps the one that the person has set there.
    /// What it says itself is said in the words of `phrases`.
    pub async fn start(pace: Option<Pace>, phrases: &'static Phrases) -> Result<Self, NoVoice> {
        let sources = Sources::usual();
        let engine = sources.find(pace).await?;
        let (orders, inbox) = mpsc::unbounded_channel();
        let progress = Arc::new(Progress::default());
        let pace = pace.unwrap_or(engine.pace());
        tokio::spawn(speaking::run(sources, engine, inbox, Arc::clone(&progress), phrases));
        Ok(Self { orders, progress, given: 0, last: None, pace, phrases })
    }
}

impl Voice for Speaker {
    fn say(&mut self, announcement: &Announcement) {
        let with_word = self.last.replace(announcement.kind) != Some(announcement.kind);
        let spoken = Spoken::of(announcement, with_word, self.phrases);
        if spoken.is_empty() {
            return;
        }
        self.given += 1;
        let _ = self.orders.send(Order::Say(self.given, spoken));
    }

    fn stop(&mut self) {
        let _ = self.orders.send(Order::Stop);
    }

    fn is_free(&mut self) -> bool {
        self.progress.ended() >= self.given || self.orders.is_closed()
    }

    fn news(&mut self) -> Option<String> {
        self.progress.news()
    }

    fn change_pace(&mut self, faster: bool) -> Option<Pace> {
        self.pace = self.pace.step(faster)?;
        let _ = self.orders.send(Order::Pace(self.pace));
        Some(self.pace)
    }
}
