//! The effects of a session's transitions and refusals on trust and money.

use std::sync::Arc;

use asp::message::AuthenticatedMessage;
use asp::session::ReceiverChecks;
use asp::session::{AspSession, Effect, Transition};
use asp::trust::TrustEventKind;
use asp::{AgentCard, ReceiveOutcome, Refusal, RejectCode};
use seal::UnixMillis;
use wire::unix_now;

use crate::NodeError;
use crate::journal_writer::Batch;
use crate::node::Node;
use crate::peers::trust_record;
use crate::records::{NodeRecord, SessionInfo, SessionRecord};
use crate::session::{SessionHandle, SessionState};
use crate::trust_events;

impl Node {
    /// Returns the facts that follow from transitions that can no longer be rolled back. They are stored together with the
    /// message that caused them, so each fact is stored once.
    pub(crate) fn effects_of(
        &self,
        info: &SessionInfo,
        state: &SessionState,
        transitions: &[Transition],
        now: UnixMillis,
    ) -> Vec<NodeRecord> {
        let effects: Vec<&Effect> = transitions.iter().flat_map(|transition| &transition.effects).collect();
        let entries = self.peers().escrow.entries_of(info, &effects, now);
        let is_settled = |message| state.participant.is_settled(message);
        let events = trust_events::of_effects(info, &effects, &entries, is_settled, now);
        let ledger = entries.iter().map(|entry| NodeRecord::Ledger { entry: entry.to_json() });
        let trust = events.into_iter().map(|kind| event_in_session(info, kind, now));
        ledger.chain(trust).collect()
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
        self.effects_of(info, state, transitions, now)
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
        let has_required_consent = self.has_required_consent(&handle.info, state, message);
        ReceiverChecks { is_funded: self.is_funded(handle, state, body), has_required_consent, ..checks }
    }

    /// Returns false if the policy requires the consent of the peer's person for this message, and the message does not prove it with
    /// the key of that person's hub.
    pub(crate) fn has_required_consent(
        &self,
        info: &SessionInfo,
        state: &SessionState,
        message: &AuthenticatedMessage,
    ) -> bool {
        let policy = self.policy();
        let envelope = &message.envelope;
        if !policy.peer_consent.is_required || asp::consent::tool(&envelope.body).is_none() {
            return true;
        }
        let keys = policy.peer_consent.hub_keys.get(info.peer.agent_id()).map_or(&[][..], Vec::as_slice);
        let commitment = state.participant.session().and_then(AspSession::commitment);
        let verified = asp::consent::verify_message(envelope, commitment.map(asp::Commitment::commit), keys);
        if let Err(error) = &verified {
            tracing::debug!(target: "sayso::log", kind = "asp.consent_invalid", session = %info.id, %error);
        }
        verified.is_ok()
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
        let kind = TrustEventKind::AuthenticationFailed;
        if !self.peers().take_violation(peer.agent_id(), kind.name(), unix_now(), &self.config.limits) {
            return;
        }
        let record = trust_record(peer.agent_id(), None, kind, unix_now());
        if let Err(error) = self.append_node_records(vec![record]).await {
            tracing::error!(target: "sayso::log", kind = "asp.failed", %error);
        }
    }

    /// Returns the trust event about a message that was refused with a REJECT. It is stored together with the refusal, so a repeated
    /// message is not counted again.
    pub(crate) fn violation_in(
        &self,
        info: &SessionInfo,
        state: &SessionState,
        message: &AuthenticatedMessage,
        outcome: &ReceiveOutcome,
        now: UnixMillis,
    ) -> Option<NodeRecord> {
        let ReceiveOutcome::Refused { refusal, .. } = outcome else { return None };
        let kind = trust_events::of_refusal(info, refusal, message)?;
        self.limited_violation(info, state, kind, now)
    }

    /// Returns the record of a violation, unless the session has ended, for example by a timer of which the peer does not know yet, or
    /// the limit of recorded violations is reached.
    pub(crate) fn limited_violation(
        &self,
        info: &SessionInfo,
        state: &SessionState,
        kind: TrustEventKind,
        now: UnixMillis,
    ) -> Option<NodeRecord> {
        let is_counted = !state.state().is_terminal()
            && self.peers().take_violation(info.peer.agent_id(), kind.name(), now, &self.config.limits);
        is_counted.then(|| event_in_session(info, kind, now))
    }

    /// Records that the peer does not have the money for the escrow that it promised, if our agent could not accept its commitment
    /// for that reason. Each commitment counts once.
    pub(crate) async fn record_unfunded_escrow(
        &self,
        handle: &SessionHandle,
        state: &mut SessionState,
        refusal: &Refusal,
    ) -> Result<(), NodeError> {
        if refusal.code != RejectCode::BudgetExceeded {
            return Ok(());
        }
        let unfunded = self.peers().escrow.unfunded_commitment(&handle.info, state.participant.session());
        let Some(commitment) = unfunded.filter(|id| state.unfunded_commitment.as_ref() != Some(id)) else {
            return Ok(());
        };
        let kind = TrustEventKind::EscrowUnfunded(commitment.clone());
        let record = SessionRecord::EscrowUnfunded { commitment: commitment.clone() };
        let node_records = vec![event_in_session(&handle.info, kind, unix_now())];
        let batch = Batch { node_records, ..Batch::of_session(handle.info.id, vec![record]) };
        self.commit(state, batch).await?;
        state.unfunded_commitment = Some(commitment);
        Ok(())
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

fn event_in_session(info: &SessionInfo, kind: TrustEventKind, now: UnixMillis) -> NodeRecord {
    trust_record(info.peer.agent_id(), Some(info.id), kind, now)
}
