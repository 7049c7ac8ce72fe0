//! Endorsements of a peer by other agents.

use seal::UnixMillis;

use super::evidence::decay_factor;
use super::parameters::TrustParameters;
use crate::id::AgentUri;
use crate::message::TrustScore;

/// The endorsements of one peer: at most one per endorser, and only those of the most trusted endorsers.
///
/// The result does not depend on the order of equal times: an endorser's best score and latest time count, and the
/// endorsers with the highest scores are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Endorsements(Vec<Endorsement>);

/// An endorsement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Endorsement {
    pub(super) endorser: AgentUri,
    /// The endorser's best score when it endorsed the peer. It decides which endorsements are kept.
    best_score: TrustScore,
    pub(super) is_same_organization: bool,
    pub(super) at: UnixMillis,
}

impl Endorsements {
    /// Adds an endorsement, or renews the one of the same endorser. Endorsers below the minimum score are ignored.
    pub(super) fn add(
        &mut self,
        endorser: &AgentUri,
        score: TrustScore,
        is_same_organization: bool,
        at: UnixMillis,
        parameters: &TrustParameters,
    ) {
        if score.get() < parameters.min_endorser_score {
            return;
        }
        if let Some(known) = self.0.iter_mut().find(|known| known.endorser == *endorser) {
            if at > known.at {
                known.is_same_organization = is_same_organization;
            } else if at == known.at {
                known.is_same_organization |= is_same_organization;
            }
            known.at = known.at.max(at);
            if score.get() > known.best_score.get() {
                known.best_score = score;
            }
        } else {
            let endorser = endorser.clone();
            self.0.push(Endorsement { endorser, best_score: score, is_same_organization, at });
        }
        self.0.sort_by(|a, b| {
            b.best_score.get().total_cmp(&a.best_score.get()).then_with(|| a.endorser.cmp(&b.endorser))
        });
        self.0.truncate(parameters.max_endorsements);
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Endorsement> {
        self.0.iter()
    }
}

impl Endorsement {
    /// Returns the weight of the endorsement, from 0 to 1. `score` is the endorser's score now, so an endorser that loses
    /// trust also loses its influence.
    pub(super) fn weight(&self, score: f64, now: UnixMillis, parameters: &TrustParameters) -> f64 {
        if score < parameters.min_endorser_score {
            return 0.0;
        }
        let age_factor = decay_factor(now.millis_since(self.at), parameters.endorsement_half_life_ms);
        let organization_factor =
            if self.is_same_organization { parameters.same_organization_factor } else { 1.0 };
        score / 100.0 * organization_factor * age_factor
    }
}
