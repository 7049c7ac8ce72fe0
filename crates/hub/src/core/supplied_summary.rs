//! The `summary_normal` of events whose agents sent none. Every event that a person may hear must have one (§9.3.1).
//!
//! The text comes from the agent's own members where possible: the action and its consequence, the question, the reason,
//! the description. Otherwise the hub writes a sentence in the languages that it knows, and the name of the tool or of the
//! state where the event is in another language.

use std::borrow::Cow;

use aaep::event::EventType;
use aaep::json::{JsonKind, JsonValue, TapeWriter};

use super::hub_messages::{self, LocalizedMessage};
use crate::compose::write_text;

/// A summary, and its variants in other languages.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SuppliedSummary {
    text: String,
    /// The suffix of the member (`es`, `pt_br`) and the text.
    variants: Vec<(String, String)>,
}

impl SuppliedSummary {
    /// Returns the summary that an event lacks; `None` if the event has one, or needs none, or has no member to take it from.
    /// `language` is the language of the event.
    pub(super) fn for_event(kind: &EventType, event: &JsonValue<'_>, language: &str) -> Option<Self> {
        if *kind == EventType::OutputStreaming || event.member(SUMMARY).is_some() {
            return None;
        }
        match kind {
            EventType::AwaitingConfirmation => Self::joined(event, "action", "consequence"),
            EventType::AwaitingClarification => Self::from_member(event, "question"),
            EventType::HandoffRequested => Self::from_member(event, "reason"),
            EventType::ToolInvoked => {
                let tool = display_name(event, "tool");
                Self::from_member(event, "description")
                    .or_else(|| Self::from_other_length(event))
                    .or_else(|| Some(Self::localized(&hub_messages::USING_TOOL, &tool?, "", language)))
            }
            EventType::ToolCompleted => Self::from_other_length(event).or_else(|| {
                let status = event.member("status").and_then(|status| status.text()).unwrap_or_default();
                let error = text_member(event, "error_message").unwrap_or_default();
                let message = hub_messages::tool_result_message(&status);
                Some(Self::localized(message, &display_name(event, "tool")?, &error, language))
            }),
            EventType::ProgressUpdated => {
                let progress =
                    event.member("progress").filter(|progress| progress.kind() == JsonKind::Object);
                let description = || text_member(&progress?, "description").map(Cow::into_owned);
                Self::from_other_length(event)
                    .or_else(|| description().map(Self::from))
                    .or_else(|| Self::from_numbers(&progress?, language))
            }
            EventType::StateChanged => {
                Self::from_other_length(event).or_else(|| Some(Self::from(display_name(event, "to_state")?)))
            }
            _ => None,
        }
    }

    /// Writes the members into an open object.
    pub(crate) fn write(&self, out: &mut TapeWriter) {
        write_text(out, SUMMARY, &self.text);
        for (suffix, text) in &self.variants {
            out.key(&format!("{SUMMARY}_{suffix}")).text(text);
        }
    }

    /// Takes a text and its variants from a member.
    fn from_member(event: &JsonValue<'_>, name: &str) -> Option<Self> {
        let text = text_member(event, name)?.into_owned();
        let variants = variants_of(event, name).map(|(suffix, text)| (suffix, text.into_owned())).collect();
        Some(Self { text, variants })
    }

    /// Takes the summary of another length.
    fn from_other_length(event: &JsonValue<'_>) -> Option<Self> {
        ["summary_terse", "summary_detailed"].into_iter().find_map(|name| Self::from_member(event, name))
    }

    /// Joins two members, and those of their variants that both of them have.
    fn joined(event: &JsonValue<'_>, first: &str, second: &str) -> Option<Self> {
        let text = join_sentences(&text_member(event, first)?, &text_member(event, second)?);
        let variants = variants_of(event, first).filter_map(|(suffix, one)| {
            let other = text_member(event, &format!("{second}_{suffix}"))?;
            Some((suffix, join_sentences(&one, &other)))
        });
        Some(Self { text, variants: variants.collect() })
    }

    /// Describes progress by its percentage or its step.
    fn from_numbers(progress: &JsonValue<'_>, language: &str) -> Option<Self> {
        let number = |name| progress.member(name).filter(|value| value.kind() == JsonKind::Number);
        let (message, numbers) = match (number("percent"), number("step"), number("total_steps")) {
            (Some(percent), ..) => (&hub_messages::PERCENT, vec![percent.source()]),
            (None, Some(step), Some(total)) => (&hub_messages::STEP_OF, vec![step.source(), total.source()]),
            (None, Some(step), None) => (&hub_messages::STEP, vec![step.source()]),
            _ => return None,
        };
        let fill =
            |text: &str| numbers.iter().fold(text.to_owned(), |text, number| text.replacen("{}", number, 1));
        Some(Self::in_languages(message, language, numbers.join("/"), fill))
    }

    /// Writes the hub's message in the language of the event, or else `fallback`, and in its other languages as variants.
    fn in_languages(
        message: &LocalizedMessage,
        language: &str,
        fallback: String,
        fill: impl Fn(&str) -> String,
    ) -> Self {
        let primary = language.split('-').next().unwrap_or_default().to_ascii_lowercase();
        let mut summary = Self::from(fallback);
        for (tag, text) in message.texts() {
            if tag == primary {
                summary.text = fill(text);
            } else {
                summary.variants.push((tag.to_owned(), fill(text)));
            }
        }
        summary
    }

    /// Writes the hub's message about `name`, followed by the agent's own words. If the hub does not know the language of the
    /// event, the summary is the name alone, and the message is in the variants.
    fn localized(message: &LocalizedMessage, name: &str, own_words: &str, language: &str) -> Self {
        let fill = |text: &str| join_sentences(&text.replace("{}", name), own_words);
        let mut summary = Self::in_languages(message, language, join_sentences(name, own_words), fill);
        if !own_words.is_empty() {
            // The agent's words are in one language only.
            summary.variants.clear();
        }
        summary
    }
}

impl From<String> for SuppliedSummary {
    fn from(text: String) -> Self {
        Self { text, variants: Vec::new() }
    }
}

const SUMMARY: &str = "summary_normal";
/// Maximum length of a summary, in characters.
const MAX_SUMMARY_CHARS: usize = 16_384;

fn text_member<'d>(event: &JsonValue<'d>, name: &str) -> Option<Cow<'d, str>> {
    event.member(name)?.text().filter(|text| !text.trim().is_empty())
}

/// Returns the variants of a text in other languages: the suffix of the member and the text.
fn variants_of<'d>(event: &JsonValue<'d>, name: &str) -> impl Iterator<Item = (String, Cow<'d, str>)> {
    event.members().filter_map(move |(key, value)| {
        let suffix = key.text()?.strip_prefix(name)?.strip_prefix('_')?.to_owned();
        Some((suffix, value.text().filter(|text| !text.trim().is_empty())?))
    })
}

/// Returns the name of a tool or a state as words.
fn display_name(event: &JsonValue<'_>, member: &str) -> Option<String> {
    Some(text_member(event, member)?.replace('_', " "))
}

/// Joins two sentences, unless they would be too long together.
fn join_sentences(first: &str, second: &str) -> String {
    let (first, second) = (first.trim(), second.trim());
    if second.is_empty() || first.chars().count() + second.chars().count() + 2 > MAX_SUMMARY_CHARS {
        return first.to_owned();
    }
    let ends =
        |text: &str| text.ends_with(|last: char| last.is_ascii_punctuation() || "…。！？؟।".contains(last));
    format!("{first}{} {second}", if ends(first) { "" } else { "." })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed test panics")]
mod tests {
    use aaep::json::OwnedDoc;

    use super::*;

    fn supplied(kind: &EventType, event: &str, language: &str) -> Option<String> {
        let event = OwnedDoc::read(event).unwrap();
        let summary = SuppliedSummary::for_event(kind, &event.doc().root(), language)?;
        let mut out = TapeWriter::default();
        out.open_object();
        summary.write(&mut out);
        out.close_object();
        Some(out.doc().unwrap().source().to_owned())
    }

    #[test]
    fn the_summary_is_taken_from_the_agents_own_words() {
        use EventType::*;
        for (kind, event, expected) in [
            (
                AwaitingConfirmation,
                r#"{"action":"Send 5 euros","consequence":"The money is gone."}"#,
                r#"{"summary_normal":"Send 5 euros. The money is gone."}"#,
            ),
            (
                AwaitingConfirmation,
                r#"{"action":"A?","consequence":"B.","action_es":"C.","consequence_es":"D.","action_de":"E."}"#,
                r#"{"summary_normal":"A? B.","summary_normal_es":"C. D."}"#,
            ),
            (
                AwaitingClarification,
                r#"{"question":"Which?","question_es":"¿Cuál?"}"#,
                r#"{"summary_normal":"Which?","summary_normal_es":"¿Cuál?"}"#,
            ),
            (HandoffRequested, r#"{"reason":"I am stuck."}"#, r#"{"summary_normal":"I am stuck."}"#),
            (
                ToolInvoked,
                r#"{"tool":"fetch","description":"Fetching the balance."}"#,
                r#"{"summary_normal":"Fetching the balance."}"#,
            ),
            (ToolCompleted, r#"{"tool":"fetch","summary_terse":"Done."}"#, r#"{"summary_normal":"Done."}"#),
            (ProgressUpdated, r#"{"progress":{"description":"Half."}}"#, r#"{"summary_normal":"Half."}"#),
            (StateChanged, r#"{"to_state":"comparing_offers"}"#, r#"{"summary_normal":"comparing offers"}"#),
        ] {
            assert_eq!(supplied(&kind, event, "en").as_deref(), Some(expected), "{event}");
        }
    }

    #[test]
    fn a_tool_without_words_gets_a_sentence_in_the_language_of_the_event() {
        let event = r#"{"tool":"fetch_balance","status":"error","error_message":"The bank is closed."}"#;
        assert_eq!(
            supplied(&EventType::ToolCompleted, event, "en-GB").unwrap(),
            r#"{"summary_normal":"The tool fetch balance failed. The bank is closed."}"#
        );
        let event = r#"{"tool":"fetch_balance"}"#;
        assert_eq!(
            supplied(&EventType::ToolInvoked, event, "de").unwrap(),
            r#"{"summary_normal":"fetch balance","summary_normal_en":"Using the tool fetch balance.","summary_normal_es":"Usando la herramienta fetch balance.","summary_normal_yo":"Ó ń lo irinṣẹ́ fetch balance."}"#
        );
    }

    #[test]
    fn progress_without_words_is_described_by_its_numbers() {
        for (progress, language, expected) in [
            (r#"{"percent":40}"#, "en", r#"{"summary_normal":"40 percent."#),
            (r#"{"step":2,"total_steps":5}"#, "es", r#"{"summary_normal":"Paso 2 de 5."#),
            (
                r#"{"step":2,"total_steps":5}"#,
                "de",
                r#"{"summary_normal":"2/5","summary_normal_en":"Step 2 of 5."#,
            ),
            (r#"{"step":2}"#, "en", r#"{"summary_normal":"Step 2."#),
        ] {
            let event = format!(r#"{{"progress":{progress}}}"#);
            let summary = supplied(&EventType::ProgressUpdated, &event, language).unwrap();
            assert!(summary.starts_with(expected), "{progress}: {summary}");
        }
    }

    #[test]
    fn nothing_is_supplied_for_an_event_that_has_a_summary_or_no_text_to_take_it_from() {
        for (kind, event) in [
            (EventType::AwaitingClarification, r#"{"question":"Which?","summary_normal":"Choose."}"#),
            (EventType::AwaitingConfirmation, r#"{"action":"Send."}"#),
            (EventType::HandoffRequested, r#"{"reason":7}"#),
            (EventType::OutputStreaming, r#"{"chunk":"a"}"#),
            (EventType::SessionCompleted, "{}"),
        ] {
            assert_eq!(supplied(&kind, event, "en"), None, "{event}");
        }
    }

    #[test]
    fn two_sentences_are_joined_if_they_are_not_too_long_together() {
        assert_eq!(join_sentences(" Pay Ben ", " now. "), "Pay Ben. now.");
        assert_eq!(join_sentences("Pay Ben!", "Now."), "Pay Ben! Now.");
        assert_eq!(join_sentences("Pay Ben", " "), "Pay Ben");
        let first = "x".repeat(10_000);
        for (length, is_joined) in [(MAX_SUMMARY_CHARS - 10_002, true), (MAX_SUMMARY_CHARS - 10_001, false)] {
            let joined = join_sentences(&first, &"y".repeat(length));
            assert_eq!(joined.len(), if is_joined { MAX_SUMMARY_CHARS } else { first.len() });
        }
    }
}
