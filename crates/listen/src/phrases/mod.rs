//! sayso's own texts and the words that can be typed, with one file per language and one field per phrase.
//!
//! The English file is the catalogue. Each of its phrases is a field of [`Phrases`], so a language that lacks a phrase does not
//! compile. A phrase with arguments is a closure, so an unused argument causes a warning, and an unknown one does not compile.

/// Fills in a sentence: a format string, or an expression in parentheses.
macro_rules! fill_sentence {
    ($text:literal) => {
        format!($text)
    };
    (($text:expr)) => {
        $text
    };
}

/// Declares the phrases of one language.
macro_rules! phrases {
    (
        $language:ident: $tag:literal,
        commands: $commands:expr,
        texts { $($text:ident: $says:literal,)* }
        sentences { $($name:ident($($argument:ident),+): $sentence:tt,)* }
    ) => {
        pub(super) static $language: Phrases = Phrases {
            tag: $tag,
            commands: $commands,
            $($text: $says,)*
            $($name: |$($argument),+| fill_sentence!($sentence),)*
        };
    };
}

/// Declares the catalogue with its English texts: fixed texts, and sentences with arguments.
macro_rules! catalogue {
    (
        $language:ident: $tag:literal,
        commands: $commands:expr,
        texts { $($(#[$text_doc:meta])* $text:ident: $says:literal,)* }
        sentences { $($(#[$doc:meta])* $name:ident($($argument:ident: $type:ty),+): $sentence:tt,)* }
    ) => {
        phrases! {
            $language: $tag,
            commands: $commands,
            texts { $($text: $says,)* }
            sentences { $($name($($argument),+): $sentence,)* }
        }

        /// sayso's own texts in one language. [`Phrases::for_languages`] chooses the language.
        #[derive(Debug)]
        pub struct Phrases {
            /// The language tag.
            pub(super) tag: &'static str,
            /// The words that can be typed.
            pub(super) commands: CommandWords,
            $($(#[$text_doc])* pub(crate) $text: &'static str,)*
            $($(#[$doc])* pub(super) $name: fn($($argument: $type),+) -> String,)*
        }

        impl Phrases {
            $(
                $(#[$doc])*
                pub(crate) fn $name(&self, $($argument: $type),+) -> String {
                    (self.$name)($($argument),+)
                }
            )*

            /// Returns every phrase as its name, its text with sample arguments, and those arguments.
            #[cfg(test)]
            pub(super) fn samples(&self) -> Vec<(&'static str, String, Vec<String>)> {
                let mut all = vec![$((stringify!($text), self.$text.to_owned(), Vec::new())),*];
                $({
                    let mut at = 0;
                    let mut samples = Vec::new();
                    $(
                        at += 1;
                        let $argument = <$type as super::tests::Sample>::sample(at);
                        samples.push($argument.to_string());
                    )+
                    all.push((stringify!($name), self.$name($($argument),+), samples));
                })*
                all
            }
        }
    };
}

mod en;
mod es;
#[cfg(test)]
mod tests;
mod typed_commands;
mod yo;

use crate::AnnouncementKind;
pub use en::Phrases;
pub(crate) use typed_commands::{HandoffInput, TypedCommand};

/// Every language that sayso supports. The first one is the fallback.
static ALL_LANGUAGES: [&Phrases; 3] = [&en::ENGLISH, &es::SPANISH, &yo::YORUBA];

impl Phrases {
    /// Returns the phrases for a list of languages, the most preferred first. It chooses the first supported one, ignoring the
    /// region, or English if none is supported.
    ///
    /// ```
    /// use listen::Phrases;
    /// assert_eq!(Phrases::for_languages(&["fr".to_owned(), "en-GB".to_owned()]).language(), "en");
    /// ```
    pub fn for_languages(languages: &[String]) -> &'static Self {
        let find_supported =
            |language: &String| Self::all().find(|phrases| phrases.matches_language(language));
        languages.iter().find_map(find_supported).unwrap_or(&en::ENGLISH)
    }

    /// Returns a sentence about the preferred language, if sayso does not know it.
    pub(crate) fn describe_unavailable(languages: &[String]) -> Option<String> {
        let preferred = languages.first()?;
        if Self::all().any(|known| known.matches_language(preferred)) {
            return None;
        }
        let used = Self::for_languages(languages);
        let names: Vec<&str> = Self::all().map(|known| known.language_name).collect();
        Some(used.language_unavailable(preferred, used.language_name, &names.join(", ")))
    }

    pub(crate) fn all() -> impl Iterator<Item = &'static Self> {
        ALL_LANGUAGES.into_iter()
    }

    /// Whether a tag names this language, in any region.
    pub(crate) fn matches_language(&self, tag: &str) -> bool {
        tag.split('-').next().is_some_and(|primary| primary.eq_ignore_ascii_case(self.tag))
    }

    /// Returns the language tag.
    pub fn language(&self) -> &'static str {
        self.tag
    }

    /// Returns the label of an announcement. The name of the kind in JSON is the same in all languages ([`AnnouncementKind::as_str`]).
    pub(crate) fn kind_label(&self, kind: AnnouncementKind) -> &'static str {
        match kind {
            AnnouncementKind::Session => self.kind_session,
            AnnouncementKind::Agent => self.kind_agent,
            AnnouncementKind::Progress => self.kind_progress,
            AnnouncementKind::Tool => self.kind_tool,
            AnnouncementKind::Ask => self.kind_ask,
            AnnouncementKind::Answer => self.kind_answer,
            AnnouncementKind::Error => self.kind_error,
            AnnouncementKind::Handoff => self.kind_handoff,
            AnnouncementKind::Notice => self.kind_notice,
            AnnouncementKind::Status => self.kind_status,
            AnnouncementKind::Help => self.kind_help,
        }
    }
}

/// Formats a count with its noun, in languages whose plural ends in "s".
fn pluralize(count: i64, word: &str) -> String {
    if count == 1 { format!("1 {word}") } else { format!("{count} {word}s") }
}
