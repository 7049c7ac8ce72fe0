//! The agent API of a hub as OpenAPI 3.1, with the schemas of its bodies made from the same tables as the types and the checks.
//!
//! `docs/agent-api.md` explains the API. The clients in other languages are tested against this description and the hub.

use crate::event::{ENVELOPE, EventType};
use crate::json::{self, JsonWriter};
use crate::message::MessageType;
use crate::record::{Field, FieldType};

use super::{build_message_schema, indent, write_const, write_field_type, write_name_list, write_properties};

/// Members of the envelope that an agent may set. The hub writes the others.
const AGENT_MEMBERS: [&str; 7] =
    ["@context", "urgency", "verbosity", "correlation_id", "localization_hints", "extensions", "producer"];

/// Members that the hub completes if an agent leaves them out.
const COMPLETED_MEMBERS: [&str; 4] = ["summary_normal", "from_state", "reply_token", "tool_call_id"];

/// The id of the producer that speaks. Only the start of a session describes producers.
const SPEAKER: &str = r#"{"oneOf":[{"type":"string"},{"type":"object","properties":{"agent_id":{"type":"string"}},"required":["agent_id"]}]}"#;

/// One operation of the agent API.
struct Operation {
    path: &'static str,
    method: &'static str,
    id: &'static str,
    summary: &'static str,
    /// The JSON-RPC method over WebSocket.
    rpc: Option<&'static str>,
    /// The media types of the request, each with the name of its schema.
    request: &'static [(&'static str, &'static str)],
    status: u16,
    response: &'static str,
    query: &'static [(&'static str, &'static str)],
}

const JSON: &str = "application/json";

const OPERATIONS: [Operation; 12] = [
    Operation {
        path: "/agent/v1/sessions",
        method: "post",
        id: "startSession",
        summary: "Starts a session.",
        rpc: Some("session.start"),
        request: &[(JSON, "SessionStart")],
        status: 201,
        response: "SessionStarted",
        query: &[],
    },
    Operation {
        path: "/agent/v1/sessions/{session_id}/events",
        method: "post",
        id: "reportEvents",
        summary: "Reports one event, or several as JSON Lines. The hub accepts all of them or none.",
        rpc: Some("session.event"),
        request: &[(JSON, "AgentEvent"), ("application/x-ndjson", "AgentEvents")],
        status: 200,
        response: "EventsAccepted",
        query: &[],
    },
    Operation {
        path: "/agent/v1/sessions/{session_id}/output",
        method: "post",
        id: "writeOutput",
        summary: "Writes a piece of the model's text.",
        rpc: Some("session.output"),
        request: &[("text/plain", "OutputPiece")],
        status: 200,
        response: "EventsAccepted",
        query: &[
            ("output_id", r#"{"type":"string","pattern":"^out_[A-Za-z0-9]{1,64}$"}"#),
            ("producer", r#"{"type":"string"}"#),
            ("complete", r#"{"type":"boolean"}"#),
            ("language", r#"{"type":"string"}"#),
            ("content_type", r#"{"type":"string"}"#),
            ("coalesce_hint", r#"{"enum":["none","word","sentence","paragraph","completion"]}"#),
            ("stays", r#"{"type":"boolean"}"#),
        ],
    },
    Operation {
        path: "/agent/v1/sessions/{session_id}/confirmations",
        method: "post",
        id: "askConfirmation",
        summary: "Asks a person before a call. `tool` and `arguments` bind the answer to that call.",
        rpc: Some("session.ask"),
        request: &[(JSON, "Confirmation")],
        status: 201,
        response: "QuestionOpened",
        query: &[],
    },
    Operation {
        path: "/agent/v1/sessions/{session_id}/clarifications",
        method: "post",
        id: "askClarification",
        summary: "Asks what a person wants.",
        rpc: Some("session.clarify"),
        request: &[(JSON, "Clarification")],
        status: 201,
        response: "QuestionOpened",
        query: &[],
    },
    Operation {
        path: "/agent/v1/sessions/{session_id}/handoffs",
        method: "post",
        id: "handOff",
        summary: "Asks somebody to take over.",
        rpc: Some("session.hand_off"),
        request: &[(JSON, "HandOff")],
        status: 201,
        response: "QuestionOpened",
        query: &[],
    },
    Operation {
        path: "/agent/v1/sessions/{session_id}/replies/{reply_token}",
        method: "get",
        id: "waitForReply",
        summary: "Waits for the answer to a question or a hand-off.",
        rpc: None,
        request: &[],
        status: 200,
        response: "Reply",
        query: &[("wait", r#"{"type":"integer","minimum":0,"maximum":300}"#)],
    },
    Operation {
        path: "/agent/v1/sessions/{session_id}/replies/{reply_token}",
        method: "delete",
        id: "withdraw",
        summary: "Withdraws a question or a hand-off, unless it is already answered.",
        rpc: Some("session.withdraw"),
        request: &[],
        status: 200,
        response: "Reply",
        query: &[],
    },
    Operation {
        path: "/agent/v1/sessions/{session_id}/invitations",
        method: "post",
        id: "invite",
        summary: "Invites another token to speak as one producer.",
        rpc: Some("session.invite"),
        request: &[(JSON, "InvitationRequest")],
        status: 201,
        response: "Invitation",
        query: &[],
    },
    Operation {
        path: "/agent/v1/sessions/{session_id}/join",
        method: "post",
        id: "join",
        summary: "Joins a session as the invited producer.",
        rpc: Some("session.join"),
        request: &[(JSON, "JoinRequest")],
        status: 200,
        response: "Joined",
        query: &[],
    },
    Operation {
        path: "/agent/v1/manifest",
        method: "put",
        id: "publishManifest",
        summary: "Publishes the agent's manifest, as JSON or signed.",
        rpc: Some("agent.manifest"),
        request: &[(JSON, "Manifest"), ("application/jose", "SignedManifest")],
        status: 200,
        response: "ManifestPublished",
        query: &[],
    },
    Operation {
        path: "/agent/v1/manifest",
        method: "delete",
        id: "withdrawManifest",
        summary: "Withdraws the agent's manifest.",
        rpc: None,
        request: &[],
        status: 204,
        response: "",
        query: &[],
    },
];

/// Schemas of bodies that are not events.
const SMALL_SCHEMAS: [(&str, &str); 17] = [
    ("AgentEvents", r#"{"type":"string","description":"One AgentEvent on each line."}"#),
    ("OutputPiece", r#"{"type":"string","description":"A piece of text, in pieces of any size."}"#),
    (
        "SessionStarted",
        r#"{"type":"object","properties":{"session_id":{"type":"string","pattern":"^sess_[A-Za-z0-9]{1,64}$"}},"required":["session_id"]}"#,
    ),
    (
        "EventsAccepted",
        r#"{"type":"object","properties":{"event_ids":{"type":"array","items":{"type":"string"}},"tool_call_ids":{"type":"object","additionalProperties":{"type":"string"}},"closed":{"type":"array","items":{"type":"object"}}},"required":["event_ids"]}"#,
    ),
    (
        "QuestionOpened",
        r#"{"type":"object","properties":{"reply_token":{"type":"string","pattern":"^rpl_[A-Za-z0-9]{1,64}$"},"deadline":{"type":"string","format":"date-time"}},"required":["reply_token","deadline"]}"#,
    ),
    (
        "Reply",
        r#"{"type":"object","properties":{"status":{"enum":["pending","resolved","stopped"]},"decision":{"enum":["accept","reject"]},"response":{"type":["string","boolean","number"]},"by":{"enum":["reply","timeout","closure","unreachable","cancelled","stopped"]},"receipt":{"type":"object"},"receipt_signature":{"type":"string"},"outcome":{"enum":["acknowledged","rejected","timeout","unreachable","withdrawn"]},"note":{"type":"string"},"principal":{"type":"string"}},"required":["status"]}"#,
    ),
    (
        "InvitationRequest",
        r#"{"type":"object","properties":{"producer":{"type":"string"},"expires_in_seconds":{"type":"integer","minimum":1}},"required":["producer"]}"#,
    ),
    (
        "Invitation",
        r#"{"type":"object","properties":{"session_id":{"type":"string"},"producer":{"type":"string"},"invitation":{"type":"string"},"expires_at":{"type":"string","format":"date-time"}},"required":["session_id","producer","invitation","expires_at"]}"#,
    ),
    (
        "JoinRequest",
        r#"{"type":"object","properties":{"invitation":{"type":"string"},"producer":{"type":"object"}},"required":["invitation"]}"#,
    ),
    (
        "Joined",
        r#"{"type":"object","properties":{"session_id":{"type":"string"},"producer":{"type":"string"}},"required":["session_id","producer"]}"#,
    ),
    ("SignedManifest", r#"{"type":"string","description":"A compact JWS."}"#),
    (
        "ManifestPublished",
        r#"{"type":"object","properties":{"agent_id":{"type":"string"},"manifest_uri":{"type":"string","format":"uri"},"verified":{"type":"boolean"}},"required":["agent_id","verified"]}"#,
    ),
    (
        "Problem",
        r#"{"type":"object","properties":{"title":{"type":"string"},"status":{"type":"integer"},"findings":{"type":"array","items":{"type":"object","properties":{"rule":{"type":"string"},"pointer":{"type":"string"},"message":{"type":"string"}}}}},"required":["title","status"]}"#,
    ),
    (
        "Resolved",
        r##"{"allOf":[{"$ref":"#/components/schemas/Reply"},{"type":"object","properties":{"session_id":{"type":"string"},"reply_token":{"type":"string"}},"required":["session_id","reply_token"]}]}"##,
    ),
    (
        "Stopped",
        r##"{"type":"object","properties":{"session_id":{"type":"string"},"reason":{"$ref":"#/components/schemas/SessionStopReason"}},"required":["session_id","reason"]}"##,
    ),
    (
        "Followed",
        r#"{"type":"object","properties":{"session_id":{"type":"string"},"state":{"type":"string"}},"required":["session_id"]}"#,
    ),
    (
        "SessionStopReason",
        r#"{"enum":["user","gone","completed","errored","producer","timeout","system","ended"]}"#,
    ),
];

/// Returns the description of the agent API as indented JSON: OpenAPI 3.1 with the JSON-RPC methods in `x-json-rpc`.
///
/// ```
/// assert!(aaep::schema::agent_api().contains("/agent/v1/sessions/{session_id}/confirmations"));
/// ```
pub fn agent_api() -> String {
    let text = json::write_object(|writer| {
        writer.key("openapi").text("3.1.0");
        writer.key("info").raw(r#"{"title":"sayso agent API","version":"1","description":"Generated by `sayso schema --agent-api`. docs/agent-api.md explains it."}"#);
        writer.key("paths").object(write_paths);
        writer.key("components").object(|writer| {
            writer.key("securitySchemes").raw(r#"{"token":{"type":"http","scheme":"bearer"}}"#);
            writer.key("schemas").object(write_schemas);
        });
        writer.key("security").raw(r#"[{"token":[]},{}]"#);
        writer.key("x-json-rpc").object(write_rpc);
    });
    indent(&text)
}

fn write_paths(writer: &mut JsonWriter) {
    let mut open_path = "";
    for operation in &OPERATIONS {
        if operation.path != open_path {
            if !open_path.is_empty() {
                writer.close_object();
            }
            writer.key(operation.path).open_object();
            open_path = operation.path;
        }
        writer.key(operation.method).object(|writer| write_operation(writer, operation));
    }
    writer.close_object();
}

fn write_operation(writer: &mut JsonWriter, operation: &Operation) {
    writer.key("operationId").text(operation.id);
    writer.key("summary").text(operation.summary);
    let in_path = ["session_id", "reply_token"].into_iter().filter(|name| operation.path.contains(name));
    writer.key("parameters").array(|writer| {
        for name in in_path {
            writer.object(|writer| {
                writer.key("name").text(name);
                writer.key("in").text("path");
                writer.key("required").boolean(true);
                writer.key("schema").raw(r#"{"type":"string"}"#);
            });
        }
        for (name, schema) in operation.query {
            writer.object(|writer| {
                writer.key("name").text(name);
                writer.key("in").text("query");
                writer.key("schema").raw(schema);
            });
        }
        if operation.method == "post" {
            writer.raw(r#"{"name":"Idempotency-Key","in":"header","schema":{"type":"string","minLength":1,"maxLength":256}}"#);
        }
    });
    if !operation.request.is_empty() {
        writer.key("requestBody").object(|writer| {
            writer.key("required").boolean(true);
            writer.key("content").object(|writer| {
                for (media_type, schema) in operation.request {
                    writer.key(media_type).object(|writer| write_reference(writer.key("schema"), schema));
                }
            });
        });
    }
    writer.key("responses").object(|writer| {
        writer.key(&operation.status.to_string()).object(|writer| {
            writer.key("description").text(operation.summary);
            if !operation.response.is_empty() {
                writer.key("content").object(|writer| {
                    writer
                        .key(JSON)
                        .object(|writer| write_reference(writer.key("schema"), operation.response));
                });
            }
        });
        writer.key("default").object(|writer| {
            writer.key("description").text("A problem.");
            writer.key("content").object(|writer| {
                writer
                    .key("application/problem+json")
                    .object(|writer| write_reference(writer.key("schema"), "Problem"));
            });
        });
    });
}

fn write_reference(writer: &mut JsonWriter, schema: &str) {
    writer.object(|writer| writer.key("$ref").text(&format!("#/components/schemas/{schema}")));
}

fn write_rpc(writer: &mut JsonWriter) {
    writer.key("path").text("/agent/v1/ws");
    writer.key("methods").object(|writer| {
        for operation in &OPERATIONS {
            if let Some(method) = operation.rpc {
                writer.key(method).text(operation.id);
            }
        }
        writer.key("session.follow").text("follow");
    });
    writer.key("notifications").array(|writer| {
        writer.text("session.resolved");
        writer.text("session.stopped");
    });
    // The schemas of what the hub sends but no route returns: the result of `session.follow`, and the parameters of the notifications.
    writer.key("messages").object(|writer| {
        write_reference(writer.key("session.follow"), "Followed");
        write_reference(writer.key("session.resolved"), "Resolved");
        write_reference(writer.key("session.stopped"), "Stopped");
    });
}

fn write_schemas(writer: &mut JsonWriter) {
    writer.key("AgentEvent").object(|writer| {
        writer.key("oneOf").array(|writer| {
            for core_type in EventType::CORE.iter().filter(|it| **it != EventType::SessionStarted) {
                write_reference(writer, &schema_name(core_type));
            }
        });
    });
    for core_type in EventType::CORE {
        writer.key(&schema_name(core_type)).object(|writer| write_event(writer, core_type));
    }
    writer.key("Manifest").raw(&without_identity(&build_message_schema(MessageType::Manifest).text));
    for (name, schema) in SMALL_SCHEMAS {
        writer.key(name).raw(schema);
    }
}

/// Returns the name of an event's schema: questions and the start of a session have routes of their own.
fn schema_name(core_type: &EventType) -> String {
    match core_type {
        EventType::SessionStarted => "SessionStart".to_owned(),
        EventType::AwaitingConfirmation => "Confirmation".to_owned(),
        EventType::AwaitingClarification => "Clarification".to_owned(),
        EventType::HandoffRequested => "HandOff".to_owned(),
        other => {
            let words = other.as_str().trim_start_matches("aaep:agent.").split('.');
            words
                .map(|word| {
                    word.get(..1).unwrap_or_default().to_uppercase() + word.get(1..).unwrap_or_default()
                })
                .collect()
        }
    }
}

/// Writes the schema of an event as an agent sends it: its own members, and the members of the envelope that the agent may set.
fn write_event(writer: &mut JsonWriter, core_type: &EventType) {
    let may_set = |field: &&Field| AGENT_MEMBERS.contains(&field.name);
    let fields: Vec<_> = core_type.fields().iter().chain(ENVELOPE.iter().filter(may_set)).collect();
    let is_body = matches!(
        core_type,
        EventType::SessionStarted
            | EventType::AwaitingConfirmation
            | EventType::AwaitingClarification
            | EventType::HandoffRequested
    );
    writer.key("title").text(core_type.as_str());
    writer.key("type").text("object");
    writer.key("properties").open_object();
    if !is_body {
        write_const(writer.key("type"), core_type.as_str());
    }
    for field in fields.iter().filter(|field| field.name != "reply_token") {
        match &field.value_type {
            FieldType::Record { fields, .. } if field.name == "producer" => {
                write_producer(writer.key(field.name), core_type, fields);
            }
            value_type => write_field_type(writer.key(field.name), value_type),
        }
    }
    for (name, schema) in hub_members(core_type) {
        writer.key(name).raw(schema);
    }
    writer.close_object();
    let required: Vec<_> = core_type
        .fields()
        .iter()
        .filter(|field| field.missing_rule.is_some() && !COMPLETED_MEMBERS.contains(&field.name))
        .map(|field| field.name)
        .chain((!is_body).then_some("type"))
        .collect();
    write_name_list(writer, "required", &required);
}

/// Writes the schema of the producer that speaks. Only the start of a session describes the producer; the hub completes its id from the token.
fn write_producer(writer: &mut JsonWriter, core_type: &EventType, fields: &[Field]) {
    if *core_type != EventType::SessionStarted {
        writer.raw(SPEAKER);
        return;
    }
    writer.object(|writer| {
        let all: Vec<_> = fields.iter().collect();
        write_properties(writer, &all, |writer, field| write_field_type(writer, &field.value_type));
        writer.key("additionalProperties").boolean(false);
    });
}

/// Returns the members of an event or a body that only the hub reads; listeners do not receive them in this form.
fn hub_members(core_type: &EventType) -> &'static [(&'static str, &'static str)] {
    const ARGUMENTS: (&str, &str) = ("arguments", r#"{"type":"object"}"#);
    const TEXT: &str = r#"{"type":"string"}"#;
    match core_type {
        EventType::SessionStarted => &[
            ("producers", r#"{"type":"array","items":{"type":"object"},"maxItems":15}"#),
            ("parent", TEXT),
            (
                "states",
                r#"{"type":"array","items":{"type":"object","properties":{"state":{"type":"string"},"words":{"type":"object","additionalProperties":{"type":"string"}}},"required":["state"]},"maxItems":32}"#,
            ),
        ],
        EventType::AwaitingConfirmation => &[("tool", TEXT), ARGUMENTS, ("tool_call_id", TEXT)],
        EventType::ToolInvoked => &[ARGUMENTS],
        EventType::HandoffRequested => &[("timeout_seconds", r#"{"type":"integer","minimum":1}"#)],
        _ => &[],
    }
}

/// Returns a schema without `$schema` and `$id`, which only whole documents have.
fn without_identity(schema: &str) -> String {
    let lines = schema.lines().filter(|line| {
        let line = line.trim_start();
        !line.starts_with(r#""$schema""#) && !line.starts_with(r#""$id""#)
    });
    lines.collect()
}
