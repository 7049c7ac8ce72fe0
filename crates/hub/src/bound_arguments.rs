//! The arguments of the call that a question asks about, in the form that listeners receive.

use aaep::json::{JsonKind, JsonValue, OwnedDoc, TapeWriter};
use aaep::secret::{REDACTED, find_secrets};

use crate::reply::MalformedRequest;

/// Limits for the arguments that are sent to listeners with a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArgumentLimits {
    /// Maximum size of all arguments together, in bytes, after long texts were shortened. A question with larger
    /// arguments is refused, because a person could not listen to all of them.
    pub max_bytes: usize,
    /// Maximum length of one text or member name, in characters. A longer one is shortened, and the number of missing
    /// characters is appended. It does not apply to dangerous questions: a person must be able to hear all that such an
    /// answer permits.
    pub max_text_chars: usize,
}

impl Default for ArgumentLimits {
    fn default() -> Self {
        Self { max_bytes: 32 * 1024, max_text_chars: 1_000 }
    }
}

impl ArgumentLimits {
    /// Returns the limits for the arguments of a question, given whether the question is dangerous.
    pub(crate) fn for_question(&self, is_dangerous: bool) -> Self {
        Self { max_text_chars: if is_dangerous { usize::MAX } else { self.max_text_chars }, ..*self }
    }
}

/// Whether a question is about an action of high risk or one that cannot be undone.
pub(crate) fn is_dangerous_question(question: &JsonValue<'_>) -> bool {
    question.member("risk_level").is_some_and(|risk| risk.is_text("high"))
        || question.member("irreversible").is_some_and(|irreversible| irreversible.source() == "true")
}

/// Copies the arguments of a call for listeners: without secrets, and with long texts shortened.
pub(crate) fn copy_for_listeners(
    arguments: &JsonValue<'_>,
    limits: &ArgumentLimits,
) -> Result<OwnedDoc, MalformedRequest> {
    let mut out = TapeWriter::default();
    copy(arguments, "", limits, &mut out);
    if out.source().len() > limits.max_bytes {
        return Err(MalformedRequest::ArgumentsTooLong { max: limits.max_bytes });
    }
    let doc = out.doc().map_err(MalformedRequest::InvalidJson)?;
    Ok(OwnedDoc::from_doc(&doc))
}

/// Copies the value of the member `name`, or an item of its array.
fn copy(value: &JsonValue<'_>, name: &str, limits: &ArgumentLimits, out: &mut TapeWriter) {
    if out.source().len() > limits.max_bytes {
        // The copy is already too large and will be refused. The rest only has to be valid JSON.
        return out.raw("null");
    }
    match value.kind() {
        JsonKind::Object => out.object(|out| {
            for (key, member) in value.members() {
                let key = key.text().unwrap_or_default();
                out.key(&shorten(&redact("", &key), limits.max_text_chars));
                copy(&member, &key, limits, out);
            }
        }),
        JsonKind::Array => out.array(|out| {
            for item in value.items() {
                copy(&item, name, limits, out);
            }
        }),
        JsonKind::Text => {
            out.text(&shorten(&redact(name, &value.text().unwrap_or_default()), limits.max_text_chars));
        }
        JsonKind::Number if redact(name, value.source()) != value.source() => out.text(REDACTED),
        JsonKind::Number | JsonKind::Bool | JsonKind::Null => out.copy(value),
    }
}

/// Maximum number of differences that are named.
const MAX_DIFFERENCES: usize = 3;
/// Maximum number of characters of a value that a difference repeats.
const MAX_VALUE_CHARS: usize = 80;

/// Says how the arguments of a call differ from those that a person accepted. Both are copies for listeners, so neither
/// contains secrets.
pub(crate) fn describe_difference(accepted: &JsonValue<'_>, actual: &JsonValue<'_>) -> String {
    let mut differences = Vec::new();
    compare(Some(accepted), Some(actual), "", &mut differences);
    if differences.is_empty() {
        let mut hidden = Vec::new();
        collect_hidden(accepted, "", &mut hidden);
        hidden.truncate(MAX_DIFFERENCES);
        return if hidden.is_empty() {
            "the consent was for other arguments".to_owned()
        } else {
            format!(
                "the consent was for another value of {}, which is not repeated here",
                hidden.join(" or ")
            )
        };
    }
    let more = differences.len().saturating_sub(MAX_DIFFERENCES);
    differences.truncate(MAX_DIFFERENCES);
    if more > 0 {
        differences.push(format!("{more} more {}", if more == 1 { "difference" } else { "differences" }));
    }
    differences.join("; ")
}

/// Adds a sentence for each value that differs.
fn compare(
    accepted: Option<&JsonValue<'_>>,
    actual: Option<&JsonValue<'_>>,
    path: &str,
    differences: &mut Vec<String>,
) {
    let name = if path.is_empty() { "arguments" } else { path };
    let (accepted, actual) = match (accepted, actual) {
        (Some(accepted), Some(actual)) => (accepted, actual),
        (Some(accepted), None) => {
            let value = display(accepted);
            return differences.push(format!("the consent was for {name} {value}; this call has no {name}"));
        }
        (None, Some(actual)) => {
            let value = display(actual);
            return differences.push(format!("the consent had no {name}; this call has {value}"));
        }
        (None, None) => return,
    };
    match (accepted.kind(), actual.kind()) {
        (JsonKind::Object, JsonKind::Object) => {
            for (key, value) in accepted.members() {
                let key = key.text().unwrap_or_default();
                compare(Some(&value), actual.member(&key).as_ref(), &member_path(path, &key), differences);
            }
            for (key, value) in actual.members() {
                let key = key.text().unwrap_or_default();
                if accepted.member(&key).is_none() {
                    compare(None, Some(&value), &member_path(path, &key), differences);
                }
            }
        }
        (JsonKind::Array, JsonKind::Array) => {
            let (mut accepted, mut actual) = (accepted.items(), actual.items());
            for index in 0_usize.. {
                let (accepted, actual) = (accepted.next(), actual.next());
                if accepted.is_none() && actual.is_none() {
                    break;
                }
                compare(accepted.as_ref(), actual.as_ref(), &format!("{path}[{index}]"), differences);
            }
        }
        _ if is_same_value(accepted, actual) => {}
        _ => differences.push(describe_values(name, accepted, actual)),
    }
}

/// Says how two values differ. Long texts can begin in the same way; then the position at which they differ is named.
fn describe_values(name: &str, accepted: &JsonValue<'_>, actual: &JsonValue<'_>) -> String {
    let (mut was, mut is) = (display(accepted), display(actual));
    if let (Some(accepted), Some(actual)) = (accepted.text(), actual.text()) {
        let same = accepted.chars().zip(actual.chars()).take_while(|(one, other)| one == other).count();
        if same >= MAX_VALUE_CHARS {
            return format!(
                "the consent was for another {name}, which differs after the first {same} characters"
            );
        }
    } else if [accepted, actual].iter().any(|value| value.kind() == JsonKind::Text) {
        // A text and a number can look the same, so the text is quoted.
        (was, is) = (shorten_value(accepted.source()), shorten_value(actual.source()));
    }
    format!("the consent was for {name} {was}; this call has {is}")
}

fn is_same_value(one: &JsonValue<'_>, other: &JsonValue<'_>) -> bool {
    one.kind() == other.kind()
        && match one.kind() {
            JsonKind::Text => one.text() == other.text(),
            JsonKind::Number => {
                one.as_number().map(|number| number.as_f64())
                    == other.as_number().map(|number| number.as_f64())
            }
            _ => one.source() == other.source(),
        }
}

/// Collects the members whose values are not shown in full.
fn collect_hidden(value: &JsonValue<'_>, path: &str, hidden: &mut Vec<String>) {
    match value.kind() {
        JsonKind::Object => {
            for (key, member) in value.members() {
                collect_hidden(&member, &member_path(path, &key.text().unwrap_or_default()), hidden);
            }
        }
        JsonKind::Array => {
            for (index, item) in value.items().enumerate() {
                collect_hidden(&item, &format!("{path}[{index}]"), hidden);
            }
        }
        JsonKind::Text => {
            let text = value.text().unwrap_or_default();
            if text.contains(REDACTED) || text.ends_with(SHORTENED_END) {
                hidden.push(if path.is_empty() { "arguments".to_owned() } else { path.to_owned() });
            }
        }
        _ => {}
    }
}

fn member_path(path: &str, key: &str) -> String {
    let key = shorten_value(key);
    if path.is_empty() { key } else { format!("{path}.{key}") }
}

fn display(value: &JsonValue<'_>) -> String {
    match value.text() {
        Some(text) => shorten_value(&text),
        None => shorten_value(value.source()),
    }
}

fn shorten_value(text: &str) -> String {
    let visible: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    shorten(&visible, MAX_VALUE_CHARS)
}

/// Replaces the secrets in the value of the member `name`. The name helps to recognize them, as in `"password": "…"`.
fn redact(name: &str, text: &str) -> String {
    let prefix = format!("\"{name}\": \"");
    let context = format!("{prefix}{text}\"");
    let end = prefix.len() + text.len();
    let (mut out, mut from) = (String::new(), prefix.len());
    for secret in find_secrets(&context) {
        let (start, stop) = (secret.range.start.max(prefix.len()), secret.range.end.min(end));
        if start < stop {
            out.push_str(context.get(from..start).unwrap_or_default());
            out.push_str(REDACTED);
            from = stop;
        }
    }
    out.push_str(context.get(from..end).unwrap_or_default());
    out
}

/// How a shortened text ends.
const SHORTENED_END: &str = " more characters)";

fn shorten(text: &str, max_chars: usize) -> String {
    let count = text.chars().count();
    if count <= max_chars {
        return text.to_owned();
    }
    let start: String = text.chars().take(max_chars).collect();
    format!("{start}… ({}{SHORTENED_END}", count - max_chars)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed test panics")]
mod tests {
    use super::*;

    fn copy_json(json: &str, limits: ArgumentLimits) -> Result<String, MalformedRequest> {
        let doc = OwnedDoc::read(json).unwrap();
        copy_for_listeners(&doc.doc().root(), &limits).map(|copy| copy.source().to_owned())
    }

    #[test]
    fn arguments_are_copied_without_secrets() {
        for (arguments, expected) in [
            (r#"{"to":"Ben","amount":5000000,"now":true}"#, r#"{"to":"Ben","amount":5000000,"now":true}"#),
            (r#"{"login":{"password":"a b c"}}"#, r#"{"login":{"password":"[redacted]"}}"#),
            (r#"{"card":4111111111111111}"#, r#"{"card":"[redacted]"}"#),
            (r#"["4111 1111 1111 1111 now"]"#, r#"["[redacted] now"]"#),
            (r#""text""#, r#""text""#),
        ] {
            assert_eq!(copy_json(arguments, ArgumentLimits::default()).unwrap(), expected);
        }
    }

    #[test]
    fn a_long_text_is_shortened_and_the_number_of_missing_characters_is_appended() {
        let limits = ArgumentLimits { max_text_chars: 3, ..ArgumentLimits::default() };
        assert_eq!(copy_json(r#"["abc","äbcde"]"#, limits).unwrap(), r#"["abc","äbc… (2 more characters)"]"#);
    }

    #[test]
    fn a_dangerous_question_has_every_text_in_full() {
        let limits = ArgumentLimits { max_text_chars: 3, ..ArgumentLimits::default() };
        let arguments = r#"{"äbcde":"äbcde"}"#;
        assert_eq!(copy_json(arguments, limits.for_question(true)).unwrap(), arguments);
        assert_ne!(copy_json(arguments, limits.for_question(false)).unwrap(), arguments);
        for (question, expected) in [
            (r#"{"risk_level":"high"}"#, true),
            (r#"{"risk_level":"low","irreversible":true}"#, true),
            (r#"{"risk_level":"medium","irreversible":false}"#, false),
            ("{}", false),
        ] {
            let question = OwnedDoc::read(question).unwrap();
            assert_eq!(is_dangerous_question(&question.doc().root()), expected, "{}", question.source());
        }
    }

    #[test]
    fn long_texts_that_begin_alike_differ_at_a_position() {
        let arguments =
            |end: &str| OwnedDoc::read(&format!(r#"{{"text":"{}{end}"}}"#, "x".repeat(500))).unwrap();
        let (accepted, actual) = (arguments("a"), arguments("b"));
        assert_eq!(
            describe_difference(&accepted.doc().root(), &actual.doc().root()),
            "the consent was for another text, which differs after the first 500 characters"
        );
    }

    #[test]
    fn differences_are_named_without_secrets() {
        for (accepted, actual, expected) in [
            (
                r#"{"amount":"5.00"}"#,
                r#"{"amount":"50.00"}"#,
                "the consent was for amount 5.00; this call has 50.00",
            ),
            (
                r#"{"to":"Ben","n":5}"#,
                r#"{"n":5.0,"to":"Eve"}"#,
                "the consent was for to Ben; this call has Eve",
            ),
            (r#"{"n":5}"#, r#"{"n":"5"}"#, r#"the consent was for n 5; this call has "5""#),
            (r#"{"a":1}"#, "{}", "the consent was for a 1; this call has no a"),
            ("{}", r#"{"a":[1]}"#, "the consent had no a; this call has [1]"),
            (r#"{"a":[{"b":1},2]}"#, r#"{"a":[{"b":3},2]}"#, "the consent was for a[0].b 1; this call has 3"),
            ("[1]", "[1,2]", "the consent had no [1]; this call has 2"),
            ("1", "2", "the consent was for arguments 1; this call has 2"),
            (
                r#"{"a":1,"b":1,"c":1,"d":1,"e":1}"#,
                "{}",
                "the consent was for a 1; this call has no a; the consent was for b 1; this call has no b; \
                 the consent was for c 1; this call has no c; 2 more differences",
            ),
            (
                r#"{"to":"Ben","password":"hunter22"}"#,
                r#"{"to":"Ben","password":"hunter23"}"#,
                "the consent was for another value of password, which is not repeated here",
            ),
        ] {
            let copy =
                |json: &str| OwnedDoc::read(&copy_json(json, ArgumentLimits::default()).unwrap()).unwrap();
            let (accepted, actual) = (copy(accepted), copy(actual));
            assert_eq!(describe_difference(&accepted.doc().root(), &actual.doc().root()), expected);
        }
    }

    #[test]
    fn arguments_that_are_too_large_are_refused() {
        let limits = ArgumentLimits { max_bytes: 10, ..ArgumentLimits::default() };
        assert_eq!(copy_json("[1,2,3,45]", limits).unwrap(), "[1,2,3,45]");
        for arguments in ["[1,2,3,456]", "[[[[[[1]]]],[2]]]"] {
            assert_eq!(copy_json(arguments, limits), Err(MalformedRequest::ArgumentsTooLong { max: 10 }));
        }
    }
}
