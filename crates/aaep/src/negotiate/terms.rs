//! The terms of one subscription, with a value for every capability.

use super::narrow;
use super::notes::NegotiationNotes;
use super::offer::Extension;
use crate::event::Verbosity;
use crate::json::RawJson;
use crate::message::{
    Boundary, Capabilities, CognitiveLoad, ConformanceLevel, DEFAULT_LEVEL, EventFilters, any_pattern_matches,
};
use crate::record::Members;

/// The terms of one subscription. Lists whose order has no meaning are sorted, so equal terms
/// compare equal and subscriptions can share shaped events.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Terms {
    /// The AAEP version.
    pub version: String,
    /// The maximum number of non-critical events per second; `None` for no limit.
    pub max_events_per_second: Option<u64>,
    /// The verbosity.
    pub verbosity: Verbosity,
    /// The languages in order of preference; empty if no requested language is available
    /// (C-C9).
    pub languages: Vec<String>,
    /// Whether confirmations are sent and may be answered (C-C1).
    pub answers_confirmations: bool,
    /// Whether clarifications are sent and may be answered.
    pub answers_clarifications: bool,
    /// The boundaries at which output may be split, from the finest to the coarsest.
    pub boundaries: Vec<Boundary>,
    /// The event filters.
    pub filters: HonoredFilters,
    /// The conformance levels that both sides support; see [`level`](Self::level).
    pub levels: Vec<ConformanceLevel>,
    /// The extensions that both sides support.
    pub extensions: Vec<Extension>,
    /// How much information the person can handle at once.
    pub cognitive_load: CognitiveLoad,
    /// The speaking rate in words per minute, if known.
    pub pace_wpm: Option<u64>,
    /// Whether the subscriber accepts only signed manifests.
    pub signed_manifests_only: bool,
    /// The capabilities of `extensions`: one object for each, under its prefix.
    pub extension_capabilities: Members,
}

/// Event filters: unique patterns in compact form (§5.3.1.7).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HonoredFilters {
    /// An event type must match at least one of these patterns.
    pub include: Vec<String>,
    /// An event type must match none of these patterns.
    pub exclude: Vec<String>,
}

impl Terms {
    /// Returns the conformance level of the subscription: the highest level that both sides support
    /// (§5.3.1.8).
    pub fn level(&self) -> ConformanceLevel {
        self.levels.iter().copied().max().unwrap_or(DEFAULT_LEVEL)
    }

    /// Returns whether the filters let events of a type through. The event types of extensions that
    /// both sides support count as included (C-C4). The caller must send critical events regardless
    /// of the filters (§5.5.4, C-C5).
    pub fn includes_type(&self, event_type: &str) -> bool {
        let is_included = any_pattern_matches(&self.filters.include, event_type)
            || self.extensions.iter().any(|extension| extension.owns_type(event_type));
        is_included && !any_pattern_matches(&self.filters.exclude, event_type)
    }

    /// Returns the terms as `honored_capabilities`. A capability is absent only if it has no value:
    /// no rate limit, no common language or level, or an unknown pace.
    pub fn capabilities(&self) -> Capabilities {
        let mut filters = EventFilters::new();
        filters.include = Some(self.filters.include.clone());
        filters.exclude = Some(self.filters.exclude.clone());
        let mut capabilities = Capabilities::new();
        capabilities.max_events_per_second = self.max_events_per_second;
        capabilities.preferred_verbosity = Some(self.verbosity.clone());
        capabilities.languages = non_empty(&self.languages);
        capabilities.supports_confirmation_reply = Some(self.answers_confirmations);
        capabilities.supports_clarification_reply = Some(self.answers_clarifications);
        capabilities.coalesce_boundaries = non_empty(&self.boundaries);
        capabilities.event_filters = Some(filters);
        capabilities.supported_conformance_levels = non_empty(&self.levels);
        capabilities.supported_extensions =
            Some(self.extensions.iter().map(|it| it.uri().to_owned()).collect());
        capabilities.cognitive_load = Some(self.cognitive_load.clone());
        capabilities.pace_wpm = self.pace_wpm;
        capabilities.accept_signed_manifests_only = Some(self.signed_manifests_only);
        capabilities.other = self.extension_capabilities.clone();
        capabilities
    }

    /// Restores terms from stored [`capabilities`](Self::capabilities). Returns `None` if they are invalid. Extensions that
    /// are no longer known are left out.
    ///
    /// ```
    /// use aaep::{SubscriptionId, event::Producer, message::{Capabilities, SubscriptionRequest}};
    /// use aaep::negotiate::{Offer, Terms, answer_request};
    /// let offer = Offer::new(Producer::new("bank"));
    /// let request = SubscriptionRequest::new("1.0.0", "screen-reader", Capabilities::new());
    /// let (_, terms) = answer_request(&request, &offer, SubscriptionId::parse("sub_1").unwrap()).unwrap();
    /// let restored = Terms::from_capabilities("1.0.0", &terms.capabilities(), &offer.extensions);
    /// assert_eq!(restored, Some(terms));
    /// ```
    pub fn from_capabilities(version: &str, honored: &Capabilities, known: &[Extension]) -> Option<Self> {
        let notes = &mut NegotiationNotes::default();
        let honored = narrow::drop_unreadable(honored, notes);
        let boundaries = super::offer::ALL_BOUNDARIES;
        let extensions = narrow::extensions(honored.supported_extensions.as_deref(), known, notes).ok()?;
        Some(Self {
            version: version.to_owned(),
            max_events_per_second: narrow::rate(honored.max_events_per_second, None, notes).ok()?,
            verbosity: narrow::verbosity(honored.preferred_verbosity, None),
            languages: narrow::languages(Some(&honored.languages.unwrap_or_default()), &[], notes),
            answers_confirmations: honored.supports_confirmation_reply == Some(true),
            answers_clarifications: honored.supports_clarification_reply == Some(true),
            boundaries: narrow::boundaries(honored.coalesce_boundaries.as_deref(), &boundaries, notes)
                .ok()?,
            filters: narrow::filters(honored.event_filters.as_ref(), notes).ok()?,
            levels: narrow::levels(
                Some(&honored.supported_conformance_levels.unwrap_or_default()),
                &[1, 2, 3],
                notes,
            ),
            cognitive_load: narrow::cognitive_load(honored.cognitive_load),
            pace_wpm: narrow::pace(honored.pace_wpm, notes),
            signed_manifests_only: honored.accept_signed_manifests_only == Some(true),
            extension_capabilities: narrow::extension_capabilities(&honored.other, None, &extensions, notes),
            extensions,
        })
    }

    /// Returns the requested capabilities of an extension, by its prefix.
    pub fn extension_capability(&self, prefix: &str) -> Option<&RawJson> {
        self.extension_capabilities.get(prefix)
    }
}

fn non_empty<T: Clone>(list: &[T]) -> Option<Vec<T>> {
    (!list.is_empty()).then(|| list.to_vec())
}
