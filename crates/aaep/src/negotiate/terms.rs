//! The terms of one subscription, each of them explicit.

use super::narrow;
use super::notes::Notes;
use super::offer::Extension;
use crate::event::Verbosity;
use crate::json::Raw;
use crate::message::{Boundary, Capabilities, CognitiveLoad, DEFAULT_LEVEL, EventFilters, Level, any_covers};
use crate::record::Members;

/// What holds for one subscription. Lists that are sets stand in one order, so that subscriptions with the same terms
/// have equal ones, and can share what is made for them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Terms {
    /// The version of AAEP that is spoken.
    pub version: String,
    /// The most events in a second, criticals aside; nothing is no limit.
    pub max_events_per_second: Option<u64>,
    /// How much text.
    pub verbosity: Verbosity,
    /// In which languages, the dearest first; empty if none that was asked for can be had (C-C9).
    pub languages: Vec<String>,
    /// Whether confirmations are sent and may be answered (C-C1).
    pub confirmation_reply: bool,
    /// Whether clarifications are sent and may be answered.
    pub clarification_reply: bool,
    /// Where output may be cut, the finest first.
    pub boundaries: Vec<Boundary>,
    /// Which events.
    pub filters: Filters,
    /// The levels that both keep; see [`level`](Self::level).
    pub levels: Vec<Level>,
    /// The extensions that both know.
    pub extensions: Vec<Extension>,
    /// How much the person can take in.
    pub cognitive_load: CognitiveLoad,
    /// How fast text is spoken; nothing if only the subscriber knows.
    pub pace_wpm: Option<u64>,
    /// Whether only signed manifests will do.
    pub signed_manifests_only: bool,
    /// What was asked of the extensions that both know: an object under the prefix of each.
    pub extension_capabilities: Members,
}

/// Which events are wanted: patterns in compact form, none twice (§5.3.1.7).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Filters {
    /// One of these matches.
    pub include: Vec<String>,
    /// None of these matches.
    pub exclude: Vec<String>,
}

impl Terms {
    /// The level at which both work: the highest that both keep (§5.3.1.8).
    pub fn level(&self) -> Level {
        self.levels.iter().copied().max().unwrap_or(DEFAULT_LEVEL)
    }

    /// Whether events of that type are wanted. Those of extensions that both know count as included (C-C4). A critical
    /// event goes out whatever the filters say (§5.5.4, C-C5), and that is for the caller to know.
    pub fn wants(&self, event_type: &str) -> bool {
        let included = any_covers(&self.filters.include, event_type)
            || self.extensions.iter().any(|extension| extension.has_type(event_type));
        included && !any_covers(&self.filters.exclude, event_type)
    }

    /// As they are said in `honored_capabilities`: every one of them. Left out is only what no value could say: no
    /// limit, no language or level in common, a pace that only the subscriber knows.
    pub fn capabilities(&self) -> Capabilities {
        let mut filters = EventFilters::new();
        filters.include = Some(self.filters.include.clone());
        filters.exclude = Some(self.filters.exclude.clone());
        let mut all = Capabilities::new();
        all.max_events_per_second = self.max_events_per_second;
        all.preferred_verbosity = Some(self.verbosity.clone());
        all.languages = some(&self.languages);
        all.supports_confirmation_reply = Some(self.confirmation_reply);
        all.supports_clarification_reply = Some(self.clarification_reply);
        all.coalesce_boundaries = some(&self.boundaries);
        all.event_filters = Some(filters);
        all.supported_conformance_levels = some(&self.levels);
        all.supported_extensions = Some(self.extensions.iter().map(|it| it.uri().to_owned()).collect());
        all.cognitive_load = Some(self.cognitive_load.clone());
        all.pace_wpm = self.pace_wpm;
        all.accept_signed_manifests_only = Some(self.signed_manifests_only);
        all.other = self.extension_capabilities.clone();
        all
    }

    /// The terms that were said as [`capabilities`](Self::capabilities), for whoever stored them; nothing if no terms
    /// are said so. Extensions that are no longer known are left out.
    ///
    /// ```
    /// use aaep::{SubscriptionId, event::Producer, message::{Capabilities, SubscriptionRequest}};
    /// use aaep::negotiate::{Offer, Terms, answer};
    /// let offer = Offer::new(Producer::new("bank"));
    /// let request = SubscriptionRequest::new("1.0.0", "screen-reader", Capabilities::new());
    /// let (_, terms) = answer(&request, &offer, SubscriptionId::parse("sub_1").unwrap()).unwrap();
    /// let again = Terms::from_capabilities("1.0.0", &terms.capabilities(), &offer.extensions);
    /// assert_eq!(again, Some(terms));
    /// ```
    pub fn from_capabilities(version: &str, honored: &Capabilities, known: &[Extension]) -> Option<Self> {
        let notes = &mut Notes::default();
        let honored = narrow::understood(honored, notes);
        let all = super::offer::ALL_BOUNDARIES;
        let extensions = narrow::extensions(honored.supported_extensions.as_deref(), known, notes).ok()?;
        Some(Self {
            version: version.to_owned(),
            max_events_per_second: narrow::rate(honored.max_events_per_second, None, notes).ok()?,
            verbosity: narrow::verbosity(honored.preferred_verbosity),
            languages: narrow::languages(Some(&honored.languages.unwrap_or_default()), &[], notes),
            confirmation_reply: honored.supports_confirmation_reply == Some(true),
            clarification_reply: honored.supports_clarification_reply == Some(true),
            boundaries: narrow::boundaries(honored.coalesce_boundaries.as_deref(), &all, notes).ok()?,
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

    /// What was asked of an extension, by its prefix.
    pub fn extension(&self, prefix: &str) -> Option<&Raw> {
        self.extension_capabilities.get(prefix)
    }
}

fn some<T: Clone>(list: &[T]) -> Option<Vec<T>> {
    (!list.is_empty()).then(|| list.to_vec())
}
