//! The coding agents whose hooks call `sayso hook`: their files, their events and their dialect.

use std::fmt;
use std::path::PathBuf;

use super::ConfigFolders;
use super::command_words::{REFUSE_ON_FAILURE, join_words};
use super::jsonc::Json;
pub use crate::hook::Harness;

/// How long a harness waits for a hook that asks a person, in seconds. `sayso hook` answers before that.
pub const GATE_TIMEOUT_SECONDS: u32 = 600;
/// The same for a harness that makes the call when this time is over. `sayso hook` and its watchdog end the hook much earlier, except
/// if the harness itself is suspended with its hooks. Gemini CLI cannot wait longer than 24 days.
const OPEN_TIMEOUT_SECONDS: u32 = 24 * 60 * 60;
/// How long a harness waits for a hook that only narrates, in seconds.
const NARRATION_TIMEOUT_SECONDS: u32 = 30;

/// Whose configuration is changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetupScope {
    /// The user's, for all projects.
    User,
    /// The one of the project in this folder.
    Project(PathBuf),
}

/// Options that the hooks pass to `sayso hook`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HookOptions {
    /// Which calls are gated: `requests`, `risky` or `all`. The default is that of `sayso hook`.
    pub gate: Option<String>,
    /// Address of the hub. The default is that of `sayso hook`.
    pub hub: Option<String>,
    /// Whether calls are denied if there is no hub.
    pub is_required: bool,
}

/// Where the hooks of an event are in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HookLayout {
    /// `hooks.EVENT[].hooks[]`, where a group can have a matcher.
    Grouped,
    /// `hooks.EVENT[]`.
    Flat,
}

/// An event, and whether its hook can ask a person.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HookEvent {
    pub(crate) name: &'static str,
    pub(crate) is_gate: bool,
}

const fn gate(name: &'static str) -> HookEvent {
    HookEvent { name, is_gate: true }
}

const fn narration(name: &'static str) -> HookEvent {
    HookEvent { name, is_gate: false }
}

const CLAUDE_EVENTS: &[HookEvent] = &[
    narration("SessionStart"),
    narration("SessionEnd"),
    narration("UserPromptSubmit"),
    gate("PreToolUse"),
    narration("PostToolUse"),
    narration("PostToolUseFailure"),
    narration("PostToolBatch"),
    gate("PermissionRequest"),
    narration("PermissionDenied"),
    narration("Notification"),
    gate("Elicitation"),
    narration("ElicitationResult"),
    narration("MessageDisplay"),
    narration("Stop"),
    narration("StopFailure"),
    narration("SubagentStart"),
    narration("SubagentStop"),
];

const CODEX_EVENTS: &[HookEvent] = &[
    narration("SessionStart"),
    narration("SessionEnd"),
    narration("UserPromptSubmit"),
    gate("PreToolUse"),
    gate("PermissionRequest"),
    narration("PostToolUse"),
    narration("Stop"),
    narration("SubagentStart"),
    narration("SubagentStop"),
];

const CURSOR_EVENTS: &[HookEvent] = &[
    narration("sessionStart"),
    narration("sessionEnd"),
    narration("beforeSubmitPrompt"),
    gate("beforeShellExecution"),
    narration("afterShellExecution"),
    gate("beforeMCPExecution"),
    narration("afterMCPExecution"),
    narration("afterFileEdit"),
    narration("afterAgentResponse"),
    narration("subagentStart"),
    narration("subagentStop"),
    narration("stop"),
];

const GEMINI_EVENTS: &[HookEvent] = &[
    narration("SessionStart"),
    narration("SessionEnd"),
    narration("BeforeAgent"),
    narration("AfterAgent"),
    gate("BeforeTool"),
    narration("AfterTool"),
    narration("Notification"),
];

const VSCODE_EVENTS: &[HookEvent] = &[
    narration("SessionStart"),
    narration("UserPromptSubmit"),
    gate("PreToolUse"),
    narration("PostToolUse"),
    narration("SubagentStart"),
    narration("SubagentStop"),
    narration("Stop"),
];

impl Harness {
    /// Returns the file that contains the hooks.
    pub fn hook_file(self, folders: &ConfigFolders, scope: &SetupScope) -> PathBuf {
        match scope {
            SetupScope::User => match self {
                Self::Claude => folders.claude().join("settings.json"),
                Self::Codex => folders.codex().join("hooks.json"),
                Self::Cursor => folders.cursor().join("hooks.json"),
                Self::Gemini => folders.gemini().join("settings.json"),
                Self::VsCode => folders.copilot().join("hooks/sayso.json"),
                Self::OpenCode => folders.opencode().join("plugins/sayso.js"),
            },
            SetupScope::Project(folder) => folder.join(match self {
                Self::Claude => ".claude/settings.json",
                Self::Codex => ".codex/hooks.json",
                Self::Cursor => ".cursor/hooks.json",
                Self::Gemini => ".gemini/settings.json",
                Self::VsCode => ".github/hooks/sayso.json",
                Self::OpenCode => ".opencode/plugins/sayso.js",
            }),
        }
    }

    /// Returns the file in which Codex keeps its settings.
    pub fn codex_config(folders: &ConfigFolders) -> PathBuf {
        folders.codex().join("config.toml")
    }

    /// Returns the program whose `--version` tells the installed version.
    pub fn program(self) -> &'static str {
        match self {
            Self::VsCode => "code",
            other => other.name(),
        }
    }

    pub(crate) fn layout(self) -> HookLayout {
        match self {
            Self::Cursor | Self::VsCode => HookLayout::Flat,
            _ => HookLayout::Grouped,
        }
    }

    /// Returns the events for which hooks are installed. The opencode plugin chooses its own.
    pub(crate) fn events(self) -> &'static [HookEvent] {
        match self {
            Self::Claude => CLAUDE_EVENTS,
            Self::Codex => CODEX_EVENTS,
            Self::Cursor => CURSOR_EVENTS,
            Self::Gemini => GEMINI_EVENTS,
            Self::VsCode => VSCODE_EVENTS,
            Self::OpenCode => &[],
        }
    }

    /// Returns the hook for an event, in the harness's dialect.
    pub(crate) fn hook(self, event: HookEvent, words: &[String]) -> Json {
        let seconds = match self {
            _ if !event.is_gate => NARRATION_TIMEOUT_SECONDS,
            Self::Codex | Self::Gemini => OPEN_TIMEOUT_SECONDS,
            _ => GATE_TIMEOUT_SECONDS,
        };
        let line = || {
            let line = join_words(words.iter().map(String::as_str));
            // These harnesses make a call whose hook fails, unless it fails with exit code 2 and a reason.
            let is_refused =
                matches!((self, event.name), (Self::Codex, "PreToolUse") | (Self::Gemini, "BeforeTool"));
            Json::text(if is_refused { line + REFUSE_ON_FAILURE } else { line })
        };
        match self {
            Self::Claude => {
                // The form with `args` starts the program without a shell.
                let mut words = words.iter().map(String::as_str);
                let mut members = vec![
                    ("type".to_owned(), Json::text("command")),
                    ("command".to_owned(), Json::text(words.next().unwrap_or_default())),
                    ("args".to_owned(), Json::texts(words)),
                    ("timeout".to_owned(), Json::number(seconds)),
                ];
                if matches!(event.name, "PreToolUse" | "PermissionRequest") {
                    members.push(("onFailure".to_owned(), Json::text("block")));
                }
                Json::Object(members)
            }
            Self::Gemini => Json::object([
                ("name", Json::text("sayso")),
                ("type", Json::text("command")),
                ("command", line()),
                ("timeout", Json::number(seconds * 1000)),
            ]),
            Self::Cursor if event.is_gate => Json::object([
                ("command", line()),
                ("timeout", Json::number(seconds)),
                ("failClosed", Json::Boolean(true)),
            ]),
            Self::Cursor => Json::object([("command", line()), ("timeout", Json::number(seconds))]),
            Self::Codex | Self::VsCode | Self::OpenCode => Json::object([
                ("type", Json::text("command")),
                ("command", line()),
                ("timeout", Json::number(seconds)),
            ]),
        }
    }

    /// Returns the command line of the hooks.
    pub(crate) fn hook_words(self, program: &str, options: &HookOptions) -> Vec<String> {
        let mut words = vec![program.to_owned(), "hook".to_owned(), self.name().to_owned()];
        let mut add = |option: &str, value: Option<&String>| {
            if let Some(value) = value {
                words.extend([option.to_owned(), value.clone()]);
            }
        };
        add("--gate", options.gate.as_ref());
        add("--hub", options.hub.as_ref());
        if options.is_required {
            words.push("--required".to_owned());
        }
        words
    }
}

impl fmt::Display for Harness {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.display_name())
    }
}
