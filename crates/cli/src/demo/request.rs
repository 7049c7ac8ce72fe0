//! Which scene somebody wants, by the words of the request.

use super::language::Language;
use super::named::Named;
use super::words::{Word, words};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scene {
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
    /// It is not known what was meant.
    Unknown,
}

#[derive(Debug)]
pub(super) struct Request {
    pub(super) scene: Scene,
    pub(super) language: Language,
    pub(super) named: Named,
}

/// Beginnings of words in English, Spanish and Yoruba, folded, and the scene that they stand for; a space ends a whole word.
/// The first that fits is taken.
const STEMS: [(Scene, [&[&str]; 3]); 11] = [
    (Scene::Handoff, [&["escalat", "human", "handoff"], &["persona ", "humano", "traspas"], &["eniyan"]]),
    (Scene::Deletion, [&["delet", "erase", "remove"], &["borra", "elimin"], &["pare ", "akosile"]]),
    (Scene::Mail, [&["email", "mail", "letter"], &["correo"], &["imeeli"]]),
    (Scene::Cancellation, [&["cancel", "abort"], &["cancela", "anul"], &["fagi"]]),
    (Scene::Booking, [&["book", "reserve", "reservation"], &["reserv"], &["yara"]]),
    (Scene::Weather, [&["weather", "forecast", "rain"], &["tiempo", "clima", "llueve"], &["oju "]]),
    (Scene::Failure, [&["fail", "error"], &["falla", "fallo"], &["kuna", "ikuna"]]),
    (
        Scene::Transfer,
        [
            &["transfer", "pay", "confirm", "send", "give", "wire "],
            &["transfi", "paga", "envia", "manda"],
            &["ranse"],
        ],
    ),
    (Scene::Explanation, [&["explain", "explan", "paragraph", "length"], &["explic"], &["alaye", "salaye"]]),
    (
        Scene::Balance,
        [&["balance", "account", "money", "fetch", "tool"], &["saldo", "cuenta", "dinero"], &["iye", "owo "]],
    ),
    (
        Scene::Greeting,
        [
            &["hello", "hi ", "hey ", "help", "good "],
            &["hola", "ayuda", "buenos", "buenas"],
            &["e n le", "bawo", "pele"],
        ],
    ),
];

/// Words that are Spanish and nothing else here.
const SPANISH: [&str; 21] = [
    "el", "los", "las", "un", "una", "es", "cual", "que", "en", "por", "favor", "para", "quiero", "como",
    "cuanto", "mis", "del", "al", "puede", "hace", "esta",
];

/// What a request is for, what it names, and its language as far as its words tell; else the one that is preferred.
pub(super) fn read(text: &str, preferred: Option<Language>) -> Request {
    let words = words(text);
    let (scene, language) = find(&words);
    let told = of_its_words(text, &words).or(language);
    let language = preferred.or(told).unwrap_or(Language::English);
    let whom = if scene == Scene::Mail { "Ada" } else { "Ben" };
    Request { scene, language, named: Named::in_words(text, &words, whom) }
}

/// Whether the assistant knows what a text asks for.
pub(super) fn is_understood(text: &str) -> bool {
    read(text, None).scene != Scene::Unknown
}

fn find(words: &[Word<'_>]) -> (Scene, Option<Language>) {
    let line = words.iter().fold(String::from(" "), |line, word| line + &word.folded + " ");
    let missing = [
        [" does not exist ", " no such tool ", " doesn t exist "].as_slice(),
        &[" no existe "],
        &[" ko si "],
    ];
    for (marks, language) in missing.into_iter().zip(Language::ALL) {
        if marks.iter().any(|mark| line.contains(mark)) {
            return (Scene::NoSuchTool, Some(language));
        }
    }
    let fits = |stems: &[&str]| stems.iter().any(|stem| line.contains(&format!(" {stem}")));
    let found = STEMS.iter().find_map(|(scene, languages)| {
        let known = languages.iter().zip(Language::ALL).find(|(stems, _)| fits(stems));
        known.map(|(_, language)| (*scene, Some(language)))
    });
    found.unwrap_or((Scene::Unknown, None))
}

/// The language, by letters and small words that only one of them has.
fn of_its_words(text: &str, words: &[Word<'_>]) -> Option<Language> {
    if text.chars().any(|letter| "ẹọṣẸỌṢ\u{323}".contains(letter)) {
        return Some(Language::Yoruba);
    }
    let spanish =
        text.contains(['¿', '¡', 'ñ']) || words.iter().any(|word| SPANISH.contains(&word.folded.as_str()));
    spanish.then_some(Language::Spanish)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn understood(text: &str) -> (Scene, Language) {
        let request = read(text, None);
        (request.scene, request.language)
    }

    #[test]
    fn plain_words_find_their_scene() {
        for (text, wanted) in [
            ("Hello, please respond briefly.", Scene::Greeting),
            ("help", Scene::Greeting),
            ("What is my balance?", Scene::Balance),
            ("what's my balance?", Scene::Balance),
            ("how much money do I have", Scene::Balance),
            ("Please use a tool to fetch some data, then respond.", Scene::Balance),
            ("Transfer 50 euros to Ben", Scene::Transfer),
            ("send 20 euro to Ben", Scene::Transfer),
            ("give Ada 5 euro", Scene::Transfer),
            ("Please request confirmation for any action you take.", Scene::Transfer),
            ("Book a meeting room. Use a tool that requires confirmation.", Scene::Booking),
            ("I need a reservation", Scene::Booking),
            ("Send an e-mail to Ada", Scene::Mail),
            ("email ada", Scene::Mail),
            ("Please delete record ID 12345", Scene::Deletion),
            ("How is the weather?", Scene::Weather),
            ("How is the weather in Lagos?", Scene::Weather),
            ("Explain it to me at length", Scene::Explanation),
            ("Please call a tool that does not exist: 'xyz'.", Scene::NoSuchTool),
            ("use a tool that doesn't exist", Scene::NoSuchTool),
            ("Please escalate this conversation to a human via handoff.", Scene::Handoff),
            ("I want a human", Scene::Handoff),
            ("Please trigger a deliberate error.", Scene::Failure),
            ("Fail, please", Scene::Failure),
            ("Begin something and cancel it", Scene::Cancellation),
            ("cancel my booking", Scene::Cancellation),
            ("sing me a song", Scene::Unknown),
            ("", Scene::Unknown),
            ("\u{0}\u{1b}[2J\u{202e}", Scene::Unknown),
            (&"x ".repeat(500_000), Scene::Unknown),
        ] {
            assert_eq!(understood(text), (wanted, Language::English), "{}", text.get(..60).unwrap_or(text));
        }
    }

    #[test]
    fn the_words_tell_the_language() {
        for (text, wanted) in [
            ("¿Cuál es mi saldo?", (Scene::Balance, Language::Spanish)),
            ("cual es mi saldo", (Scene::Balance, Language::Spanish)),
            ("transfiere 20 euros a Ben", (Scene::Transfer, Language::Spanish)),
            ("Reservar una sala", (Scene::Booking, Language::Spanish)),
            ("Envía un correo a Ada", (Scene::Mail, Language::Spanish)),
            ("Borra un registro", (Scene::Deletion, Language::Spanish)),
            ("¿Qué tiempo hace? ", (Scene::Weather, Language::Spanish)),
            ("El tiempo en Sevilla", (Scene::Weather, Language::Spanish)),
            ("Explícame todo", (Scene::Explanation, Language::Spanish)),
            ("Una herramienta que no existe", (Scene::NoSuchTool, Language::Spanish)),
            ("Quiero hablar con una persona", (Scene::Handoff, Language::Spanish)),
            ("Falla, por favor", (Scene::Failure, Language::Spanish)),
            ("Empieza algo y cancélalo, por favor", (Scene::Cancellation, Language::Spanish)),
            ("¿Una canción?", (Scene::Unknown, Language::Spanish)),
            ("Fi owó ránṣẹ́ sí Ben", (Scene::Transfer, Language::Yoruba)),
            ("fi owo ranse si Ben", (Scene::Transfer, Language::Yoruba)),
            ("Iye owó mi", (Scene::Balance, Language::Yoruba)),
            ("Gba yàrá", (Scene::Booking, Language::Yoruba)),
            ("Fi ímeèlì ránṣẹ́ sí Ada", (Scene::Mail, Language::Yoruba)),
            ("Pa àkọsílẹ̀ rẹ́", (Scene::Deletion, Language::Yoruba)),
            ("Báwo ni ojú ọjọ́?", (Scene::Weather, Language::Yoruba)),
            ("Ṣàlàyé fún mi", (Scene::Explanation, Language::Yoruba)),
            ("Irinṣẹ́ tí kò sí", (Scene::NoSuchTool, Language::Yoruba)),
            ("Mo fẹ́ ènìyàn", (Scene::Handoff, Language::Yoruba)),
            ("Kùnà", (Scene::Failure, Language::Yoruba)),
            ("Fagi lé e", (Scene::Cancellation, Language::Yoruba)),
            ("Ẹ n lẹ́", (Scene::Greeting, Language::Yoruba)),
        ] {
            assert_eq!(understood(text), wanted, "{text}");
        }
    }

    #[test]
    fn who_prefers_a_language_is_answered_in_it() {
        assert_eq!(read("What is my balance?", Some(Language::Yoruba)).language, Language::Yoruba);
    }
}
