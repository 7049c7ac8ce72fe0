//! An independent implementation of signing, based on decisions D13 to D16 and not on the crate's code. It adds a proof, a hash
//! and a signature to any envelope, correctly or, on request, incorrectly.

use seal::jws::{self, JwsHeader, JwsSigner};
use seal::{AgentKeys, Digest, Timestamp, dpop, es256};

use super::editable_json::EditableJson;

/// Values that replace the correct ones. Fields that are `None` get the correct value.
#[derive(Clone, Debug, Default)]
pub(crate) struct SigningOverrides {
    pub(crate) jti: Option<String>,
    pub(crate) htm: Option<String>,
    pub(crate) htu: Option<String>,
    pub(crate) iat: Option<i64>,
    pub(crate) mh: Option<Digest>,
    pub(crate) omits_mh: bool,
    pub(crate) dpop_key: Option<es256::SigningKey>,
    /// A complete replacement of the proof.
    pub(crate) proof: Option<String>,
    /// `integrity.hash`, as text.
    pub(crate) hash: Option<String>,
    /// `integrity.signature`, as text.
    pub(crate) signature: Option<String>,
}

/// A message with a proof, a hash and a signature.
#[derive(Clone, Debug)]
pub(crate) struct SignedTestMessage {
    pub(crate) text: String,
    /// The correct value of `integrity.hash`.
    pub(crate) hash: Digest,
    pub(crate) jti: String,
}

pub(crate) fn sign_envelope(envelope: &EditableJson, keys: &AgentKeys) -> SignedTestMessage {
    sign_with(envelope, keys, &SigningOverrides::default())
}

pub(crate) fn sign_with(
    envelope: &EditableJson,
    keys: &AgentKeys,
    overrides: &SigningOverrides,
) -> SignedTestMessage {
    let unsigned = envelope.clone().without_path("integrity/hash").without_path("integrity/signature");
    // D16: `mh` covers everything except the proof, the hash and the signature.
    let mh = digest(&unsigned.clone().without_path("sender/dpopProof"));
    let claims = dpop::Claims {
        jti: overrides.jti.clone().unwrap_or_else(|| format!("jti-{mh}")),
        htm: overrides.htm.clone().unwrap_or_else(|| envelope.string("performative")),
        htu: overrides.htu.clone().unwrap_or_else(|| format!("asp:{}", envelope.string("sessionId"))),
        iat: overrides.iat.unwrap_or_else(|| sent_at_seconds(envelope)),
        mh: (!overrides.omits_mh).then_some(overrides.mh.unwrap_or(mh)),
    };
    let key = overrides.dpop_key.as_ref().unwrap_or(&keys.dpop);
    let proof = overrides.proof.clone().unwrap_or_else(|| prove(key, &claims));
    let mut signed = unsigned;
    if matches!(signed.get("sender"), Some(EditableJson::Object(_)))
        && signed.get("sender/dpopProof").is_some()
    {
        signed.set("sender/dpopProof", EditableJson::text(&proof));
    }
    // D13: the hash covers everything except itself and the signature.
    let hash = digest(&signed);
    let written_hash = overrides.hash.clone().unwrap_or_else(|| hash.to_string());
    // D14: the signature is over the text of the hash.
    let signature =
        overrides.signature.clone().unwrap_or_else(|| keys.signing.sign(written_hash.as_bytes()).to_string());
    if matches!(signed.get("integrity"), Some(EditableJson::Object(_))) {
        signed.set("integrity/hash", EditableJson::text(&written_hash));
        signed.set("integrity/signature", EditableJson::text(&signature));
    }
    SignedTestMessage { text: signed.write(), hash, jti: claims.jti }
}

/// Creates the proof of D16: a JWS of the type `dpop+jwt` with the public key in the header.
fn prove(key: &es256::SigningKey, claims: &dpop::Claims) -> String {
    let mut parts = vec![
        format!("\"htm\":\"{}\"", claims.htm),
        format!("\"htu\":\"{}\"", claims.htu),
        format!("\"iat\":{}", claims.iat),
        format!("\"jti\":\"{}\"", claims.jti),
    ];
    parts.extend(claims.mh.map(|mh| format!("\"mh\":\"{mh}\"")));
    let header = JwsHeader { typ: Some("dpop+jwt"), kid: None, include_jwk: true };
    jws::sign(JwsSigner::P256(key), &header, format!("{{{}}}", parts.join(",")).as_bytes()).unwrap()
}

/// Returns the hash of the canonical form, or of the text if there is no canonical form.
pub(crate) fn digest(value: &EditableJson) -> Digest {
    let text = value.write();
    let mut tape = seal::json::Tape::default();
    let doc = tape.read(&text).unwrap();
    Digest::of(seal::canonicalize(&doc.root()).unwrap_or_else(|_| text.clone()).as_bytes())
}

fn sent_at_seconds(envelope: &EditableJson) -> i64 {
    let timestamp = Timestamp::parse_rfc3339(&envelope.string("timestamp"));
    timestamp.map_or(0, |time| time.unix_millis().seconds())
}

trait WithoutPath {
    fn without_path(self, path: &str) -> Self;
}

impl WithoutPath for EditableJson {
    /// Like [`EditableJson::without`], but does nothing if the path does not exist.
    fn without_path(self, path: &str) -> Self {
        if self.get(path).is_some() { self.without(path) } else { self }
    }
}
