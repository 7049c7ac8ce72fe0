//! Negotiation of each capability: the narrower of the requested and the offered value (§5.3.1,
//! §5.4.4).
//!
//! Each function applies the default to an absent value, and adds a note if it honors less than
//! requested. Requests are untrusted, so values beyond the schema's limits are never sent back.

use std::collections::BTreeMap;

use super::language::can_serve;
use super::notes::{NegotiationNotes, join_names};
use super::offer::{ALL_BOUNDARIES, Extension};
use super::terms::{HonoredFilters, Terms};
use crate::check::is_interoperable;
use crate::event::{CoalesceHint, EventType, Verbosity};
use crate::grammar::{is_filter_pattern, is_language_tag, is_prefix, is_uri};
use crate::message::{
    Boundary, Capabilities, CognitiveLoad, ConformanceLevel, DEFAULT_BOUNDARIES, DEFAULT_INCLUDE,
    DEFAULT_LANGUAGE, DEFAULT_LEVEL, EventFilters, ReasonCode, SubscriptionRejected,
};
use crate::record::Members;

const MAX_EVENTS_PER_SECOND: u64 = 100_000;
const MAX_LANGUAGES: usize = 32;
const MAX_EXTENSIONS: usize = 64;
const MAX_PATTERN_CHARS: usize = 256;
const PACE_WPM_RANGE: (u64, u64) = (50, 1000);

// sayso's own limits. Terms live as long as their subscription and are evaluated for every event,
// so their size is limited (decision 13).
const MAX_PATTERNS: usize = 256;
const MAX_TAG_BYTES: usize = 64;
const MAX_EXTENSION_BYTES: usize = 4096;

/// Removes unreadable capabilities. A value of the wrong type, or an unknown enumeration value
/// (C-J2), counts as absent. `null` also counts as absent; it does not reset a capability.
pub(super) fn drop_unreadable(requested: &Capabilities, notes: &mut NegotiationNotes) -> Capabilities {
    let mut requested = requested.clone();
    let mut unreadable: Vec<&str> =
        requested.other.iter().filter_map(|member| known_capability(member.name())).collect();
    if matches!(requested.preferred_verbosity, Some(Verbosity::Unknown(_))) {
        requested.preferred_verbosity = None;
        unreadable.push("preferred_verbosity");
    }
    if matches!(requested.cognitive_load, Some(CognitiveLoad::Unknown(_))) {
        requested.cognitive_load = None;
        unreadable.push("cognitive_load");
    }
    if requested.event_filters.as_ref().is_some_and(|filters| !filters.other.is_empty()) {
        unreadable.push("part of event_filters");
    }
    unreadable.sort_unstable();
    unreadable.dedup();
    if !unreadable.is_empty() {
        notes.push(format!("Ignored because they were not understood: {}.", unreadable.join(", ")));
    }
    requested
}

fn known_capability(name: &str) -> Option<&'static str> {
    Capabilities::FIELDS.iter().map(|field| field.name).find(|field| *field == name)
}

pub(super) fn rate(
    requested: Option<u64>,
    offered: Option<u64>,
    notes: &mut NegotiationNotes,
) -> Result<Option<u64>, SubscriptionRejected> {
    if requested == Some(0) {
        return Err(incompatible("max_events_per_second must be at least 1."));
    }
    // The rate is unlimited only if neither side sets a limit.
    let offered = offered
        .map(|offered| offered.clamp(1, MAX_EVENTS_PER_SECOND))
        .or(requested.map(|_| MAX_EVENTS_PER_SECOND));
    let honored = requested.into_iter().chain(offered).min();
    if honored != requested
        && let Some(honored) = honored
    {
        notes.push(format!("At most {honored} events per second are sent."));
    }
    Ok(honored)
}

/// Returns the requested verbosity. Without one, a low cognitive load means short texts (§5.3.1.10).
pub(super) fn verbosity(requested: Option<Verbosity>, load: Option<&CognitiveLoad>) -> Verbosity {
    let default = if load == Some(&CognitiveLoad::Low) { Verbosity::Terse } else { Verbosity::Normal };
    requested.unwrap_or(default)
}

pub(super) fn cognitive_load(requested: Option<CognitiveLoad>) -> CognitiveLoad {
    requested.unwrap_or(CognitiveLoad::Medium)
}

/// Returns the requested tags that can be served. The tags are not changed: `en` stays `en` even if
/// the events are in `en-US` (C-C8).
pub(super) fn languages(
    requested: Option<&[String]>,
    offered: &[String],
    notes: &mut NegotiationNotes,
) -> Vec<String> {
    let default = [DEFAULT_LANGUAGE.to_owned()];
    let requested = requested.unwrap_or(&default);
    let is_available = |tag: &str| {
        tag.len() <= MAX_TAG_BYTES && is_language_tag(tag) && (offered.is_empty() || can_serve(offered, tag))
    };
    let mut honored: Vec<String> = Vec::new();
    for tag in requested.iter().filter(|tag| is_available(tag)) {
        if honored.len() < MAX_LANGUAGES && !honored.contains(tag) {
            honored.push(tag.clone());
        }
    }
    let missing: Vec<_> = requested
        .iter()
        .map(String::as_str)
        .filter(|tag| !is_available(tag) && is_language_tag(tag))
        .collect();
    if honored.is_empty() {
        // The subscriber is served anyway (C-C9).
        notes.push(
            "None of the requested languages is available; events are sent in their original language.",
        );
    } else if !missing.is_empty() {
        notes.push(format!("These languages are not available: {}.", join_names(missing)));
    }
    honored
}

pub(super) fn reply(
    requested: Option<bool>,
    is_permitted: bool,
    kind: &str,
    notes: &mut NegotiationNotes,
) -> bool {
    let is_requested = requested == Some(true);
    if is_requested && !is_permitted {
        notes.push(format!("{kind} cannot be answered by this subscriber."));
    }
    is_requested && is_permitted
}

/// Returns the boundaries that both sides support. Completion is always available. If none of the
/// requested boundaries is available, the request is rejected.
pub(super) fn boundaries(
    requested: Option<&[Boundary]>,
    offered: &[Boundary],
    notes: &mut NegotiationNotes,
) -> Result<Vec<Boundary>, SubscriptionRejected> {
    let requested = requested.unwrap_or(&DEFAULT_BOUNDARIES);
    let is_available =
        |boundary: &Boundary| *boundary == CoalesceHint::Completion || offered.contains(boundary);
    let is_common = |boundary: &Boundary| requested.contains(boundary) && is_available(boundary);
    let honored: Vec<_> = ALL_BOUNDARIES.into_iter().filter(is_common).collect();
    if honored.is_empty() {
        let available: Vec<_> = ALL_BOUNDARIES.into_iter().filter(is_available).collect();
        return Err(incompatible(format!(
            "None of the requested coalesce_boundaries is available. Available: {}.",
            join_names(available.iter().map(Boundary::as_str))
        )));
    }
    let missing = ALL_BOUNDARIES.into_iter().filter(|it| requested.contains(it) && !is_available(it));
    let missing: Vec<_> = missing.collect();
    if !missing.is_empty() {
        let missing = join_names(missing.iter().map(Boundary::as_str));
        notes.push(format!("Output is not split at these boundaries: {missing}."));
    }
    Ok(honored)
}

pub(super) fn filters(
    requested: Option<&EventFilters>,
    notes: &mut NegotiationNotes,
) -> Result<HonoredFilters, SubscriptionRejected> {
    let default = [DEFAULT_INCLUDE.to_owned()];
    let include = requested.and_then(|requested| requested.include.as_deref()).unwrap_or(&default);
    let exclude = requested.and_then(|requested| requested.exclude.as_deref()).unwrap_or_default();
    if include.len().max(exclude.len()) > MAX_PATTERNS {
        return Err(incompatible(format!(
            "event_filters may have at most {MAX_PATTERNS} patterns per list."
        )));
    }
    // The full form of a core type is replaced by the equivalent compact form (C-A3).
    let to_valid_pattern = |pattern: &String| {
        (is_filter_pattern(pattern) && !pattern.is_empty()).then(|| EventType::compact(pattern).into_owned())
    };
    let is_short = |pattern: &String| pattern.chars().count() <= MAX_PATTERN_CHARS;
    // A truncated pattern matches everything that the original matches, and possibly more. This is
    // safe only for `exclude`, so long patterns in `include` are dropped.
    let truncate = |pattern: String| {
        if is_short(&pattern) {
            return pattern;
        }
        pattern.chars().take(MAX_PATTERN_CHARS - 1).chain(['*']).collect()
    };
    let requested_count = include.len() + exclude.len();
    let mut include: Vec<_> = include.iter().filter_map(to_valid_pattern).filter(is_short).collect();
    let mut exclude: Vec<_> = exclude.iter().filter_map(to_valid_pattern).map(truncate).collect();
    if include.len() + exclude.len() < requested_count {
        notes.push(format!(
            "Some patterns in event_filters were ignored. A pattern must be a type or a prefix ending in *, \
             with at most {MAX_PATTERN_CHARS} characters."
        ));
    }
    for list in [&mut include, &mut exclude] {
        list.sort_unstable();
        list.dedup();
    }
    Ok(HonoredFilters { include, exclude })
}

pub(super) fn levels(
    requested: Option<&[ConformanceLevel]>,
    offered: &[ConformanceLevel],
    notes: &mut NegotiationNotes,
) -> Vec<ConformanceLevel> {
    let requested = requested.unwrap_or(&[DEFAULT_LEVEL]);
    let honored: Vec<_> =
        (1..=3).filter(|level| requested.contains(level) && offered.contains(level)).collect();
    if honored.is_empty() {
        // As in C-C9, the subscriber is served anyway, because an implementation of a higher level
        // can also handle a lower level.
        notes.push(format!("There is no common conformance level, so level {DEFAULT_LEVEL} is used."));
    } else if requested.iter().any(|level| (1..=3).contains(level) && !honored.contains(level)) {
        let supported: Vec<_> = honored.iter().map(ToString::to_string).collect();
        notes.push(format!("These conformance levels are supported: {}.", supported.join(", ")));
    }
    honored
}

/// Returns the extensions that both sides support. Rejects two extensions with the same prefix,
/// because their data could not be distinguished (§7.3.1, C-G8).
pub(super) fn extensions(
    requested: Option<&[String]>,
    offered: &[Extension],
    notes: &mut NegotiationNotes,
) -> Result<Vec<Extension>, SubscriptionRejected> {
    let requested = requested.unwrap_or_default();
    let mut honored: Vec<Extension> = Vec::new();
    for extension in offered.iter().filter(|it| requested.iter().any(|uri| uri == it.uri())) {
        if honored.iter().any(|it| it.uri() == extension.uri()) || honored.len() == MAX_EXTENSIONS {
            continue;
        }
        if let Some(other) = honored.iter().find(|it| it.prefix() == extension.prefix()) {
            return Err(incompatible(format!(
                "Two of the requested extensions have the prefix {}: {}. Request only one of them.",
                extension.prefix(),
                join_names([other.uri(), extension.uri()])
            )));
        }
        honored.push(extension.clone());
    }
    let is_unknown = |uri: &&str| is_uri(uri) && offered.iter().all(|it| it.uri() != *uri);
    let unknown: Vec<_> = requested.iter().map(String::as_str).filter(is_unknown).collect();
    if !unknown.is_empty() {
        notes.push(format!("These extensions are not supported: {}.", join_names(unknown)));
    }
    honored.sort_unstable();
    Ok(honored)
}

pub(super) fn pace(requested: Option<u64>, notes: &mut NegotiationNotes) -> Option<u64> {
    let honored = requested.map(|pace| pace.clamp(PACE_WPM_RANGE.0, PACE_WPM_RANGE.1));
    if honored != requested {
        notes
            .push(format!("pace_wpm was limited to the range {} to {}.", PACE_WPM_RANGE.0, PACE_WPM_RANGE.1));
    }
    honored
}

/// Returns the requested capabilities of the extensions that both sides support. Each is an object
/// under the extension's prefix. Other unknown members are ignored, whatever their value (§5.3.2,
/// C-C10).
pub(super) fn extension_capabilities(
    requested: &Members,
    previous: Option<&Terms>,
    extensions: &[Extension],
    notes: &mut NegotiationNotes,
) -> Members {
    let is_common_prefix = |name: &str| extensions.iter().any(|extension| extension.prefix() == name);
    let mut capabilities = BTreeMap::new();
    // Keeps the previous capabilities, unless the prefix now belongs to another extension.
    if let Some(previous) = previous {
        for extension in previous.extensions.iter().filter(|extension| extensions.contains(extension)) {
            capabilities.extend(
                previous.extension_capability(extension.prefix()).map(|value| (extension.prefix(), value)),
            );
        }
    }
    let mut ignored = Vec::new();
    for member in requested.iter().filter(|member| known_capability(member.name()).is_none()) {
        let value = member.value();
        let is_small_object = value.as_str().starts_with('{') && value.as_str().len() <= MAX_EXTENSION_BYTES;
        if is_common_prefix(member.name()) && is_small_object && is_interoperable(value) {
            capabilities.insert(member.name(), value);
        } else if is_prefix(member.name()) {
            ignored.push(member.name());
        }
    }
    if !ignored.is_empty() {
        notes.push(format!("These capabilities are ignored: {}.", join_names(ignored)));
    }
    let mut members = Members::default();
    for (name, value) in capabilities {
        members.set(name, value.clone());
    }
    members
}

fn incompatible(message: impl Into<String>) -> SubscriptionRejected {
    SubscriptionRejected::new(ReasonCode::CapabilitiesIncompatible, message)
}
