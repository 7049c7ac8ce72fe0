//! Extracts what a span or a log record says about an agent, according to the semantic conventions for generative AI.

use sayso::{Redact, SecretRedactor};
use seal::Digest;
use seal::json::{JsonValue, Tape};

use super::proto::{AnyValue, KeyValue, LogRecord, LogsRequest, Resource, Span, TraceRequest, Value};
use crate::phrases::{GateText, texts};

/// Maximum number of characters of a name.
const MAX_NAME_CHARS: usize = 100;
/// Maximum number of characters of arguments, results and errors.
const MAX_DETAIL_CHARS: usize = 300;
/// Maximum size of a text that a model wrote, in bytes. The rest is left out.
const MAX_OUTPUT_BYTES: usize = 64 * 1024;

/// A report about something that has already happened.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Report {
    /// Identifies it, so that a repeated report is noticed.
    pub(super) identity: [u8; 16],
    /// The trace that it belongs to.
    pub(super) trace_id: [u8; 16],
    /// The span that it is about.
    pub(super) span_id: [u8; 8],
    /// `gen_ai.conversation.id`
    pub(super) conversation: Option<String>,
    /// The name of the agent or the service.
    pub(super) agent: Option<String>,
    /// When it ended, in nanoseconds since 1970.
    pub(super) ended_at: u64,
    /// How long it took, in milliseconds.
    pub(super) duration_ms: Option<u64>,
    /// What happened.
    pub(super) content: ReportContent,
}

/// The event that a report describes.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ReportContent {
    /// A tool was used.
    Tool {
        /// Its name.
        name: String,
        /// The arguments, if the agent reports them.
        arguments: Option<String>,
        /// The result, if the agent reports it.
        result: Option<String>,
        /// Why it failed.
        error: Option<String>,
    },
    /// A model wrote this text.
    Output(String),
    /// Something else ended.
    Step {
        /// What it was, as a sentence.
        text: GateText,
        /// Why it failed.
        error: Option<String>,
    },
}

/// The reports in a request.
#[derive(Debug, Default, PartialEq)]
pub(super) struct ExtractedReports {
    /// The reports, in the order in which the work ended.
    pub(super) reports: Vec<Report>,
    /// The number of records that are not valid.
    pub(super) rejected: usize,
    /// What is wrong with the first of them.
    pub(super) error: Option<String>,
}

impl ExtractedReports {
    pub(super) fn reject(&mut self, error: impl Into<String>) {
        self.rejected += 1;
        self.error.get_or_insert_with(|| error.into());
    }

    /// Sorts the reports by their end, because exporters send the spans of a batch in any order.
    fn sorted(mut self) -> Self {
        self.reports.sort_by_key(|report| report.ended_at);
        self
    }
}

/// Converts spans into reports. Spans that are not about generative AI are skipped.
pub(super) fn extract_spans(request: TraceRequest, max_records: usize) -> ExtractedReports {
    let mut extracted = ExtractedReports::default();
    let mut count = 0;
    for part in request.resource_spans {
        let service = service_name(part.resource.as_ref());
        for span in part.scope_spans.into_iter().flat_map(|scope| scope.spans) {
            count += 1;
            if count > max_records {
                extracted.reject(format!("more than {max_records} spans in one request"));
            } else if let Err(error) = read_span(&span, service.as_deref(), &mut extracted.reports) {
                extracted.reject(error);
            }
        }
    }
    extracted.sorted()
}

/// Converts log records into reports. Records that are not about generative AI are skipped.
pub(super) fn extract_logs(request: LogsRequest, max_records: usize) -> ExtractedReports {
    let mut extracted = ExtractedReports::default();
    let mut count = 0;
    for part in request.resource_logs {
        let service = service_name(part.resource.as_ref());
        for record in part.scope_logs.into_iter().flat_map(|scope| scope.log_records) {
            count += 1;
            if count > max_records {
                extracted.reject(format!("more than {max_records} log records in one request"));
            } else if let Err(error) = read_log(&record, service.as_deref(), &mut extracted.reports) {
                extracted.reject(error);
            }
        }
    }
    extracted.sorted()
}

fn service_name(resource: Option<&Resource>) -> Option<String> {
    let name = text_attribute(&resource?.attributes, "service.name")?;
    // The SDKs use this name if nobody set one.
    (!name.starts_with("unknown_service")).then(|| shorten(name, MAX_NAME_CHARS))
}

fn read_span(span: &Span, service: Option<&str>, reports: &mut Vec<Report>) -> Result<(), String> {
    let attributes = &span.attributes;
    let (trace_id, span_id) = read_ids(&span.trace_id, &span.span_id)?;
    let Some(operation) = text_attribute(attributes, "gen_ai.operation.name") else { return Ok(()) };
    if span.end_time_unix_nano == 0 || span.end_time_unix_nano < span.start_time_unix_nano {
        return Err("a span has no valid end time".to_owned());
    }
    let agent_name =
        text_attribute(attributes, "gen_ai.agent.name").map(|name| shorten(name, MAX_NAME_CHARS));
    let duration_ns = span.end_time_unix_nano - span.start_time_unix_nano;
    let error = read_error(span);
    let base = Report {
        identity: identity(&trace_id, &span_id, b"span"),
        trace_id,
        span_id,
        conversation: read_conversation(attributes),
        agent: agent_name.clone().or_else(|| service.map(str::to_owned)),
        ended_at: span.end_time_unix_nano,
        duration_ms: (span.start_time_unix_nano > 0).then_some(duration_ns / 1_000_000),
        content: ReportContent::Output(String::new()),
    };
    let step = |text: GateText| ReportContent::Step { text, error: error.clone() };
    let content = match operation {
        "execute_tool" => {
            let name = text_attribute(attributes, "gen_ai.tool.name");
            let name = name.or_else(|| span.name.strip_prefix("execute_tool ")).unwrap_or("tool");
            let detail =
                |key| attribute(attributes, key).map(|value| shorten(&value_text(value), MAX_DETAIL_CHARS));
            ReportContent::Tool {
                name: shorten(name, MAX_NAME_CHARS),
                arguments: detail("gen_ai.tool.call.arguments"),
                result: detail("gen_ai.tool.call.result"),
                error,
            }
        }
        "invoke_agent" | "invoke_workflow" => step(match &agent_name {
            Some(name) => texts::HAS_FINISHED.with(&[name]),
            None => (&texts::AGENT_HAS_FINISHED).into(),
        }),
        "create_agent" => step(match &agent_name {
            Some(name) => texts::AGENT_CREATED.with(&[name]),
            None => (&texts::NAMELESS_CREATED).into(),
        }),
        "plan" => step((&texts::MADE_PLAN).into()),
        "chat" | "text_completion" | "generate_content" => {
            if let Some(text) = attribute(attributes, "gen_ai.output.messages").and_then(read_output_messages)
            {
                reports.push(output_report(&base, &text));
                if error.is_none() {
                    return Ok(());
                }
            }
            let model = text_attribute(attributes, "gen_ai.response.model")
                .or_else(|| text_attribute(attributes, "gen_ai.request.model"));
            step(match model {
                Some(model) => texts::MODEL_ANSWERED.with(&[&shorten(model, MAX_NAME_CHARS)]),
                None => (&texts::A_MODEL_ANSWERED).into(),
            })
        }
        // Embeddings, retrievals and the like are details of other steps, unless they fail.
        other if error.is_some() => step(texts::STEP_ENDED.with(&[&shorten(other, MAX_NAME_CHARS)])),
        _ => return Ok(()),
    };
    reports.push(Report { content, ..base });
    Ok(())
}

fn read_log(record: &LogRecord, service: Option<&str>, reports: &mut Vec<Report>) -> Result<(), String> {
    let attributes = &record.attributes;
    let name = match record.event_name.as_str() {
        "" => text_attribute(attributes, "event.name").unwrap_or_default(),
        name => name,
    };
    let text = match name {
        "gen_ai.client.inference.operation.details" => {
            attribute(attributes, "gen_ai.output.messages").and_then(read_output_messages)
        }
        // The form of earlier versions of the conventions: the message is the body.
        "gen_ai.choice" => record.body.as_ref().and_then(read_choice),
        _ => return Ok(()),
    };
    let Some(text) = text else { return Ok(()) };
    let (trace_id, span_id) = if record.trace_id.is_empty() && record.span_id.is_empty() {
        // Without a trace, only the conversation says what it belongs to.
        let conversation =
            read_conversation(attributes).ok_or("a log record has neither a trace nor a conversation")?;
        let digest = Digest::of(conversation.as_bytes());
        (first_bytes(digest.as_bytes()), first_bytes(digest.as_bytes()))
    } else {
        read_ids(&record.trace_id, &record.span_id)?
    };
    let agent_name =
        text_attribute(attributes, "gen_ai.agent.name").map(|name| shorten(name, MAX_NAME_CHARS));
    let base = Report {
        identity: [0; 16],
        trace_id,
        span_id,
        conversation: read_conversation(attributes),
        agent: agent_name.or_else(|| service.map(str::to_owned)),
        ended_at: record.time_unix_nano.max(record.observed_time_unix_nano),
        duration_ms: None,
        content: ReportContent::Output(String::new()),
    };
    reports.push(output_report(&base, &text));
    Ok(())
}

/// Returns the report of a model's text. Its identity contains the text, because a span and a log record can both contain it.
fn output_report(base: &Report, text: &str) -> Report {
    let text = text.trim();
    let kept = text.get(..text.floor_char_boundary(MAX_OUTPUT_BYTES)).unwrap_or_default();
    let text = match text.len() - kept.len() {
        0 => kept.to_owned(),
        missing => format!("{kept}… and {missing} more bytes"),
    };
    let identity = identity(&base.trace_id, &base.span_id, text.as_bytes());
    let text = SecretRedactor.redact(&text).0.into_owned();
    Report { identity, content: ReportContent::Output(text), ..base.clone() }
}

fn identity(trace_id: &[u8], span_id: &[u8], kind: &[u8]) -> [u8; 16] {
    first_bytes(Digest::of(&[trace_id, span_id, kind].concat()).as_bytes())
}

fn first_bytes<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.first_chunk().copied().unwrap_or([0; N])
}

fn read_ids(trace_id: &[u8], span_id: &[u8]) -> Result<([u8; 16], [u8; 8]), String> {
    let trace_id: [u8; 16] = trace_id.try_into().map_err(|_| "a trace id does not have 16 bytes")?;
    let span_id: [u8; 8] = span_id.try_into().map_err(|_| "a span id does not have 8 bytes")?;
    if trace_id == [0; 16] || span_id == [0; 8] {
        return Err("an id consists of zeros".to_owned());
    }
    Ok((trace_id, span_id))
}

fn read_conversation(attributes: &[KeyValue]) -> Option<String> {
    let id = text_attribute(attributes, "gen_ai.conversation.id").filter(|id| !id.is_empty())?;
    // A long id is represented by its digest.
    Some(if id.len() <= 200 { id.to_owned() } else { Digest::of(id.as_bytes()).to_string() })
}

fn read_error(span: &Span) -> Option<String> {
    let status = span.status.as_ref().filter(|status| status.code == 2);
    let kind = text_attribute(&span.attributes, "error.type");
    if status.is_none() && kind.is_none() {
        return None;
    }
    let message = status.map(|status| status.message.as_str()).filter(|message| !message.trim().is_empty());
    Some(shorten(message.or(kind).unwrap_or("no reason given"), MAX_DETAIL_CHARS))
}

/// Reads `gen_ai.output.messages`: a JSON text or a structured value with messages, whose parts contain text.
fn read_output_messages(value: &AnyValue) -> Option<String> {
    let json = value_text(value);
    let mut tape = Tape::default();
    let doc = tape.read(&json).ok()?;
    let mut found = Vec::new();
    for message in doc.root().items() {
        if let Some(parts) = message.member("parts") {
            found.extend(
                parts
                    .items()
                    .filter(|part| part.member("type").is_none_or(|kind| kind.is_text("text")))
                    .filter_map(|part| {
                        part.member("content").or_else(|| part.member("text")).and_then(|text| text_of(&text))
                    }),
            );
        } else {
            found.extend(message.member("content").and_then(|content| text_of(&content)));
        }
    }
    Some(found.join("\n")).filter(|text| !text.trim().is_empty())
}

fn read_choice(body: &AnyValue) -> Option<String> {
    let json = body.to_json();
    let mut tape = Tape::default();
    let doc = tape.read(&json).ok()?;
    let root = doc.root();
    let content = root
        .member("message")
        .and_then(|message| message.member("content"))
        .or_else(|| root.member("content"));
    content.and_then(|content| text_of(&content)).filter(|text| !text.trim().is_empty())
}

fn text_of(value: &JsonValue<'_>) -> Option<String> {
    value.text().map(std::borrow::Cow::into_owned)
}

fn attribute<'a>(attributes: &'a [KeyValue], key: &str) -> Option<&'a AnyValue> {
    attributes.iter().find(|attribute| attribute.key == key)?.value.as_ref()
}

fn text_attribute<'a>(attributes: &'a [KeyValue], key: &str) -> Option<&'a str> {
    attribute(attributes, key)?.as_text()
}

/// Returns a text unchanged, and any other value as JSON.
fn value_text(value: &AnyValue) -> String {
    match &value.value {
        Some(Value::Text(text)) => text.clone(),
        _ => value.to_json(),
    }
}

/// Removes secrets, shortens the text and says how much is missing. Control characters become spaces.
fn shorten(text: &str, max_chars: usize) -> String {
    // A secret that this cut splits lies far beyond the part that remains.
    let text = text.get(..text.floor_char_boundary(MAX_OUTPUT_BYTES)).unwrap_or_default();
    let (text, _) = SecretRedactor.redact(text);
    let total = text.chars().count();
    let kept: String =
        text.chars().take(max_chars).map(|char| if char.is_control() { ' ' } else { char }).collect();
    if total <= max_chars { kept } else { format!("{kept}… and {} more characters", total - max_chars) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test reports a failure by panicking")]

    use proptest::prelude::*;
    use prost::Message;

    use super::super::json::{read_logs, read_traces};
    use super::*;

    const JSON: &str = r#"{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"shop"}}]},"scopeSpans":[{"spans":[
        {"traceId":"0102030405060708090A0b0c0d0e0f10","spanId":"0000000000000001","name":"execute_tool x","startTimeUnixNano":"5","endTimeUnixNano":7000000,
         "attributes":[{"key":"gen_ai.operation.name","value":{"stringValue":"execute_tool"}},
                       {"key":"gen_ai.tool.call.arguments","value":{"kvlistValue":{"values":[{"key":"n","value":{"intValue":"17"}},{"key":"deep","value":{"arrayValue":{"values":[{"boolValue":true},{"doubleValue":0.5}]}}}]}}}],
         "status":{"code":2,"message":"no"}}]}]}]}"#;

    #[test]
    fn json_and_protobuf_say_the_same() {
        let request = read_traces(JSON, usize::MAX).unwrap();
        let decoded = TraceRequest::decode(request.encode_to_vec().as_slice()).unwrap();
        assert_eq!(decoded, request);
        let extracted = extract_spans(decoded, 10);
        assert_eq!((extracted.reports.len(), extracted.rejected), (1, 0));
        let report = extracted.reports.first().unwrap();
        assert_eq!(report.agent.as_deref(), Some("shop"));
        assert_eq!(report.duration_ms, Some(6));
        let expected = ReportContent::Tool {
            name: "x".to_owned(),
            arguments: Some(r#"{"n":17,"deep":[true,0.5]}"#.to_owned()),
            result: None,
            error: Some("no".to_owned()),
        };
        assert_eq!(report.content, expected);
    }

    #[test]
    fn secrets_are_removed_from_everything_that_is_heard() {
        let secret = format!("ghp_{}", "a1B2".repeat(9));
        let json = JSON
            .replace("\"no\"", &format!("\"token {secret}\""))
            .replace("execute_tool x", &format!("execute_tool {secret}"));
        let extracted = extract_spans(read_traces(&json, usize::MAX).unwrap(), 10);
        assert!(!format!("{:?}", extracted.reports).contains(&secret));
    }

    proptest! {
        #[test]
        fn any_body_is_read_without_a_panic(body in prop::collection::vec(any::<u8>(), 0..300), text in "[\\[\\]{}\",:a-z0-9A-Z]{0,120}") {
            if let Ok(request) = TraceRequest::decode(body.as_slice()) {
                let _ = extract_spans(request, 100);
            }
            if let Ok(request) = LogsRequest::decode(body.as_slice()) {
                let _ = extract_logs(request, 100);
            }
            for text in [text.clone(), format!(r#"{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{text}]}}]}}]}}"#)] {
                let _ = read_traces(&text, usize::MAX).map(|request| extract_spans(request, 100));
                let _ = read_logs(&text, usize::MAX).map(|request| extract_logs(request, 100));
            }
        }
    }
}
