//! Composes the sentences of announcements.

use std::collections::HashSet;

use aaep::event::*;
use aaep::json::{JsonKind, Tape};
use seal::UnixMillis;
use unicode_normalization::char::is_combining_mark;

use super::question::{ListenerQuestion, QuestionBody};
use crate::announcement_text::TextPart::{self, Agent, Composed, Sayso};
use crate::{AnnouncementText, Phrases, sanitize};

pub(super) fn agent_name(phrases: &Phrases, event: &Event) -> String {
    let producer = &event.envelope.producer;
    display_name(phrases, producer.agent_name.as_deref().unwrap_or(&producer.agent_id))
}

/// Makes a name or an id short and safe to print.
pub(super) fn display_name(phrases: &Phrases, name: &str) -> String {
    let mut name = sanitize(name, true);
    if name.chars().count() > MAX_NAME_CHARS {
        name = name.chars().take(MAX_NAME_CHARS).collect();
    }
    if name.is_empty() { phrases.the_agent.to_owned() } else { name }
}

/// Maximum length of an agent's name, in characters. A longer one is cut.
const MAX_NAME_CHARS: usize = 80;
/// Maximum length of a session's topic, in characters. It is cut between two words.
const MAX_TOPIC_CHARS: usize = 120;

/// Returns the start of a text, as a short description, without a full stop at its end.
pub(super) fn topic_excerpt(text: &str) -> String {
    let text = text.trim().trim_end_matches('.');
    let Some((end, _)) = text.char_indices().nth(MAX_TOPIC_CHARS) else { return text.to_owned() };
    let (start, _) = text.split_at(end);
    let excerpt = start.rsplit_once(char::is_whitespace).map_or(start, |(words, _)| words);
    format!("{}…", excerpt.trim_end_matches(['.', ',', ';', ':']))
}

pub(super) fn text_direction(event: &Event) -> TextDirection {
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

/// Returns the agent's summary of the event for a verbosity, as one sanitized line.
pub(super) fn summary_line(payload: &Payload, verbosity: &Verbosity) -> Option<String> {
    payload.summary(verbosity).map(|text| sanitize(text, true)).filter(|text| !text.is_empty())
}

/// Joins sentences and adds a full stop to each one that lacks it.
pub(super) fn join_sentences(parts: &[TextPart<'_>]) -> AnnouncementText {
    AnnouncementText::from_sentences(parts)
}

/// Returns how a session was cancelled. Only the hub knows that a person stopped it; an agent can merely say so.
pub(super) fn cancelled_text(
    phrases: &Phrases,
    agent: &str,
    by: &CancelledBy,
    is_ended_by_person: bool,
) -> String {
    match by {
        _ if is_ended_by_person => phrases.session_stopped_by_person(agent),
        CancelledBy::User => phrases.session_reports_stop(agent),
        CancelledBy::Producer => phrases.session_stopped_itself(agent),
        CancelledBy::Timeout => phrases.session_stopped_by_time(agent),
        _ => phrases.session_stopped(agent),
    }
}

pub(super) fn retry_advice(phrases: &Phrases, error: &SessionErrored) -> &'static str {
    match error.error_category {
        ErrorCategory::Transient => phrases.retry_may_help,
        ErrorCategory::Permanent => phrases.retry_will_not_help,
        ErrorCategory::RequiresUser => phrases.action_required,
        _ => "",
    }
}

pub(super) fn state_text(phrases: &Phrases, agent: &str, state: &AgentState) -> String {
    match state {
        AgentState::Idle => phrases.state_idle(agent),
        AgentState::Thinking => phrases.state_thinking(agent),
        AgentState::CallingTool => phrases.state_calling(agent),
        AgentState::WritingOutput => phrases.state_writing(agent),
        AgentState::AwaitingInput => phrases.state_waiting(agent),
        AgentState::Deciding => phrases.state_deciding(agent),
        AgentState::HandingOff => phrases.state_handing_off(agent),
        other => phrases.state_other(agent, &sanitize(other.as_str(), true)),
    }
}

pub(super) fn tool_result_text(
    phrases: &Phrases,
    done: &ToolCompleted,
    summary: Option<&str>,
) -> AnnouncementText {
    let tool = sanitize(done.tool.as_str(), true).replace('_', " ");
    let ended = match done.status {
        ToolStatus::Success => phrases.tool_completed(&tool),
        ToolStatus::Error => phrases.tool_failed(&tool),
        ToolStatus::Timeout => phrases.tool_timed_out(&tool),
        _ => phrases.tool_ended(&tool),
    };
    let failed = done.status != ToolStatus::Success;
    let error = done.error_message.as_deref().map(|text| sanitize(text, true)).unwrap_or_default();
    match summary {
        // If the summary contains the error message, the summary alone is enough.
        Some(summary) if failed && (error.is_empty() || !summary.contains(&error)) => {
            join_sentences(&[Sayso(&ended), Agent(summary), Agent(&error)])
        }
        Some(summary) => join_sentences(&[Agent(summary)]),
        None => join_sentences(&[Sayso(&ended), Agent(&error)]),
    }
}

pub(super) fn progress_text(phrases: &Phrases, update: &ProgressUpdated) -> AnnouncementText {
    let progress = &update.progress;
    let description = progress.description.as_deref().map(|text| sanitize(text, true)).unwrap_or_default();
    let step = match (progress.step, progress.total_steps) {
        (Some(step), Some(total)) => phrases.step_of(step, total),
        (Some(step), None) => phrases.step(step),
        _ => String::new(),
    };
    let percent = progress.percent.map(|percent| phrases.percent(&format!("{percent:.0}")));
    join_sentences(&[Agent(&description), Sayso(&step), Sayso(percent.as_deref().unwrap_or_default())])
}

pub(super) fn handoff_text(phrases: &Phrases, agent: &str, request: &HandoffRequested) -> String {
    match request.target_kind {
        HandoffTarget::Human => phrases.handoff_to_person(agent),
        HandoffTarget::SpecialistAgent => phrases.handoff_to_agent(agent),
        HandoffTarget::EscalationQueue => phrases.handoff_to_queue(agent),
        _ => phrases.handoff_to_other(agent),
    }
}

/// Returns one line for an event that this version does not know or cannot read.
pub(super) fn unknown_event_text(phrases: &Phrases, event: &Event) -> AnnouncementText {
    let text = event.to_json();
    let mut tape = Tape::default();
    let summary = tape.read(&text).ok().and_then(|doc| {
        let found = ["summary_normal", "summary_terse", "action", "question", "reason"]
            .into_iter()
            .filter_map(|name| doc.root().member(name))
            .find(|value| value.kind() == JsonKind::Text)?;
        found.text().map(|text| sanitize(&text, true))
    });
    let agent = agent_name(phrases, event);
    let kind = sanitize(event.envelope.event_type.as_str(), true);
    let what = match &event.payload {
        Payload::Malformed(_) => phrases.sent_malformed(&agent, &kind),
        _ => phrases.sent_unknown(&agent, &kind),
    };
    match summary {
        Some(summary) => join_sentences(&[Sayso(&what), Sayso(phrases.event_says), Agent(&summary)]),
        None => what.into(),
    }
}

/// Returns the lines of a question: the question first, the possible answers last.
pub(super) fn question_text(
    phrases: &Phrases,
    question: &ListenerQuestion,
    open_count: usize,
    verbosity: &Verbosity,
    now: UnixMillis,
) -> AnnouncementText {
    let mut lines = question_lines(phrases, question, verbosity);
    if question.is_dangerously_unbound() {
        lines.push(phrases.answer_not_bound.into());
    }
    let time_left = phrases.time_left(&duration_text(phrases, question.remaining_ms(now)));
    lines.push(join_sentences(&[Sayso(&time_left), Composed(&default_outcome_text(phrases, question))]));
    lines.push(if open_count > 1 {
        join_sentences(&[
            Sayso(&phrases.several_open(open_count)),
            Sayso(&answer_instructions(phrases, question, Some(question.number))),
        ])
    } else {
        answer_instructions(phrases, question, None).into()
    });
    AnnouncementText::from_lines(&lines)
}

/// Returns the text of a recorded question, which cannot be answered any more.
pub(super) fn replayed_question_text(
    phrases: &Phrases,
    question: &ListenerQuestion,
    verbosity: &Verbosity,
) -> AnnouncementText {
    let mut lines = question_lines(phrases, question, verbosity);
    let timeout_ms = i64::try_from(question.timeout_seconds).unwrap_or(i64::MAX).saturating_mul(1000);
    let time_limit = phrases.time_limit_was(&duration_text(phrases, timeout_ms));
    lines.push(join_sentences(&[Sayso(&time_limit), Composed(&default_outcome_text(phrases, question))]));
    lines.push(phrases.recording_not_answerable.into());
    AnnouncementText::from_lines(&lines)
}

fn question_lines(
    phrases: &Phrases,
    question: &ListenerQuestion,
    verbosity: &Verbosity,
) -> Vec<AnnouncementText> {
    let number = question.number;
    let agent = &question.agent_name;
    let mut lines = Vec::new();
    match &question.body {
        QuestionBody::Confirmation { summary, action, consequence, .. } => {
            let label = phrases.question_label(number, agent);
            let danger = risk_text(phrases, question);
            match summary {
                Some(summary)
                    if *verbosity != Verbosity::Terse
                        && adds_information(
                            summary,
                            &[action.as_str(), consequence.as_str(), danger.as_str()],
                        ) =>
                {
                    lines.push(join_sentences(&[Sayso(&label), Agent(summary)]));
                    lines.push(join_sentences(&[Sayso(phrases.action_label), Agent(action)]));
                }
                _ => lines.push(join_sentences(&[Sayso(&label), Agent(action)])),
            }
            // The content of a confirmation is never omitted (AAEP-10.1.3-2), but it is not repeated.
            if consequence != action {
                lines.push(join_sentences(&[Sayso(phrases.consequence_label), Agent(consequence)]));
            }
            // The agent's text may differ from the call that the answer is bound to, so the person hears both.
            match question.call.as_ref().filter(|call| call.is_bound) {
                Some(call) if call.is_short() => lines.push(phrases.exact_call(&call.text).into()),
                Some(_) => lines.push(phrases.exact_call_in_details.into()),
                None => {}
            }
            lines.push(danger.into());
        }
        QuestionBody::Clarification { question: asked, context, choices, .. } => {
            lines.push(join_sentences(&[Sayso(&phrases.question_label(number, agent)), Agent(asked)]));
            if let Some(context) = context.as_deref().filter(|_| *verbosity != Verbosity::Terse) {
                lines.push(join_sentences(&[Sayso(phrases.question_reason_label), Agent(context)]));
            }
            for (index, (_, label)) in choices.iter().enumerate() {
                lines.push(join_sentences(&[Sayso(&phrases.choice(index + 1)), Agent(label)]));
            }
        }
    }
    lines
}

/// Whether a summary contains a word that the other texts of the question lack. Words such as "May I" do not count.
fn adds_information(summary: &str, others: &[&str]) -> bool {
    let known: HashSet<String> = others.iter().copied().flat_map(words).collect();
    words(summary).any(|word| !known.contains(&word) && !QUESTION_WORDS.contains(&word.as_str()))
}

/// Articles, pronouns and words that turn an action into a question, in the supported languages.
const QUESTION_WORDS: [&str; 21] = [
    "may", "i", "shall", "should", "can", "could", "please", "it", "this", "a", "an", "the", "puedo", "debo",
    "el", "la", "un", "una", "ṣé", "kí", "n",
];

fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|letter: char| !letter.is_alphanumeric() && !is_combining_mark(letter))
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
}

/// Returns the risk, and whether the action can be undone. No text of the agent replaces the statement that it cannot be undone,
/// unless the consequence is nothing but this sentence.
fn risk_text(phrases: &Phrases, question: &ListenerQuestion) -> String {
    let QuestionBody::Confirmation { risk, reversibility, consequence, .. } = &question.body else {
        return String::new();
    };
    let risk = match risk {
        Some(RiskLevel::Low) => phrases.risk_low,
        Some(RiskLevel::Medium) => phrases.risk_medium,
        Some(RiskLevel::High) => phrases.risk_high,
        _ => phrases.risk_unknown,
    };
    let reversibility = match reversibility {
        Some(Reversibility::Irreversible) if consequence.trim() == phrases.irreversible => "",
        Some(Reversibility::Irreversible) => phrases.irreversible,
        Some(Reversibility::ReversibleWithEffort) => phrases.hard_to_undo,
        Some(Reversibility::Reversible) => phrases.can_be_undone,
        _ => phrases.reversibility_unknown,
    };
    join_sentences(&[Sayso(risk), Sayso(reversibility)]).to_string()
}

pub(super) fn default_outcome_text(phrases: &Phrases, question: &ListenerQuestion) -> AnnouncementText {
    match &question.body {
        QuestionBody::Confirmation { default_decision: Decision::Accept, .. } => {
            phrases.default_is_accept.into()
        }
        QuestionBody::Confirmation { .. } => phrases.default_is_reject.into(),
        QuestionBody::Clarification { default_response: Some(default), .. } if !default.is_empty() => {
            join_sentences(&[Sayso(phrases.default_answer_label), Agent(default)])
        }
        QuestionBody::Clarification { .. } => phrases.default_is_no_answer.into(),
    }
}

/// Describes what can be typed. Includes the question's number if other questions are open.
fn answer_instructions(phrases: &Phrases, question: &ListenerQuestion, number: Option<u32>) -> String {
    match &question.body {
        QuestionBody::Confirmation { may_accept, may_reject, .. } => match (may_accept, may_reject, number) {
            (true, true, None) if question.requires_explicit_yes() => phrases.type_full_yes_or_no.to_owned(),
            (true, true, Some(number)) if question.requires_explicit_yes() => {
                phrases.type_full_yes_or_no_to(number)
            }
            (true, true, None) => phrases.type_yes_or_no.to_owned(),
            (true, true, Some(number)) => phrases.type_yes_or_no_to(number),
            (true, false, None) => phrases.only_yes_accepted.to_owned(),
            (true, false, Some(number)) => phrases.only_yes_accepted_to(number),
            (false, _, None) => phrases.only_no_accepted.to_owned(),
            (false, _, Some(number)) => phrases.only_no_accepted_to(number),
        },
        QuestionBody::Clarification { choices, .. } => {
            let mut options = Vec::new();
            if question.accepts(&ResponseKind::MultipleChoice) && !choices.is_empty() {
                options.push(phrases.option_choice);
            }
            if question.accepts(&ResponseKind::YesNo) {
                options.push(phrases.option_yes_no);
            }
            if question.accepts(&ResponseKind::Numeric) {
                options.push(phrases.option_number);
            }
            if question.accepts(&ResponseKind::FreeText) {
                options.push(phrases.option_free_text);
            }
            match (options.split_last(), number) {
                (None, _) => phrases.not_answerable_by_typing.to_owned(),
                (Some((only, [])), None) => phrases.type_option(only),
                (Some((only, [])), Some(number)) => phrases.type_option_to(number, only),
                (Some((last, others)), None) => phrases.type_options(&others.join(", "), last),
                (Some((last, others)), Some(number)) => {
                    phrases.type_options_to(number, &others.join(", "), last)
                }
            }
        }
    }
}

/// Formats a duration in round numbers. Adds up to 5 percent (at most 5 seconds) before it rounds down, so that 119 seconds become
/// "2 minutes".
pub(super) fn duration_text(phrases: &Phrases, millis: i64) -> String {
    let seconds = millis.max(0).saturating_add(999) / 1000;
    let seconds = seconds + (seconds / 20).min(5);
    match seconds {
        // Short times are not rounded to five seconds.
        0..=20 => phrases.seconds(seconds),
        21..=119 => phrases.seconds(seconds / 5 * 5),
        120..=7199 => phrases.minutes(seconds / 60),
        _ => phrases.hours(seconds / 3600),
    }
}
