//! Public keys as JSON Web Keys (RFC 7517, RFC 8037), and their thumbprints (RFC 7638).

use thiserror::Error;

use crate::json::{Kind, Value, Writer};
use crate::{Digest, base64url, ed25519, es256};

/// A public key of one of the two kinds that are used here.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Jwk {
    /// `kty` `OKP`, `crv` `Ed25519`.
    Ed25519(ed25519::VerifyingKey),
    /// `kty` `EC`, `crv` `P-256`.
    P256(es256::VerifyingKey),
}

/// Why a JSON value is no public key that can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum JwkError {
    /// Not an object, or a member is not a string.
    #[error("must be an object with the strings kty, crv and x")]
    Form,
    /// Neither an Ed25519 nor a P-256 key.
    #[error("must be an Ed25519 key (OKP) or a P-256 key (EC)")]
    Kind,
    /// The coordinates are not base64url, not on the curve, or those of a weak key.
    #[error("has coordinates that are no usable point of the curve")]
    Point,
    /// It has `d`: a secret key where a public one belongs.
    #[error("holds a secret key (d); publish the public half only")]
    Secret,
}

impl Jwk {
    /// Reads a key; members such as `kid` and `use` are ignored.
    pub fn read(value: &Value<'_>) -> Result<Self, JwkError> {
        if value.kind() != Kind::Object {
            return Err(JwkError::Form);
        }
        if value.member("d").is_some() {
            return Err(JwkError::Secret);
        }
        let text = |name| value.member(name).and_then(|member| member.text()).ok_or(JwkError::Form);
        let point = |name| base64url::decode(&text(name)?).ok_or(JwkError::Point);
        match (text("kty")?.as_ref(), text("crv")?.as_ref()) {
            ("OKP", "Ed25519") => ed25519::VerifyingKey::from_bytes(&point("x")?).map(Self::Ed25519),
            ("EC", "P-256") => {
                es256::VerifyingKey::from_coordinates(&point("x")?, &point("y")?).map(Self::P256)
            }
            _ => return Err(JwkError::Kind),
        }
        .ok_or(JwkError::Point)
    }

    /// Writes it: the members that a thumbprint needs, in canonical order.
    pub fn write(&self, writer: &mut Writer) {
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

    /// The canonical text.
    pub fn to_json(&self) -> String {
        let mut writer = Writer::default();
        self.write(&mut writer);
        writer.finish()
    }

    /// The thumbprint of RFC 7638 with SHA-256.
    pub fn thumbprint(&self) -> String {
        base64url::encode(Digest::of(self.to_json().as_bytes()).as_bytes())
    }
}
