//! JSON-RPC 2.0: what agents on a WebSocket and listeners on standard input have in common.

use aaep::json::{Kind, Value, Writer};

pub(crate) const PARSE_ERROR: i64 = -32700;
pub(crate) const INVALID_REQUEST: i64 = -32600;
pub(crate) const METHOD_NOT_FOUND: i64 = -32601;
pub(crate) const INVALID_PARAMS: i64 = -32602;

/// The id of a request whose own id is not known.
pub(crate) const NULL: &str = "null";

/// A message of these members, each as JSON, in this order.
pub(crate) fn message(members: &[(&str, &str)]) -> String {
    let mut writer = Writer::default();
    writer.open_object();
    writer.key("jsonrpc").text("2.0");
    for (name, json) in members {
        writer.key(name).raw(json);
    }
    writer.close_object();
    writer.finish()
}

/// An error object (§5.1).
pub(crate) fn error(code: i64, message: &str, data: Option<&str>) -> String {
    let mut writer = Writer::default();
    writer.open_object();
    writer.key("code").integer(code);
    writer.key("message").text(message);
    if let Some(data) = data {
        writer.key("data").raw(data);
    }
    writer.close_object();
    writer.finish()
}

/// Whether a value may be the id of a request.
pub(crate) fn is_id(value: &Value<'_>) -> bool {
    matches!(value.kind(), Kind::Text | Kind::Number | Kind::Null)
}

/// Whether a message says that it is JSON-RPC 2.0.
pub(crate) fn is_version_2(message: &Value<'_>) -> bool {
    message.member("jsonrpc").is_some_and(|version| version.is("2.0"))
}
