//! Errors of speech engines.

use crate::Phrases;

/// Why an engine cannot speak, or has stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SpeechEngineError {
    NoRuntimeDir,
    InvalidAddress,
    NotInstalled,
    /// The program exists, but its version check failed.
    NotRunnable,
    /// The engine did not start in time.
    StartTimeout,
    StartFailed,
    /// The engine is reached over TCP, so it cannot be started.
    NotLocal,
    ReplyTimeout,
    InvalidReply,
    ConnectionClosed,
    TextRejected,
    SpeechTimeout,
    SpeechFailed,
    /// The engine refused this command.
    CommandRefused(String),
    /// In this and the following variants, the text is the operating system's message.
    Unreachable(String),
    SpawnFailed(String),
    ConnectionLost(String),
    ProcessFailed(String),
}

impl SpeechEngineError {
    /// Describes the error for a person, with the engine's name.
    pub(super) fn describe(&self, phrases: &Phrases, name: &str) -> String {
        match self {
            Self::NoRuntimeDir => phrases.speech_no_runtime_dir(name),
            Self::InvalidAddress => phrases.speech_bad_address.to_owned(),
            Self::NotInstalled => phrases.speech_not_installed(name),
            Self::NotRunnable => phrases.speech_not_runnable(name),
            Self::StartTimeout => phrases.speech_start_timed_out(name),
            Self::StartFailed => phrases.speech_start_failed(name),
            Self::NotLocal => phrases.speech_is_remote(name),
            Self::ReplyTimeout => phrases.speech_no_answer(name),
            Self::InvalidReply => phrases.speech_not_understood(name),
            Self::ConnectionClosed => phrases.speech_ended(name),
            Self::TextRejected => phrases.speech_text_refused(name),
            Self::SpeechTimeout => phrases.speech_no_sound(name),
            Self::SpeechFailed => phrases.speech_engine_failed(name),
            Self::CommandRefused(what) => phrases.speech_refuses(name, what),
            Self::Unreachable(why) => phrases.speech_unreachable(name, why),
            Self::SpawnFailed(why) => phrases.speech_spawn_failed(name, why),
            Self::ConnectionLost(why) => phrases.speech_disappeared(name, why),
            Self::ProcessFailed(why) => phrases.speech_process_failed(name, why),
        }
    }
}
