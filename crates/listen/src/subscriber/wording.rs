//! Composes the sentences of announcements.

use std::collections::HashSet;

use aaep::event::*;
use aaep::json::{JsonKind, Tape};
use seal::UnixMillis;
use unicode_normalization::char::is_combining_mark;

use super::question::{ListenerQuestion, QuestionBody};
use super::read_hub_extension;
use super::session_facts::{labelled, short_text};
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

/// Returns the URI that an event is about, if it is one.
pub(super) fn link(payload: &Payload) -> Option<&str> {
    let uri = match payload {
        Payload::SessionCompleted(done) => done.result_uri.as_deref(),
        Payload::SessionErrored(error) => error.error_uri.as_deref(),
        Payload::HandoffRequested(request) => request.target_uri.as_deref(),
        _ => None,
    };
    uri.filter(|uri| aaep::grammar::is_uri(uri))
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
    match (&error.error_category, error.recoverable) {
        (ErrorCategory::RequiresUser, _) => phrases.action_required,
        (_, Some(true)) | (ErrorCategory::Transient, None) => phrases.retry_may_help,
        (ErrorCategory::Permanent, _) | (ErrorCategory::Transient, Some(false)) => {
            phrases.retry_will_not_help
        }
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

/// Returns the words that the agent's author defined for this state, and their language: a language of the person if there is one,
/// otherwise the first. The agent chose the words,
/// even though the hub passes them on.
pub(super) fn own_state_words(
    event: &Event,
    change: &StateChanged,
    languages: &[String],
) -> Option<(String, String)> {
    let AgentState::Other(name) = &change.to_state else { return None };
    let states =
        read_hub_extension(event, |sayso| StateDefinition::read_list(&sayso.member("states")?).ok())?;
    let state = states.iter().find(|own| own.state == **name)?;
    let any = || state.words.first().map(|(tag, words)| (tag.as_str(), words.as_str()));
    let (language, words) = state.words_in(languages).or_else(any)?;
    Some((language.to_owned(), sanitize(words, true))).filter(|(_, words)| !words.is_empty())
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
    let error = done.error_message.as_deref().map(|text| sanitize(text, true)).unwrap_or_default();
    let Some(summary) = summary else { return join_sentences(&[Sayso(&ended), Agent(&error)]) };
    // If the summary contains the error message, the summary alone is enough.
    let is_error_said = !error.is_empty() && summary.contains(&error);
    let label = match done.status {
        _ if is_error_said || summary == ended => String::new(),
        ToolStatus::Success => String::new(),
        ToolStatus::Error => phrases.failed_label(""),
        ToolStatus::Timeout => phrases.not_finished_label(""),
        _ => ended,
    };
    let error = if is_error_said || done.status == ToolStatus::Success { "" } else { &error };
    join_sentences(&[Sayso(&label), Agent(summary), Agent(error)])
}

/// Returns the text about progress: the agent's summary or description, the step, the percentage and the remaining time. Numbers that
/// the agent's text contains are not repeated.
pub(super) fn progress_text(
    phrases: &Phrases,
    update: &ProgressUpdated,
    summary: &str,
    verbosity: &Verbosity,
) -> AnnouncementText {
    let progress = &update.progress;
    let description = progress.description.as_deref().map(|text| sanitize(text, true)).unwrap_or_default();
    let text = if summary.is_empty() { description.as_str() } else { summary };
    // At terse verbosity the agent's own text is enough.
    let adds_numbers = text.is_empty() || *verbosity != Verbosity::Terse;
    let is_new = |sentence: &String| adds_numbers && !shares_word(text, sentence);
    let step = match (progress.step, progress.total_steps) {
        (Some(step), Some(total)) => Some(phrases.step_of(step, total)),
        (Some(step), None) => Some(phrases.step(step)),
        _ => None,
    };
    let step = step.filter(is_new).unwrap_or_default();
    // Zero percent is not worth announcing.
    let percent = progress.percent.map(|percent| format!("{percent:.0}"));
    let percent = percent.filter(|percent| percent != "0" || text.is_empty());
    let percent = percent.map(|percent| phrases.percent(&percent)).filter(is_new).unwrap_or_default();
    let left = update.eta_ms.filter(|millis| is_worth_saying(*millis, verbosity));
    let left = left.and_then(|millis| i64::try_from(millis).ok());
    let left = left.map(|millis| phrases.about_left(&duration_text(phrases, millis))).unwrap_or_default();
    join_sentences(&[Agent(text), Sayso(&step), Sayso(&percent), Sayso(&left)])
}

/// Whether a text shares a number or a word of at least four characters with a sentence, so that the sentence would repeat it.
fn shares_word(text: &str, sentence: &str) -> bool {
    let is_telling = |word: &String| word.chars().count() >= 4 || word.chars().all(char::is_numeric);
    let known: HashSet<String> = words(text).collect();
    words(sentence).any(|word| is_telling(&word) && known.contains(&word))
}

/// Returns the text about a tool call: the summary, the arguments if they matter, the risk and the expected duration.
///
/// `is_accepted`: the person has just accepted this call. If it cannot be undone, the question has already said so.
pub(super) fn call_text(
    phrases: &Phrases,
    call: &ToolInvoked,
    summary: &str,
    verbosity: &Verbosity,
    is_accepted: bool,
) -> AnnouncementText {
    let irreversible = call.irreversible == Some(true);
    let is_risky = irreversible || matches!(call.risk_level, Some(RiskLevel::Medium | RiskLevel::High));
    let says_arguments = match verbosity {
        Verbosity::Terse => false,
        Verbosity::Detailed => true,
        _ => is_risky,
    };
    let arguments = short_text(call.args_summary.as_deref().filter(|_| says_arguments));
    let arguments = if summary.contains(&arguments) { String::new() } else { arguments };
    let risk = match call.risk_level {
        // The warning that the call cannot be undone is stronger.
        _ if irreversible => "",
        Some(RiskLevel::High) => phrases.risk_high,
        Some(RiskLevel::Medium) if *verbosity == Verbosity::Detailed => phrases.risk_medium,
        _ => "",
    };
    join_sentences(&[
        Agent(summary),
        Composed(&labelled(&[(phrases.arguments_label, arguments)])),
        Sayso(risk),
        Sayso(if irreversible && !is_accepted { phrases.irreversible } else { "" }),
        Sayso(&about_text(phrases, call.expected_duration_ms, verbosity)),
    ])
}

/// Returns how long a call took, if it took much longer than the agent expected. At detailed verbosity, returns it for every call of at
/// least a second.
pub(super) fn call_duration_text(
    phrases: &Phrases,
    duration_ms: Option<u64>,
    expected_ms: Option<u64>,
    verbosity: &Verbosity,
) -> String {
    let Some(duration_ms) = duration_ms.filter(|millis| is_worth_saying(*millis, verbosity)) else {
        return String::new();
    };
    let text = |millis: u64| duration_text(phrases, i64::try_from(millis).unwrap_or(i64::MAX));
    match expected_ms {
        Some(expected) if expected >= 1000 && duration_ms / 2 >= expected => {
            phrases.took_longer(&text(duration_ms), &text(expected))
        }
        _ if *verbosity == Verbosity::Detailed => phrases.took(&text(duration_ms)),
        _ => String::new(),
    }
}

/// Returns a sentence such as "About 2 minutes.", if the duration is worth saying.
pub(super) fn about_text(phrases: &Phrases, millis: Option<u64>, verbosity: &Verbosity) -> String {
    let millis = millis.filter(|millis| is_worth_saying(*millis, verbosity));
    let millis = millis.and_then(|millis| i64::try_from(millis).ok());
    millis.map(|millis| phrases.about(&duration_text(phrases, millis))).unwrap_or_default()
}

/// Whether a duration is long enough to be announced: ten seconds, a minute at terse and a second at detailed verbosity.
fn is_worth_saying(millis: u64, verbosity: &Verbosity) -> bool {
    let min = match verbosity {
        Verbosity::Terse => 60_000,
        Verbosity::Detailed => 1000,
        _ => 10_000,
    };
    millis >= min
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

/// Returns the lines of a question: what it is about, the consequence, what makes it dangerous, the time, and how to answer. Everything
/// else is in [`question_details`].
pub(super) fn question_text(
    phrases: &Phrases,
    question: &ListenerQuestion,
    open_count: usize,
    now: UnixMillis,
) -> AnnouncementText {
    // The number is needed only to tell several questions apart.
    let label = if open_count > 1 {
        phrases.question_label(question.number, &question.agent_name)
    } else {
        format!("{}:", question.agent_name)
    };
    let mut lines = question_lines(phrases, question, &label);
    let time_left = phrases.time_left(&duration_text(phrases, question.remaining_ms(now)));
    let several = if open_count > 1 { phrases.several_open(open_count) } else { String::new() };
    let instructions = answer_instructions(phrases, question, open_count);
    // The question mentions its default only if the default is yes.
    let default = if question.is_accepted_by_default() { phrases.default_is_accept } else { "" };
    lines.push(join_sentences(&[Sayso(&time_left), Sayso(default)]));
    lines.push(join_sentences(&[Sayso(&several), Sayso(&instructions)]));
    AnnouncementText::from_lines(&lines)
}

/// Returns the text of a recorded question, which cannot be answered any more.
pub(super) fn replayed_question_text(phrases: &Phrases, question: &ListenerQuestion) -> AnnouncementText {
    let label = phrases.question_label(question.number, &question.agent_name);
    let mut lines = question_lines(phrases, question, &label);
    let timeout_ms = i64::try_from(question.timeout_seconds).unwrap_or(i64::MAX).saturating_mul(1000);
    let time_limit = phrases.time_limit_was(&duration_text(phrases, timeout_ms));
    lines.push(join_sentences(&[Sayso(&time_limit), Composed(&default_outcome_text(phrases, question))]));
    lines.push(phrases.recording_not_answerable.into());
    AnnouncementText::from_lines(&lines)
}

fn question_lines(phrases: &Phrases, question: &ListenerQuestion, label: &str) -> Vec<AnnouncementText> {
    let mut lines = vec![join_sentences(&[Sayso(label), Agent(question.prompt_text())])];
    match &question.body {
        QuestionBody::Confirmation { action, consequence, .. } => {
            // The content of a confirmation is never omitted (AAEP-10.1.3-2), but it is not repeated.
            if consequence != action {
                lines.push(join_sentences(&[Agent(consequence)]));
            }
            // The agent's text may differ from the call that the answer is bound to, so the person hears both.
            let (warning, _) = risk_warning_and_details(phrases, question);
            match question.call.as_ref().filter(|call| call.is_bound) {
                Some(call) if question.states_call(call) => {
                    lines.push(warned_call(phrases, warning, &call.text).into());
                    return lines;
                }
                Some(call) if !call.is_short() => lines.push(phrases.exact_call_in_details.into()),
                _ => {}
            }
            let not_bound = if question.is_dangerously_unbound() { phrases.answer_not_bound } else { "" };
            let warnings = join_sentences(&[Sayso(warning), Sayso(not_bound)]);
            lines.extend(Some(warnings).filter(|warnings| !warnings.is_empty()));
        }
        QuestionBody::Clarification { choices, .. } => {
            for (index, (_, label)) in choices.iter().enumerate() {
                lines.push(join_sentences(&[Sayso(&format!("{}:", index + 1)), Agent(label)]));
            }
        }
    }
    lines
}

/// Returns what [`question_text`] does not contain: more about the question, the risk, the call, the agent, and what happens
/// without an answer. `said` is the text of the question.
pub(super) fn question_details(
    phrases: &Phrases,
    question: &ListenerQuestion,
    said: &str,
) -> AnnouncementText {
    let mut known: HashSet<String> = words(said).collect();
    let mut lines = Vec::new();
    let context = match &question.body {
        QuestionBody::Clarification { context, .. } => context.as_deref(),
        QuestionBody::Confirmation { .. } => None,
    };
    // The label keeps the agent's text apart from sayso's own lines.
    let labelled = context.map(|context| (phrases.question_reason_label, context));
    let details = question.details.iter().map(|detail| (phrases.agent_adds_label, detail.as_str()));
    for (label, text) in labelled.into_iter().chain(details) {
        let is_new = |sentence: &&str| adds_information(sentence, &known);
        let text: String = sentences(text).filter(is_new).collect();
        if !text.is_empty() {
            known.extend(words(&text));
            lines.push(join_sentences(&[Sayso(label), Agent(&text)]));
        }
    }
    let (_, risk) = risk_warning_and_details(phrases, question);
    lines.extend(Some(risk).filter(|risk| !risk.is_empty()).map(AnnouncementText::from));
    lines.extend(question.hub_details.iter().map(|line| AnnouncementText::from(line.as_str())));
    let mut text = AnnouncementText::from_lines(&lines);
    if !question.is_accepted_by_default() {
        text.push_line(&default_outcome_text(phrases, question));
    }
    text
}

/// Whether a text contains a word that is not known. Words such as "May I" do not count.
fn adds_information(text: &str, known: &HashSet<String>) -> bool {
    words(text).any(|word| !known.contains(&word) && !QUESTION_WORDS.contains(&word.as_str()))
}

/// Articles, pronouns and words that turn an action into a question, in the supported languages.
const QUESTION_WORDS: [&str; 24] = [
    "may", "i", "from", "de", "láti", "shall", "should", "can", "could", "please", "it", "this", "a", "an",
    "the", "puedo", "debo", "el", "la", "un", "una", "ṣé", "kí", "n",
];

/// Splits a text after each sentence. No character is dropped.
fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let mut is_after_end = false;
    text.split_inclusive(move |character: char| {
        let is_end = is_after_end && character == ' ';
        is_after_end = matches!(character, '.' | '?' | '!');
        is_end
    })
}

fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|character: char| !character.is_alphanumeric() && !is_combining_mark(character))
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
}

/// States the call, with the warning as its label. This is shorter than two sentences: `This cannot be undone: pay bill, amount 250.`
fn warned_call(phrases: &Phrases, warning: &str, call: &str) -> String {
    match warning.trim_end_matches('.') {
        "" => phrases.exact_call(call),
        warning => format!("{warning}: {call}."),
    }
}

/// Returns two texts about the risk and about whether the action can be undone: the strongest warning, which is part of the question, and
/// the rest, which is part of the details. No text from the agent replaces the statement that it cannot be undone, unless
/// the consequence is exactly this sentence or one with the same meaning.
fn risk_warning_and_details(phrases: &Phrases, question: &ListenerQuestion) -> (&'static str, String) {
    let QuestionBody::Confirmation { risk, reversibility, consequence, .. } = &question.body else {
        return ("", String::new());
    };
    let risk_text = match risk {
        Some(RiskLevel::Low) => phrases.risk_low,
        Some(RiskLevel::Medium) => phrases.risk_medium,
        Some(RiskLevel::High) => phrases.risk_high,
        _ => phrases.risk_unknown,
    };
    let undo_text = match reversibility {
        Some(Reversibility::Irreversible) => phrases.irreversible,
        Some(Reversibility::ReversibleWithEffort) => phrases.hard_to_undo,
        Some(Reversibility::Reversible) => phrases.can_be_undone,
        _ => phrases.reversibility_unknown,
    };
    let (warning, details) = match (reversibility, risk) {
        (Some(Reversibility::Irreversible), _) if says_irreversible(phrases, consequence) => {
            ("", [risk_text, ""])
        }
        (Some(Reversibility::Irreversible), _) => (undo_text, [risk_text, ""]),
        (_, Some(RiskLevel::High)) => (risk_text, [undo_text, ""]),
        (Some(Reversibility::Reversible | Reversibility::ReversibleWithEffort), _) => {
            ("", [risk_text, undo_text])
        }
        _ => (undo_text, [risk_text, ""]),
    };
    (warning, join_sentences(&details.map(Sayso)).to_string())
}

/// Whether a text says only that the action cannot be undone, in the person's language.
fn says_irreversible(phrases: &Phrases, text: &str) -> bool {
    let text = text.trim().trim_end_matches(['.', '!']).to_lowercase().replace('’', "'");
    let own = phrases.irreversible.trim_end_matches('.').to_lowercase();
    text == own || phrases.irreversible_synonyms.split('|').any(|synonym| synonym == text)
}

/// Returns what the hub says about a session that a person stopped, besides that it was stopped.
pub(super) fn after_stop_text<'t>(phrases: &Phrases, text: &'t str) -> &'t str {
    let known = phrases.hub_session_stopped.split('|').find_map(|sentence| text.strip_prefix(sentence));
    known.unwrap_or(text).trim_start()
}

pub(super) fn default_outcome_text(phrases: &Phrases, question: &ListenerQuestion) -> AnnouncementText {
    match &question.body {
        QuestionBody::Confirmation { default_decision: Decision::Accept, .. } => {
            phrases.default_is_accept.into()
        }
        QuestionBody::Confirmation { .. } => phrases.default_is_reject.into(),
        QuestionBody::Clarification { default_response: Some(default), .. }
            if matches!(default.as_str(), "yes" | "no") && question.accepts(&ResponseKind::YesNo) =>
        {
            let answer = if default == "yes" { phrases.yes } else { phrases.no };
            phrases.default_counts_as(answer).into()
        }
        QuestionBody::Clarification { default_response: Some(default), .. } if !default.is_empty() => {
            join_sentences(&[Sayso(phrases.default_answer_label), Agent(default)])
        }
        QuestionBody::Clarification { .. } => phrases.default_is_no_answer.into(),
    }
}

/// Describes what can be typed. Includes the question's number if several questions are open.
pub(super) fn answer_instructions(
    phrases: &Phrases,
    question: &ListenerQuestion,
    open_count: usize,
) -> String {
    let number = (open_count > 1).then_some(question.number);
    match &question.body {
        QuestionBody::Confirmation { may_accept, may_reject, .. } => match (may_accept, may_reject, number) {
            (true, true, None) => phrases.yes_no_question.to_owned(),
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
                let is_only = options.is_empty();
                options.push(if is_only { phrases.option_only_free_text } else { phrases.option_free_text });
            }
            match (options.split_last(), number) {
                (None, _) => phrases.not_answerable_by_typing.to_owned(),
                (Some((&only, [])), None) if only == phrases.option_yes_no => {
                    phrases.yes_no_question.to_owned()
                }
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

/// Formats a duration in round numbers: seconds up to 20, then in steps of five, and from 55 seconds on to the nearest minute. The
/// page uses the same rule.
pub(super) fn duration_text(phrases: &Phrases, millis: i64) -> String {
    let round = |unit_ms: i64| millis.max(0).saturating_add(unit_ms / 2) / unit_ms;
    match millis {
        ..20_500 => phrases.seconds(round(1000).max(1)),
        20_500..54_500 => phrases.seconds(round(5000) * 5),
        54_500..7_170_000 => phrases.minutes(round(60_000)),
        _ => phrases.hours(round(3_600_000)),
    }
}
