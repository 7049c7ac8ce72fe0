//! The table of secret patterns, except card numbers.

use std::ops::Range;

use super::{SecretKind, before};

/// The prefix of a key, and how many characters of `[A-Za-z0-9_-]` follow at least.
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
    (AMAZON, 16),
    ("ASIA", 16),
    ("AIza", 30),
    ("sayso_", 16),
];

/// Amazon's keys are capital letters and digits, and one in thirty has no digit.
const AMAZON: &str = "AKIA";

/// Names whose value is a secret, unless it is a word of [`STATUS_WORDS`].
pub(super) const PASSWORD_NAMES: [&str; 4] = ["password", "passwd", "passphrase", "pwd"];

/// Names whose value is a secret if it follows without a blank or in quotes, or if it has a digit.
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

/// A name whose value is a secret if it has digits and letters; `reply_token` is another name.
pub(super) const TOKEN_NAME: &str = "token";

/// What a sentence says about a password.
const STATUS_WORDS: [&str; 44] = [
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
const WEB_TOKEN: &str = "eyJ";
pub(super) const PEM: &str = "-----BEGIN ";
const PEM_END: &str = "-----END ";

/// How many bytes decide whether something is a secret. A text of nothing but beginnings would otherwise take quadratic time.
const DECIDING: usize = 512;

/// The secret that begins with the word at this byte.
pub(super) fn word(text: &str, at: usize) -> Option<(SecretKind, Range<usize>)> {
    if !may_begin(text.as_bytes().get(at..)?) {
        return None;
    }
    let rest = text.get(at..)?;
    let before = before(text, at);
    if before.is_some_and(char::is_alphanumeric) {
        return None;
    }
    match rest.bytes().next()? {
        b'B' | b'b' => bearer(rest).map(|range| (SecretKind::BearerToken, range)),
        b'e' => web_token(rest).map(|range| (SecretKind::SignedToken, range)),
        _ => key(rest)
            .map(|range| (SecretKind::ApiKey, range))
            .or_else(|| assigned(rest, before).map(|range| (SecretKind::Password, range))),
    }
}

/// Bit sets of the table's entries by their first three bytes. Only the low five bits of a byte count, so that upper and lower
/// case match.
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

/// The table entries that are not key prefixes.
const NAMES: [&[&str]; 3] = [&PASSWORD_NAMES, &KEY_NAMES, &[TOKEN_NAME, BEARER, WEB_TOKEN]];

const fn add_start(starts: &mut [[u64; 32]; 3], entry: usize, word: &str) {
    let mut at = 0;
    while at < starts.len() {
        starts[at][(word.as_bytes()[at] & 31) as usize] |= 1 << entry;
        at += 1;
    }
}

/// Whether a table entry can begin with these bytes; rejects most words.
fn may_begin(word: &[u8]) -> bool {
    let [first, second, third, ..] = word else { return false };
    let [firsts, seconds, thirds] = &PREFIX_FILTER;
    firsts[usize::from(first & 31)] & seconds[usize::from(second & 31)] & thirds[usize::from(third & 31)] != 0
}

/// How many bytes of the text are of that kind, from its start.
fn run(text: &str, is: impl Fn(u8) -> bool) -> usize {
    text.bytes().take_while(|byte| is(*byte)).count()
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

/// The bytes that decide, up to the first that does not belong.
fn deciding(text: &str, is: impl Fn(u8) -> bool) -> &[u8] {
    let length = text.bytes().take(DECIDING).take_while(|byte| is(*byte)).count();
    text.as_bytes().get(..length).unwrap_or_default()
}

fn is_mixed(bytes: &[u8]) -> bool {
    bytes.iter().any(u8::is_ascii_digit) && bytes.iter().any(u8::is_ascii_alphabetic)
}

fn key(rest: &str) -> Option<Range<usize>> {
    let (prefix, least) = KEY_PREFIXES.iter().find(|(prefix, _)| rest.starts_with(prefix))?;
    let body = rest.get(prefix.len()..)?;
    let is_key = if *prefix == AMAZON {
        deciding(body, |byte| byte.is_ascii_uppercase() || byte.is_ascii_digit()).len() >= *least
    } else {
        let deciding = deciding(body, is_token);
        deciding.len() >= *least && is_mixed(deciding)
    };
    is_key.then(|| 0..prefix.len() + run(body, is_token))
}

/// At least two parts of base64url, the first of which is a JSON object and so begins with `eyJ`.
fn web_token(rest: &str) -> Option<Range<usize>> {
    if !rest.starts_with(WEB_TOKEN) {
        return None;
    }
    let is_part = |byte| is_token(byte) || byte == b'.';
    let deciding = deciding(rest, is_part);
    let parts = deciding.split(|byte| *byte == b'.').filter(|part| part.len() >= 4).count();
    if parts < 2 && deciding.len() < DECIDING || deciding.len() < 24 {
        return None;
    }
    let whole = rest.get(..run(rest, is_part))?.trim_end_matches('.');
    whole.contains('.').then_some(0..whole.len())
}

fn bearer(rest: &str) -> Option<Range<usize>> {
    let after = strip_word(rest, BEARER)?;
    let token = after.trim_start_matches(' ');
    let is_part = |byte| is_token(byte) || matches!(byte, b'.' | b'~' | b'+' | b'/' | b'=');
    let whole = token.get(..run(token, is_part))?.trim_end_matches('.');
    let start = rest.len() - token.len();
    let is_token =
        after.len() > token.len() && whole.len() >= 12 && whole.bytes().any(|byte| byte.is_ascii_digit());
    is_token.then_some(start..start + whole.len())
}

/// What follows a word, in whatever case it is written.
fn strip_word<'t>(rest: &'t str, word: &str) -> Option<&'t str> {
    rest.as_bytes().get(..word.len()).filter(|found| found.eq_ignore_ascii_case(word.as_bytes()))?;
    let after = rest.get(word.len()..)?;
    after.chars().next().is_none_or(|next| !next.is_alphanumeric()).then_some(after)
}

/// `password: …`, `api_key = "…"`
struct Assignment<'t> {
    name: &'static str,
    /// The text from the value on.
    value: &'t str,
    /// The bytes that end the value.
    ends: &'static [u8],
    /// The value follows without a blank, or in quotes.
    tight: bool,
}

/// The value that is assigned to the name at the start of the text, which stands behind that character.
fn assignment(rest: &str, before: Option<char>) -> Option<Assignment<'_>> {
    let named = |name: &&'static str| strip_word(rest, name).map(|after| (*name, after));
    let mut names = PASSWORD_NAMES.iter().chain(&KEY_NAMES);
    let (name, after) = names.find_map(named).or_else(|| {
        // Behind a hyphen or an underscore it is part of another name.
        named(&TOKEN_NAME).filter(|_| !matches!(before, Some('_' | '-')))
    })?;
    let after = after.trim_start_matches(['"', '\'', ' ']).strip_prefix([':', '='])?;
    let value = after.trim_start_matches(' ');
    let (value, ends) = match value.bytes().next()? {
        b'"' => (value.get(1..)?, b"\"".as_slice()),
        b'\'' => (value.get(1..)?, b"'".as_slice()),
        _ => (value, b" \t\n\r,;\"')}]".as_slice()),
    };
    Some(Assignment { name, value, ends, tight: ends.len() == 1 || !after.starts_with(' ') })
}

fn assigned(rest: &str, before: Option<char>) -> Option<Range<usize>> {
    let Assignment { name, value, ends, tight } = assignment(rest, before)?;
    let belongs = |byte| !ends.contains(&byte);
    let trimmed = if ends.len() == 1 { b"".as_slice() } else { b".!?" };
    let mut decides = deciding(value, belongs);
    while let [head @ .., last] = decides
        && trimmed.contains(last)
    {
        decides = head;
    }
    let is_status = STATUS_WORDS.iter().any(|word| decides.eq_ignore_ascii_case(word.as_bytes()));
    if decides.len() < 4 || is_status || is_hidden(decides) {
        return None;
    }
    let is_secret = if PASSWORD_NAMES.contains(&name) {
        true
    } else if name == TOKEN_NAME {
        decides.len() >= 6 && is_mixed(decides)
    } else {
        tight || decides.len() >= 6 && decides.iter().any(u8::is_ascii_digit)
    };
    if !is_secret {
        return None;
    }
    let whole = value.get(..run(value, belongs))?;
    let whole = whole.trim_end_matches(|last| trimmed.iter().any(|one| char::from(*one) == last));
    let start = rest.len() - value.len();
    Some(start..start + whole.len())
}

/// Whether the value is a placeholder, such as `****` or `[redacted]`.
fn is_hidden(value: &[u8]) -> bool {
    matches!(value.first(), Some(b'[' | b'<'))
        || value.iter().all(|byte| matches!(byte, b'*' | b'.' | b'x' | b'X' | b'#'))
}

/// Whether the word at this byte is assigned a value in quotes that has not ended, so that more of it may follow.
pub(super) fn is_open_quote(text: &str, at: usize) -> bool {
    let found = text.get(at..).and_then(|rest| assignment(rest, before(text, at)));
    found.is_some_and(|found| {
        found.ends.len() == 1 && !found.value.bytes().any(|byte| found.ends.contains(&byte))
    })
}

/// `://name:password@`
pub(super) fn url_password(rest: &str) -> Option<Range<usize>> {
    let authority = rest.strip_prefix("://")?;
    let length = authority.find(|one: char| one == '/' || one.is_whitespace()).unwrap_or(authority.len());
    let (user, _) = authority.get(..length)?.rsplit_once('@')?;
    let (name, password) = user.split_once(':')?;
    let start = 3 + name.len() + 1;
    (!is_hidden(password.as_bytes())).then_some(start..start + password.len())
}

/// A private key in PEM form, to its end or the end of the text.
pub(super) fn private_key(rest: &str) -> Option<Range<usize>> {
    let label = rest.strip_prefix(PEM)?.split("-----").next()?;
    if label.find("PRIVATE KEY").is_none_or(|at| at > 64) {
        return None;
    }
    let end = rest.find(PEM_END).and_then(|end| {
        let last = end + PEM_END.len();
        Some(last + rest.get(last..)?.find("-----")? + 5)
    });
    Some(0..end.unwrap_or(rest.len()))
}
