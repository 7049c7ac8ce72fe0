//! `sayso doctor`: checks the installation and says what to do.
//!
//! - `hub_check`: whether a hub answers, and whether somebody listens to it.
//! - `agent_check`: whether coding agents and MCP clients are connected, and whether their configuration works.
//! - `program_search`: finds programs on the path.

mod agent_check;
mod hub_check;
mod program_search;

use std::path::PathBuf;

use crate::setup::ConfigFolders;

pub use program_search::SearchPath;

/// Where an administrator's settings for Claude Code are.
pub const MANAGED_CLAUDE_SETTINGS: &str = if cfg!(target_os = "macos") {
    "/Library/Application Support/ClaudeCode/managed-settings.json"
} else {
    "/etc/claude-code/managed-settings.json"
};

/// How serious a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FindingLevel {
    /// All is well.
    Ok,
    /// Something to know, which needs no action.
    Note,
    /// Something does not work.
    Problem,
}

/// The result of one check, in one or two sentences. The last one says what to do about a problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// How serious it is.
    pub level: FindingLevel,
    /// What was found.
    pub text: String,
}

impl FindingLevel {
    /// Returns the word at the start of a finding's line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Note => "note",
            Self::Problem => "problem",
        }
    }
}

impl Finding {
    pub(crate) fn ok(text: impl Into<String>) -> Self {
        Self { level: FindingLevel::Ok, text: text.into() }
    }

    pub(crate) fn note(text: impl Into<String>) -> Self {
        Self { level: FindingLevel::Note, text: text.into() }
    }

    pub(crate) fn problem(text: impl Into<String>) -> Self {
        Self { level: FindingLevel::Problem, text: text.into() }
    }
}

/// The environment that `sayso doctor` checks.
#[derive(Clone, Debug)]
pub struct Doctor {
    /// Where programs keep their configuration.
    pub folders: ConfigFolders,
    /// Where programs are.
    pub search_path: SearchPath,
    /// The folder whose project configuration is checked.
    pub project: PathBuf,
    /// The file with an administrator's settings for Claude Code.
    pub managed_claude_settings: PathBuf,
    /// The program `sayso` that runs.
    pub program: PathBuf,
    /// The given address of the hub.
    pub hub: Option<String>,
    /// The token for the hub.
    pub token: Option<String>,
}

impl Doctor {
    /// Runs all checks.
    pub async fn check(&self) -> Vec<Finding> {
        let mut findings = vec![self.check_program()];
        findings.extend(hub_check::check(self.hub.as_deref(), self.token.as_deref()).await);
        findings.extend(agent_check::check(self).await);
        findings.push(self.check_speech());
        findings
    }

    fn check_program(&self) -> Finding {
        let (version, path) = (env!("CARGO_PKG_VERSION"), self.program.display());
        match self.search_path.find("sayso") {
            Some(found) if program_search::is_same_file(&found, &self.program) => {
                Finding::ok(format!("sayso {version} is at {path}, and on the path."))
            }
            Some(found) => Finding::note(format!(
                "sayso {version} is at {path}, but the path leads to {}. Projects that were set up use that one.",
                found.display()
            )),
            None => Finding::note(format!(
                "sayso {version} is at {path}, which is not on the path. Only projects that were set up need that."
            )),
        }
    }

    fn check_speech(&self) -> Finding {
        let programs = ["speech-dispatcher", "espeak-ng"];
        let found: Vec<_> =
            programs.into_iter().filter(|name| self.search_path.find(name).is_some()).collect();
        if found.is_empty() {
            return Finding::note(
                "Speech: neither speech-dispatcher nor espeak-ng is installed, so `sayso listen --speech` cannot speak. \
                 On Debian, install espeak-ng. A screen reader or a braille display works without it.",
            );
        }
        let found = found.join(" and ");
        Finding::ok(format!("Speech: `sayso listen --speech` can speak with {found}."))
    }
}
