//! Signs the receipts of resolved questions, so that an agent can prove to others how a person answered.
//!
//! Receipts are signed where they leave the hub, on the thread of the connection that receives them, because an ES256
//! signature takes longer than the hub's turn. A cache keeps the latest signatures, so that a receipt is signed once and
//! not once per request.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aaep::consent::Receipt;
use hub::command::{AgentNotice, HubReply, QuestionOutcome};
use rustc_hash::FxHashMap;
use seal::es256::SigningKey;
use seal::jws::{self, JwsHeader, JwsSigner};
use seal::{Digest, Jwk};

use super::AgentMessage;

/// Maximum number of signatures in the cache, of about 500 bytes each. A receipt that is no longer in the cache is signed
/// again.
const MAX_CACHED_SIGNATURES: usize = 1_024;

/// The hub's key, with the latest signatures.
#[derive(Debug)]
pub(super) struct ReceiptSigner {
    key: SigningKey,
    /// The RFC 7638 thumbprint of the key.
    kid: String,
    /// The public key, as a JWK.
    public_key: String,
    cache: Mutex<SignatureCache>,
}

/// A signature; `None` until the receipt is signed. Its lock makes all requests for one receipt wait for one signature.
type SignatureSlot = Arc<Mutex<Option<Arc<str>>>>;

/// Signatures by the digest of the receipt. When the cache is full, the oldest one is removed.
#[derive(Debug, Default)]
struct SignatureCache {
    slots: FxHashMap<Digest, SignatureSlot>,
    order: VecDeque<Digest>,
}

impl ReceiptSigner {
    pub(super) fn new(key: SigningKey) -> Self {
        let public_key = Jwk::P256(key.verifying_key().clone());
        Self { key, kid: public_key.thumbprint(), public_key: public_key.to_json(), cache: Mutex::default() }
    }

    /// Returns the public key as a JWK.
    pub(super) fn public_key(&self) -> &str {
        &self.public_key
    }

    /// Signs the receipt in a reply, if it has one.
    pub(super) fn sign_reply(&self, reply: &mut HubReply) {
        if let HubReply::QuestionResolved(outcome) = reply {
            self.sign_outcome(outcome);
        }
    }

    /// Signs the receipt in a message to an agent, if it has one.
    pub(super) fn sign_message(&self, message: &mut AgentMessage) {
        match message {
            AgentMessage::Reply(_, reply) => self.sign_reply(reply),
            AgentMessage::Notice(AgentNotice::QuestionResolved { outcome, .. }) => self.sign_outcome(outcome),
            AgentMessage::Notice(_) => {}
        }
    }

    fn sign_outcome(&self, outcome: &mut QuestionOutcome) {
        outcome.receipt_signature = outcome.receipt.as_ref().and_then(|receipt| self.signature(receipt));
    }

    /// Returns the signature of a receipt; `None` if the system provides no randomness for signing.
    fn signature(&self, receipt: &Receipt) -> Option<Arc<str>> {
        let slot = lock(&self.cache).slot(receipt.digest());
        let mut signature = lock(&slot);
        if signature.is_none() {
            let header = JwsHeader { kid: Some(&self.kid), ..JwsHeader::default() };
            let signed =
                jws::sign_detached(JwsSigner::P256(&self.key), &header, receipt.to_json().as_bytes());
            *signature = signed.ok().map(Arc::from);
        }
        signature.clone()
    }
}

impl SignatureCache {
    /// Returns the slot of a receipt.
    fn slot(&mut self, digest: Digest) -> SignatureSlot {
        if let Some(slot) = self.slots.get(&digest) {
            return slot.clone();
        }
        if self.order.len() >= MAX_CACHED_SIGNATURES
            && let Some(oldest) = self.order.pop_front()
        {
            self.slots.remove(&oldest);
        }
        self.order.push_back(digest);
        self.slots.entry(digest).or_default().clone()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receipt(number: usize) -> Receipt {
        let text = format!(
            r#"{{"agent_id":"bank","asked_at":"2026-11-15T12:00:00.000Z","by":"timeout","deadline":"2026-11-15T12:01:00.000Z","decision":"reject","event_id":"evt_{number:016x}","reply_token":"rpl_{number:032x}","resolved_at":"2026-11-15T12:01:00.000Z","session_id":"sess_1","type":"sayso:receipt"}}"#
        );
        Receipt::parse(&text).unwrap()
    }

    fn signer() -> ReceiptSigner {
        ReceiptSigner::new(SigningKey::from_secret(&[7; 32]).unwrap())
    }

    #[test]
    fn a_receipt_is_signed_once_even_by_many_threads() {
        let signer = signer();
        let receipt = receipt(1);
        let signatures = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| signer.signature(&receipt))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap().unwrap()).collect::<Vec<_>>()
        });
        assert!(signatures.windows(2).all(|pair| Arc::ptr_eq(&pair[0], &pair[1])), "{signatures:?}");
        let key = Jwk::P256(signer.key.verifying_key().clone());
        let verified = jws::verify_detached(&signatures[0], receipt.to_json().as_bytes(), &key).unwrap();
        assert_eq!(verified.kid, Some(key.thumbprint()));
    }

    #[test]
    fn the_cache_is_bounded_and_removes_the_oldest_signature() {
        let signer = signer();
        for number in 0..=MAX_CACHED_SIGNATURES {
            drop(lock(&signer.cache).slot(receipt(number).digest()));
        }
        let cache = lock(&signer.cache);
        assert_eq!((cache.slots.len(), cache.order.len()), (MAX_CACHED_SIGNATURES, MAX_CACHED_SIGNATURES));
        assert!(!cache.slots.contains_key(&receipt(0).digest()));
        assert!(cache.slots.contains_key(&receipt(MAX_CACHED_SIGNATURES).digest()));
    }
}
