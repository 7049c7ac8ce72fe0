//! An agent's two keys, and the file that stores them.

use std::path::Path;

use zeroize::Zeroizing;

use crate::json::{JsonWriter, Tape};
use crate::private_file::{self, KeyFileError};
use crate::{Random, base64url, ed25519, es256};

/// An agent's signing key and its DPoP key.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("agent.keys");
/// let keys = seal::AgentKeys::generate(&mut seal::SystemRandom);
/// keys.save(&path).unwrap();
/// let loaded = seal::AgentKeys::load(&path).unwrap();
/// assert_eq!(loaded.signing.verifying_key(), keys.signing.verifying_key());
/// ```
#[derive(Clone, Debug)]
pub struct AgentKeys {
    /// The Ed25519 key that signs messages and agent cards.
    pub signing: ed25519::SigningKey,
    /// The P-256 key that signs DPoP proofs.
    pub dpop: es256::SigningKey,
}

/// Maximum size of a key file, in bytes.
const MAX_FILE_BYTES: u64 = 4096;

impl AgentKeys {
    /// Generates new keys.
    pub fn generate(random: &mut impl Random) -> Self {
        Self { signing: ed25519::SigningKey::generate(random), dpop: es256::SigningKey::generate(random) }
    }

    /// Writes a new file that only its owner can read. Fails if the file exists.
    pub fn save(&self, path: &Path) -> Result<(), KeyFileError> {
        private_file::create(path, &Zeroizing::new(self.to_json()))
    }

    /// Reads a key file. Fails if anyone but its owner can read or change it.
    pub fn load(path: &Path) -> Result<Self, KeyFileError> {
        let text = private_file::read(path, MAX_FILE_BYTES)
            .map_err(|error| error.map_too_long(KeyFileError::NotAgentKeys))?;
        Self::from_json(&text).ok_or_else(|| KeyFileError::NotAgentKeys(path.to_owned()))
    }

    fn to_json(&self) -> String {
        let mut writer = JsonWriter::default();
        let mut write_key =
            |members: &[(&str, &str)]| writer.object(|writer| writer.text_members(members.iter().copied()));
        let seed = Zeroizing::new(base64url::encode(&self.signing.seed()[..]));
        let public = base64url::encode(self.signing.verifying_key().as_bytes());
        write_key(&[("kty", "OKP"), ("crv", "Ed25519"), ("x", &public), ("d", &seed)]);
        let secret = Zeroizing::new(base64url::encode(&self.dpop.secret()[..]));
        let (x, y) = self.dpop.verifying_key().coordinates();
        let (x, y) = (base64url::encode(x), base64url::encode(y));
        write_key(&[("kty", "EC"), ("crv", "P-256"), ("x", &x), ("y", &y), ("d", &secret)]);
        format!("{{\"keys\":[{}]}}\n", Zeroizing::new(writer.finish()).as_str())
    }

    fn from_json(text: &str) -> Option<Self> {
        let mut tape = Tape::default();
        let doc = tape.read(text).ok()?;
        let keys: Vec<_> = doc.root().member("keys")?.items().collect();
        let read_secret = |curve: &str| -> Option<Zeroizing<[u8; 32]>> {
            let mut matching =
                keys.iter().filter(|key| key.member("crv").is_some_and(|name| name.is_text(curve)));
            let d = Zeroizing::new(base64url::decode(&matching.next()?.member("d")?.text()?)?);
            let secret = <[u8; 32]>::try_from(d.as_slice()).ok().map(Zeroizing::new);
            if matching.next().is_some() { None } else { secret }
        };
        let loaded = Self {
            signing: ed25519::SigningKey::from_seed(&*read_secret("Ed25519")?),
            dpop: es256::SigningKey::from_secret(&*read_secret("P-256")?)?,
        };
        // If a public key does not match its secret key, the file is damaged or was edited. Of the P-256 key, only x is
        // compared.
        let read_public_x = |curve: &str| {
            let key = keys.iter().find(|key| key.member("crv").is_some_and(|name| name.is_text(curve)))?;
            key.member("x")?.text()
        };
        let public_keys_match = read_public_x("Ed25519")?
            == base64url::encode(loaded.signing.verifying_key().as_bytes())
            && read_public_x("P-256")? == base64url::encode(loaded.dpop.verifying_key().coordinates().0);
        public_keys_match.then_some(loaded)
    }
}
