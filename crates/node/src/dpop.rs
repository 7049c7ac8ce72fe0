//! Proof of possession for HTTP requests between nodes (RFC 9449).
//!
//! The access token is the RFC 7638 thumbprint of the sender's DPoP key, which names the pinned card. A proof is valid once,
//! for one method and address, and only with a nonce of this process, so proofs of an earlier process need not be remembered.

use std::sync::{Mutex, PoisonError};

use seal::dpop::{self, Claims, HttpClaims, ReplayCache};
use seal::{AgentKeys, Digest, Jwk, Random, SystemRandom, UnixMillis, base64url, es256};
use thiserror::Error;

/// Maximum difference between a proof's time and the clock, in seconds.
const MAX_AGE_SECONDS: u64 = 300;
/// How long a used proof is remembered, in seconds. Longer than a proof can be valid.
const REMEMBERED_SECONDS: i64 = 600;
/// How long a nonce is handed out, in milliseconds. It is valid for twice as long.
const NONCE_LIFETIME_MS: i64 = 300_000;

/// Why a request is not authenticated.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum ProofError {
    /// The client must repeat the request with the nonce.
    #[error("the DPoP proof needs the current nonce")]
    UseNonce,
    /// The proof is invalid.
    #[error("{0}")]
    Invalid(String),
    /// Too many proofs are remembered.
    #[error("too many requests; try again later")]
    Full,
}

/// Verifies the proofs of requests.
#[derive(Debug)]
pub(crate) struct ProofVerifier {
    state: Mutex<VerifierState>,
}

#[derive(Debug)]
struct VerifierState {
    seen: ReplayCache,
    nonce: String,
    previous_nonce: Option<String>,
    nonce_created_at: UnixMillis,
}

impl ProofVerifier {
    /// Creates a verifier that remembers at most `capacity` proofs.
    pub(crate) fn new(capacity: usize, now: UnixMillis) -> Self {
        let state = VerifierState {
            seen: ReplayCache::new(REMEMBERED_SECONDS, capacity),
            nonce: generate_nonce(),
            previous_nonce: None,
            nonce_created_at: now,
        };
        Self { state: Mutex::new(state) }
    }

    /// Returns the nonce that clients must use now.
    pub(crate) fn nonce(&self, now: UnixMillis) -> String {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let age_ms = now.millis_since(state.nonce_created_at);
        if age_ms >= NONCE_LIFETIME_MS {
            let old = std::mem::replace(&mut state.nonce, generate_nonce());
            // After a long pause, the old nonce is too old as well.
            state.previous_nonce = (age_ms < 2 * NONCE_LIFETIME_MS).then_some(old);
            state.nonce_created_at = now;
        }
        state.nonce.clone()
    }

    /// Verifies the proof of a request with the key of the sender's card, and uses it up.
    pub(crate) fn verify(
        &self,
        proof: &str,
        key: &es256::VerifyingKey,
        method: &str,
        url: &str,
        now: UnixMillis,
    ) -> Result<(), ProofError> {
        let jti = self.check(proof, key, method, url, now)?;
        self.use_up(&jti, now)
    }

    /// Verifies the proof of a request, and returns its id. It counts as used only after [`Self::use_up`], so that a sender
    /// that is over its limit does not fill the memory of proofs.
    pub(crate) fn check(
        &self,
        proof: &str,
        key: &es256::VerifyingKey,
        method: &str,
        url: &str,
        now: UnixMillis,
    ) -> Result<String, ProofError> {
        let HttpClaims { claims, nonce, ath } =
            dpop::verify_http(proof, key).map_err(|error| ProofError::Invalid(error.to_string()))?;
        let invalid = |claim: &str| {
            Err(ProofError::Invalid(format!("the DPoP proof's claim {claim} does not fit the request")))
        };
        if claims.htm != method {
            return invalid("htm");
        }
        if claims.htu != url {
            return invalid("htu");
        }
        if claims.iat.abs_diff(now.seconds()) > MAX_AGE_SECONDS {
            return invalid("iat");
        }
        if ath.as_deref() != Some(&*token_hash(&access_token(key))) {
            return invalid("ath");
        }
        self.nonce(now);
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let is_current = nonce.is_some_and(|nonce| {
            nonce == state.nonce || state.previous_nonce.as_ref().is_some_and(|previous| nonce == *previous)
        });
        if !is_current {
            return Err(ProofError::UseNonce);
        }
        if state.seen.contains(&claims.jti) {
            return Err(ProofError::Invalid(dpop::ReplayError::Replayed.to_string()));
        }
        Ok(claims.jti)
    }

    /// Uses up a proof. Fails if it was used before.
    pub(crate) fn use_up(&self, jti: &str, now: UnixMillis) -> Result<(), ProofError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.seen.insert(jti, now.seconds()).map_err(|error| match error {
            dpop::ReplayError::Replayed => ProofError::Invalid(error.to_string()),
            dpop::ReplayError::Full => ProofError::Full,
        })
    }
}

/// Returns the access token of the holder of a key.
pub(crate) fn access_token(key: &es256::VerifyingKey) -> String {
    Jwk::P256(key.clone()).thumbprint()
}

fn token_hash(token: &str) -> String {
    base64url::encode(Digest::of(token.as_bytes()).as_bytes())
}

/// Creates the proof for a request, and returns it with the value of the `Authorization` header.
pub(crate) fn create(
    keys: &AgentKeys,
    method: &str,
    url: &str,
    nonce: Option<String>,
    now: UnixMillis,
) -> Option<(String, String)> {
    let token = access_token(keys.dpop.verifying_key());
    let claims = HttpClaims {
        claims: Claims {
            jti: generate_nonce(),
            htm: method.to_owned(),
            htu: url.to_owned(),
            iat: now.seconds(),
            mh: None,
        },
        nonce,
        ath: Some(token_hash(&token)),
    };
    let proof = dpop::create_http_proof(&keys.dpop, &claims).ok()?;
    Some((proof, format!("DPoP {token}")))
}

fn generate_nonce() -> String {
    let mut bytes = [0; 16];
    SystemRandom.fill(&mut bytes);
    base64url::encode(&bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const URL: &str = "https://b.example/v1/asp/sessions";
    const NOW: UnixMillis = UnixMillis::new(1_790_000_000_000);

    fn verify(verifier: &ProofVerifier, keys: &AgentKeys, nonce: Option<String>) -> Result<(), ProofError> {
        let (proof, _) = create(keys, "POST", URL, nonce, NOW).unwrap_or_default();
        verifier.verify(&proof, keys.dpop.verifying_key(), "POST", URL, NOW)
    }

    #[test]
    fn a_proof_needs_the_nonce_and_counts_once() {
        let (verifier, keys) = (ProofVerifier::new(10, NOW), AgentKeys::generate(&mut SystemRandom));
        assert_eq!(verify(&verifier, &keys, None), Err(ProofError::UseNonce));
        let (proof, _) = create(&keys, "POST", URL, Some(verifier.nonce(NOW)), NOW).unwrap_or_default();
        let key = keys.dpop.verifying_key();
        assert_eq!(verifier.verify(&proof, key, "POST", URL, NOW), Ok(()));
        assert!(matches!(verifier.verify(&proof, key, "POST", URL, NOW), Err(ProofError::Invalid(_))));
    }

    #[test]
    fn a_proof_is_bound_to_method_address_time_and_key() {
        let (verifier, keys) = (ProofVerifier::new(10, NOW), AgentKeys::generate(&mut SystemRandom));
        let other = AgentKeys::generate(&mut SystemRandom);
        let (proof, _) = create(&keys, "POST", URL, Some(verifier.nonce(NOW)), NOW).unwrap_or_default();
        let key = keys.dpop.verifying_key();
        let later = NOW.saturating_add(301_000);
        for result in [
            verifier.verify(&proof, key, "GET", URL, NOW),
            verifier.verify(&proof, key, "POST", "https://b.example/v1/asp/sessions/x", NOW),
            verifier.verify(&proof, key, "POST", URL, later),
            verifier.verify(&proof, other.dpop.verifying_key(), "POST", URL, NOW),
        ] {
            assert!(matches!(result, Err(ProofError::Invalid(_))), "{result:?}");
        }
        assert_eq!(verifier.verify(&proof, key, "POST", URL, NOW), Ok(()));
    }

    #[test]
    fn an_old_nonce_is_valid_until_the_next_but_one() {
        let (verifier, keys) = (ProofVerifier::new(10, NOW), AgentKeys::generate(&mut SystemRandom));
        let old = verifier.nonce(NOW);
        let later = NOW.saturating_add(NONCE_LIFETIME_MS);
        let key = keys.dpop.verifying_key();
        let proof_at = |at| create(&keys, "POST", URL, Some(old.clone()), at).unwrap_or_default().0;
        assert_ne!(verifier.nonce(later), old);
        assert_eq!(verifier.verify(&proof_at(later), key, "POST", URL, later), Ok(()));
        let much_later = later.saturating_add(NONCE_LIFETIME_MS);
        assert_eq!(
            verifier.verify(&proof_at(much_later), key, "POST", URL, much_later),
            Err(ProofError::UseNonce)
        );
    }

    #[test]
    fn a_full_memory_refuses_new_proofs() {
        let (verifier, keys) = (ProofVerifier::new(1, NOW), AgentKeys::generate(&mut SystemRandom));
        assert_eq!(verify(&verifier, &keys, Some(verifier.nonce(NOW))), Ok(()));
        assert_eq!(verify(&verifier, &keys, Some(verifier.nonce(NOW))), Err(ProofError::Full));
    }
}
