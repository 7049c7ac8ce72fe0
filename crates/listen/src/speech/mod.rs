//! Speaks announcements with speech-dispatcher, or with an `espeak-ng` process if speech-dispatcher is not available.
//!
//! ```text
//!   terminal ──▶ AnnouncementQueue ──▶ Speaker (a SpeechSynthesizer) ──▶ speech_task ──▶ ssip::SsipConnection  speech-dispatcher
//!                                        ▲ idle? notices ◀─────────────────────┘  └──▶ espeak::Espeak         a process per text
//! ```
//!
//! - `speech_segment`: an announcement as text to speak, with its language and priority; `spoken_form`: how addresses, paths and
//!   dates in it are spoken.
//! - `speech_rate`: the speed of speech.
//! - `dispatcher_address`: finds and starts speech-dispatcher.
//! - `engine_error`: why an engine cannot speak.
//! - `ssip`: the protocol of speech-dispatcher; `espeak`: the process.
//! - `speech_task`: speaks one text at a time and replaces a failed engine.
//!
//! The engine receives the next announcement when it has finished the current one. If an engine fails, its replacement
//! repeats the interrupted announcement.

mod dispatcher_address;
mod engine_error;
mod espeak;
mod speech_rate;
mod speech_segment;
mod speech_task;
mod spoken_form;
mod ssip;
#[cfg(test)]
mod tests;

pub use speech_rate::SpeechRate;

use std::sync::Arc;

use tokio::sync::mpsc;

use crate::{Announcement, Phrases, SpeechSynthesizer};
use engine_error::SpeechEngineError;
use speech_segment::SpeechSegment;
use speech_task::{SpeechCommand, SpeechEngineSources, SpeechStatus};

/// Speaks announcements. It needs a Tokio runtime.
pub struct Speaker {
    commands: mpsc::UnboundedSender<SpeechCommand>,
    status: Arc<SpeechStatus>,
    /// The number of the last announcement passed to the task.
    last_number: u64,
    /// The kind of the last announcement. The label is not repeated if the next announcement has the same kind.
    last_kind: Option<crate::AnnouncementKind>,
    rate: SpeechRate,
    phrases: &'static Phrases,
}

/// Why no speech engine is available.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoSpeechEngine {
    /// Why speech-dispatcher is not available.
    dispatcher: SpeechEngineError,
    /// Why espeak-ng is not available.
    espeak: SpeechEngineError,
}

impl NoSpeechEngine {
    /// Describes the reasons for a person.
    pub fn describe(&self, phrases: &Phrases) -> String {
        let dispatcher = self.dispatcher.describe(phrases, DISPATCHER);
        phrases.speech_unavailable(&dispatcher, &self.espeak.describe(phrases, ESPEAK))
    }
}

const DISPATCHER: &str = "speech-dispatcher";
const ESPEAK: &str = "espeak-ng";

impl Speaker {
    /// Chooses a speech engine: speech-dispatcher, which is started if it is not running, or else `espeak-ng`.
    ///
    /// Without a rate, speech-dispatcher uses the rate that the person configured for it. `phrases` sets the language of the
    /// speaker's own texts.
    pub async fn start(rate: Option<SpeechRate>, phrases: &'static Phrases) -> Result<Self, NoSpeechEngine> {
        let sources = SpeechEngineSources::from_env();
        let engine = sources.find_engine(rate).await?;
        let (commands, receiver) = mpsc::unbounded_channel();
        let status = Arc::new(SpeechStatus::default());
        let rate = rate.unwrap_or(engine.rate());
        tokio::spawn(speech_task::run(sources, engine, receiver, Arc::clone(&status), phrases));
        Ok(Self { commands, status, last_number: 0, last_kind: None, rate, phrases })
    }
}

impl SpeechSynthesizer for Speaker {
    fn speak(&mut self, announcement: &Announcement) {
        let with_label = self.last_kind.replace(announcement.kind) != Some(announcement.kind);
        let segments = SpeechSegment::from_announcement(announcement, with_label, self.phrases);
        if segments.is_empty() {
            return;
        }
        self.last_number += 1;
        let _ = self.commands.send(SpeechCommand::Speak(self.last_number, segments));
    }

    fn stop(&mut self) {
        let _ = self.commands.send(SpeechCommand::Stop);
    }

    fn is_idle(&mut self) -> bool {
        self.status.last_finished() >= self.last_number || self.commands.is_closed()
    }

    fn take_notice(&mut self) -> Option<String> {
        self.status.take_notice()
    }

    fn change_rate(&mut self, faster: bool) -> Option<SpeechRate> {
        self.rate = self.rate.step(faster)?;
        let _ = self.commands.send(SpeechCommand::SetRate(self.rate));
        Some(self.rate)
    }
}

/// Returns what is spoken for an announcement, with its label.
#[cfg(test)]
pub(crate) fn spoken_text(announcement: &Announcement, phrases: &Phrases) -> String {
    spoken_text_after(None, announcement, phrases)
}

/// Returns what is spoken for an announcement after one of another kind. The label is left out if the kinds are equal.
#[cfg(test)]
pub(crate) fn spoken_text_after(
    before: Option<crate::AnnouncementKind>,
    announcement: &Announcement,
    phrases: &Phrases,
) -> String {
    let with_label = before != Some(announcement.kind);
    let segments = SpeechSegment::from_announcement(announcement, with_label, phrases);
    segments.iter().flat_map(SpeechSegment::lines).collect::<Vec<_>>().join("\n")
}
