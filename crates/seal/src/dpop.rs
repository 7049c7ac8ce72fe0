//! DPoP proofs (RFC 9449): a token that shows possession of a key, once, for one act.
//!
//! [`prove`] makes one, [`verify`] reads one against the key that its sender is known by, and [`Replays`] remembers the
//! `jti` of those that were taken. Time is an argument.

use std::collections::{HashSet, VecDeque};

use thiserror::Error;

use crate::json::{Kind, Tape, object};
use crate::jws::{self, JwsError};
use crate::{Digest, Jwk, es256};

/// What a proof says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claims {
    /// `jti`: its own name, never used twice.
    pub jti: String,
    /// `htm`: the method.
    pub htm: String,
    /// `htu`: the target.
    pub htu: String,
    /// `iat`: when it was made, in seconds since 1970.
    pub iat: i64,
    /// `mh`: the hash of the message that it belongs to (ASP, D16).
    pub mh: Option<Digest>,
}

/// Why a proof is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DpopError {
    /// The token does not verify with the known key.
    #[error("the DPoP proof {0}")]
    Token(#[source] JwsError),
    /// `typ` is not `dpop+jwt`.
    #[error("the DPoP proof must have the type dpop+jwt")]
    Type,
    /// The header has no `jwk`, or another than the known key.
    #[error("the DPoP proof must carry the sender's own key as jwk")]
    Key,
    /// A claim is missing, or is not what it should be.
    #[error("the claim {0} of the DPoP proof is missing or not what this message wants")]
    Claim(&'static str),
}

/// Makes a proof.
pub fn prove(key: &es256::SigningKey, claims: &Claims) -> Result<String, JwsError> {
    let claims = object(|writer| {
        writer.texts([("htm", &*claims.htm), ("htu", &claims.htu)]);
        writer.key("iat").integer(claims.iat);
        writer.key("jti").text(&claims.jti);
        if let Some(mh) = &claims.mh {
            writer.key("mh").text(&mh.to_string());
        }
    });
    let header = jws::Header { typ: Some("dpop+jwt"), kid: None, with_key: true };
    jws::sign(jws::Signer::P256(key), &header, claims.as_bytes())
}

/// Verifies a proof with the key that its sender is known by. What the claims must be is the caller's to compare.
pub fn verify(proof: &str, key: &es256::VerifyingKey) -> Result<Claims, DpopError> {
    let key = Jwk::P256(key.clone());
    let verified = jws::verify(proof, &key).map_err(DpopError::Token)?;
    if verified.typ.as_deref() != Some("dpop+jwt") {
        return Err(DpopError::Type);
    }
    if verified.jwk.as_ref() != Some(&key) {
        return Err(DpopError::Key);
    }
    let text = std::str::from_utf8(&verified.payload).map_err(|_| DpopError::Claim("set"))?;
    let mut tape = Tape::default();
    let doc = tape.read(text).map_err(|_| DpopError::Claim("set"))?;
    let root = doc.root();
    if root.kind() != Kind::Object {
        return Err(DpopError::Claim("set"));
    }
    let word = |name: &'static str| {
        let mut found = root.members().filter(|(key, _)| key.is(name)).map(|(_, value)| value);
        match (found.next(), found.next()) {
            (Some(value), None) => Ok(value),
            _ => Err(DpopError::Claim(name)),
        }
    };
    let text = |name: &'static str| {
        let value = word(name)?.text().ok_or(DpopError::Claim(name))?;
        if value.is_empty() { Err(DpopError::Claim(name)) } else { Ok(value.into_owned()) }
    };
    let iat = word("iat")?.number().and_then(|number| number.as_i64()).ok_or(DpopError::Claim("iat"))?;
    let mh = match root.member("mh") {
        None => None,
        Some(_) => Some(Digest::parse(&text("mh")?).ok_or(DpopError::Claim("mh"))?),
    };
    Ok(Claims { jti: text("jti")?, htm: text("htm")?, htu: text("htu")?, iat, mh })
}

/// The proofs that were taken, each remembered for a while.
///
/// Time may stand still or go back a little; what matters is that a name is kept for at least the window after it was
/// taken. Memory is bounded: when `limit` names are remembered, a new one is refused rather than an old one forgotten.
#[derive(Clone, Debug)]
pub struct Replays {
    window: i64,
    limit: usize,
    now: i64,
    seen: HashSet<[u8; 16]>,
    order: VecDeque<(i64, [u8; 16])>,
}

/// Why a proof's name was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ReplayError {
    /// It was taken before.
    #[error("the DPoP proof was used before")]
    Replayed,
    /// Too many are remembered.
    #[error("too many DPoP proofs are remembered; try again later")]
    Full,
}

impl Replays {
    /// Remembers each name for `window` seconds, and at most `limit` names.
    pub fn new(window: i64, limit: usize) -> Self {
        Self { window, limit, now: i64::MIN, seen: HashSet::new(), order: VecDeque::new() }
    }

    /// Whether this name is remembered.
    pub fn has(&self, jti: &str) -> bool {
        self.seen.contains(&short(jti))
    }

    /// Takes a name, once.
    pub fn take(&mut self, jti: &str, now: i64) -> Result<(), ReplayError> {
        self.now = self.now.max(now);
        while let Some((taken, name)) = self.order.front().copied()
            && taken.saturating_add(self.window) < self.now
        {
            self.order.pop_front();
            self.seen.remove(&name);
        }
        let name = short(jti);
        if self.seen.contains(&name) {
            return Err(ReplayError::Replayed);
        }
        if self.seen.len() >= self.limit {
            return Err(ReplayError::Full);
        }
        self.seen.insert(name);
        self.order.push_back((self.now, name));
        Ok(())
    }

    /// Whether there is no room for one more at `now`.
    pub fn is_full(&self, now: i64) -> bool {
        let now = self.now.max(now);
        let forgotten = self.order.partition_point(|(taken, _)| taken.saturating_add(self.window) < now);
        self.order.len() - forgotten >= self.limit
    }

    /// How many names are remembered.
    pub fn len(&self) -> usize {
        self.seen.len()
    }

    /// Whether none is remembered.
    pub fn is_empty(&self) -> bool {
        self.seen.is_empty()
    }
}

/// A stranger chooses the name and its length; half a hash of it is as good and never long.
fn short(jti: &str) -> [u8; 16] {
    let mut half = [0; 16];
    half.copy_from_slice(&Digest::of(jti.as_bytes()).as_bytes()[..16]);
    half
}
