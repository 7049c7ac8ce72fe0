//! How a tool call is put into words for a person.
//!
//! What is read aloud is the actual command, file and change. Characters that could hide or reorder text are replaced with
//! their code points and announced ([`harmless`]), secrets are removed, and long texts keep their beginning and their end.
//! None of this changes what is executed.

pub mod harmless;
mod shorten;

use aaep::secret::{REDACTED, find_secrets};
use sayso::{Redact, SecretRedactor};
use seal::json::{JsonKind, JsonValue};

use crate::risk::tools::{EDITING_TOOLS, FETCHING_TOOLS, WRITING_TOOLS};
use crate::risk::{COMMAND_NAMES, SHELLS};
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

/// Names of the argument that is a file.
const FILE_NAMES: &[&str] = &["file_path", "filePath", "notebook_path", "absolute_path", "path"];

/// Names that different tools have for the same argument.
const ALIASES: &[&[&str]] = &[
    COMMAND_NAMES,
    FILE_NAMES,
    &["old_string", "oldString", "old_str"],
    &["new_string", "newString", "new_str", "new_source"],
    &["content", "contents", "text", "file_text"],
    &["url"],
    &["pattern", "query"],
];

/// Tools that apply a patch, which some harnesses pass as a command.
const PATCHING_TOOLS: &[&str] = &["apply_patch", "patch"];

/// Tools that read a file or a folder.
const READING_TOOLS: &[&str] = &[
    "Read",
    "read",
    "read_file",
    "readFile",
    "NotebookRead",
    "LS",
    "list",
    "list_directory",
    "list_dir",
    "view_image",
];

/// Tools that search.
const SEARCHING_TOOLS: &[&str] = &[
    "Grep",
    "grep",
    "Glob",
    "glob",
    "search_file_content",
    "grep_search",
    "codebase_search",
    "file_search",
    "semantic_search",
    "WebSearch",
    "google_web_search",
];

#[derive(Default)]
struct Describer {
    warnings: Vec<String>,
}

impl Describer {
    fn action(&mut self, tool: &str, input: &JsonValue<'_>) -> String {
        // Nobody knows which of several names of one argument counts, so all of them are said.
        let is_ambiguous = ALIASES.iter().any(|names| {
            input.members().filter(|(name, _)| names.iter().any(|alias| name.is_text(alias))).count() > 1
        });
        if is_ambiguous {
            return self.other(tool, input);
        }
        let text = |names: &[&str]| names.iter().find_map(|name| input.member(name)?.text());
        let file = text(FILE_NAMES);
        let is_shell = SHELLS.contains(&tool);
        if is_shell || PATCHING_TOOLS.contains(&tool) {
            let command = text(COMMAND_NAMES).map(Into::into).or_else(|| command_list(input));
            if let Some(command) = command {
                return if is_shell {
                    format!("Run: {}", self.command(&command, MAX_COMMAND_CHARS))
                } else {
                    format!("Apply this patch: {}", self.technical(&command, MAX_COMMAND_CHARS))
                };
            }
        }
        let is_changing = EDITING_TOOLS.contains(&tool) || WRITING_TOOLS.contains(&tool);
        if let Some(file) = file.as_ref().filter(|_| is_changing) {
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
        }
        if let Some(file) = file.as_ref().filter(|_| READING_TOOLS.contains(&tool)) {
            return format!("Read {}", self.technical(file, MAX_COMMAND_CHARS));
        }
        if let Some(url) = text(&["url"]).filter(|_| FETCHING_TOOLS.contains(&tool) && is_plain_fetch(input))
        {
            return format!("Fetch {}", self.technical(&url, MAX_COMMAND_CHARS));
        }
        if let Some(pattern) = text(&["pattern", "query"]).filter(|_| SEARCHING_TOOLS.contains(&tool)) {
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
            if let Some(command) = value.text().filter(|_| COMMAND_NAMES.contains(&&*name)) {
                action.push_str(&self.command(&command, MAX_COMMAND_CHARS));
                continue;
            }
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

    /// Makes a path or an argument harmless and removes secrets, and remembers what was suspicious about it.
    fn technical(&mut self, text: &str, max_chars: usize) -> String {
        let harmless = self.without_hidden(text);
        shorten(&SecretRedactor.redact(&harmless).0, max_chars)
    }

    /// Like `technical`, for a shell command: what looks like a secret but may be code is said after the mark. The hub refuses
    /// a question with a secret, so the result never looks like one.
    fn command(&mut self, text: &str, max_chars: usize) -> String {
        let harmless = self.without_hidden(text);
        let (mut out, mut from, mut has_code) = (String::new(), 0, false);
        for secret in find_secrets(&harmless) {
            out.push_str(harmless.get(from..secret.range.start).unwrap_or_default());
            out.push_str(REDACTED);
            let found = harmless.get(secret.range.clone()).unwrap_or_default();
            if found.contains(['$', '`', ';', '|', '&', '(', ')', '<', '>', '\n']) {
                has_code = true;
                out.push(' ');
                out.push_str(&found.replace("-----", "- "));
            }
            from = secret.range.end;
        }
        out.push_str(harmless.get(from..).unwrap_or_default());
        if has_code {
            self.warn("Warning: what looks like a secret may be code.");
        }
        if find_secrets(&out).next().is_some() {
            self.warn("Warning: a part that may be code is not read aloud.");
            out = SecretRedactor.redact(&out).0.into_owned();
        }
        shorten(&out, max_chars)
    }

    fn warn(&mut self, warning: &str) {
        if !self.warnings.iter().any(|known| known == warning) {
            self.warnings.push(warning.to_owned());
        }
    }

    fn without_hidden(&mut self, text: &str) -> String {
        let harmless = make_harmless(text, TextKind::Technical);
        for warning in harmless.warnings() {
            if !self.warnings.contains(&warning) {
                self.warnings.push(warning);
            }
        }
        harmless.text
    }
}

/// Returns the command of a tool that takes it as a list, as Codex's shell does.
fn command_list(input: &JsonValue<'_>) -> Option<String> {
    let list = input.member("command").filter(|command| command.kind() == JsonKind::Array)?;
    let words: Option<Vec<_>> = list.items().map(|word| word.text()).collect();
    Some(words?.join(" "))
}

/// Whether a call of a fetching tool only gets a page.
fn is_plain_fetch(input: &JsonValue<'_>) -> bool {
    input.members().all(|(name, value)| {
        ["url", "prompt", "format", "timeout"].iter().any(|known| name.is_text(known))
            || (name.is_text("method")
                && value.text().is_some_and(|method| method.eq_ignore_ascii_case("GET")))
    })
}

#[cfg(test)]
mod tests;
