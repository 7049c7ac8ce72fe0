//! The handshake (§5.2 to §5.8).

use crate::event::Producer;
use crate::form::{is_compact_jws, is_reason, is_version};
use crate::id::SubscriptionId;
use crate::json::Raw;
use crate::message::Capabilities;
use crate::message::capabilities::CAPABILITIES;
use crate::record::{Shape, record, words};
use crate::rule;

pub(crate) const VERSION: Shape = Shape::Form {
    is: is_version,
    pattern: "^[0-9]+\\.[0-9]+\\.[0-9]+(-[A-Za-z0-9.-]+)?$",
    called: "a version like 1.0.0",
};

record! {
    /// `subscription.request` (§5.2).
    SubscriptionRequest {
        required {
            /// The version that the subscriber speaks.
            aaep_version: String, VERSION, rule::VERSION_FORM, rule::REQUEST;
            /// The subscriber's name for machines.
            subscriber_id: String, Shape::NAME, rule::REQUEST_FORM, rule::REQUEST;
            /// What it can take.
            capabilities: Capabilities, CAPABILITIES, rule::REQUEST, rule::REQUEST;
        }
        optional {
            /// The subscriber's name for people.
            subscriber_name: String, Shape::Text { min: 0, max: 256 }, rule::REQUEST_FORM;
            /// Its version.
            subscriber_version: String, Shape::Text { min: 0, max: 64 }, rule::REQUEST_FORM;
            /// Where its manifest is.
            subscriber_manifest_uri: String, Shape::Uri, rule::REQUEST_FORM;
            /// Ties it to traces elsewhere.
            correlation_id: String, Shape::ANY, rule::CORRELATION;
            /// Data of extensions.
            extensions: Raw, Shape::Extensions, rule::EXTENSION_OBJECT;
        }
    }

    /// `subscription.accepted` (§5.4).
    SubscriptionAccepted {
        required {
            /// The subscription's id.
            subscription_id: SubscriptionId, SubscriptionId::SHAPE, rule::SUBSCRIPTION_ID, rule::ACCEPTED;
            /// The version that will be spoken.
            aaep_version: String, VERSION, rule::VERSION_FORM, rule::ACCEPTED;
            /// Who will be heard.
            producer: Producer, crate::event::PRODUCER, rule::PRODUCER, rule::ACCEPTED;
            /// The terms that hold.
            honored_capabilities: Capabilities, CAPABILITIES, rule::ACCEPTED, rule::ACCEPTED;
        }
        optional {
            /// Where the producer's manifest is.
            manifest_uri: String, Shape::Uri, rule::MANIFEST_URI;
            /// The manifest itself, signed.
            signed_manifest: String,
                Shape::Form {
                    is: is_compact_jws,
                    pattern: "^[A-Za-z0-9_-]+\\.[A-Za-z0-9_-]+\\.[A-Za-z0-9_-]+$",
                    called: "a JWS in compact form",
                },
                rule::ACCEPTED_FORM;
            /// Why the terms are not what was asked for.
            negotiation_notes: String, Shape::Text { min: 0, max: 4096 }, rule::ACCEPTED_FORM;
        }
    }
}

words! {
    /// Why a subscription was refused (§5.5.3).
    ReasonCode {
        VersionUnsupported = "version_unsupported",
        ManifestSignatureRequired = "manifest_signature_required",
        CapabilitiesIncompatible = "capabilities_incompatible",
        RateLimit = "rate_limit",
        AuthenticationRequired = "authentication_required",
        AuthorizationDenied = "authorization_denied",
        TransportUnavailable = "transport_unavailable",
        UnknownReason = "unknown",
    }

}

record! {
    /// `subscription.rejected` (§5.5).
    SubscriptionRejected {
        required {
            /// Why, for machines.
            reason_code: ReasonCode, Shape::Word(ReasonCode::WORDS), rule::REASON_CODE, rule::REJECTED;
            /// Why, for people.
            reason_message: String, Shape::SHORT, rule::REJECTED_FORM, rule::REJECTED;
        }
        optional {
            /// When to try again.
            retry_after_seconds: u64, Shape::Integer { min: 0, max: 86_400 }, rule::REJECTED_FORM;
            /// Where else to try.
            alternative_manifest_uri: String, Shape::Uri, rule::REJECTED_FORM;
        }
    }

    /// `subscription.renegotiate` (§5.7).
    SubscriptionRenegotiate {
        required {
            /// Which subscription.
            subscription_id: SubscriptionId, SubscriptionId::SHAPE, rule::SUBSCRIPTION_ID, rule::RENEGOTIATE_FORM;
            /// What should change; what is left out stays.
            capabilities: Capabilities, CAPABILITIES, rule::RENEGOTIATE_FORM, rule::RENEGOTIATE_FORM;
        }
        optional {}
    }

    /// `subscription.close` (§5.8).
    SubscriptionClose {
        required {
            /// Which subscription.
            subscription_id: SubscriptionId, SubscriptionId::SHAPE, rule::SUBSCRIPTION_ID, rule::RENEGOTIATE_FORM;
        }
        optional {
            /// Why, for machines.
            reason_code: String,
                Shape::Form { is: is_reason, pattern: "^[a-z][a-z0-9_]{1,63}$", called: "a reason like slow_consumer" },
                rule::RENEGOTIATE_FORM;
            /// Why, for people.
            reason_message: String, Shape::Text { min: 0, max: 4096 }, rule::RENEGOTIATE_FORM;
        }
    }
}
