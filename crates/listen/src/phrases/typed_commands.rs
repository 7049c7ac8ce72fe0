//! The words that a person can type, in each language.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use super::{Phrases, en};

/// The words for each command, in lowercase and with all diacritics.
#[derive(Debug)]
pub(crate) struct CommandWords {
    /// Whole words. None of them has another meaning in a language that is understood together with this one.
    pub(super) yes: &'static [&'static str],
    /// Short forms, which are not enough for an irreversible action.
    pub(super) yes_short: &'static [&'static str],
    pub(super) no: &'static [&'static str],
    /// The words in front of a text answer.
    pub(super) answer: &'static [&'static str],
    pub(super) more_time: &'static [&'static str],
    pub(super) code: &'static [&'static str],
    pub(super) details: &'static [&'static str],
    pub(super) tools: &'static [&'static str],
    pub(super) repeat: &'static [&'static str],
    /// The latest announcements, with their times.
    pub(super) history: &'static [&'static str],
    /// The latest announcement, with its time.
    pub(super) last: &'static [&'static str],
    pub(super) status: &'static [&'static str],
    pub(super) stop: &'static [&'static str],
    /// The words after "stop" that mean every session.
    pub(super) all: &'static [&'static str],
    pub(super) quieter: &'static [&'static str],
    pub(super) louder: &'static [&'static str],
    pub(super) hush: &'static [&'static str],
    pub(super) faster: &'static [&'static str],
    pub(super) slower: &'static [&'static str],
    /// Lists the hand-offs.
    pub(super) handoffs: &'static [&'static str],
    /// The commands that take over, and that decline to. A hand-off's number follows.
    pub(super) take: &'static [&'static str],
    pub(super) decline: &'static [&'static str],
    pub(super) quit: &'static [&'static str],
    pub(super) help: &'static [&'static str],
    /// Words that are a command in English but have another meaning in this language. They are not commands here.
    pub(super) excluded: &'static [&'static str],
}

/// A typed line about hand-offs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HandoffInput<'t> {
    /// Lists all hand-offs, or describes the one with this number.
    List(Option<u32>),
    /// Takes over, or refuses to.
    Answer { is_acknowledged: bool, number: Option<u32>, note: Option<&'t str> },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TypedCommand {
    /// A yes or a no. `is_full_word` is false for a single letter.
    Decision {
        yes: bool,
        is_full_word: bool,
    },
    MoreTime,
    /// Reads the code of an output.
    Code,
    Details,
    /// Lists the tools of the agents.
    Tools,
    Repeat,
    History,
    Last,
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
    /// Returns the command for these words, in this language or in English. Diacritics may be omitted but not wrong.
    pub(crate) fn parse_command(&self, words: &str) -> Option<TypedCommand> {
        let words = words.to_lowercase();
        let own = self.commands.find(&words);
        let command = own.or_else(|| en::ENGLISH.commands.find(&words));
        let command = command.filter(|_| !self.commands.excluded.contains(&words.as_str()));
        command.or_else(|| self.parse_foreign_decision(&words))
    }

    /// Returns the text after the word for `answer`, if the line starts with that word.
    pub(crate) fn strip_answer_word<'t>(&self, line: &'t str) -> Option<&'t str> {
        let (first, rest) = line.split_once(char::is_whitespace)?;
        let first = first.to_lowercase();
        let known = self.commands.answer.iter().chain(en::ENGLISH.commands.answer);
        known
            .into_iter()
            .any(|word| matches_typed(word, &first))
            .then(|| rest.trim())
            .filter(|rest| !rest.is_empty())
    }

    /// Whether the first words of a line are a command other than yes or no, with something else after it.
    pub(crate) fn starts_like_command(&self, line: &str) -> bool {
        let words: Vec<&str> = line.split_whitespace().collect();
        (1..words.len()).any(|count| {
            let start = words.get(..count).unwrap_or_default().join(" ");
            self.parse_command(&start)
                .is_some_and(|command| !matches!(command, TypedCommand::Decision { .. }))
        })
    }

    /// Parses a line about hand-offs: `handoffs`, `handoffs 1`, `take 1`, `decline 1` and a reason.
    pub(crate) fn parse_handoff_command<'t>(&self, line: &'t str) -> Option<HandoffInput<'t>> {
        let english = &en::ENGLISH.commands;
        let lists = [
            (self.commands.handoffs, english.handoffs),
            (self.commands.take, english.take),
            (self.commands.decline, english.decline),
        ];
        let line = line.trim();
        let [list, take, decline] =
            lists.map(|(own, english)| own.iter().chain(english).find_map(|words| strip_words(words, line)));
        let parse = |rest: &'t str| {
            let (first, after) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
            let first = first.trim_end_matches(['.', ',', ':', '!']);
            let number = first.parse().ok();
            (number, Some(after.trim()).filter(|note| number.is_some() && !note.is_empty()))
        };
        if let Some(rest) = list {
            return match parse(rest) {
                (number, None) if number.is_some() || rest.is_empty() => Some(HandoffInput::List(number)),
                _ => None,
            };
        }
        let (is_acknowledged, rest) = take.map(|rest| (true, rest)).or(decline.map(|rest| (false, rest)))?;
        let (number, note) = parse(rest);
        (number.is_some() || rest.is_empty()).then_some(HandoffInput::Answer {
            is_acknowledged,
            number,
            note,
        })
    }

    pub(crate) fn is_all(&self, words: &str) -> bool {
        let words = words.to_lowercase();
        self.commands.all.iter().chain(en::ENGLISH.commands.all).any(|word| matches_typed(word, &words))
    }

    /// Parses a yes or a no of any language, if the person's language is English.
    fn parse_foreign_decision(&self, words: &str) -> Option<TypedCommand> {
        if self.tag != en::ENGLISH.tag {
            return None;
        }
        Self::all().find_map(|other| {
            let contains_words = |list: &[&str]| list.iter().any(|word| matches_typed(word, words));
            if contains_words(other.commands.yes) {
                Some(TypedCommand::Decision { yes: true, is_full_word: true })
            } else if contains_words(other.commands.no) {
                Some(TypedCommand::Decision { yes: false, is_full_word: true })
            } else {
                None
            }
        })
    }
}

impl CommandWords {
    fn find(&self, words: &str) -> Option<TypedCommand> {
        self.word_lists()
            .into_iter()
            .find(|(list, _)| list.iter().any(|word| matches_typed(word, words)))
            .map(|(_, command)| command)
    }

    /// Returns all word lists with their commands. The words for no come first, so that an ambiguous word would mean no.
    pub(super) fn word_lists(&self) -> [(&'static [&'static str], TypedCommand); 19] {
        let decision = |yes, is_full_word| TypedCommand::Decision { yes, is_full_word };
        [
            (self.no, decision(false, true)),
            (self.yes_short, decision(true, false)),
            (self.yes, decision(true, true)),
            (self.more_time, TypedCommand::MoreTime),
            (self.code, TypedCommand::Code),
            (self.details, TypedCommand::Details),
            (self.tools, TypedCommand::Tools),
            (self.repeat, TypedCommand::Repeat),
            (self.history, TypedCommand::History),
            (self.last, TypedCommand::Last),
            (self.status, TypedCommand::Status),
            (self.stop, TypedCommand::Stop),
            (self.quieter, TypedCommand::Quieter),
            (self.louder, TypedCommand::Louder),
            (self.hush, TypedCommand::Hush),
            (self.faster, TypedCommand::Faster),
            (self.slower, TypedCommand::Slower),
            (self.quit, TypedCommand::Quit),
            (self.help, TypedCommand::Help),
        ]
    }
}

/// Returns the rest of a line that starts with these words.
fn strip_words<'t>(words: &str, line: &'t str) -> Option<&'t str> {
    let mut end = 0;
    for _ in words.split(' ') {
        let rest = line.get(end..)?;
        let start = rest.len() - rest.trim_start().len();
        let length = rest.trim_start().find(char::is_whitespace).unwrap_or(rest.len() - start);
        end += start + length;
    }
    let typed = line.get(..end)?.to_lowercase();
    let typed = typed.trim_end_matches(['.', ',', '!']);
    matches_typed(words, typed).then(|| line.get(end..).unwrap_or_default().trim())
}

/// Whether a typed text matches a word: the letters are the same, and the text has no diacritic that the word lacks. People
/// often omit diacritics, but a different diacritic makes a different word.
pub(super) fn matches_typed(word: &str, typed: &str) -> bool {
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
