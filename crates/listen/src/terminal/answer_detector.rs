//! Recognizes lines that sound like an answer but are not accepted as one. While a question is open, such a line is neither sent
//! as a request nor counted as a yes.

/// Words that start an answer, in the languages in which yes and no are accepted. The lists are: English for yes, for no and for
/// undecided; Spanish; Yoruba, with and without diacritics.
const ANSWER_WORDS: [&str; 5] = [
    "yes yeah yep yup aye ok okay k sure fine alright right correct true agreed agree accept accepted approve approved allow allowed confirm confirmed affirmative absolutely definitely certainly good great go proceed continue",
    "no nope nah never not dont don't wont won't wrong false negative deny denied refuse refused reject rejected decline declined cancel abort stop",
    "maybe perhaps possibly later wait let hmm hm um er why thanks thank",
    "sí si vale claro adelante acepto aceptar permito bueno nunca jamás rechazo rechazar cancela cancelar hazlo hágalo quizás tal",
    "bẹ́ẹ̀ni bẹ́ẹ̀ bẹẹni beeni bẹ́ẹ̀kọ́ bẹẹkọ beeko rárá rara dára dúró",
];

/// Pairs of words that start an answer.
const ANSWER_PAIRS: &[(&str, &str)] = &[
    ("all", "right"),
    ("de", "acuerdo"),
    ("do", "it"),
    ("do", "not"),
    ("do", "so"),
    ("do", "that"),
    ("i", "accept"),
    ("i", "agree"),
    ("i", "allow"),
    ("i", "am"),
    ("i", "do"),
    ("i", "don't"),
    ("i", "dont"),
    ("i", "guess"),
    ("i", "refuse"),
    ("i", "reject"),
    ("i", "think"),
    ("i", "will"),
    ("i", "won't"),
    ("i", "would"),
    ("i'd", "rather"),
    ("lo", "permito"),
    ("of", "course"),
    ("por", "supuesto"),
    ("ó", "dára"),
];

/// Words that refer to what was just asked.
const REFERRING_WORDS: &[&str] = &["it", "that", "this", "so"];

/// Filler words, ignored at the start and end of a line.
const FILLER_WORDS: &[&str] = &["please", "well", "oh", "then", "now", "thanks", "you", "just"];

/// Whether a line sounds like an answer to an open question.
pub(super) fn looks_like_answer(line: &str) -> bool {
    let lower = line.to_lowercase().replace('’', "'");
    let words: Vec<&str> = lower
        .split(|character: char| {
            character.is_whitespace() || character.is_ascii_punctuation() && character != '\''
        })
        .filter(|word| !word.is_empty())
        .collect();
    let begin = words.iter().position(|word| !FILLER_WORDS.contains(word));
    let end = words.iter().rposition(|word| !FILLER_WORDS.contains(word));
    let (Some(begin), Some(end)) = (begin, end) else { return true };
    match words.get(begin..=end).unwrap_or_default() {
        [] | ["i'm", ..] => true,
        [first, ..] if ANSWER_WORDS.iter().any(|list| list.split(' ').any(|word| word == *first)) => true,
        [first, second, ..] if ANSWER_PAIRS.contains(&(*first, *second)) => true,
        // `send it` or `delete that` probably refers to the open question.
        [.., last] => REFERRING_WORDS.contains(last),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_distinguished_from_requests() {
        for line in [
            "nope",
            "yes please",
            "ok then",
            "sure",
            "Sure!",
            "go ahead",
            "I don't want that",
            "I don’t want that.",
            "no thanks",
            "yes, send 20 euros to Ben",
            "Please do it now",
            "delete it",
            "just send that, please",
            "confirm",
            "cancel",
            "All right",
            "okay",
            "please",
            "de acuerdo",
            "bẹẹni o",
        ] {
            assert!(looks_like_answer(line), "{line}");
        }
        for line in [
            "what's my balance?",
            "send 20 euros to Ben",
            "please send 20 euros to Ben",
            "delete a record",
            "how is the weather?",
            "I want a human",
            "weather in Madrid",
            "book a room",
            "fi yúrò 20 ránṣẹ́ sí Ben",
            "transfiere 20 euros a Ben",
        ] {
            assert!(!looks_like_answer(line), "{line}");
        }
    }
}
