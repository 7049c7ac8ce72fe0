//! Describes tool calls in words for a person.
//!
//! The actual command, file and change are read aloud. Characters that could hide or reorder text are replaced with
//! their code points and announced ([`sanitize`]), secrets are removed, and long texts keep their beginning and their end.
//! None of this changes what is executed.

pub mod sanitize;
mod shorten;

use aaep::secret::{REDACTED, find_secrets};
use sayso::{Redact, SecretRedactor};
use seal::json::{JsonKind, JsonValue};

use crate::phrases::{GateText, Language, Phrase, texts};
use crate::risk::tools::{EDITING_TOOLS, FETCHING_TOOLS, WRITING_TOOLS};
use crate::risk::{COMMAND_NAMES, SHELLS};
use sanitize::{TextKind, sanitize_text};
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

/// Describes a tool call with these arguments: what it does, without a full stop, and what is suspicious about its text.
///
/// ```
/// use seal::json::OwnedDoc;
/// let input = OwnedDoc::read(r#"{"command":"rm -r build","description":"Clean up"}"#).unwrap();
/// let call = gate::description::describe_call("Bash", &input.doc().root());
/// assert_eq!(call.english(), "Run: rm -r build");
/// ```
pub fn describe_call(tool: &str, input: &JsonValue<'_>) -> GateText {
    GateText::new(|language| {
        let mut describer = Describer { language, warnings: Vec::new() };
        let action = describer.action(tool, input);
        let mut text = shorten(&action, MAX_DESCRIPTION_CHARS, language);
        for warning in &describer.warnings {
            text.push_str(". ");
            text.push_str(warning.trim_end_matches('.'));
        }
        text
    })
}

/// Makes a text from outside safe to announce: harmless, without secrets, and at most `max_chars` long. `language` is the language
/// of the surrounding sentence.
pub fn speakable(text: &str, max_chars: usize, language: Language) -> String {
    let harmless = sanitize_text(text, TextKind::Prose).text;
    shorten(&SecretRedactor.redact(&harmless).0, max_chars, language)
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

struct Describer {
    language: Language,
    warnings: Vec<String>,
}

impl Describer {
    fn action(&mut self, tool: &str, input: &JsonValue<'_>) -> String {
        // It is unknown which of several names of one argument counts, so all of them are announced.
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
                    let command = self.command(&command, MAX_COMMAND_CHARS);
                    self.say(&texts::RUN, &[&command])
                } else {
                    let patch = self.technical(&command, MAX_COMMAND_CHARS);
                    self.say(&texts::APPLY_PATCH, &[&patch])
                };
            }
        }
        let is_changing = EDITING_TOOLS.contains(&tool) || WRITING_TOOLS.contains(&tool);
        if let Some(file) = file.as_ref().filter(|_| is_changing) {
            let file = self.technical(file, MAX_COMMAND_CHARS);
            let old = text(&["old_string", "oldString", "old_str"]);
            let new = text(&["new_string", "newString", "new_str", "new_source"]);
            if let Some(new) = new {
                let is_removal = new.trim().is_empty();
                let new = self.change(&new);
                return match old.as_deref().filter(|old| !old.is_empty()) {
                    None => self.say(&texts::CHANGE_ADD, &[&file, &new]),
                    Some(old) => {
                        let old = self.change(old);
                        if is_removal {
                            self.say(&texts::CHANGE_REMOVE, &[&file, &old])
                        } else {
                            self.say(&texts::CHANGE_REPLACE, &[&file, &old, &new])
                        }
                    }
                };
            }
            if let Some(edits) = input.member("edits").filter(|edits| edits.kind() == JsonKind::Array) {
                return self.edits(&file, &edits);
            }
            if let Some(content) = text(&["content", "contents", "text", "file_text"]) {
                let lines = content.lines().count();
                let content = self.change(&content);
                return match lines {
                    1 => self.say(&texts::WRITE_LINE, &[&file, &content]),
                    lines => self.say(&texts::WRITE_LINES, &[&file, &lines.to_string(), &content]),
                };
            }
        }
        if let Some(file) = file.as_ref().filter(|_| READING_TOOLS.contains(&tool)) {
            let file = self.technical(file, MAX_COMMAND_CHARS);
            return self.say(&texts::READ, &[&file]);
        }
        if let Some(url) = text(&["url"]).filter(|_| FETCHING_TOOLS.contains(&tool) && is_plain_fetch(input))
        {
            let url = self.technical(&url, MAX_COMMAND_CHARS);
            return self.say(&texts::FETCH, &[&url]);
        }
        if let Some(pattern) = text(&["pattern", "query"]).filter(|_| SEARCHING_TOOLS.contains(&tool)) {
            let pattern = self.technical(&pattern, MAX_ARGUMENT_CHARS);
            return match &file {
                Some(file) => {
                    let file = self.technical(file, MAX_ARGUMENT_CHARS);
                    self.say(&texts::SEARCH_IN, &[&file, &pattern])
                }
                None => self.say(&texts::SEARCH, &[&pattern]),
            };
        }
        self.other(tool, input)
    }

    /// Describes a call to a tool whose arguments have no known meaning: every argument in words.
    fn other(&mut self, tool: &str, input: &JsonValue<'_>) -> String {
        let mut parts = tool.strip_prefix("mcp__").unwrap_or_default().splitn(2, "__");
        let mut action = if let (Some(server), Some(tool)) = (parts.next(), parts.next()) {
            let (tool, server) = (self.technical(tool, 100), self.technical(server, 100));
            self.say(&texts::USE_OF_SERVER, &[&tool, &server])
        } else {
            let tool = self.technical(tool, 100);
            self.say(&texts::USE_TOOL, &[&tool])
        };
        if input.kind() != JsonKind::Object {
            if input.kind() != JsonKind::Null {
                action = self.say(&texts::WITH, &[&action]);
                action.push_str(&self.value(input));
            }
            return action;
        }
        let count = input.members().count();
        for (at, (name, value)) in input.members().take(MAX_ARGUMENTS).enumerate() {
            if at == 0 {
                action = self.say(&texts::WITH, &[&action]);
            } else {
                action.push_str(", ");
            }
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
            let left_out = (count - MAX_ARGUMENTS).to_string();
            action = self.say(&texts::MORE_ARGUMENTS, &[&action, &left_out]);
        }
        action
    }

    fn edits(&mut self, file: &str, edits: &JsonValue<'_>) -> String {
        let count = edits.items().count();
        let mut action = match count {
            1 => self.say(&texts::CHANGE_ONE_PLACE, &[file]),
            count => self.say(&texts::CHANGE_PLACES, &[file, &count.to_string()]),
        };
        for edit in edits.items().take(4) {
            let text = |names: &[&str]| names.iter().find_map(|name| edit.member(name)?.text());
            let old = text(&["old_string", "oldString", "old_text"]).unwrap_or_default();
            let new = text(&["new_string", "newString", "new_text"]).unwrap_or_default();
            let (old, new) = (self.change(&old), self.change(&new));
            action = self.say(&texts::REPLACE, &[&action, &old, &new]);
        }
        if count > 4 {
            action = self.say(&texts::AND_MORE, &[&action, &(count - 4).to_string()]);
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
        if text.is_empty() { self.say(&texts::NOTHING, &[]) } else { format!("\u{201c}{text}\u{201d}") }
    }

    /// Makes a path or an argument harmless and removes secrets, and remembers what was suspicious about it.
    fn technical(&mut self, text: &str, max_chars: usize) -> String {
        let harmless = self.without_hidden(text);
        shorten(&SecretRedactor.redact(&harmless).0, max_chars, self.language)
    }

    /// Like `technical`, for a shell command: text that looks like a secret but may be code is announced after the mark. The hub refuses
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
            self.warn(&texts::SECRET_OR_CODE);
        }
        if find_secrets(&out).next().is_some() {
            self.warn(&texts::CODE_NOT_READ);
            out = SecretRedactor.redact(&out).0.into_owned();
        }
        shorten(&out, max_chars, self.language)
    }

    fn say(&self, phrase: &Phrase, arguments: &[&str]) -> String {
        phrase.fill(self.language, arguments)
    }

    fn warn(&mut self, warning: &Phrase) {
        let warning = self.say(warning, &[]);
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }

    fn without_hidden(&mut self, text: &str) -> String {
        let harmless = sanitize_text(text, TextKind::Technical);
        for warning in harmless.warnings(self.language) {
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

/// Whether a call to a fetching tool only gets a page.
fn is_plain_fetch(input: &JsonValue<'_>) -> bool {
    input.members().all(|(name, value)| {
        ["url", "prompt", "format", "timeout"].iter().any(|known| name.is_text(known))
            || (name.is_text("method")
                && value.text().is_some_and(|method| method.eq_ignore_ascii_case("GET")))
    })
}

#[cfg(test)]
mod tests;
