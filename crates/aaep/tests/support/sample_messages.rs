//! One of each message that is not a reply, with most of its optional members. The manifest has an unknown member.

use serde_json::{Value, json};

use super::event_writer::{CORE_CONTEXT, SUBSCRIPTION};
use super::recording_line::RecordingLine;

pub(crate) fn all() -> Vec<RecordingLine> {
    vec![
        RecordingLine::new([
            ("type", json!("subscription.request")),
            ("aaep_version", json!("1.0.0")),
            ("subscriber_id", json!("screen-reader")),
            ("subscriber_name", json!("Olùkà")),
            ("subscriber_version", json!("2.1")),
            ("subscriber_manifest_uri", json!("https://example.org/reader.json")),
            ("capabilities", capabilities()),
            ("correlation_id", json!("trace-1")),
            ("extensions", json!({ "azlearn": { "tones": true } })),
        ]),
        RecordingLine::new([
            ("type", json!("subscription.accepted")),
            ("subscription_id", json!(SUBSCRIPTION)),
            ("aaep_version", json!("1.0.0")),
            ("producer", json!({ "agent_id": "planner", "model": "m-2" })),
            ("honored_capabilities", capabilities()),
            ("manifest_uri", json!("https://example.org/manifest.json")),
            ("signed_manifest", json!("YQ.YQ.YQ")),
            ("negotiation_notes", json!("Ó dára.")),
        ]),
        RecordingLine::new([
            ("type", json!("subscription.rejected")),
            ("reason_code", json!("rate_limit")),
            ("reason_message", json!("Ẹ dúró.")),
            ("retry_after_seconds", json!(30)),
            ("alternative_manifest_uri", json!("https://example.org/other.json")),
        ]),
        RecordingLine::new([
            ("type", json!("subscription.renegotiate")),
            ("subscription_id", json!(SUBSCRIPTION)),
            ("capabilities", capabilities()),
        ]),
        RecordingLine::new([
            ("type", json!("subscription.close")),
            ("subscription_id", json!(SUBSCRIPTION)),
            ("reason_code", json!("slow_consumer")),
            ("reason_message", json!("Ó pẹ́ jù.")),
        ]),
        RecordingLine::new([
            ("@context", json!(CORE_CONTEXT)),
            ("type", json!("aaep:producer.manifest")),
            ("agent_id", json!("planner")),
            ("aaep_versions_supported", json!(["1.0.0"])),
            ("conformance_levels_supported", json!([1, 2])),
            ("transports_supported", json!(["sse"])),
            ("languages_supported", json!(["yo", "en-US"])),
            ("default_verbosity", json!("normal")),
            ("max_concurrent_subscriptions", json!(8)),
            ("hobbies", json!(["chess"])),
        ]),
        RecordingLine::new([
            ("type", json!("sayso:deadline.extend")),
            ("reply_token", json!("rpl_4f8a2e7d9c1b6a3f")),
            ("subscription_id", json!(SUBSCRIPTION)),
            ("timestamp", json!("2026-05-24T14:22:11.342Z")),
            ("seconds", json!(60)),
        ]),
        RecordingLine::new([
            ("type", json!("sayso:handoff.acknowledge")),
            ("reply_token", json!("rpl_4f8a2e7d9c1b6a3f")),
            ("subscription_id", json!(SUBSCRIPTION)),
            ("timestamp", json!("2026-05-24T14:22:11.342Z")),
            ("note", json!("Mo ti gbà á.")),
        ]),
        RecordingLine::new([
            ("type", json!("sayso:handoff.reject")),
            ("reply_token", json!("rpl_4f8a2e7d9c1b6a3f")),
            ("subscription_id", json!(SUBSCRIPTION)),
            ("timestamp", json!("2026-05-24T14:22:11.342Z")),
        ]),
        RecordingLine::new([
            ("type", json!("sayso:session.stop")),
            ("session_id", json!("sess_2c91a7b4d23f1e88")),
            ("subscription_id", json!(SUBSCRIPTION)),
            ("timestamp", json!("2026-05-24T14:22:11.342Z")),
            ("reason", json!("Ó tó.")),
        ]),
    ]
}

fn capabilities() -> Value {
    json!({
        "max_events_per_second": 20, "preferred_verbosity": "terse", "languages": ["yo", "en-US"],
        "supports_confirmation_reply": true, "supports_clarification_reply": true,
        "coalesce_boundaries": ["sentence", "completion"],
        "event_filters": { "include": ["aaep:agent.*"], "exclude": ["aaep:agent.progress.updated"] },
        "supported_conformance_levels": [1, 2], "supported_extensions": ["urn:sayso:context:v1"],
        "cognitive_load": "low", "pace_wpm": 180, "accept_signed_manifests_only": false,
        "azlearn": { "tones": true },
    })
}
