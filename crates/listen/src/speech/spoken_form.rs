//! How addresses, paths, dates, amounts, times and versions in an agent's text are spoken. They are printed unchanged.

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
/// - If sayso speaks the language, a date such as `2026-11-18` is spoken as `18 November 2026`, the amount `$5.00` as `5 dollars`, the
///   time `14:05` as `14 oh 5`, and the version `v1.2.3` as `version 1 point 2 point 3`.
///
/// If `is_complete` is set, nothing is shortened: addresses and paths are spoken as they are.
pub(super) fn spoken_form<'t>(text: &'t str, language: &str, is_complete: bool) -> Cow<'t, str> {
    if !text.contains(|c: char| matches!(c, '/' | '\\' | '-' | ':' | '.') || is_currency_sign(c)) {
        return Cow::Borrowed(text);
    }
    let phrases = Phrases::all().find(|phrases| phrases.matches_language(language));
    let mut spoken = String::with_capacity(text.len());
    let mut pieces = text.split_inclusive(char::is_whitespace).peekable();
    while let Some(piece) = pieces.next() {
        let (mut opener, word, mut closer) = split_word(piece);
        // The sign may follow as a word of its own: `20 €`.
        let amount_end = pieces.peek().map(|next| split_word(next)).filter(|(before, sign, _)| {
            closer == " " && before.is_empty() && sign.chars().all(is_currency_sign)
        });
        let amount_and_end = phrases
            .zip(amount_end)
            .and_then(|(phrases, (_, sign, end))| Some((amount(&format!("{word}{sign}"), phrases)?, end)));
        let shortened = || address(word, phrases).or_else(|| path(word));
        let replacement = if let Some((amount, end)) = amount_and_end {
            pieces.next();
            closer = end;
            Some(amount)
        } else {
            Some(()).filter(|()| !is_complete).and_then(|()| shortened()).or_else(|| {
                let phrases = phrases?;
                date(word, phrases)
                    .or_else(|| amount(word, phrases))
                    .or_else(|| time_of_day(word, phrases))
                    .or_else(|| version(word, phrases))
            })
        };
        if replacement.is_none() {
            (opener, closer) = ("", "");
        }
        spoken.push_str(opener);
        spoken.push_str(replacement.as_deref().unwrap_or(piece));
        spoken.push_str(closer);
    }
    Cow::Owned(spoken)
}

/// Splits a piece of text into the punctuation before its word, the word, and the rest.
fn split_word(piece: &str) -> (&str, &str, &str) {
    let unopened = piece.trim_start_matches(OPENERS);
    let word = unopened.trim_end().trim_end_matches(CLOSERS);
    (piece.strip_suffix(unopened).unwrap_or_default(), word, unopened.strip_prefix(word).unwrap_or_default())
}

fn is_currency_sign(c: char) -> bool {
    matches!(c, '$' | '€' | '£' | '₦' | '₹')
}

/// Returns an amount of money in words. The sign is in front of the number or after it, and there are no decimals, or two.
fn amount(word: &str, phrases: &Phrases) -> Option<String> {
    let (minus, word) = word.strip_prefix('-').map_or(("", word), |rest| ("-", rest));
    let sign = word.chars().find(|c| is_currency_sign(*c))?;
    let number = word.strip_prefix(sign).or_else(|| word.strip_suffix(sign))?;
    let (whole, cents) = match number.rsplit_once(['.', ',']) {
        Some((whole, cents)) if cents.len() == 2 => (whole, cents),
        _ => (number, "00"),
    };
    let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let separator = if phrases.matches_language("es") { '.' } else { ',' };
    let mut groups = whole.split(separator);
    let first = groups.next().filter(|first| is_number(first))?;
    let is_grouped = groups.all(|group| group.len() == 3 && is_number(group));
    if !is_grouped
        || !is_number(cents)
        || whole != first && first.len() > 3
        || whole.starts_with('0') && cents != "00"
    {
        return None;
    }
    let names: Vec<&str> = phrases.currencies.split(' ').collect();
    let names =
        names.chunks_exact(3).find(|names| names.first().is_some_and(|name| name.starts_with(sign)))?;
    let name = names.get(if whole == "1" { 1 } else { 2 })?;
    let whole = format!("{minus}{whole}");
    Some(match cents.trim_start_matches('0') {
        "" => phrases.amount(&whole, name),
        cents => phrases.amount_and_cents(&whole, name, cents),
    })
}

/// Returns a time of day in words, if its minutes are less than ten: a synthesizer would say `14 zero 5`.
fn time_of_day(word: &str, phrases: &Phrases) -> Option<String> {
    let (hour, minutes) = word.split_once(':')?;
    let is_number = |digits: &str, min: usize| {
        (min..=2).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    let minutes = Some(minutes).filter(|minutes| is_number(minutes, 2))?;
    let hour: u8 = Some(hour).filter(|hour| is_number(hour, 1))?.parse().ok().filter(|hour| *hour < 24)?;
    match minutes.parse::<u8>().ok()? {
        0 => Some(phrases.full_hour(&hour.to_string())),
        minutes @ 1..10 => Some(phrases.minutes_past(&hour.to_string(), &minutes.to_string())),
        _ => None,
    }
}

/// Returns a version in words: three numbers, or two to four after a `v`. What follows them, such as `-rc.1`, is spoken as words. An IP
/// address, a date and a number with separators are no versions.
fn version(word: &str, phrases: &Phrases) -> Option<String> {
    let (is_marked, rest) = word.strip_prefix(['v', 'V']).map_or((false, word), |rest| (true, rest));
    let (numbers, suffix) = rest.split_once('-').unwrap_or((rest, ""));
    let parts: Vec<&str> = numbers.split('.').collect();
    let is_number =
        |part: &&str| (1..=3).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
    let has_groups = parts.iter().skip(1).all(|part| part.len() == 3);
    let count = if is_marked { 2..=4 } else { 3..=3 };
    let is_suffix_char = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '-';
    if !count.contains(&parts.len())
        || !parts.iter().all(is_number)
        || has_groups && !is_marked
        || !suffix.chars().all(is_suffix_char)
    {
        return None;
    }
    let mut spoken = parts.join(&format!(" {} ", phrases.version_point));
    for part in suffix.split(['-', '.']).filter(|part| !part.is_empty()) {
        spoken.push(' ');
        spoken.push_str(part);
    }
    Some(if is_marked { phrases.version(&spoken) } else { spoken })
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
            ("en", "3.14, 1.234,56 €, 10:30 a.m., well-known", "3.14, 1.234,56 €, 10:30 a.m., well-known"),
        ] {
            assert_eq!(spoken_form(text, language, false), expected);
        }
    }

    #[test]
    fn amounts_and_times_are_spoken_sensibly() {
        for (language, text, expected) in [
            ("en", "Pay $5.00 now.", "Pay 5 dollars now."),
            ("en", "$1.05 or -$3", "1 dollar 5 or -3 dollars"),
            ("en", "It costs $1, not £1.50.", "It costs 1 dollar, not 1 pound 50."),
            ("en", "€20 (20 €), US$3.50 and 1.00€", "20 euros (20 euros), US$3.50 and 1 euro"),
            ("en", "$1,234.56 of $2,000,000.", "1,234 dollars 56 of 2,000,000 dollars."),
            ("en", "¥500 and $0.05", "¥500 and $0.05"),
            ("es", "Cuesta 20,50 €, o $5.00.", "Cuesta 20 euros con 50, o 5 dólares."),
            ("es", "€1 y 1.234,00 €", "1 euro y 1.234 euros"),
            ("yo", "€20", "yúrò 20"),
            ("en", "It costs ₦5,000 (₦1).", "It costs 5,000 naira (1 naira)."),
            ("es", "Cuesta ₦5.000.", "Cuesta 5.000 nairas."),
            ("yo", "₦500", "náírà 500"),
            ("en", "₹20", "20 rupees"),
            ("fr", "20 €", "20 €"),
            ("en", "$HOME, $5k, A$, $1.234.5, $5.0, 5$x", "$HOME, $5k, A$, $1.234.5, $5.0, 5$x"),
            ("en", "At 14:05, 09:30 and 14:00.", "At 14 oh 5, 09:30 and 14 o'clock."),
            ("en", "Took 1:23:45, or 3:4 or 25:00 or 14:60.", "Took 1:23:45, or 3:4 or 25:00 or 14:60."),
            ("es", "A las 14:05 o a las 09:00.", "A las 14 y 5 o a las 9 en punto."),
            ("yo", "14:05", "aago 14 kọjá ìṣẹ́jú 5"),
            ("en", "At 9:05 a.m., or 9:30.", "At 9 oh 5 a.m., or 9:30."),
        ] {
            assert_eq!(spoken_form(text, language, false), expected, "{text}");
        }
    }

    #[test]
    fn versions_are_spoken_number_by_number() {
        for (language, text, expected) in [
            ("en", "Use 1.2.3, not v0.9.", "Use 1 point 2 point 3, not version 0 point 9."),
            ("es", "La v1.10.0-rc.1 salió.", "La versión 1 punto 10 punto 0 rc 1 salió."),
            ("yo", "v2.0.1", "ẹ̀yà 2 póìntì 0 póìntì 1"),
            ("fr", "v1.2.3", "v1.2.3"),
            // A number, a date, an address and other words.
            ("es", "1.234.567 habitantes", "1.234.567 habitantes"),
            (
                "en",
                "3.14 18.11.2026 127.0.0.1 v2 v1.x 1..2 a.b.c",
                "3.14 18.11.2026 127.0.0.1 v2 v1.x 1..2 a.b.c",
            ),
        ] {
            assert_eq!(spoken_form(text, language, false), expected);
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
            let is_plain = |one: &String| !one.contains(['/', '\\']) && !one.contains(is_currency_sign) && !one.bytes().any(|byte| byte.is_ascii_digit());
            let words: Vec<String> = words.into_iter().filter(is_plain).collect();
            let at = at.min(words.len());
            let (before, after) = words.split_at(at);
            let join = |middle: &str| {
                let all: Vec<&str> = before.iter().map(String::as_str).chain([middle]).chain(after.iter().map(String::as_str)).collect();
                all.join(" ")
            };
            let text = join(word);
            prop_assert_eq!(spoken_form(&text, "en", false), join(spoken));
        }

        #[test]
        fn any_text_can_be_spoken(text in "\\PC{0,60}") {
            spoken_form(&text, "en", false);
        }
    }
}
