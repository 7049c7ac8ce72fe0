//! Checks that every phrase is translated, and that no typed word is ambiguous.

use std::collections::BTreeMap;

use super::*;

/// A sample argument for a phrase.
pub(super) trait Sample {
    fn sample(position: usize) -> Self;
}

impl Sample for &str {
    fn sample(position: usize) -> Self {
        ["", "Ada", "Ben", "Cem", "Dan"][position]
    }
}

macro_rules! samples {
    ($($type:ty)*) => {$(
        impl Sample for $type {
            fn sample(position: usize) -> Self {
                40 + <$type>::try_from(position).unwrap()
            }
        }
    )*};
}

samples!(u16 u32 u64 i64 usize);

/// Returns the names of the phrases that are the same in English and in this language.
fn same_as_english(language: &str) -> &'static [&'static str] {
    match language {
        "es" => &["no", "amount"],
        _ => &[],
    }
}

#[test]
fn every_phrase_is_translated_and_uses_all_its_arguments() {
    let english: BTreeMap<_, _> =
        en::ENGLISH.samples().into_iter().map(|(name, text, _)| (name, text)).collect();
    assert!(english.len() > 200, "{}", english.len());
    for phrases in Phrases::all() {
        let language = phrases.language();
        for (name, text, samples) in phrases.samples() {
            assert!(text.chars().any(char::is_alphabetic), "{language} {name} has no letters: {text:?}");
            for sample in samples {
                assert!(text.contains(&sample), "{language} {name} omits an argument: {text}");
            }
            let is_same = language != "en" && english[name] == text;
            assert_eq!(is_same, same_as_english(language).contains(&name), "{language} {name}: {text}");
            if english[name].starts_with(char::is_uppercase) && english[name].ends_with('.') {
                assert!(text.ends_with('.'), "{language} {name} does not end with a full stop: {text}");
                assert!(
                    !text.starts_with(char::is_lowercase),
                    "{language} {name} starts with a lowercase letter: {text}"
                );
            }
            // A phrase must not contain a line that starts like an output label, such as `ask:`. Help texts may, because they start with
            // the command and a colon.
            let is_sanitized = crate::sanitize(&text, false) == text || name.starts_with("help_");
            assert!(is_sanitized, "{language} {name}: {text}");
        }
    }
}

#[test]
fn singular_and_plural_differ() {
    for phrases in Phrases::all().filter(|phrases| phrases.language() != "yo") {
        for unit in [Phrases::seconds, Phrases::minutes, Phrases::hours] {
            let (one, two) = (unit(phrases, 1), unit(phrases, 2));
            assert_eq!(format!("{}s", one.replace('1', "2")), two);
        }
    }
}

#[test]
fn a_language_is_found_by_its_primary_subtag_with_english_as_fallback() {
    let chosen = |languages: &[&str]| {
        Phrases::for_languages(&languages.iter().map(|tag| (*tag).to_owned()).collect::<Vec<_>>()).language()
    };
    assert_eq!(chosen(&["es-MX"]), "es");
    assert_eq!(chosen(&["fr", "ES"]), "es");
    assert_eq!(chosen(&["en-GB", "es"]), "en");
    assert_eq!(chosen(&["est", "fr"]), "en");
    assert_eq!(chosen(&[]), "en");
}

#[test]
fn no_word_has_two_meanings() {
    let languages: Vec<_> = Phrases::all().collect();
    for phrases in &languages {
        for other in &languages {
            // A listener's own language and English commands are always understood. An English listener can also use the full words
            // for yes and no of every other language.
            let understood_together = other.language() == "en" || phrases.language() == other.language();
            for (list, meaning) in other.commands.word_lists() {
                for word in list {
                    let decides = matches!(meaning, TypedCommand::Decision { is_full_word: true, .. });
                    let parsed = phrases.parse_command(word);
                    if phrases.commands.excluded.contains(word) {
                        assert_eq!(parsed, None, "{word}");
                    } else if understood_together || (phrases.language() == "en" && decides) {
                        assert_eq!(parsed, Some(meaning), "{word} in {}", phrases.language());
                    } else {
                        let yes = TypedCommand::Decision { yes: true, is_full_word: true };
                        assert!(parsed != Some(yes) || meaning == yes, "{word} in {}", phrases.language());
                    }
                }
            }
        }
    }
}

#[test]
fn diacritics_may_be_omitted_but_wrong_ones_are_refused() {
    let es = &es::SPANISH;
    let yes = Some(TypedCommand::Decision { yes: true, is_full_word: true });
    for typed in ["sí", "SÍ", "si", "si\u{301}", "Aceptar", "yes", "accept"] {
        assert_eq!(es.parse_command(typed), yes, "{typed}");
    }
    for typed in ["sì", "sï", "s í", "sii", "yés", "y", "sí no", "ａｃｅｐｔａｒ", ""] {
        assert_eq!(es.parse_command(typed), None, "{typed}");
    }
    assert_eq!(es.parse_command("mas tiempo"), Some(TypedCommand::MoreTime));
    assert_eq!(es.strip_answer_word("Responder 2 Lagos"), Some("2 Lagos"));
    assert_eq!(es.strip_answer_word("answer parar"), Some("parar"));
    assert_eq!(es.strip_answer_word("responder"), None);
    assert!(es.is_all("todo") && es.is_all("all") && !es.is_all("toda"));
}
