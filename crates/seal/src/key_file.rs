//! An ES256 signing key in a file that only its owner can read.

use std::path::Path;

use zeroize::Zeroizing;

use crate::json::{Tape, write_object};
use crate::private_file::{self, KeyFileError};
use crate::{base64url, es256};

/// Maximum size of a key file, in bytes.
const MAX_FILE_BYTES: u64 = 4096;

impl es256::SigningKey {
    /// Writes the key as a JWK (RFC 7517) to a new file that only its owner can read. Fails if the file exists.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("manifest.key");
    /// use seal::es256::SigningKey;
    /// let key = SigningKey::generate(&mut seal::SystemRandom);
    /// key.save(&path).unwrap();
    /// assert_eq!(SigningKey::load(&path).unwrap().verifying_key(), key.verifying_key());
    /// assert!(key.save(&path).is_err());
    /// ```
    pub fn save(&self, path: &Path) -> Result<(), KeyFileError> {
        private_file::create(path, &Zeroizing::new(to_json(self)))
    }

    /// Reads a key file. Fails if anyone but its owner can read or change it.
    pub fn load(path: &Path) -> Result<Self, KeyFileError> {
        let text = private_file::read(path, MAX_FILE_BYTES)
            .map_err(|error| error.map_too_long(KeyFileError::NotSigningKey))?;
        from_json(&text).ok_or_else(|| KeyFileError::NotSigningKey(path.to_owned()))
    }
}

fn to_json(key: &es256::SigningKey) -> String {
    let (x, y) = key.verifying_key().coordinates();
    let (x, y) = (base64url::encode(x), base64url::encode(y));
    let secret = Zeroizing::new(base64url::encode(&key.secret()[..]));
    write_object(|writer| {
        writer.text_members([("kty", "EC"), ("crv", "P-256"), ("x", &x), ("y", &y), ("d", &secret)]);
    }) + "\n"
}

fn from_json(text: &str) -> Option<es256::SigningKey> {
    let mut tape = Tape::default();
    let doc = tape.read(text).ok()?;
    let root = doc.root();
    let member = |name: &str| root.member(name).and_then(|member| member.text());
    if (&*member("kty")?, &*member("crv")?) != ("EC", "P-256") {
        return None;
    }
    let secret = Zeroizing::new(base64url::decode(&member("d")?)?);
    let secret = Zeroizing::new(<[u8; 32]>::try_from(secret.as_slice()).ok()?);
    let key = es256::SigningKey::from_secret(&secret)?;
    // If the public key does not match the secret key, the file is damaged or was edited.
    let (x, y) = key.verifying_key().coordinates();
    let is_consistent = member("x")? == base64url::encode(x) && member("y")? == base64url::encode(y);
    is_consistent.then_some(key)
}

#[cfg(test)]
mod tests {
    use crate::es256::SigningKey;
    use crate::{KeyFileError, SystemRandom};

    #[test]
    fn a_key_file_that_is_damaged_or_of_the_wrong_kind_is_rejected() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let (one, other) = (SigningKey::generate(&mut SystemRandom), SigningKey::generate(&mut SystemRandom));
        let (one, other) = (super::to_json(&one), super::to_json(&other));
        let secret_part = |text: &str| text[text.find("\"d\"").unwrap()..].to_owned();
        let mixed = one.replace(&secret_part(&one), &secret_part(&other));
        for text in
            ["", "{}", "[]", &mixed, &one.replace("P-256", "P-384"), &one.replace("\"EC\"", "\"oct\"")]
        {
            let _ = std::fs::remove_file(&path);
            let mut file =
                crate::private_file::open_options().write(true).create_new(true).open(&path).unwrap();
            std::io::Write::write_all(&mut file, text.as_bytes()).unwrap();
            assert!(matches!(SigningKey::load(&path), Err(KeyFileError::NotSigningKey(_))), "{text}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn only_the_owner_can_read_the_key_file() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        SigningKey::generate(&mut SystemRandom).save(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(SigningKey::load(&path).unwrap_err().to_string().contains("chmod 600"));
    }
}
