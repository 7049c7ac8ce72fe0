//! Reads the event that a harness writes to its hook.

use seal::json::{JsonKind, JsonValue, OwnedDoc, TapeWriter, write_object};
use seal::{Digest, action_digest};

use super::{Gate, Harness};
use crate::risk::{self, Assessment, Folders, RiskClass};

/// The kinds of events. Their names differ between harnesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventKind {
    SessionStart,
    SessionEnd,
    /// The person gave the agent something to do.
    Prompt,
    /// A tool is about to be called.
    BeforeTool,
    /// A tool was called.
    AfterTool,
    /// A tool was called and failed.
    AfterToolFailure,
    /// All calls of one step of the model are done.
    AfterToolBatch,
    /// The harness asks for permission.
    PermissionRequest,
    /// The harness refused a call by itself.
    PermissionDenied,
    Notification,
    /// An MCP server asks for input.
    Elicitation,
    ElicitationResult,
    /// A part of the agent's text.
    Message,
    /// The agent has finished its turn.
    Stop,
    SubagentStart,
    SubagentStop,
    /// Something that is not narrated.
    Other,
}

/// A tool call.
#[derive(Clone, Debug)]
pub(super) struct ToolCall {
    pub(super) tool: String,
    /// The harness's id of the call, if the event has one.
    pub(super) id: Option<String>,
    /// The arguments, as they came.
    pub(super) input: OwnedDoc,
    /// The digest of the tool and of those arguments that have an effect.
    pub(super) digest: String,
    /// The arguments to which a question is bound: those that have an effect, or the hash of the input if they cannot be bound.
    pub(super) bound_arguments: String,
    pub(super) assessment: Assessment,
}

/// One hook event.
#[derive(Debug)]
pub(super) struct HookEvent {
    pub(super) harness: Harness,
    pub(super) kind: EventKind,
    /// The name of the event, as the harness writes it.
    pub(super) name: String,
    /// The id of the harness's session.
    pub(super) session: String,
    /// The id of the subagent, if one speaks.
    pub(super) agent: Option<String>,
    pub(super) call: Option<ToolCall>,
    doc: OwnedDoc,
}

/// Maximum number of bytes of arguments that are sent to the hub. Larger ones are represented by their hash.
const MAX_BOUND_BYTES: usize = 256 * 1024;

impl HookEvent {
    /// Reads an event. Returns `None` if it is not a JSON object with the name of an event.
    pub(super) fn parse(harness: Harness, text: &str) -> Option<Self> {
        let doc = OwnedDoc::read(text.trim_start_matches('\u{feff}')).ok()?;
        let root = doc.doc().root();
        if root.kind() != JsonKind::Object {
            return None;
        }
        let name = first_text(&root, &["hook_event_name", "hookEventName"])?;
        let kind = event_kind(harness, &name);
        let session = first_text(&root, &["session_id", "sessionId", "conversation_id", "sessionID"])
            .filter(|session| !session.is_empty())
            .unwrap_or_else(|| "unknown".to_owned());
        let agent = first_text(&root, &["agent_id", "subagent_id"]).filter(|agent| !agent.is_empty());
        let has_call = matches!(
            kind,
            EventKind::BeforeTool
                | EventKind::AfterTool
                | EventKind::AfterToolFailure
                | EventKind::PermissionRequest
                | EventKind::PermissionDenied
        );
        let call = if has_call { read_call(harness, &name, &root) } else { None };
        Some(Self { harness, kind, name, session, agent, call, doc })
    }

    pub(super) fn root(&self) -> JsonValue<'_> {
        self.doc.doc().root()
    }

    /// Returns a text from the event.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        first_text(&self.root(), &[name])
    }

    pub(super) fn working_folder(&self) -> Option<String> {
        working_folder(&self.root())
    }

    /// Whether the answer to this event decides about a call that a person must permit. A gated event without a readable call
    /// is gated, too: it is refused.
    pub(super) fn is_gated(&self, gate: Gate) -> bool {
        match self.kind {
            // The answer to this tool's question can only be given on the screen.
            EventKind::PermissionRequest => {
                self.call.as_ref().is_none_or(|call| call.tool != "AskUserQuestion")
            }
            EventKind::BeforeTool => self.is_call_gated(gate),
            _ => false,
        }
    }

    /// Whether a person must permit the call of this event before it is made.
    pub(super) fn is_call_gated(&self, gate: Gate) -> bool {
        match gate {
            Gate::Requests => false,
            Gate::All => true,
            Gate::Risky => self.call.as_ref().is_none_or(|call| call.assessment.class != RiskClass::Harmless),
        }
    }

    /// Whether the harness can ask on its own screen. In these modes it does not, so asking it to would not stop the call.
    pub(super) fn can_prompt(&self) -> bool {
        !matches!(self.text("permission_mode").as_deref(), Some("bypassPermissions" | "dontAsk" | "auto"))
    }

    /// Whether the harness certainly does not ask for permission after this event, so that the call begins now.
    pub(super) fn runs_without_request(&self) -> bool {
        let is_harmless = self.call.as_ref().is_some_and(|call| call.assessment == Assessment::harmless());
        !self.harness.has_permission_requests() || !self.can_prompt() || is_harmless
    }
}

fn event_kind(harness: Harness, name: &str) -> EventKind {
    match harness {
        Harness::Gemini => gemini_event_kind(name),
        Harness::Cursor => cursor_event_kind(name),
        Harness::Claude | Harness::Codex | Harness::VsCode | Harness::OpenCode => claude_event_kind(name),
    }
}

fn gemini_event_kind(name: &str) -> EventKind {
    match name {
        "SessionStart" => EventKind::SessionStart,
        "SessionEnd" => EventKind::SessionEnd,
        "BeforeAgent" => EventKind::Prompt,
        "AfterAgent" => EventKind::Stop,
        "BeforeTool" => EventKind::BeforeTool,
        "AfterTool" => EventKind::AfterTool,
        "Notification" => EventKind::Notification,
        _ => EventKind::Other,
    }
}

fn cursor_event_kind(name: &str) -> EventKind {
    match name {
        "sessionStart" => EventKind::SessionStart,
        "sessionEnd" => EventKind::SessionEnd,
        "beforeSubmitPrompt" => EventKind::Prompt,
        "beforeShellExecution" | "beforeMCPExecution" | "beforeReadFile" | "preToolUse" => {
            EventKind::BeforeTool
        }
        "afterShellExecution" | "afterMCPExecution" | "afterFileEdit" | "postToolUse" => EventKind::AfterTool,
        "postToolUseFailure" => EventKind::AfterToolFailure,
        "afterAgentResponse" => EventKind::Message,
        "stop" => EventKind::Stop,
        "subagentStart" => EventKind::SubagentStart,
        "subagentStop" => EventKind::SubagentStop,
        _ => EventKind::Other,
    }
}

fn claude_event_kind(name: &str) -> EventKind {
    match name {
        "SessionStart" => EventKind::SessionStart,
        "SessionEnd" => EventKind::SessionEnd,
        "UserPromptSubmit" => EventKind::Prompt,
        "PreToolUse" => EventKind::BeforeTool,
        "PostToolUse" => EventKind::AfterTool,
        "PostToolUseFailure" => EventKind::AfterToolFailure,
        "PostToolBatch" => EventKind::AfterToolBatch,
        "PermissionRequest" => EventKind::PermissionRequest,
        "PermissionDenied" => EventKind::PermissionDenied,
        "Notification" => EventKind::Notification,
        "Elicitation" => EventKind::Elicitation,
        "ElicitationResult" => EventKind::ElicitationResult,
        "MessageDisplay" => EventKind::Message,
        "Stop" | "StopFailure" => EventKind::Stop,
        "SubagentStart" => EventKind::SubagentStart,
        "SubagentStop" => EventKind::SubagentStop,
        _ => EventKind::Other,
    }
}

fn read_call(harness: Harness, name: &str, root: &JsonValue<'_>) -> Option<ToolCall> {
    let id = first_text(root, &["tool_use_id", "toolUseId", "callID"]).filter(|id| !id.is_empty());
    // Cursor's events about commands and files have no tool name.
    let (tool, input) = match name {
        "beforeShellExecution" | "afterShellExecution" => {
            let command = first_text(root, &["command"])?;
            ("Shell".to_owned(), write_object(|out| out.key("command").text(&command)))
        }
        "beforeReadFile" => {
            let path = first_text(root, &["file_path"])?;
            ("Read".to_owned(), write_object(|out| out.key("file_path").text(&path)))
        }
        "afterFileEdit" => {
            let path = first_text(root, &["file_path"])?;
            let edits = root.member("edits").map(|edits| edits.source().to_owned());
            let input = write_object(|out| {
                out.key("file_path").text(&path);
                if let Some(edits) = &edits {
                    out.key("edits").raw(edits);
                }
            });
            ("MultiEdit".to_owned(), input)
        }
        _ => {
            let tool = first_text(root, &["tool_name", "toolName"])?;
            let tool = if name.contains("MCPExecution") { format!("mcp__cursor__{tool}") } else { tool };
            let input = root.member("tool_input").or_else(|| root.member("toolInput"));
            // Cursor writes the arguments of an MCP tool as a JSON text.
            let input = input.map_or_else(
                || "{}".to_owned(),
                |input| match input.text() {
                    Some(text) if OwnedDoc::read(&text).is_ok() => text.into_owned(),
                    _ => input.source().to_owned(),
                },
            );
            (tool, input)
        }
    };
    let input = OwnedDoc::read(&input).ok()?;
    let document = input.doc();
    let arguments = document.root();
    let effective = effective_arguments(harness, &tool, &arguments);
    let bound_digest = action_digest(&tool, &effective);
    let is_bindable =
        effective.len() <= MAX_BOUND_BYTES && arguments.kind() == JsonKind::Object && bound_digest.is_ok();
    let digest = match bound_digest {
        Ok(digest) => digest.to_string(),
        Err(_) => Digest::of_parts([tool.as_bytes(), &[0], input.source().as_bytes()]).to_string(),
    };
    let bound_arguments = if is_bindable {
        effective
    } else {
        let hash = Digest::of(input.source().as_bytes()).to_string();
        write_object(|out| out.key("input_hash").text(&hash))
    };
    let (working, project) = (working_folder(root), project_folder(harness, root));
    let folders = Folders { working: working.as_deref(), project: project.as_deref() };
    let assessment = risk::assess(&tool, &arguments, folders);
    Some(ToolCall { tool, id, input, digest, bound_arguments, assessment })
}

/// Returns the arguments of a call, without those that have no effect.
fn effective_arguments(harness: Harness, tool: &str, input: &JsonValue<'_>) -> String {
    let is_comment = |name: &JsonValue<'_>| name.is_text("description");
    let has_comment = harness.shell_with_description() == Some(tool)
        && input.kind() == JsonKind::Object
        && input.members().any(|(name, _)| is_comment(&name));
    if !has_comment {
        return input.source().to_owned();
    }
    let mut kept = TapeWriter::default();
    kept.open_object();
    for (name, value) in input.members().filter(|(name, _)| !is_comment(name)) {
        kept.copy_key(&name);
        kept.copy(&value);
    }
    kept.close_object();
    kept.source().to_owned()
}

fn working_folder(root: &JsonValue<'_>) -> Option<String> {
    let given = first_text(root, &["cwd"]).filter(|folder| !folder.is_empty());
    given.or_else(|| Some(root.member("workspace_roots")?.items().next()?.text()?.into_owned()))
}

/// Returns the folder in which the harness was started. Returns `None` also if it is not certain that a command is executed in
/// [`working_folder`].
fn project_folder(harness: Harness, root: &JsonValue<'_>) -> Option<String> {
    match harness {
        // Claude Code keeps the folder that one command changes to for the next one.
        Harness::Claude => std::env::var("CLAUDE_PROJECT_DIR").ok(),
        // The event has the folder of the session. A call in another folder has an argument that says so.
        Harness::Gemini | Harness::OpenCode => first_text(root, &["cwd"]),
        Harness::Cursor if first_text(root, &["cwd"]).is_some_and(|folder| !folder.is_empty()) => {
            Some(root.member("workspace_roots")?.items().next()?.text()?.into_owned())
        }
        // Only some versions of Codex write the folder that the model chose for the command into the event. The terminals of the
        // others keep their folder, which the event does not have.
        Harness::Codex | Harness::Cursor | Harness::VsCode => None,
    }
}

fn first_text(root: &JsonValue<'_>, names: &[&str]) -> Option<String> {
    names.iter().find_map(|name| Some(root.member(name)?.text()?.into_owned()))
}
