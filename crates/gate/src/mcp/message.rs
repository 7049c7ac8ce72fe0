//! JSON-RPC messages: what the gate reads in them, and the messages that it writes itself.
//!
//! Messages are never re-serialized. The gate reads them and forwards the original bytes.

use std::fmt;

use seal::json::{JsonKind, JsonValue, JsonWriter, write_object};
use seal::{CanonicalWriter, canonicalize_exact};

/// The id of a request. The string `"1"` and the number `1` are different ids.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum RequestId {
    Number(String),
    Text(String),
}

impl RequestId {
    /// Reads an id. Returns `None` for anything but a string or a number.
    pub(crate) fn read(value: &JsonValue<'_>) -> Option<Self> {
        match value.kind() {
            JsonKind::Text if !value.has_lone_surrogate() => Some(Self::Text(value.text()?.into_owned())),
            JsonKind::Number => {
                let number = value.as_number()?;
                // A peer may write `1.0` back as `1`.
                let whole = (!number.is_integer()).then(|| seal::format_number(number.as_f64())).flatten();
                Some(Self::Number(whole.unwrap_or_else(|| number.source().to_owned())))
            }
            _ => None,
        }
    }

    /// Writes the id as JSON.
    pub(crate) fn write(&self, out: &mut JsonWriter) {
        match self {
            Self::Number(source) => out.raw(source),
            Self::Text(text) => out.text(text),
        }
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(text) | Self::Text(text) => f.write_str(text),
        }
    }
}

/// The members of a JSON-RPC message that decide what it is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RpcEnvelope<'d> {
    pub(crate) id: Option<JsonValue<'d>>,
    pub(crate) method: Option<JsonValue<'d>>,
    pub(crate) params: Option<JsonValue<'d>>,
}

/// Two readers could understand the message differently, for example because a member appears twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ambiguous;

impl<'d> RpcEnvelope<'d> {
    /// Reads the envelope of an object. The last of several equal members counts, as in most parsers.
    pub(crate) fn read(object: &JsonValue<'d>) -> Self {
        let mut envelope = Self::default();
        for (key, value) in object.members() {
            envelope.set(&key.text().unwrap_or_default(), value);
        }
        envelope
    }

    /// Reads the envelope of an object, unless another reader could understand it differently.
    pub(crate) fn read_strictly(object: &JsonValue<'d>) -> Result<Self, Ambiguous> {
        let mut envelope = Self::default();
        let [jsonrpc, id, method, params] = read_unambiguous(object, ["jsonrpc", "id", "method", "params"])?;
        let _ = jsonrpc;
        (envelope.id, envelope.method, envelope.params) = (id, method, params);
        match method {
            Some(method) if method.kind() != JsonKind::Text || method.has_lone_surrogate() => Err(Ambiguous),
            _ => Ok(envelope),
        }
    }

    fn set(&mut self, name: &str, value: JsonValue<'d>) {
        match name {
            "id" => self.id = Some(value),
            "method" => self.method = Some(value),
            "params" => self.params = Some(value),
            _ => {}
        }
    }

    /// Whether the message is a request or notification with this method.
    pub(crate) fn is_method(&self, name: &str) -> bool {
        self.method.is_some_and(|method| method.is_text(name))
    }

    pub(crate) fn request_id(&self) -> Option<RequestId> {
        self.id.as_ref().and_then(RequestId::read)
    }

    /// Returns a text in `params`.
    pub(crate) fn text_param(&self, name: &str) -> Option<String> {
        self.params?.member(name)?.text().map(std::borrow::Cow::into_owned)
    }
}

/// Returns the members of an object with these names, unless one appears twice or in another case: some parsers ignore case, and
/// others use the first of two equal members.
pub(crate) fn read_unambiguous<'d, const N: usize>(
    object: &JsonValue<'d>,
    names: [&str; N],
) -> Result<[Option<JsonValue<'d>>; N], Ambiguous> {
    let mut found = [None; N];
    for (key, value) in object.members() {
        let key = key.text().unwrap_or_default();
        let Some(index) = names.iter().position(|name| is_same_ignoring_case(&key, name)) else { continue };
        let is_exact = names.get(index).is_some_and(|name| *name == key);
        match found.get_mut(index) {
            Some(slot @ None) if is_exact => *slot = Some(value),
            _ => return Err(Ambiguous),
        }
    }
    Ok(found)
}

/// Compares a key with an ASCII name as the most tolerant parsers do, which also fold letters like the long s.
pub(crate) fn is_same_ignoring_case(key: &str, name: &str) -> bool {
    if key.is_ascii() {
        return key.eq_ignore_ascii_case(name);
    }
    let fold = |c: char| c.to_uppercase().flat_map(char::to_lowercase);
    key.chars().flat_map(fold).eq(name.chars().flat_map(fold))
}

/// A tool call, as the host requested it.
#[derive(Clone, Debug)]
pub(crate) struct ToolCallRequest<'d> {
    pub(crate) tool: String,
    /// The arguments as JSON; `{}` if there are none.
    pub(crate) arguments: &'d str,
    pub(crate) arguments_value: Option<JsonValue<'d>>,
    /// The token for progress notifications, as JSON.
    pub(crate) progress_token: Option<&'d str>,
    /// Whether the request carries answers to what the server asked for.
    pub(crate) has_input_responses: bool,
    /// The state that the server gave the host for its retry.
    pub(crate) request_state: Option<String>,
    params: JsonValue<'d>,
}

impl<'d> ToolCallRequest<'d> {
    /// Reads the `params` of `tools/call`.
    pub(crate) fn read(params: Option<JsonValue<'d>>) -> Result<Self, Ambiguous> {
        let params = params.filter(|params| params.kind() == JsonKind::Object).ok_or(Ambiguous)?;
        let names = ["name", "arguments", "_meta", "inputResponses", "requestState"];
        let [name, arguments, meta, input_responses, request_state] = read_unambiguous(&params, names)?;
        let name = name.filter(|name| !name.has_lone_surrogate()).and_then(|name| name.text());
        let progress_token = meta.and_then(|meta| meta.member("progressToken"));
        let is_token = |token: &JsonValue<'_>| matches!(token.kind(), JsonKind::Text | JsonKind::Number);
        Ok(Self {
            tool: name.ok_or(Ambiguous)?.into_owned(),
            arguments: arguments.map_or("{}", |arguments| arguments.source()),
            arguments_value: arguments,
            progress_token: progress_token.filter(is_token).map(|token| token.source()),
            has_input_responses: input_responses.is_some(),
            request_state: request_state.map(|state| state.source().to_owned()),
            params,
        })
    }

    /// Returns `params`, as the host wrote it.
    pub(crate) fn params_source(&self) -> &'d str {
        self.params.source()
    }

    /// Returns the canonical form of the members of `params` besides the name, the arguments, the progress token, these members,
    /// and these members of `_meta`, or `None` if there are no others.
    pub(crate) fn other_params(
        &self,
        without: &[&str],
        without_meta: &[&str],
    ) -> Result<Option<String>, Ambiguous> {
        let left_out: Vec<_> = ["name", "arguments"].iter().chain(without).map(|name| [*name]).collect();
        let token = self.progress_token.map(|_| "progressToken");
        let meta: Vec<_> = without_meta.iter().copied().chain(token).map(|name| ["_meta", name]).collect();
        let mut excluded: Vec<&[&str]> = left_out.iter().map(|path| &path[..]).collect();
        excluded.extend(meta.iter().map(|path| &path[..]));
        for (key, value) in self.params.members() {
            let key = key.text().unwrap_or_default();
            if left_out.iter().any(|[name]| *name == key) {
                continue;
            }
            if key != "_meta" || value.kind() != JsonKind::Object {
                canonicalize_exact(&value).map_err(|_| Ambiguous)?;
                continue;
            }
            // Nobody looks at the members that are left out, so one that appears twice would be noticed nowhere else.
            let count = |name: &str| value.members().filter(|(key, _)| key.is_text(name)).count();
            if meta.iter().any(|[_, name]| count(name) > 1) {
                return Err(Ambiguous);
            }
            let is_left_out = |key: &JsonValue<'_>| meta.iter().any(|[_, name]| key.is_text(name));
            // Metadata of which nothing is left counts as none.
            if value.members().all(|(key, _)| is_left_out(&key)) {
                excluded.push(&["_meta"]);
            }
            for (key, value) in value.members() {
                if !is_left_out(&key) {
                    canonicalize_exact(&value).map_err(|_| Ambiguous)?;
                }
            }
        }
        let others = CanonicalWriter::default().write(&self.params, &excluded, &[]).map_err(|_| Ambiguous)?;
        Ok(Some(others.text).filter(|text| text != "{}"))
    }
}

/// Writes a tool result that says why a call was not made, as one line.
pub(crate) fn refusal_line(id: &RequestId, sentence: &str) -> Vec<u8> {
    to_line(write_object(|out| {
        out.plain_member("jsonrpc", "2.0");
        id.write(out.key("id"));
        out.key("result").object(|out| {
            // Hosts of the older protocol ignore it; those of 2026-07-28 require it.
            out.plain_member("resultType", "complete");
            out.key("content").array(|out| {
                out.object(|out| {
                    out.plain_member("type", "text");
                    out.key("text").text(sentence);
                });
            });
            out.key("isError").boolean(true);
        });
    }))
}

/// JSON-RPC's code for a message that is not a valid request.
pub(crate) const INVALID_REQUEST: i64 = -32600;
/// JSON-RPC's code for a message that is not JSON.
pub(crate) const PARSE_ERROR: i64 = -32700;

/// Writes a JSON-RPC error, as one line.
pub(crate) fn error_line(id: Option<&RequestId>, code: i64, message: &str) -> Vec<u8> {
    to_line(write_object(|out| {
        out.plain_member("jsonrpc", "2.0");
        match id {
            Some(id) => id.write(out.key("id")),
            None => out.key("id").raw("null"),
        }
        out.key("error").object(|out| {
            out.key("code").integer(code);
            out.key("message").text(message);
        });
    }))
}

/// Writes a progress notification, as one line. `progress` grows with each notification, and stays below 0, because it must not be
/// higher than the first progress of the tool itself, which is often 0.
pub(crate) fn progress_line(token: &str, count: u32, message: &str) -> Vec<u8> {
    to_line(write_object(|out| {
        out.plain_member("jsonrpc", "2.0");
        out.plain_member("method", "notifications/progress");
        out.key("params").object(|out| {
            out.key("progressToken").raw(token);
            out.key("progress").number(f64::from(count) / 1_000_000.0 - 1.0);
            out.key("message").text(message);
        });
    }))
}

/// Writes a cancellation of a request, as one line.
pub(crate) fn cancelled_line(id: &RequestId, reason: &str) -> Vec<u8> {
    to_line(write_object(|out| {
        out.plain_member("jsonrpc", "2.0");
        out.plain_member("method", "notifications/cancelled");
        out.key("params").object(|out| {
            id.write(out.key("requestId"));
            out.key("reason").text(reason);
        });
    }))
}

/// Writes a call that was made before, with another id, and with input that the server asked for, as one line.
pub(crate) fn retry_line(
    id: &RequestId,
    params: &JsonValue<'_>,
    input: &str,
    state: Option<&str>,
) -> Vec<u8> {
    to_line(write_object(|out| {
        out.plain_member("jsonrpc", "2.0");
        id.write(out.key("id"));
        out.plain_member("method", "tools/call");
        out.key("params").object(|out| {
            for (key, value) in params.members() {
                let name = key.text().unwrap_or_default();
                if name != "inputResponses" && name != "requestState" {
                    out.key(&name).raw(value.source());
                }
            }
            out.key("inputResponses").raw(input);
            if let Some(state) = state {
                out.key("requestState").raw(state);
            }
        });
    }))
}

/// Copies a response, with another id, as one line.
pub(crate) fn copy_response(response: &JsonValue<'_>, id: &RequestId) -> Vec<u8> {
    to_line(write_object(|out| {
        for (key, value) in response.members() {
            let name = key.text().unwrap_or_default();
            if name == "id" {
                id.write(out.key("id"));
            } else {
                out.key(&name).raw(value.source());
            }
        }
    }))
}

pub(crate) fn to_line(text: String) -> Vec<u8> {
    let mut line = text.into_bytes();
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use seal::json::Tape;

    use super::*;

    fn strict(text: &str) -> Result<(), Ambiguous> {
        let mut tape = Tape::default();
        RpcEnvelope::read_strictly(&tape.read(text).unwrap().root()).map(drop)
    }

    #[test]
    fn a_message_that_readers_could_understand_differently_is_ambiguous() {
        for text in [
            r#"{"method":"ping","method":"tools/call"}"#,
            r#"{"method":"ping","Method":"tools/call"}"#,
            r#"{"METHOD":"tools/call"}"#,
            r#"{"method":"tools/call","parame\u017F":{}, "param\u017F":{}}"#,
            r#"{"me\u0074hod":"ping","method":"tools/call"}"#,
            r#"{"id":1,"ID":2,"method":"ping"}"#,
            r#"{"method":["tools/call"]}"#,
            r#"{"method":"tools/call\ud800"}"#,
        ] {
            assert_eq!(strict(text), Err(Ambiguous), "{text}");
        }
        for text in [r#"{"jsonrpc":"2.0","id":1,"method":"ping","x":1,"X":2}"#, r#"{"id":"1","result":{}}"#] {
            assert_eq!(strict(text), Ok(()), "{text}");
        }
    }

    #[test]
    fn ids_keep_their_type() {
        let mut tape = Tape::default();
        let mut read = |text: &str| RequestId::read(&tape.read(text).unwrap().root());
        assert_ne!(read("1"), read(r#""1""#));
        assert_eq!(read("1.0"), read("1"));
        assert_eq!(read("null"), None);
        assert_eq!(read(r#""\u0061""#), Some(RequestId::Text("a".to_owned())));
    }
}
