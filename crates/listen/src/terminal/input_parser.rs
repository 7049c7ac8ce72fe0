//! Parses what a person typed.

use crate::Phrases;
use crate::phrases::TypedCommand;

/// A typed line, parsed without knowing which questions are open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ParsedInput<'t> {
    /// An empty line.
    Empty,
    /// A yes or a no. `is_full_word` is false for a single letter.
    Decision {
        yes: bool,
        is_full_word: bool,
        question: Option<u32>,
    },
    /// Only a number.
    Number(u32),
    /// `answer ...`, or a number and a text. If a question with this number is open, the text answers it.
    Answer {
        question: Option<u32>,
        text: &'t str,
        /// Whether the line starts with the word for "answer".
        explicit: bool,
    },
    MoreTime(Option<u32>),
    /// Reads the latest code, or the code with this number.
    Code(Option<u32>),
    Details(Option<u32>),
    /// Lists the tools of the agents, or of the session with this number.
    Tools(Option<u32>),
    /// Repeats the latest announcement, or the question with this number.
    Repeat(Option<u32>),
    /// The latest announcements with their times, as many as given.
    History(Option<u32>),
    /// The latest announcement with its time.
    Last,
    Status,
    Stop(StopTarget),
    Quieter,
    Louder,
    Hush,
    /// Makes speech faster or slower.
    ChangeRate {
        faster: bool,
    },
    Quit,
    Help,
    Other(&'t str),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StopTarget {
    Unspecified,
    Session(u32),
    All,
}

impl<'t> ParsedInput<'t> {
    pub(super) fn parse(line: &'t str, phrases: &Phrases) -> Self {
        let line = line.trim();
        // Dictation adds punctuation at the end.
        let words: Vec<&str> = line
            .trim_start_matches('¡')
            .trim_end_matches(['.', '!', ','])
            .split_whitespace()
            .map(|word| word.trim_end_matches(','))
            .collect();
        if line.is_empty() {
            return Self::Empty;
        }
        if let [word] = words.as_slice()
            && let Some(number) = parse_number(word)
        {
            return Self::Number(number);
        }
        if let Some(command) = parse_command(&words, phrases) {
            return command;
        }
        if let Some(rest) = phrases.strip_answer_word(line) {
            let (second, after) = split_first_word(rest);
            return match parse_number(second) {
                Some(question) if !after.is_empty() => {
                    Self::Answer { question: Some(question), text: after, explicit: true }
                }
                _ => Self::Answer { question: None, text: rest, explicit: true },
            };
        }
        let (first, rest) = split_first_word(line);
        if let Some(question) = parse_number(first).filter(|_| !rest.is_empty()) {
            return Self::Answer { question: Some(question), text: rest, explicit: false };
        }
        Self::Other(line)
    }
}

/// Parses a command with an optional number after it. For a yes or a no, the number can also come first.
fn parse_command<'t>(words: &[&str], phrases: &Phrases) -> Option<ParsedInput<'t>> {
    let parse_words = |words: &[&str]| phrases.parse_command(&words.join(" "));
    if let Some(command) = parse_words(words) {
        return apply_number(command, None);
    }
    let (last, before) = words.split_last()?;
    if phrases.is_all(last) && parse_words(before) == Some(TypedCommand::Stop) {
        return Some(ParsedInput::Stop(StopTarget::All));
    }
    if let Some(number) = parse_number(last) {
        return apply_number(parse_words(before)?, Some(number));
    }
    let (first, after) = words.split_first()?;
    let number = parse_number(first)?;
    let decision = parse_words(after).filter(|command| matches!(command, TypedCommand::Decision { .. }))?;
    apply_number(decision, Some(number))
}

/// Adds the number to a command. Returns `None` if the command takes no number.
fn apply_number<'t>(command: TypedCommand, number: Option<u32>) -> Option<ParsedInput<'t>> {
    Some(match (command, number) {
        (TypedCommand::Decision { yes, is_full_word }, question) => {
            ParsedInput::Decision { yes, is_full_word, question }
        }
        (TypedCommand::MoreTime, question) => ParsedInput::MoreTime(question),
        (TypedCommand::Code, number) => ParsedInput::Code(number),
        (TypedCommand::Details, question) => ParsedInput::Details(question),
        (TypedCommand::Tools, session) => ParsedInput::Tools(session),
        (TypedCommand::Repeat, question) => ParsedInput::Repeat(question),
        (TypedCommand::History, count) => ParsedInput::History(count),
        (TypedCommand::Stop, session) => {
            ParsedInput::Stop(session.map_or(StopTarget::Unspecified, StopTarget::Session))
        }
        (_, Some(_)) => return None,
        (TypedCommand::Last, None) => ParsedInput::Last,
        (TypedCommand::Status, None) => ParsedInput::Status,
        (TypedCommand::Quieter, None) => ParsedInput::Quieter,
        (TypedCommand::Louder, None) => ParsedInput::Louder,
        (TypedCommand::Hush, None) => ParsedInput::Hush,
        (TypedCommand::Faster, None) => ParsedInput::ChangeRate { faster: true },
        (TypedCommand::Slower, None) => ParsedInput::ChangeRate { faster: false },
        (TypedCommand::Quit, None) => ParsedInput::Quit,
        (TypedCommand::Help, None) => ParsedInput::Help,
    })
}

/// Removes the question's number from the start or end of a line.
pub(super) fn strip_number(line: &str) -> &str {
    let line = line.trim();
    match (line.split_once(char::is_whitespace), line.rsplit_once(char::is_whitespace)) {
        (Some((first, rest)), _) if parse_number(first.trim_end_matches(',')).is_some() => rest.trim(),
        (_, Some((rest, last))) if parse_number(last.trim_end_matches(['.', '!', ','])).is_some() => {
            rest.trim().trim_end_matches(',')
        }
        _ => line,
    }
}

fn parse_number(word: &str) -> Option<u32> {
    word.parse().ok()
}

fn split_first_word(line: &str) -> (&str, &str) {
    line.split_once(char::is_whitespace).map_or((line, ""), |(first, rest)| (first, rest.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_and_numbers_are_parsed() {
        let decision = |yes, is_full_word, question| ParsedInput::Decision { yes, is_full_word, question };
        for (line, expected) in [
            ("", ParsedInput::Empty),
            ("  \t", ParsedInput::Empty),
            ("yes", decision(true, true, None)),
            ("ACCEPT", decision(true, true, None)),
            ("y", decision(true, false, None)),
            ("no 2", decision(false, true, Some(2))),
            ("3 reject", decision(false, true, Some(3))),
            ("1", ParsedInput::Number(1)),
            ("more time", ParsedInput::MoreTime(None)),
            ("more  time 4", ParsedInput::MoreTime(Some(4))),
            ("stop", ParsedInput::Stop(StopTarget::Unspecified)),
            ("stop all", ParsedInput::Stop(StopTarget::All)),
            ("stop 2", ParsedInput::Stop(StopTarget::Session(2))),
            ("stop the music", ParsedInput::Other("stop the music")),
            ("answer stop", ParsedInput::Answer { question: None, text: "stop", explicit: true }),
            ("answer 2 Lagos", ParsedInput::Answer { question: Some(2), text: "Lagos", explicit: true }),
            ("answer 2", ParsedInput::Answer { question: None, text: "2", explicit: true }),
            ("2 New York", ParsedInput::Answer { question: Some(2), text: "New York", explicit: false }),
            ("yes please", ParsedInput::Other("yes please")),
            ("Yes.", decision(true, true, None)),
            ("no, 2!", decision(false, true, Some(2))),
            ("sí", decision(true, true, None)),
            ("...", ParsedInput::Other("...")),
            ("Lagos", ParsedInput::Other("Lagos")),
            ("repeat", ParsedInput::Repeat(None)),
            ("repeat 2", ParsedInput::Repeat(Some(2))),
            ("history", ParsedInput::History(None)),
            ("history 20", ParsedInput::History(Some(20))),
            ("last", ParsedInput::Last),
            ("last week", ParsedInput::Other("last week")),
            ("code", ParsedInput::Code(None)),
            ("code 2", ParsedInput::Code(Some(2))),
            ("tools", ParsedInput::Tools(None)),
            ("tools 2", ParsedInput::Tools(Some(2))),
            ("quit", ParsedInput::Quit),
            ("hush", ParsedInput::Hush),
            ("Faster", ParsedInput::ChangeRate { faster: true }),
            ("slower", ParsedInput::ChangeRate { faster: false }),
            ("faster please", ParsedInput::Other("faster please")),
        ] {
            assert_eq!(ParsedInput::parse(line, Phrases::for_languages(&[])), expected, "{line:?}");
        }
    }
}
