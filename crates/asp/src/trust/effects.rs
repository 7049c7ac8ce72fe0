//! The effects of events on the components, as a table.

use super::component::TrustComponent;
use super::event::TrustEventName;

/// The effect of one kind of event on one component. Good events give credit, bad events give penalties.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EffectRow {
    /// The event.
    pub event: TrustEventName,
    /// The component that it changes.
    pub component: TrustComponent,
    /// The evidence that it adds. The component grows with the logarithm of its evidence.
    pub credit: f64,
    /// The points that it takes from the component. For `dispute_lost`, these are the points of severity 3.
    pub penalty: f64,
}

const fn credit(event: TrustEventName, component: TrustComponent, credit: f64) -> EffectRow {
    EffectRow { event, component, credit, penalty: 0.0 }
}

const fn penalty(event: TrustEventName, component: TrustComponent, penalty: f64) -> EffectRow {
    EffectRow { event, component, credit: 0.0, penalty }
}

use TrustComponent::{
    BehavioralConsistency as BC, CommitmentFulfillment as CF, CommunicationHistory as CH,
    EconomicReliability as ER, IdentityVerification as IV, ResponseQuality as RQ, SecurityPosture as SP,
};
use TrustEventName as Event;

/// The default effects. The cards change [`TrustComponent::IdentityVerification`], and endorsements change
/// [`TrustComponent::PeerEndorsements`], by rules of their own.
pub const DEFAULT_EFFECTS: &[EffectRow] = &[
    credit(Event::SessionCompleted, CH, 1.0),
    credit(Event::SessionCompleted, BC, 1.0),
    credit(Event::SessionCompleted, SP, 1.0),
    credit(Event::SessionClosed, CH, 0.25),
    credit(Event::SessionClosed, BC, 0.25),
    penalty(Event::SessionAbandoned, CH, 5.0),
    penalty(Event::SessionAbandoned, BC, 10.0),
    credit(Event::MessageAnswered, RQ, 1.0),
    penalty(Event::MessageAnsweredLate, RQ, 2.0),
    penalty(Event::ResponseMissed, RQ, 5.0),
    penalty(Event::ResponseMissed, CH, 1.0),
    credit(Event::CommitmentKept, CF, 1.0),
    penalty(Event::CommitmentLate, CF, 4.0),
    penalty(Event::CommitmentBroken, CF, 50.0),
    penalty(Event::CommitmentBroken, CH, 25.0),
    penalty(Event::CommitmentBroken, BC, 25.0),
    penalty(Event::CommitmentBroken, ER, 25.0),
    penalty(Event::DisputeLost, CF, 60.0),
    penalty(Event::DisputeLost, CH, 60.0),
    penalty(Event::DisputeLost, BC, 60.0),
    penalty(Event::DisputeLost, ER, 60.0),
    penalty(Event::ProtocolViolation, BC, 3.0),
    penalty(Event::ProtocolViolation, SP, 3.0),
    penalty(Event::ChainBroken, BC, 25.0),
    penalty(Event::ChainBroken, SP, 25.0),
    penalty(Event::AuthenticationFailed, SP, 10.0),
    credit(Event::CardRotated, SP, 5.0),
    penalty(Event::CardMismatched, IV, 50.0),
    penalty(Event::CardMismatched, SP, 25.0),
    penalty(Event::CardRevoked, SP, 50.0),
    credit(Event::EscrowFunded, ER, 1.0),
    penalty(Event::EscrowUnfunded, ER, 10.0),
    penalty(Event::EscrowForfeited, ER, 50.0),
];
