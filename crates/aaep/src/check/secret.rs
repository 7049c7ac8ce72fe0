//! Secrets in text: keys, tokens, passwords, card numbers (§10.2.2 T5).
//!
//! Each kind is known by a form that ordinary words do not have: "risk-free", "task-1" and "your password was changed"
//! are no secrets, `sk-` and twenty random letters are.

/// What kind of secret stands in `text`, if one does.
///
/// ```
/// use aaep::check::find_secret;
/// assert_eq!(find_secret("key sk-abcdefghij0123456789"), Some("an API key"));
/// assert_eq!(find_secret("a risk-free task-1"), None);
/// ```
pub fn find_secret(text: &str) -> Option<&'static str> {
    let bytes = text.as_bytes();
    for (at, byte) in bytes.iter().enumerate() {
        let (before, after) = (&bytes[..at], &bytes[at + 1..]);
        let found = match byte {
            b'-' => dash(before, after),
            b'_' => underscore(before, after),
            b':' | b'=' => assignment(before, after),
            b'J' => web_token(before, after),
            b'K' => amazon_key(before, after),
            b'B' => bearer(before, after),
            _ => None,
        };
        if found.is_some() {
            return found;
        }
    }
    card_number(bytes)
}

const API_KEY: &str = "an API key";

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

/// How long the run of key characters is, and whether it is mixed enough to be no word.
fn random_run(bytes: &[u8], at_least: usize) -> bool {
    let run: Vec<u8> = near(bytes).iter().copied().take_while(|byte| is_token(*byte)).collect();
    run.len() >= at_least && run.iter().any(u8::is_ascii_digit) && run.iter().any(u8::is_ascii_alphabetic)
}

/// As much as can tell a secret from a word; without an end, a text of nothing but beginnings takes for ever.
fn near(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.len().min(512)]
}

/// Whether `before` ends in `word`, and that not in the middle of another word.
fn ends_in(before: &[u8], word: &str) -> bool {
    before
        .strip_suffix(word.as_bytes())
        .is_some_and(|rest| rest.last().is_none_or(|byte| !byte.is_ascii_alphanumeric()))
}

fn dash(before: &[u8], after: &[u8]) -> Option<&'static str> {
    let key = ["sk", "pk", "rk", "xoxa", "xoxb", "xoxp", "xoxr", "xoxs", "glpat"];
    if key.iter().any(|word| ends_in(before, word)) && random_run(after, 16) {
        return Some(API_KEY);
    }
    (before.ends_with(b"----") && after.starts_with(b"BEGIN ") || after.starts_with(b"----BEGIN "))
        .then(|| String::from_utf8_lossy(near(after)).contains("PRIVATE KEY"))
        .filter(|private| *private)
        .map(|_| "a private key")
}

fn underscore(before: &[u8], after: &[u8]) -> Option<&'static str> {
    let key = ["ghp", "gho", "ghs", "ghu", "ghr", "sk_live", "sk_test", "rk_live", "github_pat", "npm"];
    (key.iter().any(|word| ends_in(before, word)) && random_run(after, 16)).then_some(API_KEY)
}

/// `password: hunter2`, `api_key=…`; the name of the thing alone is no secret, nor is a sentence about it.
fn assignment(before: &[u8], after: &[u8]) -> Option<&'static str> {
    const NAMES: [&str; 12] = [
        "password",
        "passwd",
        "pwd",
        "passphrase",
        "secret",
        "api_key",
        "apikey",
        "api-key",
        "access_token",
        "auth_token",
        "client_secret",
        "private_key",
    ];
    let name_end = before.iter().rposition(|byte| !matches!(byte, b' ' | b'"' | b'\''))? + 1;
    let name = before[name_end.saturating_sub(16)..name_end].to_ascii_lowercase();
    let named = NAMES.iter().any(|word| {
        name.strip_suffix(word.as_bytes())
            .is_some_and(|rest| rest.last().is_none_or(|byte| !byte.is_ascii_alphabetic()))
    });
    if !named {
        return None;
    }
    let start = after.iter().position(|byte| !matches!(byte, b' ' | b'"' | b'\''))?;
    let value: Vec<u8> = near(&after[start..])
        .iter()
        .copied()
        .take_while(|byte| !byte.is_ascii_whitespace() && !matches!(byte, b'"' | b'\'' | b',' | b';'))
        .collect();
    let hidden = value.iter().all(|byte| matches!(byte, b'*' | b'.' | b'x' | b'X' | b'#' | b'[' | b']'))
        || value.starts_with(b"[")
        || value.starts_with(b"<");
    let word = value.iter().all(u8::is_ascii_alphabetic);
    // After a colon a plain word is prose ("Password: changed"); after an equals sign nothing is.
    let spaced = start > 0 && !matches!(after.first(), Some(b'"' | b'\''));
    (value.len() >= 4 && !hidden && !(word && spaced)).then_some("a password or key")
}

/// Three parts of base64url, the first two of which are JSON objects and so begin with `eyJ`.
fn web_token(before: &[u8], after: &[u8]) -> Option<&'static str> {
    if !ends_in(before, "ey") {
        return None;
    }
    let head = near(after).iter().take_while(|byte| is_token(**byte)).count();
    after[head..].starts_with(b".eyJ").then_some("a signed token")
}

fn amazon_key(before: &[u8], after: &[u8]) -> Option<&'static str> {
    (ends_in(before, "A")
        && after.starts_with(b"IA")
        && after[2..].iter().take_while(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit()).count()
            >= 16)
        .then_some(API_KEY)
}

fn bearer(_before: &[u8], after: &[u8]) -> Option<&'static str> {
    after.strip_prefix(b"earer ").filter(|token| random_run(token, 16)).map(|_| "a bearer token")
}

/// 13 to 19 digits in the groups of a card, with a right check digit (Luhn).
fn card_number(bytes: &[u8]) -> Option<&'static str> {
    let mut at = 0;
    while at < bytes.len() {
        if !bytes[at].is_ascii_digit() {
            at += 1;
            continue;
        }
        let mut digits = Vec::new();
        let mut end = at;
        let mut grouped = true;
        while end < bytes.len() {
            match bytes[end] {
                digit @ b'0'..=b'9' => digits.push(digit - b'0'),
                b' ' | b'-' if bytes.get(end + 1).is_some_and(u8::is_ascii_digit) => {
                    grouped &= digits.len() % 4 == 0 || digits.len() == 10;
                }
                _ => break,
            }
            end += 1;
        }
        let bounded = at == 0 || !matches!(bytes[at - 1], b'.' | b'_' | b'a'..=b'z' | b'A'..=b'Z' | b'+');
        let alone = bytes.get(end).is_none_or(|byte| !byte.is_ascii_alphabetic() && *byte != b'_');
        if bounded && alone && grouped && (13..=19).contains(&digits.len()) && digits[0] != 0 && luhn(&digits)
        {
            return Some("a card number");
        }
        at = end;
    }
    None
}

fn luhn(digits: &[u8]) -> bool {
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(at, digit)| {
            let value = u32::from(*digit) << (at % 2);
            if value > 9 { value - 9 } else { value }
        })
        .sum();
    sum.is_multiple_of(10)
}

#[cfg(test)]
mod tests {
    use super::find_secret;

    #[test]
    fn secrets_are_found() {
        for text in [
            "Using sk-abc123def456ghi789jkl to call",
            "token ghp_0123456789abcdefghij0123456789abcdef",
            "AKIAIOSFODNN7EXAMPLE is the key",
            "Authorization: Bearer abcdef0123456789abcdef",
            "password: hunter2!",
            "password=swordfish",
            "{\"api_key\":\"zzzz-1\"}",
            "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJ4In0.c2ln",
            "-----BEGIN RSA PRIVATE KEY-----",
            "card 4111 1111 1111 1111 charged",
            "4111111111111111",
            "sk_live_abcdef0123456789",
        ] {
            assert!(find_secret(text).is_some(), "{text}");
        }
    }

    #[test]
    fn ordinary_words_are_not() {
        for text in [
            "a risk-free task-1 in desk-top mode",
            "Your password was changed.",
            "Password: changed",
            "Enter the password:",
            "password: ********",
            "password: [redacted]",
            "Transfer $500.00 from checking-7821 to savings-3344.",
            "account_id: checking-7821, time: 14:22:24.812Z",
            "User confirmation received (reply_token rpl_4f8a2e7d9c1b6a3f)",
            "order 1234567890123456 shipped",
            "2026-05-24 14:22:16",
            "Bearer of good news, and a mask-wearing crowd",
            "phone +1 415 555 2671 000",
            "the secret = of success",
            "https://example.org/a.b?c=d",
        ] {
            assert_eq!(find_secret(text), None, "{text}");
        }
    }
}
