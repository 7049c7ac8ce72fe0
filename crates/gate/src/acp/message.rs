//! JSON-RPC lines of ACP as typed values: only what the gate needs to know about them.
//!
//! A line that is not a JSON object, or has an unexpected form, is [`AgentMessage::Other`] or [`EditorMessage::Other`]: it
//! passes, and nothing else happens. So does a permission request with duplicate member names, because the editor may read
//! a value different from the gate's. The gate never re-serializes a line; it forwards the original bytes.

use std::collections::HashSet;

use seal::json::{Doc, JsonKind, JsonValue, Tape, write_object};

/// Maximum number of options of a permission request that is offered to a listener.
pub(super) const MAX_OPTIONS: usize = 16;

/// The id of a JSON-RPC request: a number or a string.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct RequestId {
    /// The id as JSON, with escapes normalized so that equal ids compare equal.
    json: String,
}

impl RequestId {
    fn read(value: &JsonValue<'_>) -> Option<Self> {
        let json = match value.kind() {
            JsonKind::Text => write_text(&value.text()?),
            JsonKind::Number => value.source().to_owned(),
            _ => return None,
        };
        Some(Self { json })
    }

    /// Returns the response that selects an option.
    pub(super) fn selected(&self, option_id: &str) -> String {
        self.respond(|out| {
            out.plain_member("outcome", "selected");
            out.key("optionId").text(option_id);
        })
    }

    /// Returns the response for a turn that was cancelled.
    pub(super) fn cancelled(&self) -> String {
        self.respond(|out| out.plain_member("outcome", "cancelled"))
    }

    fn respond(&self, outcome: impl FnOnce(&mut seal::json::JsonWriter)) -> String {
        line(|out| {
            out.key("id").raw(&self.json);
            out.key("result").object(|out| out.key("outcome").object(outcome));
        })
    }

    /// Returns the notification that tells the editor that nobody waits for its answer anymore.
    pub(super) fn cancel_request(&self) -> String {
        line(|out| {
            out.plain_member("method", "$/cancel_request");
            out.key("params").object(|out| out.key("requestId").raw(&self.json));
        })
    }
}

/// Returns the notification that cancels the turn of a session.
pub(super) fn session_cancel(session: &str) -> String {
    line(|out| {
        out.plain_member("method", "session/cancel");
        out.key("params").object(|out| out.key("sessionId").text(session));
    })
}

fn line(members: impl FnOnce(&mut seal::json::JsonWriter)) -> String {
    let mut line = write_object(|out| {
        out.plain_member("jsonrpc", "2.0");
        members(out);
    });
    line.push('\n');
    line
}

fn write_text(text: &str) -> String {
    let mut out = seal::json::JsonWriter::default();
    out.text(text);
    out.finish()
}

/// A message from the agent.
#[derive(Debug)]
pub(super) enum AgentMessage {
    /// It asks for permission.
    Permission(PermissionRequest),
    /// It reports something about a session.
    Update {
        /// The ACP session.
        session: String,
        /// The report.
        update: SessionUpdate,
    },
    /// It answers a request from the editor.
    Response(Response),
    /// It withdraws one of its own requests.
    CancelRequest(RequestId),
    /// Anything else.
    Other,
}

/// The answer to a request.
#[derive(Debug)]
pub(super) struct Response {
    /// The request.
    pub(super) id: RequestId,
    /// The members that the gate uses, or the error message if the request failed.
    pub(super) result: Result<ResponseResult, String>,
}

/// The members of a result that the gate uses.
#[derive(Debug, Default)]
pub(super) struct ResponseResult {
    /// `stopReason`, in the answer to `session/prompt`.
    pub(super) stop_reason: Option<String>,
    /// `agentInfo`, in the answer to `initialize`: its title or name, and its version.
    pub(super) agent: Option<(String, Option<String>)>,
    /// The selected option, in an answer to a permission request.
    pub(super) selected_option: Option<String>,
}

/// A request for permission.
#[derive(Clone, Debug)]
pub(super) struct PermissionRequest {
    /// The request.
    pub(super) id: RequestId,
    /// The ACP session.
    pub(super) session: String,
    /// What the request says about the call.
    pub(super) tool_call: ToolCallUpdate,
    /// The options. Their ids differ.
    pub(super) options: Vec<PermissionOption>,
}

/// One option of a permission request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PermissionOption {
    /// The id, which the answer names.
    pub(super) id: String,
    /// The agent's name for it.
    pub(super) name: String,
    /// What it does.
    pub(super) kind: OptionKind,
}

/// The kinds of options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OptionKind {
    /// Allows this call.
    AllowOnce,
    /// Allows this call and later ones.
    AllowAlways,
    /// Refuses this call.
    RejectOnce,
    /// Refuses this call and later ones.
    RejectAlways,
    /// Unknown to this version.
    Other,
}

impl OptionKind {
    fn parse(kind: &str) -> Self {
        match kind {
            "allow_once" => Self::AllowOnce,
            "allow_always" => Self::AllowAlways,
            "reject_once" => Self::RejectOnce,
            "reject_always" => Self::RejectAlways,
            _ => Self::Other,
        }
    }
}

/// A report about a session.
#[derive(Debug)]
pub(super) enum SessionUpdate {
    /// A part of the agent's message.
    Message {
        /// The text.
        text: String,
        /// The id of the message, if the agent names it.
        message_id: Option<String>,
    },
    /// A part of a message that is not text.
    MessageContent(ContentKind),
    /// A part of the agent's thoughts.
    Thought(String),
    /// A new call, or an update of one.
    ToolCall(ToolCallUpdate),
    /// The plan.
    Plan(Vec<PlanEntry>),
    /// The session is in another mode now.
    Mode(String),
}

/// Content that is not text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ContentKind {
    /// A picture.
    Image,
    /// Sound.
    Audio,
    /// A file or a link.
    Resource,
}

/// An entry of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PlanEntry {
    /// The text of the entry.
    pub(super) content: String,
    /// Whether it is done.
    pub(super) is_completed: bool,
    /// Whether it is being done.
    pub(super) is_in_progress: bool,
}

/// An update of a call. Absent members are unchanged.
#[derive(Clone, Debug, Default)]
pub(super) struct ToolCallUpdate {
    /// The id of the call.
    pub(super) id: String,
    /// The title.
    pub(super) title: Option<String>,
    /// The name of the tool.
    pub(super) name: Option<String>,
    /// The kind of tool.
    pub(super) kind: Option<String>,
    /// The status.
    pub(super) status: Option<ToolStatus>,
    /// The input, as JSON.
    pub(super) raw_input: Option<String>,
    /// The text of the output, if it has any; see [`read_output`].
    pub(super) raw_output: Option<String>,
    /// The files it is about.
    pub(super) locations: Option<Vec<String>>,
    /// What it shows.
    pub(super) content: Vec<ToolContent>,
}

/// The status of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ToolStatus {
    /// It has not started.
    Pending,
    /// It is running.
    InProgress,
    /// It succeeded.
    Completed,
    /// It failed.
    Failed,
}

/// An item of a call's content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ToolContent {
    /// Text.
    Text(String),
    /// A change of a file.
    Diff {
        /// The file.
        path: String,
        /// The text before the change. `None` for a new file.
        old: Option<String>,
        /// The text after it.
        new: String,
    },
    /// A terminal of the editor.
    Terminal,
    /// Something else.
    Other,
}

/// A message from the editor.
#[derive(Debug)]
pub(super) enum EditorMessage {
    /// It asks the agent for something.
    Request {
        /// The request.
        id: RequestId,
        /// What it asks for.
        kind: EditorRequest,
    },
    /// It cancels the turn of a session.
    Cancel {
        /// The ACP session.
        session: String,
    },
    /// It answers a request from the agent.
    Response(Response),
    /// Anything else.
    Other,
}

/// A request of the editor that the gate follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum EditorRequest {
    /// `initialize`
    Initialize,
    /// `session/load`: the agent repeats the past messages of this session.
    Load(String),
    /// `session/prompt`, with its text.
    Prompt {
        /// The ACP session.
        session: String,
        /// The text of the prompt.
        text: String,
    },
    /// `session/close`
    Close(String),
}

/// Reads a line from the agent.
pub(super) fn read_agent_line(line: &[u8]) -> AgentMessage {
    with_document(line, |doc| {
        let root = doc.root();
        let Some(method) = root.member("method") else {
            return Some(AgentMessage::Response(read_response(&root)?));
        };
        let params = root.member("params");
        let id = root.member("id");
        match method.text()?.as_ref() {
            "session/update" if id.is_none() => {
                let params = params?;
                let update = read_update(&params.member("update")?)?;
                Some(AgentMessage::Update { session: text_member(&params, "sessionId")?, update })
            }
            "session/request_permission" if !has_duplicate_names(&root) => {
                Some(AgentMessage::Permission(read_permission(RequestId::read(&id?)?, &params?)?))
            }
            "$/cancel_request" if id.is_none() => {
                Some(AgentMessage::CancelRequest(RequestId::read(&params?.member("requestId")?)?))
            }
            _ => None,
        }
    })
    .unwrap_or(AgentMessage::Other)
}

/// Reads a line from the editor.
pub(super) fn read_editor_line(line: &[u8]) -> EditorMessage {
    with_document(line, |doc| {
        let root = doc.root();
        let Some(method) = root.member("method") else {
            return Some(EditorMessage::Response(read_response(&root)?));
        };
        let params = root.member("params");
        let session = || text_member(&params?, "sessionId");
        let kind = match method.text()?.as_ref() {
            "session/cancel" => return Some(EditorMessage::Cancel { session: session()? }),
            "initialize" => EditorRequest::Initialize,
            "session/load" => EditorRequest::Load(session()?),
            "session/close" => EditorRequest::Close(session()?),
            "session/prompt" => {
                let blocks = params?.member("prompt")?;
                let texts: Vec<_> = blocks.items().filter_map(|block| text_member(&block, "text")).collect();
                EditorRequest::Prompt { session: session()?, text: texts.join("\n") }
            }
            _ => return None,
        };
        Some(EditorMessage::Request { id: RequestId::read(&root.member("id")?)?, kind })
    })
    .unwrap_or(EditorMessage::Other)
}

/// Parses a line. Returns `None` if it is not a JSON object.
fn with_document<T>(line: &[u8], read: impl FnOnce(&Doc<'_>) -> Option<T>) -> Option<T> {
    let text = std::str::from_utf8(line).ok()?;
    let mut tape = Tape::default();
    let doc = tape.read(text).ok()?;
    if doc.root().kind() == JsonKind::Object { read(&doc) } else { None }
}

/// Whether some object has two members with the same name.
fn has_duplicate_names(value: &JsonValue<'_>) -> bool {
    let mut names = HashSet::new();
    value.members().any(|(name, _)| !names.insert(name.text().unwrap_or_default().into_owned()))
        || value
            .members()
            .map(|(_, member)| member)
            .chain(value.items())
            .any(|part| has_duplicate_names(&part))
}

fn read_response(root: &JsonValue<'_>) -> Option<Response> {
    let id = RequestId::read(&root.member("id")?)?;
    let result = match (root.member("result"), root.member("error")) {
        (Some(result), None) => Ok(ResponseResult {
            stop_reason: text_member(&result, "stopReason"),
            agent: result.member("agentInfo").and_then(|agent| {
                let name = text_member(&agent, "title").or_else(|| text_member(&agent, "name"))?;
                Some((name, text_member(&agent, "version")))
            }),
            selected_option: result.member("outcome").and_then(|outcome| text_member(&outcome, "optionId")),
        }),
        (None, Some(error)) => Err(text_member(&error, "message").unwrap_or_default()),
        _ => return None,
    };
    Some(Response { id, result })
}

fn read_permission(id: RequestId, params: &JsonValue<'_>) -> Option<PermissionRequest> {
    let mut known = HashSet::new();
    let mut options = Vec::new();
    for option in params.member("options")?.items() {
        let option_id = text_member(&option, "optionId")?;
        if !known.insert(option_id.clone()) || options.len() == MAX_OPTIONS {
            return None;
        }
        options.push(PermissionOption {
            id: option_id,
            name: text_member(&option, "name")?,
            kind: OptionKind::parse(&text_member(&option, "kind")?),
        });
    }
    let tool_call = read_tool_call(&params.member("toolCall")?)?;
    Some(PermissionRequest { id, session: text_member(params, "sessionId")?, tool_call, options })
}

fn read_update(update: &JsonValue<'_>) -> Option<SessionUpdate> {
    Some(match text_member(update, "sessionUpdate")?.as_str() {
        "agent_message_chunk" => {
            let content = update.member("content")?;
            match text_member(&content, "type")?.as_str() {
                "text" => SessionUpdate::Message {
                    text: text_member(&content, "text")?,
                    message_id: text_member(update, "messageId"),
                },
                "image" => SessionUpdate::MessageContent(ContentKind::Image),
                "audio" => SessionUpdate::MessageContent(ContentKind::Audio),
                _ => SessionUpdate::MessageContent(ContentKind::Resource),
            }
        }
        "agent_thought_chunk" => SessionUpdate::Thought(text_member(&update.member("content")?, "text")?),
        "tool_call" | "tool_call_update" => SessionUpdate::ToolCall(read_tool_call(update)?),
        "plan" => SessionUpdate::Plan(
            update
                .member("entries")?
                .items()
                .filter_map(|entry| {
                    let status = text_member(&entry, "status");
                    Some(PlanEntry {
                        content: text_member(&entry, "content")?,
                        is_completed: status.as_deref() == Some("completed"),
                        is_in_progress: status.as_deref() == Some("in_progress"),
                    })
                })
                .collect(),
        ),
        "current_mode_update" => SessionUpdate::Mode(text_member(update, "currentModeId")?),
        _ => return None,
    })
}

fn read_tool_call(call: &JsonValue<'_>) -> Option<ToolCallUpdate> {
    let is_present = |value: &JsonValue<'_>| value.kind() != JsonKind::Null;
    Some(ToolCallUpdate {
        id: text_member(call, "toolCallId")?,
        title: text_member(call, "title"),
        name: text_member(call, "name"),
        kind: text_member(call, "kind"),
        status: match text_member(call, "status").as_deref() {
            Some("pending") => Some(ToolStatus::Pending),
            Some("in_progress") => Some(ToolStatus::InProgress),
            Some("completed") => Some(ToolStatus::Completed),
            Some("failed") => Some(ToolStatus::Failed),
            _ => None,
        },
        raw_input: call.member("rawInput").filter(is_present).map(|input| input.source().to_owned()),
        raw_output: call.member("rawOutput").and_then(|output| read_output(&output)),
        locations: call
            .member("locations")
            .filter(is_present)
            .map(|locations| locations.items().filter_map(|at| text_member(&at, "path")).collect()),
        content: call.member("content").map(|content| read_contents(&content)).unwrap_or_default(),
    })
}

/// Returns the output if it is a string; otherwise the first member that agents use for its text, such as `stdout`.
fn read_output(output: &JsonValue<'_>) -> Option<String> {
    let own = output.text().map(std::borrow::Cow::into_owned);
    own.or_else(|| ["output", "stdout", "message", "error"].iter().find_map(|name| text_member(output, name)))
}

fn read_contents(contents: &JsonValue<'_>) -> Vec<ToolContent> {
    let read = |item: JsonValue<'_>| match text_member(&item, "type").as_deref() {
        Some("content") => {
            let text = item.member("content").and_then(|content| text_member(&content, "text"));
            text.map_or(ToolContent::Other, ToolContent::Text)
        }
        Some("diff") => match (text_member(&item, "path"), text_member(&item, "newText")) {
            (Some(path), Some(new)) => ToolContent::Diff { path, old: text_member(&item, "oldText"), new },
            _ => ToolContent::Other,
        },
        Some("terminal") => ToolContent::Terminal,
        _ => ToolContent::Other,
    };
    contents.items().map(read).collect()
}

fn text_member(object: &JsonValue<'_>, name: &str) -> Option<String> {
    Some(object.member(name)?.text()?.into_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::panic, reason = "a test reports a failure by panicking")]

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_id_is_the_same_however_it_is_escaped_and_a_number_is_not_a_string() {
        let id = |line: &str| match read_editor_line(line.as_bytes()) {
            EditorMessage::Response(response) => response.id,
            other => panic!("{other:?}"),
        };
        assert_eq!(id(r#"{"id":"a","result":{}}"#), id(r#"{"result":{},"id":"\u0061"}"#));
        assert_ne!(id(r#"{"id":"1","result":{}}"#), id(r#"{"id":1,"result":{}}"#));
        let answer = id(r#"{"id":"a\"b","result":{}}"#).selected("go");
        assert_eq!(
            answer,
            "{\"jsonrpc\":\"2.0\",\"id\":\"a\\\"b\",\"result\":{\"outcome\":{\"outcome\":\"selected\",\"optionId\":\"go\"}}}\n"
        );
    }

    #[test]
    fn an_incomplete_permission_request_is_left_alone() {
        let options = r#"[{"optionId":"a","name":"A","kind":"allow_once"}]"#;
        let call = r#"{"toolCallId":"t"}"#;
        let request = |id: &str, params: &str| {
            format!(r#"{{{id}"method":"session/request_permission","params":{params}}}"#)
        };
        let read = |line: &str| matches!(read_agent_line(line.as_bytes()), AgentMessage::Permission(_));
        let params = format!(r#"{{"sessionId":"s","toolCall":{call},"options":{options}}}"#);
        assert!(read(&request(r#""id":1,"#, &params)));
        assert!(!read(&request("", &params)));
        assert!(!read(&request(r#""id":null,"#, &params)));
        assert!(!read(&request(r#""id":1,"id":2,"#, &params)));
        assert!(!read(&request(r#""id":1,"#, r#"{"sessionId":"s"}"#)));
        assert!(!read(&request(r#""id":1,"#, &params.replace("\"name\":\"A\",", ""))));
    }

    proptest! {
        #[test]
        fn any_line_is_read_without_a_panic(line in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = (read_agent_line(&line), read_editor_line(&line));
        }

        #[test]
        fn any_shape_of_params_is_read_without_a_panic(
            method in prop_oneof![Just("session/update"), Just("session/request_permission"), Just("session/prompt"), Just("$/cancel_request")],
            params in "[\\[\\]{}\",:a-z0-9]{0,60}",
        ) {
            let line = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
            let _ = (read_agent_line(line.as_bytes()), read_editor_line(line.as_bytes()));
        }
    }
}
