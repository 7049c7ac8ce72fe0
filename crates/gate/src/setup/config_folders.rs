//! The folders in which programs keep their configuration.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::SetupError;
use super::install_record::RecordFolder;

/// The folders in which programs keep their configuration, from the environment.
#[derive(Clone, Debug)]
pub struct ConfigFolders {
    home: PathBuf,
    variables: Vec<(&'static str, PathBuf)>,
    is_mac: bool,
}

/// The environment variables that move a program's configuration to another folder.
const VARIABLES: [&str; 6] = [
    "CLAUDE_CONFIG_DIR",
    "CODEX_HOME",
    "COPILOT_HOME",
    "GEMINI_CLI_HOME",
    "XDG_CONFIG_HOME",
    "XDG_STATE_HOME",
];

impl ConfigFolders {
    /// Reads the environment. Fails if there is no home folder.
    pub fn from_env() -> Result<Self, SetupError> {
        Self::new(|name| std::env::var_os(name))
    }

    /// Like [`Self::from_env`], but reads the variables from the given function.
    pub fn new(variable: impl Fn(&str) -> Option<OsString>) -> Result<Self, SetupError> {
        let folder = |name: &str| variable(name).filter(|path| !path.is_empty()).map(PathBuf::from);
        let home = folder("HOME").filter(|home| home.is_absolute()).ok_or(SetupError::NoFolder("HOME"))?;
        let variables = VARIABLES
            .into_iter()
            .filter_map(|name| folder(name).filter(|path| path.is_absolute()).map(|path| (name, path)));
        Ok(Self { home, variables: variables.collect(), is_mac: cfg!(target_os = "macos") })
    }

    /// Returns the home folder.
    pub fn home(&self) -> &Path {
        &self.home
    }

    pub(crate) fn claude(&self) -> PathBuf {
        self.variable_or("CLAUDE_CONFIG_DIR", ".claude")
    }

    /// Returns the file in which Claude Code keeps its MCP servers and its state.
    pub(crate) fn claude_state(&self) -> PathBuf {
        self.variable("CLAUDE_CONFIG_DIR").unwrap_or(&self.home).join(".claude.json")
    }

    pub(crate) fn claude_desktop(&self) -> PathBuf {
        self.application_config().join("Claude")
    }

    pub(crate) fn codex(&self) -> PathBuf {
        self.variable_or("CODEX_HOME", ".codex")
    }

    pub(crate) fn copilot(&self) -> PathBuf {
        self.variable_or("COPILOT_HOME", ".copilot")
    }

    pub(crate) fn cursor(&self) -> PathBuf {
        self.home.join(".cursor")
    }

    pub(crate) fn gemini(&self) -> PathBuf {
        self.variable("GEMINI_CLI_HOME").unwrap_or(&self.home).join(".gemini")
    }

    pub(crate) fn opencode(&self) -> PathBuf {
        self.config().join("opencode")
    }

    pub(crate) fn vscode_user(&self) -> PathBuf {
        self.application_config().join("Code/User")
    }

    /// Returns the folder for the units of the user's systemd.
    pub fn systemd_units(&self) -> PathBuf {
        self.config().join("systemd/user")
    }

    pub(crate) fn records(&self) -> RecordFolder {
        RecordFolder(self.variable_or("XDG_STATE_HOME", ".local/state").join("sayso/setup"))
    }

    fn config(&self) -> PathBuf {
        self.variable_or("XDG_CONFIG_HOME", ".config")
    }

    fn application_config(&self) -> PathBuf {
        if self.is_mac { self.home.join("Library/Application Support") } else { self.config() }
    }

    fn variable(&self, name: &str) -> Option<&PathBuf> {
        self.variables.iter().find(|(known, _)| *known == name).map(|(_, path)| path)
    }

    fn variable_or(&self, name: &str, below_home: &str) -> PathBuf {
        self.variable(name).cloned().unwrap_or_else(|| self.home.join(below_home))
    }
}
