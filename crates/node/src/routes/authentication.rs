//! Authenticates the peer that sends a request by its access token, its DPoP proof, and its card.

use std::sync::Arc;

use asp::trust::RateLimited;
use asp::{AgentCard, AgentUri};
use seal::UnixMillis;
use wire::http::{HttpResponse, RequestHead, StatusCode};
use wire::unix_now;

use super::NodeService;
use super::responses::{error_response, problem};
use super::route::Route;
use crate::NodeError;
use crate::dpop::{ProofError, access_token};

impl NodeService {
    /// Authenticates a peer by its proof. Returns `None` if its card must be fetched first.
    pub(super) fn authenticate_peer(
        &self,
        head: &RequestHead,
    ) -> Result<Option<Arc<AgentCard>>, HttpResponse> {
        let node = &self.0;
        let Some(token) = token_of(head) else {
            return Err(self.challenge("a DPoP proof is required", "invalid_token"));
        };
        let Some(card) = node.peers().card_by_token(token) else {
            let agent = head.header("asp-agent-id").and_then(|agent| AgentUri::parse(agent).ok());
            let may_fetch = agent.is_some_and(|agent| {
                let peers = node.peers();
                !peers.is_revoked(&agent) && (node.config.trusts_on_first_use || peers.card(&agent).is_some())
            });
            return if may_fetch {
                Ok(None)
            } else {
                Err(problem(StatusCode::Forbidden, "unauthorized", "the card of this agent is not pinned"))
            };
        };
        Ok(Some(card))
    }

    /// Checks the proof of a request, counts the request against the sender's limit, and uses the proof up.
    pub(super) fn accept_proof(&self, head: &RequestHead, card: &AgentCard) -> Result<(), HttpResponse> {
        self.check_proof(head, card, |now| {
            let is_invitation = matches!(Route::of(&head.path), Some(Route::PeerSessions));
            let admitted = self.0.peers().admit(card.agent_id(), is_invitation, now);
            admitted.map_err(|limited| self.rate_limited(limited))
        })
    }

    /// Counts the size of a message against its sender's limit.
    pub(super) fn admit_bytes(&self, card: &AgentCard, bytes: usize) -> Result<(), HttpResponse> {
        let admitted = self.0.peers().admit_bytes(card.agent_id(), bytes, unix_now());
        admitted.map_err(|limited| self.rate_limited(limited))
    }

    fn rate_limited(&self, limited: RateLimited) -> HttpResponse {
        self.0.counters.rate_limited.add(1);
        let seconds = limited.retry_after_ms.div_ceil(1000);
        problem(StatusCode::TooManyRequests, "capacity_unavailable", &limited.to_string())
            .header("Retry-After", &seconds.to_string())
    }

    /// Checks that the sender of a request holds the key of a card, and uses the proof up.
    pub(super) fn check_holder(&self, head: &RequestHead, card: &AgentCard) -> Result<(), HttpResponse> {
        if token_of(head) != Some(&access_token(card.dpop_key())) {
            return Err(self.challenge("the token was not issued for the card's key", "invalid_token"));
        }
        self.check_proof(head, card, |_| Ok(()))
    }

    /// Checks the proof of a request. It is used up only if `admit` permits the request.
    fn check_proof(
        &self,
        head: &RequestHead,
        card: &AgentCard,
        admit: impl FnOnce(UnixMillis) -> Result<(), HttpResponse>,
    ) -> Result<(), HttpResponse> {
        let proof = head
            .header("dpop")
            .ok_or_else(|| self.challenge("a DPoP proof is required", "invalid_dpop_proof"))?;
        let (node, now, url) = (&self.0, unix_now(), self.request_url(head));
        let refuse = |error: ProofError| match error {
            ProofError::UseNonce => self.challenge(&error.to_string(), "use_dpop_nonce"),
            ProofError::Invalid(_) => self.challenge(&error.to_string(), "invalid_dpop_proof"),
            ProofError::Full => {
                problem(StatusCode::TooManyRequests, "capacity_unavailable", &error.to_string())
                    .header("Retry-After", "5")
            }
        };
        let method = head.method.as_str();
        // The card was found by this token, or the token was compared with the card's key.
        let token = token_of(head).unwrap_or_default();
        let jti = node.verifier.check(proof, card.dpop_key(), token, method, &url, now).map_err(refuse)?;
        admit(now)?;
        node.verifier.use_up(&jti, now).map_err(refuse)
    }

    /// Returns the address of a request, as its proof must state it.
    pub(super) fn request_url(&self, head: &RequestHead) -> String {
        let scheme = if self.0.config.clients_use_tls { "https" } else { "http" };
        format!("{scheme}://{}{}", head.header("host").unwrap_or_default(), head.path)
    }

    fn challenge(&self, reason: &str, error: &str) -> HttpResponse {
        problem(StatusCode::Unauthorized, "unauthorized", reason)
            .header("WWW-Authenticate", &format!("DPoP error=\"{error}\", algs=\"ES256\""))
            .header("DPoP-Nonce", &self.0.verifier.nonce(unix_now()))
    }

    /// Fetches the card of a peer that is new or has rotated its keys, checks its proof, and pins the card.
    pub(super) async fn meet_peer(&self, head: &RequestHead) -> Result<Arc<AgentCard>, HttpResponse> {
        let unknown =
            || problem(StatusCode::Forbidden, "unauthorized", "the card of this agent is not pinned");
        let agent =
            head.header("asp-agent-id").and_then(|agent| AgentUri::parse(agent).ok()).ok_or_else(unknown)?;
        let refuse = |error: NodeError| match error {
            NodeError::UnknownPeer(_) | NodeError::UnusableCard(..) => {
                problem(StatusCode::Forbidden, "unauthorized", &error.to_string())
            }
            // The sender may try again.
            other => error_response(&other),
        };
        let busy = |_| error_response(&NodeError::LimitReached("too many cards are being fetched"));
        let _fetch = self.0.card_fetches.try_acquire().map_err(busy)?;
        let card = self.0.fetch_peer_card(&agent).await.map_err(refuse)?;
        if token_of(head) != Some(&access_token(card.dpop_key())) {
            return Err(self.challenge("the token was not issued for the card's key", "invalid_token"));
        }
        // Only the holder of its key can make this node pin a card.
        self.accept_proof(head, &card)?;
        self.0.pin(card).await.map_err(refuse)
    }
}

/// Returns the DPoP access token of a request.
fn token_of(head: &RequestHead) -> Option<&str> {
    let (scheme, token) = head.header("authorization")?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("dpop").then(|| token.trim())
}
