//! Every phrase is there in every language, and no language can be misunderstood.

use std::collections::BTreeMap;

use super::*;

/// Something to put into a phrase.
pub(super) trait Sample {
    fn sample(at: usize) -> Self;
}

impl Sample for &str {
    fn sample(at: usize) -> Self {
        ["", "Ada", "Ben", "Cem"][at]
    }
}

macro_rules! samples {
    ($($type:ty)*) => {$(
        impl Sample for $type {
            fn sample(at: usize) -> Self {
                40 + <$type>::try_from(at).unwrap()
            }
        }
    )*};
}

samples!(u16 u32 u64 i64 usize);

/// Phrases that are the same in English and in this language.
fn same_as_english(language: &str) -> &'static [&'static str] {
    match language {
        "es" => &["no"],
        _ => &[],
    }
}

#[test]
fn every_phrase_is_a_text_of_its_own_with_all_that_belongs_into_it() {
    let english: BTreeMap<_, _> =
        en::ENGLISH.samples().into_iter().map(|(name, text, _)| (name, text)).collect();
    assert!(english.len() > 200, "{}", english.len());
    for phrases in Phrases::every() {
        let language = phrases.language();
        for (name, text, samples) in phrases.samples() {
            assert!(text.chars().any(char::is_alphabetic), "{language} {name} says nothing: {text:?}");
            for sample in samples {
                assert!(text.contains(&sample), "{language} {name} leaves something out: {text}");
            }
            let same = language != "en" && english[name] == text;
            assert_eq!(same, same_as_english(language).contains(&name), "{language} {name}: {text}");
            let (first, last) = (english[name].chars(), english[name].chars().next_back());
            let begins_a_sentence = first.clone().next().is_some_and(char::is_uppercase);
            if begins_a_sentence && last == Some('.') {
                assert!(text.ends_with('.'), "{language} {name} is no whole sentence: {text}");
                assert!(!text.starts_with(char::is_lowercase), "{language} {name} begins in small: {text}");
            }
            // Said aloud, it must not look like a line of its own. Help begins with what can be typed.
            let harmless = crate::plain(&text, false) == text || name.starts_with("help_");
            assert!(harmless, "{language} {name}: {text}");
        }
    }
}

#[test]
fn one_and_many_are_told_apart() {
    for phrases in Phrases::every().filter(|phrases| phrases.language() != "yo") {
        for unit in [Phrases::seconds, Phrases::minutes, Phrases::hours] {
            let (one, two) = (unit(phrases, 1), unit(phrases, 2));
            assert_eq!(format!("{}s", one.replace('1', "2")), two);
        }
    }
}

#[test]
fn a_language_is_found_by_its_primary_subtag_and_english_is_for_everybody() {
    let of = |languages: &[&str]| {
        Phrases::of(&languages.iter().map(|tag| (*tag).to_owned()).collect::<Vec<_>>()).language()
    };
    assert_eq!(of(&["es-MX"]), "es");
    assert_eq!(of(&["fr", "ES"]), "es");
    assert_eq!(of(&["en-GB", "es"]), "en");
    assert_eq!(of(&["est", "fr"]), "en");
    assert_eq!(of(&[]), "en");
}

#[test]
fn no_word_means_two_things() {
    let every: Vec<_> = Phrases::every().collect();
    for phrases in &every {
        for other in &every {
            // What is understood together: a language and English; and in English a yes and a no of all.
            let together = other.language() == "en" || phrases.language() == other.language();
            for (list, meaning) in other.commands.lists() {
                for word in list {
                    let decides = matches!(meaning, Command::Decision { whole: true, .. });
                    let means = phrases.command(word);
                    if phrases.commands.otherwise.contains(word) {
                        assert_eq!(means, None, "{word}");
                    } else if together || (phrases.language() == "en" && decides) {
                        assert_eq!(means, Some(meaning), "{word} in {}", phrases.language());
                    } else {
                        let yes = Command::Decision { yes: true, whole: true };
                        assert!(means != Some(yes) || meaning == yes, "{word} in {}", phrases.language());
                    }
                }
            }
        }
    }
}

#[test]
fn marks_may_be_left_out_and_none_may_be_wrong() {
    let es = &es::SPANISH;
    let yes = Some(Command::Decision { yes: true, whole: true });
    for typed in ["sí", "SÍ", "si", "si\u{301}", "Aceptar", "yes", "accept"] {
        assert_eq!(es.command(typed), yes, "{typed}");
    }
    for typed in ["sì", "sï", "s í", "sii", "yés", "y", "sí no", "ａｃｅｐｔａｒ", ""] {
        assert_eq!(es.command(typed), None, "{typed}");
    }
    assert_eq!(es.command("mas tiempo"), Some(Command::MoreTime));
    assert_eq!(es.after_answer("Responder 2 Lagos"), Some("2 Lagos"));
    assert_eq!(es.after_answer("answer parar"), Some("parar"));
    assert_eq!(es.after_answer("responder"), None);
    assert!(es.is_all("todo") && es.is_all("all") && !es.is_all("toda"));
}
