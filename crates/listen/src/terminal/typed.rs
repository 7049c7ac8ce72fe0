//! What a person typed.

use crate::Phrases;
use crate::phrases::Command;

/// A line, as far as it is understood without knowing what is open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Typed<'t> {
    /// Enter alone.
    Nothing,
    /// A yes or a no; `whole` is a whole word, not a letter.
    Decision {
        yes: bool,
        whole: bool,
        question: Option<u32>,
    },
    /// A number alone.
    Number(u32),
    /// `answer …`, or a number and words: the text after the number is for that question, should it be open.
    Answer {
        question: Option<u32>,
        text: &'t str,
        /// It began with the word.
        explicit: bool,
    },
    MoreTime(Option<u32>),
    Details(Option<u32>),
    Repeat(Option<u32>),
    Status,
    Stop(Which),
    Quieter,
    Louder,
    Hush,
    /// Speaks faster, or slower.
    Pace {
        faster: bool,
    },
    Quit,
    Help,
    Other(&'t str),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Which {
    Unsaid,
    One(u32),
    All,
}

impl<'t> Typed<'t> {
    pub(super) fn read(line: &'t str, phrases: &Phrases) -> Self {
        let line = line.trim();
        // Who speaks instead of typing gets a full stop for nothing.
        let words: Vec<&str> = line
            .trim_start_matches('¡')
            .trim_end_matches(['.', '!', ','])
            .split_whitespace()
            .map(|word| word.trim_end_matches(','))
            .collect();
        if line.is_empty() {
            return Self::Nothing;
        }
        if let [word] = words.as_slice()
            && let Some(number) = number(word)
        {
            return Self::Number(number);
        }
        if let Some(command) = command(&words, phrases) {
            return command;
        }
        if let Some(rest) = phrases.after_answer(line) {
            let (second, after) = split(rest);
            return match number(second) {
                Some(question) if !after.is_empty() => {
                    Self::Answer { question: Some(question), text: after, explicit: true }
                }
                _ => Self::Answer { question: None, text: rest, explicit: true },
            };
        }
        let (first, rest) = split(line);
        if let Some(question) = number(first).filter(|_| !rest.is_empty()) {
            return Self::Answer { question: Some(question), text: rest, explicit: false };
        }
        Self::Other(line)
    }
}

/// What the words mean, with a number behind them or, for a yes or a no, also in front.
fn command<'t>(words: &[&str], phrases: &Phrases) -> Option<Typed<'t>> {
    let meaning = |words: &[&str]| phrases.command(&words.join(" "));
    if let Some(command) = meaning(words) {
        return with_number(command, None);
    }
    let (last, before) = words.split_last()?;
    if phrases.is_all(last) && meaning(before) == Some(Command::Stop) {
        return Some(Typed::Stop(Which::All));
    }
    if let Some(number) = number(last) {
        return with_number(meaning(before)?, Some(number));
    }
    let (first, behind) = words.split_first()?;
    let number = number(first)?;
    let decision = meaning(behind).filter(|command| matches!(command, Command::Decision { .. }))?;
    with_number(decision, Some(number))
}

/// None where a number means nothing behind it.
fn with_number<'t>(command: Command, number: Option<u32>) -> Option<Typed<'t>> {
    Some(match (command, number) {
        (Command::Decision { yes, whole }, question) => Typed::Decision { yes, whole, question },
        (Command::MoreTime, question) => Typed::MoreTime(question),
        (Command::Details, question) => Typed::Details(question),
        (Command::Repeat, question) => Typed::Repeat(question),
        (Command::Stop, session) => Typed::Stop(session.map_or(Which::Unsaid, Which::One)),
        (_, Some(_)) => return None,
        (Command::Status, None) => Typed::Status,
        (Command::Quieter, None) => Typed::Quieter,
        (Command::Louder, None) => Typed::Louder,
        (Command::Hush, None) => Typed::Hush,
        (Command::Faster, None) => Typed::Pace { faster: true },
        (Command::Slower, None) => Typed::Pace { faster: false },
        (Command::Quit, None) => Typed::Quit,
        (Command::Help, None) => Typed::Help,
    })
}

/// The same words without the number of a question in front or behind.
pub(super) fn without_number(line: &str) -> &str {
    let line = line.trim();
    match (line.split_once(char::is_whitespace), line.rsplit_once(char::is_whitespace)) {
        (Some((first, rest)), _) if number(first.trim_end_matches(',')).is_some() => rest.trim(),
        (_, Some((rest, last))) if number(last.trim_end_matches(['.', '!', ','])).is_some() => {
            rest.trim().trim_end_matches(',')
        }
        _ => line,
    }
}

fn number(word: &str) -> Option<u32> {
    word.parse().ok()
}

fn split(line: &str) -> (&str, &str) {
    line.split_once(char::is_whitespace).map_or((line, ""), |(first, rest)| (first, rest.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_numbers_are_understood() {
        let decision = |yes, whole, question| Typed::Decision { yes, whole, question };
        for (line, typed) in [
            ("", Typed::Nothing),
            ("  \t", Typed::Nothing),
            ("yes", decision(true, true, None)),
            ("ACCEPT", decision(true, true, None)),
            ("y", decision(true, false, None)),
            ("no 2", decision(false, true, Some(2))),
            ("3 reject", decision(false, true, Some(3))),
            ("1", Typed::Number(1)),
            ("more time", Typed::MoreTime(None)),
            ("more  time 4", Typed::MoreTime(Some(4))),
            ("stop", Typed::Stop(Which::Unsaid)),
            ("stop all", Typed::Stop(Which::All)),
            ("stop 2", Typed::Stop(Which::One(2))),
            ("stop the music", Typed::Other("stop the music")),
            ("answer stop", Typed::Answer { question: None, text: "stop", explicit: true }),
            ("answer 2 Lagos", Typed::Answer { question: Some(2), text: "Lagos", explicit: true }),
            ("answer 2", Typed::Answer { question: None, text: "2", explicit: true }),
            ("2 New York", Typed::Answer { question: Some(2), text: "New York", explicit: false }),
            ("yes please", Typed::Other("yes please")),
            ("Yes.", decision(true, true, None)),
            ("no, 2!", decision(false, true, Some(2))),
            ("sí", decision(true, true, None)),
            ("...", Typed::Other("...")),
            ("Lagos", Typed::Other("Lagos")),
            ("quit", Typed::Quit),
            ("hush", Typed::Hush),
            ("Faster", Typed::Pace { faster: true }),
            ("slower", Typed::Pace { faster: false }),
            ("faster please", Typed::Other("faster please")),
        ] {
            assert_eq!(Typed::read(line, Phrases::of(&[])), typed, "{line:?}");
        }
    }
}
