//! Signed manifests (§5.10.3, §10.4): signs a producer's manifest as a JWS and verifies it.
//!
//! The payload is the manifest itself, byte for byte (C-F5). The verifier's key determines the algorithm; keys in the
//! header are never trusted.
//!
//! ```
//! use aaep::manifest::{self, TrustedKeys};
//! use aaep::message::{Manifest, Message};
//! use seal::es256::SigningKey;
//!
//! let key = SigningKey::generate(&mut seal::SystemRandom);
//! let bank = Manifest::new("bank", vec!["1.0.0".to_owned()], vec![1, 2, 3], vec!["sse".to_owned()]);
//! let signed = manifest::sign(&Message::Manifest(bank.clone()).to_json(), &key).unwrap();
//!
//! let trusted = TrustedKeys::from_key(seal::Jwk::P256(key.verifying_key().clone()));
//! assert_eq!(manifest::verify(&signed, &trusted).unwrap(), bank);
//! ```

mod extension;
mod offer_check;

pub use extension::{ManifestExtension, ManifestExtensionError, MultiAgentPattern};
pub use offer_check::{OfferMismatch, check_offer};
use seal::jws::{self, JwsError, JwsHeader, JwsSigner};
use seal::{Jwk, JwkError, base64url, es256};
use thiserror::Error;

use crate::check::{CheckedDocument, Validator};
use crate::json::{JsonKind, Tape};
use crate::message::{Manifest, Message, MessageType};
use crate::rule::{Finding, Findings, ValidationMode};

/// The maximum length of a signed manifest in bytes. The length is limited because a message
/// contains the manifest (§3.7).
pub const MAX_SIGNED_BYTES: usize = 64 * 1024;

/// Why a manifest cannot be signed or verified. The messages continue a sentence whose subject is
/// the manifest.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum ManifestError {
    /// The manifest breaks rules, or the document is not a manifest.
    #[error("{}", describe_violations(.0))]
    RuleViolations(Vec<Finding>),
    /// Longer than [`MAX_SIGNED_BYTES`].
    #[error("is longer than {} bytes", MAX_SIGNED_BYTES)]
    TooLong,
    /// The payload is not UTF-8.
    #[error("has a payload that is not UTF-8")]
    NotUtf8,
    /// The document is JSON instead of a JWS, so it has no signature.
    #[error("is not signed: it is JSON, not a compact JWS")]
    Unsigned,
    /// The JWS cannot be created, or its signature is invalid.
    #[error(transparent)]
    Jws(#[from] JwsError),
    /// The header contains a key or certificates, which are not trusted.
    #[error("contains a key in its header (jwk, jku, x5c or x5u), which is not trusted")]
    EmbeddedKey,
    /// The part that sayso defines is invalid.
    #[error(transparent)]
    Extension(#[from] ManifestExtensionError),
    /// The header names a key (`kid`) that is not trusted.
    #[error("names the key {0:?}, which is not trusted")]
    UnknownKey(String),
}

fn describe_violations(findings: &[Finding]) -> String {
    findings.first().map_or_else(
        || format!("is not a manifest: its type must be {}", MessageType::Manifest.as_str()),
        |first| format!("is not a valid manifest: {} {}", first.rule.id(), first.message()),
    )
}

/// Parses and checks a manifest.
pub fn parse(text: &str, mode: ValidationMode) -> Result<Manifest, ManifestError> {
    let mut findings = Findings::new(mode);
    let mut tape = Tape::default();
    let manifest = match tape.read(text) {
        Err(error) => {
            Validator::report_syntax_error(&error, &mut findings);
            None
        }
        Ok(doc) => match Validator::new().check(&doc, &mut findings) {
            CheckedDocument::Message(message) => match *message {
                Message::Manifest(manifest) => Some(manifest),
                _ => None,
            },
            _ => None,
        },
    };
    match manifest {
        Some(manifest) if !findings.has_error() => Ok(manifest),
        _ => Err(ManifestError::RuleViolations(findings.take())),
    }
}

/// A manifest as its author publishes it: as JSON, or signed as a compact JWS.
#[derive(Clone, Debug, PartialEq)]
pub struct ManifestDocument {
    /// The content.
    pub manifest: Manifest,
    /// What the content says in `extensions.sayso`.
    pub extension: ManifestExtension,
    /// The manifest as JSON, byte for byte as its author wrote it.
    pub json: String,
    /// The signed form, if the author signed it. The signature has not been verified.
    pub signed: Option<String>,
}

impl ManifestDocument {
    /// Reads a document strictly. If it is signed, the signature is not verified.
    pub fn parse(document: &str) -> Result<Self, ManifestError> {
        let document = document.trim();
        if document.len() > MAX_SIGNED_BYTES {
            return Err(ManifestError::TooLong);
        }
        let signed = (!document.starts_with('{')).then(|| document.to_owned());
        let json = match &signed {
            None => document.to_owned(),
            Some(token) => {
                let [_, payload, _] = token.split('.').collect::<Vec<_>>()[..] else {
                    return Err(JwsError::Malformed.into());
                };
                let payload = base64url::decode(payload).ok_or(JwsError::Malformed)?;
                String::from_utf8(payload).map_err(|_| ManifestError::NotUtf8)?
            }
        };
        if !has_manifest_type(&json) {
            return Err(ManifestError::RuleViolations(Vec::new()));
        }
        let manifest = parse(&json, ValidationMode::Strict)?;
        let extension = ManifestExtension::of(&manifest)?;
        Ok(Self { manifest, extension, json, signed })
    }
}

/// Whether a document has the `type` of a manifest. True for text that is not JSON, because it may be a manifest with a
/// syntax error.
fn has_manifest_type(json: &str) -> bool {
    let mut tape = Tape::default();
    let Ok(doc) = tape.read(json) else { return true };
    doc.root().member("type").is_some_and(|kind| kind.is_text(MessageType::Manifest.as_str()))
}

/// Signs the text of a manifest unchanged, with ES256 (§10.4.1). An invalid manifest is not signed.
pub fn sign(text: &str, key: &es256::SigningKey) -> Result<String, ManifestError> {
    parse(text, ValidationMode::Strict)?;
    let kid = Jwk::P256(key.verifying_key().clone()).thumbprint();
    let header = JwsHeader { typ: None, kid: Some(&kid), include_jwk: false };
    let signed = jws::sign(JwsSigner::P256(key), &header, text.as_bytes())?;
    if signed.len() > MAX_SIGNED_BYTES { Err(ManifestError::TooLong) } else { Ok(signed) }
}

/// The public keys that a verifier trusts, each with an optional key id.
#[derive(Clone, Debug)]
pub struct TrustedKeys(Vec<(Option<String>, Jwk)>);

/// Why a text contains no usable trusted keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TrustedKeysError {
    /// Neither a JWK nor a JWK set.
    #[error("must be a public key as a JWK, or a set of them ({{\"keys\":[…]}})")]
    Malformed,
    /// One of the keys cannot be used.
    #[error("has a key that {0}")]
    Key(#[source] JwkError),
    /// No key, or more than 64.
    #[error("must contain 1 to 64 keys")]
    Count,
}

impl TrustedKeys {
    /// Trusts one key, regardless of its key id.
    pub fn from_key(key: Jwk) -> Self {
        Self(vec![(None, key)])
    }

    /// Parses a JWK or a JWK set (RFC 7517). A key with a `kid` does not verify a signature that
    /// names a different `kid`, unless that is the key's thumbprint.
    pub fn read(text: &str) -> Result<Self, TrustedKeysError> {
        let mut tape = Tape::default();
        let doc = tape.read(text).map_err(|_| TrustedKeysError::Malformed)?;
        let root = doc.root();
        if root.kind() != JsonKind::Object {
            return Err(TrustedKeysError::Malformed);
        }
        let values: Vec<_> = match root.member("keys") {
            Some(keys) if keys.kind() == JsonKind::Array => keys.items().collect(),
            Some(_) => return Err(TrustedKeysError::Malformed),
            None => vec![root],
        };
        if values.is_empty() || values.len() > 64 {
            return Err(TrustedKeysError::Count);
        }
        let read_key = |value: &crate::json::JsonValue<'_>| {
            let kid = value.member("kid").and_then(|kid| kid.text()).map(std::borrow::Cow::into_owned);
            Jwk::read(value).map(|key| (kid, key)).map_err(TrustedKeysError::Key)
        };
        values.iter().map(read_key).collect::<Result<_, _>>().map(Self)
    }
}

/// Verifies a signed manifest (§10.4.2). It must be signed with a trusted key, and its
/// payload must be a valid manifest. Use [`check_offer`] to compare its `agent_id` and its claims
/// with an offer.
pub fn verify(token: &str, trusted: &TrustedKeys) -> Result<Manifest, ManifestError> {
    if token.len() > MAX_SIGNED_BYTES {
        return Err(ManifestError::TooLong);
    }
    if token.trim_start().starts_with('{') {
        return Err(ManifestError::Unsigned);
    }
    let mut last_error = ManifestError::Jws(JwsError::InvalidSignature);
    for (trusted_kid, key) in &trusted.0 {
        let verified = match jws::verify(token, key) {
            Ok(verified) => verified,
            Err(error) => {
                last_error = ManifestError::Jws(error);
                continue;
            }
        };
        let is_different_key = verified.jwk.as_ref().is_some_and(|embedded| embedded != key);
        if is_different_key || verified.references_external_keys {
            return Err(ManifestError::EmbeddedKey);
        }
        if let (Some(trusted_kid), Some(kid)) = (trusted_kid, &verified.kid)
            && trusted_kid != kid
            && *kid != key.thumbprint()
        {
            last_error = ManifestError::UnknownKey(kid.clone());
            continue;
        }
        let text = std::str::from_utf8(&verified.payload).map_err(|_| ManifestError::NotUtf8)?;
        return parse(text, ValidationMode::Receive);
    }
    Err(last_error)
}
