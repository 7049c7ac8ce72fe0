//! Sentences for people.

use aaep::event::*;
use aaep::json::{Kind as JsonKind, Tape};
use seal::UnixMillis;

use super::question::{Question, Subject};
use crate::{Phrases, plain};

pub(super) fn agent(phrases: &Phrases, event: &Event) -> String {
    let producer = &event.envelope.producer;
    let name = producer.agent_name.as_deref().unwrap_or(&producer.agent_id);
    let mut name = plain(name, true);
    if name.chars().count() > NAME {
        name = name.chars().take(NAME).collect();
    }
    if name.is_empty() { phrases.the_agent.to_owned() } else { name }
}

/// A name that is longer is cut.
const NAME: usize = 80;
/// Likewise what a session is about, between two words.
const ABOUT: usize = 120;

/// The beginning of a text, to know something again by it; without the stop at its end.
pub(super) fn beginning(text: &str) -> String {
    let text = text.trim().trim_end_matches('.');
    let Some((end, _)) = text.char_indices().nth(ABOUT) else { return text.to_owned() };
    let (start, _) = text.split_at(end);
    let whole = start.rsplit_once(char::is_whitespace).map_or(start, |(words, _)| words);
    format!("{}…", whole.trim_end_matches(['.', ',', ';', ':']))
}

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

/// What the agent says in an event, as it may stand among our words; nothing where both are of one language, so that nobody needs
/// to tell them apart.
pub(super) fn quotes(phrases: &Phrases, event: &Event) -> Option<Vec<String>> {
    let language = language(event)?;
    if phrases.speaks(&language) {
        return None;
    }
    if let Payload::OutputStreaming(chunk) = &event.payload {
        return Some(vec![plain(&chunk.chunk, false)]);
    }
    let text = event.to_json();
    let mut tape = Tape::default();
    let doc = tape.read(&text).ok()?;
    let root = doc.root();
    let said = |value: aaep::json::Value<'_>| value.text().map(|text| plain(&text, true));
    let mut all: Vec<_> = QUOTED.iter().filter_map(|name| said(root.member(name)?)).collect();
    all.extend(root.member("progress").and_then(|it| it.member("description")).and_then(said));
    let choices = root.member("choices");
    all.extend(choices.iter().flat_map(aaep::json::Value::items).filter_map(|it| said(it.member("label")?)));
    all.retain(|text| text.chars().any(char::is_alphanumeric));
    Some(all)
}

/// The members in which an agent says something.
const QUOTED: [&str; 11] = [
    "summary_detailed",
    "summary_normal",
    "summary_terse",
    "action",
    "consequence",
    "question",
    "context",
    "default_response",
    "reason",
    "remediation_hint",
    "error_message",
];

/// What the agent says of the event, for a verbosity, as one harmless line.
pub(super) fn said(payload: &Payload, verbosity: &Verbosity) -> Option<String> {
    payload.summary(verbosity).map(|text| plain(text, true)).filter(|text| !text.is_empty())
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

pub(super) fn cancelled(phrases: &Phrases, agent: &str, by: &CancelledBy) -> String {
    match by {
        CancelledBy::User => phrases.session_stopped_by_person(agent),
        CancelledBy::Producer => phrases.session_stopped_itself(agent),
        CancelledBy::Timeout => phrases.session_stopped_by_time(agent),
        _ => phrases.session_stopped(agent),
    }
}

pub(super) fn errored(phrases: &Phrases, error: &SessionErrored) -> &'static str {
    match error.error_category {
        ErrorCategory::Transient => phrases.try_again,
        ErrorCategory::Permanent => phrases.do_not_try_again,
        ErrorCategory::RequiresUser => phrases.you_must_act,
        _ => "",
    }
}

pub(super) fn state(phrases: &Phrases, agent: &str, state: &State) -> String {
    match state {
        State::Idle => phrases.state_idle(agent),
        State::Thinking => phrases.state_thinking(agent),
        State::CallingTool => phrases.state_calling(agent),
        State::WritingOutput => phrases.state_writing(agent),
        State::AwaitingInput => phrases.state_waiting(agent),
        State::Deciding => phrases.state_deciding(agent),
        State::HandingOff => phrases.state_handing_off(agent),
        other => phrases.state_other(agent, &plain(other.as_str(), true)),
    }
}

pub(super) fn tool_done(phrases: &Phrases, done: &ToolCompleted, summary: Option<&str>) -> String {
    let tool = plain(done.tool.as_str(), true).replace('_', " ");
    let ended = match done.status {
        ToolStatus::Success => phrases.tool_done(&tool),
        ToolStatus::Error => phrases.tool_failed(&tool),
        ToolStatus::Timeout => phrases.tool_took_too_long(&tool),
        _ => phrases.tool_ended(&tool),
    };
    let failed = done.status != ToolStatus::Success;
    let why = done.error_message.as_deref().map(|text| plain(text, true)).unwrap_or_default();
    match summary {
        // Who says why it failed has said all of it.
        Some(summary) if failed && (why.is_empty() || !summary.contains(&why)) => {
            sentences(&[&ended, summary, &why])
        }
        Some(summary) => sentences(&[summary]),
        None => sentences(&[&ended, &why]),
    }
}

pub(super) fn progress(phrases: &Phrases, update: &ProgressUpdated) -> String {
    let progress = &update.progress;
    let mut parts = Vec::new();
    if let Some(description) = &progress.description {
        parts.push(plain(description, true));
    }
    match (progress.step, progress.total_steps) {
        (Some(step), Some(total)) => parts.push(phrases.step_of(step, total)),
        (Some(step), None) => parts.push(phrases.step(step)),
        _ => {}
    }
    if let Some(percent) = progress.percent {
        parts.push(phrases.percent(&format!("{percent:.0}")));
    }
    sentences(&parts.iter().map(String::as_str).collect::<Vec<_>>())
}

pub(super) fn handoff(phrases: &Phrases, agent: &str, request: &HandoffRequested) -> String {
    match request.target_kind {
        HandoffTarget::Human => phrases.hands_to_person(agent),
        HandoffTarget::SpecialistAgent => phrases.hands_to_agent(agent),
        HandoffTarget::EscalationQueue => phrases.hands_to_queue(agent),
        _ => phrases.hands_to_somebody(agent),
    }
}

/// One line for an event that this version does not know, or cannot read.
pub(super) fn unknown(phrases: &Phrases, event: &Event) -> String {
    let text = event.to_json();
    let mut tape = Tape::default();
    let summary = tape.read(&text).ok().and_then(|doc| {
        let found = ["summary_normal", "summary_terse", "action", "question", "reason"]
            .into_iter()
            .filter_map(|name| doc.root().member(name))
            .find(|value| value.kind() == JsonKind::Text)?;
        found.text().map(|text| plain(&text, true))
    });
    let agent = agent(phrases, event);
    let kind = plain(event.envelope.event_type.as_str(), true);
    let what = match &event.payload {
        Payload::Malformed(_) => phrases.sent_malformed(&agent, &kind),
        _ => phrases.sent_unknown(&agent, &kind),
    };
    match summary {
        Some(summary) => sentences(&[&what, phrases.it_says, &summary]),
        None => what,
    }
}

/// A question, one of so many, in lines: what is asked first, what can be typed last.
pub(super) fn question(
    phrases: &Phrases,
    question: &Question,
    open: usize,
    verbosity: &Verbosity,
    now: UnixMillis,
) -> String {
    let mut lines = asked(phrases, question, verbosity);
    let left = phrases.you_have(&duration(phrases, question.remaining(now)));
    lines.push(format!("{left} {}", without_answer(phrases, question)));
    lines.push(if open > 1 {
        sentences(&[&phrases.several_open(open), &how_to_answer(phrases, question, Some(question.number))])
    } else {
        how_to_answer(phrases, question, None)
    });
    lines.join("\n")
}

/// A question of a recording: it cannot be answered any more.
pub(super) fn past_question(phrases: &Phrases, question: &Question, verbosity: &Verbosity) -> String {
    let mut lines = asked(phrases, question, verbosity);
    let time = i64::try_from(question.timeout_seconds).unwrap_or(i64::MAX).saturating_mul(1000);
    let there_were = phrases.there_were(&duration(phrases, time));
    lines.push(format!("{there_were} {}", without_answer(phrases, question)));
    lines.push(phrases.is_recording.to_owned());
    lines.join("\n")
}

fn asked(phrases: &Phrases, question: &Question, verbosity: &Verbosity) -> Vec<String> {
    let number = question.number;
    let agent = &question.agent;
    let mut lines = Vec::new();
    match &question.subject {
        Subject::Confirmation { summary, action, consequence, .. } => {
            lines.push(match summary {
                Some(summary) if *verbosity != Verbosity::Terse && !is_both(summary, action, consequence) => {
                    sentences(&[&phrases.question_asks(number, agent), summary])
                }
                _ => phrases.question_from(number, agent),
            });
            lines.push(sentences(&[phrases.what_it_would_do, action]));
            lines.push(sentences(&[phrases.what_follows, consequence]));
            lines.push(danger(phrases, question));
        }
        Subject::Clarification { question: asked, context, choices, .. } => {
            lines.push(sentences(&[&phrases.question_asks(number, agent), asked]));
            if let Some(context) = context.as_deref().filter(|_| *verbosity != Verbosity::Terse) {
                lines.push(sentences(&[phrases.why_it_asks, context]));
            }
            for (at, (_, label)) in choices.iter().enumerate() {
                lines.push(sentences(&[&phrases.choice(at + 1), label]));
            }
        }
    }
    lines
}

/// Whether a summary only says the action, or that and what follows from it: both come anyway.
fn is_both(summary: &str, action: &str, consequence: &str) -> bool {
    summary.strip_prefix(action).is_some_and(|rest| rest.is_empty() || rest.trim() == consequence)
}

pub(super) fn danger(phrases: &Phrases, question: &Question) -> String {
    let Subject::Confirmation { risk, reversibility, .. } = &question.subject else { return String::new() };
    let risk = match risk {
        Some(RiskLevel::Low) => phrases.risk_low,
        Some(RiskLevel::Medium) => phrases.risk_medium,
        Some(RiskLevel::High) => phrases.risk_high,
        _ => phrases.risk_unsaid,
    };
    match reversibility {
        Some(Reversibility::Irreversible) => phrases.undone_never(risk),
        Some(Reversibility::ReversibleWithEffort) => phrases.undone_hardly(risk),
        Some(Reversibility::Reversible) => phrases.undone_easily(risk),
        _ => phrases.undone_unsaid(risk),
    }
}

pub(super) fn without_answer(phrases: &Phrases, question: &Question) -> String {
    match &question.subject {
        Subject::Confirmation { default: Decision::Accept, .. } => phrases.without_answer_done.to_owned(),
        Subject::Confirmation { .. } => phrases.without_answer_not_done.to_owned(),
        Subject::Clarification { default: Some(default), .. } if !default.is_empty() => {
            sentences(&[phrases.without_answer_this, default])
        }
        Subject::Clarification { .. } => phrases.without_answer_on.to_owned(),
    }
}

/// What can be typed; with a number, where others are open too.
fn how_to_answer(phrases: &Phrases, question: &Question, number: Option<u32>) -> String {
    match &question.subject {
        Subject::Confirmation { allowed, .. } => match (allowed, number) {
            ((true, true), None) if question.is_grave() => phrases.answer_grave.to_owned(),
            ((true, true), Some(number)) if question.is_grave() => phrases.answer_grave_to(number),
            ((true, true), None) => phrases.answer_light.to_owned(),
            ((true, true), Some(number)) => phrases.answer_light_to(number),
            ((true, false), None) => phrases.answer_only_yes.to_owned(),
            ((true, false), Some(number)) => phrases.answer_only_yes_to(number),
            ((false, _), None) => phrases.answer_only_no.to_owned(),
            ((false, _), Some(number)) => phrases.answer_only_no_to(number),
        },
        Subject::Clarification { choices, .. } => {
            let mut ways = Vec::new();
            if question.takes(&ResponseKind::MultipleChoice) && !choices.is_empty() {
                ways.push(phrases.way_choice);
            }
            if question.takes(&ResponseKind::YesNo) {
                ways.push(phrases.way_yes_no);
            }
            if question.takes(&ResponseKind::Numeric) {
                ways.push(phrases.way_number);
            }
            if question.takes(&ResponseKind::FreeText) {
                ways.push(phrases.way_words);
            }
            match (ways.split_last(), number) {
                (None, _) => phrases.no_way.to_owned(),
                (Some((only, [])), None) => phrases.type_only(only),
                (Some((only, [])), Some(number)) => phrases.type_only_to(number, only),
                (Some((last, others)), None) => phrases.type_or(&others.join(", "), last),
                (Some((last, others)), Some(number)) => phrases.type_or_to(number, &others.join(", "), last),
            }
        }
    }
}

/// How long, as people say it: never finer than anybody needs, and at most a twentieth more than there is.
pub(super) fn duration(phrases: &Phrases, millis: i64) -> String {
    let seconds = millis.max(0).saturating_add(999) / 1000;
    let seconds = seconds + (seconds / 20).min(5);
    match seconds {
        // As much time again as little is, is heard as more.
        0..=20 => phrases.seconds(seconds),
        21..=119 => phrases.seconds(seconds / 5 * 5),
        120..=7199 => phrases.minutes(seconds / 60),
        _ => phrases.hours(seconds / 3600),
    }
}
