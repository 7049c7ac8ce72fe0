//! The checks of chapter 5: the manifest, and how the producer answers requests.

use std::time::Duration;

use aaep::event::Verbosity;
use aaep::json::RawJson;
use aaep::manifest::{self, ManifestDocument};
use aaep::message::{
    Boundary, Capabilities, EventFilters, Message, ReasonCode, SubscriptionAccepted, SubscriptionRequest,
};
use listen::client::{ConnectionError, fetch_manifest};
use listen::{ManifestPolicy, ManifestStatus};

use super::behaviour::Behaviour;
use super::conversation::{Conversation, SubscribeAnswer, Target};
use super::report::{CheckOutcome, CheckReport};

/// The version of AAEP that the check speaks.
const VERSION: &str = "1.0.0";
/// A version that no producer of version 1 can speak.
const FOREIGN_VERSION: &str = "9.0.0";
/// How long the check listens for events after it has closed a subscription.
const AFTER_CLOSE: Duration = Duration::from_millis(500);

/// Creates a subscription request with these capabilities.
pub(super) fn request(version: &str, capabilities: Capabilities) -> String {
    Message::SubscriptionRequest(SubscriptionRequest::new(version, "sayso-check", capabilities)).to_json()
}

/// Returns the capabilities of a listener that can do everything.
pub(super) fn full_capabilities() -> Capabilities {
    let mut capabilities = Capabilities::new();
    capabilities.preferred_verbosity = Some(Verbosity::Detailed);
    capabilities.languages = Some(vec!["en".to_owned()]);
    capabilities.supports_confirmation_reply = Some(true);
    capabilities.supports_clarification_reply = Some(true);
    capabilities.coalesce_boundaries = Some(vec![Boundary::Sentence, Boundary::Completion]);
    capabilities.supported_conformance_levels = Some(vec![1, 2, 3]);
    capabilities
}

/// Runs all checks of the handshake.
pub(super) async fn check(
    target: &Target,
    has_token: bool,
    report: &mut CheckReport,
) -> Result<(), ConnectionError> {
    let accepted = check_request(target, report).await?;
    check_manifest(target, accepted.as_deref(), report).await?;
    check_defaults(target, report).await?;
    check_terms(target, report).await?;
    check_version(target, report).await?;
    check_malformed(target, report).await?;
    check_signature_demand(target, report).await?;
    check_authentication(target, has_token, report).await
}

/// A complete request with an unknown capability is accepted.
async fn check_request(
    target: &Target,
    report: &mut CheckReport,
) -> Result<Option<Box<SubscriptionAccepted>>, ConnectionError> {
    let mut conversation = Conversation::open("request", target).await?;
    let mut capabilities = full_capabilities();
    if let Ok(unknown) = RawJson::parse(r#"{"depth":3}"#) {
        capabilities.other.set("acme", unknown);
    }
    let accepted = match conversation.subscribe(&request(VERSION, capabilities)).await? {
        SubscribeAnswer::Accepted(accepted) => Some(accepted),
        SubscribeAnswer::Rejected(rejected) if rejected.reason_code == ReasonCode::AuthenticationRequired => {
            return Err(ConnectionError::TokenRequired);
        }
        // Nothing has been answered yet, so this may not be a producer at all, or it may demand a certificate.
        SubscribeAnswer::Other(None) => return Err(ConnectionError::ClosedBeforeResponse),
        SubscribeAnswer::Rejected(rejected) => {
            // Is it the unknown capability?
            let mut again = Conversation::open("request without extension", target).await?;
            let behaviour = match again.subscribe(&request(VERSION, full_capabilities())).await? {
                SubscribeAnswer::Accepted(_) => Behaviour::UNKNOWN_CAPABILITY_IGNORED,
                _ => Behaviour::REQUEST_SERVED,
            };
            conversation.report(behaviour, &format!("rejected with {}", rejected.reason_code.as_str()));
            again.close(AFTER_CLOSE).await?;
            report.add(again, 3, CheckOutcome::Done);
            None
        }
        SubscribeAnswer::Other(answer) => {
            conversation.report(Behaviour::REQUEST_SERVED, &describe_other(answer.as_deref()));
            None
        }
    };
    conversation.close(AFTER_CLOSE).await?;
    report.add(conversation, 3, CheckOutcome::Done);
    Ok(accepted)
}

/// The manifest is published, is well-formed, and fits the offer.
async fn check_manifest(
    target: &Target,
    offer: Option<&SubscriptionAccepted>,
    report: &mut CheckReport,
) -> Result<(), ConnectionError> {
    let mut conversation = Conversation::open("manifest", target).await?;
    let signed = offer.and_then(|offer| offer.signed_manifest.clone());
    let fetched = match fetch_manifest(&target.address).await? {
        Some(fetched) => Some(fetched),
        None => signed.map(Ok),
    };
    let Some(fetched) = fetched else {
        report.add(conversation, 3, CheckOutcome::NotRun("this transport cannot fetch it"));
        return Ok(());
    };
    match fetched {
        Err(status) => conversation.report(Behaviour::MANIFEST_PUBLISHED, &format!("the status is {status}")),
        Ok(text) => match ManifestDocument::parse(&text) {
            Err(error) => conversation.report(Behaviour::MANIFEST_FORM, &error.to_string()),
            Ok(ManifestDocument { manifest, .. }) => {
                report.claimed_levels.clone_from(&manifest.conformance_levels_supported);
                if let Some(Err(mismatch)) = offer
                    .map(|offer| manifest::check_offer(&manifest, offer, target.address.transport_name()))
                {
                    conversation.report(Behaviour::MANIFEST_MATCHES, &format!("the manifest {mismatch}"));
                }
            }
        },
    }
    report.add(conversation, 3, CheckOutcome::Done);
    Ok(())
}

/// The manifest is signed with a trusted key.
pub(super) async fn check_signature(
    target: &Target,
    policy: &ManifestPolicy,
    report: &mut CheckReport,
) -> Result<(), ConnectionError> {
    let mut conversation = Conversation::open("signature", target).await?;
    let mut capabilities = full_capabilities();
    capabilities.accept_signed_manifests_only = Some(true);
    let outcome = match conversation.subscribe(&request(VERSION, capabilities)).await? {
        SubscribeAnswer::Accepted(offer) => {
            if let Some(text) = &offer.signed_manifest {
                let status = policy.verify(text, Some(&offer), target.address.transport_name());
                if !matches!(status, ManifestStatus::Verified(_)) {
                    let found = "it is not signed with a trusted key, or does not fit the offer";
                    conversation.report(Behaviour::MANIFEST_SIGNATURE, found);
                }
            }
            CheckOutcome::Done
        }
        _ => CheckOutcome::NotRun("the producer has no signed manifest"),
    };
    conversation.close(AFTER_CLOSE).await?;
    report.add(conversation, 3, outcome);
    Ok(())
}

/// An empty request means the defaults, and nothing more is granted.
async fn check_defaults(target: &Target, report: &mut CheckReport) -> Result<(), ConnectionError> {
    let mut conversation = Conversation::open("defaults", target).await?;
    match conversation.subscribe(&request(VERSION, Capabilities::new())).await? {
        SubscribeAnswer::Accepted(_) => {}
        SubscribeAnswer::Rejected(rejected) => {
            let found = format!("rejected with {}", rejected.reason_code.as_str());
            conversation.report(Behaviour::REQUEST_SERVED, &found);
        }
        SubscribeAnswer::Other(answer) => {
            conversation.report(Behaviour::REQUEST_SERVED, &describe_other(answer.as_deref()));
        }
    }
    conversation.close(AFTER_CLOSE).await?;
    report.add(conversation, 3, CheckOutcome::Done);
    Ok(())
}

/// Narrow terms are not widened, either at first or by a change to one of them.
async fn check_terms(target: &Target, report: &mut CheckReport) -> Result<(), ConnectionError> {
    let mut conversation = Conversation::open("terms", target).await?;
    let mut capabilities = full_capabilities();
    capabilities.max_events_per_second = Some(5);
    capabilities.coalesce_boundaries = Some(vec![Boundary::Completion]);
    capabilities.supported_conformance_levels = Some(vec![1, 2]);
    let mut filters = EventFilters::new();
    filters.include = Some(vec!["aaep:agent.session.*".to_owned()]);
    filters.exclude = Some(vec!["aaep:agent.session.started".to_owned()]);
    capabilities.event_filters = Some(filters);
    if let SubscribeAnswer::Accepted(_) = conversation.subscribe(&request(VERSION, capabilities)).await? {
        let mut change = Capabilities::new();
        change.max_events_per_second = Some(2);
        if !conversation.renegotiate(change).await? {
            conversation.report(Behaviour::RENEGOTIATION_ANSWERED, "no answer");
        }
    }
    conversation.close(AFTER_CLOSE).await?;
    report.add(conversation, 3, CheckOutcome::Done);
    Ok(())
}

/// A major version that the producer cannot know is rejected.
async fn check_version(target: &Target, report: &mut CheckReport) -> Result<(), ConnectionError> {
    let mut conversation = Conversation::open("version", target).await?;
    match conversation.subscribe(&request(FOREIGN_VERSION, full_capabilities())).await? {
        // The rules of the recording report a version that was not requested.
        SubscribeAnswer::Accepted(_) => {}
        SubscribeAnswer::Rejected(rejected) if rejected.reason_code == ReasonCode::VersionUnsupported => {}
        SubscribeAnswer::Rejected(rejected) => {
            let found = format!("rejected with {}", rejected.reason_code.as_str());
            conversation.report(Behaviour::VERSION_REFUSED, &found);
        }
        SubscribeAnswer::Other(answer) => {
            conversation.report(Behaviour::VERSION_REFUSED, &describe_other(answer.as_deref()));
        }
    }
    conversation.close(AFTER_CLOSE).await?;
    report.add(conversation, 3, CheckOutcome::Done);
    Ok(())
}

/// A request without `capabilities` is not accepted.
async fn check_malformed(target: &Target, report: &mut CheckReport) -> Result<(), ConnectionError> {
    let mut conversation = Conversation::open("malformed", target).await?;
    let incomplete =
        r#"{"type":"subscription.request","aaep_version":"1.0.0","subscriber_id":"sayso-check"}"#;
    if let SubscribeAnswer::Accepted(_) = conversation.subscribe_unrecorded(incomplete).await? {
        conversation.report(Behaviour::REQUEST_CHECKED, "a request without capabilities was accepted");
    }
    report.add(conversation, 3, CheckOutcome::Done);
    Ok(())
}

/// A subscriber that accepts only signed manifests gets one, or is rejected for that reason.
async fn check_signature_demand(target: &Target, report: &mut CheckReport) -> Result<(), ConnectionError> {
    let mut conversation = Conversation::open("signed only", target).await?;
    let mut capabilities = full_capabilities();
    capabilities.accept_signed_manifests_only = Some(true);
    match conversation.subscribe(&request(VERSION, capabilities)).await? {
        // The rules of the recording report a missing manifest.
        SubscribeAnswer::Accepted(_) => {}
        SubscribeAnswer::Rejected(rejected)
            if rejected.reason_code == ReasonCode::ManifestSignatureRequired => {}
        SubscribeAnswer::Rejected(rejected) => {
            let found = format!("rejected with {}", rejected.reason_code.as_str());
            conversation.report(Behaviour::SIGNATURE_REFUSED, &found);
        }
        SubscribeAnswer::Other(answer) => {
            conversation.report(Behaviour::SIGNATURE_REFUSED, &describe_other(answer.as_deref()));
        }
    }
    conversation.close(AFTER_CLOSE).await?;
    report.add(conversation, 3, CheckOutcome::Done);
    Ok(())
}

/// Without the token, nothing is served.
async fn check_authentication(
    target: &Target,
    has_token: bool,
    report: &mut CheckReport,
) -> Result<(), ConnectionError> {
    let stranger = Target { address: target.address.clone().without_token(), ..*target };
    let opened = Conversation::open("stranger", &stranger).await;
    let mut conversation = match opened {
        Ok(conversation) => conversation,
        Err(ConnectionError::TokenRequired) => {
            let conversation = Conversation::open("stranger", target).await?;
            report.add(conversation, 1, CheckOutcome::Done);
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    let outcome = if has_token {
        match conversation.subscribe_unrecorded(&request(VERSION, full_capabilities())).await {
            Ok(SubscribeAnswer::Accepted(_)) => {
                conversation
                    .report(Behaviour::SENDER_AUTHENTICATED, "a request without a token was accepted");
            }
            Ok(_) | Err(ConnectionError::TokenRequired) => {}
            Err(error) => return Err(error),
        }
        CheckOutcome::Done
    } else {
        CheckOutcome::NotRun("the check has no token to leave out")
    };
    report.add(conversation, 1, outcome);
    Ok(())
}

/// Describes an answer that is neither accepted nor rejected.
fn describe_other(answer: Option<&str>) -> String {
    match answer {
        None => "the producer closed the connection instead of an answer".to_owned(),
        Some(_) => "the answer is neither subscription.accepted nor subscription.rejected".to_owned(),
    }
}
