//! The details in a request: amount, recipient and place. The agent repeats nothing else from a request.

use std::borrow::Cow;

use super::tokenizer::Word;
use crate::output::capitalize;

/// The details of a request, with defaults for those that are missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RequestDetails {
    /// The amount, without cents if they are zero.
    amount: String,
    recipient: String,
    pub(super) place: Option<String>,
}

/// Maximum number of characters in a name.
const MAX_NAME_CHARS: usize = 24;
/// Maximum number of characters in a place.
const MAX_PLACE_CHARS: usize = 60;
/// Words that are not names.
const NON_NAME_WORDS: [&str; 22] = [
    "a", "an", "the", "my", "our", "his", "her", "me", "mi", "mis", "un", "una", "el", "la", "friend",
    "amigo", "amiga", "euro", "euros", "human", "person", "i",
];

impl RequestDetails {
    /// Extracts the details. `default_recipient` is used if nobody is named.
    pub(super) fn extract(text: &str, words: &[Word<'_>], default_recipient: &str) -> Self {
        Self {
            amount: parse_amount(text).unwrap_or_else(|| "250".to_owned()),
            recipient: parse_recipient(words).unwrap_or_else(|| default_recipient.to_owned()),
            place: parse_place(words),
        }
    }

    pub(super) fn fill_template<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if !text.contains('{') {
            return Cow::Borrowed(text);
        }
        let is_singular = self.amount == "1";
        let euros = format!("{} {}", self.amount, if is_singular { "euro" } else { "euros" });
        let values = [
            ("{amount}", self.amount.as_str()),
            ("{euros}", &euros),
            ("{recipient}", &self.recipient),
            ("{place}", self.place.as_deref().unwrap_or_default()),
        ];
        Cow::Owned(values.into_iter().fold(text.to_owned(), |text, (name, value)| text.replace(name, value)))
    }
}

/// Returns the first number in the text, if it is a plausible amount. Omits cents that are zero.
fn parse_amount(text: &str) -> Option<String> {
    let start = text.find(|character: char| character.is_ascii_digit())?;
    let number = text.get(start..)?;
    let end =
        number.find(|character: char| !character.is_ascii_digit() && character != '.' && character != ',');
    let number = number.get(..end.unwrap_or(number.len()))?.trim_end_matches(['.', ',']);
    let (euros, cents) = match number.rsplit_once(['.', ',']) {
        Some((euros, cents)) if cents.len() == 2 => (euros.to_owned(), cents.to_owned()),
        _ => (number.to_owned(), "00".to_owned()),
    };
    let euros = euros.replace(['.', ','], "");
    let euros = euros.trim_start_matches('0');
    if euros.is_empty() || euros.len() > 6 {
        return None;
    }
    Some(if cents == "00" { euros.to_owned() } else { format!("{euros}.{cents}") })
}

/// Returns the recipient: one of the four words after "to", or else a capitalized word other than the first.
fn parse_recipient(words: &[Word<'_>]) -> Option<String> {
    let preposition = words.iter().position(|word| ["to", "a", "para", "si"].contains(&word.folded.as_str()));
    let is_capitalized = |word: &&Word<'_>| word.original.starts_with(char::is_uppercase);
    let could_be_name = |word: &&Word<'_>| {
        let characters = word.original.chars().count();
        (2..=MAX_NAME_CHARS).contains(&characters)
            && word.folded.chars().all(char::is_alphabetic)
            && !NON_NAME_WORDS.contains(&word.folded.as_str())
    };
    let names_after =
        || preposition.into_iter().flat_map(|at| words.iter().skip(at + 1).take(4)).filter(could_be_name);
    let capitalized = names_after().find(is_capitalized);
    let any_capitalized = words.iter().skip(1).filter(could_be_name).find(is_capitalized);
    let name = capitalized.or_else(|| names_after().next()).or(any_capitalized)?.original;
    Some(capitalize(name)).filter(|name| !name.is_empty())
}

/// Returns the place after "in", "at" or "for".
fn parse_place(words: &[Word<'_>]) -> Option<String> {
    // In Yoruba, `ní` means "in" and `ni` does not.
    let is_preposition = |word: &Word<'_>| {
        ["in", "at", "for", "en"].contains(&word.folded.as_str())
            || word.folded == "ni" && !word.original.eq_ignore_ascii_case("ni")
    };
    let preposition = words.iter().position(is_preposition)?;
    let stop_words = ["today", "tomorrow", "now", "hoy", "manana", "please", "the", "me", "loni"];
    let following =
        words.iter().skip(preposition + 1).take_while(|word| !stop_words.contains(&word.folded.as_str()));
    let place = following.take(3).map(|word| word.original).collect::<Vec<_>>().join(" ");
    parse_place_answer(&place)
}

/// Returns a place from a person's answer, if it looks like one.
pub(super) fn parse_place_answer(text: &str) -> Option<String> {
    let text = text.trim().trim_end_matches('.');
    let is_place_character = |character: char| {
        character.is_alphabetic()
            || " -',.".contains(character)
            || ('\u{300}'..='\u{36f}').contains(&character)
    };
    let is_plausible = text.chars().count() <= MAX_PLACE_CHARS && text.chars().all(is_place_character);
    let has_letters = text.chars().any(char::is_alphabetic);
    (is_plausible && has_letters).then(|| {
        let mut characters = text.chars();
        characters.next().into_iter().flat_map(char::to_uppercase).chain(characters).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::super::tokenizer::tokenize;
    use super::*;

    fn details(text: &str) -> RequestDetails {
        RequestDetails::extract(text, &tokenize(text), "Ben")
    }

    #[test]
    fn amounts_are_extracted() {
        for (text, expected) in [
            ("send 20 euro to Ada", "20"),
            ("send 20.50 to Ada", "20.50"),
            ("20,50 €", "20.50"),
            ("1,000 euro.", "1000"),
            ("12.345,67", "12345.67"),
            ("007", "7"),
            ("nothing", "250"),
            ("0", "250"),
            ("99999999999999999999", "250"),
            ("-1.2.3.4.5", "12345"),
        ] {
            assert_eq!(details(text).fill_template("{amount}"), expected, "{text}");
        }
        assert_eq!(details("1 euro").fill_template("{euros}"), "1 euro");
    }

    #[test]
    fn recipients_are_extracted() {
        for (text, expected) in [
            ("send 20 euro to ada", "Ada"),
            ("Transfer 20 to my friend Okri please", "Okri"),
            ("give Ada 20 euro", "Ada"),
            ("transfiere 20 euros a María", "María"),
            ("Fi owó ránṣẹ́ sí Tolú", "Tolú"),
            ("Transfer it", "Ben"),
            ("to {recipient}", "Recipient"),
            ("to \u{202e}x\u{7}", "Ben"),
            (&format!("to {}", "x".repeat(100)), "Ben"),
        ] {
            assert_eq!(details(text).fill_template("{recipient}"), expected, "{text}");
        }
    }

    #[test]
    fn places_are_extracted() {
        let place = |text| details(text).place;
        assert_eq!(place("weather in Lagos"), Some("Lagos".to_owned()));
        assert_eq!(place("How is the weather in new york today?"), Some("New york".to_owned()));
        assert_eq!(place("El tiempo en Sevilla"), Some("Sevilla".to_owned()));
        assert_eq!(place("weather for the"), None);
        assert_eq!(place("weather"), None);
        assert_eq!(place("Báwo ni ojú ọjọ́?"), None);
        assert_eq!(place("Ojú ọjọ́ ní Ìbàdàn"), Some("Ìbàdàn".to_owned()));
        assert_eq!(parse_place_answer(" São Paulo. "), Some("São Paulo".to_owned()));
        for invalid in ["", " ", "<script>", "a\nb", "...", "{place}", &"x".repeat(61)] {
            assert_eq!(parse_place_answer(invalid), None, "{invalid}");
        }
    }
}
