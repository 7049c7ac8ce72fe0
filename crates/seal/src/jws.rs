//! JSON Web Signatures (RFC 7515), compact and detached.
//!
//! The algorithm follows from the key that the caller brings, never from the header: an unsigned token, an HMAC or an RSA
//! one cannot even be asked for.

use std::borrow::Cow;

use thiserror::Error;

use crate::json::{Kind, Tape, object};
use crate::{Jwk, JwkError, base64url, ed25519, es256};

/// A secret key to sign with.
#[derive(Clone, Copy, Debug)]
pub enum Signer<'k> {
    /// `alg` `EdDSA` (RFC 8037).
    Ed25519(&'k ed25519::SigningKey),
    /// `alg` `ES256`.
    P256(&'k es256::SigningKey),
}

impl Signer<'_> {
    fn algorithm(self) -> &'static str {
        match self {
            Self::Ed25519(_) => "EdDSA",
            Self::P256(_) => "ES256",
        }
    }

    fn public(self) -> Jwk {
        match self {
            Self::Ed25519(key) => Jwk::Ed25519(key.verifying_key()),
            Self::P256(key) => Jwk::P256(key.verifying_key().clone()),
        }
    }
}

/// What the header says beside the algorithm.
#[derive(Clone, Copy, Debug, Default)]
pub struct Header<'h> {
    /// `typ`
    pub typ: Option<&'h str>,
    /// `kid`
    pub kid: Option<&'h str>,
    /// Whether the public key stands in it as `jwk`.
    pub with_key: bool,
}

/// Why a token does not verify.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum JwsError {
    /// Not three parts of base64url, or the header is no JSON object.
    #[error("must be a compact JWS: three base64url parts, the first a JSON object")]
    Form,
    /// The header names another algorithm than the key's; `none`, HMAC and RSA are never taken.
    #[error("has the algorithm {0:?}, which is not that of the key")]
    Algorithm(String),
    /// The header wants something understood (`crit`) that is not understood here.
    #[error("has a critical header (crit) that is not understood")]
    Critical,
    /// The header's `jwk` is no usable key.
    #[error("has a key (jwk) that {0}")]
    Key(#[source] JwkError),
    /// The payload stands inside where it should be detached, or the other way round.
    #[error("has its payload inside where it should be detached, or the reverse")]
    Payload,
    /// The signature is not of this key over this text.
    #[error("has a signature that is not of this key over this text")]
    Signature,
    /// The system had no randomness to sign with.
    #[error("could not be signed: the system has no randomness")]
    NoRandomness,
}

/// Signs a payload into `header.payload.signature`.
pub fn sign(signer: Signer<'_>, header: &Header<'_>, payload: &[u8]) -> Result<String, JwsError> {
    let mut token = base64url::encode(header_text(signer, header).as_bytes());
    token.push('.');
    base64url::encode_to(&mut token, payload);
    let signature = signature(signer, token.as_bytes())?;
    token.push('.');
    token.push_str(&signature);
    Ok(token)
}

/// Signs a payload that travels beside the token: `header..signature` (RFC 7515 appendix F).
pub fn sign_detached(signer: Signer<'_>, header: &Header<'_>, payload: &[u8]) -> Result<String, JwsError> {
    let whole = sign(signer, header, payload)?;
    match whole.split('.').collect::<Vec<_>>()[..] {
        [header, _, signature] => Ok(format!("{header}..{signature}")),
        _ => Err(JwsError::Form),
    }
}

fn header_text(signer: Signer<'_>, header: &Header<'_>) -> String {
    object(|writer| {
        writer.key("alg").text(signer.algorithm());
        if header.with_key {
            writer.key("jwk");
            signer.public().write(writer);
        }
        for (name, value) in [("kid", header.kid), ("typ", header.typ)] {
            if let Some(value) = value {
                writer.key(name).text(value);
            }
        }
    })
}

fn signature(signer: Signer<'_>, input: &[u8]) -> Result<String, JwsError> {
    Ok(match signer {
        Signer::Ed25519(key) => base64url::encode(key.sign(input).as_bytes()),
        Signer::P256(key) => base64url::encode(&key.sign(input).ok_or(JwsError::NoRandomness)?),
    })
}

/// A token whose signature holds.
#[derive(Clone, Debug)]
pub struct Verified {
    /// `typ`
    pub typ: Option<String>,
    /// `kid`
    pub kid: Option<String>,
    /// `jwk`: a claim like any other until it is compared with a key that is known.
    pub jwk: Option<Jwk>,
    /// Whether the header points to further keys or brings certificates (`jku`, `x5u`, `x5c`). They are not followed here.
    pub points_to_keys: bool,
    /// The payload; empty where it is detached.
    pub payload: Vec<u8>,
}

/// Verifies `header.payload.signature` with a key that the caller knows.
pub fn verify(token: &str, key: &Jwk) -> Result<Verified, JwsError> {
    let (rest, signature) = token.rsplit_once('.').ok_or(JwsError::Form)?;
    let (header, payload) = rest.split_once('.').ok_or(JwsError::Form)?;
    if payload.is_empty() {
        return Err(JwsError::Payload);
    }
    let mut verified = read_header(header, key)?;
    verified.payload = base64url::decode(payload).ok_or(JwsError::Form)?;
    check(rest.as_bytes(), signature, key)?;
    Ok(verified)
}

/// Verifies `header..signature` over a payload that came beside it.
pub fn verify_detached(token: &str, payload: &[u8], key: &Jwk) -> Result<Verified, JwsError> {
    let (rest, signature) = token.rsplit_once('.').ok_or(JwsError::Form)?;
    let (header, inside) = rest.split_once('.').ok_or(JwsError::Form)?;
    if !inside.is_empty() {
        return Err(JwsError::Payload);
    }
    let verified = read_header(header, key)?;
    let mut input = rest.to_owned();
    base64url::encode_to(&mut input, payload);
    check(input.as_bytes(), signature, key)?;
    Ok(verified)
}

fn check(input: &[u8], signature: &str, key: &Jwk) -> Result<(), JwsError> {
    let signature = base64url::decode(signature).ok_or(JwsError::Form)?;
    let good = match key {
        Jwk::Ed25519(key) => <[u8; 64]>::try_from(signature.as_slice())
            .is_ok_and(|bytes| key.verify(input, &ed25519::Signature::from_bytes(bytes))),
        Jwk::P256(key) => key.verify(input, &signature),
    };
    if good { Ok(()) } else { Err(JwsError::Signature) }
}

fn read_header(part: &str, key: &Jwk) -> Result<Verified, JwsError> {
    let bytes = base64url::decode(part).ok_or(JwsError::Form)?;
    let text = std::str::from_utf8(&bytes).map_err(|_| JwsError::Form)?;
    let mut tape = Tape::default();
    let doc = tape.read(text).map_err(|_| JwsError::Form)?;
    let root = doc.root();
    if root.kind() != Kind::Object || has_doubled_key(&root) {
        return Err(JwsError::Form);
    }
    let word = |name: &str| match root.member(name) {
        None => Ok(None),
        Some(member) => member.text().map(Cow::into_owned).map(Some).ok_or(JwsError::Form),
    };
    let algorithm = word("alg")?.ok_or(JwsError::Form)?;
    let wanted = match key {
        Jwk::Ed25519(_) => "EdDSA",
        Jwk::P256(_) => "ES256",
    };
    if algorithm != wanted {
        return Err(JwsError::Algorithm(algorithm));
    }
    if root.member("crit").is_some() {
        return Err(JwsError::Critical);
    }
    let jwk = root.member("jwk").map(|value| Jwk::read(&value)).transpose().map_err(JwsError::Key)?;
    let points_to_keys = ["jku", "x5u", "x5c"].into_iter().any(|name| root.member(name).is_some());
    Ok(Verified { typ: word("typ")?, kid: word("kid")?, jwk, points_to_keys, payload: Vec::new() })
}

/// RFC 7515 §4: header names must be unique.
fn has_doubled_key(object: &crate::json::Value<'_>) -> bool {
    let mut keys: Vec<_> = object.members().filter_map(|(key, _)| key.text()).collect();
    keys.sort_unstable();
    keys.windows(2).any(|pair| pair[0] == pair[1])
}
