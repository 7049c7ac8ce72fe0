//! Sentences for people.

use aaep::event::*;
use aaep::json::{Kind as JsonKind, Tape};

use super::question::{Question, Subject};
use crate::plain;

/// The agent's name for people.
pub(super) fn agent(event: &Event) -> String {
    let producer = &event.envelope.producer;
    let name = producer.agent_name.as_deref().unwrap_or(&producer.agent_id);
    let mut name = plain(name, true);
    if name.chars().count() > NAME {
        name = name.chars().take(NAME).collect();
    }
    if name.is_empty() { "The agent".to_owned() } else { name }
}

/// A name that is longer is cut.
const NAME: usize = 80;

pub(super) fn direction(event: &Event) -> TextDirection {
    let hints = event.envelope.localization_hints.as_ref();
    hints.and_then(|hints| hints.text_direction.clone()).unwrap_or(TextDirection::LeftToRight)
}

pub(super) fn language(event: &Event) -> Option<Box<str>> {
    if let Payload::OutputStreaming(chunk) = &event.payload
        && let Some(language) = &chunk.language
    {
        return Some(language.as_str().into());
    }
    event.envelope.localization_hints.as_ref()?.primary_language.as_deref().map(Into::into)
}

/// The summary for a verbosity, or the nearest that there is.
macro_rules! summary {
    ($payload:expr, $normal:expr, $verbosity:expr) => {{
        let normal: Option<&str> = $normal;
        let terse = $payload.summary_terse.as_deref();
        let detailed = $payload.summary_detailed.as_deref();
        match $verbosity {
            Verbosity::Terse => terse.or(normal).or(detailed),
            Verbosity::Detailed => detailed.or(normal).or(terse),
            _ => normal.or(terse).or(detailed),
        }
    }};
}

/// What the agent says of the event, for a verbosity.
pub(super) fn summary<'e>(payload: &'e Payload, verbosity: &Verbosity) -> Option<&'e str> {
    match payload {
        Payload::SessionStarted(it) => summary!(it, Some(&it.summary_normal), verbosity),
        Payload::SessionCompleted(it) => summary!(it, Some(&it.summary_normal), verbosity),
        Payload::SessionErrored(it) => summary!(it, Some(&it.summary_normal), verbosity),
        Payload::SessionCancelled(it) => summary!(it, Some(&it.summary_normal), verbosity),
        Payload::ToolInvoked(it) => summary!(it, Some(&it.summary_normal), verbosity),
        Payload::StateChanged(it) => summary!(it, it.summary_normal.as_deref(), verbosity),
        Payload::ProgressUpdated(it) => summary!(it, it.summary_normal.as_deref(), verbosity),
        Payload::ToolCompleted(it) => summary!(it, it.summary_normal.as_deref(), verbosity),
        Payload::AwaitingConfirmation(it) => summary!(it, it.summary_normal.as_deref(), verbosity),
        Payload::AwaitingClarification(it) => summary!(it, it.summary_normal.as_deref(), verbosity),
        Payload::HandoffRequested(it) => summary!(it, it.summary_normal.as_deref(), verbosity),
        _ => None,
    }
}

/// The same as one harmless line.
pub(super) fn said(payload: &Payload, verbosity: &Verbosity) -> Option<String> {
    summary(payload, verbosity).map(|text| plain(text, true)).filter(|text| !text.is_empty())
}

/// Sentences behind each other; each ends with a stop of its own.
pub(super) fn sentences(parts: &[&str]) -> String {
    let mut out = String::new();
    for part in parts.iter().map(|part| part.trim()).filter(|part| !part.is_empty()) {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(part);
        if out.chars().next_back().is_some_and(char::is_alphanumeric) {
            out.push('.');
        }
    }
    out
}

pub(super) fn cancelled(agent: &str, by: &CancelledBy) -> String {
    match by {
        CancelledBy::User => format!("{agent} was stopped by a person."),
        CancelledBy::Producer => format!("{agent} has stopped by itself."),
        CancelledBy::Timeout => format!("{agent} was stopped because its time was over."),
        _ => format!("{agent} was stopped."),
    }
}

pub(super) fn errored(error: &SessionErrored) -> &'static str {
    match error.error_category {
        ErrorCategory::Transient => "Trying again is likely to work.",
        ErrorCategory::Permanent => "Trying again will not work.",
        ErrorCategory::RequiresUser => "You have to do something first.",
        _ => "",
    }
}

/// What a state is, as the end of a sentence.
pub(super) fn state(name: &str) -> String {
    match name {
        "idle" => "is idle".to_owned(),
        "thinking" => "is thinking".to_owned(),
        "calling_tool" => "is using a tool".to_owned(),
        "writing_output" => "is writing".to_owned(),
        "awaiting_input" => "waits for an answer".to_owned(),
        "deciding" => "is deciding what to do".to_owned(),
        "handing_off" => "is handing over".to_owned(),
        other => format!("is in a state called {}", plain(other, true)),
    }
}

pub(super) fn tool_done(done: &ToolCompleted, summary: Option<&str>) -> String {
    let tool = plain(done.tool.as_str(), true);
    let ended = match done.status {
        ToolStatus::Success => format!("The tool {tool} is done."),
        ToolStatus::Error => format!("The tool {tool} has failed."),
        ToolStatus::Timeout => format!("The tool {tool} took too long."),
        _ => format!("The tool {tool} has ended."),
    };
    let failed = done.status != ToolStatus::Success;
    let why = done.error_message.as_deref().map(|text| plain(text, true)).unwrap_or_default();
    match summary {
        Some(summary) if failed => sentences(&[&ended, summary, &why]),
        Some(summary) => sentences(&[summary]),
        None => sentences(&[&ended, &why]),
    }
}

pub(super) fn progress(update: &ProgressUpdated) -> String {
    let progress = &update.progress;
    let mut parts = Vec::new();
    if let Some(description) = &progress.description {
        parts.push(plain(description, true));
    }
    match (progress.step, progress.total_steps) {
        (Some(step), Some(total)) => parts.push(format!("Step {step} of {total}.")),
        (Some(step), None) => parts.push(format!("Step {step}.")),
        _ => {}
    }
    if let Some(percent) = progress.percent {
        parts.push(format!("{percent:.0} percent."));
    }
    sentences(&parts.iter().map(String::as_str).collect::<Vec<_>>())
}

pub(super) fn handoff(agent: &str, request: &HandoffRequested) -> String {
    let target = match request.target_kind {
        HandoffTarget::Human => "a person",
        HandoffTarget::SpecialistAgent => "another agent",
        HandoffTarget::EscalationQueue => "a queue where somebody will take it up",
        _ => "somebody else",
    };
    format!("{agent} cannot go on alone and hands over to {target}.")
}

/// One line for an event that this version does not know, or cannot read.
pub(super) fn unknown(event: &Event) -> String {
    let text = event.to_json();
    let mut tape = Tape::default();
    let summary = tape.read(&text).ok().and_then(|doc| {
        let found = ["summary_normal", "summary_terse", "action", "question", "reason"]
            .into_iter()
            .filter_map(|name| doc.root().member(name))
            .find(|value| value.kind() == JsonKind::Text)?;
        found.text().map(|text| plain(&text, true))
    });
    let agent = agent(event);
    let kind = plain(event.envelope.event_type.as_str(), true);
    let what = match &event.payload {
        Payload::Malformed(_) => format!("{agent} sent a {kind} that could not be understood."),
        _ => format!("{agent} sent a {kind}, which is not known here."),
    };
    match summary {
        Some(summary) => sentences(&[&what, "It says:", &summary]),
        None => what,
    }
}

/// A question, in lines: what is asked first, what can be typed last.
pub(super) fn question(question: &Question, verbosity: &Verbosity, now: i64) -> String {
    let mut lines = asked(question, verbosity);
    lines.push(format!("You have {}. {}", duration(question.remaining(now)), without_answer(question)));
    lines.push(how_to_answer(question));
    lines.join("\n")
}

/// A question of a recording: it cannot be answered any more.
pub(super) fn past_question(question: &Question, verbosity: &Verbosity) -> String {
    let mut lines = asked(question, verbosity);
    let time = i64::try_from(question.timeout_seconds).unwrap_or(i64::MAX).saturating_mul(1000);
    lines.push(format!("There were {} to answer. {}", duration(time), without_answer(question)));
    lines.push("This is a recording: it cannot be answered now.".to_owned());
    lines.join("\n")
}

/// What is asked, in lines.
fn asked(question: &Question, verbosity: &Verbosity) -> Vec<String> {
    let number = question.number;
    let agent = &question.agent;
    let mut lines = Vec::new();
    match &question.subject {
        Subject::Confirmation { summary, action, consequence, .. } => {
            lines.push(match summary {
                Some(summary) if *verbosity != Verbosity::Terse && summary != action => {
                    sentences(&[&format!("Question {number}, from {agent}:"), summary])
                }
                _ => format!("Question {number}, from {agent}."),
            });
            lines.push(sentences(&["What it would do:", action]));
            lines.push(sentences(&["What follows from it:", consequence]));
            lines.push(danger(question));
        }
        Subject::Clarification { question: asked, context, choices, .. } => {
            lines.push(sentences(&[&format!("Question {number}, from {agent}:"), asked]));
            if let Some(context) = context.as_deref().filter(|_| *verbosity != Verbosity::Terse) {
                lines.push(sentences(&["Why it asks:", context]));
            }
            for (at, (_, label)) in choices.iter().enumerate() {
                lines.push(sentences(&[&format!("Choice {}:", at + 1), label]));
            }
        }
    }
    lines
}

/// How bad it could be.
pub(super) fn danger(question: &Question) -> String {
    let Subject::Confirmation { risk, reversibility, .. } = &question.subject else { return String::new() };
    let risk = match risk {
        Some(RiskLevel::Low) => "The risk is low",
        Some(RiskLevel::Medium) => "The risk is medium",
        Some(RiskLevel::High) => "The risk is high",
        _ => "The agent does not say how great the risk is",
    };
    match reversibility {
        Some(Reversibility::Irreversible) => format!("{risk}, and it can never be undone."),
        Some(Reversibility::ReversibleWithEffort) => format!("{risk}, and it is hard to undo."),
        Some(Reversibility::Reversible) => format!("{risk}. It can be undone."),
        _ => format!("{risk}. Whether it can be undone is not said."),
    }
}

pub(super) fn without_answer(question: &Question) -> String {
    match &question.subject {
        Subject::Confirmation { default: Decision::Accept, .. } => "Without an answer it is done.".to_owned(),
        Subject::Confirmation { .. } => "Without an answer it is not done.".to_owned(),
        Subject::Clarification { default: Some(default), .. } if !default.is_empty() => {
            sentences(&["Without an answer the agent takes this:", default])
        }
        Subject::Clarification { .. } => "Without an answer the agent goes on without one.".to_owned(),
    }
}

pub(super) fn how_to_answer(question: &Question) -> String {
    match &question.subject {
        Subject::Confirmation { allowed, .. } => match allowed {
            (true, true) if question.is_grave() => {
                "Type the whole word accept or yes to allow it, or reject or no to refuse it.".to_owned()
            }
            (true, true) => "Type yes or 1 to allow it, no or 2 to refuse it.".to_owned(),
            (true, false) => "Only a yes is taken. Type accept or yes to allow it.".to_owned(),
            (false, _) => "Only a no is taken. Type reject or no to refuse it.".to_owned(),
        },
        Subject::Clarification { choices, .. } => {
            let mut ways = Vec::new();
            if question.takes(&ResponseKind::MultipleChoice) && !choices.is_empty() {
                ways.push("the number of a choice");
            }
            if question.takes(&ResponseKind::YesNo) {
                ways.push("yes or no");
            }
            if question.takes(&ResponseKind::Numeric) {
                ways.push("a number");
            }
            if question.takes(&ResponseKind::FreeText) {
                ways.push("your answer in your own words");
            }
            match ways.split_last() {
                None => "It takes no answer that can be typed here.".to_owned(),
                Some((only, [])) => format!("Type {only}."),
                Some((last, others)) => format!("Type {}, or {last}.", others.join(", ")),
            }
        }
    }
}

/// How long, as people say it: never finer than anybody needs, and at most a twentieth more than there is.
pub(super) fn duration(millis: i64) -> String {
    let seconds = millis.max(0).saturating_add(999) / 1000;
    let seconds = seconds + (seconds / 20).min(5);
    let many =
        |count: i64, word: &str| if count == 1 { format!("1 {word}") } else { format!("{count} {word}s") };
    match seconds {
        0..=10 => many(seconds, "second"),
        11..=119 => many(seconds / 5 * 5, "second"),
        120..=7199 => many(seconds / 60, "minute"),
        _ => many(seconds / 3600, "hour"),
    }
}
