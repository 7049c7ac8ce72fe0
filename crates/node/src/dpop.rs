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
        token: &str,
        method: &str,
        url: &str,
        now: UnixMillis,
    ) -> Result<(), ProofError> {
        let jti = self.check(proof, key, token, method, url, now)?;
        self.use_up(&jti, now)
    }

    /// Verifies the proof of a request, and returns its id. `token` is the access token of the key. The proof counts as used only after [`Self::use_up`], so that a sender
    /// that is over its limit does not fill the memory of proofs.
    pub(crate) fn check(
        &self,
        proof: &str,
        key: &es256::VerifyingKey,
        token: &str,
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
        if ath.as_deref() != Some(&*token_hash(token)) {
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

/// Creates the proofs of requests. The access token and its hash are computed once.
#[derive(Debug)]
pub(crate) struct ProofCreator {
    keys: AgentKeys,
    token: String,
    token_hash: String,
}

impl ProofCreator {
    pub(crate) fn new(keys: AgentKeys) -> Self {
        let token = access_token(keys.dpop.verifying_key());
        Self { token_hash: token_hash(&token), token, keys }
    }

    /// Returns the access token.
    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    /// Creates the proof for a request.
    pub(crate) fn create(
        &self,
        method: &str,
        url: &str,
        nonce: Option<String>,
        now: UnixMillis,
    ) -> Option<String> {
        let claims = HttpClaims {
            claims: Claims {
                jti: generate_nonce(),
                htm: method.to_owned(),
                htu: url.to_owned(),
                iat: now.seconds(),
                mh: None,
            },
            nonce,
            ath: Some(self.token_hash.clone()),
        };
        dpop::create_http_proof(&self.keys.dpop, &claims).ok()
    }
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

    fn create(keys: &AgentKeys, nonce: Option<String>, at: UnixMillis) -> String {
        ProofCreator::new(keys.clone()).create("POST", URL, nonce, at).unwrap_or_default()
    }

    fn verify_for(
        verifier: &ProofVerifier,
        proof: &str,
        key: &es256::VerifyingKey,
        method: &str,
        url: &str,
        now: UnixMillis,
    ) -> Result<(), ProofError> {
        verifier.verify(proof, key, &access_token(key), method, url, now)
    }

    fn verify(verifier: &ProofVerifier, keys: &AgentKeys, nonce: Option<String>) -> Result<(), ProofError> {
        let proof = create(keys, nonce, NOW);
        verify_for(verifier, &proof, keys.dpop.verifying_key(), "POST", URL, NOW)
    }

    #[test]
    fn a_proof_needs_the_nonce_and_counts_once() {
        let (verifier, keys) = (ProofVerifier::new(10, NOW), AgentKeys::generate(&mut SystemRandom));
        assert_eq!(verify(&verifier, &keys, None), Err(ProofError::UseNonce));
        let proof = create(&keys, Some(verifier.nonce(NOW)), NOW);
        let key = keys.dpop.verifying_key();
        assert_eq!(verify_for(&verifier, &proof, key, "POST", URL, NOW), Ok(()));
        assert!(matches!(verify_for(&verifier, &proof, key, "POST", URL, NOW), Err(ProofError::Invalid(_))));
    }

    #[test]
    fn a_proof_is_bound_to_method_address_time_and_key() {
        let (verifier, keys) = (ProofVerifier::new(10, NOW), AgentKeys::generate(&mut SystemRandom));
        let other = AgentKeys::generate(&mut SystemRandom);
        let proof = create(&keys, Some(verifier.nonce(NOW)), NOW);
        let key = keys.dpop.verifying_key();
        let later = NOW.saturating_add(301_000);
        for result in [
            verify_for(&verifier, &proof, key, "GET", URL, NOW),
            verify_for(&verifier, &proof, key, "POST", "https://b.example/v1/asp/sessions/x", NOW),
            verify_for(&verifier, &proof, key, "POST", URL, later),
            verify_for(&verifier, &proof, other.dpop.verifying_key(), "POST", URL, NOW),
        ] {
            assert!(matches!(result, Err(ProofError::Invalid(_))), "{result:?}");
        }
        assert_eq!(verify_for(&verifier, &proof, key, "POST", URL, NOW), Ok(()));
    }

    #[test]
    fn an_old_nonce_is_valid_until_the_next_but_one() {
        let (verifier, keys) = (ProofVerifier::new(10, NOW), AgentKeys::generate(&mut SystemRandom));
        let old = verifier.nonce(NOW);
        let later = NOW.saturating_add(NONCE_LIFETIME_MS);
        let key = keys.dpop.verifying_key();
        let proof_at = |at| create(&keys, Some(old.clone()), at);
        assert_ne!(verifier.nonce(later), old);
        assert_eq!(verify_for(&verifier, &proof_at(later), key, "POST", URL, later), Ok(()));
        let much_later = later.saturating_add(NONCE_LIFETIME_MS);
        assert_eq!(
            verify_for(&verifier, &proof_at(much_later), key, "POST", URL, much_later),
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
