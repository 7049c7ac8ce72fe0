//! States that an agent's author defines, with texts for people (§4.2.1, A.2).

use thiserror::Error;

use crate::event::AgentState;
use crate::grammar::is_language_tag;
use crate::json::{JsonKind, JsonValue, TapeWriter};
use crate::negotiate::language;
use crate::secret::find_secrets;

/// A state that an agent's author defines, with a text for it in one or more languages. A hub sends it to listeners in
/// `extensions.sayso.states`, and a manifest documents it in the same form.
///
/// ```
/// use aaep::event::StateDefinition;
/// use aaep::json::OwnedDoc;
/// let json = OwnedDoc::read(r#"[{"state":"comparing","words":{"en":"Comparing prices.","es":"Comparando."}}]"#).unwrap();
/// let states = StateDefinition::read_list(&json.doc().root()).unwrap();
/// assert_eq!(states[0].words_in(&["es-MX", "en"]), Some(("es", "Comparando.")));
/// assert_eq!(states[0].words_in(&["yo"]), None);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StateDefinition {
    /// The state, as in `to_state`.
    pub state: String,
    /// The text for people, by language tag: a short sentence such as `Comparing prices.`
    pub words: Vec<(String, String)>,
}

/// Why a list of states is invalid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum InvalidStates {
    /// It is not a list of objects with `state` and `words`, or an object has another member.
    #[error(r#"states must be a list of objects like {{"state":"comparing","words":{{"en":"Comparing prices."}}}}"#)]
    Malformed,
    /// It has too many states, or is too large.
    #[error(
        "states may have at most {} items and {} bytes",
        StateDefinition::MAX_STATES,
        StateDefinition::MAX_LIST_BYTES
    )]
    TooLarge,
    /// The state's name is empty or too long.
    #[error("the name of a state must have 1 to {} characters", StateDefinition::MAX_STATE_CHARS)]
    NameLength,
    /// AAEP itself defines the state.
    #[error("{0} is a state of AAEP, so it has its own words")]
    Standard(String),
    /// The state is defined twice.
    #[error("the state {0} is defined twice")]
    Duplicate(String),
    /// The words have a member name that is not a language tag.
    #[error("{0} is not a language tag")]
    LanguageTag(String),
    /// The words are empty or too long.
    #[error(
        "the words of a state must have 1 to {} characters in each language",
        StateDefinition::MAX_WORDS_CHARS
    )]
    WordsLength,
    /// The words contain a secret.
    #[error("the words of the state {0} contain a secret")]
    Secret(String),
}

impl StateDefinition {
    /// Maximum number of states in a list.
    pub const MAX_STATES: usize = 32;
    /// Maximum size of a list as JSON, in bytes.
    pub const MAX_LIST_BYTES: usize = 16 * 1024;
    /// Maximum length of a state's name, in characters.
    pub const MAX_STATE_CHARS: usize = 64;
    /// Maximum length of the words in one language, in characters.
    pub const MAX_WORDS_CHARS: usize = 256;

    /// Creates a state without words.
    pub fn new(state: impl Into<String>) -> Self {
        Self { state: state.into(), words: Vec::new() }
    }

    /// Adds the words in a language.
    #[must_use]
    pub fn with_words(mut self, language: impl Into<String>, words: impl Into<String>) -> Self {
        self.words.push((language.into(), words.into()));
        self
    }

    /// Reads and checks a list of states.
    pub fn read_list(list: &JsonValue<'_>) -> Result<Vec<Self>, InvalidStates> {
        if list.kind() != JsonKind::Array {
            return Err(InvalidStates::Malformed);
        }
        if list.source().len() > Self::MAX_LIST_BYTES || list.items().nth(Self::MAX_STATES).is_some() {
            return Err(InvalidStates::TooLarge);
        }
        let mut states: Vec<Self> = Vec::new();
        for item in list.items() {
            let state = Self::read(&item)?;
            if states.iter().any(|known| known.state == state.state) {
                return Err(InvalidStates::Duplicate(state.state));
            }
            states.push(state);
        }
        Ok(states)
    }

    fn read(item: &JsonValue<'_>) -> Result<Self, InvalidStates> {
        let (mut state, mut words) = (None, None);
        for (name, value) in item.members() {
            match name.text().as_deref() {
                Some("state") => state = value.text(),
                Some("words") if value.kind() == JsonKind::Object => words = Some(value),
                _ => return Err(InvalidStates::Malformed),
            }
        }
        let (Some(state), Some(words)) = (state, words) else { return Err(InvalidStates::Malformed) };
        if state.is_empty() || state.chars().count() > Self::MAX_STATE_CHARS {
            return Err(InvalidStates::NameLength);
        }
        if !matches!(AgentState::parse(&state), AgentState::Other(_)) {
            return Err(InvalidStates::Standard(state.into_owned()));
        }
        let mut read = Self::new(state);
        for (tag, text) in words.members() {
            let (Some(tag), Some(text)) = (tag.text(), text.text()) else {
                return Err(InvalidStates::Malformed);
            };
            if !is_language_tag(&tag) {
                return Err(InvalidStates::LanguageTag(tag.into_owned()));
            }
            if text.trim().is_empty() || text.chars().count() > Self::MAX_WORDS_CHARS {
                return Err(InvalidStates::WordsLength);
            }
            if find_secrets(&text).next().is_some() {
                return Err(InvalidStates::Secret(read.state));
            }
            read.words.push((tag.into_owned(), text.into_owned()));
        }
        if read.words.is_empty() { Err(InvalidStates::WordsLength) } else { Ok(read) }
    }

    /// Writes the state as an object.
    pub fn write(&self, out: &mut TapeWriter) {
        out.open_object();
        out.key("state").text(&self.state);
        out.key("words").object(|out| {
            for (tag, text) in &self.words {
                out.key(tag).text(text);
            }
        });
        out.close_object();
    }

    /// Returns the words in the first of these languages that has any, with their language tag.
    pub fn words_in(&self, languages: &[impl AsRef<str>]) -> Option<(&str, &str)> {
        let offered: Vec<_> = self.words.iter().map(|(tag, _)| tag.as_str()).collect();
        let chosen = language::lookup(languages, &offered)?;
        self.words.iter().find(|(tag, _)| tag == chosen).map(|(tag, words)| (tag.as_str(), words.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::OwnedDoc;

    fn read(json: &str) -> Result<Vec<StateDefinition>, InvalidStates> {
        StateDefinition::read_list(&OwnedDoc::read(json).unwrap().doc().root())
    }

    #[test]
    fn a_list_is_written_as_it_was_read() {
        let json = r#"[{"state":"comparing","words":{"en":"Comparing prices.","es":"Comparando."}},{"state":"baking","words":{"yo":"Ó ń yan."}}]"#;
        let states = read(json).unwrap();
        let mut out = TapeWriter::default();
        out.array(|out| states.iter().for_each(|state| state.write(out)));
        assert_eq!(out.source(), json);
    }

    #[test]
    fn words_are_found_by_language() {
        let state = StateDefinition::new("comparing")
            .with_words("en-GB", "Comparing.")
            .with_words("es", "Comparando.");
        assert_eq!(state.words_in(&["fr", "en"]), Some(("en-GB", "Comparing.")));
        assert_eq!(state.words_in(&["es-MX"]), Some(("es", "Comparando.")));
        assert_eq!(state.words_in(&["fr"]), None);
    }

    #[test]
    fn invalid_lists_are_refused() {
        let state = |name: &str, words: &str| format!(r#"[{{"state":"{name}","words":{words}}}]"#);
        let en = |text: &str| format!(r#"{{"en":"{text}"}}"#);
        let many: Vec<_> = (0..33).map(|n| format!(r#"{{"state":"s{n}","words":{{"en":"S."}}}}"#)).collect();
        let large: Vec<_> = (0..30)
            .map(|n| {
                let words: Vec<_> = ["en", "es", "yo"]
                    .iter()
                    .map(|tag| format!(r#""{tag}":"{}""#, "x".repeat(250)))
                    .collect();
                format!(r#"{{"state":"s{n}","words":{{{}}}}}"#, words.join(","))
            })
            .collect();
        for (json, expected) in [
            ("{}".to_owned(), InvalidStates::Malformed),
            ("[7]".to_owned(), InvalidStates::Malformed),
            (r#"[{"state":"a"}]"#.to_owned(), InvalidStates::Malformed),
            (r#"[{"state":"a","words":"A."}]"#.to_owned(), InvalidStates::Malformed),
            (r#"[{"state":"a","words":{"en":"A."},"more":1}]"#.to_owned(), InvalidStates::Malformed),
            (state("a", r#"{"en":7}"#), InvalidStates::Malformed),
            (format!("[{}]", many.join(",")), InvalidStates::TooLarge),
            (format!("[{}]", large.join(",")), InvalidStates::TooLarge),
            (state("", &en("A.")), InvalidStates::NameLength),
            (state(&"x".repeat(65), &en("A.")), InvalidStates::NameLength),
            (state("thinking", &en("A.")), InvalidStates::Standard("thinking".to_owned())),
            (
                r#"[{"state":"a","words":{"en":"A."}},{"state":"a","words":{"en":"B."}}]"#.to_owned(),
                InvalidStates::Duplicate("a".to_owned()),
            ),
            (state("a", r#"{"not a tag":"A."}"#), InvalidStates::LanguageTag("not a tag".to_owned())),
            (state("a", "{}"), InvalidStates::WordsLength),
            (state("a", &en("  ")), InvalidStates::WordsLength),
            (state("a", &en(&"x".repeat(257))), InvalidStates::WordsLength),
            (state("a", &en("password: hunter2hunter2")), InvalidStates::Secret("a".to_owned())),
        ] {
            assert_eq!(read(&json), Err(expected), "{json}");
        }
        assert!(read(&state(&"x".repeat(64), &en(&"x".repeat(256)))).is_ok());
    }
}
