//! The way to a hub: HTTP and SSE, a connection that comes back by itself.
//!
//! - `address`: where the hub is.
//! - `http`: one request and its answer, by the crate `client`.
//! - `why`: what can be the matter.
//! - `messages`: WebSocket and Unix socket, for those who only listen.
//! - `manifest`: what a hub says that it is.
//! - `follow`: subscribes, hears, and comes back.

mod address;
mod follow;
mod http;
mod manifest;
mod messages;
mod why;

pub use address::{Address, AddressError};
pub use follow::{Asking, Heard, Lost, follow};
pub use why::Why;

use aaep::SubscriptionId;
use aaep::json::{Raw, object};
use aaep::message::{
    Boundary, Capabilities, EventFilters, Message, SubscriptionClose, SubscriptionRenegotiate,
    SubscriptionRequest,
};

use crate::Tastes;

/// A message did not arrive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotSent(pub Why);

/// Sends a reply, or another message of a listener. One that arrives shows that the hub is there: a lost connection to it is
/// tried at once.
pub async fn send(to: &Address, message: &str) -> Result<(), NotSent> {
    match http::post(to, to.messages, message).await {
        Ok(answer) if answer.status / 100 == 2 => {
            to.try_now();
            Ok(())
        }
        Ok(answer) => Err(NotSent(Why::Answered(answer.status))),
        Err(why) => Err(NotSent(why)),
    }
}

/// The request of a listener with these wishes, who listens only to whom a signed manifest proves, or to anybody.
pub fn request(tastes: &Tastes, signed_only: bool, asking: &Asking) -> String {
    let mut wish = if asking.plainly { necessities(tastes) } else { capabilities(tastes) };
    if !asking.plainly {
        wish.max_events_per_second = asking.rate(tastes.rate);
        wish.supported_extensions = Some(vec![SAYSO.to_owned()]);
    }
    wish.accept_signed_manifests_only = signed_only.then_some(true);
    let request = SubscriptionRequest::new("1.0.0", "sayso-listen", wish);
    Message::SubscriptionRequest(request).to_json()
}

/// What became of a question is told in this extension.
const SAYSO: &str = "urn:sayso:context:v1";
/// Under which its capabilities stand.
const SAYSO_PREFIX: &str = "sayso";

/// The request of one who writes down everything, as the agents cut it, in one verbosity and these languages.
///
/// Questions are given only to those who say that they can answer them (C-C1). A recorder never does; one that does not
/// say so has no questions in its recording. After a lost connection it goes on where it was, where the hub can do that.
pub fn recorder(tastes: &Tastes, says_it_answers: bool, asking: &Asking) -> String {
    let mut wish = capabilities(tastes);
    wish.supports_confirmation_reply = Some(says_it_answers);
    wish.supports_clarification_reply = Some(says_it_answers);
    if !says_it_answers {
        wish.supported_conformance_levels = Some(vec![1]);
    }
    wish.coalesce_boundaries = Some(vec![
        Boundary::None,
        Boundary::Word,
        Boundary::Sentence,
        Boundary::Paragraph,
        Boundary::Completion,
    ]);
    let mut filters = EventFilters::new();
    filters.include = Some(vec!["*".to_owned()]);
    wish.event_filters = Some(filters);
    if let Some(onward) = onward(asking) {
        wish.other.set(SAYSO_PREFIX, onward);
    }
    let request = SubscriptionRequest::new("1.0.0", "sayso-capture", wish);
    Message::SubscriptionRequest(request).to_json()
}

/// What only a hub of ours knows: to tell places, and to begin after one.
fn onward(asking: &Asking) -> Option<Raw> {
    if asking.plainly || !asking.places && asking.after.is_none() {
        return None;
    }
    let wish = object(|writer| {
        if asking.places {
            writer.key("places").boolean(true);
        }
        if let Some(after) = &asking.after {
            writer.key("after").text(after);
        }
    });
    Raw::parse(&wish).ok()
}

/// Other wishes for a subscription.
pub fn renegotiation(subscription: &SubscriptionId, tastes: &Tastes) -> String {
    let wish = SubscriptionRenegotiate::new(subscription.clone(), capabilities(tastes));
    Message::SubscriptionRenegotiate(wish).to_json()
}

/// Nobody listens any more.
pub fn farewell(subscription: &SubscriptionId) -> String {
    let mut close = SubscriptionClose::new(subscription.clone());
    close.reason_code = Some("subscriber_shutdown".to_owned());
    Message::SubscriptionClose(close).to_json()
}

fn capabilities(tastes: &Tastes) -> Capabilities {
    let mut wish = necessities(tastes);
    wish.max_events_per_second = tastes.rate;
    wish.preferred_verbosity = Some(tastes.verbosity.clone());
    wish.coalesce_boundaries = Some(vec![Boundary::Sentence, Boundary::Completion]);
    wish
}

/// What a person cannot do without; all else is done here, too.
fn necessities(tastes: &Tastes) -> Capabilities {
    let mut wish = Capabilities::new();
    wish.languages = Some(tastes.languages.clone());
    wish.supports_confirmation_reply = Some(true);
    wish.supports_clarification_reply = Some(true);
    wish.supported_conformance_levels = Some(vec![1, 2, 3]);
    wish
}

#[cfg(test)]
mod tests {
    mod reconnect;

    use super::*;
    use aaep::event::Verbosity;

    #[test]
    fn all_that_matters_to_a_person_is_declared() {
        let tastes = Tastes { verbosity: Verbosity::Terse, languages: vec!["yo".to_owned()], rate: Some(5) };
        let first = Asking::default();
        assert_eq!(
            request(&tastes, false, &first),
            r#"{"type":"subscription.request","aaep_version":"1.0.0","subscriber_id":"sayso-listen","capabilities":{"max_events_per_second":5,"preferred_verbosity":"terse","languages":["yo"],"supports_confirmation_reply":true,"supports_clarification_reply":true,"coalesce_boundaries":["sentence","completion"],"supported_conformance_levels":[1,2,3],"supported_extensions":["urn:sayso:context:v1"]}}"#
        );
        let plainly = Asking { plainly: true, ..first };
        assert_eq!(
            request(&tastes, true, &plainly),
            r#"{"type":"subscription.request","aaep_version":"1.0.0","subscriber_id":"sayso-listen","capabilities":{"languages":["yo"],"supports_confirmation_reply":true,"supports_clarification_reply":true,"supported_conformance_levels":[1,2,3],"accept_signed_manifests_only":true}}"#
        );
    }

    #[test]
    fn who_was_too_slow_asks_for_less() {
        let rates = |rate| {
            (0..9)
                .map(|times| Asking { times_slow: times, ..Asking::default() }.rate(rate))
                .collect::<Vec<_>>()
        };
        let some = |rates: &[u64]| rates.iter().map(|rate| Some(*rate)).collect::<Vec<_>>();
        assert_eq!(rates(None)[..4], [None, Some(50), Some(25), Some(12)]);
        assert_eq!(rates(Some(20)), some(&[20, 10, 5, 2, 1, 1, 1, 1, 1]));
        assert_eq!(Asking { times_slow: u32::MAX, ..Asking::default() }.rate(Some(9)), Some(1));
    }
}
