//! JSON Schemas (draft 2020-12) of every event and message, made from the same tables as the types and the checks.

use crate::event::{CORE_CONTEXT, ENVELOPE, EventType};
use crate::json::{self, Writer};
use crate::message::MessageType;
use crate::record::{Field, Shape};

/// One schema: its name, as `sayso schema NAME` takes it, and its text.
#[derive(Clone, Debug)]
pub struct Schema {
    /// Like `agent.tool.invoked`, `subscription.request` or `producer.manifest`.
    pub name: String,
    /// The schema itself, indented.
    pub text: String,
}

/// All schemas: the twelve events, then the messages.
///
/// ```
/// let names: Vec<_> = aaep::schema::all().into_iter().map(|schema| schema.name).collect();
/// assert!(names.contains(&"agent.tool.invoked".to_owned()));
/// ```
pub fn all() -> Vec<Schema> {
    let events = EventType::CORE.iter().map(event);
    let messages = MessageType::ALL.iter().map(|kind| message(*kind));
    events.chain(messages).collect()
}

fn event(core: &EventType) -> Schema {
    let (head, tail) = ENVELOPE.split_at(ENVELOPE.len() - 1);
    let fields: Vec<_> = head.iter().chain(core.fields()).chain(tail).collect();
    let critical = core.is_critical();
    let variants: Vec<_> = core.fields().iter().filter(|field| field.spoken).collect();
    let name = core.as_str().trim_start_matches("aaep:");
    write(name, |writer| {
        object(writer, &fields, |writer, field| match field.name {
            "type" => constant(writer, core.as_str()),
            "urgency" if critical => constant(writer, "critical"),
            _ => shape(writer, &field.shape),
        });
        let mut required: Vec<_> =
            fields.iter().filter(|it| it.missing.is_some()).map(|it| it.name).collect();
        if critical {
            required.push("urgency");
        }
        names(writer, "required", &required);
        if !variants.is_empty() {
            // A text in another language stands beside it, like summary_normal_yo (§11.5.1).
            writer.key("patternProperties").open_object();
            for field in &variants {
                writer.key(&format!("^{}_[a-z]{{1,3}}(_[a-z0-9]{{1,8}})*$", field.name));
                shape(writer, &field.shape);
            }
            writer.close_object();
        }
        writer.key("additionalProperties").boolean(false);
        match core {
            EventType::AwaitingConfirmation => safe_defaults(writer),
            EventType::ProgressUpdated => some_progress(writer),
            _ => {}
        }
    })
}

/// What is irreversible and not of low risk defaults to reject (§6.4.1, C-B5).
fn safe_defaults(writer: &mut Writer) {
    writer.key("if").raw(
        r#"{"anyOf":[{"properties":{"irreversible":{"const":true}},"required":["irreversible"]},{"properties":{"reversibility":{"const":"irreversible"}},"required":["reversibility"]}],"not":{"properties":{"risk_level":{"const":"low"}},"required":["risk_level"]}}"#,
    );
    writer.key("then").raw(r#"{"properties":{"default_decision":{"const":"reject"}}}"#);
}

/// Progress says at least one thing (§4.2.2).
fn some_progress(writer: &mut Writer) {
    writer.key("allOf").raw(r#"[{"properties":{"progress":{"minProperties":1}}}]"#);
}

fn message(kind: MessageType) -> Schema {
    let fields: Vec<_> = kind.fields().iter().collect();
    let name = kind.as_str().trim_start_matches("aaep:").replace(':', ".");
    write(&name, |writer| {
        writer.key("type").text("object");
        writer.key("properties").open_object();
        let mut required = vec!["type"];
        if kind == MessageType::Manifest {
            required.insert(0, "@context");
            writer.key("@context");
            shape(writer, &Shape::Context);
        }
        writer.key("type");
        constant(writer, kind.as_str());
        for field in &fields {
            writer.key(field.name);
            shape(writer, &field.shape);
        }
        writer.close_object();
        required.extend(fields.iter().filter(|field| field.missing.is_some()).map(|field| field.name));
        names(writer, "required", &required);
        if kind.closed().is_some() {
            writer.key("additionalProperties").boolean(false);
        }
    })
}

fn write(name: &str, body: impl Fn(&mut Writer)) -> Schema {
    let text = json::object(|writer| {
        writer.key("$schema").text("https://json-schema.org/draft/2020-12/schema");
        writer.key("$id").text(&format!("urn:sayso:schema:aaep:{name}"));
        writer.key("title").text(name);
        body(writer);
    });
    Schema { name: name.to_owned(), text: indent(&text) }
}

fn object(writer: &mut Writer, fields: &[&Field], mut each: impl FnMut(&mut Writer, &Field)) {
    writer.key("type").text("object");
    writer.key("properties").open_object();
    for field in fields {
        writer.key(field.name);
        each(writer, field);
    }
    writer.close_object();
}

fn names(writer: &mut Writer, key: &str, names: &[&str]) {
    if names.is_empty() {
        return;
    }
    writer.key(key).array(|writer| names.iter().for_each(|name| writer.text(name)));
}

fn constant(writer: &mut Writer, text: &str) {
    writer.object(|writer| writer.key("const").text(text));
}

fn shape(writer: &mut Writer, shape: &Shape) {
    writer.open_object();
    let typed = |writer: &mut Writer, name: &str| writer.key("type").text(name);
    match shape {
        Shape::Text { min, max } => {
            typed(writer, "string");
            limit(writer, "minLength", i64::from(*min), 0);
            limit(writer, "maxLength", i64::from(*max), i64::from(u32::MAX));
        }
        Shape::Form { pattern, .. } => {
            typed(writer, "string");
            writer.key("pattern").text(pattern);
        }
        Shape::Uri => {
            typed(writer, "string");
            writer.key("format").text("uri");
        }
        Shape::Tag => {
            typed(writer, "string");
            writer.key("pattern").text("^[a-zA-Z]{1,3}(-[a-zA-Z0-9]{1,8})*$");
        }
        Shape::Time { any } => {
            typed(writer, "string");
            writer.key("format").text("date-time");
            if !any {
                writer.key("pattern").text("^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\\.[0-9]{3}|\\.[0-9]{6})?(Z|[+-][0-9]{2}:[0-9]{2})$");
            }
        }
        Shape::Word(words) => names(writer, "enum", words),
        Shape::Bool => typed(writer, "boolean"),
        Shape::Integer { min, max } => {
            typed(writer, "integer");
            limit(writer, "minimum", *min, i64::MIN);
            limit(writer, "maximum", *max, i64::MAX);
        }
        Shape::Number { min, max } => {
            typed(writer, "number");
            writer.key("minimum").number(*min);
            writer.key("maximum").number(*max);
        }
        Shape::List { of, min, max, unique, .. } => {
            typed(writer, "array");
            writer.key("items");
            self::shape(writer, of);
            limit(writer, "minItems", i64::try_from(*min).unwrap_or(0), 0);
            limit(writer, "maxItems", i64::try_from(*max).unwrap_or(i64::MAX), i64::MAX);
            if *unique {
                writer.key("uniqueItems").boolean(true);
            }
        }
        Shape::Record { fields, closed, open_objects } => {
            let all: Vec<_> = fields.iter().collect();
            object(writer, &all, |writer, field| self::shape(writer, &field.shape));
            let required: Vec<_> =
                fields.iter().filter(|it| it.missing.is_some()).map(|it| it.name).collect();
            names(writer, "required", &required);
            if closed.is_some() {
                writer.key("additionalProperties").boolean(false);
            } else if open_objects.is_some() {
                writer.key("additionalProperties").raw(r#"{"type":"object"}"#);
            }
        }
        Shape::Object => typed(writer, "object"),
        Shape::Extensions => {
            typed(writer, "object");
            writer.key("additionalProperties").raw(r#"{"type":"object"}"#);
        }
        Shape::Context => {
            writer.key("oneOf").array(|writer| {
                constant(writer, CORE_CONTEXT);
                writer.object(|writer| {
                    typed(writer, "array");
                    writer.key("minItems").integer(1);
                    writer.key("prefixItems").array(|writer| constant(writer, CORE_CONTEXT));
                    writer.key("items").raw(r#"{"type":"string","format":"uri"}"#);
                });
            });
        }
        Shape::Response => {
            writer.key("oneOf").raw(
                r#"[{"type":"string","minLength":1,"maxLength":16384},{"type":"boolean"},{"type":"number"}]"#,
            );
        }
    }
    writer.close_object();
}

fn limit(writer: &mut Writer, key: &str, value: i64, none: i64) {
    if value != none {
        writer.key(key).integer(value);
    }
}

/// Two spaces a level; nothing inside strings is touched.
fn indent(compact: &str) -> String {
    let mut out = String::with_capacity(compact.len() * 2);
    let mut depth = 0_usize;
    let mut quoted = false;
    let mut escaped = false;
    let mut previous = ' ';
    for c in compact.chars() {
        if quoted {
            out.push(c);
            quoted = escaped || c != '"';
            escaped = !escaped && c == '\\';
            previous = c;
            continue;
        }
        let closing = matches!(c, '}' | ']');
        if closing {
            depth -= 1;
        }
        if matches!(previous, '{' | '[') && !closing
            || previous == ','
            || closing && !matches!(previous, '{' | '[')
        {
            out.push('\n');
            out.push_str(&"  ".repeat(depth));
        }
        out.push(c);
        match c {
            '"' => quoted = true,
            '{' | '[' => depth += 1,
            ':' => out.push(' '),
            _ => {}
        }
        previous = c;
    }
    out.push('\n');
    out
}
