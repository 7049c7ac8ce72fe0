//! What a subscriber can take, and what a producer honors of it (§5.3).

use crate::event::{CoalesceHint, EventType, Verbosity};
use crate::form::is_filter_pattern;
use crate::record::{Shape, record, words};
use crate::rule;

words! {
    /// How much a person can take in (§5.3.1.10).
    CognitiveLoad { Low = "low", Medium = "medium", High = "high", }
}

/// A place at which output may be cut (§5.3.1.6).
pub type Boundary = CoalesceHint;

/// A conformance level, 1 to 3 (§9).
pub type Level = u64;

// What holds where a subscriber does not say (§5.3.1).
pub(crate) const DEFAULT_LANGUAGE: &str = "en-US";
pub(crate) const DEFAULT_BOUNDARIES: [Boundary; 2] = [CoalesceHint::Sentence, CoalesceHint::Completion];
pub(crate) const DEFAULT_INCLUDE: &str = "aaep:agent.*";
pub(crate) const DEFAULT_LEVEL: Level = 1;

const PATTERN: Shape = Shape::Text { min: 1, max: 256 };

record! {
    /// Which events are wanted (§5.3.1.7).
    EventFilters {
        required {}
        optional {
            /// Types, or beginnings that end in `*`; all of `aaep:agent.*` if not said.
            include: Vec<String>,
                Shape::List { of: &PATTERN, min: 0, max: usize::MAX, unique: true, items: None }, rule::CAPABILITY_FORM;
            /// Likewise; beats `include`.
            exclude: Vec<String>,
                Shape::List { of: &PATTERN, min: 0, max: usize::MAX, unique: true, items: None }, rule::CAPABILITY_FORM;
        }
    }
}

impl EventFilters {
    /// Whether an event of that type (in compact form) is let through, urgency aside (C-C4).
    pub fn lets_through(&self, event_type: &str) -> bool {
        let default = [DEFAULT_INCLUDE.to_owned()];
        let include = self.include.as_deref().unwrap_or(&default);
        any_covers(include, event_type)
            && !any_covers(self.exclude.as_deref().unwrap_or_default(), event_type)
    }

    /// Whether everything that this lets through, `other` does too. What is no pattern keeps nothing out.
    pub fn is_within(&self, other: &EventFilters) -> bool {
        let default = [DEFAULT_INCLUDE.to_owned()];
        let include = self.include.as_deref().unwrap_or(&default);
        let wider = other.include.as_deref().unwrap_or(&default);
        let included = include.iter().all(|mine| wider.iter().any(|theirs| covers(theirs, mine)));
        let excluded = other
            .exclude
            .iter()
            .flatten()
            .filter(|theirs| !theirs.is_empty() && is_filter_pattern(theirs))
            .all(|theirs| {
                self.exclude.iter().flatten().any(|mine| covers(mine, theirs))
                    || !include.iter().any(|mine| covers(mine, theirs) || covers(theirs, mine))
            });
        included && excluded
    }
}

/// Whether one of the patterns matches a type.
pub(crate) fn any_covers(patterns: &[String], event_type: &str) -> bool {
    patterns.iter().any(|pattern| covers(pattern, event_type))
}

/// Whether all that `inner` matches (a type, or a pattern) is matched by `outer`. The compact and the full form of a
/// core type are the same (C-A3).
fn covers(outer: &str, inner: &str) -> bool {
    let (outer, inner) = (EventType::compact(outer), EventType::compact(inner));
    match outer.strip_suffix('*') {
        Some(beginning) => {
            inner.strip_suffix('*').unwrap_or(&inner).starts_with(beginning)
                || inner.starts_with("aaep:") && EventType::all_begin_with(beginning)
        }
        None => outer == inner,
    }
}

record! {
    /// Capabilities, requested or honored (§5.3, §5.4.4). Extensions' own stand in `other` under their prefixes.
    Capabilities {
        required {}
        optional {
            /// At most so many events in a second, criticals aside; no limit if not said.
            max_events_per_second: u64, Shape::Integer { min: 1, max: 100_000 }, rule::RATE;
            /// How much text is wanted.
            preferred_verbosity: Verbosity, Shape::Word(Verbosity::WORDS), rule::CAPABILITY_FORM;
            /// In which languages, the dearest first.
            languages: Vec<String>,
                Shape::List { of: &Shape::Tag, min: 1, max: 32, unique: true, items: None }, rule::CAPABILITY_FORM;
            /// Whether confirmations can be answered.
            supports_confirmation_reply: bool, Shape::Bool, rule::CAPABILITY_FORM;
            /// Whether clarifications can be answered.
            supports_clarification_reply: bool, Shape::Bool, rule::CAPABILITY_FORM;
            /// Where output may be cut.
            coalesce_boundaries: Vec<Boundary>,
                Shape::List { of: &Shape::Word(CoalesceHint::WORDS), min: 1, max: 5, unique: true, items: None },
                rule::CAPABILITY_FORM;
            /// Which events are wanted.
            event_filters: EventFilters,
                Shape::Record { fields: EventFilters::FIELDS, closed: Some(rule::FILTER_CLOSED), open_objects: None },
                rule::CAPABILITY_FORM;
            /// Which levels are implemented.
            supported_conformance_levels: Vec<Level>,
                Shape::List { of: &Shape::Integer { min: 1, max: 3 }, min: 1, max: 3, unique: true, items: None },
                rule::CAPABILITY_FORM;
            /// Which extensions are understood, by URI.
            supported_extensions: Vec<String>,
                Shape::List { of: &Shape::Uri, min: 0, max: 64, unique: true, items: None }, rule::CAPABILITY_FORM;
            /// How much the person can take in.
            cognitive_load: CognitiveLoad, Shape::Word(CognitiveLoad::WORDS), rule::CAPABILITY_FORM;
            /// How fast text is spoken.
            pace_wpm: u64, Shape::Integer { min: 50, max: 1000 }, rule::PACE;
            /// Whether only signed manifests will do.
            accept_signed_manifests_only: bool, Shape::Bool, rule::CAPABILITY_FORM;
        }
    }
}

pub(crate) const CAPABILITIES: Shape = Shape::Record {
    fields: Capabilities::FIELDS,
    closed: None,
    open_objects: Some(rule::CAPABILITY_EXTENSION),
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
    fn exclude_beats_include() {
        let tools = filters(&["aaep:agent.tool.*"], &["aaep:agent.tool.completed"]);
        assert!(tools.lets_through("aaep:agent.tool.invoked"));
        assert!(!tools.lets_through("aaep:agent.tool.completed"));
        assert!(!tools.lets_through("aaep:agent.state.changed"));
        assert!(EventFilters::new().lets_through("aaep:agent.state.changed"));
        assert!(!EventFilters::new().lets_through("medai:patient.consulted"));
    }

    #[test]
    fn narrower_filters_are_within_wider_ones() {
        let wide = filters(&["aaep:agent.*"], &["aaep:agent.progress.updated"]);
        assert!(filters(&["aaep:agent.tool.*"], &["aaep:agent.progress.updated"]).is_within(&wide));
        assert!(filters(&["aaep:agent.tool.*"], &[]).is_within(&wide));
        assert!(!filters(&["aaep:agent.*"], &[]).is_within(&wide));
        assert!(!filters(&["*"], &["aaep:agent.progress.updated"]).is_within(&wide));
        assert!(wide.is_within(&wide));
    }

    #[test]
    fn a_pattern_in_full_form_is_the_compact_one() {
        let full = filters(&["https://aaep-protocol.org/types/agent.tool.*"], &[]);
        assert!(
            full.lets_through("aaep:agent.tool.invoked") && !full.lets_through("aaep:agent.state.changed")
        );
        assert!(full.is_within(&filters(&["aaep:agent.tool.*"], &[])));
        assert!(filters(&["aaep:agent.tool.*"], &[]).is_within(&full));
        let all = filters(&["*"], &["https://aaep-protocol.org/*"]);
        assert!(!all.lets_through("aaep:agent.tool.invoked") && all.lets_through("medai:patient.consulted"));
    }

    #[test]
    fn what_is_no_pattern_keeps_nothing_out() {
        let odd = filters(&["aaep:agent.*"], &["aaep:agent.*.updated", ""]);
        assert!(odd.lets_through("aaep:agent.progress.updated"));
        assert!(EventFilters::new().is_within(&odd));
    }
}
