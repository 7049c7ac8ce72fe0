//! One key that signs ES256, in a file that only its owner can read.

use std::path::Path;

use zeroize::Zeroizing;

use crate::json::{Tape, object};
use crate::private::{self, KeyFileError};
use crate::{base64url, es256};

/// No such file is longer.
const LONGEST: u64 = 4096;

impl es256::SigningKey {
    /// Writes a new file that only its owner can read, as a JWK (RFC 7517); a file that is there already is left alone.
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
        private::create(path, &Zeroizing::new(to_json(self)))
    }

    /// Reads a file, if nobody but its owner can read or change it.
    pub fn load(path: &Path) -> Result<Self, KeyFileError> {
        let text = private::read(path, LONGEST).map_err(|why| why.if_too_long(KeyFileError::NotOne))?;
        from_json(&text).ok_or_else(|| KeyFileError::NotOne(path.to_owned()))
    }
}

fn to_json(key: &es256::SigningKey) -> String {
    let (x, y) = key.verifying_key().coordinates();
    let (x, y) = (base64url::encode(x), base64url::encode(y));
    let secret = Zeroizing::new(base64url::encode(&key.secret()[..]));
    object(|writer| writer.texts([("kty", "EC"), ("crv", "P-256"), ("x", &x), ("y", &y), ("d", &secret)]))
        + "\n"
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
    // A public half that is not the secret's own is the mark of a file that was mixed or damaged.
    let (x, y) = key.verifying_key().coordinates();
    let same = member("x")? == base64url::encode(x) && member("y")? == base64url::encode(y);
    same.then_some(key)
}

#[cfg(test)]
mod tests {
    use crate::es256::SigningKey;
    use crate::{KeyFileError, SystemRandom};

    #[test]
    fn a_file_that_is_mixed_damaged_or_of_another_kind_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let (one, other) = (SigningKey::generate(&mut SystemRandom), SigningKey::generate(&mut SystemRandom));
        let (one, other) = (super::to_json(&one), super::to_json(&other));
        let secret = |text: &str| text[text.find("\"d\"").unwrap()..].to_owned();
        let mixed = one.replace(&secret(&one), &secret(&other));
        for text in
            ["", "{}", "[]", &mixed, &one.replace("P-256", "P-384"), &one.replace("\"EC\"", "\"oct\"")]
        {
            let _ = std::fs::remove_file(&path);
            let mut file = crate::private::options().write(true).create_new(true).open(&path).unwrap();
            std::io::Write::write_all(&mut file, text.as_bytes()).unwrap();
            assert!(matches!(SigningKey::load(&path), Err(KeyFileError::NotOne(_))), "{text}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn only_its_owner_can_read_it() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        SigningKey::generate(&mut SystemRandom).save(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(SigningKey::load(&path).unwrap_err().to_string().contains("chmod 600"));
    }
}
