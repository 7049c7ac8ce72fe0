//! Building terms from requested capabilities.

use super::narrow;
use super::notes::NegotiationNotes;
use super::offer::Offer;
use super::terms::Terms;
use crate::message::{Capabilities, ReasonCode, SubscriptionRejected};

/// Builds the terms for the requested capabilities. An absent capability keeps its value from
/// `previous` (§5.7.1), or gets its default (§5.3.1).
pub(super) fn build_terms(
    requested: &Capabilities,
    previous: Option<&Terms>,
    version: &str,
    offer: &Offer,
    notes: &mut NegotiationNotes,
) -> Result<Terms, SubscriptionRejected> {
    let requested = narrow::drop_unreadable(requested, notes);
    // Returns the previous terms, unless the capability was requested.
    let previous_unless = |is_requested: bool| previous.filter(|_| !is_requested);

    let max_events_per_second = match previous_unless(requested.max_events_per_second.is_some()) {
        Some(previous) => previous.max_events_per_second,
        None => narrow::rate(requested.max_events_per_second, offer.max_events_per_second, notes)?,
    };
    let verbosity = match previous_unless(requested.preferred_verbosity.is_some()) {
        Some(previous) => previous.verbosity.clone(),
        None => narrow::verbosity(requested.preferred_verbosity, requested.cognitive_load.as_ref()),
    };
    let languages = match previous_unless(requested.languages.is_some()) {
        Some(previous) => previous.languages.clone(),
        None => narrow::languages(requested.languages.as_deref(), &offer.languages, notes),
    };
    // Permissions are not part of the terms. If this subscriber is no longer permitted to answer,
    // it loses that capability even though it requested no change.
    let permitted = (offer.answers_confirmations, offer.answers_clarifications);
    let answers_confirmations = match previous_unless(requested.supports_confirmation_reply.is_some()) {
        Some(previous) => previous.answers_confirmations && permitted.0,
        None => narrow::reply(requested.supports_confirmation_reply, permitted.0, "Confirmations", notes),
    };
    let answers_clarifications = match previous_unless(requested.supports_clarification_reply.is_some()) {
        Some(previous) => previous.answers_clarifications && permitted.1,
        None => narrow::reply(requested.supports_clarification_reply, permitted.1, "Clarifications", notes),
    };
    let boundaries = match previous_unless(requested.coalesce_boundaries.is_some()) {
        Some(previous) => previous.boundaries.clone(),
        None => narrow::boundaries(requested.coalesce_boundaries.as_deref(), &offer.boundaries, notes)?,
    };
    let filters = match previous_unless(requested.event_filters.is_some()) {
        Some(previous) => previous.filters.clone(),
        None => narrow::filters(requested.event_filters.as_ref(), notes)?,
    };
    let levels = match previous_unless(requested.supported_conformance_levels.is_some()) {
        Some(previous) => previous.levels.clone(),
        None => narrow::levels(requested.supported_conformance_levels.as_deref(), &offer.levels, notes),
    };
    let extensions = match previous_unless(requested.supported_extensions.is_some()) {
        Some(previous) => previous.extensions.clone(),
        None => narrow::extensions(requested.supported_extensions.as_deref(), &offer.extensions, notes)?,
    };
    let cognitive_load = match previous_unless(requested.cognitive_load.is_some()) {
        Some(previous) => previous.cognitive_load.clone(),
        None => narrow::cognitive_load(requested.cognitive_load),
    };
    let pace_wpm = match previous_unless(requested.pace_wpm.is_some()) {
        Some(previous) => previous.pace_wpm,
        None => narrow::pace(requested.pace_wpm, notes),
    };
    let signed_manifests_only = match previous_unless(requested.accept_signed_manifests_only.is_some()) {
        Some(previous) => previous.signed_manifests_only,
        None => requested.accept_signed_manifests_only == Some(true),
    };
    if signed_manifests_only && offer.well_formed_signed_manifest().is_none() {
        let message = "A signed manifest was requested, but none is available.";
        return Err(SubscriptionRejected::new(ReasonCode::ManifestSignatureRequired, message));
    }
    let extension_capabilities =
        narrow::extension_capabilities(&requested.other, previous, &extensions, notes);
    Ok(Terms {
        version: version.to_owned(),
        max_events_per_second,
        verbosity,
        languages,
        answers_confirmations,
        answers_clarifications,
        boundaries,
        filters,
        levels,
        extensions,
        cognitive_load,
        pace_wpm,
        signed_manifests_only,
        extension_capabilities,
    })
}
