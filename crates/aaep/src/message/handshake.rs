//! The handshake (§5.2 to §5.8).

use crate::event::Producer;
use crate::grammar::{is_compact_jws, is_reason, is_version};
use crate::id::SubscriptionId;
use crate::json::RawJson;
use crate::message::Capabilities;
use crate::message::capabilities::CAPABILITIES;
use crate::record::{FieldType, open_enum, record};
use crate::rule;

pub(crate) const VERSION: FieldType = FieldType::Grammar {
    matches: is_version,
    pattern: "^[0-9]+\\.[0-9]+\\.[0-9]+(-[A-Za-z0-9.-]+)?$",
    description: "a version like 1.0.0",
};

record! {
    /// `subscription.request` (§5.2).
    SubscriptionRequest {
        required {
            /// The subscriber's AAEP version.
            aaep_version: String, VERSION, rule::VERSION_FORM, rule::REQUEST;
            /// The subscriber's machine-readable name.
            subscriber_id: String, FieldType::NAME, rule::REQUEST_FORM, rule::REQUEST;
            /// The requested capabilities.
            capabilities: Capabilities, CAPABILITIES, rule::REQUEST, rule::REQUEST;
        }
        optional {
            /// The subscriber's display name.
            subscriber_name: String, FieldType::Text { min: 0, max: 256 }, rule::REQUEST_FORM;
            /// The subscriber's version.
            subscriber_version: String, FieldType::Text { min: 0, max: 64 }, rule::REQUEST_FORM;
            /// The URI of the subscriber's manifest.
            subscriber_manifest_uri: String, FieldType::Uri, rule::REQUEST_FORM;
            /// Links the request to external traces.
            correlation_id: String, FieldType::ANY_TEXT, rule::CORRELATION_ID;
            /// Data of extensions.
            extensions: RawJson, FieldType::Extensions, rule::EXTENSION_OBJECT;
        }
    }

    /// `subscription.accepted` (§5.4).
    SubscriptionAccepted {
        required {
            /// The subscription's id.
            subscription_id: SubscriptionId, SubscriptionId::FIELD_TYPE, rule::SUBSCRIPTION_ID, rule::ACCEPTED;
            /// The AAEP version of the subscription.
            aaep_version: String, VERSION, rule::VERSION_FORM, rule::ACCEPTED;
            /// The producer of the events.
            producer: Producer, crate::event::PRODUCER, rule::PRODUCER, rule::ACCEPTED;
            /// The honored capabilities.
            honored_capabilities: Capabilities, CAPABILITIES, rule::ACCEPTED, rule::ACCEPTED;
        }
        optional {
            /// The URI of the producer's manifest.
            manifest_uri: String, FieldType::Uri, rule::MANIFEST_URI;
            /// The signed manifest.
            signed_manifest: String,
                FieldType::Grammar {
                    matches: is_compact_jws,
                    pattern: "^[A-Za-z0-9_-]+\\.[A-Za-z0-9_-]+\\.[A-Za-z0-9_-]+$",
                    description: "a JWS in compact form",
                },
                rule::ACCEPTED_FORM;
            /// Why the honored capabilities differ from the requested ones.
            negotiation_notes: String, FieldType::Text { min: 0, max: 4096 }, rule::ACCEPTED_FORM;
        }
    }
}

open_enum! {
    /// Why a subscription was rejected (§5.5.3).
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
            /// The machine-readable reason.
            reason_code: ReasonCode, FieldType::Enum(ReasonCode::VALUES), rule::REASON_CODE, rule::REJECTED;
            /// The human-readable reason.
            reason_message: String, FieldType::SHORT_TEXT, rule::REJECTED_FORM, rule::REJECTED;
        }
        optional {
            /// How long to wait before the next attempt, in seconds.
            retry_after_seconds: u64, FieldType::Integer { min: 0, max: 86_400 }, rule::REJECTED_FORM;
            /// The URI of an alternative producer's manifest.
            alternative_manifest_uri: String, FieldType::Uri, rule::REJECTED_FORM;
        }
    }

    /// `subscription.renegotiate` (§5.7).
    SubscriptionRenegotiate {
        required {
            /// The subscription to change.
            subscription_id: SubscriptionId, SubscriptionId::FIELD_TYPE, rule::SUBSCRIPTION_ID, rule::RENEGOTIATE_OR_CLOSE_FORM;
            /// The capabilities to change. Absent capabilities stay as they are.
            capabilities: Capabilities, CAPABILITIES, rule::RENEGOTIATE_OR_CLOSE_FORM, rule::RENEGOTIATE_OR_CLOSE_FORM;
        }
        optional {}
    }

    /// `subscription.close` (§5.8).
    SubscriptionClose {
        required {
            /// The subscription to close.
            subscription_id: SubscriptionId, SubscriptionId::FIELD_TYPE, rule::SUBSCRIPTION_ID, rule::RENEGOTIATE_OR_CLOSE_FORM;
        }
        optional {
            /// The machine-readable reason.
            reason_code: String,
                FieldType::Grammar { matches: is_reason, pattern: "^[a-z][a-z0-9_]{1,63}$", description: "a reason like slow_consumer" },
                rule::RENEGOTIATE_OR_CLOSE_FORM;
            /// The human-readable reason.
            reason_message: String, FieldType::Text { min: 0, max: 4096 }, rule::RENEGOTIATE_OR_CLOSE_FORM;
        }
    }
}
