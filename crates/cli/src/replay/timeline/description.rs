//! Describes one event in sentences, with the agent's own words in quotation marks.

use std::borrow::Cow;

use aaep::event::AgentState;
use aaep::session::{Clarification, Confirmation, SessionEvent, SessionEventBody};

use super::texts::{DocumentTexts, format_duration, short_name};
use super::{LaneChange, StepResult, TimelineLane};

/// The lane, label and sentences with which an event is shown.
pub(super) struct EventDescription {
    pub(super) lane: TimelineLane,
    pub(super) change: LaneChange,
    /// Identifies the tool call, output, question or state.
    pub(super) key: String,
    /// The name of the tool call, output or state in the diagram.
    pub(super) label: String,
    pub(super) result: Option<StepResult>,
    pub(super) sentences: Vec<String>,
}

impl EventDescription {
    fn new(lane: TimelineLane, change: LaneChange, sentence: impl Into<String>) -> Self {
        Self {
            lane,
            change,
            key: String::new(),
            label: String::new(),
            result: None,
            sentences: vec![sentence.into()],
        }
    }

    fn named(mut self, key: impl Into<String>, label: impl Into<String>) -> Self {
        (self.key, self.label) = (key.into(), label.into());
        self
    }

    fn with_result(mut self, result: Option<StepResult>) -> Self {
        self.result = result;
        self
    }

    fn add(&mut self, sentence: Option<String>) {
        self.sentences.extend(sentence);
    }

    /// Adds a labelled quotation, such as `Consequence: “…”`.
    fn add_quoted(&mut self, label: &str, quoted: Option<String>) {
        self.add(quoted.map(|text| format!("{label}: {text}")));
    }
}

pub(super) fn describe_event(
    event: &SessionEvent<Cow<'_, str>>,
    texts: DocumentTexts<'_>,
) -> EventDescription {
    match &event.body {
        SessionEventBody::Started => describe_start(texts),
        SessionEventBody::Completed => describe_completion(texts),
        SessionEventBody::Errored => describe_error(texts),
        SessionEventBody::Cancelled => describe_cancellation(texts),
        SessionEventBody::StateChanged { from, to } => describe_state(from, to, texts),
        SessionEventBody::ProgressUpdated { deadline_extension, .. } => {
            describe_progress(deadline_extension.is_some(), texts)
        }
        SessionEventBody::ToolInvoked { tool, call_id, high_risk, irreversible, .. } => {
            let name = tool_name(tool, call_id.as_deref());
            let mut out =
                EventDescription::new(TimelineLane::Tool, LaneChange::Begins, format!("{name} is called."))
                    .named(call_id.as_deref().unwrap_or(tool), short_name(tool));
            out.add(high_risk.then(|| "High risk.".to_owned()));
            out.add(irreversible.then(|| "This cannot be undone.".to_owned()));
            out.add_quoted("Arguments", texts.quoted("args_summary"));
            out.add(texts.summary());
            out
        }
        SessionEventBody::ToolCompleted { tool, call_id } => {
            describe_tool_end(tool, call_id.as_deref(), texts)
        }
        SessionEventBody::OutputStreaming { output_id, position, code_points, complete, .. } => {
            let name = output_id.as_deref().unwrap_or("the output");
            let end = position.saturating_add(*code_points);
            let change = match (*complete, *position) {
                (true, _) => LaneChange::Ends,
                (false, 0) => LaneChange::Begins,
                _ => LaneChange::Continues,
            };
            let label = short_name(name);
            let range = format!("{label}, characters {position} to {end}");
            let sentence = match texts.quoted("chunk") {
                Some(chunk) => format!("{range}: {chunk}"),
                None => format!("{range}."),
            };
            let mut out = EventDescription::new(TimelineLane::Output, change, sentence)
                .named(name, label)
                .with_result(complete.then_some(StepResult::Succeeded));
            out.add(complete.then(|| "The output is complete.".to_owned()));
            out
        }
        SessionEventBody::Confirmation(question) => describe_confirmation(question, texts),
        SessionEventBody::Clarification(question) => describe_clarification(question, texts),
        SessionEventBody::Handoff => describe_handoff(texts),
        _ => {
            let kind = texts
                .text("type")
                .map_or_else(|| "without a type".to_owned(), |kind| format!("of type {}", short_name(&kind)));
            let mut out =
                EventDescription::new(TimelineLane::Other, LaneChange::Instant, format!("An event {kind}."));
            out.add(texts.summary());
            out
        }
    }
}

fn describe_start(texts: DocumentTexts<'_>) -> EventDescription {
    let mut out = EventDescription::new(TimelineLane::Session, LaneChange::Begins, "The session starts.");
    out.add_quoted("Request", texts.quoted("request_text"));
    out.add(texts.summary());
    out
}

fn describe_completion(texts: DocumentTexts<'_>) -> EventDescription {
    let mut out = end_of_session("completed", StepResult::Succeeded);
    out.add(texts.summary());
    out.add_quoted("Result", texts.quoted("output_summary"));
    out
}

fn describe_error(texts: DocumentTexts<'_>) -> EventDescription {
    let details: Vec<_> =
        ["error_category", "error_code"].into_iter().filter_map(|name| texts.text(name)).collect();
    let how = match &*details {
        [] => "error".to_owned(),
        details => format!("error ({})", short_name(&details.join(", "))),
    };
    let mut out = end_of_session(&how, StepResult::Failed);
    out.add(ended_by(texts));
    out.add(texts.summary());
    out.add_quoted("What to do", texts.quoted("remediation_hint"));
    out
}

fn describe_cancellation(texts: DocumentTexts<'_>) -> EventDescription {
    let by = texts.text("cancelled_by");
    let how =
        by.as_deref().map_or_else(|| "cancelled".to_owned(), |by| format!("cancelled by {}", short_name(by)));
    let is_timeout = by.as_deref() == Some("timeout");
    let mut out = end_of_session(&how, if is_timeout { StepResult::TimedOut } else { StepResult::Stopped });
    out.add(ended_by(texts));
    out.add_quoted("Reason", texts.quoted("cancellation_reason"));
    out.add(texts.summary());
    out.add_quoted("Completed before the cancellation", texts.quoted("partial_result"));
    out
}

fn end_of_session(how: &str, result: StepResult) -> EventDescription {
    EventDescription::new(TimelineLane::Session, LaneChange::Ends, format!("The session ends: {how}."))
        .named("", how)
        .with_result(Some(result))
}

/// Returns who ended the session, if the hub confirms it. Without this, `cancelled_by` is only the agent's claim.
fn ended_by(texts: DocumentTexts<'_>) -> Option<String> {
    match &*texts.hub_notes().text("ended_by")? {
        "user" => Some("A person stopped it.".to_owned()),
        "hub" => Some("The hub ended it, because the agent disappeared.".to_owned()),
        other => Some(format!("It was ended by {}.", short_name(other))),
    }
}

fn describe_state(from: &AgentState, to: &AgentState, texts: DocumentTexts<'_>) -> EventDescription {
    let sentence = format!("From {} to {}.", short_name(from.as_str()), short_name(to.as_str()));
    let mut out = EventDescription::new(TimelineLane::State, LaneChange::Instant, sentence)
        .named(from.as_str(), short_name(to.as_str()));
    out.add(texts.summary());
    out
}

fn describe_progress(is_extension: bool, texts: DocumentTexts<'_>) -> EventDescription {
    if is_extension {
        let mut out = EventDescription::new(
            TimelineLane::Progress,
            LaneChange::Instant,
            "The person has more time to answer.",
        );
        out.add(texts.summary());
        return out;
    }
    let progress = texts.object("progress");
    let percent = progress
        .0
        .and_then(|value| value.member("percent")?.as_number())
        .map(|percent| format!("{:.0} percent", percent.as_f64()));
    let step = match (progress.number("step"), progress.number("total_steps")) {
        (Some(step), Some(total)) => Some(format!("step {step} of {total}")),
        (Some(step), None) => Some(format!("step {step}")),
        _ => None,
    };
    let eta = texts.number("eta_ms").map(|eta| format!("{} left", format_duration(eta)));
    let parts: Vec<_> = [percent, step, eta].into_iter().flatten().collect();
    let sentence = if parts.is_empty() { "Progress.".to_owned() } else { format!("{}.", parts.join(", ")) };
    let mut out = EventDescription::new(TimelineLane::Progress, LaneChange::Instant, sentence);
    let (description, summary) = (progress.quoted("description"), texts.summary());
    let is_repeated = description == summary;
    out.add(description);
    out.add(summary.filter(|_| !is_repeated));
    out
}

fn describe_tool_end(tool: &str, call_id: Option<&str>, texts: DocumentTexts<'_>) -> EventDescription {
    let status = texts.text("status");
    let (how, result) = match status.as_deref() {
        Some("success") => ("succeeded".to_owned(), Some(StepResult::Succeeded)),
        Some("error") => ("failed".to_owned(), Some(StepResult::Failed)),
        Some("timeout") => ("timed out".to_owned(), Some(StepResult::TimedOut)),
        Some(other) => (format!("ended with the unknown status {}", short_name(other)), None),
        None => ("ended without a status".to_owned(), None),
    };
    let duration = texts
        .number("duration_ms")
        .map(|millis| format!(" after {}", format_duration(millis)))
        .unwrap_or_default();
    let name = tool_name(tool, call_id);
    let mut out =
        EventDescription::new(TimelineLane::Tool, LaneChange::Ends, format!("{name} {how}{duration}."))
            .named(call_id.unwrap_or(tool), short_name(tool))
            .with_result(result);
    out.add_quoted("Error", texts.quoted("error_message"));
    out.add(texts.summary());
    out
}

fn describe_confirmation(
    question: &Confirmation<Cow<'_, str>>,
    texts: DocumentTexts<'_>,
) -> EventDescription {
    let action = texts.quoted("action").unwrap_or_default();
    let mut out = EventDescription::new(
        TimelineLane::Question,
        LaneChange::Begins,
        format!("Permission requested: {action}"),
    )
    .named(&*question.token, "");
    out.add_quoted("Consequence", texts.quoted("consequence"));
    out.add(texts.text("risk_level").map(|risk| format!("Risk: {}.", short_name(&risk))));
    out.add((question.irreversible == Some(true)).then(|| "This cannot be undone.".to_owned()));
    out.add_quoted("In the agent's words", texts.summary());
    let replies = texts.names("allowed_replies");
    out.add((!replies.is_empty()).then(|| format!("Allowed replies: {}.", replies.join(", "))));
    out.add(Some(format!("Time to answer: {}.", format_seconds(question.timeout_seconds))));
    out.add(
        texts
            .text("default_decision")
            .map(|decision| format!("Without an answer: {}.", short_name(&decision))),
    );
    out
}

fn describe_clarification(
    question: &Clarification<Cow<'_, str>>,
    texts: DocumentTexts<'_>,
) -> EventDescription {
    let asked = texts.quoted("question").unwrap_or_default();
    let mut out =
        EventDescription::new(TimelineLane::Question, LaneChange::Begins, format!("The agent asks: {asked}"))
            .named(&*question.token, "");
    out.add_quoted("Context", texts.quoted("context"));
    let choices: Vec<_> = texts
        .items("choices")
        .filter_map(|choice| match (choice.quoted("label"), choice.text("value")) {
            (Some(label), Some(value)) => Some(format!("{label} ({})", short_name(&value))),
            (label, value) => label.or(value),
        })
        .collect();
    out.add((!choices.is_empty()).then(|| format!("Choices: {}.", choices.join(", "))));
    out.add_quoted("In the agent's words", texts.summary());
    out.add(Some(format!("Time to answer: {}.", format_seconds(question.timeout_seconds))));
    out.add_quoted("Without an answer", texts.quoted("default_response"));
    out
}

fn describe_handoff(texts: DocumentTexts<'_>) -> EventDescription {
    let recipient = match texts.text("target_kind").as_deref() {
        Some("human") => "a person".to_owned(),
        Some("specialist_agent") => "a specialist agent".to_owned(),
        Some("escalation_queue") => "an escalation queue".to_owned(),
        Some(other) => short_name(other),
        None => "someone else".to_owned(),
    };
    let token = texts.hub_notes().object("handoff").raw_text("reply_token");
    // Without a token, the event only informs listeners: nobody can answer it, so it does not last.
    let change = if token.is_some() { LaneChange::Begins } else { LaneChange::Instant };
    let sentence = format!("The agent hands over to {recipient}.");
    let mut out = EventDescription::new(TimelineLane::Handoff, change, sentence)
        .named(token.unwrap_or_default(), format!("to {recipient}"));
    out.add_quoted("Reason", texts.quoted("reason"));
    out.add(texts.summary());
    out.add(texts.text("urgency_for_handoff").map(|urgency| format!("Urgency: {}.", short_name(&urgency))));
    out.add(texts.text("target_uri").map(|uri| format!("Recipient: {}.", short_name(&uri))));
    out
}

fn format_seconds(seconds: u64) -> String {
    format_duration(i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(1000))
}

fn tool_name(tool: &str, call_id: Option<&str>) -> String {
    match call_id {
        Some(call_id) => format!("{} ({})", short_name(tool), short_name(call_id)),
        None => short_name(tool),
    }
}
