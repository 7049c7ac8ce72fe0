//! What sayso itself says, and what can be typed, in each language: one file a language, one field a phrase.
//!
//! The catalogue is the English file: every phrase of it is a field of [`Phrases`], so that a language that lacks one does not
//! compile; what is put into a phrase are the arguments of a function, so that one that leaves something out is warned of, and
//! one that wants something else does not compile either.

/// Puts what belongs into a sentence into it: a format string, or an expression in parentheses.
macro_rules! put_in {
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
            $($name: |$($argument),+| put_in!($sentence),)*
        };
    };
}

/// Declares the catalogue with its English: texts that are always the same, and sentences with something put in.
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

        /// What sayso itself says, in one language. [`Phrases::of`] finds the one for a person.
        #[derive(Debug)]
        pub struct Phrases {
            /// The language, as a tag.
            pub(super) tag: &'static str,
            /// What can be typed.
            pub(super) commands: Commands,
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

            /// Every phrase: its name, its text with samples in it, and the samples.
            #[cfg(test)]
            pub(super) fn samples(&self) -> Vec<(&'static str, String, Vec<String>)> {
                let mut all = vec![$((stringify!($text), self.$text.to_owned(), Vec::new())),*];
                $({
                    let mut at = 0;
                    let mut written = Vec::new();
                    $(
                        at += 1;
                        let $argument = <$type as super::tests::Sample>::sample(at);
                        written.push($argument.to_string());
                    )+
                    all.push((stringify!($name), self.$name($($argument),+), written));
                })*
                all
            }
        }
    };
}

mod commands;
mod en;
mod es;
#[cfg(test)]
mod tests;
mod yo;

use crate::Kind;
pub(crate) use commands::Command;
pub use en::Phrases;

/// Every language that sayso speaks itself. The first is spoken to whoever wants none of them.
static ALL: [&Phrases; 3] = [&en::ENGLISH, &es::SPANISH, &yo::YORUBA];

impl Phrases {
    /// The phrases for somebody who wants these languages, the dearest first: the first of them that there is, whatever its
    /// region; else English.
    ///
    /// ```
    /// use listen::Phrases;
    /// assert_eq!(Phrases::of(&["fr".to_owned(), "en-GB".to_owned()]).language(), "en");
    /// ```
    pub fn of(languages: &[String]) -> &'static Self {
        let spoken = |language: &String| Self::every().find(|phrases| phrases.speaks(language));
        languages.iter().find_map(spoken).unwrap_or(&en::ENGLISH)
    }

    pub(crate) fn every() -> impl Iterator<Item = &'static Self> {
        ALL.into_iter()
    }

    /// Whether a tag names this language, whatever its region.
    pub(crate) fn speaks(&self, tag: &str) -> bool {
        tag.split('-').next().is_some_and(|primary| primary.eq_ignore_ascii_case(self.tag))
    }

    /// The language, as a tag.
    pub fn language(&self) -> &'static str {
        self.tag
    }

    /// What an announcement is about, as it is said aloud. The word that is printed is always the same ([`Kind::word`]).
    pub(crate) fn kind(&self, kind: Kind) -> &'static str {
        match kind {
            Kind::Session => self.kind_session,
            Kind::Agent => self.kind_agent,
            Kind::Progress => self.kind_progress,
            Kind::Tool => self.kind_tool,
            Kind::Ask => self.kind_ask,
            Kind::Answer => self.kind_answer,
            Kind::Error => self.kind_error,
            Kind::Handoff => self.kind_handoff,
            Kind::Notice => self.kind_notice,
            Kind::Status => self.kind_status,
            Kind::Help => self.kind_help,
        }
    }
}

/// A number of things, in languages whose plural has an s at its end.
fn many(count: i64, word: &str) -> String {
    if count == 1 { format!("1 {word}") } else { format!("{count} {word}s") }
}
