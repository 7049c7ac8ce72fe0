//! Offers a server's elicitations to listeners, as clarifications.
//!
//! The host gets the request as well; the first answer counts. If nobody answers here, the host's answer remains.

use sayso::{ClarificationAnswer, ClarificationRequest, Error, Session};
use seal::json::{JsonKind, JsonValue, JsonWriter, Tape, write_object};

use super::describe::escape_and_shorten;
use super::message::RequestId;
use crate::phrases::{GateText, Language, texts};

/// Maximum number of fields of a form. A longer form is left to the host.
const MAX_FIELDS: usize = 16;
/// Maximum number of choices of a field.
const MAX_CHOICES: usize = 32;
const MAX_TEXT_CHARS: usize = 2_000;

/// A field of a form.
#[derive(Debug, PartialEq)]
struct Field {
    name: String,
    question: String,
    kind: FieldKind,
    is_required: bool,
}

#[derive(Debug, PartialEq)]
enum FieldKind {
    Text,
    Number {
        is_integer: bool,
    },
    YesNo,
    /// The values and their labels.
    Choice(Vec<(String, String)>),
}

/// Whether a request can be asked in words.
pub(crate) fn can_be_asked(request: &str) -> bool {
    Form::read(request).is_some()
}

/// Asks the listeners. Returns the result for the server, or `None` if nobody answered or the form cannot be asked in words.
pub(crate) async fn ask(session: &Session, request: &str) -> Result<Option<String>, Error> {
    let Some(form) = Form::read(request) else { return Ok(None) };
    let opening = ClarificationRequest::new(form.opening()).accept_yes_no();
    match session.clarify(opening).await? {
        ClarificationAnswer::YesNo(true) => {}
        ClarificationAnswer::YesNo(false) => return Ok(Some(result("decline", None))),
        _ => return Ok(None),
    }
    if form.url.is_some() {
        return Ok(Some(result("accept", None)));
    }
    let mut content = JsonWriter::with_capacity(256);
    content.open_object();
    for field in &form.fields {
        let answer = session.clarify(field.to_request()).await?;
        match field.write(&answer, &mut content) {
            None => return Ok(None),
            Some(false) if field.is_required => return Ok(None),
            Some(_) => {}
        }
    }
    content.close_object();
    Ok(Some(result("accept", Some(&content.finish()))))
}

fn result(action: &str, content: Option<&str>) -> String {
    write_object(|out| {
        out.plain_member("action", action);
        if let Some(content) = content {
            out.key("content").raw(content);
        }
    })
}

/// Writes the response to an elicitation request with this id.
pub(crate) fn response(id: &RequestId, result: &str) -> String {
    write_object(|out| {
        out.plain_member("jsonrpc", "2.0");
        id.write(out.key("id"));
        out.key("result").raw(result);
    })
}

#[derive(Debug, PartialEq)]
struct Form {
    message: String,
    url: Option<String>,
    fields: Vec<Field>,
}

impl Form {
    /// Reads the request. Returns `None` if the form has fields that cannot be asked in words.
    fn read(request: &str) -> Option<Self> {
        let mut tape = Tape::default();
        let doc = tape.read(request).ok()?;
        let params = doc.root().member("params")?;
        let message =
            escape_and_shorten(&params.member("message")?.text()?, MAX_TEXT_CHARS, Language::English);
        if params.member("mode").is_some_and(|mode| mode.is_text("url")) {
            let url = escape_and_shorten(&params.member("url")?.text()?, MAX_TEXT_CHARS, Language::English);
            return Some(Self { message, url: Some(url), fields: Vec::new() });
        }
        let schema = params.member("requestedSchema")?;
        let required: Vec<_> = schema.member("required").into_iter().flat_map(|list| list.items()).collect();
        let is_required = |name: &str| required.iter().any(|item| item.is_text(name));
        let mut fields = Vec::new();
        for (name, field) in schema.member("properties")?.members() {
            let name = name.text()?.into_owned();
            let (question, kind) = (describe_field(&name, &field), read_kind(&field)?);
            fields.push(Field { is_required: is_required(&name), name, question, kind });
        }
        (fields.len() <= MAX_FIELDS).then_some(Self { message, url: None, fields })
    }

    fn opening(&self) -> GateText {
        match (&self.url, self.fields.len()) {
            (Some(url), _) => texts::OPEN_PAGE.with(&[url, &self.message]),
            (None, 0) => texts::DO_YOU_AGREE.with(&[&self.message]),
            (None, 1) => texts::ANSWER_HERE.with(&[&self.message]),
            (None, count) => texts::ANSWER_FIELDS_HERE.with(&[&self.message, &count.to_string()]),
        }
    }
}

impl Field {
    fn to_request(&self) -> ClarificationRequest {
        let request = ClarificationRequest::new(self.question.as_str());
        match &self.kind {
            FieldKind::Text => request,
            FieldKind::Number { .. } => request.accept_number(),
            FieldKind::YesNo => request.accept_yes_no(),
            FieldKind::Choice(choices) => {
                choices.iter().fold(request, |request, (value, label)| request.choice(value, label.as_str()))
            }
        }
    }

    /// Writes the answer. Returns whether there is one, or `None` if it does not fit the field.
    fn write(&self, answer: &ClarificationAnswer, out: &mut JsonWriter) -> Option<bool> {
        match (answer, &self.kind) {
            (ClarificationAnswer::Text(text), FieldKind::Text) => out.key(&self.name).text(text),
            (ClarificationAnswer::Text(value), FieldKind::Choice(choices)) => {
                choices.iter().find(|(known, _)| known == value)?;
                out.key(&self.name).text(value);
            }
            (ClarificationAnswer::YesNo(is_yes), FieldKind::YesNo) => out.key(&self.name).boolean(*is_yes),
            (ClarificationAnswer::Number(number), FieldKind::Number { is_integer }) => {
                if *is_integer && number.fract() != 0.0 {
                    return None;
                }
                out.key(&self.name).number(*number);
            }
            (ClarificationAnswer::Unanswered(_), _) => return Some(false),
            _ => return None,
        }
        Some(true)
    }
}

fn describe_field(name: &str, field: &JsonValue<'_>) -> String {
    let text = |key| field.member(key).and_then(|text| text.text());
    let title = text("title").unwrap_or_else(|| name.to_owned().into());
    let title = escape_and_shorten(&title, MAX_TEXT_CHARS, Language::English);
    match text("description") {
        Some(description) => {
            format!("{title}: {}", escape_and_shorten(&description, MAX_TEXT_CHARS, Language::English))
        }
        None => format!("{title}?"),
    }
}

fn read_kind(field: &JsonValue<'_>) -> Option<FieldKind> {
    let kind = field.member("type")?;
    let texts = |key: &str| -> Option<Vec<String>> {
        let list = field.member(key).filter(|list| list.kind() == JsonKind::Array)?;
        list.items().map(|item| Some(item.text()?.into_owned())).collect()
    };
    match &*kind.text()? {
        "boolean" => Some(FieldKind::YesNo),
        "number" => Some(FieldKind::Number { is_integer: false }),
        "integer" => Some(FieldKind::Number { is_integer: true }),
        "string" => {
            let choices: Option<Vec<(String, String)>> = match texts("enum") {
                Some(values) => {
                    let labels = texts("enumNames").filter(|labels| labels.len() == values.len());
                    let labels = labels.unwrap_or_else(|| values.clone());
                    Some(values.into_iter().zip(labels).collect())
                }
                None => field.member("oneOf").map(|list| {
                    let choice = |item: JsonValue<'_>| {
                        let value = item.member("const")?.text()?.into_owned();
                        let label = item.member("title").and_then(|title| title.text());
                        Some((value.clone(), label.map_or(value, std::borrow::Cow::into_owned)))
                    };
                    list.items().filter_map(choice).collect()
                }),
            };
            match choices {
                None => Some(FieldKind::Text),
                Some(choices) if choices.is_empty() || choices.len() > MAX_CHOICES => None,
                Some(choices) => Some(FieldKind::Choice(
                    choices
                        .into_iter()
                        .map(|(value, label)| (value, escape_and_shorten(&label, 200, Language::English)))
                        .collect(),
                )),
            }
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_asked_field_by_field() {
        let form = Form::read(
            r#"{"method":"elicitation/create","params":{"message":"Who are you?","requestedSchema":{"type":"object","properties":{"name":{"type":"string","description":"Your name"},"age":{"type":"integer"},"colour":{"type":"string","enum":["r","g"],"enumNames":["Red","Green"]}},"required":["name"]}}}"#,
        )
        .unwrap();
        assert_eq!(
            form.opening().english(),
            "The server asks: Who are you? It has 3 fields. Do you want to answer here?"
        );
        assert_eq!(form.fields[0].question, "name: Your name");
        assert!(form.fields[0].is_required && !form.fields[1].is_required);
        let colours = vec![("r".to_owned(), "Red".to_owned()), ("g".to_owned(), "Green".to_owned())];
        assert_eq!(form.fields[2].kind, FieldKind::Choice(colours));
        let mut out = JsonWriter::with_capacity(0);
        out.open_object();
        assert_eq!(form.fields[0].write(&ClarificationAnswer::Text("Ana".to_owned()), &mut out), Some(true));
        assert_eq!(form.fields[1].write(&ClarificationAnswer::Number(2.5), &mut out), None);
        assert_eq!(form.fields[1].write(&ClarificationAnswer::Number(3.0), &mut out), Some(true));
        assert_eq!(form.fields[2].write(&ClarificationAnswer::Text("b".to_owned()), &mut out), None);
        out.close_object();
        assert_eq!(out.finish(), r#"{"name":"Ana","age":3}"#);
    }

    #[test]
    fn a_form_with_unsupported_fields_is_left_to_the_host() {
        let form = |field: &str| {
            Form::read(&format!(
                r#"{{"params":{{"message":"?","requestedSchema":{{"properties":{{"a":{field}}}}}}}}}"#
            ))
        };
        assert!(form(r#"{"type":"array"}"#).is_none());
        assert!(form(r#"{"type":"object"}"#).is_none());
        assert!(form(r#"{"type":"string"}"#).is_some());
    }
}
