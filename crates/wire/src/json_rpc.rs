//! The parts of JSON-RPC 2.0 that agents on a WebSocket and listeners on standard input share.

use aaep::json::{JsonKind, JsonValue, JsonWriter};

pub(crate) const PARSE_ERROR: i64 = -32700;
pub(crate) const INVALID_REQUEST: i64 = -32600;
pub(crate) const METHOD_NOT_FOUND: i64 = -32601;
pub(crate) const INVALID_PARAMS: i64 = -32602;

/// The id in a response to a request whose own id is unknown.
pub(crate) const NULL_ID: &str = "null";

/// Writes a message with these members, each given as JSON, in this order.
pub(crate) fn message(members: &[(&str, &str)]) -> String {
    let mut writer = JsonWriter::default();
    writer.open_object();
    writer.key("jsonrpc").text("2.0");
    for (name, json) in members {
        writer.key(name).raw(json);
    }
    writer.close_object();
    writer.finish()
}

/// Writes an error object (JSON-RPC 2.0, section 5.1).
pub(crate) fn error(code: i64, message: &str, data: Option<&str>) -> String {
    let mut writer = JsonWriter::default();
    writer.open_object();
    writer.key("code").integer(code);
    writer.key("message").text(message);
    if let Some(data) = data {
        writer.key("data").raw(data);
    }
    writer.close_object();
    writer.finish()
}

/// Returns whether a value is allowed as the id of a request.
pub(crate) fn is_valid_id(value: &JsonValue<'_>) -> bool {
    matches!(value.kind(), JsonKind::Text | JsonKind::Number | JsonKind::Null)
}

/// Returns whether a message declares JSON-RPC 2.0.
pub(crate) fn is_version_2(message: &JsonValue<'_>) -> bool {
    message.member("jsonrpc").is_some_and(|version| version.is_text("2.0"))
}
