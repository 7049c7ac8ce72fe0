//! An announcement as text to speak.

use aaep::event::Urgency;

use crate::{Announcement, Phrases, sanitize};

/// A text to speak, with its language and priority. Markup in the text is not interpreted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SpeechSegment {
    lines: Vec<String>,
    /// A language tag with only letters, digits and hyphens.
    pub(super) language: String,
    pub(super) priority: SsipPriority,
}

seal::string_enum! {
    /// The SSIP priorities that sayso uses. Texts with other priorities may be dropped by the dispatcher.
    pub(super) enum SsipPriority {
        /// Interrupts texts of other priorities and is never interrupted itself.
        Important "important",
        /// Waits for its turn.
        Message "message",
        /// Waits for its turn, and yields to messages of other programs.
        Text "text",
    }
}

impl SpeechSegment {
    /// Converts an announcement to segments. Quotes of an agent's text in another language become separate segments, so that each
    /// segment is spoken by a voice for its language. The result is empty if nothing in the announcement can be pronounced.
    pub(super) fn from_announcement(
        announcement: &Announcement,
        with_label: bool,
        phrases: &Phrases,
    ) -> Vec<Self> {
        let text = sanitize(&announcement.text, false);
        if !text.chars().any(char::is_alphanumeric) {
            return Vec::new();
        }
        let own_language = phrases.language();
        let language =
            announcement.language.as_deref().filter(|tag| is_language_tag(tag)).unwrap_or(own_language);
        let priority = match announcement.urgency {
            Urgency::Critical => SsipPriority::Important,
            Urgency::Background => SsipPriority::Text,
            _ => SsipPriority::Message,
        };
        let mut all: Vec<Self> = Vec::new();
        let mut push = |part: &str, language: &str, starts_line: bool| match all.last_mut() {
            Some(last) if last.language == language || !part.chars().any(char::is_alphanumeric) => {
                last.append(part, starts_line);
            }
            _ => all.push(Self {
                lines: vec![part.trim_start().to_owned()],
                language: language.to_owned(),
                priority,
            }),
        };
        let quotes = announcement.quotes.as_deref().filter(|_| !phrases.matches_language(language));
        if with_label {
            let language = if quotes.is_some() { own_language } else { language };
            push(&format!("{}: ", phrases.kind_label(announcement.kind)), language, true);
        }
        for (at, line) in text.lines().enumerate() {
            let mut starts_line = at > 0;
            for (part, is_quote) in
                quotes.map_or_else(|| vec![(line, true)], |quotes| split_quotes(line, quotes))
            {
                push(part, if is_quote { language } else { own_language }, std::mem::take(&mut starts_line));
            }
        }
        all.retain(|segment| segment.lines().any(|line| line.chars().any(char::is_alphanumeric)));
        all
    }

    fn append(&mut self, part: &str, starts_line: bool) {
        match self.lines.last_mut() {
            Some(line) if !starts_line => line.push_str(part),
            _ => self.lines.push(part.to_owned()),
        }
    }

    /// Returns its lines. They contain no line ends or control characters.
    pub(super) fn lines(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().map(String::as_str)
    }

    pub(super) fn char_count(&self) -> usize {
        self.lines.iter().map(|line| line.chars().count()).sum()
    }
}

/// Splits a line into parts and marks the parts that are quotes. Punctuation after a quote belongs to the quote.
fn split_quotes<'l>(line: &'l str, quotes: &[String]) -> Vec<(&'l str, bool)> {
    let mut parts = Vec::new();
    let mut start = 0;
    while let Some(rest) = line.get(start..).filter(|rest| !rest.is_empty()) {
        let found = quotes.iter().filter_map(|quote| Some((find_words(rest, quote)?, quote.len())));
        // Takes the first match, or the longest one if several start at the same position.
        let Some((at, length)) = found.min_by_key(|(at, length)| (*at, usize::MAX - length)) else {
            parts.push((rest, false));
            break;
        };
        let (before, from_quote) = rest.split_at(at);
        let after = from_quote.get(length..).unwrap_or_default().chars();
        let punctuation: usize = after.take_while(|c| ".!?:;,".contains(*c)).map(char::len_utf8).sum();
        let (quote, _) = from_quote.split_at(length + punctuation);
        if !before.is_empty() {
            parts.push((before, false));
        }
        parts.push((quote, true));
        start += at + length + punctuation;
    }
    parts
}

/// Returns the first position in a text where `words` starts and ends at a word boundary.
fn find_words(text: &str, words: &str) -> Option<usize> {
    let is_letter = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    text.match_indices(words).map(|(at, _)| at).find(|at| {
        let (before, rest) = text.split_at(*at);
        !is_letter(before.chars().next_back())
            && !is_letter(rest.get(words.len()..).and_then(|after| after.chars().next()))
    })
}

fn is_language_tag(tag: &str) -> bool {
    (1..=35).contains(&tag.len())
        && tag.starts_with(|c: char| c.is_ascii_alphabetic())
        && tag.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AnnouncementKind;

    #[test]
    fn only_valid_language_tags_are_accepted() {
        for tag in ["en", "pt-BR", "zh-Hant-TW", "x-klingon"] {
            assert!(is_language_tag(tag), "{tag}");
        }
        for tag in ["", "-m", "en\r\nSPEAK", "en us", "../x", "ünï", &"a".repeat(36)] {
            assert!(!is_language_tag(tag), "{tag:?}");
        }
    }

    #[test]
    fn the_label_is_optional_and_unpronounceable_text_is_skipped() {
        let announcement = Announcement::new(AnnouncementKind::Notice, "One.\nTwo.");
        let lines = |with_label| -> Vec<String> {
            let spoken =
                SpeechSegment::from_announcement(&announcement, with_label, Phrases::for_languages(&[]));
            assert_eq!(spoken.len(), 1);
            spoken.iter().flat_map(SpeechSegment::lines).map(str::to_owned).collect()
        };
        assert_eq!(lines(true), ["notice: One.", "Two."]);
        assert_eq!(lines(false), ["One.", "Two."]);
        let nothing = Announcement::new(AnnouncementKind::Agent, ". … \u{202e}\n—");
        assert_eq!(SpeechSegment::from_announcement(&nothing, true, Phrases::for_languages(&[])), []);
    }

    proptest::proptest! {
        #[test]
        fn every_word_is_spoken_once_regardless_of_quotes(
            text in "([a-c]{1,3}|[.:,]| |\n|é|¿){0,30}",
            quotes in proptest::collection::vec("[a-c]{1,3}([ .][a-c]{1,3}){0,2}", 0..4),
        ) {
            let mut announcement = Announcement::new(AnnouncementKind::Ask, text.clone());
            announcement.language = Some("en".into());
            announcement.quotes = Some(quotes);
            let letters = |text: &str| text.chars().filter(|c| c.is_alphanumeric()).collect::<String>();
            let all = SpeechSegment::from_announcement(&announcement, false, Phrases::for_languages(&["es".to_owned()]));
            let spoken: String = all.iter().flat_map(SpeechSegment::lines).collect();
            proptest::prop_assert_eq!(letters(&spoken), letters(&text));
            proptest::prop_assert!(all.windows(2).all(|pair| pair[0].language != pair[1].language));
        }
    }

    #[test]
    fn texts_in_two_languages_become_separate_segments() {
        let spanish = Phrases::for_languages(&["es".to_owned()]);
        let spoken = |text: &str, language: Option<&str>, quotes: &[&str]| -> Vec<(String, String)> {
            let mut announcement = Announcement::new(AnnouncementKind::Ask, text);
            announcement.language = language.map(Into::into);
            announcement.quotes = Some(quotes.iter().map(|quote| (*quote).to_owned()).collect());
            let all = SpeechSegment::from_announcement(&announcement, true, spanish);
            all.iter()
                .map(|segment| (segment.language.clone(), segment.lines().collect::<Vec<_>>().join("|")))
                .collect()
        };
        let part = |language: &str, words: &str| (language.to_owned(), words.to_owned());
        let question = "Pregunta 1 de Bank: Send it?\nLo que quiere hacer: Send 5 euro.\nRiesgo alto.";
        assert_eq!(
            spoken(question, Some("en"), &["Send it?", "Send 5 euro", "alto que"]),
            [
                part("es", "pregunta: Pregunta 1 de Bank: "),
                part("en", "Send it?"),
                part("es", "Lo que quiere hacer: "),
                part("en", "Send 5 euro."),
                part("es", "Riesgo alto."),
            ]
        );
        // Text in the listener's language, whatever the region, is one segment. So is text without quotes.
        let full_text = question.replacen('P', "pregunta: P", 1).replace('\n', "|");
        assert_eq!(spoken(question, Some("es-MX"), &["Send it?"]), [part("es-MX", &full_text)]);
        assert_eq!(spoken(question, None, &[]), [part("es", &full_text)]);
        // A part of a word is not a quote. If two quotes start at the same position, the longer one counts.
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
