//! Handles what a person types.

use aaep::event::{Decision, ResponseKind, Verbosity};
use seal::UnixMillis;

use super::answer_detector::looks_like_answer;
use super::handoff_commands;
use super::input_parser::{ParsedInput, StopTarget, strip_number};
use crate::{
    Announcement, AnnouncementKind, AnnouncementText, AnswerError, ListenerQuestion, ManifestStatus,
    ObservedSession, Phrases, Preferences, QuestionBody, Subscriber,
};

#[derive(Clone, Debug, PartialEq)]
pub(super) enum TerminalAction {
    Say(Announcement),
    /// Sends a message to the hub. If sending fails, the question with this number is reopened.
    Send {
        message: String,
        question: Option<u32>,
    },
    SetPreferences(Preferences),
    /// A task for the agent, such as "what is my balance": text that is neither a command nor an answer.
    Request(String),
    Hush,
    ChangeRate {
        faster: bool,
    },
    /// Repeats the latest announcement.
    RepeatLast,
    /// Repeats the latest announcements with their times.
    Recall(usize),
    Quit,
}

/// Number of announcements that `history` repeats if no number is given.
const DEFAULT_HISTORY: usize = 10;

/// Besides the open questions, this decides what a typed line means.
#[derive(Clone, Copy, Debug)]
pub(super) struct InputContext {
    /// Returns whether the agent knows a request, which is a task that the person types. `None` if no agent accepts requests.
    pub(super) request_filter: Option<fn(&str) -> bool>,
    /// Whether there is speech output.
    pub(super) has_speech: bool,
    /// Whether there is a hub. A producer without one can neither stop agents nor extend deadlines.
    pub(super) has_hub: bool,
    pub(super) is_disconnected: bool,
}

pub(super) fn handle_line(
    subscriber: &mut Subscriber,
    line: &str,
    context: InputContext,
    now: UnixMillis,
) -> Vec<TerminalAction> {
    let request_filter = context.request_filter;
    if let Some(actions) = handoff_commands::handle_line(subscriber, line, now) {
        return actions;
    }
    let phrases = subscriber.phrases();
    match ParsedInput::parse(line, phrases) {
        ParsedInput::MoreTime(_) | ParsedInput::Stop(_) if !context.has_hub => {
            vec![say(AnnouncementKind::Error, phrases.needs_hub)]
        }
        ParsedInput::Empty => handle_empty_line(subscriber, now),
        ParsedInput::Decision { yes, is_full_word, question } => {
            match resolve_question(subscriber, question, if yes { phrases.yes } else { phrases.no }, now) {
                Ok(number) => match refuse_early_answer(subscriber, number, question.is_some(), now) {
                    Some(actions) => actions,
                    None => decide(subscriber, number, yes, is_full_word, line, now),
                },
                Err(actions) => actions,
            }
        }
        ParsedInput::Number(number) => handle_number(subscriber, number, line, request_filter, now),
        ParsedInput::Answer { question, text, explicit: true } => answer(subscriber, question, text, now),
        // A line that starts with a number is an answer if that question is open.
        ParsedInput::Answer { question: Some(number), text, .. } if has_question(subscriber, number) => {
            respond_or_decide(subscriber, number, text, now)
        }
        ParsedInput::Answer { .. } => handle_other(subscriber, line.trim(), request_filter, now),
        ParsedInput::MoreTime(question) => {
            match resolve_question(subscriber, question, phrases.more_time, now) {
                Ok(number) => request_more_time(subscriber, number, now),
                Err(actions) => actions,
            }
        }
        ParsedInput::Code(number) => vec![TerminalAction::Say(subscriber.read_code(number))],
        // Without such a question, the number refers to a session.
        ParsedInput::Details(number)
            if !subscriber
                .questions()
                .any(|question| number.is_none_or(|number| question.number == number)) =>
        {
            let details = subscriber.session_details(number, now).map(TerminalAction::Say);
            vec![details.unwrap_or_else(|| say(AnnouncementKind::Status, phrases.no_such_question_open))]
        }
        ParsedInput::Details(question) => {
            repeat_questions(subscriber, question, now, Subscriber::question_details)
        }
        ParsedInput::Tools(session) => vec![TerminalAction::Say(subscriber.tools(session))],
        ParsedInput::Repeat(None) => vec![TerminalAction::RepeatLast],
        ParsedInput::Repeat(question) => {
            repeat_questions(subscriber, question, now, Subscriber::repeat_question)
        }
        ParsedInput::History(count) => {
            let count = count.and_then(|count| usize::try_from(count).ok());
            vec![TerminalAction::Recall(count.unwrap_or(DEFAULT_HISTORY))]
        }
        ParsedInput::Last => vec![TerminalAction::Recall(1)],
        ParsedInput::Status => report_status(subscriber, context.is_disconnected, now),
        ParsedInput::Stop(target) => stop(subscriber, target, now),
        ParsedInput::Quieter => change_verbosity(subscriber, false),
        ParsedInput::Louder => change_verbosity(subscriber, true),
        ParsedInput::Hush => vec![TerminalAction::Hush],
        ParsedInput::ChangeRate { faster } => vec![TerminalAction::ChangeRate { faster }],
        ParsedInput::Quit => vec![TerminalAction::Quit],
        ParsedInput::Help => show_help(phrases, context),
        ParsedInput::Other(text) => handle_other(subscriber, text, request_filter, now),
    }
}

pub(super) fn say(kind: AnnouncementKind, text: impl Into<AnnouncementText>) -> TerminalAction {
    TerminalAction::Say(Announcement::new(kind, text))
}

/// Handles an empty line: reports the open questions. An empty line never answers a question.
fn handle_empty_line(subscriber: &Subscriber, now: UnixMillis) -> Vec<TerminalAction> {
    let open: Vec<_> = subscriber.questions().filter(|question| !question.is_answered).collect();
    match open.as_slice() {
        [] => Vec::new(),
        [question] => {
            let remaining = subscriber.time_left_text(question.number, now).unwrap_or_default();
            vec![say(AnnouncementKind::Ask, subscriber.phrases().enter_one_open(question.number, &remaining))]
        }
        several => {
            let numbers = list_numbers(subscriber.phrases(), several);
            vec![say(AnnouncementKind::Ask, subscriber.phrases().enter_several_open(several.len(), &numbers))]
        }
    }
}

/// Returns the number of the intended question, or actions that ask which question is meant, with an example of an answer.
fn resolve_question(
    subscriber: &Subscriber,
    number: Option<u32>,
    example_answer: &str,
    now: UnixMillis,
) -> Result<u32, Vec<TerminalAction>> {
    let phrases = subscriber.phrases();
    if let Some(number) = number {
        return match subscriber.questions().find(|question| question.number == number) {
            Some(_) => Ok(number),
            None => Err(vec![say(AnnouncementKind::Error, phrases.question_not_open(number))]),
        };
    }
    if let Some(question) = subscriber.unambiguous_question(now) {
        return Ok(question.number);
    }
    let open: Vec<_> = subscriber.questions().filter(|question| !question.is_answered).collect();
    Err(vec![match open.as_slice() {
        [] => say(AnnouncementKind::Error, phrases.no_open_question),
        [question] => {
            say(AnnouncementKind::Error, phrases.questions_just_changed(question.number, example_answer))
        }
        several => {
            let first = several.first().map_or(1, |question| question.number);
            say(
                AnnouncementKind::Error,
                phrases.which_question(&list_numbers(phrases, several), example_answer, first),
            )
        }
    }])
}

/// Refuses an answer that does not name its question, if the question has just appeared. Repeats the question instead.
fn refuse_early_answer(
    subscriber: &Subscriber,
    number: u32,
    is_named: bool,
    now: UnixMillis,
) -> Option<Vec<TerminalAction>> {
    if is_named || !subscriber.has_just_appeared(number, now) {
        return None;
    }
    let mut actions = vec![say(AnnouncementKind::Error, subscriber.phrases().question_just_appeared(number))];
    actions.extend(subscriber.repeat_question(number, now).map(TerminalAction::Say));
    Some(actions)
}

fn list_numbers(phrases: &Phrases, questions: &[&ListenerQuestion]) -> String {
    let all: Vec<_> = questions.iter().map(|question| question.number.to_string()).collect();
    match all.split_last() {
        Some((last, others)) if !others.is_empty() => phrases.list_with_and(&others.join(", "), last),
        _ => all.concat(),
    }
}

fn decide(
    subscriber: &mut Subscriber,
    number: u32,
    yes: bool,
    is_full_word: bool,
    line: &str,
    now: UnixMillis,
) -> Vec<TerminalAction> {
    let phrases = subscriber.phrases();
    let Some(question) = subscriber.questions().find(|question| question.number == number) else {
        return vec![say(AnnouncementKind::Error, AnswerError::NotOpen.describe(phrases))];
    };
    if matches!(question.body, QuestionBody::Clarification { .. }) {
        return respond(subscriber, number, strip_number(line), now);
    }
    if yes && !is_full_word && question.requires_explicit_yes() {
        return vec![say(AnnouncementKind::Error, phrases.short_answer_refused(number))];
    }
    let (decision, word) = if yes { (Decision::Accept, phrases.yes) } else { (Decision::Reject, phrases.no) };
    match subscriber.answer_confirmation(number, decision, now) {
        Ok(message) => vec![
            say(AnnouncementKind::Answer, phrases.you_decided(number, word)),
            TerminalAction::Send { message, question: Some(number) },
        ],
        Err(error) => vec![say(
            AnnouncementKind::Error,
            subscriber.phrases().question_error(number, error.describe(subscriber.phrases())),
        )],
    }
}

fn respond(subscriber: &mut Subscriber, number: u32, text: &str, now: UnixMillis) -> Vec<TerminalAction> {
    match subscriber.answer_clarification(number, text, now) {
        Ok(message) => vec![
            say(
                AnnouncementKind::Answer,
                subscriber.phrases().you_answered(number, &crate::sanitize(text, true)),
            ),
            TerminalAction::Send { message, question: Some(number) },
        ],
        Err(AnswerError::UnsupportedAnswer) => {
            let instructions = subscriber.answer_instructions(number);
            vec![say(
                AnnouncementKind::Error,
                subscriber.phrases().answer_kind_not_accepted(number, &instructions.unwrap_or_default()),
            )]
        }
        Err(error) => vec![say(
            AnnouncementKind::Error,
            subscriber.phrases().question_error(number, error.describe(subscriber.phrases())),
        )],
    }
}

/// Handles a number: 1 for yes and 2 for no, or a choice.
fn handle_number(
    subscriber: &mut Subscriber,
    value: u32,
    line: &str,
    request_filter: Option<fn(&str) -> bool>,
    now: UnixMillis,
) -> Vec<TerminalAction> {
    if subscriber.questions().all(|question| question.is_answered) && request_filter.is_some() {
        return vec![TerminalAction::Request(line.trim().to_owned())];
    }
    let number = match resolve_question(subscriber, None, subscriber.phrases().no, now) {
        Ok(number) => number,
        Err(actions) => return answer_offered_choice(subscriber, line.trim(), now).unwrap_or(actions),
    };
    if let Some(actions) = refuse_early_answer(subscriber, number, false, now) {
        return actions;
    }
    let is_confirmation = subscriber.questions().any(|question| {
        question.number == number && matches!(question.body, QuestionBody::Confirmation { .. })
    });
    match value {
        _ if !is_confirmation => respond(subscriber, number, line.trim(), now),
        1 => decide(subscriber, number, true, false, line, now),
        2 => decide(subscriber, number, false, true, line, now),
        _ => vec![say(AnnouncementKind::Error, subscriber.phrases().type_one_or_two)],
    }
}

fn answer(
    subscriber: &mut Subscriber,
    question: Option<u32>,
    text: &str,
    now: UnixMillis,
) -> Vec<TerminalAction> {
    match question {
        Some(number) if !has_question(subscriber, number) => {
            match subscriber.unambiguous_question(now).map(|question| question.number) {
                // `answer 5 euros`, and no question has the number 5.
                Some(only) => answer_unnamed(subscriber, only, &format!("{number} {text}"), now),
                None => resolve_question(subscriber, Some(number), subscriber.phrases().no, now)
                    .err()
                    .unwrap_or_default(),
            }
        }
        Some(number) => respond_or_decide(subscriber, number, text, now),
        None => match resolve_question(subscriber, None, subscriber.phrases().no, now) {
            Ok(number) => answer_unnamed(subscriber, number, text, now),
            Err(actions) => answer_offered_choice(subscriber, text, now).unwrap_or(actions),
        },
    }
}

/// Answers question `number` with a text in which the person did not name it. Refuses if the question has just appeared.
fn answer_unnamed(
    subscriber: &mut Subscriber,
    number: u32,
    text: &str,
    now: UnixMillis,
) -> Vec<TerminalAction> {
    refuse_early_answer(subscriber, number, false, now)
        .unwrap_or_else(|| respond_or_decide(subscriber, number, text, now))
}

/// Returns whether there is a question with this number, even if it is already answered.
fn has_question(subscriber: &Subscriber, number: u32) -> bool {
    subscriber.questions().any(|question| question.number == number)
}

/// Answers the only one of several open questions that offers this text as a choice.
fn answer_offered_choice(
    subscriber: &mut Subscriber,
    text: &str,
    now: UnixMillis,
) -> Option<Vec<TerminalAction>> {
    let number = subscriber.unambiguous_question_offering(text, now)?.number;
    Some(
        refuse_early_answer(subscriber, number, false, now)
            .unwrap_or_else(|| respond(subscriber, number, text, now)),
    )
}

/// Answers a question with a text. A text such as `yes` is a decision.
fn respond_or_decide(
    subscriber: &mut Subscriber,
    number: u32,
    text: &str,
    now: UnixMillis,
) -> Vec<TerminalAction> {
    if let ParsedInput::Decision { yes, is_full_word, question: None } =
        ParsedInput::parse(text, subscriber.phrases())
    {
        return decide(subscriber, number, yes, is_full_word, text, now);
    }
    respond(subscriber, number, text, now)
}

fn handle_other(
    subscriber: &mut Subscriber,
    text: &str,
    request_filter: Option<fn(&str) -> bool>,
    now: UnixMillis,
) -> Vec<TerminalAction> {
    let accepts_text = |question: &ListenerQuestion| {
        question.accepts(&ResponseKind::FreeText) || question.accepts(&ResponseKind::MultipleChoice)
    };
    if let Some(number) = subscriber
        .unambiguous_question(now)
        .filter(|question| accepts_text(question))
        .map(|question| question.number)
    {
        if subscriber.phrases().starts_like_command(text) && !subscriber.offers_choice(number, text) {
            let text = subscriber.phrases().command_or_answer(&crate::sanitize(text, true));
            return vec![say(AnnouncementKind::Error, text)];
        }
        return refuse_early_answer(subscriber, number, false, now)
            .unwrap_or_else(|| respond(subscriber, number, text, now));
    }
    if let Some(actions) = answer_offered_choice(subscriber, text, now) {
        return actions;
    }
    let open: Vec<_> = subscriber.questions().filter(|question| !question.is_answered).collect();
    match (open.as_slice(), request_filter) {
        ([], Some(_)) => vec![TerminalAction::Request(text.to_owned())],
        ([], None) => vec![say(AnnouncementKind::Error, subscriber.phrases().not_understood)],
        (_, Some(is_known_request)) if !looks_like_answer(text) && is_known_request(text) => {
            vec![TerminalAction::Request(text.to_owned())]
        }
        (open, _) => vec![say(AnnouncementKind::Error, explain_how_to_answer(subscriber, open))],
    }
}

/// Explains how to answer, after a line that was not an answer.
fn explain_how_to_answer(subscriber: &Subscriber, open: &[&ListenerQuestion]) -> String {
    let phrases = subscriber.phrases();
    if let [question] = open {
        let instructions = subscriber.answer_instructions(question.number).unwrap_or_default();
        return phrases.not_an_answer(&instructions);
    }
    let first = open.first().map_or(1, |question| question.number);
    phrases.not_an_answer_to_several(&list_numbers(phrases, open), first)
}

/// Returns the last announcement before quitting, which names the open questions.
pub(super) fn goodbye_text(subscriber: &Subscriber, announces_stop: bool) -> String {
    let phrases = subscriber.phrases();
    let mut parts = Vec::new();
    if announces_stop {
        parts.push(phrases.stopped_listening.to_owned());
        match subscriber.sessions().count() {
            0 => {}
            1 => parts.push(phrases.agent_continues.to_owned()),
            _ => parts.push(phrases.agents_continue.to_owned()),
        }
    }
    let open: Vec<_> = subscriber.questions().filter(|question| !question.is_answered).collect();
    match open.as_slice() {
        [] => {}
        [question] => parts.push(phrases.one_unanswered(question.number)),
        several => parts.push(phrases.several_unanswered(&list_numbers(phrases, several))),
    }
    parts.join(" ")
}

fn request_more_time(subscriber: &mut Subscriber, number: u32, now: UnixMillis) -> Vec<TerminalAction> {
    match subscriber.request_more_time(number, now) {
        Ok(message) => {
            vec![TerminalAction::Send { message, question: None }]
        }
        Err(error) => vec![say(
            AnnouncementKind::Error,
            subscriber.phrases().question_error(number, error.describe(subscriber.phrases())),
        )],
    }
}

/// Repeats one question, or all open ones.
fn repeat_questions(
    subscriber: &Subscriber,
    number: Option<u32>,
    now: UnixMillis,
    render: impl Fn(&Subscriber, u32, UnixMillis) -> Option<Announcement>,
) -> Vec<TerminalAction> {
    let all: Vec<_> = subscriber
        .questions()
        .filter(|question| number.is_none_or(|number| question.number == number))
        .filter_map(|question| render(subscriber, question.number, now))
        .map(TerminalAction::Say)
        .collect();
    if all.is_empty() {
        return vec![say(AnnouncementKind::Status, subscriber.phrases().no_such_question_open)];
    }
    all
}

fn report_status(subscriber: &Subscriber, is_disconnected: bool, now: UnixMillis) -> Vec<TerminalAction> {
    let phrases = subscriber.phrases();
    let mut lines = Vec::new();
    if is_disconnected {
        lines.push(phrases.status_while_disconnected.to_owned());
    }
    lines.extend(session_status_lines(subscriber, now));
    if subscriber.sessions().next().is_none() {
        lines.push(phrases.no_agent_working.to_owned());
    }
    for question in subscriber.questions() {
        let remaining = subscriber.time_left_text(question.number, now).unwrap_or_default();
        let number = question.number;
        let state = if question.is_answered {
            phrases.outcome_pending(number)
        } else {
            phrases.about_left(&remaining)
        };
        let label = phrases.question_label(number, &question.agent_name);
        lines.push(format!("{label} {} {state}", ensure_full_stop(question.prompt_text())));
    }
    let verbosity = &subscriber.preferences().verbosity;
    if *verbosity != Verbosity::Normal {
        lines.push(phrases.verbosity_is(verbosity_name(phrases, verbosity)));
    }
    let status =
        subscriber.manifest_status().filter(|status| !matches!(status, ManifestStatus::Unverified(_)));
    lines.extend(status.map(|status| status.describe(phrases)));
    vec![say(AnnouncementKind::Status, lines.join("\n"))]
}

fn ensure_full_stop(text: &str) -> String {
    let text = text.trim();
    if text.ends_with(|last: char| last.is_alphanumeric()) { format!("{text}.") } else { text.to_owned() }
}

/// Returns one line about each open session: what its agent is doing, what it is about if there are several, and how much time the
/// agent expects to need. The parts of a session follow it.
pub(super) fn session_status_lines(subscriber: &Subscriber, now: UnixMillis) -> impl Iterator<Item = String> {
    let phrases = subscriber.phrases();
    let has_several = subscriber.sessions().nth(1).is_some();
    sessions_by_parent(subscriber).into_iter().map(move |session| {
        let activity = match session.activity.as_str() {
            _ if !session.is_current() => phrases.activity_unconfirmed,
            "" => phrases.activity_unknown,
            activity => activity,
        };
        let topic = Some(&session.topic)
            .filter(|topic| has_several && !topic.is_empty() && !activity.starts_with(*topic));
        let topic = topic.map(|topic| format!("{} {topic}.", phrases.session_topic_label));
        let time_left = subscriber.expected_time_left(session, now);
        let parts = [topic, Some(activity.to_owned()), time_left];
        let parts: Vec<_> = parts.into_iter().flatten().collect();
        let activity = parts.join(" ");
        match subscriber.parent_number(&session.id) {
            Some(parent) => {
                phrases.session_part_activity(session.number, parent, &session.agent_name, &activity)
            }
            None => phrases.session_activity(session.number, &session.agent_name, &activity),
        }
    })
}

/// Returns the sessions, each followed by its parts.
fn sessions_by_parent(subscriber: &Subscriber) -> Vec<&ObservedSession> {
    let all: Vec<_> = subscriber.sessions().collect();
    let is_top = |session: &&&ObservedSession| subscriber.parent_number(&session.id).is_none();
    let mut ordered = Vec::with_capacity(all.len());
    // The sessions whose parts are still to be added, the next one last.
    let mut pending: Vec<_> = all.iter().filter(is_top).rev().copied().collect();
    while let Some(session) = pending.pop() {
        ordered.push(session);
        pending.extend(all.iter().filter(|part| part.parent.as_ref() == Some(&session.id)).rev());
    }
    // Without a hub, sessions may claim to be parts of each other.
    let others: Vec<_> =
        all.into_iter().filter(|session| !ordered.iter().any(|other| other.id == session.id)).collect();
    ordered.extend(others);
    ordered
}

fn verbosity_name<'a>(phrases: &'a Phrases, verbosity: &'a Verbosity) -> &'a str {
    match verbosity {
        Verbosity::Terse => phrases.terse,
        Verbosity::Detailed => phrases.detailed,
        other => other.as_str(),
    }
}

fn stop(subscriber: &mut Subscriber, target: StopTarget, now: UnixMillis) -> Vec<TerminalAction> {
    let phrases = subscriber.phrases();
    let sessions: Vec<_> = subscriber
        .sessions()
        .filter(|session| !matches!(target, StopTarget::Session(number) if session.number != number))
        .collect();
    match (target, sessions.as_slice()) {
        (StopTarget::Session(number), []) => {
            vec![say(AnnouncementKind::Error, phrases.session_not_running(number))]
        }
        (_, []) => vec![say(AnnouncementKind::Error, phrases.no_agent_working)],
        (StopTarget::Unspecified, [_, _, ..]) => {
            let name = |session: &&ObservedSession| match session.topic.as_str() {
                "" => phrases.session_option(session.number, &session.agent_name),
                topic => phrases.session_option_with_topic(session.number, &session.agent_name, topic),
            };
            let all: Vec<_> = sessions.iter().map(name).collect();
            vec![say(AnnouncementKind::Error, phrases.which_session(&all.join("; ")))]
        }
        (_, sessions) => {
            let mut actions = Vec::new();
            let is_only = subscriber.sessions().nth(1).is_none();
            let identify =
                |session: &&ObservedSession| (session.id.clone(), session.agent_name.clone(), session.number);
            for (id, agent, number) in sessions.iter().map(identify).collect::<Vec<_>>() {
                match subscriber.stop_session(&id, now) {
                    Ok(message) => {
                        let text = if is_only {
                            phrases.you_stopped(&agent)
                        } else {
                            phrases.you_stopped_one(&agent, number)
                        };
                        actions.push(say(AnnouncementKind::Answer, text));
                        actions.push(TerminalAction::Send { message, question: None });
                    }
                    Err(_) => actions.push(say(AnnouncementKind::Error, phrases.nothing_stopped)),
                }
            }
            actions
        }
    }
}

fn change_verbosity(subscriber: &Subscriber, louder: bool) -> Vec<TerminalAction> {
    let phrases = subscriber.phrases();
    let preferences = subscriber.preferences();
    let verbosity = match (&preferences.verbosity, louder) {
        (Verbosity::Terse, true) | (Verbosity::Detailed, false) => Verbosity::Normal,
        (Verbosity::Terse, false) => {
            return vec![say(AnnouncementKind::Status, phrases.verbosity_at_minimum)];
        }
        (Verbosity::Detailed, true) => {
            return vec![say(AnnouncementKind::Status, phrases.verbosity_at_maximum)];
        }
        (_, true) => Verbosity::Detailed,
        (_, false) => Verbosity::Terse,
    };
    let text = match verbosity {
        Verbosity::Terse => phrases.now_terse,
        Verbosity::Detailed => phrases.now_detailed,
        _ => phrases.now_normal,
    };
    vec![
        say(AnnouncementKind::Status, text),
        TerminalAction::SetPreferences(Preferences { verbosity, ..preferences.clone() }),
    ]
}

fn show_help(phrases: &Phrases, context: InputContext) -> Vec<TerminalAction> {
    let mut lines = vec![
        phrases.help_decide,
        phrases.help_answer,
        phrases.help_repeat,
        phrases.help_history,
        phrases.help_code,
        phrases.help_tools,
        phrases.help_more_time,
        phrases.help_stop,
        phrases.help_status,
        phrases.help_handoffs,
        phrases.help_verbosity,
        phrases.help_quit,
    ];
    if context.has_speech {
        lines.extend([phrases.help_hush, phrases.help_speech_rate]);
    }
    if context.request_filter.is_some() {
        lines.push(phrases.help_requests);
    }
    vec![say(AnnouncementKind::Help, lines.join("\n"))]
}
