//! The eight components of a trust score.

seal::string_enum! {
    /// A component of a trust score. The string form is the component's key in an agent card.
    TrustComponent {
        /// How well the peer's identity is known.
        IdentityVerification "identityVerification",
        /// How many sessions took place.
        CommunicationHistory "communicationHistory",
        /// How many commitments were kept, compared with those that were broken.
        CommitmentFulfillment "commitmentFulfillment",
        /// Whether the peer follows the protocol and ends sessions in an orderly way.
        BehavioralConsistency "behavioralConsistency",
        /// Whether the peer answers in time.
        ResponseQuality "responseQuality",
        /// Whether the peer's messages are authentic and its keys are well kept.
        SecurityPosture "securityPosture",
        /// Whether the peer pays what it promised to pay.
        EconomicReliability "economicReliability",
        /// What other trusted agents say about the peer.
        PeerEndorsements "peerEndorsements",
    }
}

/// One number for each component.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ComponentValues {
    /// The value of [`TrustComponent::IdentityVerification`].
    pub identity_verification: f64,
    /// The value of [`TrustComponent::CommunicationHistory`].
    pub communication_history: f64,
    /// The value of [`TrustComponent::CommitmentFulfillment`].
    pub commitment_fulfillment: f64,
    /// The value of [`TrustComponent::BehavioralConsistency`].
    pub behavioral_consistency: f64,
    /// The value of [`TrustComponent::ResponseQuality`].
    pub response_quality: f64,
    /// The value of [`TrustComponent::SecurityPosture`].
    pub security_posture: f64,
    /// The value of [`TrustComponent::EconomicReliability`].
    pub economic_reliability: f64,
    /// The value of [`TrustComponent::PeerEndorsements`].
    pub peer_endorsements: f64,
}

impl ComponentValues {
    /// Returns the value of one component.
    pub fn get(&self, component: TrustComponent) -> f64 {
        match component {
            TrustComponent::IdentityVerification => self.identity_verification,
            TrustComponent::CommunicationHistory => self.communication_history,
            TrustComponent::CommitmentFulfillment => self.commitment_fulfillment,
            TrustComponent::BehavioralConsistency => self.behavioral_consistency,
            TrustComponent::ResponseQuality => self.response_quality,
            TrustComponent::SecurityPosture => self.security_posture,
            TrustComponent::EconomicReliability => self.economic_reliability,
            TrustComponent::PeerEndorsements => self.peer_endorsements,
        }
    }

    /// Returns the value of one component, to change it.
    pub fn get_mut(&mut self, component: TrustComponent) -> &mut f64 {
        match component {
            TrustComponent::IdentityVerification => &mut self.identity_verification,
            TrustComponent::CommunicationHistory => &mut self.communication_history,
            TrustComponent::CommitmentFulfillment => &mut self.commitment_fulfillment,
            TrustComponent::BehavioralConsistency => &mut self.behavioral_consistency,
            TrustComponent::ResponseQuality => &mut self.response_quality,
            TrustComponent::SecurityPosture => &mut self.security_posture,
            TrustComponent::EconomicReliability => &mut self.economic_reliability,
            TrustComponent::PeerEndorsements => &mut self.peer_endorsements,
        }
    }

    /// Returns each component with its value.
    pub fn iter(&self) -> impl Iterator<Item = (TrustComponent, f64)> {
        TrustComponent::ALL.into_iter().map(|component| (component, self.get(component)))
    }
}
