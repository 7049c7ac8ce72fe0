//! Secrets in text for people: keys, tokens, passwords, card numbers (§10.2.2 T5).
//!
//! This is the only table of secret patterns. The check of an event refuses what [`find_secrets`] finds, and the redactor of
//! the crate `sayso` removes it. Each pattern has a form that ordinary words do not have: "risk-free", "task-1" and "Your
//! password was changed" are no secrets.
//!
//! - `pattern`: the table: key prefixes, names of passwords, web tokens, private keys.
//! - `card`: card numbers, by issuer.
//! - `stream`: how much of a text that arrives in pieces can be judged.

mod card;
mod pattern;
mod stream;

use std::fmt;
use std::ops::Range;

pub use stream::judged_prefix;

/// The text that replaces a secret. It is no secret itself.
pub const REDACTED: &str = "[redacted]";

/// A secret and its place in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Secret {
    /// The bytes of the text that must not be told.
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
    /// A value that is assigned to a name such as `password` or `api_key`, or the password of a URL.
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

/// Returns the secrets of a text in order. They do not overlap.
///
/// ```
/// use aaep::secret::{SecretKind, find_secrets};
/// let found = find_secrets("The key sk-abcdefghij0123456789 of the risk-free task-1").next().unwrap();
/// assert_eq!((found.range, found.kind), (8..31, SecretKind::ApiKey));
/// assert_eq!(find_secrets("Order 1763290000123456789 has shipped.").next(), None);
/// ```
pub fn find_secrets(text: &str) -> impl Iterator<Item = Secret> {
    let mut at = if Signs::of(text.as_bytes()).secret() { 0 } else { text.len() };
    std::iter::from_fn(move || {
        let found = next_secret(text, at);
        at = found.as_ref().map_or(text.len(), |secret| secret.range.end);
        found
    })
}

/// Returns the first secret at or after this byte. Only the first letter or digit of a word can begin one, so the rest of the
/// word is skipped.
pub(crate) fn next_secret(text: &str, mut at: usize) -> Option<Secret> {
    let bytes = text.as_bytes();
    let is_word = |at: usize| bytes.get(at).is_some_and(|byte| IS_WORD[usize::from(*byte)]);
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

/// Lookup table of ASCII letters and digits; the search tests nearly every byte.
static IS_WORD: [bool; 256] = {
    let mut is_word = [false; 256];
    let mut byte = 0_u8;
    while byte < 128 {
        is_word[byte as usize] = byte.is_ascii_alphanumeric();
        byte += 1;
    }
    is_word
};

/// The secret that the character at this byte leads to; its range may begin later.
fn secret_at(text: &str, at: usize) -> Option<Secret> {
    let (kind, range) = match text.as_bytes().get(at)? {
        b':' => (SecretKind::Password, pattern::url_password(text.get(at..)?)?),
        b'-' => (SecretKind::PrivateKey, pattern::private_key(text.get(at..)?)?),
        b'0'..=b'9' => {
            return card::card_number(text, at).map(|range| Secret { range, kind: SecretKind::CardNumber });
        }
        first if first.is_ascii_alphabetic() => {
            if at > 0 && text.as_bytes().get(at - 1).is_some_and(u8::is_ascii_alphanumeric) {
                return None;
            }
            pattern::word(text, at)?
        }
        _ => return None,
    };
    Some(Secret { range: range.start + at..range.end + at, kind })
}

fn before(text: &str, at: usize) -> Option<char> {
    text.get(..at)?.chars().next_back()
}

/// Bytes without which a text holds no secret, counted without a branch so that the compiler uses wide instructions. Most
/// texts for people have no such byte.
#[derive(Clone, Copy, Default)]
pub(crate) struct Signs {
    /// One of these is in every pattern that is not listed below.
    marks: u8,
    /// `bearer`, `AIza` and `ASIA` need one of these, and a digit.
    letters: u8,
    /// A card number has at least 13 of them.
    digits: u32,
}

impl Signs {
    fn of(bytes: &[u8]) -> Self {
        let mut signs = Self::default();
        let (blocks, rest) = bytes.as_chunks::<16>();
        for block in blocks {
            signs.add(block);
        }
        let mut last = [0; 16];
        last.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
        signs.add(&last);
        signs
    }

    /// Adds a block; a short one is filled with zeros.
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
        self.marks |= marks;
        self.letters |= letters;
        self.digits += u32::from(digits);
    }

    /// Whether the bytes may hold a secret.
    pub(crate) fn secret(self) -> bool {
        self.marks != 0 || self.digits >= 13 || self.digits > 0 && self.letters != 0
    }
}

#[cfg(test)]
mod tests;
