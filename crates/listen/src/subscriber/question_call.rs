//! The call that a question is about, as the hub reports it, in a form that a person can hear.

use aaep::event::Event;
use aaep::json::{JsonKind, JsonValue};

use super::call_text::{describe_name, describe_number, describe_text};
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
}

impl QuestionCall {
    /// Reads the call from the members that the hub added to a question.
    pub(super) fn read(phrases: &Phrases, event: &Event) -> Option<Self> {
        read_hub_extension(event, |sayso| {
            let mut text = describe_name(&sayso.member("tool")?.text()?);
            if let Some(arguments) = sayso.member("arguments") {
                let arguments = describe_items(&arguments);
                text.push_str(", ");
                text.push_str(if arguments.is_empty() { phrases.without_arguments } else { &arguments });
            }
            Some(Self { text, is_bound: sayso.member("action_digest").is_some() })
        })
    }

    /// Whether the call is short enough to be part of the question itself.
    pub(super) fn is_short(&self) -> bool {
        self.text.chars().count() <= MAX_SHORT_CALL_CHARS
    }
}

/// Describes the content of a value: the members of an object, the items of a list, or the value itself.
fn describe_items(value: &JsonValue<'_>) -> String {
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
