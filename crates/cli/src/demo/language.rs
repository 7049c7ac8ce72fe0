//! The languages that the assistant speaks, and what is said in all of them.

/// A language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Language {
    English,
    Spanish,
    Yoruba,
}

impl Language {
    pub(super) const ALL: [Self; 3] = [Self::English, Self::Spanish, Self::Yoruba];

    /// Its tag, which is also the end of the names of texts in it.
    pub(super) fn tag(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::Spanish => "es",
            Self::Yoruba => "yo",
        }
    }

    /// The language of a tag, whatever its region.
    pub(super) fn of_tag(tag: &str) -> Option<Self> {
        let primary = tag.split('-').next().unwrap_or_default();
        Self::ALL.into_iter().find(|language| language.tag().eq_ignore_ascii_case(primary))
    }

    /// What is said of the language of a session: in this one, and to be had in all.
    pub(super) fn hints(self) -> String {
        let tag = self.tag();
        format!(r#"{{"primary_language":"{tag}","available_languages":["en","es","yo"]}}"#)
    }
}

/// One text in each language.
pub(super) struct Line([&'static str; 3]);

/// The same text in English, Spanish and Yoruba.
pub(super) const fn line(en: &'static str, es: &'static str, yo: &'static str) -> Line {
    Line([en, es, yo])
}

impl Line {
    pub(super) fn to(&self, language: Language) -> &'static str {
        let Self([en, es, yo]) = self;
        match language {
            Language::English => en,
            Language::Spanish => es,
            Language::Yoruba => yo,
        }
    }
}

/// What is said of an event: terse, normal and detailed, in each language.
pub(super) struct Phrase {
    pub(super) terse: Line,
    pub(super) normal: Line,
    pub(super) detailed: Line,
}

/// The same in English, Spanish and Yoruba, each terse, normal and detailed.
pub(super) const fn phrase(en: [&'static str; 3], es: [&'static str; 3], yo: [&'static str; 3]) -> Phrase {
    Phrase {
        terse: line(en[0], es[0], yo[0]),
        normal: line(en[1], es[1], yo[1]),
        detailed: line(en[2], es[2], yo[2]),
    }
}
