//! What a person typed.

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

/// Which sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Which {
    Unsaid,
    One(u32),
    All,
}

impl<'t> Typed<'t> {
    pub(super) fn read(line: &'t str) -> Self {
        let line = line.trim();
        let lower = line.to_lowercase();
        // Who speaks instead of typing gets a full stop for nothing.
        let words: Vec<&str> = lower
            .trim_end_matches(['.', '!', ','])
            .split_whitespace()
            .map(|word| word.trim_end_matches(','))
            .collect();
        let number = |word: &str| word.parse::<u32>().ok();
        match words.as_slice() {
            [] if line.is_empty() => return Self::Nothing,
            [word] => {
                if let Some((yes, whole)) = decision(word) {
                    return Self::Decision { yes, whole, question: None };
                }
                if let Some(number) = number(word) {
                    return Self::Number(number);
                }
            }
            [first, second] => {
                if let (Some((yes, whole)), Some(number)) = (decision(first), number(second)) {
                    return Self::Decision { yes, whole, question: Some(number) };
                }
                if let (Some(number), Some((yes, whole))) = (number(first), decision(second)) {
                    return Self::Decision { yes, whole, question: Some(number) };
                }
            }
            _ => {}
        }
        let optional = |rest: &[&str]| match rest {
            [] => Some(None),
            [word] => number(word).map(Some),
            _ => None,
        };
        let command = match words.as_slice() {
            ["more", "time", rest @ ..] => optional(rest).map(Self::MoreTime),
            ["details", rest @ ..] => optional(rest).map(Self::Details),
            ["repeat", rest @ ..] => optional(rest).map(Self::Repeat),
            ["status"] => Some(Self::Status),
            ["stop"] => Some(Self::Stop(Which::Unsaid)),
            ["stop", "all"] => Some(Self::Stop(Which::All)),
            ["stop", word] => number(word).map(|number| Self::Stop(Which::One(number))),
            ["quieter"] => Some(Self::Quieter),
            ["louder"] => Some(Self::Louder),
            ["hush"] => Some(Self::Hush),
            ["faster"] => Some(Self::Pace { faster: true }),
            ["slower"] => Some(Self::Pace { faster: false }),
            ["quit" | "exit"] => Some(Self::Quit),
            ["help" | "?"] => Some(Self::Help),
            _ => None,
        };
        if let Some(command) = command {
            return command;
        }
        let (first, rest) = split(line);
        if first.eq_ignore_ascii_case("answer") && !rest.is_empty() {
            let (second, after) = split(rest);
            return match number(second) {
                Some(question) if !after.is_empty() => Self::Answer { question: Some(question), text: after },
                _ => Self::Answer { question: None, text: rest },
            };
        }
        if let Some(question) = number(first).filter(|_| !rest.is_empty()) {
            return Self::Answer { question: Some(question), text: rest };
        }
        Self::Other(line)
    }
}

fn decision(word: &str) -> Option<(bool, bool)> {
    match word {
        "yes" | "accept" | "sí" | "si" | "bẹ́ẹ̀ni" => Some((true, true)),
        "y" => Some((true, false)),
        "no" | "reject" | "n" | "bẹ́ẹ̀kọ́" | "rárá" => Some((false, true)),
        _ => None,
    }
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
            ("answer stop", Typed::Answer { question: None, text: "stop" }),
            ("answer 2 Lagos", Typed::Answer { question: Some(2), text: "Lagos" }),
            ("answer 2", Typed::Answer { question: None, text: "2" }),
            ("2 New York", Typed::Answer { question: Some(2), text: "New York" }),
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
            assert_eq!(Typed::read(line), typed, "{line:?}");
        }
    }
}
