//! The book: the history of all peers, and their scores.

use std::borrow::Cow;
use std::collections::HashMap;

use seal::UnixMillis;

use super::event::{TrustEvent, TrustEventKind, TrustEventName};
use super::evidence::logarithmic_growth;
use super::history::{ComponentParts, PeerHistory};
use super::level::TrustLevel;
use super::parameters::{TrustParameters, TrustParametersError};
use super::report::{ComponentReport, EndorsementReport, TrustReport};
use crate::id::{AgentUri, SessionId};
use crate::message::TrustScore;

/// The history of all peers, aggregated from [`TrustEvent`]s.
///
/// ```
/// use asp::AgentUri;
/// use asp::trust::{TrustBook, TrustEvent, TrustEventKind, TrustLevel, TrustParameters};
/// use seal::UnixMillis;
/// let mut book = TrustBook::new(TrustParameters::default()).unwrap();
/// let peer = AgentUri::parse("agent://acme.example/buyer").unwrap();
/// let now = UnixMillis::new(1_700_000_000_000);
/// assert_eq!(book.level(&peer, now), TrustLevel::Unverified);
/// let pinned = TrustEvent { peer: peer.clone(), at: now, session_id: None, kind: TrustEventKind::CardPinned };
/// book.record(&pinned);
/// assert_eq!(book.level(&peer, now), TrustLevel::Verified);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct TrustBook {
    parameters: TrustParameters,
    peers: HashMap<AgentUri, PeerHistory>,
}

impl TrustBook {
    /// Creates an empty book.
    pub fn new(parameters: TrustParameters) -> Result<Self, TrustParametersError> {
        parameters.validate()?;
        Ok(Self { parameters, peers: HashMap::new() })
    }

    /// Creates a book from stored events, in the order in which they were recorded.
    pub fn replay<'e>(
        parameters: TrustParameters,
        events: impl IntoIterator<Item = &'e TrustEvent>,
    ) -> Result<Self, TrustParametersError> {
        let mut book = Self::new(parameters)?;
        events.into_iter().for_each(|event| {
            book.record(event);
        });
        Ok(book)
    }

    /// Records an event. Returns false if it is ignored, because the book has the maximum number of peers.
    pub fn record(&mut self, event: &TrustEvent) -> bool {
        if !self.peers.contains_key(&event.peer) && self.peers.len() >= self.parameters.max_peers {
            return false;
        }
        self.peers.entry(event.peer.clone()).or_default().apply(event, &self.parameters);
        true
    }

    /// Creates the event for an endorsement, with this side's own score of the endorser. Returns `None` if the endorsement has
    /// no effect: the endorser's score is too low, or it endorses itself.
    pub fn endorsement(
        &self,
        peer: &AgentUri,
        endorser: &AgentUri,
        is_same_organization: bool,
        session_id: Option<SessionId>,
        now: UnixMillis,
    ) -> Option<TrustEvent> {
        let endorser_score = TrustScore::nearest(self.score_without_endorsements(endorser, now));
        let is_allowed = endorser != peer && endorser_score.get() >= self.parameters.min_endorser_score;
        is_allowed.then(|| TrustEvent {
            peer: peer.clone(),
            at: now,
            session_id,
            kind: TrustEventKind::EndorsementReceived {
                endorser: endorser.clone(),
                endorser_score,
                is_same_organization,
            },
        })
    }

    /// Returns whether the book already holds an endorsement of the peer by this endorser, made at this time or later.
    pub fn has_endorsement(&self, peer: &AgentUri, endorser: &AgentUri, at: UnixMillis) -> bool {
        let history = self.history(peer);
        history.endorsements.iter().any(|known| known.endorser == *endorser && known.at >= at)
    }

    /// Returns whether an event with this name was ever recorded about the peer.
    pub fn has_event(&self, peer: &AgentUri, name: TrustEventName) -> bool {
        self.peers.get(peer).is_some_and(|history| history.count(name).count > 0)
    }

    /// Returns whether the peer's card was revoked and not pinned again.
    pub fn is_revoked(&self, peer: &AgentUri) -> bool {
        self.history(peer).is_revoked()
    }

    /// Returns the score of a peer. An unknown peer has the initial score.
    pub fn score(&self, peer: &AgentUri, now: UnixMillis) -> TrustScore {
        let history = self.history(peer);
        let endorsement_growth = self.endorsement_growth(&history, now);
        TrustScore::nearest(weighted_sum(&history.components(endorsement_growth, now, &self.parameters)))
    }

    /// Returns the level of a peer.
    pub fn level(&self, peer: &AgentUri, now: UnixMillis) -> TrustLevel {
        self.level_of(self.score(peer, now))
    }

    /// Returns the level of a score.
    pub fn level_of(&self, score: TrustScore) -> TrustLevel {
        TrustLevel::of(score.get(), &self.parameters.level_boundaries)
    }

    /// Explains the score of a peer.
    pub fn report(&self, peer: &AgentUri, now: UnixMillis) -> TrustReport {
        let history = self.history(peer);
        let endorsements = self.endorsement_reports(&history, now);
        let endorsement_growth = self.endorsement_growth(&history, now);
        let components = history.components(endorsement_growth, now, &self.parameters);
        let score = TrustScore::nearest(weighted_sum(&components));
        TrustReport {
            peer: peer.clone(),
            at: now,
            score,
            level: self.level_of(score),
            last_active_at: history.last_active_at(),
            components: components.map(|parts| ComponentReport::new(parts, &history, &self.parameters)),
            endorsements,
        }
    }

    /// Returns all peers, in no particular order.
    pub fn peers(&self) -> impl Iterator<Item = &AgentUri> {
        self.peers.keys()
    }

    /// Returns the parameters.
    pub fn parameters(&self) -> &TrustParameters {
        &self.parameters
    }

    fn history(&self, peer: &AgentUri) -> Cow<'_, PeerHistory> {
        self.peers.get(peer).map_or_else(Cow::default, Cow::Borrowed)
    }

    /// Returns a score that does not depend on endorsements, so agents that endorse one another in a circle gain nothing.
    fn score_without_endorsements(&self, peer: &AgentUri, now: UnixMillis) -> f64 {
        weighted_sum(&self.history(peer).components(0.0, now, &self.parameters))
    }

    fn endorsement_growth(&self, history: &PeerHistory, now: UnixMillis) -> f64 {
        let total = self.endorsement_reports(history, now).iter().map(|endorsement| endorsement.weight).sum();
        logarithmic_growth(total, self.parameters.saturations.peer_endorsements)
    }

    fn endorsement_reports(&self, history: &PeerHistory, now: UnixMillis) -> Vec<EndorsementReport> {
        let report = |endorsement: &super::endorsements::Endorsement| {
            let score = self.score_without_endorsements(&endorsement.endorser, now);
            EndorsementReport {
                endorser: endorsement.endorser.clone(),
                endorser_score: TrustScore::nearest(score),
                is_same_organization: endorsement.is_same_organization,
                at: endorsement.at,
                weight: endorsement.weight(score, now, &self.parameters),
            }
        };
        history.endorsements.iter().map(report).collect()
    }
}

impl ComponentReport {
    fn new(parts: ComponentParts, history: &PeerHistory, parameters: &TrustParameters) -> Self {
        Self {
            component: parts.component,
            weight: parts.weight,
            base: parts.base,
            growth: parts.growth,
            penalty: parts.penalty,
            value: parts.value(),
            events: super::report::summarize_events(parts.component, history, parameters),
            recent_events: super::report::recent_events(parts.component, history, parameters),
        }
    }
}

fn weighted_sum(components: &[ComponentParts]) -> f64 {
    components.iter().map(|parts| parts.weight * parts.value()).sum()
}
