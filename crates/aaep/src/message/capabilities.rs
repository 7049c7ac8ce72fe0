//! Capabilities that a subscriber requests and a producer honors (§5.3).

use crate::event::{CoalesceHint, EventType, Verbosity};
use crate::grammar::is_filter_pattern;
use crate::record::{FieldType, open_enum, record};
use crate::rule;

open_enum! {
    /// How much information a person can handle at once (§5.3.1.10).
    CognitiveLoad { Low = "low", Medium = "medium", High = "high", }
}

/// A boundary at which output may be split (§5.3.1.6).
pub type Boundary = CoalesceHint;

/// A conformance level, 1 to 3 (§9).
pub type ConformanceLevel = u64;

// Defaults for what a subscriber does not specify (§5.3.1).
pub(crate) const DEFAULT_LANGUAGE: &str = "en-US";
pub(crate) const DEFAULT_BOUNDARIES: [Boundary; 2] = [CoalesceHint::Sentence, CoalesceHint::Completion];
pub(crate) const DEFAULT_INCLUDE: &str = "aaep:agent.*";
pub(crate) const DEFAULT_LEVEL: ConformanceLevel = 1;

const FILTER_PATTERN: FieldType = FieldType::Text { min: 1, max: 256 };

record! {
    /// Filters for the events of a subscription (§5.3.1.7).
    EventFilters {
        required {}
        optional {
            /// Event types, or prefixes that end in `*`; `aaep:agent.*` if absent.
            include: Vec<String>,
                FieldType::List { item: &FILTER_PATTERN, min: 0, max: usize::MAX, unique: true, item_rule: None }, rule::CAPABILITY_FORM;
            /// Event types or prefixes to leave out. Takes precedence over `include`.
            exclude: Vec<String>,
                FieldType::List { item: &FILTER_PATTERN, min: 0, max: usize::MAX, unique: true, item_rule: None }, rule::CAPABILITY_FORM;
        }
    }
}

impl EventFilters {
    /// Returns whether the filters allow an event type (in compact form), regardless of urgency
    /// (C-C4).
    pub fn allows(&self, event_type: &str) -> bool {
        let default = [DEFAULT_INCLUDE.to_owned()];
        let include = self.include.as_deref().unwrap_or(&default);
        any_pattern_matches(include, event_type)
            && !any_pattern_matches(self.exclude.as_deref().unwrap_or_default(), event_type)
    }

    /// Returns whether `other` allows every event that these filters allow. An invalid pattern
    /// excludes nothing.
    pub fn is_subset_of(&self, other: &EventFilters) -> bool {
        let default = [DEFAULT_INCLUDE.to_owned()];
        let include = self.include.as_deref().unwrap_or(&default);
        let wider = other.include.as_deref().unwrap_or(&default);
        let covers_includes =
            include.iter().all(|pattern| wider.iter().any(|wide| pattern_covers(wide, pattern)));
        let keeps_excludes = other
            .exclude
            .iter()
            .flatten()
            .filter(|excluded| !excluded.is_empty() && is_filter_pattern(excluded))
            .all(|excluded| {
                self.exclude.iter().flatten().any(|pattern| pattern_covers(pattern, excluded))
                    || !include
                        .iter()
                        .any(|pattern| pattern_covers(pattern, excluded) || pattern_covers(excluded, pattern))
            });
        covers_includes && keeps_excludes
    }
}

/// Returns whether any of the patterns matches a type.
pub(crate) fn any_pattern_matches(patterns: &[String], event_type: &str) -> bool {
    patterns.iter().any(|pattern| pattern_covers(pattern, event_type))
}

/// Returns whether `outer` matches everything that `inner` (a type or a pattern) matches. The
/// compact and the full form of a core type are equal (C-A3).
fn pattern_covers(outer: &str, inner: &str) -> bool {
    let (outer, inner) = (EventType::compact(outer), EventType::compact(inner));
    match outer.strip_suffix('*') {
        Some(prefix) => {
            inner.strip_suffix('*').unwrap_or(&inner).starts_with(prefix)
                || inner.starts_with("aaep:") && EventType::all_start_with(prefix)
        }
        None => outer == inner,
    }
}

record! {
    /// Capabilities, requested or honored (§5.3, §5.4.4). Capabilities of extensions are in
    /// `other`, under the prefix of each extension.
    Capabilities {
        required {}
        optional {
            /// The maximum number of non-critical events per second; no limit if absent.
            max_events_per_second: u64, FieldType::Integer { min: 1, max: 100_000 }, rule::RATE;
            /// The preferred verbosity.
            preferred_verbosity: Verbosity, FieldType::Enum(Verbosity::VALUES), rule::CAPABILITY_FORM;
            /// The languages in order of preference.
            languages: Vec<String>,
                FieldType::List { item: &FieldType::LanguageTag, min: 1, max: 32, unique: true, item_rule: None }, rule::CAPABILITY_FORM;
            /// Whether the subscriber can reply to confirmations.
            supports_confirmation_reply: bool, FieldType::Bool, rule::CAPABILITY_FORM;
            /// Whether the subscriber can reply to clarifications.
            supports_clarification_reply: bool, FieldType::Bool, rule::CAPABILITY_FORM;
            /// The boundaries at which output may be split.
            coalesce_boundaries: Vec<Boundary>,
                FieldType::List { item: &FieldType::Enum(CoalesceHint::VALUES), min: 1, max: 5, unique: true, item_rule: None },
                rule::CAPABILITY_FORM;
            /// The filters for events.
            event_filters: EventFilters,
                FieldType::Record { fields: EventFilters::FIELDS, unknown_member_rule: Some(rule::FILTER_MEMBERS), non_object_member_rule: None },
                rule::CAPABILITY_FORM;
            /// The implemented conformance levels.
            supported_conformance_levels: Vec<ConformanceLevel>,
                FieldType::List { item: &FieldType::Integer { min: 1, max: 3 }, min: 1, max: 3, unique: true, item_rule: None },
                rule::CAPABILITY_FORM;
            /// The URIs of the supported extensions.
            supported_extensions: Vec<String>,
                FieldType::List { item: &FieldType::Uri, min: 0, max: 64, unique: true, item_rule: None }, rule::CAPABILITY_FORM;
            /// How much information the person can handle at once.
            cognitive_load: CognitiveLoad, FieldType::Enum(CognitiveLoad::VALUES), rule::CAPABILITY_FORM;
            /// The speaking rate in words per minute.
            pace_wpm: u64, FieldType::Integer { min: 50, max: 1000 }, rule::PACE;
            /// Whether the subscriber accepts only signed manifests.
            accept_signed_manifests_only: bool, FieldType::Bool, rule::CAPABILITY_FORM;
        }
    }
}

pub(crate) const CAPABILITIES: FieldType = FieldType::Record {
    fields: Capabilities::FIELDS,
    unknown_member_rule: None,
    non_object_member_rule: Some(rule::CAPABILITY_EXTENSION),
};

#[cfg(test)]
mod tests {
    use super::*;

    fn filters(include: &[&str], exclude: &[&str]) -> EventFilters {
        let mut filters = EventFilters::new();
        filters.include = Some(include.iter().map(ToString::to_string).collect());
        filters.exclude = Some(exclude.iter().map(ToString::to_string).collect());
        filters
    }

    #[test]
    fn exclude_takes_precedence_over_include() {
        let tools = filters(&["aaep:agent.tool.*"], &["aaep:agent.tool.completed"]);
        assert!(tools.allows("aaep:agent.tool.invoked"));
        assert!(!tools.allows("aaep:agent.tool.completed"));
        assert!(!tools.allows("aaep:agent.state.changed"));
        assert!(EventFilters::new().allows("aaep:agent.state.changed"));
        assert!(!EventFilters::new().allows("medai:patient.consulted"));
    }

    #[test]
    fn narrower_filters_are_subsets_of_wider_ones() {
        let wide = filters(&["aaep:agent.*"], &["aaep:agent.progress.updated"]);
        assert!(filters(&["aaep:agent.tool.*"], &["aaep:agent.progress.updated"]).is_subset_of(&wide));
        assert!(filters(&["aaep:agent.tool.*"], &[]).is_subset_of(&wide));
        assert!(!filters(&["aaep:agent.*"], &[]).is_subset_of(&wide));
        assert!(!filters(&["*"], &["aaep:agent.progress.updated"]).is_subset_of(&wide));
        assert!(wide.is_subset_of(&wide));
    }

    #[test]
    fn full_and_compact_patterns_are_equal() {
        let full = filters(&["https://aaep-protocol.org/types/agent.tool.*"], &[]);
        assert!(full.allows("aaep:agent.tool.invoked") && !full.allows("aaep:agent.state.changed"));
        assert!(full.is_subset_of(&filters(&["aaep:agent.tool.*"], &[])));
        assert!(filters(&["aaep:agent.tool.*"], &[]).is_subset_of(&full));
        let all = filters(&["*"], &["https://aaep-protocol.org/*"]);
        assert!(!all.allows("aaep:agent.tool.invoked") && all.allows("medai:patient.consulted"));
    }

    #[test]
    fn an_invalid_pattern_excludes_nothing() {
        let invalid = filters(&["aaep:agent.*"], &["aaep:agent.*.updated", ""]);
        assert!(invalid.allows("aaep:agent.progress.updated"));
        assert!(EventFilters::new().is_subset_of(&invalid));
    }
}
