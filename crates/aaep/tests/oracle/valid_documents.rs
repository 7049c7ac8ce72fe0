//! One valid document of every type, with every member of its type. Mutations start from these.

use serde_json::{Value, json};

/// Returns the twelve core events and the five messages that have a published schema.
pub(crate) fn published() -> Vec<Value> {
    events().into_iter().chain(published_messages()).collect()
}

/// Returns the documents for which only sayso has a schema: six messages and the manifest.
pub(crate) fn ours() -> Vec<Value> {
    vec![
        json!({"type": "subscription.renegotiate", "subscription_id": "sub_8a4f2c9d", "capabilities": capabilities()}),
        json!({
            "type": "subscription.close",
            "subscription_id": "sub_8a4f2c9d",
            "reason_code": "slow_consumer",
            "reason_message": "The queue is full.",
        }),
        json!({
            "@context": "https://aaep-protocol.org/context/v1",
            "type": "aaep:producer.manifest",
            "agent_id": "planner",
            "agent_version": "1.4.2",
            "agent_name": "Planner",
            "aaep_versions_supported": ["1.0.0"],
            "conformance_levels_supported": [1, 2],
            "transports_supported": ["sse", "websocket"],
            "languages_supported": ["en-US", "yo"],
            "event_types_emitted": ["aaep:agent.*"],
            "extensions_supported": ["https://example.org/medai/context/v1"],
            "default_verbosity": "normal",
            "max_concurrent_subscriptions": 8,
            "contact": "help@example.org",
        }),
        json!({
            "type": "sayso:deadline.extend",
            "reply_token": "rpl_4f8a2e7d9c1b6a3f",
            "subscription_id": "sub_8a4f2c9d",
            "timestamp": "2026-05-24T14:22:30.100Z",
            "seconds": 600,
        }),
        json!({
            "type": "sayso:handoff.acknowledge",
            "reply_token": "rpl_4f8a2e7d9c1b6a3f",
            "subscription_id": "sub_8a4f2c9d",
            "timestamp": "2026-05-24T14:22:30.100Z",
            "note": "I take it.",
        }),
        json!({
            "type": "sayso:handoff.reject",
            "reply_token": "rpl_4f8a2e7d9c1b6a3f",
            "subscription_id": "sub_8a4f2c9d",
            "timestamp": "2026-05-24T14:22:30.100Z",
            "note": "Not now.",
        }),
        json!({
            "type": "sayso:session.stop",
            "session_id": "sess_2c91a7b4d23f1e88",
            "subscription_id": "sub_8a4f2c9d",
            "timestamp": "2026-05-24T14:22:30.100Z",
            "reason": "Enough.",
        }),
    ]
}

fn events() -> Vec<Value> {
    vec![
        event(
            "agent.session.started",
            "normal",
            &json!({
                "summary_normal": "The planner is at work.",
                "summary_terse": "Started.",
                "summary_detailed": "The planner reads your profile and drafts a plan.",
                "expected_duration_ms": 30_000,
                "requested_by": "user:folake",
                "request_text": "Plan my retirement.",
                "tools_available": ["fetch_balance", "draft_plan"],
            }),
        ),
        event(
            "agent.session.completed",
            "normal",
            &json!({
                "summary_normal": "The plan is ready.",
                "summary_terse": "Done.",
                "summary_detailed": "The plan is ready after 27 seconds.",
                "duration_ms": 27_579,
                "tool_invocations_count": 4,
                "output_summary": "A plan in five parts.",
                "result_uri": "https://example.org/plans/7",
            }),
        ),
        event(
            "agent.session.errored",
            "critical",
            &json!({
                "error_category": "transient",
                "summary_normal": "The bank did not answer.",
                "summary_terse": "No answer.",
                "summary_detailed": "The bank did not answer within ten seconds.",
                "error_code": "TOOL_TIMEOUT",
                "error_uri": "https://example.org/help",
                "recoverable": true,
                "remediation_hint": "Try again later.",
            }),
        ),
        event(
            "agent.session.cancelled",
            "normal",
            &json!({
                "cancelled_by": "user",
                "summary_normal": "You stopped the plan.",
                "summary_terse": "Stopped.",
                "summary_detailed": "You stopped the plan after its first part.",
                "cancellation_reason": "user_pressed_escape",
                "partial_result": "One part was drafted.",
            }),
        ),
        event(
            "agent.state.changed",
            "background",
            &json!({
                "from_state": "idle",
                "to_state": "thinking",
                "summary_terse": "Thinking.",
                "summary_normal": "Thinking about your question.",
                "summary_detailed": "Thinking about your question and its costs.",
                "expected_duration_ms": 4000,
            }),
        ),
        event(
            "agent.progress.updated",
            "background",
            &json!({
                "progress": {"percent": 60, "step": 3, "total_steps": 5, "description": "Adding up"},
                "summary_terse": "60 percent.",
                "summary_normal": "Adding up, 60 percent done.",
                "summary_detailed": "Adding up the third of five parts.",
                "eta_ms": 8000,
            }),
        ),
        event(
            "agent.tool.invoked",
            "normal",
            &json!({
                "tool": "fetch_balance",
                "summary_normal": "Asking for your balance.",
                "summary_terse": "Asking.",
                "summary_detailed": "Asking the bank for the balance of your account.",
                "description": "Asks the bank for a balance",
                "args_summary": "account: checking-7821",
                "expected_duration_ms": 2000,
                "risk_level": "low",
                "irreversible": false,
                "tool_call_id": "call_7a2b9c4e",
            }),
        ),
        event(
            "agent.tool.completed",
            "normal",
            &json!({
                "tool": "fetch_balance",
                "status": "error",
                "summary_terse": "No balance.",
                "summary_normal": "The bank did not return the balance.",
                "summary_detailed": "The bank did not return the balance of your account.",
                "tool_call_id": "call_7a2b9c4e",
                "duration_ms": 1885,
                "error_message": "The bank is closed.",
            }),
        ),
        event(
            "agent.output.streaming",
            "normal",
            &json!({
                "chunk": "You should save more.",
                "position": 348,
                "complete": false,
                "coalesce_hint": "sentence",
                "output_id": "out_3a8c2",
                "content_type": "text/plain",
                "language": "en-US",
            }),
        ),
        event(
            "agent.awaiting.confirmation",
            "critical",
            &json!({
                "action": "Send 500 dollars to savings.",
                "consequence": "The money is transferred immediately.",
                "reply_token": "rpl_4f8a2e7d9c1b6a3f",
                "timeout_seconds": 300,
                "default_decision": "reject",
                "summary_terse": "Send it?",
                "summary_normal": "Shall I send 500 dollars?",
                "summary_detailed": "Shall I send 500 dollars from checking to savings?",
                "risk_level": "high",
                "irreversible": true,
                "reversibility": "irreversible",
                "allowed_replies": ["accept", "reject"],
                "extra_context": {"amount_raw": 500},
            }),
        ),
        event(
            "agent.awaiting.clarification",
            "critical",
            &json!({
                "question": "Which age should I plan for?",
                "reply_token": "rpl_2c8e4a9f7b1d3a6e",
                "timeout_seconds": 300,
                "summary_terse": "Which age?",
                "summary_normal": "Which age should I plan for?",
                "summary_detailed": "Which retirement age should I plan for?",
                "accepted_response_kinds": ["multiple_choice", "numeric"],
                "choices": [{"value": "60", "label": "Age 60"}, {"value": "65", "label": "Age 65"}],
                "context": "Your age changes the result.",
                "default_response": "65",
            }),
        ),
        event(
            "agent.handoff.requested",
            "critical",
            &json!({
                "reason": "Your taxes need an adviser.",
                "target_kind": "human",
                "summary_terse": "An adviser is needed.",
                "summary_normal": "I am transferring you to an adviser.",
                "summary_detailed": "I am transferring you to an adviser because of your taxes.",
                "target_uri": "queue://customer-service/advisor",
                "packaged_context": {"plan": {"years": 30}},
                "urgency_for_handoff": "medium",
            }),
        ),
    ]
}

fn event(name: &str, urgency: &str, payload: &Value) -> Value {
    let mut event = json!({
        "@context": ["https://aaep-protocol.org/context/v1", "https://example.org/medai/context/v1"],
        "aaep_version": "1.0.0",
        "type": format!("aaep:{name}"),
        "event_id": "evt_8a3f5b22c91e4d7a8a3f5b22c91e4d7a",
        "session_id": "sess_2c91a7b4d23f1e88",
        "sequence_number": if name == "agent.session.started" { 0 } else { 7 },
        "timestamp": "2026-05-24T14:22:11.342Z",
        "producer": producer(),
        "verbosity": "normal",
        "urgency": urgency,
        "localization_hints": {
            "primary_language": "en-US",
            "text_direction": "ltr",
            "available_languages": ["en-US", "yo-NG"],
            "fallback_chain": ["en"],
            "script": "Latn",
            "calendar": "gregorian",
        },
        "correlation_id": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "extensions": {"medai": {"patient_data_accessed": true}},
    });
    if let (Some(event), Some(payload)) = (event.as_object_mut(), payload.as_object()) {
        event.extend(payload.clone());
    }
    event
}

fn producer() -> Value {
    json!({
        "agent_id": "planner",
        "agent_version": "1.4.2",
        "agent_name": "Planner",
        "model": "claude-opus-4-7",
        "manifest_uri": "https://example.org/.well-known/aaep-manifest.json",
    })
}

fn published_messages() -> Vec<Value> {
    vec![
        json!({
            "type": "subscription.request",
            "aaep_version": "1.0.0",
            "subscriber_id": "nvda",
            "subscriber_name": "NVDA",
            "subscriber_version": "2026.1",
            "subscriber_manifest_uri": "https://example.org/nvda.json",
            "correlation_id": "trace-7",
            "capabilities": capabilities(),
            "extensions": {"azlearn": {"tonal_marks": "preserve"}},
        }),
        json!({
            "type": "subscription.accepted",
            "subscription_id": "sub_8a4f2c9d",
            "aaep_version": "1.0.0",
            "producer": producer(),
            "honored_capabilities": capabilities(),
            "manifest_uri": "https://example.org/.well-known/aaep-manifest.json",
            "signed_manifest": "eyJhbGciOiJFUzI1NiJ9.eyJhIjoxfQ.c2ln",
            "negotiation_notes": "All capabilities are honored as requested.",
        }),
        json!({
            "type": "subscription.rejected",
            "reason_code": "rate_limit",
            "reason_message": "Too many subscriptions.",
            "retry_after_seconds": 60,
            "alternative_manifest_uri": "https://example.org/other.json",
        }),
        json!({
            "type": "confirmation.reply",
            "reply_token": "rpl_4f8a2e7d9c1b6a3f",
            "decision": "accept",
            "subscription_id": "sub_8a4f2c9d",
            "timestamp": "2026-05-24T14:22:30.100Z",
            "decided_by": "user:folake",
            "decision_rationale": "It is mine.",
            "modified_action": {"amount": 400},
            "correlation_id": "trace-7",
        }),
        json!({
            "type": "clarification.reply",
            "reply_token": "rpl_2c8e4a9f7b1d3a6e",
            "response": "65",
            "subscription_id": "sub_8a4f2c9d",
            "timestamp": "2026-05-24T14:22:30.100Z",
            "decided_by": "user:folake",
            "confidence": 0.9,
            "correlation_id": "trace-7",
        }),
    ]
}

fn capabilities() -> Value {
    json!({
        "max_events_per_second": 5,
        "preferred_verbosity": "normal",
        "languages": ["yo-NG", "en-US"],
        "supports_confirmation_reply": true,
        "supports_clarification_reply": true,
        "coalesce_boundaries": ["sentence", "completion"],
        "event_filters": {"include": ["aaep:agent.*"], "exclude": ["aaep:agent.progress.updated"]},
        "supported_conformance_levels": [1, 2],
        "supported_extensions": ["https://example.org/medai/context/v1"],
        "cognitive_load": "medium",
        "pace_wpm": 180,
        "accept_signed_manifests_only": false,
        "azlearn": {"tonal_marks": "preserve"},
    })
}
