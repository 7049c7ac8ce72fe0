//! One wish, capability by capability, into terms.

use super::narrow;
use super::notes::Notes;
use super::offer::Offer;
use super::terms::Terms;
use crate::message::{Capabilities, ReasonCode, SubscriptionRejected};

/// The terms that a wish gets. What it does not say stays as it was `before` (§5.7.1), and without a before gets its
/// default (§5.3.1).
pub(super) fn settle(
    wish: &Capabilities,
    before: Option<&Terms>,
    version: &str,
    offer: &Offer,
    notes: &mut Notes,
) -> Result<Terms, SubscriptionRejected> {
    let wish = narrow::understood(wish, notes);
    // Terms that stay, for a capability of which nothing was said.
    let kept = |said: bool| before.filter(|_| !said);

    let max_events_per_second = match kept(wish.max_events_per_second.is_some()) {
        Some(before) => before.max_events_per_second,
        None => narrow::rate(wish.max_events_per_second, offer.max_events_per_second, notes)?,
    };
    let verbosity = match kept(wish.preferred_verbosity.is_some()) {
        Some(before) => before.verbosity.clone(),
        None => narrow::verbosity(wish.preferred_verbosity),
    };
    let languages = match kept(wish.languages.is_some()) {
        Some(before) => before.languages.clone(),
        None => narrow::languages(wish.languages.as_deref(), &offer.languages, notes),
    };
    // Whoever may no longer answer is not kept as one who may: a right is no term.
    let may = (offer.confirmation_reply, offer.clarification_reply);
    let confirmation_reply = match kept(wish.supports_confirmation_reply.is_some()) {
        Some(before) => before.confirmation_reply && may.0,
        None => narrow::reply(wish.supports_confirmation_reply, may.0, "Confirmations", notes),
    };
    let clarification_reply = match kept(wish.supports_clarification_reply.is_some()) {
        Some(before) => before.clarification_reply && may.1,
        None => narrow::reply(wish.supports_clarification_reply, may.1, "Clarifications", notes),
    };
    let boundaries = match kept(wish.coalesce_boundaries.is_some()) {
        Some(before) => before.boundaries.clone(),
        None => narrow::boundaries(wish.coalesce_boundaries.as_deref(), &offer.boundaries, notes)?,
    };
    let filters = match kept(wish.event_filters.is_some()) {
        Some(before) => before.filters.clone(),
        None => narrow::filters(wish.event_filters.as_ref(), notes)?,
    };
    let levels = match kept(wish.supported_conformance_levels.is_some()) {
        Some(before) => before.levels.clone(),
        None => narrow::levels(wish.supported_conformance_levels.as_deref(), &offer.levels, notes),
    };
    let extensions = match kept(wish.supported_extensions.is_some()) {
        Some(before) => before.extensions.clone(),
        None => narrow::extensions(wish.supported_extensions.as_deref(), &offer.extensions, notes)?,
    };
    let cognitive_load = match kept(wish.cognitive_load.is_some()) {
        Some(before) => before.cognitive_load.clone(),
        None => narrow::cognitive_load(wish.cognitive_load),
    };
    let pace_wpm = match kept(wish.pace_wpm.is_some()) {
        Some(before) => before.pace_wpm,
        None => narrow::pace(wish.pace_wpm, notes),
    };
    let signed_manifests_only = match kept(wish.accept_signed_manifests_only.is_some()) {
        Some(before) => before.signed_manifests_only,
        None => wish.accept_signed_manifests_only == Some(true),
    };
    if signed_manifests_only && offer.signed().is_none() {
        let message = "Only signed manifests were asked for, and there is none here.";
        return Err(SubscriptionRejected::new(ReasonCode::ManifestSignatureRequired, message));
    }
    let extension_capabilities = narrow::extension_capabilities(&wish.other, before, &extensions, notes);
    Ok(Terms {
        version: version.to_owned(),
        max_events_per_second,
        verbosity,
        languages,
        confirmation_reply,
        clarification_reply,
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
