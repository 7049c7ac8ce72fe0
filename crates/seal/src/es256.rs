//! ES256: ECDSA over P-256 with SHA-256 (RFC 7518 §3.4), with 64-byte signatures.
//!
//! Ordinary keys sign with `ring`, which is five times as fast as the pure Rust crate. The signatures of `ring` are
//! randomized. A key from [`SigningKey::deterministic`] signs by RFC 6979 instead, so that the same message always gives
//! the same signature, which demos and test vectors need. `ring` verifies both kinds of signatures.

use std::fmt;
use std::sync::Arc;

use p256::ecdsa::signature::Signer as _;
use p256::elliptic_curve::sec1::ToSec1Point as _;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, UnparsedPublicKey,
};
use zeroize::Zeroizing;

use crate::Random;

/// A secret key.
#[derive(Clone)]
pub struct SigningKey {
    secret: p256::SecretKey,
    signer: SigningBackend,
    public: VerifyingKey,
}

#[derive(Clone)]
enum SigningBackend {
    Ring(Arc<EcdsaKeyPair>),
    Deterministic(p256::ecdsa::SigningKey),
}

impl SigningKey {
    /// Creates the key with this secret number. Returns `None` for zero and for numbers not below the curve's order.
    pub fn from_secret(secret: &[u8; 32]) -> Option<Self> {
        let secret = p256::SecretKey::from_slice(secret).ok()?;
        let public = VerifyingKey::from_secret_key(&secret)?;
        let pair = EcdsaKeyPair::from_private_key_and_public_key(
            &ECDSA_P256_SHA256_FIXED_SIGNING,
            &Zeroizing::new(<[u8; 32]>::from(secret.to_bytes()))[..],
            &public.point,
            &SystemRandom::new(),
        );
        Some(Self { signer: SigningBackend::Ring(Arc::new(pair.ok()?)), secret, public })
    }

    /// Creates the key with this secret number. Its signatures are deterministic (RFC 6979). Returns `None` for zero and
    /// for numbers not below the curve's order.
    pub fn deterministic(secret: &[u8; 32]) -> Option<Self> {
        let secret = p256::SecretKey::from_slice(secret).ok()?;
        let public = VerifyingKey::from_secret_key(&secret)?;
        Some(Self {
            signer: SigningBackend::Deterministic(p256::ecdsa::SigningKey::from(&secret)),
            secret,
            public,
        })
    }

    /// Generates a new key.
    pub fn generate(random: &mut impl Random) -> Self {
        let mut secret = Zeroizing::new([0; 32]);
        loop {
            random.fill(secret.as_mut());
            // Fewer than one in 2^31 random numbers is unusable.
            if let Some(key) = Self::from_secret(&secret) {
                return key;
            }
        }
    }

    /// Returns the public key.
    pub fn verifying_key(&self) -> &VerifyingKey {
        &self.public
    }

    /// Signs bytes. Returns `None` if the system provides no randomness.
    pub fn sign(&self, bytes: &[u8]) -> Option<[u8; 64]> {
        match &self.signer {
            SigningBackend::Ring(pair) => {
                pair.sign(&SystemRandom::new(), bytes).ok()?.as_ref().try_into().ok()
            }
            SigningBackend::Deterministic(key) => {
                let signature: p256::ecdsa::Signature = key.try_sign(bytes).ok()?;
                Some(signature.to_bytes().into())
            }
        }
    }

    /// Returns the secret key. Anybody who has it can sign.
    pub fn secret(&self) -> Zeroizing<[u8; 32]> {
        Zeroizing::new(self.secret.to_bytes().into())
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a P-256 secret key")
    }
}

/// A public key, which is a point on the curve.
#[derive(Clone, PartialEq, Eq)]
pub struct VerifyingKey {
    /// The uncompressed SEC 1 encoding: the byte 4, then x, then y.
    point: [u8; 65],
}

impl VerifyingKey {
    fn from_secret_key(secret: &p256::SecretKey) -> Option<Self> {
        let point = secret.public_key().to_sec1_point(false).as_bytes().try_into().ok()?;
        Some(Self { point })
    }

    /// Creates a key from its coordinates. Returns `None` if they are not a point on the curve.
    pub fn from_coordinates(x: &[u8], y: &[u8]) -> Option<Self> {
        let mut point = [4; 65];
        point.get_mut(1..33)?.copy_from_slice(x.get(..32).filter(|_| x.len() == 32)?);
        point.get_mut(33..)?.copy_from_slice(y.get(..32).filter(|_| y.len() == 32)?);
        p256::PublicKey::from_sec1_bytes(&point).ok()?;
        Some(Self { point })
    }

    /// Returns the coordinates x and y.
    pub fn coordinates(&self) -> (&[u8], &[u8]) {
        self.point[1..].split_at(32)
    }

    /// Returns whether the signature over these bytes was made with this key.
    #[must_use]
    pub fn verify(&self, bytes: &[u8], signature: &[u8]) -> bool {
        UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, &self.point).verify(bytes, signature).is_ok()
    }
}

impl fmt::Debug for VerifyingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (x, _) = self.coordinates();
        write!(f, "P-256 {}", crate::base64url::encode(x))
    }
}
