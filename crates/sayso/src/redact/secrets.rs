//! What counts as a secret: keys by how they begin, bearer tokens, what stands after `password:`, passwords in URLs, private
//! keys, and card numbers by their check digit. A word that merely looks odd does not.

use std::borrow::Cow;
use std::ops::Range;

use super::Redact;
use super::card::card;

/// What stands in the place of a secret.
const INSTEAD: &str = "[redacted]";

/// Takes out keys, tokens, passwords and card numbers. This is what sessions do if nobody says otherwise.
///
/// ```
/// use sayso::{Redact, Secrets};
/// let (text, count) = Secrets.redact("The task-1 is risk-free; password: hunter2, card 4111 1111 1111 1111.");
/// assert_eq!(text, "The task-1 is risk-free; password: [redacted], card [redacted].");
/// assert_eq!(count, 2);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Secrets;

impl Redact for Secrets {
    fn redact<'t>(&self, text: &'t str) -> (Cow<'t, str>, u64) {
        if !has_signs(text) {
            return (text.into(), 0);
        }
        let mut out = String::new();
        let (mut from, mut count) = (0, 0);
        for secret in secrets(text) {
            out.push_str(text.get(from..secret.start).unwrap_or_default());
            out.push_str(INSTEAD);
            (from, count) = (secret.end, count + 1);
        }
        if count == 0 {
            return (text.into(), 0);
        }
        out.push_str(text.get(from..).unwrap_or_default());
        (out.into(), count)
    }
}

/// Whether a text has any of the characters of which every secret has one: a key, a token or a card has a digit, a web token
/// begins with `eyJ`, what is assigned stands behind a colon or an equals sign, a private key's armour is of hyphens. Most of
/// what people are told has none. Without a way out in the middle the compiler looks at many bytes at once.
fn has_signs(text: &str) -> bool {
    let sign = |byte: u8| {
        u8::from(byte.wrapping_sub(b'0') < 10)
            | u8::from(byte == b'J')
            | u8::from(byte == b':')
            | u8::from(byte == b'=')
            | u8::from(byte == b'-')
    };
    text.bytes().fold(0, |signs, byte| signs | sign(byte)) != 0
}

/// Where the secrets of a text are, one after the other.
fn secrets(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        while let Some(first) = text.get(at..).and_then(|rest| rest.chars().next()) {
            let secret = secret_at(text, at);
            at = secret.as_ref().map_or(at + first.len_utf8(), |secret| secret.end);
            if secret.is_some() {
                return secret;
            }
        }
        None
    })
}

/// How keys begin, and how many characters follow at least.
const KEYS: [(&str, usize); 22] = [
    ("sk-", 20),
    ("sk_live_", 10),
    ("sk_test_", 10),
    ("rk_live_", 10),
    ("whsec_", 16),
    ("ghp_", 20),
    ("gho_", 20),
    ("ghu_", 20),
    ("ghs_", 20),
    ("ghr_", 20),
    ("github_pat_", 20),
    ("glpat-", 16),
    ("npm_", 30),
    ("hf_", 20),
    ("xoxb-", 10),
    ("xoxp-", 10),
    ("xoxa-", 10),
    ("xoxs-", 10),
    ("AKIA", 16),
    ("ASIA", 16),
    ("AIza", 30),
    ("sayso_", 16),
];
/// After these, whatever is assigned is a secret.
const PASSWORDS: [&str; 4] = ["password", "passwd", "passphrase", "pwd"];
/// After these, what is assigned and has a digit is.
const NAMES: [&str; 9] = [
    "api_key",
    "api-key",
    "api key",
    "apikey",
    "access_token",
    "auth_token",
    "client_secret",
    "secret",
    "token",
];
const BEARER: &str = "bearer";
const PEM: &str = "-----BEGIN ";
const PEM_END: &str = "-----END ";

/// The secret that is found by looking at this place, which may begin later.
fn secret_at(text: &str, at: usize) -> Option<Range<usize>> {
    let rest = text.get(at..)?;
    let first = rest.chars().next()?;
    // Nearly every place is settled by one character.
    if first == ':' {
        return password_of_url(rest).map(|range| moved(&range, at));
    }
    if !(first.is_ascii_alphanumeric() || first == '-') {
        return None;
    }
    if !(begins_word(text, at) || first.is_ascii_digit() && goes_on(text, at)) {
        return None;
    }
    let range = match first {
        '0'..='9' => card(rest),
        '-' => private_key(rest),
        _ => key(rest).or_else(|| json_web_token(rest)).or_else(|| bearer(rest)).or_else(|| assigned(rest)),
    };
    range.map(|range| moved(&range, at))
}

fn moved(range: &Range<usize>, by: usize) -> Range<usize> {
    range.start + by..range.end + by
}

fn begins_word(text: &str, at: usize) -> bool {
    let before = text.get(..at).and_then(|before| before.chars().next_back());
    before.is_none_or(|before| !before.is_alphanumeric() && before != '_' && before != '-')
}

/// Whether digits and a hyphen stand before: what follows goes on with them.
fn goes_on(text: &str, at: usize) -> bool {
    let before = text.get(..at).and_then(|before| before.strip_suffix('-'));
    before.is_some_and(|before| before.ends_with(|one: char| one.is_ascii_digit()))
}

/// How many bytes of the text are of that kind, from its start.
fn run(text: &str, is: impl Fn(u8) -> bool) -> usize {
    text.bytes().take_while(|byte| is(*byte)).count()
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

fn has_digit(text: &str) -> bool {
    text.bytes().any(|byte| byte.is_ascii_digit())
}

fn key(rest: &str) -> Option<Range<usize>> {
    // Nearly every word is settled by its first letter, here and below.
    let first = rest.bytes().next();
    let begins = |begin: &str| begin.bytes().next() == first && rest.starts_with(begin);
    let (begin, least) = *KEYS.iter().find(|(begin, _)| begins(begin))?;
    let body = rest.get(begin.len()..)?;
    let length = run(body, is_token);
    (length >= least && has_digit(body.get(..length)?)).then_some(0..begin.len() + length)
}

fn json_web_token(rest: &str) -> Option<Range<usize>> {
    if !rest.starts_with("eyJ") {
        return None;
    }
    let length = run(rest, |byte| is_token(byte) || byte == b'.');
    let whole = rest.get(..length)?.trim_end_matches('.');
    let parts = whole.split('.').filter(|part| part.len() >= 4).count();
    (parts >= 2 && whole.len() >= 24).then_some(0..whole.len())
}

fn bearer(rest: &str) -> Option<Range<usize>> {
    let after = strip_word(rest, BEARER)?;
    let token = after.trim_start_matches(' ');
    let length = run(token, |byte| is_token(byte) || matches!(byte, b'.' | b'~' | b'+' | b'/' | b'='));
    let token_text = token.get(..length)?.trim_end_matches('.');
    let start = rest.len() - token.len();
    let is = after.len() > token.len() && token_text.len() >= 12 && has_digit(token_text);
    is.then_some(start..start + token_text.len())
}

/// `password: …`, `api_key = "…"`
fn assigned(rest: &str) -> Option<Range<usize>> {
    let word = |words: &[&str]| words.iter().find_map(|word| strip_word(rest, word));
    let (after, always) = match word(&PASSWORDS) {
        Some(after) => (after, true),
        None => (word(&NAMES)?, false),
    };
    let after = after.trim_start_matches(['"', '\'', ' ']);
    let after = after.strip_prefix([':', '='])?;
    let value = after.trim_start_matches(' ');
    let (value, end): (&str, &[char]) = match value.chars().next()? {
        '"' => (value.get(1..)?, &['"']),
        '\'' => (value.get(1..)?, &['\'']),
        _ => (value, &[' ', '\t', '\n', '\r', ',', ';', '"', '\'', ')', '}', ']']),
    };
    if value.starts_with(INSTEAD) {
        return None;
    }
    let length = value.find(end).unwrap_or(value.len());
    let secret = value.get(..length)?;
    let secret = if end.len() > 1 { secret.trim_end_matches(['.', '!', '?']) } else { secret };
    let start = rest.len() - value.len();
    let is = !secret.is_empty() && (always || secret.len() >= 6 && has_digit(secret));
    is.then_some(start..start + secret.len())
}

/// What follows a word, in whatever case it is written.
fn strip_word<'t>(rest: &'t str, word: &str) -> Option<&'t str> {
    if !rest.bytes().next()?.eq_ignore_ascii_case(&word.bytes().next()?) {
        return None;
    }
    let found = rest.get(..word.len())?;
    let after = rest.get(word.len()..)?;
    let ends = after.chars().next().is_none_or(|next| !next.is_alphanumeric());
    (found.eq_ignore_ascii_case(word) && ends).then_some(after)
}

/// `://name:password@`
fn password_of_url(rest: &str) -> Option<Range<usize>> {
    let authority = rest.strip_prefix("://")?;
    let length = authority.find(|one: char| one == '/' || one.is_whitespace()).unwrap_or(authority.len());
    let (user, _) = authority.get(..length)?.rsplit_once('@')?;
    let (name, password) = user.split_once(':')?;
    let start = 3 + name.len() + 1;
    (!password.is_empty() && password != INSTEAD).then_some(start..start + password.len())
}

/// A private key in armour, to its end or the end of the text.
fn private_key(rest: &str) -> Option<Range<usize>> {
    let label = rest.strip_prefix(PEM)?.split("-----").next()?;
    if !label.ends_with("PRIVATE KEY") {
        return None;
    }
    let end = rest.find(PEM_END).and_then(|end| {
        let last = end + PEM_END.len();
        Some(last + rest.get(last..)?.find("-----")? + 5)
    });
    Some(0..end.unwrap_or(rest.len()))
}

/// Up to where a text that goes on can be told: what may be the beginning of a secret waits, but no more than `most` bytes.
pub(super) fn settled(text: &str, most: usize) -> usize {
    let mut cut = last_word(text, text.len());
    // The words before belong to it where they could begin a secret that has blanks in it.
    while cut > 0
        && let Some(before) = text.get(..cut)
    {
        let start = last_word(before, before.trim_end().len());
        let word = text.get(start..cut).unwrap_or_default().trim_end();
        if start < cut && leads_on(word) { cut = start } else { break }
    }
    if let Some(begin) = text.rfind(PEM)
        && !text.get(begin + PEM.len()..).is_some_and(|label| label.contains("-----"))
    {
        cut = cut.min(begin);
    }
    // A secret that reaches the end may go on.
    let open = |at: &usize| secret_at(text, *at).is_some_and(|secret| secret.end == text.len());
    if has_signs(text) {
        cut = (0..cut).filter(|at| text.is_char_boundary(*at)).find(open).unwrap_or(cut);
    }
    let unfinished_key = text.get(cut..).is_some_and(|rest| rest.starts_with(PEM));
    if unfinished_key || text.len() - cut <= most {
        return cut;
    }
    let end = text.len();
    (end.saturating_sub(most)..=end).find(|at| text.is_char_boundary(*at)).unwrap_or(end).max(cut)
}

/// Where the word begins that ends at `end`.
fn last_word(text: &str, end: usize) -> usize {
    let before = text.get(..end).unwrap_or_default();
    before
        .char_indices()
        .rev()
        .find(|(_, one)| one.is_whitespace())
        .map_or(0, |(at, one)| at + one.len_utf8())
}

/// Whether a secret may go on after this word and a blank.
fn leads_on(word: &str) -> bool {
    let name = word.trim_matches(['"', '\'', ':', '=', '(', '{', ',']);
    let is = |words: &[&str]| {
        words.iter().any(|one| {
            name.len() >= one.len()
                && name.get(name.len() - one.len()..).is_some_and(|end| end.eq_ignore_ascii_case(one))
        })
    };
    word.is_empty()
        || word.ends_with([':', '='])
        // A number begins after whatever is no letter, and be it a mark on one.
        || word.ends_with(|one: char| one.is_ascii_digit() || one == '-')
        || is(&PASSWORDS)
        || is(&NAMES)
        || is(&[BEARER, "api", "key"])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::card::checks;
    use super::super::{Cleaner, Held};
    use super::*;

    fn clean(text: &str) -> String {
        Secrets.redact(text).0.into_owned()
    }

    #[test]
    fn secrets_are_taken_out() {
        for (text, clean_text) in [
            ("key sk-abcdefghij1234567890XYZ.", "key [redacted]."),
            ("ghp_0123456789abcdefghij0123456789abcdef", "[redacted]"),
            ("AKIAIOSFODNN7EXAMPLE is it", "[redacted] is it"),
            ("Authorization: Bearer abcdef1234567890", "Authorization: Bearer [redacted]"),
            ("Password: hunter2.", "Password: [redacted]."),
            (r#"{"password": "a b c"}"#, r#"{"password": "[redacted]"}"#),
            ("api_key=abc123def, rest", "api_key=[redacted], rest"),
            ("API key: abc123def", "API key: [redacted]"),
            ("http://me:pa55@hub/x", "http://me:[redacted]@hub/x"),
            ("eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl ok", "[redacted] ok"),
            ("4111-1111-1111-1111", "[redacted]"),
            ("4111 1111 1111 1111 77 euro", "[redacted] 77 euro"),
            ("6 4111 1111 1111 1111", "6 [redacted]"),
            ("6 4111 1111 1111 1111 6", "6 [redacted] 6"),
            ("12 6 4111-1111-1111-1111 9 euro", "12 6 [redacted] 9 euro"),
            ("Order 99 4111111111111111 0", "Order 99 [redacted] 0"),
            ("ref 004111111111111111, 3782 822463 10005", "ref 00[redacted], [redacted]"),
            ("4 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1", "[redacted]"),
            ("4111 1111 1111 1111 5500 0000 0000 0004", "[redacted]"),
            ("Card 4111 1111 1111 1111 and 378282246310005!", "Card [redacted] and [redacted]!"),
            ("x -----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY----- y", "x [redacted] y"),
        ] {
            assert_eq!(clean(text), clean_text);
        }
    }

    #[test]
    fn what_is_no_secret_stays() {
        for text in [
            "This is risk-free.",
            "task-1 and task-12345678901234567890",
            "The bearer of good news",
            "Bearer bonds are old-fashioned",
            "The password is wrong.",
            "Reset your password in the settings.",
            "3 tokens: one, two, three",
            "The secret: patience and time",
            "sk-free is no word",
            "4111 1111 1111 1112 fails its check",
            "It is 1731693600000 now, order 1234567890123",
            "Rooms 21 34 55 89 144 233 377 610 987 are free",
            "4111111111111111af is the start of a hash",
            "0000 0000 0000 0000",
            "Ask at http://hub:8787/a@b",
            "Call 030 1234567 in Berlin, Ọjọ́ dára.",
        ] {
            assert_eq!(clean(text), text);
        }
    }

    /// The whole text as it comes out when it goes in by these pieces.
    fn in_pieces(text: &str, cuts: &[usize]) -> String {
        let cleaner = Cleaner::new(std::sync::Arc::new(Secrets));
        let (mut held, mut out, mut rest) = (Held::default(), String::new(), text);
        for cut in cuts {
            let at = rest.char_indices().nth(*cut).map_or(rest.len(), |(at, _)| at);
            let (piece, after) = rest.split_at(at);
            out.push_str(&held.push(piece, false, &cleaner));
            rest = after;
        }
        out.push_str(&held.push(rest, true, &cleaner));
        out
    }

    #[test]
    fn a_long_private_key_in_pieces_is_one_secret() {
        let body = "MIIEowIBAAKCAQEA0123456789\n".repeat(1000);
        let text = format!(
            "x -----BEGIN PRIVATE KEY-----\n{body}-----END PRIVATE KEY----- y \"password\": \"a b c\" z"
        );
        let told = in_pieces(&text, &vec![7; 5000]);
        assert!(told == "x [redacted] y \"password\": \"[redacted]\" z", "{} bytes", told.len());
    }

    #[test]
    fn a_number_behind_a_mark_on_a_letter_is_held_as_it_is_read() {
        let text = "Ọjọ\u{301}6 4111 1111 1111 1111 ";
        assert_eq!(in_pieces(text, &[6]), clean(text));
    }

    proptest! {
        /// Every number with its check digit is found, however it is grouped, and is not with another digit at its end.
        #[test]
        fn a_card_is_known_by_its_check_digit(
            first in 3_u32..=6, body in proptest::collection::vec(0_u32..10, 11..=17), blank in "[ -]?"
        ) {
            let mut digits = vec![first];
            digits.extend(body);
            let last = (0..10).find(|last| checks([digits.as_slice(), &[*last]].concat().into_iter())).unwrap_or(0);
            for (digit, hidden) in [(last, true), ((last + 1) % 10, false)] {
                let all = [digits.as_slice(), &[digit]].concat();
                prop_assume!(all.iter().any(|one| *one != first));
                // In a longer number without a check digit, there may be shorter ones with one.
                if !hidden && all.len() > 16 {
                    continue;
                }
                let groups: Vec<String> = all.chunks(4)
                    .map(|group| group.iter().filter_map(|one| char::from_digit(*one, 10)).collect()).collect();
                let number = groups.join(&blank);
                prop_assert_eq!(clean(&format!("Card {number}.")) == "Card [redacted].", hidden, "{}", number);
            }
        }

        /// No digit of a card is told, whatever digits stand around it, and however all of it is cut.
        #[test]
        fn a_card_among_other_digits_is_found(
            before in "([0-9]{1,6}[ -]){0,4}", issuer in "4[0-9]{3}|5[1-5][0-9]{2}|6011|22[3-9][0-9]",
            body in "[0-9]{11}", gap in "[ -]?", after in "([ -][0-9]{1,6}){0,4}",
            glued in any::<bool>(), cuts in proptest::collection::vec(0_usize..9, 0..40),
        ) {
            let digits: Vec<u32> = format!("{issuer}{body}").chars().filter_map(|one| one.to_digit(10)).collect();
            let last = (0..10).find(|last| checks([digits.as_slice(), &[*last]].concat().into_iter())).unwrap_or(0);
            let all = format!("{issuer}{body}{last}");
            prop_assume!(all.bytes().any(|one| !all.starts_with(char::from(one))));
            let groups: Vec<&str> = (0..4).filter_map(|at| all.get(at * 4..at * 4 + 4)).collect();
            let number = groups.join(&gap);
            let before = if glued { before.trim_end_matches([' ', '-']) } else { &before };
            let text = format!("Pay {before}{number}{after} now");
            let card = 4 + before.len()..4 + before.len() + number.len();
            let hidden = secrets(&text).any(|secret| secret.start <= card.start && card.end <= secret.end);
            prop_assert!(hidden, "{}", clean(&text));
            prop_assert_eq!(in_pieces(&text, &cuts), clean(&text));
        }

        /// No secret is without a sign: what has none need not be looked at.
        #[test]
        fn every_secret_has_a_sign(
            text in "(password|api key|token|Bearer |sk-|ghp_|AKIA|eyJ|[ .:=/@\"'-]{1,2}|://|-----BEGIN |PRIVATE KEY|[0-9]{1,8}|[A-Za-z_]{1,12}){0,10}"
        ) {
            prop_assert!(has_signs(&text) || secrets(&text).next().is_none(), "{}", text);
        }

        /// What is clean stays as it is.
        #[test]
        fn twice_is_once(text in "(password[:=] ?|Bearer |sk-|4111 ?1111 ?|[a-z0-9 ,.:é]{0,8}){0,12}") {
            let once = clean(&text);
            prop_assert_eq!(clean(&once), once);
        }

        /// However the text is cut, the same comes out.
        #[test]
        fn pieces_are_cleaned_like_the_whole(
            text in "(password: |password=|Bearer |api key = |[a-z0-9]{1,12} |4111 1111 1111 1111 |sk-[a-z0-9]{24} |Ọjọ́. ){0,8}",
            cuts in proptest::collection::vec(0_usize..9, 0..40),
        ) {
            prop_assert_eq!(in_pieces(&text, &cuts), clean(&text));
        }
    }
}
