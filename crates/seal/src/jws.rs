//! JSON Web Signatures (RFC 7515) in compact form, with an embedded or a detached payload.
//!
//! The caller's key determines the algorithm, never the header. Unsigned, HMAC and RSA tokens are therefore always
//! rejected.

use std::borrow::Cow;

use thiserror::Error;

use crate::json::{JsonKind, Tape, write_object};
use crate::{Jwk, JwkError, base64url, ed25519, es256};

/// A secret key to sign with.
#[derive(Clone, Copy, Debug)]
pub enum JwsSigner<'k> {
    /// `alg` `EdDSA` (RFC 8037).
    Ed25519(&'k ed25519::SigningKey),
    /// `alg` `ES256`.
    P256(&'k es256::SigningKey),
}

impl JwsSigner<'_> {
    fn algorithm(self) -> &'static str {
        match self {
            Self::Ed25519(_) => "EdDSA",
            Self::P256(_) => "ES256",
        }
    }

    fn public_key(self) -> Jwk {
        match self {
            Self::Ed25519(key) => Jwk::Ed25519(key.verifying_key()),
            Self::P256(key) => Jwk::P256(key.verifying_key().clone()),
        }
    }
}

/// The header members other than the algorithm.
#[derive(Clone, Copy, Debug, Default)]
pub struct JwsHeader<'h> {
    /// `typ`
    pub typ: Option<&'h str>,
    /// `kid`
    pub kid: Option<&'h str>,
    /// Whether to include the public key as `jwk`.
    pub include_jwk: bool,
}

/// Why a token could not be signed or verified.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum JwsError {
    /// The token does not have three base64url parts, or the header is not a valid JSON object.
    /// A header with a duplicate name is not valid.
    #[error("must be a compact JWS: three base64url parts, the first a JSON object")]
    Malformed,
    /// The header names an algorithm other than the key's. `none`, HMAC and RSA are never accepted.
    #[error("has the algorithm {0:?}, which does not match the key")]
    WrongAlgorithm(String),
    /// The header has the member `crit`. It requires extensions, and none are supported.
    #[error("has the header member crit, which is not supported")]
    UnsupportedCritical,
    /// The header's `jwk` is not a usable key.
    #[error("has a key (jwk) that {0}")]
    InvalidKey(#[source] JwkError),
    /// The payload is embedded but must be detached, or the other way round.
    #[error("has an embedded payload where a detached one is required, or the other way round")]
    PayloadPlacement,
    /// The signature over this content was not made with this key.
    #[error("has a signature that does not match the key and the content")]
    InvalidSignature,
    /// The system provided no randomness for signing.
    #[error("could not be signed: the system provided no randomness")]
    NoRandomness,
}

/// Signs a payload. Returns `header.payload.signature`.
pub fn sign(signer: JwsSigner<'_>, header: &JwsHeader<'_>, payload: &[u8]) -> Result<String, JwsError> {
    let mut token = base64url::encode(header_json(signer, header).as_bytes());
    token.push('.');
    base64url::encode_to(&mut token, payload);
    let signature = encode_signature(signer, token.as_bytes())?;
    token.push('.');
    token.push_str(&signature);
    Ok(token)
}

/// Signs a payload that is sent separately. Returns `header..signature` (RFC 7515 appendix F).
pub fn sign_detached(
    signer: JwsSigner<'_>,
    header: &JwsHeader<'_>,
    payload: &[u8],
) -> Result<String, JwsError> {
    let token = sign(signer, header, payload)?;
    match token.split('.').collect::<Vec<_>>()[..] {
        [header, _, signature] => Ok(format!("{header}..{signature}")),
        _ => Err(JwsError::Malformed),
    }
}

fn header_json(signer: JwsSigner<'_>, header: &JwsHeader<'_>) -> String {
    write_object(|writer| {
        writer.key("alg").text(signer.algorithm());
        if header.include_jwk {
            writer.key("jwk");
            signer.public_key().write(writer);
        }
        for (name, value) in [("kid", header.kid), ("typ", header.typ)] {
            if let Some(value) = value {
                writer.key(name).text(value);
            }
        }
    })
}

fn encode_signature(signer: JwsSigner<'_>, input: &[u8]) -> Result<String, JwsError> {
    Ok(match signer {
        JwsSigner::Ed25519(key) => base64url::encode(key.sign(input).as_bytes()),
        JwsSigner::P256(key) => base64url::encode(&key.sign(input).ok_or(JwsError::NoRandomness)?),
    })
}

/// A token with a valid signature.
#[derive(Clone, Debug)]
pub struct VerifiedToken {
    /// `typ`
    pub typ: Option<String>,
    /// `kid`
    pub kid: Option<String>,
    /// `jwk`: untrusted until the caller compares it with a known key.
    pub jwk: Option<Jwk>,
    /// Whether the header refers to other keys or certificates (`jku`, `x5u`, `x5c`). The references are ignored.
    pub references_external_keys: bool,
    /// The payload. Empty if it is detached.
    pub payload: Vec<u8>,
}

/// Verifies `header.payload.signature` with a key that the caller trusts.
pub fn verify(token: &str, key: &Jwk) -> Result<VerifiedToken, JwsError> {
    let (rest, signature) = token.rsplit_once('.').ok_or(JwsError::Malformed)?;
    let (header, payload) = rest.split_once('.').ok_or(JwsError::Malformed)?;
    if payload.is_empty() {
        return Err(JwsError::PayloadPlacement);
    }
    let mut contents = read_header(header, key)?;
    contents.payload = base64url::decode(payload).ok_or(JwsError::Malformed)?;
    verify_signature(rest.as_bytes(), signature, key)?;
    Ok(contents)
}

/// Verifies `header..signature` over a payload that arrived separately.
pub fn verify_detached(token: &str, payload: &[u8], key: &Jwk) -> Result<VerifiedToken, JwsError> {
    let (rest, signature) = token.rsplit_once('.').ok_or(JwsError::Malformed)?;
    let (header, embedded) = rest.split_once('.').ok_or(JwsError::Malformed)?;
    if !embedded.is_empty() {
        return Err(JwsError::PayloadPlacement);
    }
    let contents = read_header(header, key)?;
    let mut input = rest.to_owned();
    base64url::encode_to(&mut input, payload);
    verify_signature(input.as_bytes(), signature, key)?;
    Ok(contents)
}

fn verify_signature(input: &[u8], signature: &str, key: &Jwk) -> Result<(), JwsError> {
    let signature = base64url::decode(signature).ok_or(JwsError::Malformed)?;
    let is_valid = match key {
        Jwk::Ed25519(key) => <[u8; 64]>::try_from(signature.as_slice())
            .is_ok_and(|bytes| key.verify(input, &ed25519::Signature::from_bytes(bytes))),
        Jwk::P256(key) => key.verify(input, &signature),
    };
    if is_valid { Ok(()) } else { Err(JwsError::InvalidSignature) }
}

/// Reads the header. The caller must add the payload and verify the signature.
fn read_header(part: &str, key: &Jwk) -> Result<VerifiedToken, JwsError> {
    let bytes = base64url::decode(part).ok_or(JwsError::Malformed)?;
    let text = std::str::from_utf8(&bytes).map_err(|_| JwsError::Malformed)?;
    let mut tape = Tape::default();
    let doc = tape.read(text).map_err(|_| JwsError::Malformed)?;
    let root = doc.root();
    if root.kind() != JsonKind::Object || has_duplicate_key(&root) {
        return Err(JwsError::Malformed);
    }
    let text_member = |name: &str| match root.member(name) {
        None => Ok(None),
        Some(member) => member.text().map(Cow::into_owned).map(Some).ok_or(JwsError::Malformed),
    };
    let algorithm = text_member("alg")?.ok_or(JwsError::Malformed)?;
    let expected = match key {
        Jwk::Ed25519(_) => "EdDSA",
        Jwk::P256(_) => "ES256",
    };
    if algorithm != expected {
        return Err(JwsError::WrongAlgorithm(algorithm));
    }
    if root.member("crit").is_some() {
        return Err(JwsError::UnsupportedCritical);
    }
    let jwk = root.member("jwk").map(|value| Jwk::read(&value)).transpose().map_err(JwsError::InvalidKey)?;
    let references_external_keys = ["jku", "x5u", "x5c"].into_iter().any(|name| root.member(name).is_some());
    Ok(VerifiedToken {
        typ: text_member("typ")?,
        kid: text_member("kid")?,
        jwk,
        references_external_keys,
        payload: Vec::new(),
    })
}

/// Returns whether an object has a duplicate key. RFC 7515 §4 requires unique header names.
fn has_duplicate_key(object: &crate::json::JsonValue<'_>) -> bool {
    let mut keys: Vec<_> = object.members().filter_map(|(key, _)| key.text()).collect();
    keys.sort_unstable();
    keys.windows(2).any(|pair| pair[0] == pair[1])
}
