//! Which scene somebody wants, by the words of the request.

use super::language::Language;

/// What the assistant can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scene {
    Greeting,
    Balance,
    Transfer,
    Booking,
    Mail,
    Deletion,
    /// Whether the place was said.
    Weather(bool),
    Explanation,
    NoSuchTool,
    Handoff,
    Failure,
    Cancellation,
}

/// Beginnings of words in English, Spanish and Yoruba, and the scene that they stand for. The first that fits is taken.
const STEMS: [(Scene, [&[&str]; 3]); 10] = [
    (Scene::Handoff, [&["escalat", "human", "handoff"], &["persona", "humano", "traspas"], &["ènìyàn"]]),
    (Scene::Deletion, [&["delet", "erase"], &["borra", "elimin"], &["parẹ́"]]),
    (Scene::Mail, [&["email", "mail"], &["correo"], &["ímeèlì"]]),
    (Scene::Booking, [&["book"], &["reserv"], &["yàrá"]]),
    (Scene::Weather(false), [&["weather", "forecast"], &["tiempo", "clima"], &["ojú"]]),
    (Scene::Cancellation, [&["cancel"], &["anul"], &["fagi"]]),
    (Scene::Failure, [&["fail", "error"], &["falla", "fallo"], &["kùnà"]]),
    (Scene::Transfer, [&["transfer", "pay", "confirm"], &["transfier", "paga"], &["ránṣẹ́"]]),
    (Scene::Explanation, [&["explain", "explan", "paragraph", "length"], &["explic"], &["àlàyé", "ṣàlàyé"]]),
    (Scene::Balance, [&["balance", "account", "fetch", "tool"], &["saldo", "cuenta"], &["iye"]]),
];

/// The scene that a request is for, and the language that it is in as far as its words tell.
pub(super) fn read(text: &str) -> (Scene, Language) {
    let text = text.to_lowercase();
    let words: Vec<&str> = text.split(|letter: char| !is_of_a_word(letter)).collect();
    if words.windows(3).any(|three| matches!(three, ["does", "not", "exist"] | ["no", "such", "tool"])) {
        return (Scene::NoSuchTool, Language::English);
    }
    if words.windows(2).any(|two| *two == ["no", "existe"]) {
        return (Scene::NoSuchTool, Language::Spanish);
    }
    let fits = |stems: &[&str]| words.iter().any(|word| stems.iter().any(|stem| word.starts_with(stem)));
    let found = STEMS.iter().find_map(|(scene, languages)| {
        let known = languages.iter().zip(Language::ALL).find(|(stems, _)| fits(stems));
        known.map(|(_, language)| (*scene, language))
    });
    match found {
        Some((Scene::Weather(_), language)) => (Scene::Weather(names_a_place(&words)), language),
        Some(found) => found,
        None if fits(&["hola"]) => (Scene::Greeting, Language::Spanish),
        None if fits(&["ẹ"]) => (Scene::Greeting, Language::Yoruba),
        None => (Scene::Greeting, Language::English),
    }
}

/// Yoruba has marks that are letters of their own.
fn is_of_a_word(letter: char) -> bool {
    letter.is_alphanumeric() || ('\u{300}'..='\u{36f}').contains(&letter)
}

/// Whether it says where: the weather in, at or for some place.
fn names_a_place(words: &[&str]) -> bool {
    let about = ["weather", "forecast", "tiempo", "clima"];
    words.windows(3).any(|three| {
        matches!(three, [weather, "in" | "at" | "for" | "en", place] if about.contains(weather) && !place.is_empty())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_words_find_their_scene() {
        for (text, wanted) in [
            ("Hello, please respond briefly.", Scene::Greeting),
            ("What is my balance?", Scene::Balance),
            ("Please use a tool to fetch some data, then respond.", Scene::Balance),
            ("Transfer 50 euros to Ben", Scene::Transfer),
            ("Please request confirmation for any action you take.", Scene::Transfer),
            ("Book a meeting room. Use a tool that requires confirmation.", Scene::Booking),
            ("Send an e-mail to Ada", Scene::Mail),
            ("Please delete record ID 12345", Scene::Deletion),
            ("How is the weather?", Scene::Weather(false)),
            ("How is the weather in Lagos?", Scene::Weather(true)),
            ("Explain it to me at length", Scene::Explanation),
            ("Please call a tool that does not exist: 'xyz'.", Scene::NoSuchTool),
            ("Please escalate this conversation to a human via handoff.", Scene::Handoff),
            ("Please trigger a deliberate error.", Scene::Failure),
            ("Fail, please", Scene::Failure),
            ("Begin something and cancel it", Scene::Cancellation),
            ("", Scene::Greeting),
        ] {
            assert_eq!(read(text), (wanted, Language::English), "{text}");
        }
    }
    #[test]
    fn the_words_tell_the_language() {
        for (text, wanted) in [
            ("¿Cuál es mi saldo?", (Scene::Balance, Language::Spanish)),
            ("¿Qué tiempo hace? ", (Scene::Weather(false), Language::Spanish)),
            ("El tiempo en Sevilla", (Scene::Weather(true), Language::Spanish)),
            ("Una herramienta que no existe", (Scene::NoSuchTool, Language::Spanish)),
            ("Fi owó ránṣẹ́ sí Ben", (Scene::Transfer, Language::Yoruba)),
            ("Ẹ n lẹ́", (Scene::Greeting, Language::Yoruba)),
        ] {
            assert_eq!(read(text), wanted, "{text}");
        }
    }
}
