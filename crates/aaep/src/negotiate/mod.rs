//! The handshake from the producer's side (chapter 5): matches a request with the offer and returns
//! the terms.
//!
//! [`answer_request`] handles a `subscription.request`, [`renegotiate`] a change of terms. Both
//! return [`Terms`] and the message to send. Every request gets a response. The honored
//! capabilities must not be wider than the requested ones (§5.4.4, C-C7), and all of them are
//! stated explicitly (C-C6). Unknown names and values are ignored; they are never a reason for a
//! rejection (§5.3.2, C-C10).
//!
//! ```
//! use aaep::{SubscriptionId, event::Producer, message::{Capabilities, SubscriptionRequest}};
//! use aaep::negotiate::{Offer, answer_request};
//!
//! let mut offer = Offer::new(Producer::new("bank"));
//! offer.max_events_per_second = Some(20);
//! let mut requested = Capabilities::new();
//! requested.max_events_per_second = Some(50);
//! let request = SubscriptionRequest::new("1.0.0", "screen-reader", requested);
//!
//! let id = SubscriptionId::parse("sub_1").unwrap();
//! let (accepted, terms) = answer_request(&request, &offer, id).unwrap();
//! assert_eq!(terms.max_events_per_second, Some(20));
//! assert_eq!(accepted.honored_capabilities, terms.capabilities());
//! ```

mod build_terms;
pub mod language;
mod narrow;
mod notes;
mod offer;
mod terms;
mod version;

#[cfg(test)]
mod tests;

pub use offer::{Extension, Offer};
pub use terms::{HonoredFilters, Terms};

use crate::grammar::{is_uri, is_version};
use crate::id::SubscriptionId;
use crate::message::{
    ReasonCode, SubscriptionAccepted, SubscriptionRejected, SubscriptionRenegotiate, SubscriptionRequest,
};
use notes::{NegotiationNotes, join_names};

/// Answers a request (§5.4, §5.5). Returns the message to send and the terms, or the rejection.
pub fn answer_request(
    request: &SubscriptionRequest,
    offer: &Offer,
    subscription_id: SubscriptionId,
) -> Result<(SubscriptionAccepted, Terms), SubscriptionRejected> {
    let Some(version) = version::highest_common(&request.aaep_version, &offer.versions) else {
        let supported = join_names(offer.versions.iter().map(String::as_str).filter(|text| is_version(text)));
        let message = format!("The requested version is not supported. Supported: {supported}.");
        return Err(SubscriptionRejected::new(ReasonCode::VersionUnsupported, message));
    };
    let mut notes = NegotiationNotes::default();
    if version != request.aaep_version {
        notes.push(format!("AAEP {version} is used, the highest version that both sides support."));
    }
    let terms = build_terms::build_terms(&request.capabilities, None, version, offer, &mut notes)?;
    Ok((build_accepted(subscription_id, offer, &terms, notes), terms))
}

/// Answers a renegotiation (§5.7). Absent capabilities stay as they are, even if the offer has
/// become smaller; only the right to answer can be withdrawn. The requested capabilities are
/// negotiated again and may become wider. A rejection ends the subscription.
pub fn renegotiate(
    terms: &Terms,
    request: &SubscriptionRenegotiate,
    offer: &Offer,
) -> Result<(SubscriptionAccepted, Terms), SubscriptionRejected> {
    let mut notes = NegotiationNotes::default();
    let terms =
        build_terms::build_terms(&request.capabilities, Some(terms), &terms.version, offer, &mut notes)?;
    Ok((build_accepted(request.subscription_id.clone(), offer, &terms, notes), terms))
}

fn build_accepted(
    subscription_id: SubscriptionId,
    offer: &Offer,
    terms: &Terms,
    notes: NegotiationNotes,
) -> SubscriptionAccepted {
    let mut accepted = SubscriptionAccepted::new(
        subscription_id,
        terms.version.clone(),
        offer.producer.clone(),
        terms.capabilities(),
    );
    accepted.manifest_uri = offer.manifest_uri.clone().filter(|uri| is_uri(uri));
    // C-F2: the response contains the signed manifest if it was required.
    accepted.signed_manifest =
        offer.well_formed_signed_manifest().filter(|_| terms.signed_manifests_only).map(str::to_owned);
    accepted.negotiation_notes = notes.finish();
    accepted
}
