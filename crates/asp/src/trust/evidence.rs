//! The evidence about one peer, from which the components of its score are computed.
//!
//! Quantities are integers in millionths, because integer addition gives the same result in every order. Decay is
//! computed in whole hours, so that many small steps do not add up to a rounding error.

use seal::UnixMillis;

use super::component::TrustComponent;
use super::event::{TrustEventKind, TrustEventName};
use super::parameters::TrustParameters;

const COMPONENT_COUNT: usize = TrustComponent::ALL.len();

/// The step in which decay is computed, in milliseconds.
const DECAY_STEP_MS: i64 = 3_600_000;

/// One unit of evidence or one point, in millionths.
const UNIT: f64 = 1e6;

/// The evidence about one peer at a point in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TrustEvidence {
    /// The time up to which decay is applied. A multiple of the decay step.
    as_of: UnixMillis,
    /// When the peer was last active.
    last_active_at: UnixMillis,
    /// The good evidence of each component.
    good: [u64; COMPONENT_COUNT],
    /// The penalties of each component.
    penalties: [u64; COMPONENT_COUNT],
    /// The broken and late commitments, with their weights.
    broken_commitments: u64,
}

impl Default for TrustEvidence {
    fn default() -> Self {
        Self {
            as_of: UnixMillis::MIN,
            last_active_at: UnixMillis::MIN,
            good: [0; COMPONENT_COUNT],
            penalties: [0; COMPONENT_COUNT],
            broken_commitments: 0,
        }
    }
}

impl TrustEvidence {
    /// Applies an event. An event that is earlier than a previous one counts as if it happened at the same time.
    pub(super) fn apply(&mut self, kind: &TrustEventKind, at: UnixMillis, parameters: &TrustParameters) {
        self.advance(at, parameters);
        let name = kind.name();
        if name.is_activity() {
            self.last_active_at = self.last_active_at.max(at);
        }
        let factor = match kind {
            TrustEventKind::DisputeLost { severity, .. } => parameters.severity_factors[severity.index()],
            _ => 1.0,
        };
        for row in parameters.effects.iter().filter(|row| row.event == name) {
            let index = row.component as usize;
            let saturation = parameters.saturations.get(row.component);
            self.good[index] = add_up_to(self.good[index], row.credit, saturation);
            let penalty = row.penalty * factor;
            self.penalties[index] = add_up_to(self.penalties[index], penalty, parameters.max_penalty);
        }
        let weight = match name {
            TrustEventName::CommitmentBroken => parameters.broken_commitment_weight,
            TrustEventName::CommitmentLate => parameters.late_commitment_weight,
            _ => 0.0,
        };
        // More than this makes no difference: the ratio of kept commitments is close to 0 already.
        let max_weight = 1000.0 * parameters.saturations.commitment_fulfillment;
        self.broken_commitments = add_up_to(self.broken_commitments, weight, max_weight);
    }

    /// Applies the decay until a point in time. Does nothing for an earlier one.
    pub(super) fn advance(&mut self, to: UnixMillis, parameters: &TrustParameters) {
        let to = UnixMillis::new(to.get().div_euclid(DECAY_STEP_MS).saturating_mul(DECAY_STEP_MS));
        if to <= self.as_of {
            return;
        }
        let idle_since = self.last_active_at.saturating_add(parameters.inactivity_grace_ms).max(self.as_of);
        let growth_factor = decay_factor(to.millis_since(idle_since), parameters.growth_half_life_ms);
        if growth_factor < 1.0 {
            for good in &mut self.good {
                // The growth is the logarithm of the evidence. It is the growth that halves in each half-life.
                *good = to_millionths((growth_factor * to_units(*good).ln_1p()).exp_m1());
            }
        }
        let penalty_factor = decay_factor(to.millis_since(self.as_of), parameters.penalty_half_life_ms);
        for bad in self.penalties.iter_mut().chain([&mut self.broken_commitments]) {
            *bad = to_millionths_rounded_down(to_units(*bad) * penalty_factor);
        }
        self.as_of = to;
    }

    /// Returns how much of the way from its base to 100 a component has grown, from 0 to 1. Growth is logarithmic. The growth of
    /// commitment fulfillment is multiplied by the ratio of kept commitments.
    pub(super) fn growth(&self, component: TrustComponent, parameters: &TrustParameters) -> f64 {
        let good = to_units(self.good[component as usize]);
        let growth = logarithmic_growth(good, parameters.saturations.get(component));
        if component == TrustComponent::CommitmentFulfillment && good > 0.0 {
            growth * good / (good + to_units(self.broken_commitments))
        } else {
            growth
        }
    }

    /// Returns the penalty of a component, in points.
    pub(super) fn penalty(&self, component: TrustComponent) -> f64 {
        to_units(self.penalties[component as usize])
    }

    /// Returns when the peer was last active.
    pub(super) fn last_active_at(&self) -> Option<UnixMillis> {
        (self.last_active_at > UnixMillis::MIN).then_some(self.last_active_at)
    }
}

/// Returns `ln(1 + evidence) / ln(1 + saturation)`, at most 1.
pub(super) fn logarithmic_growth(evidence: f64, saturation: f64) -> f64 {
    (evidence.ln_1p() / saturation.ln_1p()).clamp(0.0, 1.0)
}

/// Returns the factor by which something with this half-life shrinks. It is 1 for a duration that is not positive.
#[allow(clippy::cast_precision_loss, reason = "durations beyond 2^53 ms need no precision")]
pub(super) fn decay_factor(duration_ms: i64, half_life_ms: i64) -> f64 {
    (-(duration_ms.max(0) as f64) / half_life_ms as f64).exp2()
}

fn add_up_to(value: u64, added: f64, max: f64) -> u64 {
    value.saturating_add(to_millionths(added)).min(to_millionths(max)).max(value)
}

#[allow(clippy::cast_precision_loss, reason = "quantities are below 2^53")]
fn to_units(millionths: u64) -> f64 {
    millionths as f64 / UNIT
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast saturates")]
fn to_millionths(units: f64) -> u64 {
    (units * UNIT).round() as u64
}

/// Rounds down, so that small penalties are forgiven completely.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast saturates")]
fn to_millionths_rounded_down(units: f64) -> u64 {
    (units * UNIT) as u64
}
