//! Ed25519 (RFC 8032) with strict verification: weak keys are rejected, and each signature has only one encoding.

use std::fmt;

use ed25519_dalek::Signer as _;
use zeroize::Zeroizing;

use crate::Random;
use crate::hex::hex_newtype;

/// A secret key.
#[derive(Clone)]
pub struct SigningKey(ed25519_dalek::SigningKey);

impl SigningKey {
    /// Creates the key with this seed (the "secret key" of RFC 8032).
    pub fn from_seed(seed: &[u8; 32]) -> Self {
        Self(ed25519_dalek::SigningKey::from_bytes(seed))
    }

    /// Generates a new key.
    pub fn generate(random: &mut impl Random) -> Self {
        let mut seed = Zeroizing::new([0; 32]);
        random.fill(seed.as_mut());
        Self::from_seed(&seed)
    }

    /// Returns the public key.
    pub fn verifying_key(&self) -> VerifyingKey {
        VerifyingKey(self.0.verifying_key())
    }

    /// Signs bytes.
    pub fn sign(&self, bytes: &[u8]) -> Signature {
        Signature(self.0.sign(bytes).to_bytes())
    }

    pub(crate) fn seed(&self) -> Zeroizing<[u8; 32]> {
        Zeroizing::new(self.0.to_bytes())
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an Ed25519 secret key")
    }
}

/// A public key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VerifyingKey(ed25519_dalek::VerifyingKey);

impl VerifyingKey {
    /// Decodes a key. Returns `None` unless the bytes are the canonical 32-byte encoding of a point that is not weak.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let key = ed25519_dalek::VerifyingKey::from_bytes(bytes.try_into().ok()?).ok()?;
        // RFC 8032 §5.1.3 rejects a y coordinate that is not below p. `ed25519-dalek` accepts it, which would give the
        // point two encodings.
        let is_canonical = key.to_edwards().compress().as_bytes() == key.as_bytes();
        (is_canonical && !key.is_weak()).then_some(Self(key))
    }

    /// Returns the 32 bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        self.0.as_bytes()
    }

    /// Returns whether the signature over these bytes was made with this key.
    #[must_use]
    pub fn verify(&self, bytes: &[u8], signature: &Signature) -> bool {
        let signature = ed25519_dalek::Signature::from_bytes(&signature.0);
        self.0.verify_strict(bytes, &signature).is_ok()
    }
}

/// A signature. Its text form is `ed25519:` and 128 lower-case hexadecimal digits (ASP, D14).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Signature([u8; 64]);

hex_newtype!(Signature, 64, "ed25519:");
