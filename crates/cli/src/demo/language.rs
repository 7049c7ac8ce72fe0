//! The languages of the demo agent, and translated texts.

use sayso::LocalizedText;

use super::request_details::RequestDetails;

seal::string_enum! {
    /// A language, with its tag.
    pub(super) enum Language {
        English "en",
        Spanish "es",
        Yoruba "yo",
    }
}

impl Language {
    /// Returns the language of a tag. The tag's region is ignored.
    pub(super) fn from_tag(tag: &str) -> Option<Self> {
        let primary = tag.split('-').next().unwrap_or_default();
        Self::ALL.into_iter().find(|language| language.as_str().eq_ignore_ascii_case(primary))
    }

    /// Builds a text in this language with its translations.
    fn localize(self, text_in: impl Fn(Self) -> LocalizedText) -> LocalizedText {
        let others = Self::ALL.into_iter().filter(|other| *other != self);
        others.fold(text_in(self), |text, other| text.in_language(other.as_str(), text_in(other)))
    }
}

pub(super) struct TranslatedText([&'static str; 3]);

/// Creates a text in English, Spanish and Yoruba.
pub(super) const fn translated(en: &'static str, es: &'static str, yo: &'static str) -> TranslatedText {
    TranslatedText([en, es, yo])
}

impl TranslatedText {
    pub(super) fn in_language(&self, language: Language) -> &'static str {
        let Self([en, es, yo]) = self;
        match language {
            Language::English => en,
            Language::Spanish => es,
            Language::Yoruba => yo,
        }
    }

    /// Fills in the details, and returns the text in this language with its translations.
    pub(super) fn localize(&self, primary: Language, details: &RequestDetails) -> LocalizedText {
        primary.localize(|language| LocalizedText::new(details.fill_template(self.in_language(language))))
    }
}

/// The texts of an event: terse, normal and detailed, in each language.
pub(super) struct Phrase {
    pub(super) terse: TranslatedText,
    pub(super) normal: TranslatedText,
    pub(super) detailed: TranslatedText,
}

impl Phrase {
    /// Fills in the details, and returns the texts in this language with their translations.
    pub(super) fn localize(&self, primary: Language, details: &RequestDetails) -> LocalizedText {
        let text_in = |text: &TranslatedText, language| details.fill_template(text.in_language(language));
        primary.localize(|language| {
            LocalizedText::new(text_in(&self.normal, language))
                .terse(text_in(&self.terse, language))
                .detailed(text_in(&self.detailed, language))
        })
    }
}

/// Declares a phrase: rows in English, Spanish and Yoruba, each terse, normal and detailed.
macro_rules! phrase {
    ($en_terse:literal, $en_normal:literal, $en_detailed:literal;
     $es_terse:literal, $es_normal:literal, $es_detailed:literal;
     $yo_terse:literal, $yo_normal:literal, $yo_detailed:literal;) => {
        $crate::demo::language::Phrase {
            terse: $crate::demo::language::translated($en_terse, $es_terse, $yo_terse),
            normal: $crate::demo::language::translated($en_normal, $es_normal, $yo_normal),
            detailed: $crate::demo::language::translated($en_detailed, $es_detailed, $yo_detailed),
        }
    };
}
pub(super) use phrase;
