//! What is typed in other languages than English: understood, and never taken for a yes by mistake.

use proptest::prelude::*;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use super::{ALONE, CHOICES, GRAVE, LIGHT, WITH_REQUESTS, WORDS, YES_NO, ear_in, sent_in};
use crate::terminal::conversation::{Act, take};

const ACCEPT: &str = r#""decision":"accept""#;
const REJECT: &str = r#""decision":"reject""#;

#[test]
fn spanish_words_answer_and_order() {
    let table: &[(&[&str], &str, Option<&str>)] = &[
        (&[GRAVE], "sí", Some(ACCEPT)),
        (&[GRAVE], "Sí.", Some(ACCEPT)),
        (&[GRAVE], "¡Sí!", Some(ACCEPT)),
        (&[GRAVE], "si", Some(ACCEPT)),
        (&[GRAVE], "aceptar 1", Some(ACCEPT)),
        (&[GRAVE], "1 aceptar", Some(ACCEPT)),
        (&[GRAVE], "responder sí", Some(ACCEPT)),
        (&[GRAVE], "yes", Some(ACCEPT)),
        (&[GRAVE], "no", Some(REJECT)),
        (&[GRAVE], "rechazar", Some(REJECT)),
        (&[GRAVE], "s", None),
        (&[GRAVE], "y", None),
        (&[GRAVE], "1", None),
        (&[GRAVE], "", None),
        (&[GRAVE], "sí no", None),
        (&[GRAVE], "así", None),
        (&[GRAVE], "sí, por favor", None),
        (&[GRAVE], "claro", None),
        (&[LIGHT], "s", Some(ACCEPT)),
        (&[LIGHT], "y", None),
        (&[LIGHT], "1", Some(ACCEPT)),
        (&[LIGHT], "2", Some(REJECT)),
        (&[LIGHT, LIGHT], "sí", None),
        (&[LIGHT, LIGHT], "sí 2", Some(r#""reply_token":"rpl_1","decision":"accept""#)),
        (&[GRAVE], "más tiempo", Some("deadline.extend")),
        (&[GRAVE], "mas tiempo 1", Some("deadline.extend")),
        (&[GRAVE], "parar", Some("session.stop")),
        (&[GRAVE], "parar todo", Some("session.stop")),
        (&[GRAVE], "estado", None),
        (&[WORDS], "Lagos", Some(r#""response":"Lagos""#)),
        (&[WORDS], "responder parar", Some(r#""response":"parar""#)),
        (&[WORDS], "responder 1 5 euros", Some(r#""response":"5 euros""#)),
        (&[CHOICES], "2", Some(r#""response":"b""#)),
        (&[YES_NO], "sí", Some(r#""response":true"#)),
        (&[YES_NO], "Sí.", Some(r#""response":true"#)),
        (&[YES_NO], "no", Some(r#""response":false"#)),
        (&[YES_NO], "quizás", None),
    ];
    for (questions, line, expected) in table {
        let told = sent_in("es", questions, line, ALONE);
        match expected {
            Some(part) => {
                assert!(told.as_ref().is_some_and(|told| told.contains(part)), "{line:?}: {told:?}");
            }
            None => assert_eq!(told, None, "{line:?} to {questions:?}"),
        }
    }
}

#[test]
fn yoruba_words_answer_and_order() {
    let table: &[(&[&str], &str, Option<&str>)] = &[
        (&[GRAVE], "bẹ́ẹ̀ni", Some(ACCEPT)),
        (&[GRAVE], "Bẹ́ẹ̀ ni.", Some(ACCEPT)),
        (&[GRAVE], "beeni 1", Some(ACCEPT)),
        (&[GRAVE], "bẹẹni", Some(ACCEPT)),
        (&[GRAVE], "bẹ̀ẹ́ni", None),
        (&[GRAVE], "sí", None),
        (&[GRAVE], "gbà", None),
        (&[GRAVE], "y", None),
        (&[LIGHT], "y", Some(ACCEPT)),
        (&[GRAVE], "rárá", Some(REJECT)),
        (&[GRAVE], "beeko", Some(REJECT)),
        (&[GRAVE], "àkókò sí i", Some("deadline.extend")),
        (&[GRAVE], "akoko si i 1", Some("deadline.extend")),
        (&[GRAVE], "dúró", Some("session.stop")),
        (&[WORDS], "dáhùn dúró", Some(r#""response":"dúró""#)),
        (&[YES_NO], "bẹ́ẹ̀ ni", Some(r#""response":true"#)),
        (&[YES_NO], "rara", Some(r#""response":false"#)),
    ];
    for (questions, line, expected) in table {
        let told = sent_in("yo", questions, line, ALONE);
        match expected {
            Some(part) => {
                assert!(told.as_ref().is_some_and(|told| told.contains(part)), "{line:?}: {told:?}");
            }
            None => assert_eq!(told, None, "{line:?} to {questions:?}"),
        }
    }
}

/// What may be a yes, without its marks; the second are short ones. Written down here once more, so that a word that slips
/// into a language's list is seen.
fn affirmative(language: &str) -> (&'static [&'static str], &'static [&'static str]) {
    match language {
        "es" => (&["yes", "accept", "si", "aceptar", "acepto"], &["s", "1"]),
        "yo" => (&["yes", "accept", "beeni", "bee ni"], &["y", "1"]),
        _ => (&["yes", "accept", "si", "aceptar", "acepto", "beeni", "bee ni"], &["y", "1"]),
    }
}

/// In small letters, without marks, the number of the question and the signs of who speaks instead of typing.
fn bare(line: &str) -> String {
    let small: String = line.to_lowercase().nfd().filter(|letter| !is_combining_mark(*letter)).collect();
    let words: Vec<String> = small
        .split_whitespace()
        .map(|word| word.trim_matches(['¡', '.', '!', ',']))
        .filter(|word| !word.is_empty())
        .map(|word| word.parse::<u32>().map_or_else(|_| word.to_owned(), |number| number.to_string()))
        .collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let words = match words.as_slice() {
        ["answer" | "responder" | "respuesta" | "dahun", rest @ ..] => rest,
        words => words,
    };
    match words {
        [rest @ .., "1"] | ["1", rest @ ..] if !rest.is_empty() => rest.join(" "),
        words => words.join(" "),
    }
}

fn piece() -> impl Strategy<Value = String> {
    let words = proptest::sample::select(vec![
        "yes",
        "no",
        "y",
        "n",
        "accept",
        "reject",
        "answer",
        "1",
        "2",
        "sí",
        "si",
        "sì",
        "s",
        "aceptar",
        "acepto",
        "rechazar",
        "responder",
        "respuesta",
        "más",
        "tiempo",
        "menos",
        "claro",
        "vale",
        "así",
        "o",
        "bẹ́ẹ̀ni",
        "bẹ́ẹ̀",
        "ni",
        "beeni",
        "bẹ́ẹ̀kọ́",
        "beeko",
        "rárá",
        "rara",
        "dáhùn",
        "gbà",
        "mo",
        "ok",
        "ja",
        "oui",
        "true",
        "all",
    ]);
    prop_oneof![
        4 => words.prop_map(str::to_owned),
        1 => "[a-z¡!.,0-9 \u{301}\u{300}\u{323}]{0,6}",
        1 => "\\PC{0,4}",
    ]
}

proptest! {
    #[test]
    fn nothing_but_a_yes_is_a_yes(
        language in proptest::sample::select(vec!["en", "es", "yo"]),
        pieces in proptest::collection::vec(piece(), 0..4),
        upper in any::<bool>(),
        requests in any::<bool>(),
    ) {
        let line = pieces.join(" ");
        let line = if upper { line.to_uppercase() } else { line };
        let around = if requests { WITH_REQUESTS } else { ALONE };
        let (whole, short) = affirmative(language);
        let bare = bare(&line);
        for (question, may) in [(GRAVE, whole.contains(&bare.as_str())),
            (LIGHT, whole.contains(&bare.as_str()) || short.contains(&bare.as_str()))] {
            let accepted = take(&mut ear_in(language, &[question]), &line, around, super::NOW)
                .into_iter()
                .any(|act| matches!(act, Act::Send { message, .. } if message.contains(ACCEPT)));
            prop_assert!(may || !accepted, "{line:?} in {language}");
        }
        // And with two open, a yes without a number is for neither.
        let several = sent_in(language, &[LIGHT, LIGHT], &line, around);
        let names_one = line.split_whitespace().any(|word| word.contains(['1', '2']));
        prop_assert!(names_one || several.is_none_or(|told| !told.contains(ACCEPT)), "{line:?} in {language}");
    }
}
