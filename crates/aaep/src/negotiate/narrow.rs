//! What becomes of each capability: the smaller of what is asked for and of what can be given (§5.3.1, §5.4.4).
//!
//! Each takes what is asked for, puts the default where nothing is, and says in a note what it gives less. A wish comes
//! from a stranger: what is beyond the schema's limits is never sent back.

use std::collections::BTreeMap;

use super::language::serves;
use super::notes::{Notes, listed};
use super::offer::{ALL_BOUNDARIES, Extension};
use super::terms::{Filters, Terms};
use crate::check::is_sound;
use crate::event::{CoalesceHint, EventType, Verbosity};
use crate::form::{is_filter_pattern, is_language_tag, is_prefix, is_uri};
use crate::message::{
    Boundary, Capabilities, CognitiveLoad, DEFAULT_BOUNDARIES, DEFAULT_INCLUDE, DEFAULT_LANGUAGE,
    DEFAULT_LEVEL, EventFilters, Level, ReasonCode, SubscriptionRejected,
};
use crate::record::Members;

const FASTEST: u64 = 100_000;
const MOST_LANGUAGES: usize = 32;
const MOST_EXTENSIONS: usize = 64;
const PATTERN_CHARACTERS: usize = 256;
const PACE: (u64, u64) = (50, 1000);

// Ours, because a wish is kept as long as its subscription and looked at for every event (design, decision 13).
const MOST_PATTERNS: usize = 256;
const TAG_BYTES: usize = 64;
const EXTENSION_BYTES: usize = 4096;

/// A wish without what cannot be read: a known capability whose value has another form, or is a word that this version
/// does not know (C-J2), counts as not said. `null` is no reset either (digest, section 19).
pub(super) fn understood(wish: &Capabilities, notes: &mut Notes) -> Capabilities {
    let mut wish = wish.clone();
    let mut unread: Vec<&str> = wish.other.iter().filter_map(|member| known(member.name())).collect();
    if matches!(wish.preferred_verbosity, Some(Verbosity::Unknown(_))) {
        wish.preferred_verbosity = None;
        unread.push("preferred_verbosity");
    }
    if matches!(wish.cognitive_load, Some(CognitiveLoad::Unknown(_))) {
        wish.cognitive_load = None;
        unread.push("cognitive_load");
    }
    if wish.event_filters.as_ref().is_some_and(|filters| !filters.other.is_empty()) {
        unread.push("part of event_filters");
    }
    unread.sort_unstable();
    unread.dedup();
    if !unread.is_empty() {
        notes.say(format!("Not understood, and so taken as not said: {}.", unread.join(", ")));
    }
    wish
}

fn known(name: &str) -> Option<&'static str> {
    Capabilities::FIELDS.iter().map(|field| field.name).find(|field| *field == name)
}

pub(super) fn rate(
    asked: Option<u64>,
    most: Option<u64>,
    notes: &mut Notes,
) -> Result<Option<u64>, SubscriptionRejected> {
    if asked == Some(0) {
        return Err(incompatible("max_events_per_second must be at least 1."));
    }
    // Where nothing is asked for and nothing is limited here, there is no limit.
    let most = most.map(|most| most.clamp(1, FASTEST)).or(asked.map(|_| FASTEST));
    let given = asked.into_iter().chain(most).min();
    if given != asked
        && let Some(given) = given
    {
        notes.say(format!("At most {given} events a second are sent here."));
    }
    Ok(given)
}

pub(super) fn verbosity(asked: Option<Verbosity>) -> Verbosity {
    asked.unwrap_or(Verbosity::Normal)
}

pub(super) fn cognitive_load(asked: Option<CognitiveLoad>) -> CognitiveLoad {
    asked.unwrap_or(CognitiveLoad::Medium)
}

/// Some of the tags that were asked for, letter for letter: `en` stays `en` where `en-US` is what serves it (C-C8).
pub(super) fn languages(asked: Option<&[String]>, offered: &[String], notes: &mut Notes) -> Vec<String> {
    let default = [DEFAULT_LANGUAGE.to_owned()];
    let asked = asked.unwrap_or(&default);
    let can_be_had = |tag: &str| {
        tag.len() <= TAG_BYTES && is_language_tag(tag) && (offered.is_empty() || serves(offered, tag))
    };
    let mut given: Vec<String> = Vec::new();
    for tag in asked.iter().filter(|tag| can_be_had(tag)) {
        if given.len() < MOST_LANGUAGES && !given.contains(tag) {
            given.push(tag.clone());
        }
    }
    let missing: Vec<_> =
        asked.iter().map(String::as_str).filter(|tag| !can_be_had(tag) && is_language_tag(tag)).collect();
    if given.is_empty() {
        // C-C9: served all the same.
        notes.say(
            "No language that was asked for can be had; events come in the language they were written in.",
        );
    } else if !missing.is_empty() {
        notes.say(format!("These languages cannot be had: {}.", listed(missing)));
    }
    given
}

pub(super) fn reply(asked: Option<bool>, may: bool, what: &str, notes: &mut Notes) -> bool {
    let asked = asked == Some(true);
    if asked && !may {
        notes.say(format!("{what} cannot be answered by this subscriber."));
    }
    asked && may
}

/// At its completion an output can always be cut; where not even that was asked for, there is nothing in common (digest,
/// section 19).
pub(super) fn boundaries(
    asked: Option<&[Boundary]>,
    offered: &[Boundary],
    notes: &mut Notes,
) -> Result<Vec<Boundary>, SubscriptionRejected> {
    let asked = asked.unwrap_or(&DEFAULT_BOUNDARIES);
    let can_be_had =
        |boundary: &Boundary| *boundary == CoalesceHint::Completion || offered.contains(boundary);
    let of_both = |boundary: &Boundary| asked.contains(boundary) && can_be_had(boundary);
    let given: Vec<_> = ALL_BOUNDARIES.into_iter().filter(of_both).collect();
    if given.is_empty() {
        let here: Vec<_> = ALL_BOUNDARIES.into_iter().filter(can_be_had).collect();
        return Err(incompatible(format!(
            "None of the coalesce_boundaries that were asked for can be had. Here there are: {}.",
            listed(here.iter().map(Boundary::as_str))
        )));
    }
    let missing = ALL_BOUNDARIES.into_iter().filter(|it| asked.contains(it) && !can_be_had(it));
    let missing: Vec<_> = missing.collect();
    if !missing.is_empty() {
        let missing = listed(missing.iter().map(Boundary::as_str));
        notes.say(format!("Output is not cut here at these boundaries: {missing}."));
    }
    Ok(given)
}

pub(super) fn filters(
    asked: Option<&EventFilters>,
    notes: &mut Notes,
) -> Result<Filters, SubscriptionRejected> {
    let default = [DEFAULT_INCLUDE.to_owned()];
    let include = asked.and_then(|asked| asked.include.as_deref()).unwrap_or(&default);
    let exclude = asked.and_then(|asked| asked.exclude.as_deref()).unwrap_or_default();
    if include.len().max(exclude.len()) > MOST_PATTERNS {
        return Err(incompatible(format!("event_filters may hold at most {MOST_PATTERNS} patterns a list.")));
    }
    // C-A3: the full form of a core type is the compact one.
    let lawful = |pattern: &String| {
        (is_filter_pattern(pattern) && !pattern.is_empty()).then(|| EventType::compact(pattern).into_owned())
    };
    let is_short = |pattern: &String| pattern.chars().count() <= PATTERN_CHARACTERS;
    // What is too long to be sent back keeps out more, never less, and lets in nothing.
    let cut = |pattern: String| {
        if is_short(&pattern) {
            return pattern;
        }
        pattern.chars().take(PATTERN_CHARACTERS - 1).chain(['*']).collect()
    };
    let asked = include.len() + exclude.len();
    let mut include: Vec<_> = include.iter().filter_map(lawful).filter(is_short).collect();
    let mut exclude: Vec<_> = exclude.iter().filter_map(lawful).map(cut).collect();
    if include.len() + exclude.len() < asked {
        notes.say(
            "In event_filters, what is neither a type nor a beginning with * at its end matches nothing.",
        );
    }
    for list in [&mut include, &mut exclude] {
        list.sort_unstable();
        list.dedup();
    }
    Ok(Filters { include, exclude })
}

pub(super) fn levels(asked: Option<&[Level]>, offered: &[Level], notes: &mut Notes) -> Vec<Level> {
    let asked = asked.unwrap_or(&[DEFAULT_LEVEL]);
    let given: Vec<_> = (1..=3).filter(|level| asked.contains(level) && offered.contains(level)).collect();
    if given.is_empty() {
        // Like C-C9: whoever keeps a higher level copes with a lower one.
        notes.say(format!("No conformance level in common; level {DEFAULT_LEVEL} is kept."));
    } else if asked.iter().any(|level| (1..=3).contains(level) && !given.contains(level)) {
        let kept: Vec<_> = given.iter().map(ToString::to_string).collect();
        notes.say(format!("These conformance levels are kept here: {}.", kept.join(", ")));
    }
    given
}

/// The extensions that are asked for and known. Two that share a prefix cannot be told apart (§7.3.1, C-G8).
pub(super) fn extensions(
    asked: Option<&[String]>,
    offered: &[Extension],
    notes: &mut Notes,
) -> Result<Vec<Extension>, SubscriptionRejected> {
    let asked = asked.unwrap_or_default();
    let mut given: Vec<Extension> = Vec::new();
    for extension in offered.iter().filter(|it| asked.iter().any(|uri| uri == it.uri())) {
        if given.iter().any(|it| it.uri() == extension.uri()) || given.len() == MOST_EXTENSIONS {
            continue;
        }
        if let Some(other) = given.iter().find(|it| it.prefix() == extension.prefix()) {
            return Err(incompatible(format!(
                "Two of the extensions that were asked for have the prefix {}: {}. Ask for one of them.",
                extension.prefix(),
                listed([other.uri(), extension.uri()])
            )));
        }
        given.push(extension.clone());
    }
    let strange = |uri: &&str| is_uri(uri) && offered.iter().all(|it| it.uri() != *uri);
    let strangers: Vec<_> = asked.iter().map(String::as_str).filter(strange).collect();
    if !strangers.is_empty() {
        notes.say(format!("These extensions are not known here: {}.", listed(strangers)));
    }
    given.sort_unstable();
    Ok(given)
}

pub(super) fn pace(asked: Option<u64>, notes: &mut Notes) -> Option<u64> {
    let given = asked.map(|pace| pace.clamp(PACE.0, PACE.1));
    if given != asked {
        notes.say(format!("pace_wpm is taken as the nearest of {} to {}.", PACE.0, PACE.1));
    }
    given
}

/// What is asked of extensions that both know: objects under their prefixes. All else that is not known is ignored,
/// whatever its form (§5.3.2, C-C10).
pub(super) fn extension_capabilities(
    asked: &Members,
    before: Option<&Terms>,
    extensions: &[Extension],
    notes: &mut Notes,
) -> Members {
    let is_ours = |name: &str| extensions.iter().any(|extension| extension.prefix() == name);
    let mut kept = BTreeMap::new();
    // Not what was asked of another extension with the same prefix.
    if let Some(before) = before {
        for extension in before.extensions.iter().filter(|extension| extensions.contains(extension)) {
            kept.extend(before.extension(extension.prefix()).map(|value| (extension.prefix(), value)));
        }
    }
    let mut ignored = Vec::new();
    for member in asked.iter().filter(|member| known(member.name()).is_none()) {
        let value = member.value();
        let is_small_object = value.as_str().starts_with('{') && value.as_str().len() <= EXTENSION_BYTES;
        if is_ours(member.name()) && is_small_object && is_sound(value) {
            kept.insert(member.name(), value);
        } else if is_prefix(member.name()) {
            ignored.push(member.name());
        }
    }
    if !ignored.is_empty() {
        notes.say(format!("These capabilities are ignored here: {}.", listed(ignored)));
    }
    let mut members = Members::default();
    for (name, value) in kept {
        members.set(name, value.clone());
    }
    members
}

fn incompatible(message: impl Into<String>) -> SubscriptionRejected {
    SubscriptionRejected::new(ReasonCode::CapabilitiesIncompatible, message)
}
