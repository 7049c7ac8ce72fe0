//! OTLP in JSON: the protobuf messages with lower camel case names, ids in hexadecimal, and 64-bit integers as text or numbers.

use seal::json::{JsonKind, JsonValue, Tape};

use super::message_count::{CountError, check_json};
use super::proto::{
    AnyValue, ArrayValue, KeyValue, KeyValueList, LogRecord, LogsRequest, Resource, ResourceLogs,
    ResourceSpans, ScopeLogs, ScopeSpans, Span, Status, TraceRequest, Value,
};

/// Maximum depth of attribute values. Deeper ones are left out.
const MAX_VALUE_DEPTH: usize = 32;

/// Why a body is not read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum JsonError {
    /// It is not a JSON object.
    Malformed(String),
    /// It has too many messages.
    Count(CountError),
}

/// Reads an `ExportTraceServiceRequest` with at most `max_messages` messages.
pub(super) fn read_traces(text: &str, max_messages: usize) -> Result<TraceRequest, JsonError> {
    read_root(text, max_messages, |root| TraceRequest {
        resource_spans: list(root, "resourceSpans", |part| ResourceSpans {
            resource: read_resource(part),
            scope_spans: list(part, "scopeSpans", |scope| ScopeSpans {
                spans: list(scope, "spans", read_span),
            }),
        }),
    })
}

/// Reads an `ExportLogsServiceRequest` with at most `max_messages` messages.
pub(super) fn read_logs(text: &str, max_messages: usize) -> Result<LogsRequest, JsonError> {
    read_root(text, max_messages, |root| LogsRequest {
        resource_logs: list(root, "resourceLogs", |part| ResourceLogs {
            resource: read_resource(part),
            scope_logs: list(part, "scopeLogs", |scope| ScopeLogs {
                log_records: list(scope, "logRecords", read_log_record),
            }),
        }),
    })
}

fn read_root<T>(
    text: &str,
    max_messages: usize,
    read: impl FnOnce(&JsonValue<'_>) -> T,
) -> Result<T, JsonError> {
    let mut tape = Tape::default();
    let not_json = |error| JsonError::Malformed(format!("The body is not JSON: {error}."));
    let doc = tape.read(text).map_err(not_json)?;
    if doc.root().kind() != JsonKind::Object {
        return Err(JsonError::Malformed("The body must be a JSON object.".to_owned()));
    }
    check_json(&doc.root(), max_messages).map_err(JsonError::Count)?;
    Ok(read(&doc.root()))
}

fn read_resource(part: &JsonValue<'_>) -> Option<Resource> {
    Some(Resource { attributes: list(&part.member("resource")?, "attributes", read_key_value) })
}

fn read_span(span: &JsonValue<'_>) -> Span {
    Span {
        trace_id: hex(span, "traceId"),
        span_id: hex(span, "spanId"),
        name: text(span, "name"),
        start_time_unix_nano: nanoseconds(span, "startTimeUnixNano"),
        end_time_unix_nano: nanoseconds(span, "endTimeUnixNano"),
        attributes: list(span, "attributes", read_key_value),
        status: span.member("status").map(|status| Status {
            message: text(&status, "message"),
            code: status.member("code").and_then(|code| read_code(&code)).unwrap_or_default(),
        }),
    }
}

/// Enum values are numbers in OTLP's JSON. Some clients write their names.
fn read_code(code: &JsonValue<'_>) -> Option<i32> {
    if code.is_text("STATUS_CODE_ERROR") {
        return Some(2);
    }
    i32::try_from(code.as_number()?.as_i64()?).ok()
}

fn read_log_record(record: &JsonValue<'_>) -> LogRecord {
    LogRecord {
        time_unix_nano: nanoseconds(record, "timeUnixNano"),
        observed_time_unix_nano: nanoseconds(record, "observedTimeUnixNano"),
        body: record.member("body").map(|body| read_value(&body, 0)),
        attributes: list(record, "attributes", read_key_value),
        trace_id: hex(record, "traceId"),
        span_id: hex(record, "spanId"),
        event_name: text(record, "eventName"),
    }
}

fn read_key_value(member: &JsonValue<'_>) -> KeyValue {
    read_member(member, 0)
}

fn read_member(member: &JsonValue<'_>, depth: usize) -> KeyValue {
    KeyValue {
        key: text(member, "key"),
        value: member.member("value").map(|value| read_value(&value, depth)),
    }
}

fn read_value(any: &JsonValue<'_>, depth: usize) -> AnyValue {
    if depth >= MAX_VALUE_DEPTH {
        return AnyValue { value: None };
    }
    let value = any.members().find_map(|(kind, value)| {
        Some(match kind.text()?.as_ref() {
            "stringValue" => Value::Text(value.text()?.into_owned()),
            "boolValue" => Value::Bool(value.as_bool()?),
            "intValue" => Value::Int(read_integer(&value)?),
            "doubleValue" => Value::Double(read_double(&value)?),
            "arrayValue" => Value::Array(ArrayValue {
                values: list(&value, "values", |item| read_value(item, depth + 1)),
            }),
            "kvlistValue" => Value::Object(KeyValueList {
                values: list(&value, "values", |item| read_member(item, depth + 1)),
            }),
            _ => return None,
        })
    });
    AnyValue { value }
}

fn read_integer(value: &JsonValue<'_>) -> Option<i64> {
    match value.text() {
        Some(text) => text.parse().ok(),
        None => value.as_number()?.as_i64(),
    }
}

fn read_double(value: &JsonValue<'_>) -> Option<f64> {
    match value.text() {
        Some(text) => text.parse().ok(),
        None => Some(value.as_number()?.as_f64()),
    }
}

fn nanoseconds(object: &JsonValue<'_>, name: &str) -> u64 {
    let Some(value) = object.member(name) else { return 0 };
    let digits = value.text().map_or_else(|| value.source().to_owned(), std::borrow::Cow::into_owned);
    digits.parse().unwrap_or_default()
}

fn hex(object: &JsonValue<'_>, name: &str) -> Vec<u8> {
    let digits = text(object, name);
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let pairs = digits.as_bytes().chunks(2).map(|pair| match pair {
        [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
        _ => None,
    });
    // An invalid id becomes an empty one, which is rejected later.
    pairs.collect::<Option<Vec<u8>>>().unwrap_or_default()
}

fn text(object: &JsonValue<'_>, name: &str) -> String {
    object.member(name).and_then(|value| value.text().map(std::borrow::Cow::into_owned)).unwrap_or_default()
}

fn list<T>(object: &JsonValue<'_>, name: &str, read: impl Fn(&JsonValue<'_>) -> T) -> Vec<T> {
    object.member(name).map(|list| list.items().map(|item| read(&item)).collect()).unwrap_or_default()
}
