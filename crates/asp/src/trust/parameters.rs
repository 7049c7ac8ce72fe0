//! Every constant of the trust computation, and its checks.

use thiserror::Error;

use super::component::{ComponentValues, TrustComponent};
use super::effects::{DEFAULT_EFFECTS, EffectRow};

const DAY_MS: i64 = 86_400_000;

seal::defaults! {
    /// The constants of the trust computation (D25). npayload publishes the weights and some boundaries; the rest is our
    /// choice, and all of it can be configured.
    ///
    /// A component's value is its base, plus its growth, minus its penalties, and at least 0 and at most 100. The growth is
    /// `(100 - base) * ln(1 + evidence) / ln(1 + saturation)`. The score is the weighted sum of the components.
    #[derive(Clone, Debug, PartialEq)]
    pub struct TrustParameters {
        /// The weight of each component. The weights add up to 1.
        pub weights: ComponentValues = ComponentValues {
            identity_verification: 0.20,
            communication_history: 0.15,
            commitment_fulfillment: 0.20,
            behavioral_consistency: 0.10,
            response_quality: 0.10,
            security_posture: 0.10,
            economic_reliability: 0.10,
            peer_endorsements: 0.05,
        },
        /// The value of each component without any events.
        pub bases: ComponentValues = ComponentValues {
            identity_verification: 0.0,
            communication_history: 0.0,
            commitment_fulfillment: 20.0,
            behavioral_consistency: 30.0,
            response_quality: 30.0,
            security_posture: 50.0,
            economic_reliability: 20.0,
            peer_endorsements: 0.0,
        },
        /// The evidence with which each component reaches 100. More evidence has no effect. Identity verification does not
        /// grow, so its value is not used.
        pub saturations: ComponentValues = ComponentValues {
            identity_verification: 1.0,
            communication_history: 1_000.0,
            commitment_fulfillment: 300.0,
            behavioral_consistency: 1_000.0,
            response_quality: 5_000.0,
            security_posture: 1_000.0,
            economic_reliability: 100.0,
            peer_endorsements: 25.0,
        },
        /// The value of identity verification for a card that was pinned on first contact.
        pub first_use_identity: f64 = 50.0,
        /// The value of identity verification for a card that the operator pinned.
        pub pinned_identity: f64 = 100.0,
        /// The effects of events on components.
        pub effects: Vec<EffectRow> = DEFAULT_EFFECTS.to_vec(),
        /// The factors for the penalties of a lost dispute of severity 1 to 5. Severity 3 is moderate and has the factor 1.
        pub severity_factors: [f64; 5] = [0.1, 0.4, 1.0, 1.5, 2.5],
        /// How many kept commitments outweigh one broken commitment, in the ratio of kept commitments.
        pub broken_commitment_weight: f64 = 20.0,
        /// How many kept commitments outweigh one late commitment, in the same ratio.
        pub late_commitment_weight: f64 = 1.0,
        /// Maximum of a component's penalties, in points.
        pub max_penalty: f64 = 200.0,
        /// How long a peer can be silent before its growth decays, in milliseconds.
        pub inactivity_grace_ms: i64 = 7 * DAY_MS,
        /// The time in which an inactive peer loses half of its growth, in milliseconds.
        pub growth_half_life_ms: i64 = 90 * DAY_MS,
        /// The time in which half of a penalty is forgiven, in milliseconds. Activity makes no difference.
        pub penalty_half_life_ms: i64 = 365 * DAY_MS,
        /// The time in which an endorsement loses half of its weight, in milliseconds. A repeated endorsement starts again.
        pub endorsement_half_life_ms: i64 = 180 * DAY_MS,
        /// Maximum number of endorsements per peer. Those of the most trusted endorsers count.
        pub max_endorsements: usize = 50,
        /// The lowest score, without endorsements, with which an agent can endorse others.
        pub min_endorser_score: f64 = 30.0,
        /// The factor for an endorsement from the peer's own organization.
        pub same_organization_factor: f64 = 0.2,
        /// The lowest scores of levels 1 to 4.
        pub level_boundaries: [f64; 4] = [30.0, 50.0, 70.0, 90.0],
        /// Maximum number of peers in the book. Events about further peers are ignored.
        pub max_peers: usize = 100_000,
        /// Maximum number of recent events that are kept per peer, for reports only.
        pub max_recent_events: usize = 32,
    }
}

/// A parameter that is not usable.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the trust parameter {parameter} must be {expected}")]
pub struct TrustParametersError {
    /// The parameter.
    pub parameter: &'static str,
    /// What it must be.
    pub expected: &'static str,
}

impl TrustParameters {
    /// Checks all parameters.
    pub fn validate(&self) -> Result<(), TrustParametersError> {
        let within = |range: std::ops::RangeInclusive<f64>| move |value: f64| range.contains(&value);
        let (is_percent, is_factor) = (within(0.0..=100.0), within(0.0..=1.0));
        let is_amount = |value: f64| value.is_finite() && value >= 0.0;
        let all = |values: &ComponentValues, test: &dyn Fn(f64) -> bool| {
            values.iter().all(|(_, value)| test(value))
        };
        let total_weight: f64 = self.weights.iter().map(|(_, weight)| weight).sum();
        let checks: [(bool, &'static str, &'static str); 21] = [
            (all(&self.weights, &is_factor), "weights", "from 0 to 1"),
            ((total_weight - 1.0).abs() < 1e-9, "weights", "numbers that add up to 1"),
            (all(&self.bases, &is_percent), "bases", "from 0 to 100"),
            (all(&self.saturations, &within(1.0..=1e9)), "saturations", "from 1 to 1000000000"),
            (is_percent(self.first_use_identity), "first_use_identity", "from 0 to 100"),
            (
                is_percent(self.pinned_identity)
                    && self.pinned_identity >= self.first_use_identity
                    && self.first_use_identity >= self.bases.identity_verification,
                "pinned_identity",
                "from 0 to 100, at least first_use_identity, which is at least the base",
            ),
            (self.effects.iter().all(EffectRow::is_valid), "effects", EffectRow::EXPECTED),
            (
                self.severity_factors.iter().all(|factor| is_amount(*factor))
                    && self.severity_factors.is_sorted(),
                "severity_factors",
                "numbers of 0 or more, in ascending order",
            ),
            (is_amount(self.broken_commitment_weight), "broken_commitment_weight", "0 or more"),
            (is_amount(self.late_commitment_weight), "late_commitment_weight", "0 or more"),
            (within(100.0..=1e6)(self.max_penalty), "max_penalty", "from 100 to 1000000"),
            (self.inactivity_grace_ms >= 0, "inactivity_grace_ms", "0 or more"),
            (self.growth_half_life_ms > 0, "growth_half_life_ms", "more than 0"),
            (self.penalty_half_life_ms > 0, "penalty_half_life_ms", "more than 0"),
            (self.endorsement_half_life_ms > 0, "endorsement_half_life_ms", "more than 0"),
            (self.max_peers >= 1, "max_peers", "at least 1"),
            (self.max_recent_events <= 1_000, "max_recent_events", "at most 1000"),
            (self.max_endorsements <= 1_000, "max_endorsements", "at most 1000"),
            (is_percent(self.min_endorser_score), "min_endorser_score", "from 0 to 100"),
            (is_factor(self.same_organization_factor), "same_organization_factor", "from 0 to 1"),
            (
                self.level_boundaries.iter().all(|boundary| is_percent(*boundary))
                    && self.level_boundaries.is_sorted(),
                "level_boundaries",
                "from 0 to 100, in ascending order",
            ),
        ];
        match checks.into_iter().find(|(is_valid, ..)| !is_valid) {
            Some((_, parameter, expected)) => Err(TrustParametersError { parameter, expected }),
            None => Ok(()),
        }
    }
}

impl EffectRow {
    const EXPECTED: &'static str = "rows with credit for good events and penalties for bad ones, from 0 to 1000000, \
        and no credit for identity verification or peer endorsements";

    fn is_valid(&self) -> bool {
        let grows = !matches!(
            self.component,
            TrustComponent::IdentityVerification | TrustComponent::PeerEndorsements
        );
        [self.credit, self.penalty].iter().all(|value| (0.0..=1e6).contains(value))
            && (self.credit == 0.0 || (self.event.is_good() && grows))
            && (self.penalty == 0.0 || !self.event.is_good())
    }
}
