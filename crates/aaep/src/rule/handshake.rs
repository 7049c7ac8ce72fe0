//! Rules about messages: the handshake (chapter 5), replies (chapter 6) and the manifest.
//! `rules!` explains the form `strict/receive @step`.

use super::rules;

rules! {
    // subscription.request (§5.2, §5.3)
    REQUEST: "AAEP-5.2.1-1" error/error @7
        "subscription.request must have type, aaep_version, subscriber_id and capabilities" decisions ["C-E12"];
    MESSAGE_TYPE: "AAEP-5.2.1-2" error/warning @5 "the type of a message must be exactly one that the protocol defines";
    REQUEST_FORM: "AAEP-5.2s-1" error/warning @7
        "subscription.request must not contain unknown members; subscriber_id must have 1 to 256 characters, subscriber_name at most 256, subscriber_version at most 64"
        decisions ["C-C11"];
    RATE: "AAEP-5.3.1.1-1" error/warning @7 "max_events_per_second must be a positive integer";
    PACE: "AAEP-5.3.1.11-1" error/warning @7 "pace_wpm must be an integer from 50 to 1000";
    REPLY_SUPPORT: "AAEP-5.3.1.4-3" error/warning @7
        "a subscriber of level 2 or 3 must declare supports_confirmation_reply and supports_clarification_reply" decisions ["C-C23"];
    FILTER_PATTERN: "AAEP-5.3.1.7-2" error/warning @7 "a filter must be an exact type, or a prefix that ends in *"
        decisions ["C-C4"];
    CAPABILITY_FORM: "AAEP-5.3s-1" error/warning @7
        "capabilities must stay within their limits: rate at most 100000, languages 1 to 32, boundaries 1 to 5, levels 1 to 3, extensions at most 64 URIs, filter patterns 1 to 256 characters, all items different"
        decisions ["C-J2"];
    CAPABILITY_EXTENSION: "AAEP-5.3s-2" error/warning @7 "a capability that AAEP does not define must be an object under a prefix"
        decisions ["C-C10"];
    FILTER_MEMBERS: "AAEP-5.3s-3" error/warning @7 "event_filters may only contain include and exclude";

    // Responses to a request (§5.4, §5.5)
    ACCEPTED: "AAEP-5.4.1-1" error/error @7
        "subscription.accepted must have type, subscription_id, aaep_version, producer and honored_capabilities" decisions ["C-E12"];
    SUBSCRIPTION_ID: "AAEP-5.4s-1" error/error @7
        "subscription_id must be sub_ followed by 1 to 64 ASCII letters or digits";
    ACCEPTED_FORM: "AAEP-5.4s-2" error/warning @7
        "subscription.accepted must not contain unknown members; negotiation_notes must have at most 4096 characters, signed_manifest must be a compact JWS"
        decisions ["C-C11"];
    REJECTED: "AAEP-5.5.1-1" error/error @7 "subscription.rejected must have type, reason_code and reason_message";
    REASON_CODE: "AAEP-5.5.3-1" error/warning @7
        "reason_code must be version_unsupported, manifest_signature_required, capabilities_incompatible, rate_limit, authentication_required, authorization_denied, transport_unavailable or unknown"
        decisions ["C-C11"];
    REJECTED_FORM: "AAEP-5.5s-1" error/warning @7
        "subscription.rejected must not contain unknown members; reason_message must have 1 to 4096 characters, retry_after_seconds must be 0 to 86400"
        decisions ["C-C11"];
    REASON_LEAKS_INTERNALS: "AAEP-5.5s-2" warning/warning @7 "reason_message should not reveal internals, such as a stack trace";

    // Negotiated terms in a recording (§5.4.4, §5.7, §5.8)
    TERMS_NOT_WIDER: "AAEP-5.4.4-1" error/error @10 "honored capabilities must not be wider than the requested ones"
        decisions ["C-C6", "C-C7"];
    RATE_NOT_WIDER: "AAEP-5.4.4-2" error/error @10 "the honored rate must not exceed the requested one";
    LANGUAGES_NOT_WIDER: "AAEP-5.4.4-3" error/error @10 "every honored language must have been requested"
        decisions ["C-C8"];
    BOUNDARIES_NOT_WIDER: "AAEP-5.4.4-4" error/error @10
        "every honored coalesce boundary must have been requested";
    FILTERS_NOT_WIDER: "AAEP-5.4.4-5" error/error @10
        "the honored event_filters must not allow events that the requested ones exclude";
    VERSION_COMMON: "AAEP-5.4s-3" error/error @10 "the subscriber must support the accepted aaep_version"
        decisions ["C-C13"];
    SIGNED_MANIFEST_REQUIRED: "AAEP-5.3.1.12-1" error/error @10
        "a subscriber that accepts only signed manifests must get one or be rejected" decisions ["C-F2"] aliases ["AAEP-9.5.1-7"];
    REQUEST_ANSWERED: "AAEP-9.5.1-3" error/error @10 "every subscription.request must be answered" aliases ["AAEP-5.4-1"];
    RENEGOTIATION_ANSWERED: "AAEP-5.7-1" error/error @10
        "every subscription.renegotiate must be answered, and a rejection ends the subscription";
    TERMS_UNCHANGED: "AAEP-5.7.1-1" error/error @10 "capabilities that subscription.renegotiate does not name must stay unchanged";
    AFTER_CLOSE: "AAEP-5.8.2-1" error/error @10 "nothing may be sent to a closed subscription";
    EXCLUDED_NOT_SENT: "AAEP-5.3.1.7-1" error/error @10 "an event that the filters exclude must not be sent unless it is critical"
        decisions ["C-C4", "C-C5"] aliases ["AAEP-5.4.4-6", "AAEP-5.7.2-1", "AAEP-9.5.1-4"];
    CONFIRMATION_WITHHELD: "AAEP-5.3.1.4-1" error/error @10
        "agent.awaiting.confirmation must not be sent to a subscription that cannot answer it" decisions ["C-C1"];
    CLARIFICATION_WITHHELD: "AAEP-5.3.1.5-1" error/error @10
        "agent.awaiting.clarification must not be sent to a subscription that cannot answer it" decisions ["C-C1"];
    RATE_HONORED: "AAEP-5.3.1.1-2" error/error @10
        "non-critical events must not exceed the honored rate by more than a fifth in any five seconds"
        decisions ["C-C22"] aliases ["AAEP-4.2.2-4"];
    BOUNDARY_HONORED: "AAEP-5.3.1.6-1" warning/warning @10
        "coalesce_hint should be one of the honored coalesce_boundaries, or completion on the last chunk" decisions ["C-B13"];

    // Renegotiation and close (§5.7, §5.8)
    RENEGOTIATE_OR_CLOSE_FORM: "AAEP-5.1-1" error/warning @7
        "subscription.renegotiate may only contain type, subscription_id and capabilities; subscription.close may only contain type, subscription_id, reason_code and reason_message"
        decisions ["C-C12"];

    // Replies (§6.3, §6.5)
    CONFIRMATION_REPLY: "AAEP-6.3.1-1" error/error @7
        "confirmation.reply must have type, reply_token, decision, subscription_id and timestamp" decisions ["C-D8"];
    CONFIRMATION_REPLY_FORM: "AAEP-6.3s-1" error/error @7
        "confirmation.reply must not contain unknown members; decided_by must have 1 to 256 characters, decision_rationale 1 to 4096, modified_action must be an object"
        aliases ["AAEP-6.3.4-1"];
    CLARIFICATION_REPLY: "AAEP-6.5.1-1" error/error @7
        "clarification.reply must have type, reply_token, response, subscription_id and timestamp" decisions ["C-D8"];
    CLARIFICATION_REPLY_FORM: "AAEP-6.5s-1" error/error @7
        "clarification.reply must not contain unknown members; a string response must have 1 to 16384 characters, confidence must be 0 to 1";

    // Manifest (§5.10)
    MANIFEST: "AAEP-5.10.1-1" error/error @7
        "a manifest must have the core @context, the type aaep:producer.manifest, and valid members" decisions ["C-F3"];
    MANIFEST_VERSIONS: "AAEP-12.5.3-1" error/error @7 "a manifest must list aaep_versions_supported" decisions ["C-C14"];

    // The messages that sayso adds
    SAYSO_MESSAGE: "C-G6" error/error @7
        "sayso's own messages, such as sayso:session.stop, must have the members that sayso defines";
}
