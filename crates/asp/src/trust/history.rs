//! The history of one peer, aggregated from its events.

use seal::UnixMillis;

use super::component::TrustComponent;
use super::endorsements::Endorsements;
use super::event::{TrustEvent, TrustEventKind, TrustEventName};
use super::evidence::TrustEvidence;
use super::parameters::TrustParameters;

/// The history of one peer. Its size is bounded.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct PeerHistory {
    evidence: TrustEvidence,
    identity: Identity,
    pub(super) endorsements: Endorsements,
    counts: [EventCount; TrustEventName::ALL.len()],
    /// The most recent events, ordered by time and then by their JSON text.
    recent: Vec<TrustEvent>,
}

/// How often an event happened, and when it first and last did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct EventCount {
    pub(super) count: u64,
    pub(super) first_at: UnixMillis,
    pub(super) last_at: UnixMillis,
}

/// When the peer's card was last pinned, trusted on first use, and revoked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Identity {
    pinned: Option<UnixMillis>,
    trusted_on_first_use: Option<UnixMillis>,
    revoked: Option<UnixMillis>,
}

/// The parts of a component's value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ComponentParts {
    pub(super) component: TrustComponent,
    pub(super) weight: f64,
    pub(super) base: f64,
    pub(super) growth: f64,
    pub(super) penalty: f64,
}

impl ComponentParts {
    pub(super) fn value(self) -> f64 {
        (self.base + self.growth - self.penalty).clamp(0.0, 100.0)
    }
}

impl PeerHistory {
    pub(super) fn apply(&mut self, event: &TrustEvent, parameters: &TrustParameters) {
        self.evidence.apply(&event.kind, event.at, parameters);
        self.identity.apply(&event.kind, event.at);
        if let TrustEventKind::EndorsementReceived { endorser, endorser_score, is_same_organization } =
            &event.kind
            && *endorser != event.peer
        {
            self.endorsements.add(endorser, *endorser_score, *is_same_organization, event.at, parameters);
        }
        self.counts[event.kind.name().index()].add(event.at);
        self.remember(event, parameters.max_recent_events);
    }

    /// Returns the parts of the components at a point in time. `endorsement_growth` is the growth of the peer's endorsements,
    /// from 0 to 1, which depends on other peers.
    pub(super) fn components(
        &self,
        endorsement_growth: f64,
        now: UnixMillis,
        parameters: &TrustParameters,
    ) -> [ComponentParts; TrustComponent::ALL.len()] {
        let mut evidence = self.evidence.clone();
        evidence.advance(now, parameters);
        TrustComponent::ALL.map(|component| {
            let base = parameters.bases.get(component);
            let growth = match component {
                TrustComponent::IdentityVerification => self.identity.value(parameters) - base,
                TrustComponent::PeerEndorsements => (100.0 - base) * endorsement_growth,
                _ => (100.0 - base) * evidence.growth(component, parameters),
            };
            let weight = parameters.weights.get(component);
            ComponentParts { component, weight, base, growth, penalty: evidence.penalty(component) }
        })
    }

    pub(super) fn count(&self, name: TrustEventName) -> EventCount {
        self.counts[name.index()]
    }

    pub(super) fn recent(&self) -> impl Iterator<Item = &TrustEvent> {
        self.recent.iter()
    }

    /// Returns whether the card was revoked and not pinned again.
    pub(super) fn is_revoked(&self) -> bool {
        self.identity.is_revoked()
    }

    pub(super) fn last_active_at(&self) -> Option<UnixMillis> {
        self.evidence.last_active_at()
    }

    /// Keeps the event for reports. The order in which events of the same time arrive makes no difference.
    fn remember(&mut self, event: &TrustEvent, max_events: usize) {
        let precedes = |known: &TrustEvent| {
            known.at < event.at || (known.at == event.at && known.to_json() <= event.to_json())
        };
        let position = self.recent.partition_point(precedes);
        self.recent.insert(position, event.clone());
        if self.recent.len() > max_events {
            self.recent.remove(0);
        }
    }
}

impl EventCount {
    fn add(&mut self, at: UnixMillis) {
        self.first_at = if self.count == 0 { at } else { self.first_at.min(at) };
        self.last_at = if self.count == 0 { at } else { self.last_at.max(at) };
        self.count = self.count.saturating_add(1);
    }
}

impl Identity {
    fn apply(&mut self, kind: &TrustEventKind, at: UnixMillis) {
        let latest = match kind {
            TrustEventKind::CardPinned => &mut self.pinned,
            TrustEventKind::CardTrustedOnFirstUse => &mut self.trusted_on_first_use,
            TrustEventKind::CardRevoked => &mut self.revoked,
            _ => return,
        };
        *latest = (*latest).max(Some(at));
    }

    /// A revocation cancels every pinning that is not later than it.
    fn is_valid(&self, pinned: Option<UnixMillis>) -> bool {
        pinned.is_some() && pinned > self.revoked
    }

    fn is_revoked(&self) -> bool {
        self.revoked.is_some() && !self.is_valid(self.pinned) && !self.is_valid(self.trusted_on_first_use)
    }

    /// Returns the value of the identity.
    fn value(&self, parameters: &TrustParameters) -> f64 {
        if self.is_valid(self.pinned) {
            parameters.pinned_identity
        } else if self.is_valid(self.trusted_on_first_use) {
            parameters.first_use_identity
        } else {
            parameters.bases.identity_verification
        }
    }
}
