//! Text in up to three lengths and in several languages.

use std::borrow::Cow;

use seal::json::TapeWriter;

use crate::redact::CountingRedactor;

/// A text that people hear. It can have a terse form, a detailed form and translations.
///
/// ```
/// use sayso::LocalizedText;
/// let text = LocalizedText::new("Looking up the weather in Oslo.").terse("Weather in Oslo.");
/// let plain: LocalizedText = "Thinking.".into();
/// let bilingual = LocalizedText::new("It is raining.").in_language("es", "Llueve.");
/// # let _ = (text, plain, bilingual);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use = "a builder does nothing by itself"]
pub struct LocalizedText {
    normal: String,
    terse: Option<String>,
    detailed: Option<String>,
    /// Translations, by language tag.
    translations: Vec<(String, LocalizedText)>,
    /// Whether the text comes from the library, in English, and not from the agent's author.
    pub(crate) is_library_text: bool,
}

impl LocalizedText {
    /// Creates a text of normal length.
    pub fn new(normal: impl Into<String>) -> Self {
        Self { normal: normal.into(), ..Self::default() }
    }

    /// Creates a default text of the library, for events without a text from the author.
    pub(crate) fn library_text(normal: String) -> Self {
        Self { is_library_text: true, ..Self::new(normal) }
    }

    setters! {
        /// Adds a terse form.
        terse(terse: impl Into<String>) => terse = Some(terse.into());

        /// Adds a detailed form.
        detailed(detailed: impl Into<String>) => detailed = Some(detailed.into());
    }

    /// Adds a translation, by its language tag (§11.5.1). Listeners with that language hear the translation; all others hear the
    /// original, which is in the session's language.
    ///
    /// A translation provides only the lengths (terse, normal, detailed) that the original has. If it lacks one of them, its normal
    /// text is used.
    ///
    /// ```
    /// # testing::run_example!(hub, {
    /// use sayso::LocalizedText;
    /// let session = hub.session("What is the weather?").start().await?;
    /// let text = LocalizedText::new("It is raining in Oslo.")
    ///     .terse("Rain.")
    ///     .in_language("es", LocalizedText::new("Llueve en Oslo.").terse("Lluvia."))
    ///     .in_language("yo", "Òjò ń rọ̀ ní Oslo.");
    /// session.finish(text).await?;
    /// # });
    /// ```
    pub fn in_language(mut self, tag: impl Into<String>, translation: impl Into<Self>) -> Self {
        let (tag, translation) = (tag.into(), translation.into());
        self.translations.retain(|(known, _)| !known.eq_ignore_ascii_case(&tag));
        self.translations.push((tag, translation));
        self
    }

    /// Writes the summaries in all lengths and languages, redacted.
    pub(crate) fn write_summaries(&self, out: &mut TapeWriter, redactor: &CountingRedactor) {
        self.redacted(redactor).write_summaries(out);
    }

    /// Writes the normal form of `other`, another text of the same event, as the member `name`, with its translations. If it has none,
    /// its text is repeated for each language of this text, because listeners get an event in a language only if every text of it
    /// has that language.
    pub(crate) fn write_companion_text(
        &self,
        out: &mut TapeWriter,
        redactor: &CountingRedactor,
        name: &str,
        other: &Self,
    ) {
        if !other.translations.is_empty() {
            return other.redacted(redactor).write_as(out, name);
        }
        let text = redactor.redact(&other.normal);
        out.key(name).text(&text);
        for (tag, _) in &self.translations {
            out.key(&localized_member_name(name, tag)).text(&text);
        }
    }

    /// Like [`Self::write_companion_text`]. Writes nothing if there is no other text.
    pub(crate) fn write_optional_companion_text(
        &self,
        out: &mut TapeWriter,
        redactor: &CountingRedactor,
        name: &str,
        other: Option<&Self>,
    ) {
        if let Some(other) = other {
            self.write_companion_text(out, redactor, name, other);
        }
    }

    /// Returns the language tags of the translations.
    pub(crate) fn languages(&self) -> impl Iterator<Item = &str> {
        self.translations.iter().map(|(tag, _)| tag.as_str())
    }

    /// Returns the normal text in a language. Without any translations, returns the original. If only this translation is missing,
    /// returns `None`.
    pub(crate) fn text_for_language(&self, tag: &str) -> Option<&str> {
        if self.translations.is_empty() {
            return Some(&self.normal);
        }
        let known = self.translations.iter().find(|(known, _)| known.eq_ignore_ascii_case(tag));
        known.map(|(_, translation)| translation.normal.as_str())
    }

    /// Applies a function to each text.
    pub(crate) fn map_texts(&self, map: &impl Fn(&str) -> String) -> Self {
        Self {
            normal: map(&self.normal),
            terse: self.terse.as_deref().map(map),
            detailed: self.detailed.as_deref().map(map),
            translations: self
                .translations
                .iter()
                .map(|(tag, translation)| (tag.clone(), translation.map_texts(map)))
                .collect(),
            is_library_text: self.is_library_text,
        }
    }

    /// Returns the normal form only, in all languages.
    pub(crate) fn normal_only(&self) -> Self {
        let translations =
            self.translations.iter().map(|(tag, translation)| (tag.clone(), translation.normal_only()));
        Self {
            normal: self.normal.clone(),
            translations: translations.collect(),
            is_library_text: self.is_library_text,
            ..Self::default()
        }
    }

    pub(crate) fn is_single_text(&self) -> bool {
        self.terse.is_none() && self.detailed.is_none() && self.translations.is_empty()
    }

    pub(crate) fn normal(&self) -> &str {
        &self.normal
    }

    /// Returns the text without secrets. Secrets are searched for and counted once, however often the result is written.
    pub(crate) fn redacted(&self, redactor: &CountingRedactor) -> RedactedText<'_> {
        self.redacted_like(self, redactor)
    }

    /// Returns the redacted text in the lengths that `original` has.
    fn redacted_like<'t>(&'t self, original: &Self, redactor: &CountingRedactor) -> RedactedText<'t> {
        let redact = |is_used: bool, text: &'t Option<String>| {
            text.as_ref().filter(|_| is_used).map(|text| redactor.redact(text))
        };
        let translations = self.translations.iter();
        RedactedText {
            normal: redactor.redact(&self.normal),
            terse: redact(original.terse.is_some(), &self.terse),
            detailed: redact(original.detailed.is_some(), &self.detailed),
            translations: translations
                .map(|(tag, translation)| (tag.as_str(), translation.redacted_like(original, redactor)))
                .collect(),
        }
    }
}

/// A text without secrets. It needs no further redaction.
pub(crate) struct RedactedText<'t> {
    normal: Cow<'t, str>,
    terse: Option<Cow<'t, str>>,
    detailed: Option<Cow<'t, str>>,
    translations: Vec<(&'t str, RedactedText<'t>)>,
}

impl RedactedText<'_> {
    /// Writes the summaries in all lengths and languages.
    pub(crate) fn write_summaries(&self, out: &mut TapeWriter) {
        if self.terse.is_some() {
            self.write_translated(out, "summary_terse", |text| text.terse.as_ref().unwrap_or(&text.normal));
        }
        self.write_as(out, "summary_normal");
        if self.detailed.is_some() {
            self.write_translated(out, "summary_detailed", |text| {
                text.detailed.as_ref().unwrap_or(&text.normal)
            });
        }
    }

    /// Writes the normal form as the member `name`.
    pub(crate) fn write_as(&self, out: &mut TapeWriter, name: &str) {
        self.write_translated(out, name, |text| &text.normal);
    }

    fn write_translated<'c>(
        &'c self,
        out: &mut TapeWriter,
        name: &str,
        text_of: impl Fn(&'c Self) -> &'c str,
    ) {
        out.key(name).text(text_of(self));
        for (tag, translation) in &self.translations {
            out.key(&localized_member_name(name, tag)).text(text_of(translation));
        }
    }

    /// Concatenates two texts, in the languages that both have.
    pub(crate) fn concat(&self, after: &Self) -> LocalizedText {
        let mut both = LocalizedText::new(format!("{} {}", self.normal, after.normal));
        for (tag, other) in &self.translations {
            if let Some((_, next)) =
                after.translations.iter().find(|(known, _)| known.eq_ignore_ascii_case(tag))
            {
                both = both.in_language(*tag, format!("{} {}", other.normal, next.normal));
            }
        }
        both
    }

    pub(crate) fn normal(&self) -> &str {
        &self.normal
    }
}

impl From<&str> for LocalizedText {
    fn from(normal: &str) -> Self {
        Self::new(normal)
    }
}

impl From<String> for LocalizedText {
    fn from(normal: String) -> Self {
        Self::new(normal)
    }
}

/// Returns the name of the member that contains the translation of the member `name` (§11.5.1, C-H1).
pub(crate) fn localized_member_name(name: &str, tag: &str) -> String {
    format!("{name}_{}", tag.to_ascii_lowercase().replace('-', "_"))
}

/// Returns a tool's name in a readable form: `send_email` and `sendEmail` both become "Send email".
pub(crate) fn humanize_name(name: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    let mut previous = None;
    for letter in name.chars() {
        let starts_word = letter.is_uppercase() && previous.is_some_and(char::is_lowercase);
        let after_separator = previous.is_none_or(|previous: char| !previous.is_alphanumeric());
        if letter.is_alphanumeric() {
            match words.last_mut() {
                Some(word) if !after_separator && !starts_word => word.push(letter),
                _ => words.push(letter.to_string()),
            }
        }
        previous = Some(letter);
    }
    for (at, word) in words.iter_mut().enumerate() {
        let is_acronym = word.chars().count() > 1 && !word.chars().any(char::is_lowercase);
        let mut letters = word.chars();
        if let Some(first) = letters.next().filter(|_| !is_acronym) {
            let first: String =
                if at == 0 { first.to_uppercase().collect() } else { first.to_lowercase().collect() };
            *word = first + letters.as_str();
        }
    }
    if words.is_empty() { name.to_owned() } else { words.join(" ") }
}

#[cfg(test)]
mod tests {
    use super::humanize_name;

    #[test]
    fn a_tool_name_is_split_into_words() {
        for (name, readable) in [
            ("send", "Send"),
            ("send_email", "Send email"),
            ("sendEmail", "Send email"),
            ("SendEmail", "Send email"),
            ("send-e_mail", "Send e mail"),
            ("bank.look_up__balance_", "Bank look up balance"),
            ("get_HTTP_page", "Get HTTP page"),
            ("look2", "Look2"),
            ("buscar_año", "Buscar año"),
            ("__", "__"),
            ("", ""),
        ] {
            assert_eq!(humanize_name(name), readable, "{name}");
        }
    }
}
