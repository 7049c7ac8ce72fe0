//! The call that a person was asked about, to compare it with what the agent says about it later.
//!
//! Agents describe one call several times, with more or fewer members of its input. So the whole input need not be the same, but every
//! member that the question named must keep its value, and no member may be added that was not known when the person was asked.

use std::collections::BTreeMap;

use seal::json::{JsonKind, Tape};
use seal::{Digest, canonicalize};

/// Maximum size of the input that a question repeats, in bytes. The hub refuses questions with larger arguments. The question
/// about a larger input names its SHA-256 instead, so the answer is still bound to it.
pub(super) const MAX_ARGUMENT_BYTES: usize = 24 * 1024;

/// The call that a person was asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BoundCall {
    title: String,
    input: Option<BoundInput>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum BoundInput {
    /// The members of an object, in canonical form.
    Members(BTreeMap<String, String>),
    /// Any other value, or one without a canonical form, as text.
    Whole(String),
}

impl BoundInput {
    fn parse(json: &str) -> Self {
        let mut tape = Tape::default();
        let Ok(doc) = tape.read(json) else { return Self::Whole(json.to_owned()) };
        let root = doc.root();
        if root.kind() != JsonKind::Object {
            return Self::Whole(canonicalize(&root).unwrap_or_else(|_| json.to_owned()));
        }
        let members: Option<BTreeMap<_, _>> = root
            .members()
            .map(|(name, value)| Some((name.text()?.into_owned(), canonicalize(&value).ok()?)))
            .collect();
        members.map_or_else(|| Self::Whole(json.to_owned()), Self::Members)
    }
}

impl BoundCall {
    /// Creates the call from its title, the input in the request, and the input that the agent reported before, if any. Earlier
    /// members count only if nothing in the request contradicts them.
    pub(super) fn new(title: &str, requested_input: Option<&str>, earlier_input: Option<&str>) -> Self {
        let mut input = requested_input.or(earlier_input).map(BoundInput::parse);
        if let (Some(BoundInput::Members(members)), Some(BoundInput::Members(earlier))) =
            (&mut input, earlier_input.map(BoundInput::parse))
        {
            let is_consistent =
                earlier.iter().all(|(name, value)| members.get(name).is_none_or(|it| it == value));
            if is_consistent {
                members.extend(earlier);
            }
        }
        Self { title: title.to_owned(), input }
    }

    /// Returns the arguments that the question names, as JSON. A call without an input is bound to its title.
    pub(super) fn arguments(&self) -> String {
        let input = match &self.input {
            None => return title_object(&self.title, None),
            Some(BoundInput::Members(members)) => seal::json::write_object(|out| {
                for (name, value) in members {
                    out.key(name).raw(value);
                }
            }),
            Some(BoundInput::Whole(text)) => seal::json::write_object(|out| out.key("input").text(text)),
        };
        if input.len() <= MAX_ARGUMENT_BYTES { input } else { title_object(&self.title, Some(&input)) }
    }

    /// Returns the value of a member of the input, if it is a string or a list of strings.
    pub(super) fn text_argument(&self, name: &str) -> Option<String> {
        let Some(BoundInput::Members(members)) = &self.input else { return None };
        let mut tape = Tape::default();
        let doc = tape.read(members.get(name)?).ok()?;
        let root = doc.root();
        if let Some(text) = root.text() {
            return Some(text.into_owned());
        }
        let words: Option<Vec<_>> =
            root.items().map(|word| word.text().map(std::borrow::Cow::into_owned)).collect();
        words.filter(|words| !words.is_empty()).map(|words| words.join(" "))
    }

    /// Compares a later update of the call with it. Returns what differs.
    pub(super) fn find_difference(&self, title: Option<&str>, input: Option<&str>) -> Option<String> {
        match (&self.input, input.map(BoundInput::parse)) {
            // Without an input, the title is all that the person heard.
            (None, None) => title.filter(|title| *title != self.title).map(|_| "its title".to_owned()),
            (None, Some(BoundInput::Members(new))) if new.is_empty() => None,
            (None, Some(_)) => Some("its input".to_owned()),
            (Some(_), None) => None,
            (Some(BoundInput::Members(asked)), Some(BoundInput::Members(new))) => {
                let differs = |(name, value): &(&String, &String)| asked.get(*name) != Some(*value);
                new.iter().find(differs).map(|(name, _)| name.clone())
            }
            (Some(asked), Some(new)) => (*asked != new).then(|| "its input".to_owned()),
        }
    }
}

fn title_object(title: &str, input: Option<&str>) -> String {
    seal::json::write_object(|out| {
        out.key("title").text(title);
        if let Some(input) = input {
            out.key("input_sha256").text(&Digest::of(input.as_bytes()).to_string());
            out.key("input_bytes").text(&input.len().to_string());
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_input_in_another_form_is_the_same_call() {
        let call = BoundCall::new("t", Some(r#"{"command":"ls","n":1}"#), None);
        assert_eq!(call.find_difference(None, Some(r#"{ "n":1.0, "command":"\u006cs" }"#)), None);
        assert_eq!(call.find_difference(Some("another title"), None), None);
        assert_eq!(call.find_difference(None, Some("{}")), None);
    }

    #[test]
    fn a_changed_or_added_member_is_named() {
        let call = BoundCall::new("t", Some(r#"{"command":"ls"}"#), None);
        assert_eq!(call.find_difference(None, Some(r#"{"command":"rm"}"#)).as_deref(), Some("command"));
        assert_eq!(call.find_difference(None, Some(r#"{"command":"ls","cwd":"/"}"#)).as_deref(), Some("cwd"));
        assert_eq!(call.find_difference(None, Some("7")).as_deref(), Some("its input"));
    }

    #[test]
    fn members_that_were_known_before_the_question_may_be_repeated() {
        let call = BoundCall::new("t", Some(r#"{"command":"ls"}"#), Some(r#"{"command":"ls","cwd":"/"}"#));
        assert_eq!(call.find_difference(None, Some(r#"{"command":"ls","cwd":"/"}"#)), None);
        assert_eq!(call.arguments(), r#"{"command":"ls","cwd":"/"}"#);
        // An earlier input that contradicts the request is not known, so a return to it is a difference.
        let call = BoundCall::new("t", Some(r#"{"command":"ls"}"#), Some(r#"{"command":"rm","force":true}"#));
        assert_eq!(call.arguments(), r#"{"command":"ls"}"#);
        assert_eq!(
            call.find_difference(None, Some(r#"{"command":"ls","force":true}"#)).as_deref(),
            Some("force")
        );
    }

    #[test]
    fn a_call_without_input_is_bound_to_its_title() {
        let call = BoundCall::new("ls", None, None);
        assert_eq!(call.arguments(), r#"{"title":"ls"}"#);
        assert_eq!(call.find_difference(Some("ls"), None), None);
        assert_eq!(call.find_difference(Some("rm"), None).as_deref(), Some("its title"));
        assert_eq!(call.find_difference(None, Some(r#"{"command":"rm"}"#)).as_deref(), Some("its input"));
    }

    #[test]
    fn a_large_input_is_bound_by_its_digest() {
        let input = format!(r#"{{"text":"{}"}}"#, "a".repeat(MAX_ARGUMENT_BYTES));
        let arguments = BoundCall::new("Write a file", Some(&input), None).arguments();
        assert!(arguments.starts_with(r#"{"title":"Write a file","input_sha256":"sha256:"#), "{arguments}");
        let other = BoundCall::new("Write a file", Some(&input.replace("\"aa", "\"ab")), None).arguments();
        assert_ne!(arguments, other);
    }

    #[test]
    fn a_command_is_a_string_or_a_list_of_words() {
        let read = |input| BoundCall::new("t", Some(input), None).text_argument("command");
        assert_eq!(read(r#"{"command":"ls -l"}"#).as_deref(), Some("ls -l"));
        assert_eq!(read(r#"{"command":["ls","-l"]}"#).as_deref(), Some("ls -l"));
        assert_eq!(read(r#"{"command":7}"#), None);
        assert_eq!(read(r#"{"command":[]}"#), None);
    }
}
