//! Counts the messages in a request before it is decoded.
//!
//! An empty message has two bytes in protobuf, and more than a hundred in memory. Without a limit on the number of messages, a small
//! compressed request would make the receiver allocate hundreds of megabytes.

use seal::json::{JsonKind, JsonValue};

/// Why a request is not decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CountError {
    /// It has more messages than the limit.
    TooMany,
    /// It is not a protobuf message.
    Malformed,
}

/// The fields of a message that contain messages.
pub(super) struct MessageFields(&'static [(u64, &'static Self)]);

pub(super) static TRACE_REQUEST: MessageFields = MessageFields(&[(1, &RESOURCE_SPANS)]);
pub(super) static LOGS_REQUEST: MessageFields = MessageFields(&[(1, &RESOURCE_LOGS)]);
static RESOURCE_SPANS: MessageFields = MessageFields(&[(1, &RESOURCE), (2, &SCOPE_SPANS)]);
static RESOURCE_LOGS: MessageFields = MessageFields(&[(1, &RESOURCE), (2, &SCOPE_LOGS)]);
static RESOURCE: MessageFields = MessageFields(&[(1, &KEY_VALUE)]);
static SCOPE_SPANS: MessageFields = MessageFields(&[(2, &SPAN)]);
static SCOPE_LOGS: MessageFields = MessageFields(&[(2, &LOG_RECORD)]);
static SPAN: MessageFields = MessageFields(&[(9, &KEY_VALUE), (15, &STATUS)]);
static STATUS: MessageFields = MessageFields(&[]);
static LOG_RECORD: MessageFields = MessageFields(&[(5, &ANY_VALUE), (6, &KEY_VALUE)]);
static KEY_VALUE: MessageFields = MessageFields(&[(2, &ANY_VALUE)]);
static ANY_VALUE: MessageFields = MessageFields(&[(5, &ARRAY_VALUE), (6, &KEY_VALUE_LIST)]);
static ARRAY_VALUE: MessageFields = MessageFields(&[(1, &ANY_VALUE)]);
static KEY_VALUE_LIST: MessageFields = MessageFields(&[(1, &KEY_VALUE)]);

/// Maximum depth of nested messages, the same as in the decoder.
const MAX_DEPTH: usize = 100;

/// Checks that a protobuf message has at most `max` messages in it.
pub(super) fn check_protobuf(
    body: &[u8],
    fields: &'static MessageFields,
    max: usize,
) -> Result<(), CountError> {
    let mut left = max;
    count_protobuf(body, fields, &mut left, MAX_DEPTH)
}

fn count_protobuf(
    mut body: &[u8],
    fields: &'static MessageFields,
    left: &mut usize,
    depth: usize,
) -> Result<(), CountError> {
    while !body.is_empty() {
        let key = read_varint(&mut body)?;
        let value = match key & 7 {
            0 => {
                read_varint(&mut body)?;
                continue;
            }
            1 => take(&mut body, 8)?,
            2 => {
                let length = read_varint(&mut body)?;
                take(&mut body, length)?
            }
            5 => take(&mut body, 4)?,
            // OTLP has no groups.
            _ => return Err(CountError::Malformed),
        };
        let contained = fields.0.iter().find(|(tag, _)| *tag == key >> 3);
        if let (2, Some((_, fields))) = (key & 7, contained) {
            *left = left.checked_sub(1).ok_or(CountError::TooMany)?;
            let depth = depth.checked_sub(1).ok_or(CountError::Malformed)?;
            count_protobuf(value, fields, left, depth)?;
        }
    }
    Ok(())
}

fn take<'b>(body: &mut &'b [u8], length: u64) -> Result<&'b [u8], CountError> {
    let length = usize::try_from(length).map_err(|_| CountError::Malformed)?;
    let (value, rest) = body.split_at_checked(length).ok_or(CountError::Malformed)?;
    *body = rest;
    Ok(value)
}

fn read_varint(body: &mut &[u8]) -> Result<u64, CountError> {
    let mut value = 0;
    for shift in (0..u64::BITS).step_by(7) {
        let (byte, rest) = body.split_first().ok_or(CountError::Malformed)?;
        *body = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(CountError::Malformed)
}

/// Checks that a JSON value contains at most `max` messages: every item of a list is read as one, and so is every object.
pub(super) fn check_json(value: &JsonValue<'_>, max: usize) -> Result<(), CountError> {
    let mut left = max;
    count_json(value, &mut left)
}

fn count_json(value: &JsonValue<'_>, left: &mut usize) -> Result<(), CountError> {
    let is_container = |value: &JsonValue<'_>| matches!(value.kind(), JsonKind::Object | JsonKind::Array);
    let members = value.members().map(|(_, member)| member).filter(is_container);
    for part in value.items().chain(members) {
        *left = left.checked_sub(1).ok_or(CountError::TooMany)?;
        count_json(&part, left)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test reports a failure by panicking")]

    use prost::Message as _;
    use seal::json::Tape;

    use super::super::json::{read_logs, read_traces};
    use super::super::proto::{LogsRequest, TraceRequest};
    use super::*;

    const TRACES: &str = r#"{"resourceSpans":[{"resource":{"attributes":[{"key":"a","value":{"intValue":"1"}}]},
        "scopeSpans":[{"spans":[{"status":{"code":2},"attributes":[
            {"key":"b","value":{"arrayValue":{"values":[{"boolValue":true},{"boolValue":true}]}}},
            {"key":"c","value":{"kvlistValue":{"values":[{"key":"d","value":{"intValue":"1"}}]}}}]},{}]}]}]}"#;
    const LOGS: &str = r#"{"resourceLogs":[{"scopeLogs":[{"logRecords":[
        {"traceId":"0102","body":{"stringValue":"x"},"attributes":[{"key":"b","value":{"intValue":"1"}}]}]}]}]}"#;

    #[test]
    fn every_message_counts_at_every_depth() {
        let traces = read_traces(TRACES, usize::MAX).unwrap().encode_to_vec();
        let logs = read_logs(LOGS, usize::MAX).unwrap().encode_to_vec();
        assert_eq!(
            TraceRequest::decode(traces.as_slice()).unwrap(),
            read_traces(TRACES, usize::MAX).unwrap()
        );
        assert_eq!(LogsRequest::decode(logs.as_slice()).unwrap(), read_logs(LOGS, usize::MAX).unwrap());
        for (body, fields, count) in [(&traces, &TRACE_REQUEST, 18), (&logs, &LOGS_REQUEST, 6)] {
            assert_eq!(check_protobuf(body, fields, count), Ok(()));
            assert_eq!(check_protobuf(body, fields, count - 1), Err(CountError::TooMany));
        }
        // In JSON, a list counts too.
        for (text, count) in [(TRACES, 25), (LOGS, 10)] {
            let mut tape = Tape::default();
            let root = tape.read(text).unwrap().root();
            assert_eq!(check_json(&root, count), Ok(()));
            assert_eq!(check_json(&root, count - 1), Err(CountError::TooMany));
        }
    }

    #[test]
    fn what_cannot_be_counted_is_refused() {
        let group = [0x0b, 0x0c];
        let truncated = [0x0a, 0x05, 0x12];
        let long_number = [0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        let truncated_fixed = [0x09, 0, 0];
        for body in [&group[..], &truncated, &long_number, &truncated_fixed] {
            assert_eq!(check_protobuf(body, &TRACE_REQUEST, 100), Err(CountError::Malformed), "{body:?}");
        }
        // A value in an array in a value, and so on.
        let mut nested = Vec::new();
        for depth in 0..120 {
            let tag = if depth % 2 == 0 { 0x0a } else { 0x2a };
            let mut outer = vec![tag];
            prost::encoding::encode_varint(nested.len() as u64, &mut outer);
            outer.extend(nested);
            nested = outer;
        }
        assert_eq!(check_protobuf(&nested, &ANY_VALUE, 1_000), Err(CountError::Malformed));
    }
}
