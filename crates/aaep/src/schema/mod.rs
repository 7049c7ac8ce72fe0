//! JSON Schemas (draft 2020-12) of every event and message, generated from the same tables as the
//! types and the checks.

mod agent_api;

pub use agent_api::agent_api;

use crate::event::{CORE_CONTEXT, ENVELOPE, EventType};
use crate::json::{self, JsonWriter};
use crate::message::MessageType;
use crate::record::{Field, FieldType};

/// One schema and its name, which is the argument of `sayso schema`.
#[derive(Clone, Debug)]
pub struct Schema {
    /// The name, such as `agent.tool.invoked`, `subscription.request` or `producer.manifest`.
    pub name: String,
    /// The indented schema.
    pub text: String,
}

/// Returns all schemas: the twelve events, then the messages.
///
/// ```
/// let names: Vec<_> = aaep::schema::all().into_iter().map(|schema| schema.name).collect();
/// assert!(names.contains(&"agent.tool.invoked".to_owned()));
/// ```
pub fn all() -> Vec<Schema> {
    let events = EventType::CORE.iter().map(build_event_schema);
    let messages = MessageType::ALL.iter().map(|kind| build_message_schema(*kind));
    events.chain(messages).collect()
}

fn build_event_schema(core_type: &EventType) -> Schema {
    let (head, tail) = ENVELOPE.split_at(ENVELOPE.len() - 1);
    let fields: Vec<_> = head.iter().chain(core_type.fields()).chain(tail).collect();
    let is_critical = core_type.is_critical();
    let spoken_fields: Vec<_> = core_type.fields().iter().filter(|field| field.is_spoken).collect();
    let name = core_type.as_str().trim_start_matches("aaep:");
    write_schema(name, |writer| {
        write_properties(writer, &fields, |writer, field| match field.name {
            "type" => write_const(writer, core_type.as_str()),
            "urgency" if is_critical => write_const(writer, "critical"),
            _ => write_field_type(writer, &field.value_type),
        });
        let mut required: Vec<_> =
            fields.iter().filter(|it| it.missing_rule.is_some()).map(|it| it.name).collect();
        if is_critical {
            required.push("urgency");
        }
        write_name_list(writer, "required", &required);
        if !spoken_fields.is_empty() {
            // Translations are members like summary_normal_yo (§11.5.1).
            writer.key("patternProperties").open_object();
            for field in &spoken_fields {
                writer.key(&format!("^{}_[a-z]{{1,3}}(_[a-z0-9]{{1,8}})*$", field.name));
                write_field_type(writer, &field.value_type);
            }
            writer.close_object();
        }
        writer.key("additionalProperties").boolean(false);
        match core_type {
            EventType::AwaitingConfirmation => write_safe_defaults(writer),
            EventType::ProgressUpdated => write_progress_requirement(writer),
            _ => {}
        }
    })
}

/// Requires `reject` as the default of irreversible actions that are not low risk (§6.4.1, C-B5).
fn write_safe_defaults(writer: &mut JsonWriter) {
    writer.key("if").raw(
        r#"{"anyOf":[{"properties":{"irreversible":{"const":true}},"required":["irreversible"]},{"properties":{"reversibility":{"const":"irreversible"}},"required":["reversibility"]}],"not":{"properties":{"risk_level":{"const":"low"}},"required":["risk_level"]}}"#,
    );
    writer.key("then").raw(r#"{"properties":{"default_decision":{"const":"reject"}}}"#);
}

/// Requires at least one member in `progress` (§4.2.2).
fn write_progress_requirement(writer: &mut JsonWriter) {
    writer.key("allOf").raw(r#"[{"properties":{"progress":{"minProperties":1}}}]"#);
}

fn build_message_schema(kind: MessageType) -> Schema {
    let fields: Vec<_> = kind.fields().iter().collect();
    let name = kind.as_str().trim_start_matches("aaep:").replace(':', ".");
    write_schema(&name, |writer| {
        writer.key("type").text("object");
        writer.key("properties").open_object();
        let mut required = vec!["type"];
        if kind == MessageType::Manifest {
            required.insert(0, "@context");
            writer.key("@context");
            write_field_type(writer, &FieldType::Context);
        }
        writer.key("type");
        write_const(writer, kind.as_str());
        for field in &fields {
            writer.key(field.name);
            write_field_type(writer, &field.value_type);
        }
        writer.close_object();
        required.extend(fields.iter().filter(|field| field.missing_rule.is_some()).map(|field| field.name));
        write_name_list(writer, "required", &required);
        if kind.unknown_member_rule().is_some() {
            writer.key("additionalProperties").boolean(false);
        }
    })
}

fn write_schema(name: &str, body: impl Fn(&mut JsonWriter)) -> Schema {
    let text = json::write_object(|writer| {
        writer.key("$schema").text("https://json-schema.org/draft/2020-12/schema");
        writer.key("$id").text(&format!("urn:sayso:schema:aaep:{name}"));
        writer.key("title").text(name);
        body(writer);
    });
    Schema { name: name.to_owned(), text: indent(&text) }
}

fn write_properties(
    writer: &mut JsonWriter,
    fields: &[&Field],
    mut write_property: impl FnMut(&mut JsonWriter, &Field),
) {
    writer.key("type").text("object");
    writer.key("properties").open_object();
    for field in fields {
        writer.key(field.name);
        write_property(writer, field);
    }
    writer.close_object();
}

fn write_name_list(writer: &mut JsonWriter, key: &str, names: &[&str]) {
    if names.is_empty() {
        return;
    }
    writer.key(key).array(|writer| names.iter().for_each(|name| writer.text(name)));
}

fn write_const(writer: &mut JsonWriter, text: &str) {
    writer.object(|writer| writer.key("const").text(text));
}

fn write_field_type(writer: &mut JsonWriter, field_type: &FieldType) {
    writer.open_object();
    let write_type = |writer: &mut JsonWriter, name: &str| writer.key("type").text(name);
    match field_type {
        FieldType::Text { min, max } => {
            write_type(writer, "string");
            write_limit(writer, "minLength", i64::from(*min), 0);
            write_limit(writer, "maxLength", i64::from(*max), i64::from(u32::MAX));
        }
        FieldType::Grammar { pattern, .. } => {
            write_type(writer, "string");
            writer.key("pattern").text(pattern);
        }
        FieldType::Uri => {
            write_type(writer, "string");
            writer.key("format").text("uri");
        }
        FieldType::LanguageTag => {
            write_type(writer, "string");
            writer.key("pattern").text("^[a-zA-Z]{1,3}(-[a-zA-Z0-9]{1,8})*$");
        }
        FieldType::Timestamp { any_rfc3339 } => {
            write_type(writer, "string");
            writer.key("format").text("date-time");
            if !any_rfc3339 {
                writer.key("pattern").text("^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\\.[0-9]{3}|\\.[0-9]{6})?(Z|[+-][0-9]{2}:[0-9]{2})$");
            }
        }
        FieldType::Enum(values) => write_name_list(writer, "enum", values),
        FieldType::Bool => write_type(writer, "boolean"),
        FieldType::Integer { min, max } => {
            write_type(writer, "integer");
            write_limit(writer, "minimum", *min, i64::MIN);
            write_limit(writer, "maximum", *max, i64::MAX);
        }
        FieldType::Number { min, max } => {
            write_type(writer, "number");
            writer.key("minimum").number(*min);
            writer.key("maximum").number(*max);
        }
        FieldType::List { item: item_type, min, max, unique, .. } => {
            write_type(writer, "array");
            writer.key("items");
            self::write_field_type(writer, item_type);
            write_limit(writer, "minItems", i64::try_from(*min).unwrap_or(0), 0);
            write_limit(writer, "maxItems", i64::try_from(*max).unwrap_or(i64::MAX), i64::MAX);
            if *unique {
                writer.key("uniqueItems").boolean(true);
            }
        }
        FieldType::Record { fields, unknown_member_rule, non_object_member_rule } => {
            let all: Vec<_> = fields.iter().collect();
            write_properties(writer, &all, |writer, field| self::write_field_type(writer, &field.value_type));
            let required: Vec<_> =
                fields.iter().filter(|it| it.missing_rule.is_some()).map(|it| it.name).collect();
            write_name_list(writer, "required", &required);
            if unknown_member_rule.is_some() {
                writer.key("additionalProperties").boolean(false);
            } else if non_object_member_rule.is_some() {
                writer.key("additionalProperties").raw(r#"{"type":"object"}"#);
            }
        }
        FieldType::Object => write_type(writer, "object"),
        FieldType::Extensions => {
            write_type(writer, "object");
            writer.key("additionalProperties").raw(r#"{"type":"object"}"#);
        }
        FieldType::Context => {
            writer.key("oneOf").array(|writer| {
                write_const(writer, CORE_CONTEXT);
                writer.object(|writer| {
                    write_type(writer, "array");
                    writer.key("minItems").integer(1);
                    writer.key("prefixItems").array(|writer| write_const(writer, CORE_CONTEXT));
                    writer.key("items").raw(r#"{"type":"string","format":"uri"}"#);
                });
            });
        }
        FieldType::Response => {
            writer.key("oneOf").raw(
                r#"[{"type":"string","minLength":1,"maxLength":16384},{"type":"boolean"},{"type":"number"}]"#,
            );
        }
    }
    writer.close_object();
}

fn write_limit(writer: &mut JsonWriter, key: &str, value: i64, default: i64) {
    if value != default {
        writer.key(key).integer(value);
    }
}

/// Indents JSON with two spaces per level. Strings stay unchanged.
pub fn indent(compact: &str) -> String {
    let mut out = String::with_capacity(compact.len() * 2);
    let mut depth = 0_usize;
    let mut is_in_string = false;
    let mut is_escaped = false;
    let mut previous = ' ';
    for c in compact.chars() {
        if is_in_string {
            out.push(c);
            is_in_string = is_escaped || c != '"';
            is_escaped = !is_escaped && c == '\\';
            previous = c;
            continue;
        }
        let is_closing = matches!(c, '}' | ']');
        if is_closing {
            depth -= 1;
        }
        if matches!(previous, '{' | '[') && !is_closing
            || previous == ','
            || is_closing && !matches!(previous, '{' | '[')
        {
            out.push('\n');
            out.push_str(&"  ".repeat(depth));
        }
        out.push(c);
        match c {
            '"' => is_in_string = true,
            '{' | '[' => depth += 1,
            ':' => out.push(' '),
            _ => {}
        }
        previous = c;
    }
    out.push('\n');
    out
}
