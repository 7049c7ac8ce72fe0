//! The supported harnesses.

use std::time::Duration;

/// A program that runs a coding agent and calls hooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Harness {
    /// Claude Code.
    Claude,
    /// Codex CLI.
    Codex,
    /// Cursor.
    Cursor,
    /// Gemini CLI.
    Gemini,
    /// VS Code with its local agent.
    VsCode,
    /// opencode, through [`OPENCODE_PLUGIN`](super::OPENCODE_PLUGIN).
    OpenCode,
}

/// Which calls a person must permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// Those for which the harness itself asks for permission.
    Requests,
    /// Those, and every risky call (see [`crate::risk`]).
    Risky,
    /// Every call.
    All,
}

impl Harness {
    /// All harnesses.
    pub const ALL: [Self; 6] =
        [Self::Claude, Self::Codex, Self::Cursor, Self::Gemini, Self::VsCode, Self::OpenCode];

    /// Returns the name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Cursor => "cursor",
            Self::Gemini => "gemini",
            Self::VsCode => "vscode",
            Self::OpenCode => "opencode",
        }
    }

    /// Returns the harness with this name on the command line.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|harness| harness.name() == name)
    }

    /// Returns the name that people hear.
    pub fn display_name(self) -> &'static str {
        match self {
            Self::Claude => "Claude Code",
            Self::Codex => "Codex",
            Self::Cursor => "Cursor",
            Self::Gemini => "Gemini CLI",
            Self::VsCode => "VS Code",
            Self::OpenCode => "opencode",
        }
    }

    /// Returns whether the harness tells its hooks when it asks for permission, and takes their answer.
    pub fn has_permission_requests(self) -> bool {
        matches!(self, Self::Claude | Self::Codex | Self::OpenCode)
    }

    /// Returns the shell tool whose argument `description` is only a comment on the command. It is not executed, and Codex
    /// adds it only to its permission requests. For any other tool it can have an effect.
    pub(super) fn shell_with_description(self) -> Option<&'static str> {
        match self {
            Self::Claude | Self::Codex => Some("Bash"),
            Self::Gemini => Some("run_shell_command"),
            Self::OpenCode => Some("bash"),
            Self::Cursor | Self::VsCode => None,
        }
    }

    /// Returns the gate if none is given: the harness's own permission requests where it has them, otherwise risky calls.
    /// opencode has them, but permits everything unless it is configured otherwise.
    pub fn default_gate(self) -> Gate {
        if matches!(self, Self::Claude | Self::Codex) { Gate::Requests } else { Gate::Risky }
    }

    /// Returns when the hook answers if no deadline is given. It is before [`Self::hook_timeout`].
    pub fn default_deadline(self) -> Duration {
        self.hook_timeout().saturating_sub(Duration::from_secs(5))
    }

    /// Returns the timeout that the harness's configuration should give to the hook. It is the default of the harness where
    /// that is known to be the maximum or cannot be configured.
    pub fn hook_timeout(self) -> Duration {
        Duration::from_secs(match self {
            Self::Claude | Self::Codex | Self::Cursor | Self::Gemini | Self::OpenCode => 600,
            Self::VsCode => 30,
        })
    }
}

impl Gate {
    /// Returns the name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::Risky => "risky",
            Self::All => "all",
        }
    }

    /// Returns the gate with this name on the command line.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Requests, Self::Risky, Self::All].into_iter().find(|gate| gate.name() == name)
    }
}
