//! Converts reports into events.
//!
//! The hub refuses to announce an irreversible or high-risk call without a person's consent. A call that a span reports was made
//! without a question to the hub, and its risk is not known. It is therefore announced without `risk_level` and `irreversible`, in
//! words that say that it has already happened and that nobody was asked. This module never states or spends consent.

use data_encoding::HEXLOWER;
use seal::json::{JsonWriter, write_object};

use super::report::{Report, ReportContent};
use crate::phrases::{GateText, Language, texts};

/// The context of the extension that marks a report.
const CONTEXT: &str = "urn:sayso:context:opentelemetry:v1";
/// The context of AAEP's own members.
const CORE_CONTEXT: &str = "https://aaep-protocol.org/context/v1";

/// Returns the payload that starts the session of a report.
pub(super) fn session_start(report: &Report, has_agent_id: bool) -> String {
    let name = report.agent.as_deref();
    write_object(|out| {
        let text = GateText::new(|language| {
            let subject = name.map_or_else(|| texts::AN_AGENT.fill(language, &[]), str::to_owned);
            texts::REPORTS_ABOUT.fill(language, &[&subject])
        });
        text.write(out, "summary_normal");
        out.key("localization_hints");
        out.object(|out| out.plain_member("primary_language", Language::English.tag()));
        write_mark(out, report);
        let correlation = report.conversation.clone().unwrap_or_else(|| HEXLOWER.encode(&report.trace_id));
        out.key("correlation_id").text(&correlation);
        if !has_agent_id || name.is_some() {
            out.key("producer").object(|out| {
                if !has_agent_id {
                    out.plain_member("agent_id", "opentelemetry");
                }
                if let Some(name) = name {
                    out.key("agent_name").text(name);
                }
            });
        }
    })
}

/// Returns the event that ends a session.
pub(super) fn session_end(reason: &GateText) -> String {
    write_object(|out| {
        out.plain_member("type", "aaep:agent.session.completed");
        reason.write(out, "summary_normal");
    })
}

/// What the hub publishes for a report.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Publication {
    /// Events, all or none of them.
    Events(Vec<String>),
    /// A complete text.
    Output(String),
}

/// Converts a report.
pub(super) fn publication(report: &Report) -> Publication {
    match &report.content {
        ReportContent::Output(text) => Publication::Output(text.clone()),
        ReportContent::Step { text, error } => Publication::Events(vec![write_object(|out| {
            out.plain_member("type", "aaep:agent.progress.updated");
            let text = GateText::new(|language| match error {
                Some(error) => texts::REPORTED_FAILURE.fill(language, &[text.text(language), error]),
                None => texts::REPORTED.fill(language, &[text.text(language)]),
            });
            out.key("progress").object(|out| out.key("description").text(text.english()));
            text.write(out, "summary_normal");
            write_mark(out, report);
        })]),
        ReportContent::Tool { name, arguments, result, error } => {
            let call_id =
                format!("{}-{}", HEXLOWER.encode(&report.trace_id), HEXLOWER.encode(&report.span_id));
            let invoked = write_object(|out| {
                out.plain_member("type", "aaep:agent.tool.invoked");
                out.key("tool").text(name);
                out.key("tool_call_id").text(&call_id);
                texts::REPORTED_USE.with(&[name]).write(out, "summary_normal");
                if let Some(arguments) = arguments.as_deref().filter(|text| !text.trim().is_empty()) {
                    GateText::from(arguments.to_owned()).write(out, "args_summary");
                }
                write_mark(out, report);
            });
            let completed = write_object(|out| {
                out.plain_member("type", "aaep:agent.tool.completed");
                out.key("tool").text(name);
                out.key("tool_call_id").text(&call_id);
                if let Some(error) = error {
                    out.plain_member("status", "error");
                    GateText::from(error.clone()).write(out, "error_message");
                    texts::TOOL_FAILED.with(&[name, error]).write(out, "summary_normal");
                } else {
                    out.plain_member("status", "success");
                    let text = result.clone().filter(|text| !text.trim().is_empty());
                    let text = text.map_or_else(|| texts::HAS_FINISHED.with(&[name]), GateText::from);
                    text.write(out, "summary_normal");
                }
                if let Some(duration) = report.duration_ms.and_then(|duration| i64::try_from(duration).ok()) {
                    out.key("duration_ms").integer(duration.min(MAX_DURATION_MS));
                }
                write_mark(out, report);
            });
            Publication::Events(vec![invoked, completed])
        }
    }
}

/// The longest duration that AAEP allows, in milliseconds: one day.
const MAX_DURATION_MS: i64 = 24 * 60 * 60 * 1000;

/// Marks an event as a report after the fact.
fn write_mark(out: &mut JsonWriter, report: &Report) {
    out.key("@context").array(|out| {
        out.text(CORE_CONTEXT);
        out.text(CONTEXT);
    });
    out.key("extensions").object(|out| {
        out.key("opentelemetry").object(|out| {
            out.key("after_the_fact").boolean(true);
            out.key("trace_id").text(&HEXLOWER.encode(&report.trace_id));
            out.key("span_id").text(&HEXLOWER.encode(&report.span_id));
            out.key("ended_at_unix_nano").text(&report.ended_at.to_string());
        });
    });
}
