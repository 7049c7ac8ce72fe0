//! The effects of a session's transitions on trust and money.

use std::sync::Arc;

use asp::message::AuthenticatedMessage;
use asp::session::ReceiverChecks;
use asp::session::{Effect, SessionEnding, SessionOutcome, Transition};
use asp::state_machine::Role;
use asp::trust::TrustEventKind;
use asp::{AgentCard, CommitmentStatus};
use seal::UnixMillis;
use wire::unix_now;

use crate::NodeError;
use crate::node::Node;
use crate::peers::trust_record;
use crate::records::{NodeRecord, SessionInfo};
use crate::session::{SessionHandle, SessionState};

impl Node {
    /// Returns the facts that follow from transitions that can no longer be rolled back. They are stored together with the
    /// message that caused them, so each fact is stored once.
    pub(crate) fn effects_of(
        &self,
        info: &SessionInfo,
        transitions: &[Transition],
        now: UnixMillis,
    ) -> Vec<NodeRecord> {
        let effects: Vec<&Effect> = transitions.iter().flat_map(|transition| &transition.effects).collect();
        let mut records = self.peers().escrow.records_of(info, &effects, now);
        for effect in effects {
            if let Effect::SessionEnded(outcome) = effect {
                records.extend(trust_records(info, outcome, now));
            }
        }
        records
    }

    /// Like [`Self::effects_of`], but returns nothing once the session's end has been recorded.
    pub(crate) fn effects_until_end(
        &self,
        info: &SessionInfo,
        state: &mut SessionState,
        transitions: &[Transition],
        now: UnixMillis,
    ) -> Vec<NodeRecord> {
        if state.is_end_recorded {
            return Vec::new();
        }
        let is_end = |effect: &Effect| matches!(effect, Effect::SessionEnded(_));
        state.is_end_recorded = transitions.iter().any(|transition| transition.effects.iter().any(is_end));
        self.effects_of(info, transitions, now)
    }

    /// What this node knows about a message from the peer.
    pub(crate) fn checks_of_message(
        &self,
        handle: &SessionHandle,
        state: &SessionState,
        message: &AuthenticatedMessage,
    ) -> ReceiverChecks {
        let body = &message.envelope.body;
        let checks = self.checks_of_peer(&handle.info.peer, Some(body));
        ReceiverChecks { is_funded: self.is_funded(handle, state, body), ..checks }
    }

    /// Returns true if the message accepts no commitment with escrow, or its escrow is covered. In the latter case, the money is
    /// reserved for this session.
    pub(crate) fn is_funded(
        &self,
        handle: &SessionHandle,
        state: &SessionState,
        body: &asp::message::Body,
    ) -> bool {
        let policy = self.policy();
        let mut peers = self.peers();
        let (_, level) = peers.trust_of(handle.info.peer.agent_id(), unix_now());
        let session = state.participant.session();
        let is_funded = peers.escrow.is_funded(&handle.info, session, body, &policy, level);
        if is_funded && matches!(body, asp::message::Body::Accept(_)) {
            peers.escrow.reserve(&handle.info, session);
        }
        is_funded
    }

    /// Records that a message on a peer's own connection was not authentic.
    pub(crate) async fn record_violation(&self, peer: &AgentCard) {
        if !self.peers().take_violation(peer.agent_id(), unix_now(), &self.config.limits) {
            return;
        }
        let record = trust_record(peer.agent_id(), None, TrustEventKind::AuthenticationFailed, unix_now());
        if let Err(error) = self.append_node_records(vec![record]).await {
            tracing::error!(target: "sayso::log", kind = "asp.failed", %error);
        }
    }

    /// Pins a card, durably.
    pub(crate) async fn pin(self: &Arc<Self>, card: AgentCard) -> Result<Arc<AgentCard>, NodeError> {
        let agent = card.agent_id().clone();
        if self.peers().is_revoked(&agent) {
            return Err(NodeError::UnknownPeer(agent.to_string()));
        }
        let pinned = self.peers().card(&agent);
        if let Some(pinned) = pinned.as_ref().filter(|pinned| pinned.signing_key() == card.signing_key()) {
            return Ok(pinned.clone());
        }
        let is_successor = pinned.is_some();
        if !is_successor && !self.peers().has_room(&self.config.limits) {
            return Err(NodeError::LimitReached("too many cards are pinned"));
        }
        let kind =
            if is_successor { TrustEventKind::CardRotated } else { TrustEventKind::CardTrustedOnFirstUse };
        let records = vec![
            NodeRecord::CardPinned { card: card.as_str().to_owned() },
            trust_record(&agent, None, kind, unix_now()),
        ];
        self.append_node_records(records).await?;
        // A race with another card of the same agent is decided by the order of the records.
        self.peers()
            .card(&agent)
            .filter(|pinned| pinned.signing_key() == card.signing_key())
            .ok_or_else(|| NodeError::UnknownPeer(agent.to_string()))
    }

    /// Fetches an agent's card from that agent's node. Returns it only if it can be pinned: it is new and new cards are trusted, or
    /// it is the pinned card or its successor.
    pub(crate) async fn fetch_peer_card(&self, agent: &asp::AgentUri) -> Result<AgentCard, NodeError> {
        let url = format!("{}{}", agent.default_endpoint(), AgentCard::WELL_KNOWN_PATH);
        let unusable = |reason: &str| NodeError::UnusableCard(url.clone(), reason.to_owned());
        let fetched = self.client.fetch_card_text(&url).await;
        let text = fetched.map_err(|reason| NodeError::CardUnavailable(url.clone(), reason))?;
        let card = AgentCard::parse(&text).map_err(|error| unusable(&error.to_string()))?;
        if card.agent_id() != agent {
            return Err(unusable("it is the card of another agent"));
        }
        let pinned = self.peers().card(agent);
        match pinned {
            Some(pinned) if pinned.signing_key() == card.signing_key() => Ok((*pinned).clone()),
            Some(pinned) if !card.is_successor_of(&pinned) => Err(unusable(
                "its keys differ from those of the pinned card, and the old key did not sign it",
            )),
            None if !self.config.trusts_on_first_use => Err(NodeError::UnknownPeer(agent.to_string())),
            _ => Ok(card),
        }
    }
}

/// Returns the trust events about the peer that follow from the end of a session.
fn trust_records(info: &SessionInfo, outcome: &SessionOutcome, now: UnixMillis) -> Vec<NodeRecord> {
    let peer_role = info.role.other();
    let mut kinds = Vec::new();
    let agreement =
        outcome.commitment.as_ref().filter(|commitment| commitment.status() != CommitmentStatus::Withdrawn);
    if let Some(commitment) = agreement {
        let id = commitment.commit().commitment_id.clone();
        let peer_obligations = outcome
            .obligations
            .iter()
            .filter(|(obligation, _)| obligation.party == *info.peer.agent_id())
            .map(|(_, result)| *result)
            .max();
        if outcome.broken_by.contains(&peer_role) {
            kinds.push(TrustEventKind::CommitmentBroken(id));
        } else {
            use asp::session::ObligationOutcome;
            match peer_obligations {
                Some(ObligationOutcome::Fulfilled) => kinds.push(TrustEventKind::CommitmentKept(id)),
                Some(ObligationOutcome::Late) => kinds.push(TrustEventKind::CommitmentLate(id)),
                _ => {}
            }
        }
    }
    let is_abandoned = match outcome.ending {
        SessionEnding::Unilateral(role) | SessionEnding::Withdrawn(role) | SessionEnding::Fatal(role) => {
            role == peer_role
        }
        SessionEnding::BrokenChain => {
            kinds.push(TrustEventKind::ChainBroken);
            true
        }
        // Either side may have let a session time out. Only the invited side can let an invitation time out.
        SessionEnding::TimedOut(asp::state_machine::Timer::Invitation) => peer_role == Role::Invited,
        _ => false,
    };
    if is_abandoned {
        kinds.push(TrustEventKind::SessionAbandoned);
    } else if agreement.is_some() && !outcome.broken_by.contains(&peer_role) {
        kinds.push(TrustEventKind::SessionCompleted);
    } else if matches!(outcome.ending, SessionEnding::Closed(_) | SessionEnding::Completed) {
        kinds.push(TrustEventKind::SessionClosed);
    }
    kinds.into_iter().map(|kind| trust_record(info.peer.agent_id(), Some(info.id), kind, now)).collect()
}
