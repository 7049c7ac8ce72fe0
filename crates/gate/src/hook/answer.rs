//! The answer to an event, in the dialect of each harness.
//!
//! The dialects were checked with the programs themselves; docs/gates.md has the versions. Where a harness treats an answer
//! as agreement (Codex runs a call after "ask", for example), a stricter answer is given instead.

use seal::json::{JsonWriter, write_object};

use super::event::{EventKind, HookEvent};
use super::{Gate, Harness};

/// The hook's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum HookAnswer {
    /// The harness decides as if there were no hook.
    NoOpinion,
    /// A person said yes to exactly this call.
    Allow,
    /// The call is refused. The model reads the reason.
    Deny {
        reason: String,
        /// The person stopped the session, so the agent should not go on either.
        is_stop: bool,
    },
    /// Nobody could be asked, so the harness must ask on its own screen.
    OwnPrompt { reason: String },
    /// A person gave the input that was asked for, as a JSON object.
    Elicited { content: String },
    /// A person refused to give input, or it is required and nobody gave it.
    ElicitationDeclined,
}

/// An answer as it is printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PrintedAnswer {
    pub(super) json: String,
    pub(super) exit_code: u8,
}

impl HookAnswer {
    pub(super) fn deny(reason: impl Into<String>) -> Self {
        Self::Deny { reason: reason.into(), is_stop: false }
    }

    /// Returns the answer after a failure: the harness's own permission request stays open unless `is_required` is set, and
    /// other gated calls are refused.
    pub(super) fn failure(event: &HookEvent, is_gated: bool, is_required: bool, reason: &str) -> Self {
        match event.kind {
            EventKind::PermissionRequest if !is_required => Self::NoOpinion,
            EventKind::Elicitation if is_required => Self::ElicitationDeclined,
            _ if is_gated => Self::deny(format!("Not permitted: {reason}.")),
            _ => Self::NoOpinion,
        }
    }
}

const UNREADABLE: &str = "Not permitted: sayso could not read the event of this hook.";

/// Returns the answer to an event that cannot be read. If calls may be gated, the exit code blocks it, because it may be one
/// of them. Otherwise the harness's own permission request, if it is one, stays open, unless `is_required` is set. `text` is
/// what was read.
pub(super) fn unreadable_event(
    harness: Harness,
    gate: Gate,
    is_required: bool,
    text: Option<&[u8]>,
) -> PrintedAnswer {
    let may_be_gated = gate != Gate::Requests || (is_required && harness.has_permission_requests());
    let json = match harness {
        Harness::Cursor => write_object(|out| {
            let (user, agent) = (("user_message", UNREADABLE), ("agent_message", UNREADABLE));
            out.text_members([("permission", "deny"), user, agent]);
        }),
        Harness::OpenCode => decision("deny", UNREADABLE),
        _ if !may_be_gated => return PrintedAnswer { json: "{}".to_owned(), exit_code: 0 },
        Harness::Gemini => decision("deny", UNREADABLE),
        // Claude Code ignores the exit code of a hook for its permission requests.
        Harness::Claude if is_required && text.is_some_and(is_permission_request) => {
            permission_denied(UNREADABLE)
        }
        Harness::Claude | Harness::Codex | Harness::VsCode => {
            return PrintedAnswer { json: "{}".to_owned(), exit_code: 2 };
        }
    };
    PrintedAnswer { json, exit_code: 0 }
}

/// Whether an event that cannot be read is certainly a permission request. An argument of another call can also contain such
/// a member, so each one must name it.
fn is_permission_request(text: &[u8]) -> bool {
    let text = String::from_utf8_lossy(text);
    let mut names = text.split(r#""hook_event_name""#).skip(1).peekable();
    let is_name = |rest: &str| {
        let value = rest.trim_start().strip_prefix(':').map(str::trim_start);
        value.is_some_and(|value| value.starts_with(r#""PermissionRequest""#))
    };
    names.peek().is_some() && names.all(is_name)
}

/// Writes the answer that refuses an unreadable permission request.
fn permission_denied(reason: &str) -> String {
    write_object(|out| {
        out.key("hookSpecificOutput");
        out.object(|out| {
            out.plain_member("hookEventName", "PermissionRequest");
            out.key("decision");
            out.object(|out| out.text_members([("behavior", "deny"), ("message", reason)]));
        });
    })
}

/// Writes an answer in the dialect of the event's harness.
pub(super) fn write(event: &HookEvent, answer: &HookAnswer) -> PrintedAnswer {
    let json = match event.harness {
        Harness::Claude | Harness::Codex | Harness::VsCode => claude_family(event, answer),
        Harness::Gemini => gemini(event, answer),
        Harness::Cursor => cursor(event, answer),
        Harness::OpenCode => Some(opencode(event, answer)),
    };
    PrintedAnswer { json: json.unwrap_or_else(|| "{}".to_owned()), exit_code: 0 }
}

/// Claude Code's dialect, which Codex and VS Code share in parts.
fn claude_family(event: &HookEvent, answer: &HookAnswer) -> Option<String> {
    let is_codex = event.harness == Harness::Codex;
    match event.kind {
        EventKind::PermissionRequest => {
            let decision = |write: &dyn Fn(&mut JsonWriter)| {
                hook_specific(event, &|out| {
                    out.key("decision");
                    out.object(write);
                })
            };
            match answer {
                HookAnswer::Allow => Some(decision(&|out| out.plain_member("behavior", "allow"))),
                HookAnswer::Deny { reason, is_stop } => Some(decision(&|out| {
                    out.plain_member("behavior", "deny");
                    out.key("message").text(reason);
                    // Codex ignores an answer with this member.
                    if *is_stop && !is_codex {
                        out.key("interrupt").boolean(true);
                    }
                })),
                _ => None,
            }
        }
        EventKind::BeforeTool => {
            let (decision, reason) = match answer {
                // Codex rejects "allow". Without an answer, it asks the person itself where its policy says so.
                HookAnswer::Allow if is_codex => return None,
                HookAnswer::Allow => ("allow", "A person permitted this call through sayso."),
                HookAnswer::Deny { reason, .. } => ("deny", reason.as_str()),
                // Codex runs a call after "ask".
                HookAnswer::OwnPrompt { reason } if is_codex || !event.can_prompt() => {
                    ("deny", reason.as_str())
                }
                HookAnswer::OwnPrompt { reason } => ("ask", reason.as_str()),
                _ => return None,
            };
            Some(hook_specific(event, &|out| {
                out.plain_member("permissionDecision", decision);
                out.key("permissionDecisionReason").text(reason);
            }))
        }
        EventKind::Elicitation => match answer {
            HookAnswer::Elicited { content } => Some(hook_specific(event, &|out| {
                out.plain_member("action", "accept");
                out.key("content").raw(content);
            })),
            HookAnswer::ElicitationDeclined => {
                Some(hook_specific(event, &|out| out.plain_member("action", "decline")))
            }
            _ => None,
        },
        _ => None,
    }
}

fn hook_specific(event: &HookEvent, write: &dyn Fn(&mut JsonWriter)) -> String {
    write_object(|out| {
        out.key("hookSpecificOutput");
        out.object(|out| {
            out.key("hookEventName").text(&event.name);
            write(out);
        });
    })
}

fn gemini(event: &HookEvent, answer: &HookAnswer) -> Option<String> {
    if event.kind != EventKind::BeforeTool {
        return None;
    }
    match answer {
        HookAnswer::Allow => Some(write_object(|out| out.plain_member("decision", "allow"))),
        HookAnswer::Deny { reason, .. } => Some(decision("deny", reason)),
        // It opens Gemini's dialog even in yolo mode.
        HookAnswer::OwnPrompt { reason } => Some(decision("ask", reason)),
        _ => None,
    }
}

fn cursor(event: &HookEvent, answer: &HookAnswer) -> Option<String> {
    if event.kind != EventKind::BeforeTool {
        return None;
    }
    let (permission, reason) = match answer {
        HookAnswer::Allow => return Some(write_object(|out| out.plain_member("permission", "allow"))),
        HookAnswer::Deny { reason, .. } => ("deny", reason),
        // A generic tool hook of Cursor does not know "ask".
        HookAnswer::OwnPrompt { reason } if event.name == "preToolUse" => ("deny", reason),
        HookAnswer::OwnPrompt { reason } => ("ask", reason),
        _ => return None,
    };
    Some(write_object(|out| {
        out.text_members([("permission", permission), ("user_message", reason), ("agent_message", reason)]);
    }))
}

/// The dialect of our own plugin. Only `allow` and `none` let a call pass.
fn opencode(event: &HookEvent, answer: &HookAnswer) -> String {
    match answer {
        HookAnswer::Allow => write_object(|out| out.plain_member("decision", "allow")),
        HookAnswer::Deny { reason, .. } => decision("deny", reason),
        // A plugin cannot open opencode's dialog. If opencode itself asks, its dialog is open already.
        HookAnswer::OwnPrompt { reason } if event.kind == EventKind::BeforeTool => decision("deny", reason),
        _ => write_object(|out| out.plain_member("decision", "none")),
    }
}

fn decision(decision: &str, reason: &str) -> String {
    write_object(|out| out.text_members([("decision", decision), ("reason", reason)]))
}

#[cfg(test)]
mod tests;
