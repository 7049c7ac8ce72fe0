//! Finds the scene for a request from the words in it.

use super::language::Language;
use super::request_details::RequestDetails;
use super::tokenizer::{Word, tokenize};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DemoScene {
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
    pub(super) scene: DemoScene,
    pub(super) language: Language,
    pub(super) details: RequestDetails,
}

/// The scenes and the folded word stems that select them, in English, Spanish and Yoruba. A trailing space marks the end of a word. The
/// first match wins.
const SCENE_STEMS: [(DemoScene, [&[&str]; 3]); 11] = [
    (DemoScene::Handoff, [&["escalat", "human", "handoff"], &["persona ", "humano", "traspas"], &["eniyan"]]),
    (DemoScene::Deletion, [&["delet", "erase", "remove"], &["borra", "elimin"], &["pare ", "akosile"]]),
    (DemoScene::Mail, [&["email", "mail", "letter"], &["correo"], &["imeeli"]]),
    (DemoScene::Cancellation, [&["cancel", "abort"], &["cancela", "anul"], &["fagi"]]),
    (DemoScene::Booking, [&["book", "reserve", "reservation"], &["reserv"], &["yara"]]),
    (DemoScene::Weather, [&["weather", "forecast", "rain"], &["tiempo", "clima", "llueve"], &["oju "]]),
    (DemoScene::Failure, [&["fail", "error"], &["falla", "fallo"], &["kuna", "ikuna"]]),
    (
        DemoScene::Transfer,
        [
            &["transfer", "pay", "confirm", "send", "give", "wire "],
            &["transfi", "paga", "envia", "manda"],
            &["ranse"],
        ],
    ),
    (
        DemoScene::Explanation,
        [&["explain", "explan", "paragraph", "length"], &["explic"], &["alaye", "salaye"]],
    ),
    (
        DemoScene::Balance,
        [&["balance", "account", "money", "fetch", "tool"], &["saldo", "cuenta", "dinero"], &["iye", "owo "]],
    ),
    (
        DemoScene::Greeting,
        [
            &["hello", "hi ", "hey ", "help", "good "],
            &["hola", "ayuda", "buenos", "buenas"],
            &["e n le", "bawo", "pele"],
        ],
    ),
];

/// Words that exist only in Spanish among the three languages.
const SPANISH_WORDS: [&str; 21] = [
    "el", "los", "las", "un", "una", "es", "cual", "que", "en", "por", "favor", "para", "quiero", "como",
    "cuanto", "mis", "del", "al", "puede", "hace", "esta",
];

/// Returns the scene and details of a request, and its language: the preferred one, else the one its words suggest.
pub(super) fn parse_request(text: &str, preferred: Option<Language>) -> ParsedRequest {
    let words = tokenize(text);
    let (scene, language) = find_scene(&words);
    let detected = detect_language(text, &words).or(language);
    let language = preferred.or(detected).unwrap_or(Language::English);
    let default_recipient = if scene == DemoScene::Mail { "Ada" } else { "Ben" };
    ParsedRequest { scene, language, details: RequestDetails::extract(text, &words, default_recipient) }
}

/// Returns whether the request selects a scene.
pub(super) fn is_understood(text: &str) -> bool {
    parse_request(text, None).scene != DemoScene::Unknown
}

fn find_scene(words: &[Word<'_>]) -> (DemoScene, Option<Language>) {
    let line = words.iter().fold(String::from(" "), |line, word| line + &word.folded + " ");
    let missing = [
        [" does not exist ", " no such tool ", " doesn t exist "].as_slice(),
        &[" no existe "],
        &[" ko si "],
    ];
    for (phrases, language) in missing.into_iter().zip(Language::ALL) {
        if phrases.iter().any(|phrase| line.contains(phrase)) {
            return (DemoScene::NoSuchTool, Some(language));
        }
    }
    let matches = |stems: &[&str]| stems.iter().any(|stem| line.contains(&format!(" {stem}")));
    let found = SCENE_STEMS.iter().find_map(|(scene, languages)| {
        let matched = languages.iter().zip(Language::ALL).find(|(stems, _)| matches(stems));
        matched.map(|(_, language)| (*scene, Some(language)))
    });
    found.unwrap_or((DemoScene::Unknown, None))
}

/// Detects the language by letters and words that only one of the languages has.
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

    fn parse(text: &str) -> (DemoScene, Language) {
        let request = parse_request(text, None);
        (request.scene, request.language)
    }

    #[test]
    fn plain_words_select_their_scene() {
        for (text, expected) in [
            ("Hello, please respond briefly.", DemoScene::Greeting),
            ("help", DemoScene::Greeting),
            ("What is my balance?", DemoScene::Balance),
            ("what's my balance?", DemoScene::Balance),
            ("how much money do I have", DemoScene::Balance),
            ("Please use a tool to fetch some data, then respond.", DemoScene::Balance),
            ("Transfer 50 euros to Ben", DemoScene::Transfer),
            ("send 20 euro to Ben", DemoScene::Transfer),
            ("give Ada 5 euro", DemoScene::Transfer),
            ("Please request confirmation for any action you take.", DemoScene::Transfer),
            ("Book a meeting room. Use a tool that requires confirmation.", DemoScene::Booking),
            ("I need a reservation", DemoScene::Booking),
            ("Send an e-mail to Ada", DemoScene::Mail),
            ("email ada", DemoScene::Mail),
            ("Please delete record ID 12345", DemoScene::Deletion),
            ("How is the weather?", DemoScene::Weather),
            ("How is the weather in Lagos?", DemoScene::Weather),
            ("Explain it to me at length", DemoScene::Explanation),
            ("Please call a tool that does not exist: 'xyz'.", DemoScene::NoSuchTool),
            ("use a tool that doesn't exist", DemoScene::NoSuchTool),
            ("Please escalate this conversation to a human via handoff.", DemoScene::Handoff),
            ("I want a human", DemoScene::Handoff),
            ("Please trigger a deliberate error.", DemoScene::Failure),
            ("Fail, please", DemoScene::Failure),
            ("Begin something and cancel it", DemoScene::Cancellation),
            ("cancel my booking", DemoScene::Cancellation),
            ("sing me a song", DemoScene::Unknown),
            ("", DemoScene::Unknown),
            ("\u{0}\u{1b}[2J\u{202e}", DemoScene::Unknown),
            (&"x ".repeat(500_000), DemoScene::Unknown),
        ] {
            assert_eq!(parse(text), (expected, Language::English), "{}", text.get(..60).unwrap_or(text));
        }
    }

    #[test]
    fn the_language_is_detected_from_the_words() {
        for (text, expected) in [
            ("¿Cuál es mi saldo?", (DemoScene::Balance, Language::Spanish)),
            ("cual es mi saldo", (DemoScene::Balance, Language::Spanish)),
            ("transfiere 20 euros a Ben", (DemoScene::Transfer, Language::Spanish)),
            ("Reservar una sala", (DemoScene::Booking, Language::Spanish)),
            ("Envía un correo a Ada", (DemoScene::Mail, Language::Spanish)),
            ("Borra un registro", (DemoScene::Deletion, Language::Spanish)),
            ("¿Qué tiempo hace? ", (DemoScene::Weather, Language::Spanish)),
            ("El tiempo en Sevilla", (DemoScene::Weather, Language::Spanish)),
            ("Explícame todo", (DemoScene::Explanation, Language::Spanish)),
            ("Una herramienta que no existe", (DemoScene::NoSuchTool, Language::Spanish)),
            ("Quiero hablar con una persona", (DemoScene::Handoff, Language::Spanish)),
            ("Falla, por favor", (DemoScene::Failure, Language::Spanish)),
            ("Empieza algo y cancélalo, por favor", (DemoScene::Cancellation, Language::Spanish)),
            ("¿Una canción?", (DemoScene::Unknown, Language::Spanish)),
            ("Fi owó ránṣẹ́ sí Ben", (DemoScene::Transfer, Language::Yoruba)),
            ("fi owo ranse si Ben", (DemoScene::Transfer, Language::Yoruba)),
            ("Iye owó mi", (DemoScene::Balance, Language::Yoruba)),
            ("Gba yàrá", (DemoScene::Booking, Language::Yoruba)),
            ("Fi ímeèlì ránṣẹ́ sí Ada", (DemoScene::Mail, Language::Yoruba)),
            ("Pa àkọsílẹ̀ rẹ́", (DemoScene::Deletion, Language::Yoruba)),
            ("Báwo ni ojú ọjọ́?", (DemoScene::Weather, Language::Yoruba)),
            ("Ṣàlàyé fún mi", (DemoScene::Explanation, Language::Yoruba)),
            ("Irinṣẹ́ tí kò sí", (DemoScene::NoSuchTool, Language::Yoruba)),
            ("Mo fẹ́ ènìyàn", (DemoScene::Handoff, Language::Yoruba)),
            ("Kùnà", (DemoScene::Failure, Language::Yoruba)),
            ("Fagi lé e", (DemoScene::Cancellation, Language::Yoruba)),
            ("Ẹ n lẹ́", (DemoScene::Greeting, Language::Yoruba)),
        ] {
            assert_eq!(parse(text), expected, "{text}");
        }
    }

    #[test]
    fn a_preferred_language_overrides_the_detected_one() {
        assert_eq!(parse_request("What is my balance?", Some(Language::Yoruba)).language, Language::Yoruba);
    }
}
