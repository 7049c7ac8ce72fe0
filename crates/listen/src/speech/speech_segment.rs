//! An announcement as text to speak.

use aaep::event::Urgency;

use super::spoken_form::spoken_form;
use crate::{Announcement, AnnouncementKind, Author, Phrases};

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
        /// Interrupts texts of other priorities. Other texts do not interrupt it.
        Important "important",
        /// Waits for its turn.
        Message "message",
        /// Waits for its turn, and yields to messages from other programs.
        Text "text",
    }
}

impl SpeechSegment {
    /// Converts an announcement to segments. An agent's parts in another language become separate segments, so that each segment
    /// is spoken by a voice for its language. The result is empty if nothing in the announcement can be pronounced.
    pub(super) fn from_announcement(
        announcement: &Announcement,
        with_label: bool,
        phrases: &Phrases,
    ) -> Vec<Self> {
        let text = announcement.text.sanitized();
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
        let mut segments: Vec<Self> = Vec::new();
        let mut push = |part: &str, language: &str, starts_line: bool| match segments.last_mut() {
            Some(last) if last.language == language || !part.chars().any(char::is_alphanumeric) => {
                last.append(part, starts_line);
            }
            _ => segments.push(Self {
                lines: vec![part.trim_start().to_owned()],
                language: language.to_owned(),
                priority,
            }),
        };
        // Both are spoken by one voice if only the region differs.
        let own_language = if phrases.matches_language(language) { language } else { own_language };
        if with_label {
            push(&format!("{}: ", phrases.kind_label(announcement.kind)), own_language, true);
        }
        for (at, line) in text.parts_by_line().enumerate() {
            let mut starts_line = at > 0;
            for (part, author) in line {
                let starts_line = std::mem::take(&mut starts_line);
                match author {
                    Author::Sayso => push(part, own_language, starts_line),
                    // Nothing in a question is shortened.
                    Author::Agent => {
                        let is_complete = announcement.kind == AnnouncementKind::Ask;
                        push(&spoken_form(part, language, is_complete), language, starts_line);
                    }
                }
            }
        }
        segments.retain(|segment| segment.lines().any(|line| line.chars().any(char::is_alphanumeric)));
        segments
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

fn is_language_tag(tag: &str) -> bool {
    (1..=35).contains(&tag.len())
        && tag.starts_with(|c: char| c.is_ascii_alphabetic())
        && tag.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AnnouncementText;
    use crate::announcement_text::TextPart::{self, Agent, Sayso};

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
        fn every_word_is_spoken_once_by_the_voice_of_its_author(
            parts in proptest::collection::vec(("([a-c]{1,3}|[.:,]| |\n|é|¿){0,8}", proptest::bool::ANY), 0..6),
        ) {
            let sentences: Vec<_> =
                parts.iter().map(|(text, is_agent)| if *is_agent { Agent(text) } else { Sayso(text) }).collect();
            let text = AnnouncementText::from_sentences(&sentences);
            let mut announcement = Announcement::new(AnnouncementKind::Ask, text);
            announcement.language = Some("en".into());
            let letters = |text: &str| text.chars().filter(|c| c.is_alphanumeric()).collect::<String>();
            let all = SpeechSegment::from_announcement(&announcement, false, Phrases::for_languages(&["es".to_owned()]));
            for language in ["en", "es"] {
                let spoken: String = all.iter().filter(|one| one.language == language).flat_map(SpeechSegment::lines).collect();
                let written: String = parts.iter().filter(|(_, is_agent)| *is_agent == (language == "en")).map(|(text, _)| text.as_str()).collect();
                proptest::prop_assert_eq!(letters(&spoken), letters(&written));
            }
            proptest::prop_assert!(all.windows(2).all(|pair| pair[0].language != pair[1].language));
        }
    }

    #[test]
    fn addresses_are_shortened_in_speech_but_never_in_a_question_or_in_print() {
        let address = "https://example.org/a/long/path/to/something?x=1";
        let text = AnnouncementText::from_sentences(&[Sayso("The exact call: fetch,"), Agent(address)]);
        let spoken = |kind| {
            let mut announcement = Announcement::new(kind, text.clone());
            announcement.language = Some("en".into());
            assert!(announcement.lines().any(|line| line.contains(address)));
            let all = SpeechSegment::from_announcement(&announcement, false, Phrases::for_languages(&[]));
            all.iter().flat_map(SpeechSegment::lines).collect::<String>()
        };
        assert_eq!(spoken(AnnouncementKind::Agent), "The exact call: fetch, link to example.org.");
        assert_eq!(spoken(AnnouncementKind::Ask), format!("The exact call: fetch, {address}."));
        // sayso's own text is spoken as it is.
        let own = Announcement::new(AnnouncementKind::Notice, address);
        let all = SpeechSegment::from_announcement(&own, false, Phrases::for_languages(&[]));
        assert_eq!(all.iter().flat_map(SpeechSegment::lines).collect::<String>(), address);
    }

    #[test]
    fn texts_in_two_languages_become_separate_segments() {
        let spanish = Phrases::for_languages(&["es".to_owned()]);
        let spoken = |lines: &[&[TextPart<'_>]], language: Option<&str>| -> Vec<(String, String)> {
            let lines: Vec<_> = lines.iter().map(|parts| AnnouncementText::from_sentences(parts)).collect();
            let mut announcement =
                Announcement::new(AnnouncementKind::Ask, AnnouncementText::from_lines(&lines));
            announcement.language = language.map(Into::into);
            let all = SpeechSegment::from_announcement(&announcement, true, spanish);
            all.iter()
                .map(|segment| (segment.language.clone(), segment.lines().collect::<Vec<_>>().join("|")))
                .collect()
        };
        let part = |language: &str, words: &str| (language.to_owned(), words.to_owned());
        let question: [&[TextPart<'_>]; 3] = [
            &[Sayso("Pregunta 1 de Bank:"), Agent("Send it?")],
            &[Sayso("Lo que quiere hacer:"), Agent("Send 5 euros")],
            &[Sayso("Riesgo alto.")],
        ];
        assert_eq!(
            spoken(&question, Some("en")),
            [
                part("es", "pregunta: Pregunta 1 de Bank: "),
                part("en", "Send it?"),
                part("es", "Lo que quiere hacer: "),
                part("en", "Send 5 euros."),
                part("es", "Riesgo alto."),
            ]
        );
        // Text in the listener's language, whatever the region, is one segment. So is text in an unknown language.
        let full_text =
            "pregunta: Pregunta 1 de Bank: Send it?|Lo que quiere hacer: Send 5 euros.|Riesgo alto.";
        assert_eq!(spoken(&question, Some("es-MX")), [part("es-MX", full_text)]);
        assert_eq!(spoken(&question, None), [part("es", full_text)]);
        // Only the author counts, even if the agent and sayso write the same text.
        assert_eq!(
            spoken(&[&[Sayso("Riesgo alto."), Agent("Riesgo alto.")], &[Sayso("Riesgo alto.")]], Some("zh")),
            [part("es", "pregunta: Riesgo alto. "), part("zh", "Riesgo alto."), part("es", "Riesgo alto.")]
        );
        // sayso's own text about an agent's event is in the listener's language.
        assert_eq!(spoken(&[&[Sayso("Riesgo alto.")]], Some("zh")), [part("es", "pregunta: Riesgo alto.")]);
        let lines: [&[TextPart<'_>]; 1] = [&[Agent("one\ntwo")]];
        assert_eq!(spoken(&lines, Some("en")), [part("es", "pregunta: "), part("en", "one|two.")]);
    }
}
