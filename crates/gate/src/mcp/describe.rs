//! Describes in words what a call does.

use std::fmt::Write as _;

use seal::json::{JsonKind, JsonValue, Tape};

use crate::phrases::{Language, Phrase, texts};

/// Maximum number of characters of one text in a sentence. The question's details contain the whole text.
const MAX_VALUE_CHARS: usize = 600;
/// Maximum number of characters of all arguments in a sentence.
const MAX_ARGUMENTS_CHARS: usize = 8_000;
/// Maximum number of characters of the parameters besides the arguments in a sentence.
const MAX_OTHER_PARAMS_CHARS: usize = 4_000;
/// Maximum depth of nested values that are described in words. Deeper ones are read as JSON.
const MAX_DEPTH: usize = 4;
/// Maximum number of characters of a name in a sentence.
const MAX_NAME_CHARS: usize = 100;

/// Returns a sentence that names each argument with its value, or `None` if there are no arguments.
pub(crate) fn describe_arguments(arguments: Option<&JsonValue<'_>>, language: Language) -> Option<String> {
    let arguments = arguments?;
    if arguments.kind() != JsonKind::Object {
        return Some(texts::ARGUMENT_IS.fill(language, &[&describe_value(arguments, 0, language)]));
    }
    let mut text = String::new();
    let total = arguments.members().count();
    for (index, (key, value)) in arguments.members().enumerate() {
        if text.len() > MAX_ARGUMENTS_CHARS {
            let rest = total - index;
            text.push(' ');
            text.push_str(&match rest {
                1 => texts::ARGUMENT_IN_DETAILS.fill(language, &[]),
                rest => texts::ARGUMENTS_IN_DETAILS.fill(language, &[&rest.to_string()]),
            });
            break;
        }
        if index > 0 {
            text.push(' ');
        }
        let name = escape_and_shorten(&key.text().unwrap_or_default(), MAX_NAME_CHARS, language);
        let value = describe_value(&value, 0, language);
        let end = if value.ends_with(['.', '!', '?']) { "" } else { "." };
        let _ = write!(text, "{name}: {value}{end}");
    }
    (!text.is_empty()).then_some(text)
}

/// Returns a sentence about the parameters of a call besides its arguments, together with the sentence about the arguments.
pub(crate) fn describe_other_params(
    others: &str,
    argument_words: Option<String>,
    language: Language,
) -> String {
    let mut tape = Tape::default();
    let words = tape.read(others).ok().and_then(|doc| describe_arguments(Some(&doc.root()), language));
    let words = escape_and_shorten(words.as_deref().unwrap_or(others), MAX_OTHER_PARAMS_CHARS, language);
    let words = texts::BESIDES.fill(language, &[&words]);
    match argument_words {
        None => words,
        // The end of a very long text could be cut off.
        Some(arguments) if arguments.len() > MAX_ARGUMENTS_CHARS => format!("{words} {arguments}"),
        Some(arguments) => format!("{arguments} {words}"),
    }
}

fn describe_value(value: &JsonValue<'_>, depth: usize, language: Language) -> String {
    if depth >= MAX_DEPTH {
        return escape_and_shorten(value.source(), MAX_VALUE_CHARS, language);
    }
    match value.kind() {
        JsonKind::Null => texts::NOTHING.fill(language, &[]),
        JsonKind::Bool => {
            let is_true = value.as_bool() == Some(true);
            if is_true { texts::YES } else { texts::NO }.fill(language, &[])
        }
        JsonKind::Number => escape_and_shorten(value.source(), MAX_VALUE_CHARS, language),
        JsonKind::Text => match &*value.text().unwrap_or_default() {
            "" => texts::EMPTY_TEXT.fill(language, &[]),
            text => escape_and_shorten(text, MAX_VALUE_CHARS, language),
        },
        JsonKind::Array => {
            let items = value.items().map(|item| describe_value(&item, depth + 1, language));
            list(items, &texts::EMPTY_LIST, &texts::VALUES, language)
        }
        JsonKind::Object => {
            let members = value.members().map(|(key, value)| {
                let name = escape_and_shorten(&key.text().unwrap_or_default(), MAX_NAME_CHARS, language);
                format!("{name} {}", describe_value(&value, depth + 1, language))
            });
            list(members, &texts::EMPTY_OBJECT, &texts::MEMBERS, language)
        }
    }
}

fn list(items: impl Iterator<Item = String>, empty: &Phrase, several: &Phrase, language: Language) -> String {
    let mut text = String::new();
    let mut total = 0_usize;
    for item in items {
        total += 1;
        if text.len() > MAX_ARGUMENTS_CHARS {
            continue;
        }
        if total > 1 {
            text.push_str("; ");
        }
        text.push_str(&item);
    }
    match total {
        0 => empty.fill(language, &[]),
        1 => text,
        _ => several.fill(language, &[&total.to_string(), &text]),
    }
}

/// Returns a text that can be read aloud and shown in a terminal: control characters and bidirectional controls are named, line
/// breaks become spaces, and a long text is cut, with its length.
pub(crate) fn escape_and_shorten(text: &str, max_chars: usize, language: Language) -> String {
    let total = text.chars().count();
    let cut: String =
        text.chars().take(max_chars).map(|c| if matches!(c, '\n' | '\t') { ' ' } else { c }).collect();
    let name = |code: u32| texts::CONTROL_CHARACTER.fill(language, &[&format!("{code:04X}")]);
    let escaped = seal::escape_controls(&cut, name);
    if total <= max_chars {
        return escaped;
    }
    texts::FIRST_OF.fill(language, &[&escaped, &max_chars.to_string(), &total.to_string()])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Option<String> {
        let mut tape = Tape::default();
        describe_arguments(Some(&tape.read(text).unwrap().root()), Language::English)
    }

    #[test]
    fn every_argument_is_said_in_words() {
        let text =
            r#"{"path":"/tmp/a b","recursive":true,"count":3,"tags":["x","y"],"where":{"a":null},"note":""}"#;
        assert_eq!(
            words(text).unwrap(),
            "path: /tmp/a b. recursive: yes. count: 3. tags: 2 values: x; y. where: a nothing. note: an empty text."
        );
        assert_eq!(words("{}"), None);
        assert_eq!(words("[1]").unwrap(), "The argument is 1.");
    }

    #[test]
    fn dangerous_characters_are_named_and_long_texts_are_cut() {
        let said = words("{\"c\":\"rm \\u001b[2K\\u202Etxt\"}").unwrap();
        assert_eq!(said, "c: rm (control character U+001B)[2K(control character U+202E)txt.");
        let long = words(&format!(r#"{{"c":"{}"}}"#, "a".repeat(5000))).unwrap();
        assert!(long.ends_with("… (the first 600 of 5000 characters; the details have all)."), "{long}");
        let many: Vec<_> = (0..500).map(|i| format!(r#""k{i}":"{}""#, "b".repeat(100))).collect();
        let many = words(&format!("{{{}}}", many.join(","))).unwrap();
        assert!(many.ends_with("more arguments are only in the details."), "{many}");
        assert!(many.len() < 16_000);
    }
}
