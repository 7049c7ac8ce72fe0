//! The connection to a hub over HTTP and SSE, WebSocket, gRPC, a Unix socket or the standard streams of a program. It reconnects by itself.
//!
//! - `address`: the hub's address.
//! - `http`: one request and its response.
//! - `connection_error`: the errors.
//! - `manifest`: fetches and checks the hub's manifest.
//! - `direct`: one connection without reconnecting, for programs that examine a producer.
//! - `follow`: subscribes, receives and reconnects; HTTP and SSE.
//! - `message_transport`: the transports that carry messages in both directions.
//! - `message_flow`: subscribes, receives and reconnects on such a transport.
//! - `outgoing`: the queue of messages to the hub on such a transport.

mod address;
mod connection_error;
mod direct;
mod follow;
mod http;
mod manifest;
mod message_flow;
mod message_transport;
mod outgoing;

pub use address::{Address, AddressError};
pub use connection_error::ConnectionError;
pub use direct::{Acknowledgement, DirectConnection, fetch_manifest};
pub use follow::{ConnectionEvent, ConnectionLoss, SubscribeContext, follow};

use aaep::SubscriptionId;
use aaep::json::{RawJson, Tape, write_object};
use aaep::message::{
    Boundary, Capabilities, EventFilters, Message, SubscriptionAccepted, SubscriptionClose,
    SubscriptionRenegotiate, SubscriptionRequest,
};

use crate::Preferences;
use address::HubTransport;

/// Why a message could not be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SendError(pub ConnectionError);

/// Sends a reply or another message to the hub. Over HTTP, this is a request of its own. If it succeeds, the hub is reachable, so a lost
/// connection is retried immediately. On the other transports, the message is written to the connection that [`follow`] has open
/// for a clone of this address.
pub async fn send(address: &Address, message: &str) -> Result<(), SendError> {
    if address.transport != HubTransport::Sse {
        return address.outgoing.send(message).await.map_err(SendError);
    }
    match http::post(address, address.messages_path, message).await {
        Ok(response) if response.status / 100 == 2 => {
            address.retry_now();
            Ok(())
        }
        Ok(response) => Err(SendError(ConnectionError::UnexpectedStatus(response.status))),
        Err(error) => Err(SendError(error)),
    }
}

/// Closes a subscription. Over gRPC, it also waits until the hub has ended the call, because HTTP/2 buffers what is sent.
pub async fn unsubscribe(address: &Address, subscription: &SubscriptionId) -> Result<(), SendError> {
    send(address, &close_message(subscription)).await?;
    #[cfg(feature = "grpc")]
    if address.transport == HubTransport::Grpc {
        address.outgoing.closed().await;
    }
    Ok(())
}

/// Creates the subscription request for these preferences. `signed_only` requires a signed manifest.
pub fn subscription_request(
    preferences: &Preferences,
    signed_only: bool,
    context: &SubscribeContext,
) -> String {
    let mut requested = if context.requests_minimum {
        required_capabilities(preferences)
    } else {
        all_capabilities(preferences)
    };
    if !context.requests_minimum {
        requested.max_events_per_second = context.max_events_per_second(preferences.max_events_per_second);
        requested.supported_extensions = Some(vec![SAYSO_EXTENSION.to_owned()]);
    }
    if let Some(extension) = own_capabilities(context, true) {
        requested.other.set(SAYSO_PREFIX, extension);
    }
    requested.accept_signed_manifests_only = signed_only.then_some(true);
    let request = SubscriptionRequest::new("1.0.0", "sayso-listen", requested);
    Message::SubscriptionRequest(request).to_json()
}

/// The extension in which the hub reports the outcomes of questions.
const SAYSO_EXTENSION: &str = "urn:sayso:context:v1";
/// The member that contains sayso's own capabilities.
const SAYSO_PREFIX: &str = "sayso";

/// Creates the subscription request of a recorder: every event as the agent sent it, in one verbosity and these
/// languages.
///
/// A hub sends questions only to subscribers that declare that they can answer them (C-C1). A recorder never answers: it sets
/// `can_reply` only to receive the questions. After a lost connection it resumes, if the hub supports that.
pub fn recording_request(preferences: &Preferences, can_reply: bool, context: &SubscribeContext) -> String {
    let mut requested = all_capabilities(preferences);
    requested.supports_confirmation_reply = Some(can_reply);
    requested.supports_clarification_reply = Some(can_reply);
    if !can_reply {
        requested.supported_conformance_levels = Some(vec![1]);
    }
    requested.coalesce_boundaries = Some(vec![
        Boundary::None,
        Boundary::Word,
        Boundary::Sentence,
        Boundary::Paragraph,
        Boundary::Completion,
    ]);
    let mut filters = EventFilters::new();
    filters.include = Some(vec!["*".to_owned()]);
    requested.event_filters = Some(filters);
    if let Some(extension) = own_capabilities(context, false) {
        requested.other.set(SAYSO_PREFIX, extension);
    }
    let request = SubscriptionRequest::new("1.0.0", "sayso-capture", requested);
    Message::SubscriptionRequest(request).to_json()
}

/// Returns the capabilities that only a sayso hub supports: reporting resume positions, and starting after a given one.
fn own_capabilities(context: &SubscribeContext, wants_handoffs: bool) -> Option<RawJson> {
    let wants_nothing = !wants_handoffs && !context.wants_positions && context.after_event_id.is_none();
    if context.requests_minimum || wants_nothing {
        return None;
    }
    let extension = write_object(|writer| {
        if wants_handoffs {
            writer.key("handoffs").boolean(true);
        }
        if context.wants_positions {
            writer.key("positions").boolean(true);
        }
        if let Some(after) = &context.after_event_id {
            writer.key("after").text(after);
        }
    });
    RawJson::parse(&extension).ok()
}

/// Whether the hub lets the listener take over from agents.
pub(crate) fn grants_handoffs(accepted: &SubscriptionAccepted) -> bool {
    let Some(granted) = accepted.honored_capabilities.other.get(SAYSO_PREFIX) else { return false };
    let mut tape = Tape::default();
    let Ok(doc) = tape.read(granted.as_str()) else { return false };
    doc.root().member("handoffs").and_then(|value| value.as_bool()) == Some(true)
}

/// Creates a request to change a subscription.
pub fn renegotiate_message(subscription: &SubscriptionId, preferences: &Preferences) -> String {
    let message = SubscriptionRenegotiate::new(subscription.clone(), all_capabilities(preferences));
    Message::SubscriptionRenegotiate(message).to_json()
}

/// Parses a message with which the hub closes a subscription. Returns `None` for every other message.
fn parse_close(text: &str) -> Option<SubscriptionClose> {
    if !text.contains("subscription.close") {
        return None;
    }
    match Message::parse(text)? {
        Message::SubscriptionClose(close) => Some(close),
        _ => None,
    }
}

/// Creates the message that closes a subscription.
pub fn close_message(subscription: &SubscriptionId) -> String {
    let mut close = SubscriptionClose::new(subscription.clone());
    close.reason_code = Some("subscriber_shutdown".to_owned());
    Message::SubscriptionClose(close).to_json()
}

fn all_capabilities(preferences: &Preferences) -> Capabilities {
    let mut requested = required_capabilities(preferences);
    requested.max_events_per_second = preferences.max_events_per_second;
    requested.preferred_verbosity = Some(preferences.verbosity.clone());
    requested.coalesce_boundaries = Some(vec![Boundary::Sentence, Boundary::Completion]);
    requested
}

/// Returns the capabilities without which a person cannot use the hub. The listener can do everything else itself.
fn required_capabilities(preferences: &Preferences) -> Capabilities {
    let mut requested = Capabilities::new();
    requested.languages = Some(preferences.languages.clone());
    requested.supports_confirmation_reply = Some(true);
    requested.supports_clarification_reply = Some(true);
    requested.supported_conformance_levels = Some(vec![1, 2, 3]);
    requested
}

#[cfg(test)]
mod tests {
    mod reconnect;

    use super::*;
    use aaep::event::Verbosity;

    #[test]
    fn a_request_declares_the_persons_preferences() {
        let preferences = Preferences {
            verbosity: Verbosity::Terse,
            languages: vec!["yo".to_owned()],
            max_events_per_second: Some(5),
            ..Preferences::default()
        };
        let first = SubscribeContext::default();
        assert_eq!(
            subscription_request(&preferences, false, &first),
            r#"{"type":"subscription.request","aaep_version":"1.0.0","subscriber_id":"sayso-listen","capabilities":{"max_events_per_second":5,"preferred_verbosity":"terse","languages":["yo"],"supports_confirmation_reply":true,"supports_clarification_reply":true,"coalesce_boundaries":["sentence","completion"],"supported_conformance_levels":[1,2,3],"supported_extensions":["urn:sayso:context:v1"],"sayso":{"handoffs":true}}}"#
        );
        let resuming = SubscribeContext {
            after_event_id: Some("evt_1".to_owned()),
            wants_positions: true,
            ..SubscribeContext::default()
        };
        let request = subscription_request(&preferences, false, &resuming);
        assert!(
            request.contains(r#""sayso":{"handoffs":true,"positions":true,"after":"evt_1"}"#),
            "{request}"
        );
        let over_sse = SubscribeContext { wants_positions: false, ..resuming };
        let request = subscription_request(&preferences, false, &over_sse);
        assert!(request.contains(r#""sayso":{"handoffs":true,"after":"evt_1"}"#), "{request}");
        let minimal = SubscribeContext { requests_minimum: true, ..first };
        assert_eq!(
            subscription_request(&preferences, true, &minimal),
            r#"{"type":"subscription.request","aaep_version":"1.0.0","subscriber_id":"sayso-listen","capabilities":{"languages":["yo"],"supports_confirmation_reply":true,"supports_clarification_reply":true,"supported_conformance_levels":[1,2,3],"accept_signed_manifests_only":true}}"#
        );
    }

    #[test]
    fn a_slow_consumer_requests_a_lower_rate() {
        let rates = |rate| {
            (0..9)
                .map(|closes| {
                    SubscribeContext { slow_consumer_closes: closes, ..SubscribeContext::default() }
                        .max_events_per_second(rate)
                })
                .collect::<Vec<_>>()
        };
        let some = |rates: &[u64]| rates.iter().map(|rate| Some(*rate)).collect::<Vec<_>>();
        assert_eq!(rates(None)[..4], [None, Some(50), Some(25), Some(12)]);
        assert_eq!(rates(Some(20)), some(&[20, 10, 5, 2, 1, 1, 1, 1, 1]));
        assert_eq!(
            SubscribeContext { slow_consumer_closes: u32::MAX, ..SubscribeContext::default() }
                .max_events_per_second(Some(9)),
            Some(1)
        );
    }
}
