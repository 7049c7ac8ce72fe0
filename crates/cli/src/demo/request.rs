//! Finds the scenario for a request from the words in it.

use super::language::Language;
use super::request_details::RequestDetails;
use super::tokenizer::{Word, tokenize};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DemoScenario {
    Greeting,
    Balance,
    Transfer,
    Booking,
    Mail,
    Deletion,
    Weather,
    Explanation,
    NoSuchTool,
    Handoff,
    Failure,
    Cancellation,
    /// The request was not understood.
    Unknown,
}

#[derive(Debug)]
pub(super) struct ParsedRequest {
    pub(super) scenario: DemoScenario,
    pub(super) language: Language,
    pub(super) details: RequestDetails,
}

/// The scenarios and the folded word stems that select them, in English, Spanish and Yoruba. A trailing space marks the end of
/// a word. The first match wins.
const SCENARIO_STEMS: [(DemoScenario, [&[&str]; 3]); 11] = [
    (
        DemoScenario::Handoff,
        [&["escalat", "human", "handoff"], &["persona ", "humano", "traspas"], &["eniyan"]],
    ),
    (DemoScenario::Deletion, [&["delet", "erase", "remove"], &["borra", "elimin"], &["pare ", "akosile"]]),
    (DemoScenario::Mail, [&["email", "mail", "letter"], &["correo"], &["imeeli"]]),
    (DemoScenario::Cancellation, [&["cancel", "abort"], &["cancela", "anul"], &["fagi"]]),
    (DemoScenario::Booking, [&["book", "reserve", "reservation"], &["reserv"], &["yara"]]),
    (DemoScenario::Weather, [&["weather", "forecast", "rain"], &["tiempo", "clima", "llueve"], &["oju "]]),
    (DemoScenario::Failure, [&["fail", "error"], &["falla", "fallo"], &["kuna", "ikuna"]]),
    (
        DemoScenario::Transfer,
        [
            &["transfer", "pay", "confirm", "send", "give", "wire "],
            &["transfi", "paga", "envia", "manda"],
            &["ranse"],
        ],
    ),
    (
        DemoScenario::Explanation,
        [&["explain", "explan", "paragraph", "length"], &["explic"], &["alaye", "salaye"]],
    ),
    (
        DemoScenario::Balance,
        [&["balance", "account", "money", "fetch", "tool"], &["saldo", "cuenta", "dinero"], &["iye", "owo "]],
    ),
    (
        DemoScenario::Greeting,
        [
            &["hello", "hi ", "hey ", "help", "good "],
            &["hola", "ayuda", "buenos", "buenas"],
            &["e n le", "bawo", "pele"],
        ],
    ),
];

/// Words that suggest Spanish.
const SPANISH_WORDS: [&str; 21] = [
    "el", "los", "las", "un", "una", "es", "cual", "que", "en", "por", "favor", "para", "quiero", "como",
    "cuanto", "mis", "del", "al", "puede", "hace", "esta",
];

/// Parses a request. Without a preferred language, the language is the one that the text suggests, or English.
pub(super) fn parse_request(text: &str, preferred: Option<Language>) -> ParsedRequest {
    let words = tokenize(text);
    let (scenario, scenario_language) = find_scenario(&words);
    let detected = detect_language(text, &words).or(scenario_language);
    let language = preferred.or(detected).unwrap_or(Language::English);
    let default_recipient = if scenario == DemoScenario::Mail { "Ada" } else { "Ben" };
    ParsedRequest { scenario, language, details: RequestDetails::extract(text, &words, default_recipient) }
}

/// Returns whether the request selects a scenario.
pub(super) fn is_known_request(text: &str) -> bool {
    parse_request(text, None).scenario != DemoScenario::Unknown
}

/// Returns the scenario, and the language of the words that selected it.
fn find_scenario(words: &[Word<'_>]) -> (DemoScenario, Option<Language>) {
    let line = words.iter().fold(String::from(" "), |line, word| line + &word.folded + " ");
    let missing_tool_phrases = [
        [" does not exist ", " no such tool ", " doesn t exist "].as_slice(),
        &[" no existe "],
        &[" ko si "],
    ];
    for (phrases, language) in missing_tool_phrases.into_iter().zip(Language::ALL) {
        if phrases.iter().any(|phrase| line.contains(phrase)) {
            return (DemoScenario::NoSuchTool, Some(language));
        }
    }
    let matches = |stems: &[&str]| stems.iter().any(|stem| line.contains(&format!(" {stem}")));
    let found = SCENARIO_STEMS.iter().find_map(|(scenario, languages)| {
        let matched = languages.iter().zip(Language::ALL).find(|(stems, _)| matches(stems));
        matched.map(|(_, language)| (*scenario, Some(language)))
    });
    found.unwrap_or((DemoScenario::Unknown, None))
}

/// Detects Yoruba by its letters, and Spanish by its letters, punctuation and common words.
fn detect_language(text: &str, words: &[Word<'_>]) -> Option<Language> {
    if text.chars().any(|character| "ẹọṣẸỌṢ\u{323}".contains(character)) {
        return Some(Language::Yoruba);
    }
    let is_spanish = text.contains(['¿', '¡', 'ñ'])
        || words.iter().any(|word| SPANISH_WORDS.contains(&word.folded.as_str()));
    is_spanish.then_some(Language::Spanish)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> (DemoScenario, Language) {
        let request = parse_request(text, None);
        (request.scenario, request.language)
    }

    #[test]
    fn words_select_the_scenario() {
        for (text, expected) in [
            ("Hello, please respond briefly.", DemoScenario::Greeting),
            ("help", DemoScenario::Greeting),
            ("What is my balance?", DemoScenario::Balance),
            ("what's my balance?", DemoScenario::Balance),
            ("how much money do I have", DemoScenario::Balance),
            ("Please use a tool to fetch some data, then respond.", DemoScenario::Balance),
            ("Transfer 50 euros to Ben", DemoScenario::Transfer),
            ("send 20 euro to Ben", DemoScenario::Transfer),
            ("give Ada 5 euro", DemoScenario::Transfer),
            ("Please request confirmation for any action you take.", DemoScenario::Transfer),
            ("Book a meeting room. Use a tool that requires confirmation.", DemoScenario::Booking),
            ("I need a reservation", DemoScenario::Booking),
            ("Send an e-mail to Ada", DemoScenario::Mail),
            ("email ada", DemoScenario::Mail),
            ("Please delete record ID 12345", DemoScenario::Deletion),
            ("How is the weather?", DemoScenario::Weather),
            ("How is the weather in Lagos?", DemoScenario::Weather),
            ("Explain it to me at length", DemoScenario::Explanation),
            ("Please call a tool that does not exist: 'xyz'.", DemoScenario::NoSuchTool),
            ("use a tool that doesn't exist", DemoScenario::NoSuchTool),
            ("Please escalate this conversation to a human via handoff.", DemoScenario::Handoff),
            ("I want a human", DemoScenario::Handoff),
            ("Please trigger a deliberate error.", DemoScenario::Failure),
            ("Fail, please", DemoScenario::Failure),
            ("Begin something and cancel it", DemoScenario::Cancellation),
            ("cancel my booking", DemoScenario::Cancellation),
            ("sing me a song", DemoScenario::Unknown),
            ("", DemoScenario::Unknown),
            ("\u{0}\u{1b}[2J\u{202e}", DemoScenario::Unknown),
            (&"x ".repeat(500_000), DemoScenario::Unknown),
        ] {
            assert_eq!(parse(text), (expected, Language::English), "{}", text.get(..60).unwrap_or(text));
        }
    }

    #[test]
    fn the_language_is_detected_from_the_words() {
        for (text, expected) in [
            ("¿Cuál es mi saldo?", (DemoScenario::Balance, Language::Spanish)),
            ("cual es mi saldo", (DemoScenario::Balance, Language::Spanish)),
            ("transfiere 20 euros a Ben", (DemoScenario::Transfer, Language::Spanish)),
            ("Reservar una sala", (DemoScenario::Booking, Language::Spanish)),
            ("Envía un correo a Ada", (DemoScenario::Mail, Language::Spanish)),
            ("Borra un registro", (DemoScenario::Deletion, Language::Spanish)),
            ("¿Qué tiempo hace? ", (DemoScenario::Weather, Language::Spanish)),
            ("El tiempo en Sevilla", (DemoScenario::Weather, Language::Spanish)),
            ("Explícame todo", (DemoScenario::Explanation, Language::Spanish)),
            ("Una herramienta que no existe", (DemoScenario::NoSuchTool, Language::Spanish)),
            ("Quiero hablar con una persona", (DemoScenario::Handoff, Language::Spanish)),
            ("Falla, por favor", (DemoScenario::Failure, Language::Spanish)),
            ("Empieza algo y cancélalo, por favor", (DemoScenario::Cancellation, Language::Spanish)),
            ("¿Una canción?", (DemoScenario::Unknown, Language::Spanish)),
            ("Fi owó ránṣẹ́ sí Ben", (DemoScenario::Transfer, Language::Yoruba)),
            ("fi owo ranse si Ben", (DemoScenario::Transfer, Language::Yoruba)),
            ("Iye owó mi", (DemoScenario::Balance, Language::Yoruba)),
            ("Gba yàrá", (DemoScenario::Booking, Language::Yoruba)),
            ("Fi ímeèlì ránṣẹ́ sí Ada", (DemoScenario::Mail, Language::Yoruba)),
            ("Pa àkọsílẹ̀ rẹ́", (DemoScenario::Deletion, Language::Yoruba)),
            ("Báwo ni ojú ọjọ́?", (DemoScenario::Weather, Language::Yoruba)),
            ("Ṣàlàyé fún mi", (DemoScenario::Explanation, Language::Yoruba)),
            ("Irinṣẹ́ tí kò sí", (DemoScenario::NoSuchTool, Language::Yoruba)),
            ("Mo fẹ́ ènìyàn", (DemoScenario::Handoff, Language::Yoruba)),
            ("Kùnà", (DemoScenario::Failure, Language::Yoruba)),
            ("Fagi lé e", (DemoScenario::Cancellation, Language::Yoruba)),
            ("Ẹ n lẹ́", (DemoScenario::Greeting, Language::Yoruba)),
        ] {
            assert_eq!(parse(text), expected, "{text}");
        }
    }

    #[test]
    fn a_preferred_language_overrides_the_detected_one() {
        assert_eq!(parse_request("What is my balance?", Some(Language::Yoruba)).language, Language::Yoruba);
    }
}
