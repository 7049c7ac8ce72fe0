//! The two keys of one agent, and the file they are kept in.

use std::path::Path;

use zeroize::Zeroizing;

use crate::json::{Tape, Writer};
use crate::private::{self, KeyFileError};
use crate::{Random, base64url, ed25519, es256};

/// A key to sign messages with and a key to prove possession with.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("agent.keys");
/// let keys = seal::Keys::generate(&mut seal::SystemRandom);
/// keys.save(&path).unwrap();
/// let again = seal::Keys::load(&path).unwrap();
/// assert_eq!(again.signing.verifying_key(), keys.signing.verifying_key());
/// ```
#[derive(Clone, Debug)]
pub struct Keys {
    /// Ed25519: signs messages and cards.
    pub signing: ed25519::SigningKey,
    /// P-256: signs DPoP proofs.
    pub dpop: es256::SigningKey,
}

/// No key file is longer.
const LONGEST: u64 = 4096;

impl Keys {
    /// New keys.
    pub fn generate(random: &mut impl Random) -> Self {
        Self { signing: ed25519::SigningKey::generate(random), dpop: es256::SigningKey::generate(random) }
    }

    /// Writes a new file that only its owner can read; a file that is there already is left alone.
    pub fn save(&self, path: &Path) -> Result<(), KeyFileError> {
        private::create(path, &Zeroizing::new(self.to_json()))
    }

    /// Reads a file, if nobody but its owner can read or change it.
    pub fn load(path: &Path) -> Result<Self, KeyFileError> {
        let text = private::read(path, LONGEST).map_err(|why| why.if_too_long(KeyFileError::Form))?;
        Self::from_json(&text).ok_or_else(|| KeyFileError::Form(path.to_owned()))
    }

    fn to_json(&self) -> String {
        let mut writer = Writer::default();
        let mut key =
            |members: &[(&str, &str)]| writer.object(|writer| writer.texts(members.iter().copied()));
        let seed = Zeroizing::new(base64url::encode(&self.signing.seed()[..]));
        let public = base64url::encode(self.signing.verifying_key().as_bytes());
        key(&[("kty", "OKP"), ("crv", "Ed25519"), ("x", &public), ("d", &seed)]);
        let secret = Zeroizing::new(base64url::encode(&self.dpop.secret()[..]));
        let (x, y) = self.dpop.verifying_key().coordinates();
        let (x, y) = (base64url::encode(x), base64url::encode(y));
        key(&[("kty", "EC"), ("crv", "P-256"), ("x", &x), ("y", &y), ("d", &secret)]);
        format!("{{\"keys\":[{}]}}\n", Zeroizing::new(writer.finish()).as_str())
    }

    fn from_json(text: &str) -> Option<Self> {
        let mut tape = Tape::default();
        let doc = tape.read(text).ok()?;
        let keys: Vec<_> = doc.root().member("keys")?.items().collect();
        let secret = |curve: &str| -> Option<Zeroizing<[u8; 32]>> {
            let mut found = keys.iter().filter(|key| key.member("crv").is_some_and(|name| name.is(curve)));
            let d = Zeroizing::new(base64url::decode(&found.next()?.member("d")?.text()?)?);
            let secret = <[u8; 32]>::try_from(d.as_slice()).ok().map(Zeroizing::new);
            if found.next().is_some() { None } else { secret }
        };
        let read = Self {
            signing: ed25519::SigningKey::from_seed(&*secret("Ed25519")?),
            dpop: es256::SigningKey::from_secret(&*secret("P-256")?)?,
        };
        // A public half that is not the secret's own is the mark of a file that was mixed or damaged.
        let said = |curve: &str| {
            let key = keys.iter().find(|key| key.member("crv").is_some_and(|name| name.is(curve)))?;
            key.member("x")?.text()
        };
        let same = said("Ed25519")? == base64url::encode(read.signing.verifying_key().as_bytes())
            && said("P-256")? == base64url::encode(read.dpop.verifying_key().coordinates().0);
        same.then_some(read)
    }
}
