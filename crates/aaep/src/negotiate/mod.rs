//! The handshake from the producer's side (chapter 5): a request against what can be given, and the terms that hold.
//!
//! [`answer`] takes a `subscription.request`, [`renegotiate`] a change of terms. Each gives [`Terms`], and the message that
//! is sent. Every request is answered. What is
//! honored is never wider than what was asked for, in no capability (§5.4.4, C-C7), and is said in full, so that
//! nobody has to guess (C-C6). Names and words that this version does not know are ignored, and never a reason to
//! refuse (§5.3.2, C-C10).
//!
//! ```
//! use aaep::{SubscriptionId, event::Producer, message::{Capabilities, SubscriptionRequest}};
//! use aaep::negotiate::{Offer, answer};
//!
//! let mut offer = Offer::new(Producer::new("bank"));
//! offer.max_events_per_second = Some(20);
//! let mut wish = Capabilities::new();
//! wish.max_events_per_second = Some(50);
//! let request = SubscriptionRequest::new("1.0.0", "screen-reader", wish);
//!
//! let id = SubscriptionId::parse("sub_1").unwrap();
//! let (accepted, terms) = answer(&request, &offer, id).unwrap();
//! assert_eq!(terms.max_events_per_second, Some(20));
//! assert_eq!(accepted.honored_capabilities, terms.capabilities());
//! ```

pub mod language;
mod narrow;
mod notes;
mod offer;
mod settle;
mod terms;
mod version;

#[cfg(test)]
mod tests;

pub use offer::{Extension, Offer};
pub use terms::{Filters, Terms};

use crate::form::{is_uri, is_version};
use crate::id::SubscriptionId;
use crate::message::{
    ReasonCode, SubscriptionAccepted, SubscriptionRejected, SubscriptionRenegotiate, SubscriptionRequest,
};
use notes::{Notes, listed};

/// Answers a request (§5.4, §5.5): the message to send and the terms that hold from then on, or the refusal.
pub fn answer(
    request: &SubscriptionRequest,
    offer: &Offer,
    subscription_id: SubscriptionId,
) -> Result<(SubscriptionAccepted, Terms), SubscriptionRejected> {
    let Some(version) = version::common(&request.aaep_version, &offer.versions) else {
        let spoken = listed(offer.versions.iter().map(String::as_str).filter(|text| is_version(text)));
        let message = format!("The version asked for is not spoken here. Spoken: {spoken}.");
        return Err(SubscriptionRejected::new(ReasonCode::VersionUnsupported, message));
    };
    let mut notes = Notes::default();
    if version != request.aaep_version {
        notes.say(format!("AAEP {version} is spoken, the highest version that both know."));
    }
    let terms = settle::settle(&request.capabilities, None, version, offer, &mut notes)?;
    Ok((accepted(subscription_id, offer, &terms, notes), terms))
}

/// Answers a change of terms (§5.7). What it leaves out stays as it was, even where less is offered by now; what it
/// names is asked for anew, and may become wider than before. A refusal ends the subscription.
pub fn renegotiate(
    terms: &Terms,
    wish: &SubscriptionRenegotiate,
    offer: &Offer,
) -> Result<(SubscriptionAccepted, Terms), SubscriptionRejected> {
    let mut notes = Notes::default();
    let terms = settle::settle(&wish.capabilities, Some(terms), &terms.version, offer, &mut notes)?;
    Ok((accepted(wish.subscription_id.clone(), offer, &terms, notes), terms))
}

fn accepted(
    subscription_id: SubscriptionId,
    offer: &Offer,
    terms: &Terms,
    notes: Notes,
) -> SubscriptionAccepted {
    let mut accepted = SubscriptionAccepted::new(
        subscription_id,
        terms.version.clone(),
        offer.producer.clone(),
        terms.capabilities(),
    );
    accepted.manifest_uri = offer.manifest_uri.clone().filter(|uri| is_uri(uri));
    // C-F2: inside the answer whenever it was demanded.
    accepted.signed_manifest = offer.signed().filter(|_| terms.signed_manifests_only).map(str::to_owned);
    accepted.negotiation_notes = notes.finish();
    accepted
}
