//! The languages that the assistant speaks, and what is said in all of them.

use sayso::Words;

use super::named::Named;

seal::word_enum! {
    /// A language. Its tag is also the end of the names of texts in it.
    pub(super) enum Language tag {
        English "en",
        Spanish "es",
        Yoruba "yo",
    }
}

impl Language {
    /// The language of a tag, whatever its region.
    pub(super) fn of_tag(tag: &str) -> Option<Self> {
        let primary = tag.split('-').next().unwrap_or_default();
        Self::ALL.into_iter().find(|language| language.tag().eq_ignore_ascii_case(primary))
    }

    /// Words in this language, with those in the others beside them.
    fn first(self, to: impl Fn(Self) -> Words) -> Words {
        let others = Self::ALL.into_iter().filter(|other| *other != self);
        others.fold(to(self), |words, other| words.in_language(other.tag(), to(other)))
    }
}

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

    /// With what was named, in this language and in the others beside it.
    pub(super) fn words(&self, own: Language, named: &Named) -> Words {
        own.first(|language| Words::new(named.fill(self.to(language))))
    }
}

/// What is said of an event: terse, normal and detailed, in each language.
pub(super) struct Phrase {
    pub(super) terse: Line,
    pub(super) normal: Line,
    pub(super) detailed: Line,
}

impl Phrase {
    /// With what was named, in this language and in the others beside it.
    pub(super) fn words(&self, own: Language, named: &Named) -> Words {
        let to = |line: &Line, language| named.fill(line.to(language));
        own.first(|language| {
            Words::new(to(&self.normal, language))
                .terse(to(&self.terse, language))
                .detailed(to(&self.detailed, language))
        })
    }
}

/// The same in English, Spanish and Yoruba, a row each: terse, normal and detailed.
macro_rules! phrase {
    ($en:literal, $en_normal:literal, $en_detailed:literal;
     $es:literal, $es_normal:literal, $es_detailed:literal;
     $yo:literal, $yo_normal:literal, $yo_detailed:literal;) => {
        $crate::demo::language::Phrase {
            terse: $crate::demo::language::line($en, $es, $yo),
            normal: $crate::demo::language::line($en_normal, $es_normal, $yo_normal),
            detailed: $crate::demo::language::line($en_detailed, $es_detailed, $yo_detailed),
        }
    };
}
pub(super) use phrase;
