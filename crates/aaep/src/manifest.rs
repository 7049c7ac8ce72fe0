//! Signed manifests (§5.10.3, §10.4): a producer's manifest as a JWS, made and checked.
//!
//! The payload is the manifest itself, byte for byte as it was written (C-F5). The algorithm follows from the key that
//! the checker brings; what the header says of keys of its own counts for nothing.
//!
//! ```
//! use aaep::manifest::{self, Trusted};
//! use aaep::message::{Manifest, Message};
//! use seal::es256::SigningKey;
//!
//! let key = SigningKey::generate(&mut seal::SystemRandom);
//! let bank = Manifest::new("bank", vec!["1.0.0".to_owned()], vec![1, 2, 3], vec!["sse".to_owned()]);
//! let signed = manifest::sign(&Message::Manifest(bank.clone()).to_json(), &key).unwrap();
//!
//! let trusted = Trusted::key(seal::Jwk::P256(key.verifying_key().clone()));
//! assert_eq!(manifest::verify(&signed, &trusted).unwrap(), bank);
//! ```

mod offered;

pub use offered::{Misfit, compare};
use seal::jws::{self, Header, JwsError, Signer};
use seal::{Jwk, JwkError, es256};
use thiserror::Error;

use crate::check::{Checked, Validator};
use crate::json::{Kind, Tape};
use crate::message::{Manifest, Message};
use crate::rule::{Face, Finding, Findings};

/// No signed manifest is longer, in bytes: it stands inside a message (§3.7).
pub const LONGEST: usize = 64 * 1024;

/// Why a manifest was not signed, or a signed one is not believed.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum ManifestError {
    /// What it says breaks rules, or is no manifest.
    #[error("{}", unlawful(.0))]
    Unlawful(Vec<Finding>),
    /// Longer than [`LONGEST`].
    #[error("is longer than {} bytes", LONGEST)]
    TooLong,
    /// The payload is no text.
    #[error("has a payload that is not UTF-8")]
    NotText,
    /// It is JSON and no JWS: somebody has left out the signature.
    #[error("is not signed: it is JSON, not a compact JWS")]
    Unsigned,
    /// The JWS cannot be made, or does not verify.
    #[error(transparent)]
    Jws(#[from] JwsError),
    /// The header brings a key or certificates of its own, which nobody here trusts.
    #[error("brings a key of its own in its header (jwk, jku, x5c or x5u), which is not trusted")]
    BringsKey,
    /// The header names a key (`kid`) that is not among those trusted.
    #[error("names the key {0:?}, which is not among those trusted")]
    UnknownKey(String),
}

fn unlawful(findings: &[Finding]) -> String {
    findings.first().map_or_else(
        || "is no manifest".to_owned(),
        |first| format!("is no lawful manifest: {} {}", first.rule.id(), first.message()),
    )
}

/// Reads a manifest and checks it: as we emit it (strict), or as it is received.
pub fn read(text: &str, face: Face) -> Result<Manifest, ManifestError> {
    let mut findings = Findings::new(face);
    let mut tape = Tape::default();
    let manifest = match tape.read(text) {
        Err(why) => {
            Validator::refuse(&why, &mut findings);
            None
        }
        Ok(doc) => match Validator::new().check(&doc, &mut findings) {
            Checked::Message(message) => match *message {
                Message::Manifest(manifest) => Some(manifest),
                _ => None,
            },
            _ => None,
        },
    };
    match manifest {
        Some(manifest) if !findings.has_error() => Ok(manifest),
        _ => Err(ManifestError::Unlawful(findings.take())),
    }
}

/// Signs a manifest as it is written, with ES256 (§10.4.1). One that is not lawful is not signed.
pub fn sign(text: &str, key: &es256::SigningKey) -> Result<String, ManifestError> {
    read(text, Face::Strict)?;
    let kid = Jwk::P256(key.verifying_key().clone()).thumbprint();
    let header = Header { typ: None, kid: Some(&kid), with_key: false };
    let signed = jws::sign(Signer::P256(key), &header, text.as_bytes())?;
    if signed.len() > LONGEST { Err(ManifestError::TooLong) } else { Ok(signed) }
}

/// Whom a checker believes: public keys, each perhaps with a name.
#[derive(Clone, Debug)]
pub struct Trusted(Vec<(Option<String>, Jwk)>);

/// Why a text holds no keys to trust.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum NoKeys {
    /// Neither a JWK nor a set of them.
    #[error("must be a public key as a JWK, or a set of them ({{\"keys\":[…]}})")]
    Form,
    /// A key of it cannot be used.
    #[error("has a key that {0}")]
    Key(#[source] JwkError),
    /// None, or more than 64.
    #[error("must hold 1 to 64 keys")]
    Count,
}

impl Trusted {
    /// One key, whatever it is called.
    pub fn key(key: Jwk) -> Self {
        Self(vec![(None, key)])
    }

    /// Reads a JWK or a JWK set (RFC 7517). A key with a `kid` counts only for what names it.
    pub fn read(text: &str) -> Result<Self, NoKeys> {
        let mut tape = Tape::default();
        let doc = tape.read(text).map_err(|_| NoKeys::Form)?;
        let root = doc.root();
        if root.kind() != Kind::Object {
            return Err(NoKeys::Form);
        }
        let values: Vec<_> = match root.member("keys") {
            Some(keys) if keys.kind() == Kind::Array => keys.items().collect(),
            Some(_) => return Err(NoKeys::Form),
            None => vec![root],
        };
        if values.is_empty() || values.len() > 64 {
            return Err(NoKeys::Count);
        }
        let named = |value: &crate::json::Value<'_>| {
            let kid = value.member("kid").and_then(|kid| kid.text()).map(std::borrow::Cow::into_owned);
            Jwk::read(value).map(|key| (kid, key)).map_err(NoKeys::Key)
        };
        values.iter().map(named).collect::<Result<_, _>>().map(Self)
    }
}

/// Checks a signed manifest (§10.4.2): a key that is trusted, its signature, and that the payload is a lawful manifest.
/// Whether its `agent_id` and its claims are those of an offer, [`compare`] says.
pub fn verify(token: &str, trusted: &Trusted) -> Result<Manifest, ManifestError> {
    if token.len() > LONGEST {
        return Err(ManifestError::TooLong);
    }
    if token.trim_start().starts_with('{') {
        return Err(ManifestError::Unsigned);
    }
    let mut refusal = ManifestError::Jws(JwsError::Signature);
    for (name, key) in &trusted.0 {
        let verified = match jws::verify(token, key) {
            Ok(verified) => verified,
            Err(why) => {
                refusal = ManifestError::Jws(why);
                continue;
            }
        };
        let other = verified.jwk.as_ref().is_some_and(|brought| brought != key);
        if other || verified.points_to_keys {
            return Err(ManifestError::BringsKey);
        }
        if let (Some(name), Some(kid)) = (name, &verified.kid)
            && name != kid
            && *kid != key.thumbprint()
        {
            refusal = ManifestError::UnknownKey(kid.clone());
            continue;
        }
        let text = std::str::from_utf8(&verified.payload).map_err(|_| ManifestError::NotText)?;
        return read(text, Face::Receive);
    }
    Err(refusal)
}
