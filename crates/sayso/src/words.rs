//! One thing in three lengths, for those who want to hear little or much, and in several languages.

use std::borrow::Cow;

use seal::json::Scribe;

use crate::redact::Cleaner;

/// What people are told: in words, and if you like in few and in many, and in other languages.
///
/// ```
/// use sayso::Words;
/// let words = Words::new("Looking up the weather in Oslo.").terse("Weather in Oslo.");
/// let short: Words = "Thinking.".into();
/// let both = Words::new("It rains.").in_language("es", "Llueve.");
/// # let _ = (words, short, both);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use = "a builder does nothing by itself"]
pub struct Words {
    normal: String,
    terse: Option<String>,
    detailed: Option<String>,
    /// The same in other languages, by their tags.
    others: Vec<(String, Words)>,
    /// They are not the author's, but of the library, and in English.
    pub(crate) ours: bool,
}

impl Words {
    /// In words.
    pub fn new(normal: impl Into<String>) -> Self {
        Self { normal: normal.into(), ..Self::default() }
    }

    /// The library's own, for what its author has no words for.
    pub(crate) fn ours(normal: String) -> Self {
        Self { ours: true, ..Self::new(normal) }
    }

    setters! {
        /// And in few.
        terse(terse: impl Into<String>) => terse = Some(terse.into());

        /// And in many.
        detailed(detailed: impl Into<String>) => detailed = Some(detailed.into());
    }

    /// And in another language, by its tag (§11.5.1). Whoever listens in that language hears these words; everybody else hears
    /// the first ones, which are in the session's language.
    ///
    /// They are said in the lengths that the first words have. A length that they lack is said in their normal words.
    ///
    /// ```
    /// # testing::example!(hub, {
    /// use sayso::Words;
    /// let session = hub.session("What is the weather?").start().await?;
    /// let words = Words::new("It rains in Oslo.")
    ///     .terse("Rain.")
    ///     .in_language("es", Words::new("Llueve en Oslo.").terse("Lluvia."))
    ///     .in_language("yo", "Òjò ń rọ̀ ní Oslo.");
    /// session.finish(words).await?;
    /// # });
    /// ```
    pub fn in_language(mut self, tag: impl Into<String>, words: impl Into<Self>) -> Self {
        let (tag, words) = (tag.into(), words.into());
        self.others.retain(|(known, _)| !known.eq_ignore_ascii_case(&tag));
        self.others.push((tag, words));
        self
    }

    /// The three summaries, without secrets.
    pub(crate) fn write(&self, out: &mut Scribe, cleaner: &Cleaner) {
        self.cleaned(cleaner).write(out);
    }

    /// The normal words of something else that belongs to these, as a member of this name. What is given in one language only
    /// is the same in all languages of these words: without it, none of them would be whole.
    pub(crate) fn write_beside(&self, out: &mut Scribe, cleaner: &Cleaner, name: &str, other: &Self) {
        if !other.others.is_empty() {
            return other.cleaned(cleaner).write_as(out, name);
        }
        let text = cleaner.clean(&other.normal);
        out.key(name).text(&text);
        for (tag, _) in &self.others {
            out.key(&variant(name, tag)).text(&text);
        }
    }

    /// The same, if there is something else.
    pub(crate) fn write_beside_optional(
        &self,
        out: &mut Scribe,
        cleaner: &Cleaner,
        name: &str,
        other: Option<&Self>,
    ) {
        if let Some(other) = other {
            self.write_beside(out, cleaner, name, other);
        }
    }

    /// The tags of the other languages that they are in.
    pub(crate) fn languages(&self) -> impl Iterator<Item = &str> {
        self.others.iter().map(|(tag, _)| tag.as_str())
    }

    /// The normal words in that other language; the first ones if they are in no other. Nothing if they are in others only.
    pub(crate) fn to(&self, tag: &str) -> Option<&str> {
        if self.others.is_empty() {
            return Some(&self.normal);
        }
        let known = self.others.iter().find(|(known, _)| known.eq_ignore_ascii_case(tag));
        known.map(|(_, words)| words.normal.as_str())
    }

    /// All of its texts, each made into another.
    pub(crate) fn each(&self, make: &impl Fn(&str) -> String) -> Self {
        Self {
            normal: make(&self.normal),
            terse: self.terse.as_deref().map(make),
            detailed: self.detailed.as_deref().map(make),
            others: self.others.iter().map(|(tag, words)| (tag.clone(), words.each(make))).collect(),
            ours: self.ours,
        }
    }

    /// The normal words only, in all their languages.
    pub(crate) fn in_one_length(&self) -> Self {
        let others = self.others.iter().map(|(tag, words)| (tag.clone(), words.in_one_length()));
        Self { normal: self.normal.clone(), others: others.collect(), ours: self.ours, ..Self::default() }
    }

    pub(crate) fn is_one_text(&self) -> bool {
        self.terse.is_none() && self.detailed.is_none() && self.others.is_empty()
    }

    pub(crate) fn normal(&self) -> &str {
        &self.normal
    }

    /// Itself without secrets. They are looked for and counted once, however often it is told.
    pub(crate) fn cleaned(&self, cleaner: &Cleaner) -> Clean<'_> {
        self.cleaned_like(self, cleaner)
    }

    /// The same in the lengths in which those first words are said.
    fn cleaned_like<'w>(&'w self, first: &Self, cleaner: &Cleaner) -> Clean<'w> {
        let clean = |is_said: bool, text: &'w Option<String>| {
            text.as_ref().filter(|_| is_said).map(|text| cleaner.clean(text))
        };
        let others = self.others.iter();
        Clean {
            normal: cleaner.clean(&self.normal),
            terse: clean(first.terse.is_some(), &self.terse),
            detailed: clean(first.detailed.is_some(), &self.detailed),
            others: others.map(|(tag, words)| (tag.as_str(), words.cleaned_like(first, cleaner))).collect(),
        }
    }
}

/// Words without secrets: nothing has to be looked for in them again.
pub(crate) struct Clean<'w> {
    normal: Cow<'w, str>,
    terse: Option<Cow<'w, str>>,
    detailed: Option<Cow<'w, str>>,
    others: Vec<(&'w str, Clean<'w>)>,
}

impl Clean<'_> {
    /// The three summaries.
    pub(crate) fn write(&self, out: &mut Scribe) {
        if self.terse.is_some() {
            self.write_each(out, "summary_terse", |words| words.terse.as_ref().unwrap_or(&words.normal));
        }
        self.write_as(out, "summary_normal");
        if self.detailed.is_some() {
            self.write_each(out, "summary_detailed", |words| {
                words.detailed.as_ref().unwrap_or(&words.normal)
            });
        }
    }

    /// The normal words as a member of this name.
    pub(crate) fn write_as(&self, out: &mut Scribe, name: &str) {
        self.write_each(out, name, |words| &words.normal);
    }

    fn write_each<'c>(&'c self, out: &mut Scribe, name: &str, of: impl Fn(&'c Self) -> &'c str) {
        out.key(name).text(of(self));
        for (tag, other) in &self.others {
            out.key(&variant(name, tag)).text(of(other));
        }
    }

    /// These words and others behind them, in the languages that both are in.
    pub(crate) fn then(&self, after: &Self) -> Words {
        let mut both = Words::new(format!("{} {}", self.normal, after.normal));
        for (tag, other) in &self.others {
            if let Some((_, next)) = after.others.iter().find(|(known, _)| known.eq_ignore_ascii_case(tag)) {
                both = both.in_language(*tag, format!("{} {}", other.normal, next.normal));
            }
        }
        both
    }

    pub(crate) fn normal(&self) -> &str {
        &self.normal
    }
}

impl From<&str> for Words {
    fn from(normal: &str) -> Self {
        Self::new(normal)
    }
}

impl From<String> for Words {
    fn from(normal: String) -> Self {
        Self::new(normal)
    }
}

/// The name of a member in another language (§11.5.1, C-H1).
pub(crate) fn variant(name: &str, tag: &str) -> String {
    format!("{name}_{}", tag.to_ascii_lowercase().replace('-', "_"))
}

/// A tool's name as people say it: `send_email` and `sendEmail` are both "Send email".
pub(crate) fn human(name: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    let mut before = None;
    for letter in name.chars() {
        let begins = letter.is_uppercase() && before.is_some_and(char::is_lowercase);
        let apart = before.is_none_or(|before: char| !before.is_alphanumeric());
        if letter.is_alphanumeric() {
            match words.last_mut() {
                Some(word) if !apart && !begins => word.push(letter),
                _ => words.push(letter.to_string()),
            }
        }
        before = Some(letter);
    }
    for (at, word) in words.iter_mut().enumerate() {
        let is_name = word.chars().count() > 1 && !word.chars().any(char::is_lowercase);
        let mut letters = word.chars();
        if let Some(first) = letters.next().filter(|_| !is_name) {
            let first: String =
                if at == 0 { first.to_uppercase().collect() } else { first.to_lowercase().collect() };
            *word = first + letters.as_str();
        }
    }
    if words.is_empty() { name.to_owned() } else { words.join(" ") }
}

#[cfg(test)]
mod tests {
    use super::human;

    #[test]
    fn a_name_is_said_as_words() {
        for (name, said) in [
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
            assert_eq!(human(name), said, "{name}");
        }
    }
}
