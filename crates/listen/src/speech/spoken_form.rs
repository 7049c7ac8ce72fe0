//! How addresses, paths and dates in an agent's text are spoken. They are printed unchanged.

use std::borrow::Cow;

use crate::Phrases;

/// Maximum length of an address or a path that is spoken in full, in characters.
const MAX_SPOKEN_CHARS: usize = 30;
/// Punctuation around a word, which is spoken as it is.
const OPENERS: [char; 6] = ['(', '[', '{', '<', '"', '\''];
const CLOSERS: [char; 12] = [')', ']', '}', '>', '"', '\'', '.', ',', ';', ':', '!', '?'];

/// Returns a text as it is spoken in a language.
///
/// - A long address is spoken as a link to its host, a short one without `https://`.
/// - Of a long path, the last two parts are spoken.
/// - A date such as `2026-11-18` is spoken as `18 November 2026`, if sayso speaks the language.
pub(super) fn spoken_form<'t>(text: &'t str, language: &str) -> Cow<'t, str> {
    if !text.contains(['/', '\\', '-']) {
        return Cow::Borrowed(text);
    }
    let phrases = Phrases::all().find(|phrases| phrases.matches_language(language));
    let mut spoken = String::with_capacity(text.len());
    for piece in text.split_inclusive(char::is_whitespace) {
        let unopened = piece.trim_start_matches(OPENERS);
        let word = unopened.trim_end().trim_end_matches(CLOSERS);
        let replacement = address(word, phrases)
            .or_else(|| path(word))
            .or_else(|| phrases.and_then(|phrases| date(word, phrases)));
        match replacement {
            Some(replacement) => {
                spoken.push_str(piece.strip_suffix(unopened).unwrap_or_default());
                spoken.push_str(&replacement);
                spoken.push_str(unopened.strip_prefix(word).unwrap_or_default());
            }
            None => spoken.push_str(piece),
        }
    }
    Cow::Owned(spoken)
}

fn address(word: &str, phrases: Option<&Phrases>) -> Option<String> {
    let rest = ["https://", "http://"].iter().find_map(|scheme| word.strip_prefix(scheme))?;
    let address: http::Uri = word.parse().ok()?;
    let host = address.host().filter(|host| !host.is_empty())?;
    // A name in front of the host could be mistaken for it.
    if word.chars().count() <= MAX_SPOKEN_CHARS && !rest.contains('@') {
        return Some(rest.trim_end_matches('/').to_owned());
    }
    Some(phrases.map_or_else(|| host.to_owned(), |phrases| phrases.link_to(host)))
}

fn path(word: &str) -> Option<String> {
    let is_windows = word.get(1..3) == Some(":\\");
    let separator = if is_windows { '\\' } else { '/' };
    let is_path_char = |c: char| c.is_alphanumeric() || c == separator || "._-+~@:".contains(c);
    let mut parts = word.split(separator).filter(|part| !part.is_empty()).rev();
    let (last, parent) = (parts.next()?, parts.next()?);
    let is_long = parts.next().is_some() && word.chars().count() > MAX_SPOKEN_CHARS;
    (is_long && word.chars().all(is_path_char) && !word.contains("://"))
        .then(|| format!("{parent}{separator}{last}"))
}

/// Returns a date in words, with the time if there is one: `2026-11-18T10:30:00Z` is `18 November 2026, 10:30`.
fn date(word: &str, phrases: &Phrases) -> Option<String> {
    let (date, time) = word.split_once('T').map_or((word, None), |(date, time)| (date, Some(time)));
    let [year, month, day] = date.split('-').collect::<Vec<_>>().try_into().ok()?;
    let number = |digits: &str, length: usize| {
        let is_number = digits.len() == length && digits.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| digits.parse::<usize>().ok()).flatten()
    };
    number(year, 4)?;
    let day = number(day, 2).filter(|day| (1..=31).contains(day))?;
    let month = phrases.months.split(' ').nth(number(month, 2)?.checked_sub(1)?)?;
    let date = phrases.spoken_date(&day.to_string(), month, year);
    let Some(time) = time else { return Some(date) };
    let minutes =
        time.get(..5).filter(|time| time.bytes().all(|byte| byte.is_ascii_digit() || byte == b':'))?;
    Some(format!("{date}, {minutes}"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn addresses_paths_and_dates_are_spoken_sensibly() {
        for (language, text, expected) in [
            ("en", "See (https://example.org/a/b?c=d&e=1.2#here).", "See (link to example.org)."),
            ("es", "Vea https://example.org/a/b/c/d/e?c=d,", "Vea enlace a example.org,"),
            ("fr", "Voir https://example.org/a/b/c/d/e?c=d.", "Voir example.org."),
            ("en", "At https://example.org/.", "At example.org."),
            ("en", "At http://127.0.0.1:8787 now", "At 127.0.0.1:8787 now"),
            // The host is what counts, not a name in front of it.
            ("en", "https://bank.com@evil.org/x", "link to evil.org"),
            ("en", "https:///nothing", "https:///nothing"),
            ("en", "Wrote /home/ada/projects/sayso/target/log.txt.", "Wrote target/log.txt."),
            ("en", r"Wrote C:\Users\Ada\Documents\Bills\may.pdf!", r"Wrote Bills\may.pdf!"),
            ("en", "crates/listen/src/terminal/history.rs changed", "terminal/history.rs changed"),
            ("en", "/etc/hosts and/or ~/.bashrc", "/etc/hosts and/or ~/.bashrc"),
            ("en-GB", "Due 2026-11-18.", "Due 18 November 2026."),
            ("es-MX", "Vence 2026-01-02, no antes.", "Vence 2 de enero de 2026, no antes."),
            ("yo", "2026-12-31", "ọjọ́ 31 oṣù Ọ̀pẹ ọdún 2026"),
            ("en", "At 2026-11-18T10:30:00Z", "At 18 November 2026, 10:30"),
            ("fr", "Le 2026-11-18", "Le 2026-11-18"),
            (
                "en",
                "2026-13-01 2026-00-01 2026-11-32 26-11-18 1-2-3",
                "2026-13-01 2026-00-01 2026-11-32 26-11-18 1-2-3",
            ),
            (
                "en",
                "3.14, v1.2.3, 1.234,56 €, 10:30 a.m., well-known",
                "3.14, v1.2.3, 1.234,56 €, 10:30 a.m., well-known",
            ),
        ] {
            assert_eq!(spoken_form(text, language), expected);
        }
    }

    proptest! {
        /// Only addresses, long paths and dates change: every other word is spoken as it is written, with its punctuation.
        #[test]
        fn other_words_are_spoken_as_written(
            words in proptest::collection::vec("[^\\s]{1,12}", 0..6),
            replaced in 0_usize..3,
            at in 0_usize..6,
        ) {
            let word = ["https://example.org/some/long/path/x", "/a/long/path/with/many/parts/in/it", "2026-11-18"][replaced];
            let spoken = ["link to example.org", "in/it", "18 November 2026"][replaced];
            let is_plain = |one: &String| !one.contains(['/', '\\']) && !one.bytes().any(|byte| byte.is_ascii_digit());
            let words: Vec<String> = words.into_iter().filter(is_plain).collect();
            let at = at.min(words.len());
            let (before, after) = words.split_at(at);
            let join = |middle: &str| {
                let all: Vec<&str> = before.iter().map(String::as_str).chain([middle]).chain(after.iter().map(String::as_str)).collect();
                all.join(" ")
            };
            let text = join(word);
            prop_assert_eq!(spoken_form(&text, "en"), join(spoken));
        }

        #[test]
        fn any_text_can_be_spoken(text in "\\PC{0,60}") {
            spoken_form(&text, "en");
        }
    }
}
