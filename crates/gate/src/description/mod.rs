//! How a tool call is put into words for a person.
//!
//! What is read aloud is the actual command, file and change. Characters that could hide or reorder text are replaced with
//! their code points and announced ([`harmless`]), secrets are removed, and long texts keep their beginning and their end.
//! None of this changes what is executed.

pub mod harmless;
mod shorten;

use sayso::{Redact, SecretRedactor};
use seal::json::{JsonKind, JsonValue};

use harmless::{TextKind, make_harmless};
pub use shorten::shorten;

/// Maximum number of characters of a command in a question. Longer commands are shortened, and the person is told.
pub const MAX_COMMAND_CHARS: usize = 2_000;
/// Maximum number of characters of each side of a change.
pub const MAX_CHANGE_CHARS: usize = 400;
/// Maximum number of characters of one argument of an unknown tool.
pub const MAX_ARGUMENT_CHARS: usize = 300;
/// Maximum number of arguments of an unknown tool that are read aloud.
pub const MAX_ARGUMENTS: usize = 12;
/// Maximum number of characters of a description as a whole.
pub const MAX_DESCRIPTION_CHARS: usize = 4_000;

/// A tool call in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallDescription {
    /// What the call does, without a full stop, such as `Run: cargo test`.
    pub action: String,
    /// What is suspicious about its text, as sentences.
    pub warnings: Vec<String>,
}

impl CallDescription {
    /// Returns the action and the warnings as one text.
    pub fn text(&self) -> String {
        let mut text = self.action.clone();
        for warning in &self.warnings {
            text.push_str(". ");
            text.push_str(warning.trim_end_matches('.'));
        }
        text
    }
}

/// Describes a call of a tool with these arguments.
///
/// ```
/// use seal::json::OwnedDoc;
/// let input = OwnedDoc::read(r#"{"command":"rm -r build","description":"Clean up"}"#).unwrap();
/// let call = gate::description::describe_call("Bash", &input.doc().root());
/// assert_eq!(call.action, "Run: rm -r build");
/// ```
pub fn describe_call(tool: &str, input: &JsonValue<'_>) -> CallDescription {
    let mut description = Describer::default();
    let action = description.action(tool, input);
    CallDescription { action: shorten(&action, MAX_DESCRIPTION_CHARS), warnings: description.warnings }
}

/// Makes a text from outside fit to be heard: harmless, without secrets, and at most `max_chars` long.
pub fn speakable(text: &str, max_chars: usize) -> String {
    let harmless = make_harmless(text, TextKind::Prose).text;
    shorten(&SecretRedactor.redact(&harmless).0, max_chars)
}

#[derive(Default)]
struct Describer {
    warnings: Vec<String>,
}

impl Describer {
    fn action(&mut self, tool: &str, input: &JsonValue<'_>) -> String {
        let text = |names: &[&str]| names.iter().find_map(|name| input.member(name)?.text());
        let file = text(&["file_path", "filePath", "notebook_path", "absolute_path", "path"]);
        if let Some(command) = text(&["command", "cmd"]) {
            let is_patch = tool == "apply_patch" || command.starts_with("*** Begin Patch");
            let command = self.technical(&command, MAX_COMMAND_CHARS);
            return if is_patch { format!("Apply this patch: {command}") } else { format!("Run: {command}") };
        }
        if let Some(command) = command_list(input) {
            return format!("Run: {}", self.technical(&command, MAX_COMMAND_CHARS));
        }
        if let Some(file) = &file {
            let file = self.technical(file, MAX_COMMAND_CHARS);
            let old = text(&["old_string", "oldString", "old_str"]);
            let new = text(&["new_string", "newString", "new_str", "new_source"]);
            if let Some(new) = new {
                let new = self.change(&new);
                return match old.as_deref() {
                    None | Some("") => format!("Change {file}: add {new}"),
                    Some(old) if new == "nothing" => format!("Change {file}: remove {}", self.change(old)),
                    Some(old) => format!("Change {file}: replace {} with {new}", self.change(old)),
                };
            }
            if let Some(edits) = input.member("edits").filter(|edits| edits.kind() == JsonKind::Array) {
                return self.edits(&file, &edits);
            }
            if let Some(content) = text(&["content", "contents", "text", "file_text"]) {
                let lines = content.lines().count();
                let noun = if lines == 1 { "line" } else { "lines" };
                return format!("Write {file}, {lines} {noun}: {}", self.change(&content));
            }
            if is_reading_tool(tool) && text(&["pattern"]).is_none() {
                return format!("Read {file}");
            }
        }
        if let Some(url) = text(&["url"]).filter(|_| input.members().count() <= 3) {
            return format!("Fetch {}", self.technical(&url, MAX_COMMAND_CHARS));
        }
        if let Some(pattern) = text(&["pattern", "query"]).filter(|_| is_reading_tool(tool)) {
            let pattern = self.technical(&pattern, MAX_ARGUMENT_CHARS);
            return match &file {
                Some(file) => {
                    format!("Search {} for {pattern}", self.technical(file, MAX_ARGUMENT_CHARS))
                }
                None => format!("Search for {pattern}"),
            };
        }
        self.other(tool, input)
    }

    /// Describes a call of a tool whose arguments have no known meaning: every argument in words.
    fn other(&mut self, tool: &str, input: &JsonValue<'_>) -> String {
        let mut parts = tool.strip_prefix("mcp__").unwrap_or_default().splitn(2, "__");
        let mut action = match (parts.next(), parts.next()) {
            (Some(server), Some(tool)) => {
                let (tool, server) = (self.technical(tool, 100), self.technical(server, 100));
                format!("Use {tool} of the server {server}")
            }
            _ => format!("Use the tool {}", self.technical(tool, 100)),
        };
        if input.kind() != JsonKind::Object {
            if input.kind() != JsonKind::Null {
                action.push_str(" with ");
                action.push_str(&self.value(input));
            }
            return action;
        }
        let count = input.members().count();
        for (at, (name, value)) in input.members().take(MAX_ARGUMENTS).enumerate() {
            action.push_str(if at == 0 { " with " } else { ", " });
            let name = name.text().unwrap_or_default();
            action.push_str(&self.technical(&name, 60).replace('_', " "));
            action.push(' ');
            // The name is part of what shows that a value is a secret.
            let value = self.value(&value);
            let labelled = format!("{name}: {value}");
            let (redacted, secrets) = SecretRedactor.redact(&labelled);
            let redacted = redacted.strip_prefix(&*name).map(|rest| rest.trim_start_matches([':', ' ']));
            action.push_str(redacted.filter(|_| secrets > 0).unwrap_or(&value));
        }
        if count > MAX_ARGUMENTS {
            action = format!("{action} and {} more arguments", count - MAX_ARGUMENTS);
        }
        action
    }

    fn edits(&mut self, file: &str, edits: &JsonValue<'_>) -> String {
        let count = edits.items().count();
        let mut action = format!("Change {file} in {count} {}", if count == 1 { "place" } else { "places" });
        for edit in edits.items().take(4) {
            let text = |names: &[&str]| names.iter().find_map(|name| edit.member(name)?.text());
            let old = text(&["old_string", "oldString", "old_text"]).unwrap_or_default();
            let new = text(&["new_string", "newString", "new_text"]).unwrap_or_default();
            action = format!("{action}; replace {} with {}", self.change(&old), self.change(&new));
        }
        if count > 4 {
            action = format!("{action}; and {} more", count - 4);
        }
        action
    }

    fn value(&mut self, value: &JsonValue<'_>) -> String {
        match value.text() {
            Some(text) => self.technical(&text, MAX_ARGUMENT_CHARS),
            None => self.technical(value.source(), MAX_ARGUMENT_CHARS),
        }
    }

    fn change(&mut self, text: &str) -> String {
        let text = self.technical(text.trim(), MAX_CHANGE_CHARS);
        if text.is_empty() { "nothing".to_owned() } else { format!("\u{201c}{text}\u{201d}") }
    }

    /// Makes a command, a path or an argument harmless, and remembers what was suspicious about it.
    fn technical(&mut self, text: &str, max_chars: usize) -> String {
        let harmless = make_harmless(text, TextKind::Technical);
        for warning in harmless.warnings() {
            if !self.warnings.contains(&warning) {
                self.warnings.push(warning);
            }
        }
        shorten(&SecretRedactor.redact(&harmless.text).0, max_chars)
    }
}

/// Returns the command of a tool that takes it as a list, as Codex's shell does.
fn command_list(input: &JsonValue<'_>) -> Option<String> {
    let list = input.member("command").filter(|command| command.kind() == JsonKind::Array)?;
    let words: Option<Vec<_>> = list.items().map(|word| word.text()).collect();
    Some(words?.join(" "))
}

fn is_reading_tool(tool: &str) -> bool {
    let tool = tool.to_ascii_lowercase();
    ["read", "grep", "glob", "search", "list", "ls", "view", "find"].iter().any(|name| tool.contains(name))
}

#[cfg(test)]
mod tests;
