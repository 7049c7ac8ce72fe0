//! Rules about messages: the handshake of chapter 5, replies of chapter 6, and the manifest.

use super::rules;

rules! {
    // subscription.request (§5.2, §5.3)
    REQUEST: "AAEP-5.2.1-1" error/error @7
        "subscription.request has type, aaep_version, subscriber_id and capabilities" follows ["C-E12"];
    MESSAGE_TYPE: "AAEP-5.2.1-2" error/warning @5 "a message's type is one of the protocol's own, letter for letter";
    REQUEST_FORM: "AAEP-5.2s-1" error/warning @7
        "subscription.request holds no unknown members; subscriber_id has 1 to 256 characters, subscriber_name at most 256, subscriber_version at most 64"
        follows ["C-C11"];
    RATE: "AAEP-5.3.1.1-1" error/warning @7 "max_events_per_second is an integer from 1 on";
    PACE: "AAEP-5.3.1.11-1" error/warning @7 "pace_wpm is an integer from 50 to 1000";
    REPLY_SUPPORT: "AAEP-5.3.1.4-3" error/warning @7
        "a subscriber of level 2 or 3 declares supports_confirmation_reply and supports_clarification_reply" follows ["C-C23"];
    FILTER_PATTERN: "AAEP-5.3.1.7-2" error/warning @7 "a filter is an exact type, or a beginning that ends in *"
        follows ["C-C4"];
    CAPABILITY_FORM: "AAEP-5.3s-1" error/warning @7
        "capabilities keep their limits: rate at most 100000, languages 1 to 32, boundaries 1 to 5, levels 1 to 3, extensions at most 64 URIs, filter patterns 1 to 256 characters, each different from the others"
        follows ["C-J2"];
    CAPABILITY_EXTENSION: "AAEP-5.3s-2" error/warning @7 "a capability that AAEP does not know is an object under a prefix"
        follows ["C-C10"];
    FILTER_CLOSED: "AAEP-5.3s-3" error/warning @7 "event_filters holds include and exclude, and nothing else";

    // Answers (§5.4, §5.5)
    ACCEPTED: "AAEP-5.4.1-1" error/error @7
        "subscription.accepted has type, subscription_id, aaep_version, producer and honored_capabilities" follows ["C-E12"];
    SUBSCRIPTION_ID: "AAEP-5.4s-1" error/error @7
        "subscription_id is sub_ followed by 1 to 64 ASCII letters or digits";
    ACCEPTED_FORM: "AAEP-5.4s-2" error/warning @7
        "subscription.accepted holds no unknown members; negotiation_notes has at most 4096 characters, signed_manifest is a compact JWS"
        follows ["C-C11"];
    REJECTED: "AAEP-5.5.1-1" error/error @7 "subscription.rejected has type, reason_code and reason_message";
    REASON_CODE: "AAEP-5.5.3-1" error/warning @7
        "reason_code is version_unsupported, manifest_signature_required, capabilities_incompatible, rate_limit, authentication_required, authorization_denied, transport_unavailable or unknown"
        follows ["C-C11"];
    REJECTED_FORM: "AAEP-5.5s-1" error/warning @7
        "subscription.rejected holds no unknown members; reason_message has 1 to 4096 characters, retry_after_seconds is 0 to 86400"
        follows ["C-C11"];
    REASON_DISCREET: "AAEP-5.5s-2" warning/warning @7 "reason_message should show nothing of the inside, like a stack trace";

    // Terms, as a recording shows them (§5.4.4, §5.7, §5.8)
    NOT_WIDER: "AAEP-5.4.4-1" error/error @10 "honored capabilities are never wider than the requested ones"
        follows ["C-C6", "C-C7"];
    RATE_NOT_WIDER: "AAEP-5.4.4-2" error/error @10 "the honored rate is at most the requested one";
    LANGUAGES_NOT_WIDER: "AAEP-5.4.4-3" error/error @10 "the honored languages are some of the requested ones"
        follows ["C-C8"];
    BOUNDARIES_NOT_WIDER: "AAEP-5.4.4-4" error/error @10
        "the honored coalesce_boundaries are some of the requested ones";
    FILTERS_NOT_WIDER: "AAEP-5.4.4-5" error/error @10
        "the honored event_filters let through nothing that the requested ones do not";
    VERSION_COMMON: "AAEP-5.4s-3" error/error @10 "the accepted aaep_version is one that the subscriber knows"
        follows ["C-C13"];
    SIGNED_WHEN_ASKED: "AAEP-5.3.1.12-1" error/error @10
        "a subscriber that takes only signed manifests is given one, or is rejected" follows ["C-F2"] also ["AAEP-9.5.1-7"];
    ANSWERED: "AAEP-9.5.1-3" error/error @10 "every subscription.request is answered" also ["AAEP-5.4-1"];
    RENEGOTIATION_ANSWERED: "AAEP-5.7-1" error/error @10
        "a subscription.renegotiate is answered, and after a rejection the subscription has ended";
    TERMS_KEPT: "AAEP-5.7.1-1" error/error @10 "what subscription.renegotiate leaves out stays as it was";
    AFTER_CLOSE: "AAEP-5.8.2-1" error/error @10 "nothing is sent to a subscription that is closed";
    EXCLUDED: "AAEP-5.3.1.7-1" error/error @10 "an event that the filters keep out is not sent, unless it is critical"
        follows ["C-C4", "C-C5"] also ["AAEP-5.4.4-6", "AAEP-5.7.2-1", "AAEP-9.5.1-4"];
    CONFIRMATION_WITHHELD: "AAEP-5.3.1.4-1" error/error @10
        "agent.awaiting.confirmation is not sent to a subscription that cannot answer it" follows ["C-C1"];
    CLARIFICATION_WITHHELD: "AAEP-5.3.1.5-1" error/error @10
        "agent.awaiting.clarification is not sent to a subscription that cannot answer it" follows ["C-C1"];
RATE_KEPT: "AAEP-5.3.1.1-2" error/error @10
        "events that are not critical come no faster than the honored rate, with a fifth more in any five seconds"
        follows ["C-C22"] also ["AAEP-4.2.2-4"];
        BOUNDARY_HONORED: "AAEP-5.3.1.6-1" warning/warning @10
        "coalesce_hint should be one of the honored coalesce_boundaries, or completion on the last chunk" follows ["C-B13"];

    // Renegotiation and close (digest, section 19)
    RENEGOTIATE_FORM: "AAEP-5.1-1" error/warning @7
        "subscription.renegotiate holds type, subscription_id and capabilities; subscription.close holds type, subscription_id, reason_code and reason_message"
        follows ["C-C12"];

    // Replies (§6.3, §6.5)
    CONFIRMATION_REPLY: "AAEP-6.3.1-1" error/error @7
        "confirmation.reply has type, reply_token, decision, subscription_id and timestamp" follows ["C-D8"];
    CONFIRMATION_REPLY_FORM: "AAEP-6.3s-1" error/error @7
        "confirmation.reply holds no unknown members; decided_by has 1 to 256 characters, decision_rationale 1 to 4096, modified_action is an object"
        also ["AAEP-6.3.4-1"];
    CLARIFICATION_REPLY: "AAEP-6.5.1-1" error/error @7
        "clarification.reply has type, reply_token, response, subscription_id and timestamp" follows ["C-D8"];
    CLARIFICATION_REPLY_FORM: "AAEP-6.5s-1" error/error @7
        "clarification.reply holds no unknown members; a string response has 1 to 16384 characters, confidence is 0 to 1";

    // Manifest (§5.10)
    MANIFEST: "AAEP-5.10.1-1" error/error @7
        "a manifest has the core @context, type aaep:producer.manifest, and its members in their form" follows ["C-F3"];
    MANIFEST_VERSIONS: "AAEP-12.5.3-1" error/error @7 "a manifest lists aaep_versions_supported" follows ["C-C14"];

    // sayso's own two messages
    OUR_MESSAGE: "C-G6" error/error @7
        "sayso:deadline.extend and sayso:session.stop hold the members that sayso's design gives them";
}
