//! What a request names: how much, to whom, where. Nothing else that somebody says is repeated.

use std::borrow::Cow;

use super::words::Word;
use crate::print::capitalize;

/// What a request named, or what stands for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Named {
    /// Without cents if there are none.
    amount: String,
    /// With cents.
    exact: String,
    whom: String,
    pub(super) place: Option<String>,
}

/// Letters of a name.
const LONGEST: usize = 24;
/// Letters of a place that somebody answers.
const LONGEST_PLACE: usize = 60;
/// Those who are meant otherwise.
const NOBODY: [&str; 22] = [
    "a", "an", "the", "my", "our", "his", "her", "me", "mi", "mis", "un", "una", "el", "la", "friend",
    "amigo", "amiga", "euro", "euros", "human", "person", "i",
];

impl Named {
    /// What the words name; `whom` is the one who stands for nobody.
    pub(super) fn in_words(text: &str, words: &[Word<'_>], whom: &str) -> Self {
        let (amount, exact) = amount(text).unwrap_or_else(|| ("250".to_owned(), "250.00".to_owned()));
        Self { amount, exact, whom: person(words).unwrap_or_else(|| whom.to_owned()), place: place(words) }
    }

    pub(super) fn fill<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if !text.contains('{') {
            return Cow::Borrowed(text);
        }
        let one = self.amount == "1";
        let euros = format!("{} {}", self.amount, if one { "euro" } else { "euros" });
        let all = [
            ("{amount}", self.amount.as_str()),
            ("{exact}", &self.exact),
            ("{euros}", &euros),
            ("{whom}", &self.whom),
            ("{place}", self.place.as_deref().unwrap_or_default()),
        ];
        Cow::Owned(all.into_iter().fold(text.to_owned(), |text, (name, value)| text.replace(name, value)))
    }
}

/// The first number of the text, if it is one that money can be.
fn amount(text: &str) -> Option<(String, String)> {
    let start = text.find(|letter: char| letter.is_ascii_digit())?;
    let number = text.get(start..)?;
    let end = number.find(|letter: char| !letter.is_ascii_digit() && letter != '.' && letter != ',');
    let number = number.get(..end.unwrap_or(number.len()))?.trim_end_matches(['.', ',']);
    let (whole, cents) = match number.rsplit_once(['.', ',']) {
        Some((whole, cents)) if cents.len() == 2 => (whole.to_owned(), cents.to_owned()),
        _ => (number.to_owned(), "00".to_owned()),
    };
    let whole = whole.replace(['.', ','], "");
    let whole = whole.trim_start_matches('0');
    if whole.is_empty() || whole.len() > 6 {
        return None;
    }
    let exact = format!("{whole}.{cents}");
    Some((if cents == "00" { whole.to_owned() } else { exact.clone() }, exact))
}

/// Who is meant: after `to`, or anybody with a capital.
fn person(words: &[Word<'_>]) -> Option<String> {
    let after = words.iter().position(|word| ["to", "a", "para", "si"].contains(&word.folded.as_str()));
    let begins_large = |word: &&Word<'_>| word.written.starts_with(char::is_uppercase);
    let is_somebody = |word: &&Word<'_>| {
        let letters = word.written.chars().count();
        (2..=LONGEST).contains(&letters)
            && word.folded.chars().all(char::is_alphabetic)
            && !NOBODY.contains(&word.folded.as_str())
    };
    let following = || after.into_iter().flat_map(|at| words.iter().skip(at + 1).take(4)).filter(is_somebody);
    let large = following().find(begins_large);
    let anybody = words.iter().skip(1).filter(is_somebody).find(begins_large);
    let name = large.or_else(|| following().next()).or(anybody)?.written;
    Some(capitalize(name)).filter(|name| !name.is_empty())
}

/// Where: the weather in, at or for some place.
fn place(words: &[Word<'_>]) -> Option<String> {
    // Yoruba's `ní` is where; its `ni` is not.
    let is_where = |word: &Word<'_>| {
        ["in", "at", "for", "en"].contains(&word.folded.as_str())
            || word.folded == "ni" && !word.written.eq_ignore_ascii_case("ni")
    };
    let after = words.iter().position(is_where)?;
    let apart = ["today", "tomorrow", "now", "hoy", "manana", "please", "the", "me", "loni"];
    let following = words.iter().skip(after + 1).take_while(|word| !apart.contains(&word.folded.as_str()));
    let place = following.take(3).map(|word| word.written).collect::<Vec<_>>().join(" ");
    answered_place(&place)
}

/// A place as somebody answers it, if it looks like one.
pub(super) fn answered_place(text: &str) -> Option<String> {
    let text = text.trim().trim_end_matches('.');
    let is_of_a_place = |letter: char| {
        letter.is_alphabetic() || " -',.".contains(letter) || ('\u{300}'..='\u{36f}').contains(&letter)
    };
    let fits = text.chars().count() <= LONGEST_PLACE && text.chars().all(is_of_a_place);
    let says_something = text.chars().any(char::is_alphabetic);
    (fits && says_something).then(|| {
        let mut letters = text.chars();
        letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::super::words::words;
    use super::*;

    fn named(text: &str) -> Named {
        Named::in_words(text, &words(text), "Ben")
    }

    #[test]
    fn amounts() {
        for (text, wanted) in [
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
            assert_eq!(named(text).fill("{amount}"), wanted, "{text}");
        }
        assert_eq!(named("1 euro").fill("{euros} {exact}"), "1 euro 1.00");
    }

    #[test]
    fn people() {
        for (text, wanted) in [
            ("send 20 euro to ada", "Ada"),
            ("Transfer 20 to my friend Okri please", "Okri"),
            ("give Ada 20 euro", "Ada"),
            ("transfiere 20 euros a María", "María"),
            ("Fi owó ránṣẹ́ sí Tolú", "Tolú"),
            ("Transfer it", "Ben"),
            ("to {whom}", "Whom"),
            ("to \u{202e}x\u{7}", "Ben"),
            (&format!("to {}", "x".repeat(100)), "Ben"),
        ] {
            assert_eq!(named(text).fill("{whom}"), wanted, "{text}");
        }
    }

    #[test]
    fn places() {
        let place = |text| named(text).place;
        assert_eq!(place("weather in Lagos"), Some("Lagos".to_owned()));
        assert_eq!(place("How is the weather in new york today?"), Some("New york".to_owned()));
        assert_eq!(place("El tiempo en Sevilla"), Some("Sevilla".to_owned()));
        assert_eq!(place("weather for the"), None);
        assert_eq!(place("weather"), None);
        assert_eq!(place("Báwo ni ojú ọjọ́?"), None);
        assert_eq!(place("Ojú ọjọ́ ní Ìbàdàn"), Some("Ìbàdàn".to_owned()));
        assert_eq!(answered_place(" São Paulo. "), Some("São Paulo".to_owned()));
        for odd in ["", " ", "<script>", "a\nb", "...", "{place}", &"x".repeat(61)] {
            assert_eq!(answered_place(odd), None, "{odd}");
        }
    }
}
