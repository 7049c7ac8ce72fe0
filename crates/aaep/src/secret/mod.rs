//! Secrets in human-readable text: keys, tokens, passwords, card numbers (§10.2.2 T5).
//!
//! All secret patterns are defined in this module. The event check rejects what [`find_secrets`]
//! finds, and the redactor of the crate `sayso` removes it. No pattern matches ordinary words:
//! "risk-free", "task-1" and "Your password was changed" are not secrets.
//!
//! - `pattern`: the patterns of API keys (by prefix), values after names such as `password`, JSON
//!   Web Tokens and private keys.
//! - `card`: card numbers, by issuer.
//! - `table`: the patterns as JSON, for clients in other languages.
//! - `stream`: computes how much of a text that arrives in chunks can already be classified.

mod card;
mod pattern;
mod stream;
mod table;

use std::fmt;
use std::ops::Range;

pub use stream::decidable_prefix_len;
pub use table::table;

/// The text that replaces a secret. It is not a secret itself.
pub const REDACTED: &str = "[redacted]";

/// A secret and its position in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Secret {
    /// The byte range of the secret.
    pub range: Range<usize>,
    /// The kind of secret.
    pub kind: SecretKind,
}

/// The kind of a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SecretKind {
    /// A key with the prefix of its issuer.
    ApiKey,
    /// A JSON Web Token.
    SignedToken,
    /// A token after the word "bearer".
    BearerToken,
    /// A value that is assigned to a name such as `password` or `api_key`, or the password of a
    /// URL.
    Password,
    /// A private key in PEM form.
    PrivateKey,
    /// A card number (ISO/IEC 7812).
    CardNumber,
}

impl fmt::Display for SecretKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ApiKey => "an API key",
            Self::SignedToken => "a signed token",
            Self::BearerToken => "a bearer token",
            Self::Password => "a password or key",
            Self::PrivateKey => "a private key",
            Self::CardNumber => "a card number",
        })
    }
}

/// Returns the secrets in a text in order. They do not overlap.
///
/// ```
/// use aaep::secret::{SecretKind, find_secrets};
/// let found = find_secrets("The key sk-abcdefghij0123456789 of the risk-free task-1").next().unwrap();
/// assert_eq!((found.range, found.kind), (8..31, SecretKind::ApiKey));
/// assert_eq!(find_secrets("Order 1763290000123456789 has shipped.").next(), None);
/// ```
pub fn find_secrets(text: &str) -> impl Iterator<Item = Secret> {
    let mut at = if SecretHints::of(text.as_bytes()).may_contain_secret() { 0 } else { text.len() };
    std::iter::from_fn(move || {
        let found = next_secret(text, at);
        at = found.as_ref().map_or(text.len(), |secret| secret.range.end);
        found
    })
}

/// Returns the first secret at or after this byte. Within a word, only the first letter or digit can
/// start a secret, so the rest of the word is skipped.
pub(crate) fn next_secret(text: &str, mut at: usize) -> Option<Secret> {
    let bytes = text.as_bytes();
    let is_word = |at: usize| bytes.get(at).is_some_and(|byte| IS_WORD_BYTE[usize::from(*byte)]);
    while let Some(byte) = bytes.get(at) {
        if is_word(at) {
            if let Some(secret) = secret_at(text, at) {
                return Some(secret);
            }
            while is_word(at + 1) {
                at += 1;
            }
        } else if matches!(byte, b':' | b'-')
            && let Some(secret) = secret_at(text, at)
        {
            return Some(secret);
        }
        at += 1;
    }
    None
}

/// Lookup table of ASCII letters and digits, because the search tests nearly every byte.
static IS_WORD_BYTE: [bool; 256] = {
    let mut is_word = [false; 256];
    let mut byte = 0_u8;
    while byte < 128 {
        is_word[byte as usize] = byte.is_ascii_alphanumeric();
        byte += 1;
    }
    is_word
};

/// Returns the secret whose pattern starts at this byte. Its range may start later.
fn secret_at(text: &str, at: usize) -> Option<Secret> {
    let (kind, range) = match text.as_bytes().get(at)? {
        b':' => (SecretKind::Password, pattern::match_url_password(text.get(at..)?)?),
        b'-' => (SecretKind::PrivateKey, pattern::match_private_key(text.get(at..)?)?),
        b'0'..=b'9' => {
            return card::match_card_number(text, at)
                .map(|range| Secret { range, kind: SecretKind::CardNumber });
        }
        first if first.is_ascii_alphabetic() => {
            if at > 0 && text.as_bytes().get(at - 1).is_some_and(u8::is_ascii_alphanumeric) {
                return None;
            }
            pattern::match_word(text, at)?
        }
        _ => return None,
    };
    Some(Secret { range: range.start + at..range.end + at, kind })
}

fn char_before(text: &str, at: usize) -> Option<char> {
    text.get(..at)?.chars().next_back()
}

/// Records which bytes typical of secrets occur in a text. A text without such bytes contains no
/// secret, and most human-readable texts have none. The scan has no branches, so the
/// compiler can vectorize it.
#[derive(Clone, Copy, Default)]
pub(crate) struct SecretHints {
    /// 1 if the text contains `-`, `_`, `:`, `=`, `J` or `K`. Every secret contains one of these
    /// characters, except the secrets named below. `J` is in every JSON Web Token (`eyJ`), and `K`
    /// in every key that starts with `AKIA`.
    mark_seen: u8,
    /// 1 if the text contains `b`, `B`, `z` or `S`. Secrets with `bearer`, `AIza` or `ASIA` contain
    /// one of these letters and a digit.
    letter_seen: u8,
    /// The number of digits. A card number has at least 13.
    digit_count: u32,
}

impl SecretHints {
    fn of(bytes: &[u8]) -> Self {
        let mut hints = Self::default();
        let (blocks, rest) = bytes.as_chunks::<16>();
        for block in blocks {
            hints.add(block);
        }
        let mut last = [0; 16];
        last.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
        hints.add(&last);
        hints
    }

    /// Adds a block. A shorter block must be padded with zeros.
    #[inline]
    pub(crate) fn add(&mut self, block: &[u8; 16]) {
        let (mut marks, mut letters, mut digits) = (0, 0, 0);
        for byte in block {
            marks |= u8::from(*byte == b'-')
                | u8::from(*byte == b'_')
                | u8::from(*byte == b':')
                | u8::from(*byte == b'=')
                | u8::from(*byte == b'J')
                | u8::from(*byte == b'K');
            letters |= u8::from(*byte | 0x20 == b'b') | u8::from(*byte == b'z') | u8::from(*byte == b'S');
            digits += u8::from(byte.wrapping_sub(b'0') < 10);
        }
        self.mark_seen |= marks;
        self.letter_seen |= letters;
        self.digit_count += u32::from(digits);
    }

    /// Returns whether the bytes may contain a secret.
    pub(crate) fn may_contain_secret(self) -> bool {
        self.mark_seen != 0 || self.digit_count >= 13 || self.digit_count > 0 && self.letter_seen != 0
    }
}

#[cfg(test)]
mod tests;
