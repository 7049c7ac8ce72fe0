//! Answers in other languages are understood, and only an explicit yes counts as a yes.

use proptest::prelude::*;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use super::{
    CHOICES, DEMO_CONTEXT, FREE_TEXT, IRREVERSIBLE, LISTEN_CONTEXT, LOW_RISK, YES_NO,
    sent_message_in_language, subscriber_in_language,
};
use crate::terminal::input_handler::{TerminalAction, handle_line};

const ACCEPT: &str = r#""decision":"accept""#;
const REJECT: &str = r#""decision":"reject""#;

#[test]
fn spanish_answers_and_commands_are_understood() {
    let table: &[(&[&str], &str, Option<&str>)] = &[
        (&[IRREVERSIBLE], "sí", Some(ACCEPT)),
        (&[IRREVERSIBLE], "Sí.", Some(ACCEPT)),
        (&[IRREVERSIBLE], "¡Sí!", Some(ACCEPT)),
        (&[IRREVERSIBLE], "si", Some(ACCEPT)),
        (&[IRREVERSIBLE], "aceptar 1", Some(ACCEPT)),
        (&[IRREVERSIBLE], "1 aceptar", Some(ACCEPT)),
        (&[IRREVERSIBLE], "responder sí", Some(ACCEPT)),
        (&[IRREVERSIBLE], "yes", Some(ACCEPT)),
        (&[IRREVERSIBLE], "no", Some(REJECT)),
        (&[IRREVERSIBLE], "rechazar", Some(REJECT)),
        (&[IRREVERSIBLE], "s", None),
        (&[IRREVERSIBLE], "y", None),
        (&[IRREVERSIBLE], "1", None),
        (&[IRREVERSIBLE], "", None),
        (&[IRREVERSIBLE], "sí no", None),
        (&[IRREVERSIBLE], "así", None),
        (&[IRREVERSIBLE], "sí, por favor", None),
        (&[IRREVERSIBLE], "claro", None),
        (&[LOW_RISK], "s", Some(ACCEPT)),
        (&[LOW_RISK], "y", None),
        (&[LOW_RISK], "1", Some(ACCEPT)),
        (&[LOW_RISK], "2", Some(REJECT)),
        (&[LOW_RISK, LOW_RISK], "sí", None),
        (&[LOW_RISK, LOW_RISK], "sí 2", Some(r#""reply_token":"rpl_1","decision":"accept""#)),
        (&[IRREVERSIBLE], "más tiempo", Some("deadline.extend")),
        (&[IRREVERSIBLE], "mas tiempo 1", Some("deadline.extend")),
        (&[IRREVERSIBLE], "parar", Some("session.stop")),
        (&[IRREVERSIBLE], "parar todo", Some("session.stop")),
        (&[IRREVERSIBLE], "estado", None),
        (&[FREE_TEXT], "Lagos", Some(r#""response":"Lagos""#)),
        (&[FREE_TEXT], "responder parar", Some(r#""response":"parar""#)),
        (&[FREE_TEXT], "responder 1 5 euros", Some(r#""response":"5 euros""#)),
        (&[CHOICES], "2", Some(r#""response":"b""#)),
        (&[YES_NO], "sí", Some(r#""response":true"#)),
        (&[YES_NO], "Sí.", Some(r#""response":true"#)),
        (&[YES_NO], "no", Some(r#""response":false"#)),
        (&[YES_NO], "quizás", None),
    ];
    for (questions, line, expected) in table {
        let sent = sent_message_in_language("es", questions, line, LISTEN_CONTEXT);
        match expected {
            Some(part) => {
                assert!(sent.as_ref().is_some_and(|sent| sent.contains(part)), "{line:?}: {sent:?}");
            }
            None => assert_eq!(sent, None, "{line:?} to {questions:?}"),
        }
    }
}

#[test]
fn yoruba_answers_and_commands_are_understood() {
    let table: &[(&[&str], &str, Option<&str>)] = &[
        (&[IRREVERSIBLE], "bẹ́ẹ̀ni", Some(ACCEPT)),
        (&[IRREVERSIBLE], "Bẹ́ẹ̀ ni.", Some(ACCEPT)),
        (&[IRREVERSIBLE], "beeni 1", Some(ACCEPT)),
        (&[IRREVERSIBLE], "bẹẹni", Some(ACCEPT)),
        (&[IRREVERSIBLE], "bẹ̀ẹ́ni", None),
        (&[IRREVERSIBLE], "sí", None),
        (&[IRREVERSIBLE], "gbà", None),
        (&[IRREVERSIBLE], "y", None),
        (&[LOW_RISK], "y", Some(ACCEPT)),
        (&[IRREVERSIBLE], "rárá", Some(REJECT)),
        (&[IRREVERSIBLE], "beeko", Some(REJECT)),
        (&[IRREVERSIBLE], "àkókò sí i", Some("deadline.extend")),
        (&[IRREVERSIBLE], "akoko si i 1", Some("deadline.extend")),
        (&[IRREVERSIBLE], "dúró", Some("session.stop")),
        (&[FREE_TEXT], "dáhùn dúró", Some(r#""response":"dúró""#)),
        (&[YES_NO], "bẹ́ẹ̀ ni", Some(r#""response":true"#)),
        (&[YES_NO], "rara", Some(r#""response":false"#)),
    ];
    for (questions, line, expected) in table {
        let sent = sent_message_in_language("yo", questions, line, LISTEN_CONTEXT);
        match expected {
            Some(part) => {
                assert!(sent.as_ref().is_some_and(|sent| sent.contains(part)), "{line:?}: {sent:?}");
            }
            None => assert_eq!(sent, None, "{line:?} to {questions:?}"),
        }
    }
}

/// The words that may count as a yes, without diacritics. The second list has the short words, which count only for low
/// risk. The lists are repeated here to detect a word that is added to a language by mistake.
fn accepted_yes_words(language: &str) -> (&'static [&'static str], &'static [&'static str]) {
    match language {
        "es" => (&["yes", "accept", "si", "aceptar", "acepto"], &["s", "1"]),
        "yo" => (&["yes", "accept", "beeni", "bee ni"], &["y", "1"]),
        _ => (&["yes", "accept", "si", "aceptar", "acepto", "beeni", "bee ni"], &["y", "1"]),
    }
}

/// Converts a line to lowercase and removes diacritics, the command `answer`, the question's number, and punctuation that dictation software adds.
fn normalize_line(line: &str) -> String {
    let lowercase: String =
        line.to_lowercase().nfd().filter(|character| !is_combining_mark(*character)).collect();
    let words: Vec<String> = lowercase
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

fn word_strategy() -> impl Strategy<Value = String> {
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
    fn only_an_explicit_yes_counts_as_a_yes(
        language in proptest::sample::select(vec!["en", "es", "yo"]),
        words in proptest::collection::vec(word_strategy(), 0..4),
        is_uppercase in any::<bool>(),
        accepts_requests in any::<bool>(),
    ) {
        let line = words.join(" ");
        let line = if is_uppercase { line.to_uppercase() } else { line };
        let context = if accepts_requests { DEMO_CONTEXT } else { LISTEN_CONTEXT };
        let (whole, short) = accepted_yes_words(language);
        let normalized = normalize_line(&line);
        for (question, may_accept) in [(IRREVERSIBLE, whole.contains(&normalized.as_str())),
            (LOW_RISK, whole.contains(&normalized.as_str()) || short.contains(&normalized.as_str()))] {
            let was_accepted = handle_line(&mut subscriber_in_language(language, &[question]), &line, context, super::NOW)
                .into_iter()
                .any(|action| matches!(action, TerminalAction::Send { message, .. } if message.contains(ACCEPT)));
            prop_assert!(may_accept || !was_accepted, "{line:?} in {language}");
        }
        // With two open questions, a yes without a number is for neither.
        let sent = sent_message_in_language(language, &[LOW_RISK, LOW_RISK], &line, context);
        let has_number = line.split_whitespace().any(|word| word.contains(['1', '2']));
        prop_assert!(has_number || sent.is_none_or(|sent| !sent.contains(ACCEPT)), "{line:?} in {language}");
    }
}
