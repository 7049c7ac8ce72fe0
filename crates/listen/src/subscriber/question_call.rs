//! The call that a question is about, as the hub reports it, in a form that a person can hear.

use aaep::event::Event;
use aaep::json::{JsonKind, JsonValue};

use super::call_text::{describe_name, describe_number, describe_text, hides_nothing};
use super::read_hub_extension;
use crate::Phrases;

/// Maximum length of a call that is part of the question itself, in characters. A longer one is only part of the details.
pub(super) const MAX_SHORT_CALL_CHARS: usize = 120;

/// The call that a question is about. The texts are sanitized.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct QuestionCall {
    /// The tool and its arguments: `transfer, amount 5000000, to Ben`. Only the tool if the hub sent no arguments.
    pub text: String,
    /// Whether the answer permits only this call. If not, the hub did not bind the answer to the arguments.
    pub is_bound: bool,
    /// The names and values of the arguments, if all of them are texts or numbers.
    pairs: Option<Vec<(String, String)>>,
    tool: String,
    /// The command, if the call is a shell with a command and no other argument. See [`Self::is_command_said_by`].
    command: Option<String>,
    /// The language of the listener.
    language: &'static str,
}

impl QuestionCall {
    /// Reads the call from the members that the hub added to a question.
    pub(super) fn read(phrases: &Phrases, event: &Event) -> Option<Self> {
        read_hub_extension(event, |sayso| {
            let name = sayso.member("tool")?.text()?;
            let tool = describe_name(&name);
            let mut text = tool.clone();
            let command = sayso.member("arguments").and_then(|arguments| read_command(&name, &arguments));
            let pairs = sayso.member("arguments").and_then(|arguments| describe_pairs(&arguments));
            if let Some(arguments) = sayso.member("arguments") {
                let arguments = describe_items(&arguments);
                text.push_str(", ");
                text.push_str(if arguments.is_empty() { phrases.without_arguments } else { &arguments });
            }
            Some(Self {
                text,
                is_bound: sayso.member("action_digest").is_some(),
                pairs,
                tool,
                command,
                language: phrases.language(),
            })
        })
    }

    /// Whether a text says exactly this call, word for word: the tool, then each argument in order, its name before its value. A number
    /// may come before its name: `Transfer 20 euros to Ben.` is the call `transfer, euros 20, to Ben`. No other word is allowed, because it
    /// could change the meaning. For a Spanish listener, a fixed list of Spanish words counts as the English ones: `Transferir 20 euros a Ben.`
    /// A command of a shell is also said by the form of sayso's hook: `Run: rm -r build.`
    pub(super) fn is_said_by(&self, text: &str) -> bool {
        if self.is_command_said_by(text) {
            return true;
        }
        let Some(pairs) = self.pairs.as_ref().filter(|_| self.is_short()) else { return false };
        let text = text.trim();
        let text = text.strip_suffix(['.', '?']).unwrap_or(text);
        let mut rest: Vec<&str> = text.split(' ').collect();
        let mut take = |words: &str| {
            let count = words.split(' ').count();
            let is_said =
                rest.len() >= count && rest.iter().zip(words.split(' ')).all(|(said, word)| *said == word);
            if is_said {
                rest.drain(..count);
            }
            is_said
        };
        let is_spanish = self.language == "es";
        let endings: &[&str] = if is_spanish { &["", "ar", "er", "ir"] } else { &[""] };
        let verbs = || endings.iter().map(|ending| format!("{}{ending}", self.tool));
        if !verbs().any(|verb| take(&verb) || take(&capitalize(&verb))) {
            return false;
        }
        for (name, value) in pairs {
            let is_number = value.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
            let translations = SPANISH_NAMES.iter().filter(|(english, _)| is_spanish && english == name);
            let names = std::iter::once(name.as_str()).chain(translations.map(|(_, spanish)| *spanish));
            let is_said = names.into_iter().any(|name| {
                take(&format!("{name} {value}")) || is_number && take(&format!("{value} {name}"))
            });
            if !is_said {
                return false;
            }
        }
        rest.is_empty()
    }

    /// Whether a text says exactly the command of this call, as sayso's hook for coding agents does: `Run: rm -r build.`, in English or in
    /// the language of the listener.
    fn is_command_said_by(&self, text: &str) -> bool {
        let Some(command) = self.command.as_ref().filter(|_| self.is_short()) else { return false };
        RUN_FORMS.iter().filter(|(language, _)| ["en", self.language].contains(language)).any(|(_, label)| {
            let said = text.strip_prefix(label).and_then(|rest| rest.strip_suffix('.'));
            said == Some(command)
        })
    }

    /// Whether a tool has the name of this call's tool.
    pub(super) fn is_of_tool(&self, tool: &str) -> bool {
        self.tool == describe_name(tool)
    }

    /// Whether the call is short enough to be part of the question itself.
    pub(super) fn is_short(&self) -> bool {
        self.text.chars().count() <= MAX_SHORT_CALL_CHARS
    }
}

/// Names of arguments and the Spanish words that say the same.
const SPANISH_NAMES: [(&str, &str); 5] =
    [("to", "a"), ("to", "para"), ("for", "para"), ("from", "de"), ("from", "desde")];

/// How sayso's hook for coding agents begins the action of a command, in each language.
const RUN_FORMS: [(&str, &str); 3] = [("en", "Run: "), ("es", "Ejecutar: "), ("yo", "Ṣe àṣẹ yìí: ")];

/// The shells of coding agents, and the names of the argument that is the command.
const SHELLS: [&str; 9] = [
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
const COMMAND_NAMES: [&str; 2] = ["command", "cmd"];

/// Returns the command of a call to a shell, if a sentence can say it whole. It is the only argument, no character of it is hidden, and
/// nothing in it can be mistaken for the end of the sentence.
fn read_command(tool: &str, arguments: &JsonValue<'_>) -> Option<String> {
    let mut members = arguments.members();
    let (name, value) = members.next().filter(|_| arguments.kind() == JsonKind::Object)?;
    let is_command = SHELLS.contains(&tool) && COMMAND_NAMES.iter().any(|known| name.is_text(known));
    if !is_command || members.next().is_some() || value.kind() != JsonKind::Text {
        return None;
    }
    let command = value.text()?.into_owned();
    let is_end = |c: char| matches!(c, '.' | '!' | '?' | '…');
    let ends_sentence = command.ends_with(|c: char| is_end(c) || matches!(c, ':' | ';'))
        || command.split(' ').rev().skip(1).any(|word| word.ends_with(is_end));
    (!command.is_empty() && !ends_sentence && hides_nothing(&command)).then_some(command)
}

/// Returns the names and values of arguments. Returns `None` if a value is neither a string nor a number.
fn describe_pairs(arguments: &JsonValue<'_>) -> Option<Vec<(String, String)>> {
    let describe = |(name, value): (JsonValue<'_>, JsonValue<'_>)| {
        matches!(value.kind(), JsonKind::Text | JsonKind::Number)
            .then(|| (describe_name(&name.text().unwrap_or_default()), describe_value(&value)))
    };
    (arguments.kind() == JsonKind::Object).then(|| arguments.members().map(describe).collect())?
}

fn capitalize(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

/// Describes the content of a value: the members of an object, the items of a list, or the value itself.
pub(super) fn describe_items(value: &JsonValue<'_>) -> String {
    let items: Vec<String> = match value.kind() {
        JsonKind::Object => {
            let describe = |(name, member): (JsonValue<'_>, JsonValue<'_>)| {
                format!("{} {}", describe_name(&name.text().unwrap_or_default()), describe_value(&member))
            };
            value.members().map(describe).collect()
        }
        JsonKind::Array => value.items().map(|item| describe_value(&item)).collect(),
        _ => vec![describe_value(value)],
    };
    items.join(", ")
}

/// Describes one value. An object or a list is put in parentheses.
fn describe_value(value: &JsonValue<'_>) -> String {
    match value.kind() {
        JsonKind::Object | JsonKind::Array => format!("({})", describe_items(value)),
        JsonKind::Text => describe_text(&value.text().unwrap_or_default()),
        JsonKind::Number => value.as_number().map(|number| describe_number(&number)).unwrap_or_default(),
        JsonKind::Bool | JsonKind::Null => value.source().to_owned(),
    }
}
