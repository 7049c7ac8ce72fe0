//! DPoP proofs (RFC 9449). A proof is a token that proves possession of a key for one message and can be used once.
//!
//! [`create_proof`] creates a proof, [`verify`] checks one against the sender's known key, and [`ReplayCache`] remembers
//! the `jti` of accepted proofs. The caller provides the current time.

use std::collections::{HashSet, VecDeque};

use thiserror::Error;

use crate::json::{JsonKind, Tape, write_object};
use crate::jws::{self, JwsError};
use crate::{Digest, Jwk, es256};

/// The claims of a proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claims {
    /// `jti`: the proof's unique id.
    pub jti: String,
    /// `htm`: the method.
    pub htm: String,
    /// `htu`: the target.
    pub htu: String,
    /// `iat`: the creation time, in seconds since 1970.
    pub iat: i64,
    /// `mh`: the hash of the message to which the proof belongs (ASP, D16).
    pub mh: Option<Digest>,
}

/// The claims of a proof for one HTTP request (RFC 9449, section 4.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpClaims {
    /// The claims that every proof has.
    pub claims: Claims,
    /// `nonce`: the value that the server gave the client.
    pub nonce: Option<String>,
    /// `ath`: the hash of the access token.
    pub ath: Option<String>,
}

/// Why a proof is rejected.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DpopError {
    /// The token does not verify with the known key.
    #[error("the DPoP proof {0}")]
    InvalidToken(#[source] JwsError),
    /// `typ` is not `dpop+jwt`.
    #[error("the DPoP proof must have the type dpop+jwt")]
    WrongType,
    /// The header has no `jwk`, or the `jwk` differs from the known key.
    #[error("the DPoP proof must contain the sender's own key as jwk")]
    WrongKey,
    /// The payload is not a JSON object.
    #[error("the DPoP proof's payload must be a JSON object")]
    InvalidClaimSet,
    /// A claim is missing or invalid.
    #[error("the DPoP proof's claim {0} is missing or invalid")]
    InvalidClaim(&'static str),
}

/// Creates a proof.
pub fn create_proof(key: &es256::SigningKey, claims: &Claims) -> Result<String, JwsError> {
    sign_claims(key, claims, [])
}

/// Creates a proof for one HTTP request.
pub fn create_http_proof(key: &es256::SigningKey, claims: &HttpClaims) -> Result<String, JwsError> {
    sign_claims(key, &claims.claims, [("nonce", claims.nonce.as_deref()), ("ath", claims.ath.as_deref())])
}

fn sign_claims<const N: usize>(
    key: &es256::SigningKey,
    claims: &Claims,
    additional: [(&str, Option<&str>); N],
) -> Result<String, JwsError> {
    let claims = write_object(|writer| {
        writer.text_members([("htm", &*claims.htm), ("htu", &claims.htu)]);
        writer.key("iat").integer(claims.iat);
        writer.key("jti").text(&claims.jti);
        if let Some(mh) = &claims.mh {
            writer.key("mh").text(&mh.to_string());
        }
        for (name, value) in additional {
            if let Some(value) = value {
                writer.key(name).text(value);
            }
        }
    });
    let header = jws::JwsHeader { typ: Some("dpop+jwt"), kid: None, include_jwk: true };
    jws::sign(jws::JwsSigner::P256(key), &header, claims.as_bytes())
}

/// Verifies a proof with the sender's known key and returns its claims. The caller must compare the claims with the
/// message.
pub fn verify(proof: &str, key: &es256::VerifyingKey) -> Result<Claims, DpopError> {
    verify_http(proof, key).map(|claims| claims.claims)
}

/// Verifies a proof for one HTTP request with the sender's known key and returns its claims. The caller must compare the
/// claims with the request, check the nonce and remember the `jti`.
pub fn verify_http(proof: &str, key: &es256::VerifyingKey) -> Result<HttpClaims, DpopError> {
    let key = Jwk::P256(key.clone());
    let verified = jws::verify(proof, &key).map_err(DpopError::InvalidToken)?;
    if verified.typ.as_deref() != Some("dpop+jwt") {
        return Err(DpopError::WrongType);
    }
    if verified.jwk.as_ref() != Some(&key) {
        return Err(DpopError::WrongKey);
    }
    let text = std::str::from_utf8(&verified.payload).map_err(|_| DpopError::InvalidClaimSet)?;
    let mut tape = Tape::default();
    let doc = tape.read(text).map_err(|_| DpopError::InvalidClaimSet)?;
    let root = doc.root();
    if root.kind() != JsonKind::Object {
        return Err(DpopError::InvalidClaimSet);
    }
    let single_claim = |name: &'static str| {
        let mut found = root.members().filter(|(key, _)| key.is_text(name)).map(|(_, value)| value);
        match (found.next(), found.next()) {
            (Some(value), None) => Ok(value),
            _ => Err(DpopError::InvalidClaim(name)),
        }
    };
    let text_claim = |name: &'static str| {
        let value = single_claim(name)?.text().ok_or(DpopError::InvalidClaim(name))?;
        if value.is_empty() { Err(DpopError::InvalidClaim(name)) } else { Ok(value.into_owned()) }
    };
    let iat = single_claim("iat")?
        .as_number()
        .and_then(|number| number.as_i64())
        .ok_or(DpopError::InvalidClaim("iat"))?;
    let mh = match root.member("mh") {
        None => None,
        Some(_) => Some(Digest::parse(&text_claim("mh")?).ok_or(DpopError::InvalidClaim("mh"))?),
    };
    let claims =
        Claims { jti: text_claim("jti")?, htm: text_claim("htm")?, htu: text_claim("htu")?, iat, mh };
    let optional_claim = |name| root.member(name).map(|_| text_claim(name)).transpose();
    Ok(HttpClaims { nonce: optional_claim("nonce")?, ath: optional_claim("ath")?, claims })
}

/// A cache of the ids of accepted proofs, which detects replays.
///
/// Each id is remembered for at least `window_seconds` after it was accepted, even if the clock goes back. A full cache
/// rejects new ids and does not forget old ones, so its memory is bounded.
#[derive(Clone, Debug)]
pub struct ReplayCache {
    window_seconds: i64,
    capacity: usize,
    /// The latest time that was passed to [`Self::insert`].
    latest_seconds: i64,
    seen: HashSet<[u8; 16]>,
    /// The ids with the times of their insertion, oldest first.
    insertion_order: VecDeque<(i64, [u8; 16])>,
}

/// Why a proof's id was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ReplayError {
    /// The id was used before.
    #[error("the DPoP proof was used before")]
    Replayed,
    /// The cache is full.
    #[error("too many DPoP proofs are remembered; try again later")]
    Full,
}

impl ReplayCache {
    /// Creates a cache that remembers each id for `window_seconds` and holds at most `capacity` ids.
    pub fn new(window_seconds: i64, capacity: usize) -> Self {
        Self {
            window_seconds,
            capacity,
            latest_seconds: i64::MIN,
            seen: HashSet::new(),
            insertion_order: VecDeque::new(),
        }
    }

    /// Returns whether this id is in the cache.
    pub fn contains(&self, jti: &str) -> bool {
        self.seen.contains(&fingerprint(jti))
    }

    /// Inserts an id. `now_seconds` is the time in seconds since 1970. Fails if the id is already in the cache, or if the
    /// cache is full.
    pub fn insert(&mut self, jti: &str, now_seconds: i64) -> Result<(), ReplayError> {
        self.latest_seconds = self.latest_seconds.max(now_seconds);
        while let Some((inserted_at, id)) = self.insertion_order.front().copied()
            && inserted_at.saturating_add(self.window_seconds) < self.latest_seconds
        {
            self.insertion_order.pop_front();
            self.seen.remove(&id);
        }
        let id = fingerprint(jti);
        if self.seen.contains(&id) {
            return Err(ReplayError::Replayed);
        }
        if self.seen.len() >= self.capacity {
            return Err(ReplayError::Full);
        }
        self.seen.insert(id);
        self.insertion_order.push_back((self.latest_seconds, id));
        Ok(())
    }

    /// Returns whether the cache cannot accept another id at this time, in seconds since 1970.
    pub fn is_full(&self, now_seconds: i64) -> bool {
        let latest_seconds = self.latest_seconds.max(now_seconds);
        let expired_count = self.insertion_order.partition_point(|(inserted_at, _)| {
            inserted_at.saturating_add(self.window_seconds) < latest_seconds
        });
        self.insertion_order.len() - expired_count >= self.capacity
    }

    /// Returns the number of cached ids.
    pub fn len(&self) -> usize {
        self.seen.len()
    }

    /// Returns whether the cache is empty.
    pub fn is_empty(&self) -> bool {
        self.seen.is_empty()
    }
}

/// Returns the first half of the id's hash. It is stored instead of the id, because the peer chooses the id's length.
fn fingerprint(jti: &str) -> [u8; 16] {
    let mut half = [0; 16];
    half.copy_from_slice(&Digest::of(jti.as_bytes()).as_bytes()[..16]);
    half
}
