//! The explanation of a score.

use seal::UnixMillis;

use super::component::TrustComponent;
use super::event::{TrustEvent, TrustEventName};
use super::history::PeerHistory;
use super::level::TrustLevel;
use super::parameters::TrustParameters;
use crate::id::AgentUri;
use crate::message::TrustScore;

/// The score of a peer, its components, and the events that they come from.
#[derive(Clone, Debug, PartialEq)]
pub struct TrustReport {
    /// The peer.
    pub peer: AgentUri,
    /// The time for which the score is computed.
    pub at: UnixMillis,
    /// The score.
    pub score: TrustScore,
    /// The level.
    pub level: TrustLevel,
    /// When the peer was last active. Its growth decays while it is inactive.
    pub last_active_at: Option<UnixMillis>,
    /// The components, in the order of [`TrustComponent::ALL`].
    pub components: [ComponentReport; TrustComponent::ALL.len()],
    /// The endorsements of the peer, those of the most trusted endorsers first.
    pub endorsements: Vec<EndorsementReport>,
}

/// One component of a score. Its value is base + growth - penalty, at least 0 and at most 100.
#[derive(Clone, Debug, PartialEq)]
pub struct ComponentReport {
    /// The component.
    pub component: TrustComponent,
    /// Its weight in the score.
    pub weight: f64,
    /// The value without any events.
    pub base: f64,
    /// The points gained by good events.
    pub growth: f64,
    /// The points lost by bad events.
    pub penalty: f64,
    /// The value, from 0 to 100.
    pub value: f64,
    /// How often each event that changes this component happened. Events that never happened are left out.
    pub events: Vec<EventSummary>,
    /// The recent events that changed this component, the latest last.
    pub recent_events: Vec<TrustEvent>,
}

impl ComponentReport {
    /// Returns the points that the component adds to the score.
    pub fn contribution(&self) -> f64 {
        self.weight * self.value
    }
}

/// How often an event happened, since the beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventSummary {
    /// The event.
    pub name: TrustEventName,
    /// How often it happened.
    pub count: u64,
    /// When it first happened.
    pub first_at: UnixMillis,
    /// When it last happened.
    pub last_at: UnixMillis,
}

/// An endorsement of the peer.
#[derive(Clone, Debug, PartialEq)]
pub struct EndorsementReport {
    /// The agent that endorses the peer.
    pub endorser: AgentUri,
    /// This side's score of the endorser, without the endorser's own endorsements.
    pub endorser_score: TrustScore,
    /// Whether both agents belong to the same organization.
    pub is_same_organization: bool,
    /// When the endorsement was last received.
    pub at: UnixMillis,
    /// The weight of the endorsement, from 0 to 1. It is 0 if the endorser's score is too low now.
    pub weight: f64,
}

pub(super) fn summarize_events(
    component: TrustComponent,
    history: &PeerHistory,
    parameters: &TrustParameters,
) -> Vec<EventSummary> {
    let summary = |name| {
        let count = history.count(name);
        EventSummary { name, count: count.count, first_at: count.first_at, last_at: count.last_at }
    };
    let names = TrustEventName::ALL.into_iter().filter(|name| changes(*name, component, parameters));
    names.map(summary).filter(|summary| summary.count > 0).collect()
}

pub(super) fn recent_events(
    component: TrustComponent,
    history: &PeerHistory,
    parameters: &TrustParameters,
) -> Vec<TrustEvent> {
    let is_relevant = |event: &&TrustEvent| changes(event.kind.name(), component, parameters);
    history.recent().filter(is_relevant).cloned().collect()
}

/// Returns whether an event changes a component.
fn changes(name: TrustEventName, component: TrustComponent, parameters: &TrustParameters) -> bool {
    let by_rule = match component {
        TrustComponent::IdentityVerification => matches!(
            name,
            TrustEventName::CardPinned | TrustEventName::CardTrustedOnFirstUse | TrustEventName::CardRevoked
        ),
        TrustComponent::CommitmentFulfillment => {
            matches!(name, TrustEventName::CommitmentBroken | TrustEventName::CommitmentLate)
        }
        TrustComponent::PeerEndorsements => name == TrustEventName::EndorsementReceived,
        _ => false,
    };
    by_rule || parameters.effects.iter().any(|row| row.event == name && row.component == component)
}
