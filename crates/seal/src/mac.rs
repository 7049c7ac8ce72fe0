//! A secret key that authenticates values issued by this program (HMAC-SHA-256, RFC 2104).

use std::fmt;
use std::io::ErrorKind;
use std::path::Path;

use ring::hmac;
use zeroize::Zeroizing;

use crate::private_file::{self, KeyFileError};
use crate::{Random, base64url};

/// Maximum size of a key file, in bytes.
const MAX_FILE_BYTES: u64 = 64;

/// An HMAC-SHA-256 key.
///
/// ```
/// let key = seal::MacKey::generate(&mut seal::SystemRandom);
/// let tag = key.tag(b"signed in until noon");
/// assert!(key.verify(b"signed in until noon", &tag));
/// assert!(!key.verify(b"signed in until midnight", &tag));
/// ```
#[derive(Clone)]
pub struct MacKey(hmac::Key);

impl MacKey {
    /// Generates a new key.
    pub fn generate(random: &mut impl Random) -> Self {
        let mut secret = Zeroizing::new([0; 32]);
        random.fill(secret.as_mut());
        Self::from_secret(&secret)
    }

    /// Loads the key from a file that only its owner can read. Creates the file if it does not exist.
    pub fn load_or_create(path: &Path, random: &mut impl Random) -> Result<Self, KeyFileError> {
        let text = match private_file::read(path, MAX_FILE_BYTES) {
            Ok(text) => text,
            Err(KeyFileError::Io(_, error)) if error.kind() == ErrorKind::NotFound => {
                let mut secret = Zeroizing::new([0; 32]);
                random.fill(secret.as_mut());
                let text = Zeroizing::new(base64url::encode(&secret[..]));
                private_file::create(path, &text)?;
                text
            }
            Err(error) => return Err(error.map_too_long(KeyFileError::NotMacKey)),
        };
        let secret = base64url::decode(text.trim()).map(Zeroizing::new);
        let secret = secret.and_then(|bytes| <[u8; 32]>::try_from(bytes.as_slice()).ok().map(Zeroizing::new));
        secret
            .map(|secret| Self::from_secret(&secret))
            .ok_or_else(|| KeyFileError::NotMacKey(path.to_owned()))
    }

    fn from_secret(secret: &[u8; 32]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, secret))
    }

    /// Returns the authentication tag of these bytes.
    pub fn tag(&self, bytes: &[u8]) -> Vec<u8> {
        hmac::sign(&self.0, bytes).as_ref().to_vec()
    }

    /// Returns whether `tag` is the tag of these bytes. Compares in constant time.
    #[must_use]
    pub fn verify(&self, bytes: &[u8], tag: &[u8]) -> bool {
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
    fn the_key_survives_reloading_and_a_damaged_file_is_rejected() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let tag = MacKey::load_or_create(&path, &mut SystemRandom).unwrap().tag(b"x");
        assert!(MacKey::load_or_create(&path, &mut SystemRandom).unwrap().verify(b"x", &tag));
        assert!(!MacKey::generate(&mut SystemRandom).verify(b"x", &tag));
        for damaged in ["", "AAAA", &"A".repeat(63), &"A".repeat(65)] {
            std::fs::write(&path, damaged).unwrap();
            let result = MacKey::load_or_create(&path, &mut SystemRandom);
            assert!(matches!(result, Err(KeyFileError::NotMacKey(_))), "{damaged}");
        }
    }
}
