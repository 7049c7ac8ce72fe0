//! JSON-RPC 2.0: parses calls, writes responses and notifications.

use std::borrow::Cow;
use std::collections::HashSet;

use aaep::json::{JsonKind, JsonValue, Tape};
use hub::command::HubCommand;

use super::methods::parse_command;
use crate::http::{HttpResponse, StatusCode};
use crate::json_rpc::{self, NULL_ID};

/// A parsed message.
#[derive(Debug)]
pub(super) enum RpcMessage {
    Single(RpcCall),
    /// Several calls. They get one combined response after all of them have been handled (JSON-RPC 2.0,
    /// section 6).
    Batch(Vec<RpcCall>),
}

/// A call, or the error that it is answered with.
#[derive(Debug)]
pub(super) struct RpcCall {
    /// The id, as JSON. A notification has none and gets no response.
    pub(super) id: Option<String>,
    /// The command for the hub.
    pub(super) command: Result<HubCommand, RpcError>,
}

/// An error: a JSON-RPC code, and the problem details that the same request would get over HTTP.
#[derive(Debug)]
pub(super) struct RpcError {
    code: i64,
    problem: HttpResponse,
}

impl RpcError {
    fn new(code: i64, status: StatusCode, title: &str) -> Self {
        Self { code, problem: HttpResponse::problem(status, title) }
    }

    pub(super) fn parse_error(title: &str) -> Self {
        Self::new(json_rpc::PARSE_ERROR, StatusCode::BadRequest, title)
    }

    pub(super) fn invalid_request(title: &str) -> Self {
        Self::new(json_rpc::INVALID_REQUEST, StatusCode::BadRequest, title)
    }

    pub(super) fn method_not_found(name: &str) -> Self {
        let name: String = name.chars().take(64).collect();
        Self::new(json_rpc::METHOD_NOT_FOUND, StatusCode::NotFound, &format!("Unknown method {name:?}."))
    }

    pub(super) fn invalid_params(title: &str) -> Self {
        Self::new(json_rpc::INVALID_PARAMS, StatusCode::BadRequest, title)
    }

    /// Converts an HTTP problem response to an error.
    pub(super) fn from_problem(problem: HttpResponse) -> Self {
        let code = match problem.status {
            StatusCode::BadRequest => json_rpc::INVALID_PARAMS,
            StatusCode::Forbidden => -32003,
            StatusCode::NotFound => -32004,
            StatusCode::Conflict => -32009,
            StatusCode::UnprocessableContent => -32022,
            StatusCode::TooManyRequests => -32029,
            StatusCode::ServiceUnavailable => -32053,
            _ => -32603,
        };
        Self { code, problem }
    }

    /// Writes the error response.
    pub(super) fn to_response(&self, id: Option<&str>) -> String {
        let data = String::from_utf8_lossy(self.problem.body_bytes());
        let title = self.problem.title.as_deref().unwrap_or("The request failed.");
        let data = if data.is_empty() { "null" } else { &*data };
        let error = json_rpc::error(self.code, title, Some(data));
        json_rpc::message(&[("id", id.unwrap_or(NULL_ID)), ("error", &error)])
    }
}

/// Writes a success response.
pub(super) fn success_response(id: &str, json: &str) -> String {
    json_rpc::message(&[("id", id), ("result", json)])
}

/// Writes a notification. The method name must not contain characters that need escaping in JSON.
pub(super) fn notification(method: &str, params: &str) -> String {
    json_rpc::message(&[("method", &format!("\"{method}\"")), ("params", params)])
}

/// Joins the responses of a batch.
pub(super) fn batch_response(responses: &[String]) -> String {
    format!("[{}]", responses.join(","))
}

/// Parses a message. A batch may have at most `max_calls` calls.
pub(super) fn parse_message(text: &str, max_calls: usize) -> Result<RpcMessage, RpcError> {
    let mut tape = Tape::default();
    let doc = tape
        .read(text)
        .map_err(|error| RpcError::parse_error(&format!("The message is not JSON: {error}")))?;
    let root = doc.root();
    if root.kind() != JsonKind::Array {
        return Ok(RpcMessage::Single(parse_call(&root)));
    }
    match root.items().take(max_calls.saturating_add(1)).count() {
        0 => Err(RpcError::invalid_request("A batch must have at least one call.")),
        count if count > max_calls => {
            Err(RpcError::invalid_request(&format!("A batch may have at most {max_calls} calls.")))
        }
        _ => Ok(RpcMessage::Batch(root.items().map(|item| parse_call(&item)).collect())),
    }
}

fn parse_call(value: &JsonValue<'_>) -> RpcCall {
    if value.kind() != JsonKind::Object {
        return RpcCall {
            id: Some(NULL_ID.to_owned()),
            command: Err(RpcError::invalid_request("A call must be a JSON object.")),
        };
    }
    let id = value.member("id");
    let has_valid_id = id.as_ref().is_some_and(json_rpc::is_valid_id);
    let parsed = method_and_params(value).and_then(|parsed| match id {
        Some(_) if !has_valid_id => {
            Err(RpcError::invalid_request("The id must be a string, a number or null."))
        }
        _ => Ok(parsed),
    });
    let id = match (id, &parsed) {
        (Some(id), _) if has_valid_id => Some(id.source().to_owned()),
        // A call that is not a valid JSON-RPC request gets an error response even without an id. One with an unknown method does not.
        (_, Err(_)) => Some(NULL_ID.to_owned()),
        _ => None,
    };
    RpcCall { id, command: parsed.and_then(|(method, params)| parse_command(&method, params)) }
}

fn method_and_params<'d>(value: &JsonValue<'d>) -> Result<(Cow<'d, str>, Option<JsonValue<'d>>), RpcError> {
    if let Some(name) = duplicate_member(value) {
        return Err(RpcError::invalid_request(&format!("{name:?} appears twice.")));
    }
    if !json_rpc::is_version_2(value) {
        return Err(RpcError::invalid_request("jsonrpc must be \"2.0\"."));
    }
    let Some(method) = value.member("method").and_then(|method| method.text()) else {
        return Err(RpcError::invalid_request("method is required."));
    };
    let params = value.member("params");
    if params.is_some_and(|params| !matches!(params.kind(), JsonKind::Object | JsonKind::Array)) {
        return Err(RpcError::invalid_request("params must be an object or an array."));
    }
    Ok((method, params))
}

/// Returns a member name that occurs twice in an object.
pub(super) fn duplicate_member(value: &JsonValue<'_>) -> Option<String> {
    let mut seen = HashSet::new();
    let mut member_names = value.members().filter_map(|(name, _)| name.text());
    member_names.find(|name| !seen.insert(name.clone())).map(|name| name.chars().take(64).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the error response to an invalid message.
    fn error_response(text: &str) -> String {
        match parse_message(text, 3) {
            Err(error) => error.to_response(None),
            Ok(RpcMessage::Single(RpcCall { id, command: Err(error) })) => error.to_response(id.as_deref()),
            Ok(other) => format!("{other:?}"),
        }
    }

    #[test]
    fn an_invalid_call_gets_an_error_response() {
        for (text, code, id) in [
            ("", -32700, "null"),
            ("{", -32700, "null"),
            ("[]", -32600, "null"),
            ("[1,2,3,4]", -32600, "null"),
            ("1", -32600, "null"),
            ("null", -32600, "null"),
            ("{}", -32600, "null"),
            (r#"{"jsonrpc":"1.0","method":"a","id":1}"#, -32600, "1"),
            (r#"{"method":"a","id":"x"}"#, -32600, r#""x""#),
            (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, -32600, "1"),
            (r#"{"jsonrpc":"2.0","method":7,"id":1.5}"#, -32600, "1.5"),
            (r#"{"jsonrpc":"2.0","method":"a","params":"x","id":1}"#, -32600, "1"),
            (r#"{"jsonrpc":"2.0","method":"a","id":{}}"#, -32600, "null"),
            (r#"{"jsonrpc":"2.0","method":"a","id":true}"#, -32600, "null"),
            (r#"{"jsonrpc":"2.0","method":"a","method":"b","id":1}"#, -32600, "1"),
            (r#"{"jsonrpc":"2.0","method":7}"#, -32600, "null"),
        ] {
            let expected = format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":""#);
            let response = error_response(text);
            assert!(response.starts_with(&expected), "{text}: {response}");
            assert!(response.contains(r#""data":{"title":""#), "{response}");
        }
    }

    #[test]
    fn ids_are_returned_unchanged_and_notifications_have_none() {
        for id in ["1", "1.50", "null", r#""\u0041""#] {
            let text = format!(r#"{{"jsonrpc":"2.0","method":"session.start","id":{id}}}"#);
            let Ok(RpcMessage::Single(RpcCall { id: Some(parsed), command: Ok(_) })) =
                parse_message(&text, 3)
            else {
                panic!("{text}")
            };
            assert_eq!(parsed, id);
        }
        for (method, is_valid) in [("session.start", true), ("a", false)] {
            let text = format!(r#"{{"jsonrpc":"2.0","method":"{method}"}}"#);
            let Ok(RpcMessage::Single(call)) = parse_message(&text, 3) else { panic!("{text}") };
            assert_eq!((call.id, call.command.is_ok()), (None, is_valid));
        }
    }

    #[test]
    fn a_batch_is_parsed_call_by_call() {
        let text = r#"[{"jsonrpc":"2.0","method":"session.start","id":1},7,{"jsonrpc":"2.0","method":"session.start"}]"#;
        let Ok(RpcMessage::Batch(calls)) = parse_message(text, 3) else { panic!() };
        let ids_and_validity: Vec<_> =
            calls.iter().map(|call| (call.id.as_deref(), call.command.is_ok())).collect();
        assert_eq!(ids_and_validity, [(Some("1"), true), (Some("null"), false), (None, true)]);
    }
}
