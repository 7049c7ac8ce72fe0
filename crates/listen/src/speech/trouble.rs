//! Why an engine cannot speak.

use crate::Phrases;

/// Why an engine cannot speak, or not any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    NoFolder,
    BadAddress,
    NotInstalled,
    DoesNotRun,
    DoesNotStart,
    DidNotStart,
    Elsewhere,
    NoAnswer,
    NotUnderstood,
    Ended,
    NotTaken,
    NoSound,
    CannotSpeak,
    /// It refuses a command.
    Refuses(String),
    /// With the system's own words.
    Unreachable(String),
    CannotStart(String),
    Gone(String),
    Fails(String),
}

impl Trouble {
    /// For a person: the engine by its name, and what is the matter with it.
    pub(super) fn in_words(&self, phrases: &Phrases, name: &str) -> String {
        match self {
            Self::NoFolder => phrases.speech_no_folder(name),
            Self::BadAddress => phrases.speech_bad_address.to_owned(),
            Self::NotInstalled => phrases.speech_not_installed(name),
            Self::DoesNotRun => phrases.speech_does_not_run(name),
            Self::DoesNotStart => phrases.speech_does_not_start(name),
            Self::DidNotStart => phrases.speech_did_not_start(name),
            Self::Elsewhere => phrases.speech_elsewhere(name),
            Self::NoAnswer => phrases.speech_no_answer(name),
            Self::NotUnderstood => phrases.speech_not_understood(name),
            Self::Ended => phrases.speech_ended(name),
            Self::NotTaken => phrases.speech_not_taken(name),
            Self::NoSound => phrases.speech_no_sound(name),
            Self::CannotSpeak => phrases.speech_cannot(name),
            Self::Refuses(what) => phrases.speech_refuses(name, what),
            Self::Unreachable(why) => phrases.speech_unreachable(name, why),
            Self::CannotStart(why) => phrases.speech_cannot_start(name, why),
            Self::Gone(why) => phrases.speech_gone(name, why),
            Self::Fails(why) => phrases.speech_fails(name, why),
        }
    }
}
