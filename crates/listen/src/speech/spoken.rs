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

seal::word_enum! {
    /// The priorities of SSIP that are used. The others let the dispatcher drop what is said.
    pub(super) enum Priority word {
        /// Cuts off what is said with another; never cut off itself.
        Important "important",
        /// Waits for its turn.
        Message "message",
        /// Waits, too, and gives way to messages of other programs.
        Text "text",
    }
}

impl Spoken {
    /// An announcement, as one text or, where an agent's words stand among ours in another language, as several behind each
    /// other, each for its own voice. None, where nothing in it can be pronounced.
    pub(super) fn of(announcement: &Announcement, with_word: bool, phrases: &Phrases) -> Vec<Self> {
        let text = plain(&announcement.text, false);
        if !text.chars().any(char::is_alphanumeric) {
            return Vec::new();
        }
        let own = phrases.language();
        let language = announcement.language.as_deref().filter(|tag| is_tag(tag)).unwrap_or(own);
        let priority = match announcement.urgency {
            Urgency::Critical => Priority::Important,
            Urgency::Background => Priority::Text,
            _ => Priority::Message,
        };
        let mut all: Vec<Self> = Vec::new();
        let mut add = |words: &str, language: &str, begins_a_line: bool| match all.last_mut() {
            Some(last) if last.language == language || !words.chars().any(char::is_alphanumeric) => {
                last.add(words, begins_a_line);
            }
            _ => all.push(Self {
                lines: vec![words.trim_start().to_owned()],
                language: language.to_owned(),
                priority,
            }),
        };
        let quotes = announcement.quotes.as_deref().filter(|_| !phrases.speaks(language));
        if with_word {
            let language = if quotes.is_some() { own } else { language };
            add(&format!("{}: ", phrases.kind(announcement.kind)), language, true);
        }
        for (at, line) in text.lines().enumerate() {
            let mut begins_a_line = at > 0;
            for (words, is_theirs) in quotes.map_or_else(|| vec![(line, true)], |quotes| quoted(line, quotes))
            {
                add(words, if is_theirs { language } else { own }, std::mem::take(&mut begins_a_line));
            }
        }
        all.retain(|one| one.lines().any(|line| line.chars().any(char::is_alphanumeric)));
        all
    }

    fn add(&mut self, words: &str, begins_a_line: bool) {
        match self.lines.last_mut() {
            Some(line) if !begins_a_line => line.push_str(words),
            _ => self.lines.push(words.to_owned()),
        }
    }

    /// Its lines; none has an end of a line or a control character in it.
    pub(super) fn lines(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().map(String::as_str)
    }

    pub(super) fn length(&self) -> usize {
        self.lines.iter().map(|line| line.chars().count()).sum()
    }
}

/// A line in parts, and whether each is one of the quotes. A stop behind a quote goes with it.
fn quoted<'l>(line: &'l str, quotes: &[String]) -> Vec<(&'l str, bool)> {
    let mut parts = Vec::new();
    let mut from = 0;
    while let Some(rest) = line.get(from..).filter(|rest| !rest.is_empty()) {
        let found = quotes.iter().filter_map(|quote| Some((place(rest, quote)?, quote.len())));
        // The first; of those that begin there, the longest.
        let Some((at, length)) = found.min_by_key(|(at, length)| (*at, usize::MAX - length)) else {
            parts.push((rest, false));
            break;
        };
        let (before, from_quote) = rest.split_at(at);
        let stops = from_quote.get(length..).unwrap_or_default().chars();
        let stops: usize = stops.take_while(|c| ".!?:;,".contains(*c)).map(char::len_utf8).sum();
        let (quote, _) = from_quote.split_at(length + stops);
        if !before.is_empty() {
            parts.push((before, false));
        }
        parts.push((quote, true));
        from += at + length + stops;
    }
    parts
}

/// Where whole words of a text are these.
fn place(text: &str, words: &str) -> Option<usize> {
    let is_letter = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    text.match_indices(words).map(|(at, _)| at).find(|at| {
        let (before, rest) = text.split_at(*at);
        !is_letter(before.chars().next_back())
            && !is_letter(rest.get(words.len()..).and_then(|behind| behind.chars().next()))
    })
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
            let spoken = Spoken::of(&announcement, with_word, Phrases::of(&[]));
            assert_eq!(spoken.len(), 1);
            spoken.iter().flat_map(Spoken::lines).map(str::to_owned).collect()
        };
        assert_eq!(lines(true), ["notice: One.", "Two."]);
        assert_eq!(lines(false), ["One.", "Two."]);
        let nothing = Announcement::own(Kind::Agent, ". … \u{202e}\n—");
        assert_eq!(Spoken::of(&nothing, true, Phrases::of(&[])), []);
    }

    proptest::proptest! {
        #[test]
        fn whatever_is_quoted_each_word_is_said_once(
            text in "([a-c]{1,3}|[.:,]| |\n|é|¿){0,30}",
            quotes in proptest::collection::vec("[a-c]{1,3}([ .][a-c]{1,3}){0,2}", 0..4),
        ) {
            let mut announcement = Announcement::own(Kind::Ask, text.clone());
            announcement.language = Some("en".into());
            announcement.quotes = Some(quotes);
            let letters = |text: &str| text.chars().filter(|c| c.is_alphanumeric()).collect::<String>();
            let all = Spoken::of(&announcement, false, Phrases::of(&["es".to_owned()]));
            let said: String = all.iter().flat_map(Spoken::lines).collect();
            proptest::prop_assert_eq!(letters(&said), letters(&text));
            proptest::prop_assert!(all.windows(2).all(|pair| pair[0].language != pair[1].language));
        }
    }

    #[test]
    fn words_of_two_languages_are_for_two_voices() {
        let spanish = Phrases::of(&["es".to_owned()]);
        let spoken = |text: &str, language: Option<&str>, quotes: &[&str]| -> Vec<(String, String)> {
            let mut announcement = Announcement::own(Kind::Ask, text);
            announcement.language = language.map(Into::into);
            announcement.quotes = Some(quotes.iter().map(|quote| (*quote).to_owned()).collect());
            let all = Spoken::of(&announcement, true, spanish);
            all.iter().map(|one| (one.language.clone(), one.lines().collect::<Vec<_>>().join("|"))).collect()
        };
        let part = |language: &str, words: &str| (language.to_owned(), words.to_owned());
        let question = "Pregunta 1, de Bank: Send it?\nLo que haría: Send 5 euro.\nEl riesgo es alto.";
        assert_eq!(
            spoken(question, Some("en"), &["Send it?", "Send 5 euro", "alto que"]),
            [
                part("es", "pregunta: Pregunta 1, de Bank: "),
                part("en", "Send it?"),
                part("es", "Lo que haría: "),
                part("en", "Send 5 euro."),
                part("es", "El riesgo es alto."),
            ]
        );
        // Of one language, whatever its region, is one text; so is what nobody quoted.
        let whole = question.replacen('P', "pregunta: P", 1).replace('\n', "|");
        assert_eq!(spoken(question, Some("es-MX"), &["Send it?"]), [part("es-MX", &whole)]);
        assert_eq!(spoken(question, None, &[]), [part("es", &whole)]);
        // Part of a word is no quote, and of two that begin together the longer is.
        assert_eq!(
            spoken("Paso a paso, as I said.", Some("en"), &["as", "a", "as I said"]),
            [
                part("es", "pregunta: Paso "),
                part("en", "a"),
                part("es", " paso, ".trim_start()),
                part("en", "as I said.")
            ]
        );
    }
}
