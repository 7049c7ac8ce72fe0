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
    /// characters is appended.
    pub max_text_chars: usize,
}

impl Default for ArgumentLimits {
    fn default() -> Self {
        Self { max_bytes: 32 * 1024, max_text_chars: 1_000 }
    }
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
                out.key(&shorten(&redact("", &key), limits));
                copy(&member, &key, limits, out);
            }
        }),
        JsonKind::Array => out.array(|out| {
            for item in value.items() {
                copy(&item, name, limits, out);
            }
        }),
        JsonKind::Text => out.text(&shorten(&redact(name, &value.text().unwrap_or_default()), limits)),
        JsonKind::Number if redact(name, value.source()) != value.source() => out.text(REDACTED),
        JsonKind::Number | JsonKind::Bool | JsonKind::Null => out.copy(value),
    }
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

fn shorten(text: &str, limits: &ArgumentLimits) -> String {
    let count = text.chars().count();
    if count <= limits.max_text_chars {
        return text.to_owned();
    }
    let start: String = text.chars().take(limits.max_text_chars).collect();
    format!("{start}… ({} more characters)", count - limits.max_text_chars)
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
    fn arguments_that_are_too_large_are_refused() {
        let limits = ArgumentLimits { max_bytes: 10, ..ArgumentLimits::default() };
        assert_eq!(copy_json("[1,2,3,45]", limits).unwrap(), "[1,2,3,45]");
        for arguments in ["[1,2,3,456]", "[[[[[[1]]]],[2]]]"] {
            assert_eq!(copy_json(arguments, limits), Err(MalformedRequest::ArgumentsTooLong { max: 10 }));
        }
    }
}
