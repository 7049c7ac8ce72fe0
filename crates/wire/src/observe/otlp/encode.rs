//! Spans and metrics as OTLP's JSON: ids in hexadecimal, 64-bit integers as text, enums as numbers.

use std::time::SystemTime;

use seal::json::Writer;

use super::Span;
use crate::observe::metrics::{Family, Sample, Value};

/// `SPAN_KIND_INTERNAL` and `SPAN_KIND_SERVER`.
const KINDS: [i64; 2] = [1, 2];
/// `STATUS_CODE_ERROR`
const FAILED: i64 = 2;
/// `AGGREGATION_TEMPORALITY_CUMULATIVE`
const CUMULATIVE: i64 = 2;

pub(super) fn spans(spans: &[Span]) -> String {
    within("resourceSpans", "scopeSpans", "spans", |writer| {
        for span in spans {
            writer.open_object();
            text(writer, "traceId", &hex(&span.trace.of));
            text(writer, "spanId", &hex(&span.trace.span));
            if let Some(parent) = &span.trace.parent {
                text(writer, "parentSpanId", &hex(parent));
            }
            text(writer, "name", &span.name);
            writer.key("kind");
            writer.integer(KINDS[usize::from(span.is_server)]);
            text(writer, "startTimeUnixNano", &nanos(span.begun));
            text(writer, "endTimeUnixNano", &nanos(span.ended));
            writer.key("attributes");
            writer.open_array();
            for (key, value) in &span.texts {
                attribute(writer, key, "stringValue", value);
            }
            for (key, value) in &span.numbers {
                attribute(writer, key, "intValue", &value.to_string());
            }
            writer.close_array();
            if span.failed {
                writer.key("status");
                writer.open_object();
                writer.key("code");
                writer.integer(FAILED);
                writer.close_object();
            }
            writer.close_object();
        }
    })
}

pub(super) fn metrics(families: &[Family], begun: SystemTime, now: SystemTime) -> String {
    within("resourceMetrics", "scopeMetrics", "metrics", |writer| {
        for Family { name, help, value } in families {
            writer.open_object();
            text(writer, "name", name);
            text(writer, "description", help);
            match value {
                Value::Counter(samples) => {
                    writer.key("sum");
                    writer.open_object();
                    points(writer, samples, begun, now);
                    writer.key("aggregationTemporality");
                    writer.integer(CUMULATIVE);
                    writer.key("isMonotonic");
                    writer.boolean(true);
                }
                Value::Gauge(samples) => {
                    writer.key("gauge");
                    writer.open_object();
                    points(writer, samples, begun, now);
                }
                Value::Histogram(seen) => {
                    writer.key("histogram");
                    writer.open_object();
                    writer.key("dataPoints");
                    writer.open_array();
                    writer.open_object();
                    times(writer, begun, now);
                    text(writer, "count", &seen.count().to_string());
                    writer.key("sum");
                    writer.number(seen.sum);
                    writer.key("bucketCounts");
                    writer.open_array();
                    for count in &seen.buckets {
                        writer.text(&count.to_string());
                    }
                    writer.close_array();
                    writer.key("explicitBounds");
                    writer.open_array();
                    for bound in seen.bounds {
                        writer.number(*bound);
                    }
                    writer.close_array();
                    writer.close_object();
                    writer.close_array();
                    writer.key("aggregationTemporality");
                    writer.integer(CUMULATIVE);
                }
            }
            writer.close_object();
            writer.close_object();
        }
    })
}

fn points(writer: &mut Writer, samples: &[Sample], begun: SystemTime, now: SystemTime) {
    writer.key("dataPoints");
    writer.open_array();
    for sample in samples {
        writer.open_object();
        writer.key("attributes");
        writer.open_array();
        for (name, value) in &sample.labels {
            attribute(writer, name, "stringValue", value);
        }
        writer.close_array();
        times(writer, begun, now);
        writer.key("asDouble");
        writer.number(sample.value);
        writer.close_object();
    }
    writer.close_array();
}

fn times(writer: &mut Writer, begun: SystemTime, now: SystemTime) {
    text(writer, "startTimeUnixNano", &nanos(begun));
    text(writer, "timeUnixNano", &nanos(now));
}

/// The two lists around everything: of resources, and of scopes.
fn within(resources: &str, scopes: &str, items: &str, inside: impl FnOnce(&mut Writer)) -> String {
    let mut writer = Writer::default();
    writer.open_object();
    writer.key(resources);
    writer.open_array();
    writer.open_object();
    writer.key("resource");
    writer.open_object();
    writer.key("attributes");
    writer.open_array();
    attribute(&mut writer, "service.name", "stringValue", "sayso");
    attribute(&mut writer, "service.version", "stringValue", env!("CARGO_PKG_VERSION"));
    writer.close_array();
    writer.close_object();
    writer.key(scopes);
    writer.open_array();
    writer.open_object();
    writer.key("scope");
    writer.open_object();
    text(&mut writer, "name", "sayso");
    writer.close_object();
    writer.key(items);
    writer.open_array();
    inside(&mut writer);
    writer.close_array();
    writer.close_object();
    writer.close_array();
    writer.close_object();
    writer.close_array();
    writer.close_object();
    writer.finish()
}

fn attribute(writer: &mut Writer, key: &str, kind: &str, value: &str) {
    writer.open_object();
    text(writer, "key", key);
    writer.key("value");
    writer.open_object();
    text(writer, kind, value);
    writer.close_object();
    writer.close_object();
}

fn text(writer: &mut Writer, name: &str, value: &str) {
    writer.key(name);
    writer.text(value);
}

fn nanos(at: SystemTime) -> String {
    at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos().to_string()
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}
