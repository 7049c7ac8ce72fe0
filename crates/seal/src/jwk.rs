//! Public keys as JSON Web Keys (RFC 7517, RFC 8037), and their thumbprints (RFC 7638).

use thiserror::Error;

use crate::json::{JsonKind, JsonValue, JsonWriter};
use crate::{Digest, base64url, ed25519, es256};

/// A public key of one of the two supported types.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Jwk {
    /// `kty` `OKP`, `crv` `Ed25519`.
    Ed25519(ed25519::VerifyingKey),
    /// `kty` `EC`, `crv` `P-256`.
    P256(es256::VerifyingKey),
}

/// Why a JSON value is not a usable public key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum JwkError {
    /// The value is not an object, or a member is missing or not a string.
    #[error("must be an object with the strings kty, crv and x, and y for a P-256 key")]
    Malformed,
    /// The key is neither an Ed25519 nor a P-256 key.
    #[error("must be an Ed25519 key (OKP) or a P-256 key (EC)")]
    UnsupportedType,
    /// The coordinates are not base64url, not on the curve, or belong to a weak key.
    #[error("has coordinates that are not a usable point on the curve")]
    InvalidPoint,
    /// The key has the member `d`, so it is a secret key. A public key is required.
    #[error("contains a secret key (d); publish only the public key")]
    ContainsSecret,
}

impl Jwk {
    /// Reads a key. Ignores members such as `kid` and `use`.
    pub fn read(value: &JsonValue<'_>) -> Result<Self, JwkError> {
        if value.kind() != JsonKind::Object {
            return Err(JwkError::Malformed);
        }
        if value.member("d").is_some() {
            return Err(JwkError::ContainsSecret);
        }
        let text_member =
            |name| value.member(name).and_then(|member| member.text()).ok_or(JwkError::Malformed);
        let decode_coordinate = |name| base64url::decode(&text_member(name)?).ok_or(JwkError::InvalidPoint);
        match (text_member("kty")?.as_ref(), text_member("crv")?.as_ref()) {
            ("OKP", "Ed25519") => {
                ed25519::VerifyingKey::from_bytes(&decode_coordinate("x")?).map(Self::Ed25519)
            }
            ("EC", "P-256") => {
                es256::VerifyingKey::from_coordinates(&decode_coordinate("x")?, &decode_coordinate("y")?)
                    .map(Self::P256)
            }
            _ => return Err(JwkError::UnsupportedType),
        }
        .ok_or(JwkError::InvalidPoint)
    }

    /// Writes the key with the members that a thumbprint requires, in canonical order.
    pub fn write(&self, writer: &mut JsonWriter) {
        writer.open_object();
        match self {
            Self::Ed25519(key) => {
                writer.key("crv").text("Ed25519");
                writer.key("kty").text("OKP");
                writer.key("x").text(&base64url::encode(key.as_bytes()));
            }
            Self::P256(key) => {
                let (x, y) = key.coordinates();
                writer.key("crv").text("P-256");
                writer.key("kty").text("EC");
                writer.key("x").text(&base64url::encode(x));
                writer.key("y").text(&base64url::encode(y));
            }
        }
        writer.close_object();
    }

    /// Returns the key as canonical JSON.
    pub fn to_json(&self) -> String {
        let mut writer = JsonWriter::default();
        self.write(&mut writer);
        writer.finish()
    }

    /// Returns the RFC 7638 thumbprint with SHA-256.
    pub fn thumbprint(&self) -> String {
        base64url::encode(Digest::of(self.to_json().as_bytes()).as_bytes())
    }
}
