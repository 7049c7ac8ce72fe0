//! A second way to sign a message, written from D13 to D16 and not from the crate: takes any envelope and gives it a proof,
//! a hash and a signature, rightly or, where it is told to, wrongly.

use seal::jws::{self, Header, Signer};
use seal::{Digest, Keys, Timestamp, dpop, es256};

use super::json::Json;

/// What is made otherwise than it should be. Whatever is `None` is made rightly.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lie {
    pub(crate) jti: Option<String>,
    pub(crate) htm: Option<String>,
    pub(crate) htu: Option<String>,
    pub(crate) iat: Option<i64>,
    pub(crate) mh: Option<Digest>,
    pub(crate) without_mh: bool,
    pub(crate) dpop_key: Option<es256::SigningKey>,
    /// A whole other proof.
    pub(crate) proof: Option<String>,
    /// `integrity.hash`, as text.
    pub(crate) hash: Option<String>,
    /// `integrity.signature`, as text.
    pub(crate) signature: Option<String>,
}

/// A message that was forged.
#[derive(Clone, Debug)]
pub(crate) struct Forged {
    pub(crate) text: String,
    /// What `integrity.hash` should be.
    pub(crate) hash: Digest,
    pub(crate) jti: String,
}

pub(crate) fn forge(envelope: &Json, keys: &Keys) -> Forged {
    forge_with(envelope, keys, &Lie::default())
}

pub(crate) fn forge_with(envelope: &Json, keys: &Keys, lie: &Lie) -> Forged {
    let bare = envelope.clone().without_path("integrity/hash").without_path("integrity/signature");
    // D16: mh covers all but the proof itself, the hash and the signature.
    let mh = digest(&bare.clone().without_path("sender/dpopProof"));
    let claims = dpop::Claims {
        jti: lie.jti.clone().unwrap_or_else(|| format!("jti-{mh}")),
        htm: lie.htm.clone().unwrap_or_else(|| envelope.string("performative")),
        htu: lie.htu.clone().unwrap_or_else(|| format!("asp:{}", envelope.string("sessionId"))),
        iat: lie.iat.unwrap_or_else(|| made(envelope)),
        mh: (!lie.without_mh).then_some(lie.mh.unwrap_or(mh)),
    };
    let key = lie.dpop_key.as_ref().unwrap_or(&keys.dpop);
    let proof = lie.proof.clone().unwrap_or_else(|| prove(key, &claims));
    let mut sealed = bare;
    if matches!(sealed.get("sender"), Some(Json::Object(_))) && sealed.get("sender/dpopProof").is_some() {
        sealed.set("sender/dpopProof", Json::text(&proof));
    }
    // D13: the hash covers all but itself and the signature.
    let hash = digest(&sealed);
    let written = lie.hash.clone().unwrap_or_else(|| hash.to_string());
    // D14: the signature is over the text of the hash.
    let signature =
        lie.signature.clone().unwrap_or_else(|| keys.signing.sign(written.as_bytes()).to_string());
    if matches!(sealed.get("integrity"), Some(Json::Object(_))) {
        sealed.set("integrity/hash", Json::text(&written));
        sealed.set("integrity/signature", Json::text(&signature));
    }
    Forged { text: sealed.write(), hash, jti: claims.jti }
}

/// The proof of D16, written out: a JWS of the type `dpop+jwt` with its own key in the header.
fn prove(key: &es256::SigningKey, claims: &dpop::Claims) -> String {
    let mut parts = vec![
        format!("\"htm\":\"{}\"", claims.htm),
        format!("\"htu\":\"{}\"", claims.htu),
        format!("\"iat\":{}", claims.iat),
        format!("\"jti\":\"{}\"", claims.jti),
    ];
    parts.extend(claims.mh.map(|mh| format!("\"mh\":\"{mh}\"")));
    let header = Header { typ: Some("dpop+jwt"), kid: None, with_key: true };
    jws::sign(Signer::P256(key), &header, format!("{{{}}}", parts.join(",")).as_bytes()).unwrap()
}

/// The hash of the canonical form; of what has none, of its text.
pub(crate) fn digest(value: &Json) -> Digest {
    let text = value.write();
    let mut tape = seal::json::Tape::default();
    let doc = tape.read(&text).unwrap();
    Digest::of(seal::canonical(&doc.root()).unwrap_or_else(|_| text.clone()).as_bytes())
}

fn made(envelope: &Json) -> i64 {
    let read = Timestamp::parse_rfc3339(&envelope.string("timestamp"));
    read.map_or(0, |time| time.unix_millis().seconds())
}

trait WithoutPath {
    fn without_path(self, path: &str) -> Self;
}

impl WithoutPath for Json {
    /// As [`Json::without`], also where there is no such path.
    fn without_path(self, path: &str) -> Self {
        if self.get(path).is_some() { self.without(path) } else { self }
    }
}
