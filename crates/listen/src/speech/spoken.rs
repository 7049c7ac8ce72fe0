//! An announcement as it is said.

use aaep::event::Urgency;

use crate::{Announcement, Phrases, plain};

/// What is said aloud: text, its language and how urgent it is. Whatever a producer wrote, it is nothing but text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Spoken {
    lines: Vec<String>,
    /// A language tag, of letters, digits and hyphens only.
    pub(super) language: String,
    pub(super) priority: Priority,
}

/// The priorities of SSIP that are used. The others let the dispatcher drop what is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Priority {
    /// Cuts off what is said with another; never cut off itself.
    Important,
    /// Waits for its turn.
    Message,
    /// Waits, too, and gives way to messages of other programs.
    Text,
}

impl Priority {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Important => "important",
            Self::Message => "message",
            Self::Text => "text",
        }
    }
}

impl Spoken {
    /// None, where nothing in it can be pronounced.
    pub(super) fn new(announcement: &Announcement, with_word: bool, phrases: &Phrases) -> Option<Self> {
        let text = plain(&announcement.text, false);
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        if !lines.iter().any(|line| line.chars().any(char::is_alphanumeric)) {
            return None;
        }
        if with_word && let Some(first) = lines.first_mut() {
            first.insert_str(0, &format!("{}: ", phrases.kind(announcement.kind)));
        }
        Some(Self {
            lines,
            language: announcement
                .language
                .as_deref()
                .filter(|tag| is_tag(tag))
                .unwrap_or(phrases.language())
                .to_owned(),
            priority: match announcement.urgency {
                Urgency::Critical => Priority::Important,
                Urgency::Background => Priority::Text,
                _ => Priority::Message,
            },
        })
    }

    /// Its lines; none has an end of a line or a control character in it.
    pub(super) fn lines(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().map(String::as_str)
    }

    /// How many characters there are to be said.
    pub(super) fn length(&self) -> usize {
        self.lines.iter().map(|line| line.chars().count()).sum()
    }
}

fn is_tag(tag: &str) -> bool {
    (1..=35).contains(&tag.len())
        && tag.starts_with(|c: char| c.is_ascii_alphabetic())
        && tag.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;

    #[test]
    fn only_a_language_tag_is_one() {
        for tag in ["en", "pt-BR", "zh-Hant-TW", "x-klingon"] {
            assert!(is_tag(tag), "{tag}");
        }
        for tag in ["", "-m", "en\r\nSPEAK", "en us", "../x", "ünï", &"a".repeat(36)] {
            assert!(!is_tag(tag), "{tag:?}");
        }
    }

    #[test]
    fn the_word_comes_once_and_what_has_no_sound_is_not_said() {
        let announcement = Announcement::own(Kind::Notice, "One.\nTwo.");
        let lines = |with_word| -> Vec<String> {
            Spoken::new(&announcement, with_word, Phrases::of(&[]))
                .unwrap()
                .lines()
                .map(str::to_owned)
                .collect()
        };
        assert_eq!(lines(true), ["notice: One.", "Two."]);
        assert_eq!(lines(false), ["One.", "Two."]);
        assert_eq!(
            Spoken::new(&Announcement::own(Kind::Agent, ". … \u{202e}\n—"), true, Phrases::of(&[])),
            None
        );
    }
}
