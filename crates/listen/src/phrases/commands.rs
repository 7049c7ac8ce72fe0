//! The words that a person types, in each language.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use super::{Phrases, en};

/// What can be typed: each thing in one or several ways, in small letters and with all their marks.
#[derive(Debug)]
pub(crate) struct Commands {
    /// A whole word or more, and nothing that means something else in another language that is understood beside it.
    pub(super) yes: &'static [&'static str],
    /// Not enough for what cannot be undone.
    pub(super) yes_in_short: &'static [&'static str],
    pub(super) no: &'static [&'static str],
    /// In front of an answer in words.
    pub(super) answer: &'static [&'static str],
    pub(super) more_time: &'static [&'static str],
    pub(super) details: &'static [&'static str],
    pub(super) repeat: &'static [&'static str],
    pub(super) status: &'static [&'static str],
    pub(super) stop: &'static [&'static str],
    /// Behind what stops.
    pub(super) all: &'static [&'static str],
    pub(super) quieter: &'static [&'static str],
    pub(super) louder: &'static [&'static str],
    pub(super) hush: &'static [&'static str],
    pub(super) faster: &'static [&'static str],
    pub(super) slower: &'static [&'static str],
    pub(super) quit: &'static [&'static str],
    pub(super) help: &'static [&'static str],
    /// What is a command in English and something else in this language: it is none here.
    pub(super) otherwise: &'static [&'static str],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// A yes or a no; `whole` is a whole word, not a letter.
    Decision {
        yes: bool,
        whole: bool,
    },
    MoreTime,
    Details,
    Repeat,
    Status,
    Stop,
    Quieter,
    Louder,
    Hush,
    Faster,
    Slower,
    Quit,
    Help,
}

impl Phrases {
    /// What these words mean, in this language or in English. Marks may be left out; none may be wrong.
    pub(crate) fn command(&self, words: &str) -> Option<Command> {
        let words = words.to_lowercase();
        let own = self.commands.meaning(&words);
        let understood = own.or_else(|| en::ENGLISH.commands.meaning(&words));
        let understood = understood.filter(|_| !self.commands.otherwise.contains(&words.as_str()));
        understood.or_else(|| self.foreign(&words))
    }

    /// What stands behind `answer`, where a line begins with that.
    pub(crate) fn after_answer<'t>(&self, line: &'t str) -> Option<&'t str> {
        let (first, rest) = line.split_once(char::is_whitespace)?;
        let first = first.to_lowercase();
        let known = self.commands.answer.iter().chain(en::ENGLISH.commands.answer);
        known.into_iter().any(|word| is(word, &first)).then(|| rest.trim()).filter(|rest| !rest.is_empty())
    }

    pub(crate) fn is_all(&self, words: &str) -> bool {
        let words = words.to_lowercase();
        self.commands.all.iter().chain(en::ENGLISH.commands.all).any(|word| is(word, &words))
    }

    /// Who hears English may still answer in a language of their own.
    fn foreign(&self, words: &str) -> Option<Command> {
        if self.tag != en::ENGLISH.tag {
            return None;
        }
        Self::every().find_map(|other| {
            let known = |list: &[&str]| list.iter().any(|word| is(word, words));
            if known(other.commands.yes) {
                Some(Command::Decision { yes: true, whole: true })
            } else if known(other.commands.no) {
                Some(Command::Decision { yes: false, whole: true })
            } else {
                None
            }
        })
    }
}

impl Commands {
    fn meaning(&self, words: &str) -> Option<Command> {
        self.lists().into_iter().find(|(list, _)| list.iter().any(|word| is(word, words))).map(|(_, it)| it)
    }

    /// A no comes first: should ever a word be both, it is a no.
    pub(super) fn lists(&self) -> [(&'static [&'static str], Command); 15] {
        let decision = |yes, whole| Command::Decision { yes, whole };
        [
            (self.no, decision(false, true)),
            (self.yes_in_short, decision(true, false)),
            (self.yes, decision(true, true)),
            (self.more_time, Command::MoreTime),
            (self.details, Command::Details),
            (self.repeat, Command::Repeat),
            (self.status, Command::Status),
            (self.stop, Command::Stop),
            (self.quieter, Command::Quieter),
            (self.louder, Command::Louder),
            (self.hush, Command::Hush),
            (self.faster, Command::Faster),
            (self.slower, Command::Slower),
            (self.quit, Command::Quit),
            (self.help, Command::Help),
        ]
    }
}

/// Whether somebody who typed this can have meant that word: the letters are the same, and there is no mark that the word does
/// not have. People leave marks out; whoever puts another one means another word.
pub(super) fn is(word: &str, typed: &str) -> bool {
    let mut typed = typed.nfd().peekable();
    let mut word = word.nfd().peekable();
    loop {
        let (letter, other) = (word.next(), typed.next());
        if letter != other {
            return false;
        }
        if letter.is_none() {
            return true;
        }
        let mut marks = Vec::new();
        while let Some(mark) = word.next_if(|next| is_combining_mark(*next)) {
            marks.push(mark);
        }
        while let Some(mark) = typed.next_if(|next| is_combining_mark(*next)) {
            if !marks.contains(&mark) {
                return false;
            }
        }
    }
}
