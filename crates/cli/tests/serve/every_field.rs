//! An agent can set every field of the twelve events through HTTP and through a WebSocket. The fields come from the schemas, so a
//! new field fails the test until an event here has it.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use testing::http::{EventStream, TestClient};
use testing::hub::HubProcess;

use crate::serve::agent_websocket::AgentWebSocket;

/// An agent on either transport.
enum Agent {
    Http(TestClient),
    WebSocket(Box<AgentWebSocket>),
}

impl Agent {
    fn start(&mut self) -> String {
        let body = start_body();
        let session = match self {
            Self::Http(client) => post(client, "/agent/v1/sessions", &body),
            Self::WebSocket(socket) => socket.call_ok("session.start", &body),
        };
        session["session_id"].as_str().unwrap().to_owned()
    }

    fn publish(&mut self, session: &str, mut event: Value) {
        for (name, value) in options().as_object().unwrap() {
            event[name] = value.clone();
        }
        match self {
            Self::Http(client) => post(client, &format!("/agent/v1/sessions/{session}/events"), &event),
            Self::WebSocket(socket) => {
                socket.call_ok("session.event", &json!({ "session_id": session, "event": event }))
            }
        };
    }

    fn ask(&mut self, session: &str, is_clarification: bool, mut question: Value) {
        for (name, value) in options().as_object().unwrap() {
            question[name] = value.clone();
        }
        match self {
            Self::Http(client) => {
                let route = if is_clarification { "clarifications" } else { "confirmations" };
                post(client, &format!("/agent/v1/sessions/{session}/{route}"), &question)
            }
            Self::WebSocket(socket) => {
                question["session_id"] = json!(session);
                socket.call_ok(if is_clarification { "session.clarify" } else { "session.ask" }, &question)
            }
        };
    }
}

fn post(client: &TestClient, path: &str, body: &Value) -> Value {
    let response = client.post(path, &body.to_string());
    assert!(matches!(response.status, 200 | 201), "{path} {body}: {response:?}");
    serde_json::from_str(&response.body).unwrap()
}

/// The optional members that any event can have.
fn options() -> Value {
    json!({
        "@context": ["https://aaep-protocol.org/context/v1", "https://acme.example/context/v1"],
        "verbosity": "normal", "urgency": "critical", "correlation_id": "trace-7",
        "extensions": { "acme": { "account": "17" } },
    })
}

fn start_body() -> Value {
    let mut body = options();
    let members = json!({
        "summary_terse": "Pay.", "summary_normal": "Paying Ben.", "summary_detailed": "Paying Ben 5 euro.",
        "expected_duration_ms": 60_000, "requested_by": "user:ana", "request_text": "Pay Ben.",
        "tools_available": ["look", "send"],
        "producer": {
            "agent_id": "bank", "agent_name": "Your bank", "agent_version": "1.2.0", "model": "a-model",
            "manifest_uri": "https://bank.example/manifest.json",
        },
        "localization_hints": {
            "primary_language": "en", "text_direction": "ltr", "available_languages": ["en", "es"],
            "fallback_chain": ["es"], "script": "Latn", "calendar": "gregory",
        },
    });
    for (name, value) in members.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

fn with_summaries(kind: &str, mut event: Value) -> Value {
    event["type"] = json!(format!("aaep:agent.{kind}"));
    for name in ["summary_terse", "summary_normal", "summary_detailed"] {
        event[name] = json!("Something happens.");
    }
    event
}

/// Publishes every event with every field. Each end needs its own session, and the questions stay open in another one.
fn publish_all(agent: &mut Agent) {
    let session = agent.start();
    let state = json!({ "to_state": "thinking", "expected_duration_ms": 4000 });
    agent.publish(&session, with_summaries("state.changed", state));
    let progress = json!({ "percent": 60, "step": 3, "total_steps": 5, "description": "Reading." });
    let progress = json!({ "progress": progress, "eta_ms": 12_000 });
    agent.publish(&session, with_summaries("progress.updated", progress));
    let call = json!({
        "tool": "look", "tool_call_id": "call_1", "description": "Looks things up.", "args_summary": "Ben",
        "expected_duration_ms": 2000, "risk_level": "low", "irreversible": false,
    });
    agent.publish(&session, with_summaries("tool.invoked", call));
    let done = json!({
        "tool": "look", "tool_call_id": "call_1", "status": "error", "duration_ms": 1885, "error_message": "No Ben.",
    });
    agent.publish(&session, with_summaries("tool.completed", done));
    let output = json!({
        "type": "aaep:agent.output.streaming", "chunk": "There is no Ben.", "position": 0, "complete": true,
        "coalesce_hint": "completion", "output_id": "out_1", "content_type": "text/markdown", "language": "en",
    });
    agent.publish(&session, output);
    let hand_off = json!({
        "reason": "I may not decide that.", "target_kind": "human", "target_uri": "tel:+47-555-0100",
        "packaged_context": { "order": 17 }, "urgency_for_handoff": "high",
    });
    agent.publish(&session, with_summaries("handoff.requested", hand_off));
    let end = json!({
        "duration_ms": 60_000, "tool_invocations_count": 1, "output_summary": "A receipt.",
        "result_uri": "https://bank.example/1",
    });
    agent.publish(&session, with_summaries("session.completed", end));
    let session = agent.start();
    let mut clarification = with_summaries(
        "awaiting.clarification",
        json!({
            "question": "Which Ben?", "timeout_seconds": 60, "context": "There are two.", "default_response": "a",
            "accepted_response_kinds": ["multiple_choice"],
            "choices": [{ "value": "a", "label": "Ben Adams" }, { "value": "o", "label": "Ben Okri" }],
        }),
    );
    clarification.as_object_mut().unwrap().remove("type");
    agent.ask(&session, true, clarification);
    let mut confirmation = with_summaries(
        "awaiting.confirmation",
        json!({
            "action": "Send 5 euro.", "consequence": "They are gone.", "timeout_seconds": 60,
            "default_decision": "reject", "risk_level": "medium", "irreversible": false,
            "reversibility": "reversible_with_effort", "allowed_replies": ["accept", "reject"],
            "extra_context": { "balance": "12" },
        }),
    );
    confirmation.as_object_mut().unwrap().remove("type");
    agent.ask(&session, false, confirmation);
    let session = agent.start();
    let end = json!({
        "error_category": "permanent", "error_code": "BANK_CLOSED", "error_uri": "https://bank.example/help",
        "recoverable": true, "remediation_hint": "Come back tomorrow.",
    });
    agent.publish(&session, with_summaries("session.errored", end));
    let session = agent.start();
    let end = json!({
        "cancelled_by": "system", "cancellation_reason": "bank_closed", "partial_result": "One of two was paid.",
    });
    agent.publish(&session, with_summaries("session.cancelled", end));
}

/// Returns every field of the twelve events, from the schemas, except `sequence_number`, which only the hub assigns.
fn all_fields() -> BTreeSet<String> {
    let mut fields = BTreeSet::new();
    for schema in aaep::schema::all() {
        if let Some(kind) = schema.name.strip_prefix("agent.") {
            collect_properties(&serde_json::from_str(&schema.text).unwrap(), kind, &mut fields);
        }
    }
    fields.retain(|field| !field.ends_with("/sequence_number"));
    fields
}

fn collect_properties(schema: &Value, path: &str, fields: &mut BTreeSet<String>) {
    for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}/{name}");
        collect_properties(schema, &path, fields);
        fields.insert(path);
    }
}

fn collect_paths(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    for (name, value) in value.as_object().into_iter().flatten() {
        let path = format!("{path}/{name}");
        collect_paths(value, &path, found);
        found.insert(path);
    }
}

fn received_fields(stream: &mut EventStream) -> BTreeSet<String> {
    let mut received = BTreeSet::new();
    loop {
        let (kind, _, event) = stream.next();
        collect_paths(&event, &kind, &mut received);
        if kind == "session.cancelled" {
            return received;
        }
    }
}

#[test]
fn an_agent_can_set_every_field_through_http_and_websocket() {
    let hub = HubProcess::start_in_memory();
    let client = hub.client();
    for mut agent in [Agent::Http(client.clone()), Agent::WebSocket(Box::new(AgentWebSocket::open(&hub)))] {
        let capabilities = json!({ "supports_confirmation_reply": true, "supports_clarification_reply": true, "verbosity": "detailed" });
        let subscription = client.subscribe(&capabilities.to_string());
        let mut stream = client.open_event_stream(&subscription, None);
        publish_all(&mut agent);
        let received = received_fields(&mut stream);
        let missing: Vec<_> = all_fields().difference(&received).cloned().collect();
        assert!(missing.is_empty(), "{missing:#?}");
    }
}
