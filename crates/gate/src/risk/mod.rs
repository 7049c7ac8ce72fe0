//! Decides which tool calls are risky.
//!
//! The classification knows what is harmless; everything else is risky. It decides whether `--gate risky` asks about a call,
//! and how serious a question sounds. docs/gates.md describes it for users.
//!
//! - `tools`: tools other than shells.
//! - `shell`: shell commands, which are parsed, not searched for words.

mod shell;
pub(crate) mod tools;

use seal::json::JsonValue;

use crate::phrases::{GateText, texts};

/// How much harm a call can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RiskClass {
    /// It only reads, or makes a small change inside the project that is easy to undo.
    Harmless,
    /// It changes something that can be undone with some effort.
    Risky,
    /// It cannot be undone, or its effect is unknown.
    Irreversible,
}

/// The class of a call, and the reason in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assessment {
    /// How much harm the call can do.
    pub class: RiskClass,
    /// The reason for the class, as a sentence for the person.
    pub reason: GateText,
}

impl Assessment {
    pub(crate) fn new(class: RiskClass, reason: impl Into<GateText>) -> Self {
        Self { class, reason: reason.into() }
    }

    pub(crate) fn harmless() -> Self {
        Self::new(RiskClass::Harmless, &texts::ONLY_READS)
    }

    pub(crate) fn irreversible(reason: impl Into<GateText>) -> Self {
        Self::new(RiskClass::Irreversible, reason)
    }

    /// Returns the more serious of two assessments; the first one if they are equal.
    #[must_use]
    pub(crate) fn max(self, other: Self) -> Self {
        if other.class > self.class { other } else { self }
    }
}

/// The folders in which a call is made. Each is `None` if it is not known for certain; then `git` is risky.
#[derive(Clone, Copy, Debug, Default)]
pub struct Folders<'a> {
    /// The working folder. An agent can change it.
    pub working: Option<&'a str>,
    /// The folder in which the harness was started.
    pub project: Option<&'a str>,
}

/// Classifies a tool call with these arguments, in these folders.
///
/// ```
/// use gate::risk::{Folders, RiskClass, assess};
/// use seal::json::OwnedDoc;
/// let class = |command: &str| {
///     let input = seal::json::write_object(|writer| writer.key("command").text(command));
///     assess("Bash", &OwnedDoc::read(&input).unwrap().doc().root(), Folders::default()).class
/// };
/// assert_eq!(class("grep -r main src | head"), RiskClass::Harmless);
/// assert_eq!(class("grep -r main src; rm -r build"), RiskClass::Irreversible);
/// assert_eq!(class("mkdir a"), RiskClass::Risky);
/// ```
pub fn assess(tool: &str, input: &JsonValue<'_>, folders: Folders<'_>) -> Assessment {
    match shell_command(tool, input) {
        Some(_) if !tools::has_only_known_members(input, &[COMMAND_NAMES], SHELL_NAMES) => {
            Assessment::irreversible(&texts::UNKNOWN_ARGUMENTS)
        }
        Some(command) if TERMINALS.contains(&tool) => shell::assess_typed(&command, folders),
        Some(command) => shell::assess(&command, folders),
        None => tools::assess(tool, input, folders.working),
    }
}

/// Tools that run a shell command.
pub(crate) const SHELLS: &[&str] = &[
    "Bash",
    "bash",
    "shell",
    "exec_command",
    "run_shell_command",
    "run_in_terminal",
    "Shell",
    "run_terminal_cmd",
    "local_shell",
];

/// Those that type the command into a terminal, whose shell is not known.
const TERMINALS: &[&str] = &["run_in_terminal", "run_terminal_cmd"];

/// Names of the argument that is the command.
pub(crate) const COMMAND_NAMES: &[&str] = &["command", "cmd"];

/// Other arguments of shells that do not change what is executed. A folder is not among them: what a command does depends on
/// it.
const SHELL_NAMES: &[&str] = &[
    "description",
    "explanation",
    "goal",
    "timeout",
    "timeout_ms",
    "timeoutMs",
    "run_in_background",
    "is_background",
    "isBackground",
    "yield_time_ms",
    "max_output_tokens",
];

/// Returns the command of a shell call.
fn shell_command(tool: &str, input: &JsonValue<'_>) -> Option<String> {
    if !SHELLS.contains(&tool) {
        return None;
    }
    let command = input.member("command").or_else(|| input.member("cmd"))?;
    if let Some(text) = command.text() {
        return Some(text.into_owned());
    }
    let words: Option<Vec<_>> = command.items().map(|word| word.text()).collect();
    let words = words.filter(|words| !words.is_empty());
    // Each word is quoted, because a list is not split again.
    Some(words?.iter().map(|word| format!("'{}'", word.replace('\'', r"'\''"))).collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests;
