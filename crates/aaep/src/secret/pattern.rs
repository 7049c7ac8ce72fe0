//! The table of secret patterns, except card numbers.

use std::ops::Range;

use super::{SecretKind, char_before};

/// Prefixes of keys, each with the minimum number of `[A-Za-z0-9_-]` characters after it.
pub(super) const KEY_PREFIXES: [(&str, usize); 25] = [
    ("sk-", 16),
    ("pk-", 16),
    ("rk-", 16),
    ("sk_live_", 10),
    ("sk_test_", 10),
    ("rk_live_", 10),
    ("whsec_", 16),
    ("ghp_", 16),
    ("gho_", 16),
    ("ghu_", 16),
    ("ghs_", 16),
    ("ghr_", 16),
    ("github_pat_", 16),
    ("glpat-", 16),
    ("npm_", 30),
    ("hf_", 16),
    ("xoxa-", 10),
    ("xoxb-", 10),
    ("xoxp-", 10),
    ("xoxr-", 10),
    ("xoxs-", 10),
    (AWS_KEY_PREFIX, 16),
    ("ASIA", 16),
    ("AIza", 30),
    ("sayso_", 16),
];

/// The prefix of Amazon's access key ids. They consist of capital letters and digits. A digit is not
/// required, because one id in thirty has no digit.
pub(super) const AWS_KEY_PREFIX: &str = "AKIA";

/// Names whose value is a secret, unless it is a word of [`NON_SECRET_WORDS`].
pub(super) const PASSWORD_NAMES: [&str; 4] = ["password", "passwd", "passphrase", "pwd"];

/// Names whose value is a secret if it follows without a space, is in quotes, or contains a digit.
pub(super) const KEY_NAMES: [&str; 9] = [
    "api_key",
    "api-key",
    "api key",
    "apikey",
    "access_token",
    "auth_token",
    "client_secret",
    "private_key",
    "secret",
];

/// A name whose value is a secret if the value contains digits and letters. The name does not match
/// the end of a longer name such as `reply_token`.
pub(super) const TOKEN_NAME: &str = "token";

/// Ordinary words that follow `password:` in a sentence and are not passwords, such as `expired` or `must`.
pub(super) const NON_SECRET_WORDS: [&str; 44] = [
    "accepted",
    "cambiata",
    "changed",
    "correct",
    "corretta",
    "empty",
    "encrypted",
    "errata",
    "expired",
    "failed",
    "false",
    "forgotten",
    "found",
    "hidden",
    "incorrect",
    "invalid",
    "length",
    "missing",
    "must",
    "needed",
    "none",
    "null",
    "optional",
    "please",
    "protected",
    "provided",
    "redacted",
    "rejected",
    "removed",
    "required",
    "reset",
    "saved",
    "scaduta",
    "sent",
    "stored",
    "strong",
    "that",
    "this",
    "true",
    "unchanged",
    "unknown",
    "updated",
    "weak",
    "your",
];

pub(super) const BEARER: &str = "bearer";
/// The first characters of a JSON object in base64url.
pub(super) const WEB_TOKEN_PREFIX: &str = "eyJ";
pub(super) const PEM_BEGIN: &str = "-----BEGIN ";
pub(super) const PEM_END: &str = "-----END ";

/// How many bytes of a candidate are examined to decide whether it is a secret. Without this limit,
/// a text with many prefixes would take quadratic time.
pub(super) const MAX_DECIDING_BYTES: usize = 512;

/// Matches a secret that the word at byte `at` begins or introduces. The range is relative to `at`.
pub(super) fn match_word(text: &str, at: usize) -> Option<(SecretKind, Range<usize>)> {
    if !may_begin(text.as_bytes().get(at..)?) {
        return None;
    }
    let rest = text.get(at..)?;
    let before = char_before(text, at);
    if before.is_some_and(char::is_alphanumeric) {
        return None;
    }
    match rest.bytes().next()? {
        b'B' | b'b' => match_bearer(rest).map(|range| (SecretKind::BearerToken, range)),
        b'e' => match_web_token(rest).map(|range| (SecretKind::SignedToken, range)),
        _ => match_key(rest)
            .map(|range| (SecretKind::ApiKey, range))
            .or_else(|| match_assigned_value(rest, before).map(|range| (SecretKind::Password, range))),
    }
}

/// For each of the first three positions and each byte, the set of entries in [`NAMES`] and
/// [`KEY_PREFIXES`] that have that byte there. Only the low five bits of a byte are used, so upper and
/// lower case are treated the same.
static PREFIX_FILTER: [[u64; 32]; 3] = {
    let mut starts = [[0; 32]; 3];
    let (mut list, mut entry) = (0, 0);
    while list < NAMES.len() {
        let mut at = 0;
        while at < NAMES[list].len() {
            add_start(&mut starts, entry, NAMES[list][at]);
            (at, entry) = (at + 1, entry + 1);
        }
        list += 1;
    }
    let mut at = 0;
    while at < KEY_PREFIXES.len() {
        add_start(&mut starts, entry, KEY_PREFIXES[at].0);
        (at, entry) = (at + 1, entry + 1);
    }
    starts
};

/// The entries of [`PREFIX_FILTER`] that are not key prefixes.
const NAMES: [&[&str]; 3] = [&PASSWORD_NAMES, &KEY_NAMES, &[TOKEN_NAME, BEARER, WEB_TOKEN_PREFIX]];

const fn add_start(starts: &mut [[u64; 32]; 3], entry: usize, word: &str) {
    let mut at = 0;
    while at < starts.len() {
        starts[at][(word.as_bytes()[at] & 31) as usize] |= 1 << entry;
        at += 1;
    }
}

/// Returns whether an entry of [`PREFIX_FILTER`] may match these bytes. This fast check rejects most words.
fn may_begin(word: &[u8]) -> bool {
    let [first, second, third, ..] = word else { return false };
    let [firsts, seconds, thirds] = &PREFIX_FILTER;
    firsts[usize::from(first & 31)] & seconds[usize::from(second & 31)] & thirds[usize::from(third & 31)] != 0
}

/// Returns the length of the prefix in which every byte matches.
fn matching_prefix_len(text: &str, matches: impl Fn(u8) -> bool) -> usize {
    text.bytes().take_while(|byte| matches(*byte)).count()
}

fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

/// Returns the bytes that decide whether a candidate is a secret: the matching prefix, up to
/// [`MAX_DECIDING_BYTES`].
fn deciding_bytes(text: &str, matches: impl Fn(u8) -> bool) -> &[u8] {
    let length = text.bytes().take(MAX_DECIDING_BYTES).take_while(|byte| matches(*byte)).count();
    text.as_bytes().get(..length).unwrap_or_default()
}

/// Returns whether the bytes contain both digits and letters.
fn has_digits_and_letters(bytes: &[u8]) -> bool {
    bytes.iter().any(u8::is_ascii_digit) && bytes.iter().any(u8::is_ascii_alphabetic)
}

fn match_key(rest: &str) -> Option<Range<usize>> {
    let (prefix, min_length) = KEY_PREFIXES.iter().find(|(prefix, _)| rest.starts_with(prefix))?;
    let body = rest.get(prefix.len()..)?;
    let is_key = if *prefix == AWS_KEY_PREFIX {
        deciding_bytes(body, |byte| byte.is_ascii_uppercase() || byte.is_ascii_digit()).len() >= *min_length
    } else {
        let deciding = deciding_bytes(body, is_token_byte);
        deciding.len() >= *min_length && has_digits_and_letters(deciding)
    };
    is_key.then(|| 0..prefix.len() + matching_prefix_len(body, is_token_byte))
}

/// Matches at least two parts of base64url. The first is a JSON object, so it starts with `eyJ`.
fn match_web_token(rest: &str) -> Option<Range<usize>> {
    if !rest.starts_with(WEB_TOKEN_PREFIX) {
        return None;
    }
    let is_web_token_byte = |byte| is_token_byte(byte) || byte == b'.';
    let deciding = deciding_bytes(rest, is_web_token_byte);
    let parts = deciding.split(|byte| *byte == b'.').filter(|part| part.len() >= 4).count();
    if parts < 2 && deciding.len() < MAX_DECIDING_BYTES || deciding.len() < 24 {
        return None;
    }
    let matched = rest.get(..matching_prefix_len(rest, is_web_token_byte))?.trim_end_matches('.');
    matched.contains('.').then_some(0..matched.len())
}

fn match_bearer(rest: &str) -> Option<Range<usize>> {
    let after = strip_word(rest, BEARER)?;
    let token = after.trim_start_matches(' ');
    let is_bearer_byte = |byte| is_token_byte(byte) || matches!(byte, b'.' | b'~' | b'+' | b'/' | b'=');
    let matched = token.get(..matching_prefix_len(token, is_bearer_byte))?.trim_end_matches('.');
    let start = rest.len() - token.len();
    let is_bearer_token =
        after.len() > token.len() && matched.len() >= 12 && matched.bytes().any(|byte| byte.is_ascii_digit());
    is_bearer_token.then_some(start..start + matched.len())
}

/// Returns the text after a word, ignoring its case.
fn strip_word<'t>(rest: &'t str, word: &str) -> Option<&'t str> {
    rest.as_bytes().get(..word.len()).filter(|found| found.eq_ignore_ascii_case(word.as_bytes()))?;
    let after = rest.get(word.len()..)?;
    after.chars().next().is_none_or(|next| !next.is_alphanumeric()).then_some(after)
}

/// An assignment such as `password: …` or `api_key = "…"`.
struct Assignment<'t> {
    name: &'static str,
    /// The text that starts with the value.
    value: &'t str,
    /// The bytes that end the value. If the value is quoted, this is only the closing quote.
    ends: &'static [u8],
    /// Whether the value follows without a space, or in quotes.
    is_adjacent_or_quoted: bool,
}

/// Parses an assignment to the name at the start of the text. `before` is the character before the
/// name.
fn parse_assignment(rest: &str, before: Option<char>) -> Option<Assignment<'_>> {
    let match_name = |name: &&'static str| strip_word(rest, name).map(|after| (*name, after));
    let mut names = PASSWORD_NAMES.iter().chain(&KEY_NAMES);
    let (name, after) = names.find_map(match_name).or_else(|| {
        // After a hyphen or an underscore, `token` is part of another name.
        match_name(&TOKEN_NAME).filter(|_| !matches!(before, Some('_' | '-')))
    })?;
    let after = after.trim_start_matches(['"', '\'', ' ']).strip_prefix([':', '='])?;
    let value = after.trim_start_matches(' ');
    let (value, ends) = match value.bytes().next()? {
        b'"' => (value.get(1..)?, b"\"".as_slice()),
        b'\'' => (value.get(1..)?, b"'".as_slice()),
        _ => (value, b" \t\n\r,;\"')}]".as_slice()),
    };
    Some(Assignment { name, value, ends, is_adjacent_or_quoted: ends.len() == 1 || !after.starts_with(' ') })
}

fn match_assigned_value(rest: &str, before: Option<char>) -> Option<Range<usize>> {
    let Assignment { name, value, ends, is_adjacent_or_quoted } = parse_assignment(rest, before)?;
    let is_value_byte = |byte| !ends.contains(&byte);
    let trailing_punctuation = if ends.len() == 1 { b"".as_slice() } else { b".!?" };
    let mut deciding = deciding_bytes(value, is_value_byte);
    while let [head @ .., last] = deciding
        && trailing_punctuation.contains(last)
    {
        deciding = head;
    }
    let is_ordinary_word = NON_SECRET_WORDS.iter().any(|word| deciding.eq_ignore_ascii_case(word.as_bytes()));
    if deciding.len() < 4 || is_ordinary_word || is_placeholder(deciding) {
        return None;
    }
    let is_secret = if PASSWORD_NAMES.contains(&name) {
        true
    } else if name == TOKEN_NAME {
        deciding.len() >= 6 && has_digits_and_letters(deciding)
    } else {
        is_adjacent_or_quoted || deciding.len() >= 6 && deciding.iter().any(u8::is_ascii_digit)
    };
    if !is_secret {
        return None;
    }
    let matched = value.get(..matching_prefix_len(value, is_value_byte))?;
    let matched =
        matched.trim_end_matches(|last| trailing_punctuation.iter().any(|c| char::from(*c) == last));
    let start = rest.len() - value.len();
    Some(start..start + matched.len())
}

/// Returns whether the value is a placeholder, such as `****` or `[redacted]`.
fn is_placeholder(value: &[u8]) -> bool {
    matches!(value.first(), Some(b'[' | b'<'))
        || value.iter().all(|byte| matches!(byte, b'*' | b'.' | b'x' | b'X' | b'#'))
}

/// Returns whether the word at this byte is assigned a quoted value whose closing quote has not
/// arrived yet.
pub(super) fn is_open_quote(text: &str, at: usize) -> bool {
    let assignment = text.get(at..).and_then(|rest| parse_assignment(rest, char_before(text, at)));
    assignment.is_some_and(|Assignment { value, ends, .. }| {
        ends.len() == 1 && !value.bytes().any(|byte| ends.contains(&byte))
    })
}

/// Matches `://name:password@`.
pub(super) fn match_url_password(rest: &str) -> Option<Range<usize>> {
    let authority = rest.strip_prefix("://")?;
    let length = authority.find(|c: char| c == '/' || c.is_whitespace()).unwrap_or(authority.len());
    let (user, _) = authority.get(..length)?.rsplit_once('@')?;
    let (name, password) = user.split_once(':')?;
    let start = 3 + name.len() + 1;
    (!is_placeholder(password.as_bytes())).then_some(start..start + password.len())
}

/// Matches a private key in PEM form, up to its END line or the end of the text.
pub(super) fn match_private_key(rest: &str) -> Option<Range<usize>> {
    let label = rest.strip_prefix(PEM_BEGIN)?.split("-----").next()?;
    if label.find("PRIVATE KEY").is_none_or(|at| at > 64) {
        return None;
    }
    let end = rest.find(PEM_END).and_then(|end| {
        let last = end + PEM_END.len();
        Some(last + rest.get(last..)?.find("-----")? + 5)
    });
    Some(0..end.unwrap_or(rest.len()))
}
