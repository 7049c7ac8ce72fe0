//! A key that only we have, to know again what we have given out (HMAC-SHA-256, RFC 2104).

use std::fmt;
use std::io::ErrorKind;
use std::path::Path;

use ring::hmac;
use zeroize::Zeroizing;

use crate::private::{self, KeyFileError};
use crate::{Random, base64url};

/// Such a key.
///
/// ```
/// let key = seal::MacKey::generate(&mut seal::SystemRandom);
/// let tag = key.tag(b"let her in until noon");
/// assert!(key.is_tag(b"let her in until noon", &tag));
/// assert!(!key.is_tag(b"let her in until night", &tag));
/// ```
#[derive(Clone)]
pub struct MacKey(hmac::Key);

impl MacKey {
    /// A new key.
    pub fn generate(random: &mut impl Random) -> Self {
        let mut secret = Zeroizing::new([0; 32]);
        random.fill(secret.as_mut());
        Self::of(&secret)
    }

    /// The key in a file that only its owner can read; it is made if it is not there.
    pub fn kept(path: &Path, random: &mut impl Random) -> Result<Self, KeyFileError> {
        let text = match private::read(path, 64) {
            Ok(text) => text,
            Err(KeyFileError::Io(_, error)) if error.kind() == ErrorKind::NotFound => {
                let mut secret = Zeroizing::new([0; 32]);
                random.fill(secret.as_mut());
                let text = Zeroizing::new(base64url::encode(&secret[..]));
                private::create(path, &text)?;
                text
            }
            Err(why) => return Err(why.if_too_long(KeyFileError::NotMac)),
        };
        let secret = base64url::decode(text.trim()).map(Zeroizing::new);
        let secret = secret.and_then(|bytes| <[u8; 32]>::try_from(bytes.as_slice()).ok().map(Zeroizing::new));
        secret.map(|secret| Self::of(&secret)).ok_or_else(|| KeyFileError::NotMac(path.to_owned()))
    }

    fn of(secret: &[u8; 32]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, secret))
    }

    /// The tag that only this key gives these bytes.
    pub fn tag(&self, bytes: &[u8]) -> Vec<u8> {
        hmac::sign(&self.0, bytes).as_ref().to_vec()
    }

    /// Whether this is the tag of these bytes; takes as long whatever the answer.
    #[must_use]
    pub fn is_tag(&self, bytes: &[u8], tag: &[u8]) -> bool {
        hmac::verify(&self.0, bytes, tag).is_ok()
    }
}

impl fmt::Debug for MacKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a secret key")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SystemRandom;

    #[test]
    fn it_is_kept_and_refused_where_it_is_damaged() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let tag = MacKey::kept(&path, &mut SystemRandom).unwrap().tag(b"x");
        assert!(MacKey::kept(&path, &mut SystemRandom).unwrap().is_tag(b"x", &tag));
        assert!(!MacKey::generate(&mut SystemRandom).is_tag(b"x", &tag));
        for damaged in ["", "AAAA", &"A".repeat(63), &"A".repeat(65)] {
            std::fs::write(&path, damaged).unwrap();
            let refused = MacKey::kept(&path, &mut SystemRandom);
            assert!(matches!(refused, Err(KeyFileError::NotMac(_))), "{damaged}");
        }
    }
}
