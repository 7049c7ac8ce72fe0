//! The gates' own sentences, in every language that sayso supports.
//!
//! `texts` is the table. A text from the agent, such as a command or a result, is inserted unchanged.

pub(crate) mod texts;

use seal::json::JsonWriter;

/// A language of the gates. The first one is the language of the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// English.
    English,
    /// Spanish.
    Spanish,
    /// Yoruba.
    Yoruba,
}

impl Language {
    /// All languages.
    pub const ALL: [Self; 3] = [Self::English, Self::Spanish, Self::Yoruba];

    /// Returns the language tag.
    pub fn tag(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::Spanish => "es",
            Self::Yoruba => "yo",
        }
    }

    /// Returns the suffix of the name of a member whose text is in this language (AAEP §11.5.1).
    fn suffix(self) -> &'static str {
        match self {
            Self::English => "",
            Self::Spanish => "_es",
            Self::Yoruba => "_yo",
        }
    }
}

/// A sentence in each language. `{}` stands for the next argument.
#[derive(Clone, Copy, Debug)]
pub struct Phrase([&'static str; 3]);

impl Phrase {
    /// Returns the sentence with these arguments. The languages have them in the same order.
    pub(crate) fn fill(&self, language: Language, arguments: &[&str]) -> String {
        let [english, spanish, yoruba] = self.0;
        let text = match language {
            Language::English => english,
            Language::Spanish => spanish,
            Language::Yoruba => yoruba,
        };
        let mut filled = String::with_capacity(text.len());
        let mut arguments = arguments.iter();
        for (index, part) in text.split("{}").enumerate() {
            if index > 0 {
                filled.push_str(arguments.next().copied().unwrap_or_default());
            }
            filled.push_str(part);
        }
        filled
    }

    /// Returns the sentence with the same arguments in each language.
    pub(crate) fn with(&self, arguments: &[&str]) -> GateText {
        GateText::new(|language| self.fill(language, arguments))
    }
}

/// A text in each language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GateText([String; 3]);

impl GateText {
    /// Writes a text in each language.
    pub fn new(text: impl Fn(Language) -> String) -> Self {
        Self(Language::ALL.map(text))
    }

    /// Returns the text in English.
    pub fn english(&self) -> &str {
        &self.0[0]
    }

    /// Returns the text in a language.
    pub(crate) fn text(&self, language: Language) -> &str {
        let [english, spanish, yoruba] = &self.0;
        match language {
            Language::English => english,
            Language::Spanish => spanish,
            Language::Yoruba => yoruba,
        }
    }

    /// Applies a function to the text in each language.
    pub(crate) fn map(&self, change: impl Fn(&str) -> String) -> Self {
        Self::new(|language| change(self.text(language)))
    }

    /// Writes the text as the member `name`, and its translations beside it.
    pub(crate) fn write(&self, out: &mut JsonWriter, name: &str) {
        for language in Language::ALL {
            out.key(&format!("{name}{}", language.suffix())).text(self.text(language));
        }
    }
}

/// Fills a sentence with another one.
pub(crate) fn around(phrase: &Phrase, inner: &GateText) -> GateText {
    GateText::new(|language| phrase.fill(language, &[inner.text(language)]))
}

impl From<&Phrase> for GateText {
    fn from(phrase: &Phrase) -> Self {
        phrase.with(&[])
    }
}

/// A text from the agent, which is the same in each language.
impl From<String> for GateText {
    fn from(text: String) -> Self {
        Self::new(|_| text.clone())
    }
}

impl From<GateText> for sayso::LocalizedText {
    fn from(text: GateText) -> Self {
        let [english, spanish, yoruba] = text.0;
        Self::new(english)
            .in_language(Language::Spanish.tag(), spanish)
            .in_language(Language::Yoruba.tag(), yoruba)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_phrase_has_the_same_arguments_in_each_language() {
        for (name, Phrase(texts)) in texts::ALL {
            let counts = texts.map(|text| text.matches("{}").count());
            assert!(counts.iter().all(|count| *count == counts[0]), "{name}: {counts:?}");
            assert!(texts.iter().all(|text| !text.is_empty()), "{name}");
            let [english, spanish, yoruba] = texts;
            assert!(english != spanish && spanish != yoruba && english != yoruba, "{name} is not translated");
        }
        assert!(texts::ALL.len() > 60);
    }

    #[test]
    fn arguments_are_inserted_as_they_are() {
        let text = texts::RUN.with(&["echo {} {}"]);
        assert_eq!(text.english(), "Run: echo {} {}");
        let written = seal::json::write_object(|out| text.write(out, "action"));
        assert!(written.contains(r#""action_es":"Ejecutar: echo {} {}""#), "{written}");
    }
}
