//! One thing in three lengths, for those who want to hear little or much.

use seal::json::Writer;

use crate::redact::Cleaner;

/// What people are told: in words, and if you like in few and in many.
///
/// ```
/// use sayso::Words;
/// let words = Words::new("Looking up the weather in Oslo.").terse("Weather in Oslo.");
/// let short: Words = "Thinking.".into();
/// # let _ = (words, short);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words {
    normal: String,
    terse: Option<String>,
    detailed: Option<String>,
}

impl Words {
    /// In words.
    ///
    /// ```
    /// # let _ =
    /// sayso::Words::new("Looking up the weather in Oslo.")
    /// # ;
    /// ```
    pub fn new(normal: impl Into<String>) -> Self {
        Self { normal: normal.into(), terse: None, detailed: None }
    }

    /// And in few.
    ///
    /// ```
    /// # let _ =
    /// sayso::Words::new("Looking up the weather in Oslo.").terse("Weather in Oslo.")
    /// # ;
    /// ```
    #[must_use]
    pub fn terse(mut self, terse: impl Into<String>) -> Self {
        self.terse = Some(terse.into());
        self
    }

    /// And in many.
    ///
    /// ```
    /// # let _ =
    /// sayso::Words::new("Looking up the weather in Oslo.").detailed("Asking the institute for the next ten days in Oslo.")
    /// # ;
    /// ```
    #[must_use]
    pub fn detailed(mut self, detailed: impl Into<String>) -> Self {
        self.detailed = Some(detailed.into());
        self
    }

    /// The three summaries, without secrets.
    pub(crate) fn write(&self, out: &mut Writer, cleaner: &Cleaner) {
        let all = [
            ("summary_terse", self.terse.as_deref()),
            ("summary_normal", Some(self.normal.as_str())),
            ("summary_detailed", self.detailed.as_deref()),
        ];
        for (name, text) in all {
            if let Some(text) = text {
                cleaner.write(out, name, text);
            }
        }
    }

    /// Itself without secrets, for what is told twice: they are counted once.
    pub(crate) fn cleaned(&self, cleaner: &Cleaner) -> Self {
        let clean = |text: &String| cleaner.clean(text).into_owned();
        Self {
            normal: clean(&self.normal),
            terse: self.terse.as_ref().map(clean),
            detailed: self.detailed.as_ref().map(clean),
        }
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
