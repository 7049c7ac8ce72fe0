//! What is done with what a person types.

use aaep::event::{Decision, ResponseKind, Verbosity};
use seal::UnixMillis;

use super::answerlike::sounds_like_an_answer;
use super::typed::{Typed, Which, without_number};
use crate::{Announcement, Ear, Kind, NotAnswered, Phrases, Question, Session, Subject, Tastes};

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Act {
    Say(Announcement),
    /// A message goes to the hub; should it not arrive, the question of this number is open again.
    Send {
        message: String,
        question: Option<u32>,
    },
    Retune(Tastes),
    /// The person wants something that is neither a command nor an answer.
    Request(String),
    Hush,
    Pace {
        faster: bool,
    },
    Quit,
}

/// What there is besides the questions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Around {
    /// Somebody takes what is neither a command nor an answer, and knows what is understood.
    pub(super) requests: Option<fn(&str) -> bool>,
    /// Somebody speaks.
    pub(super) speech: bool,
    /// There is a hub, which stops agents and gives more time; a producer by itself does neither.
    pub(super) hub: bool,
    pub(super) lost: bool,
}

pub(super) fn take(ear: &mut Ear, line: &str, around: Around, now: UnixMillis) -> Vec<Act> {
    let requests = around.requests;
    let phrases = ear.phrases();
    match Typed::read(line, phrases) {
        Typed::MoreTime(_) | Typed::Stop(_) if !around.hub => {
            vec![say(Kind::Error, phrases.no_hub_for_that)]
        }
        Typed::Nothing => nothing(ear, now),
        Typed::Decision { yes, whole, question } => {
            match target(ear, question, if yes { phrases.yes } else { phrases.no }, now) {
                Ok(number) => decide(ear, number, yes, whole, line, now),
                Err(acts) => acts,
            }
        }
        Typed::Number(number) => digit(ear, number, line, requests, now),
        Typed::Answer { question, text, explicit: true } => answer(ear, question, text, now),
        // A line that only begins with a number is an answer if that question is open.
        Typed::Answer { question: Some(number), text, .. } if is_open(ear, number) => {
            respond_or_decide(ear, number, text, now)
        }
        Typed::Answer { .. } => other(ear, line.trim(), requests, now),
        Typed::MoreTime(question) => match target(ear, question, phrases.more_time, now) {
            Ok(number) => more_time(ear, number, now),
            Err(acts) => acts,
        },
        Typed::Details(question) => again(ear, question, now, Ear::details),
        Typed::Repeat(question) => again(ear, question, now, Ear::repeat),
        Typed::Status => status(ear, around.lost, now),
        Typed::Stop(which) => stop(ear, which, now),
        Typed::Quieter => retune(ear, false),
        Typed::Louder => retune(ear, true),
        Typed::Hush => vec![Act::Hush],
        Typed::Pace { faster } => vec![Act::Pace { faster }],
        Typed::Quit => vec![Act::Quit],
        Typed::Help => help(phrases, around),
        Typed::Other(text) => other(ear, text, requests, now),
    }
}

fn say(kind: Kind, text: impl Into<String>) -> Act {
    Act::Say(Announcement::own(kind, text))
}

/// Enter alone answers nothing.
fn nothing(ear: &Ear, now: UnixMillis) -> Vec<Act> {
    let open: Vec<_> = ear.questions().filter(|question| !question.is_answered).collect();
    match open.as_slice() {
        [] => Vec::new(),
        [question] => {
            let left = ear.time_left(question.number, now).unwrap_or_default();
            vec![say(Kind::Ask, ear.phrases().enter_one_open(question.number, &left))]
        }
        several => {
            let numbers = numbers(ear.phrases(), several);
            vec![say(Kind::Ask, ear.phrases().enter_several_open(several.len(), &numbers))]
        }
    }
}

/// The question that is meant; else what to say.
fn target(ear: &Ear, number: Option<u32>, typed: &str, now: UnixMillis) -> Result<u32, Vec<Act>> {
    let phrases = ear.phrases();
    if let Some(number) = number {
        return match ear.questions().find(|question| question.number == number) {
            Some(_) => Ok(number),
            None => Err(vec![say(Kind::Error, phrases.question_not_open(number))]),
        };
    }
    if let Some(question) = ear.only_question(now) {
        return Ok(question.number);
    }
    let open: Vec<_> = ear.questions().filter(|question| !question.is_answered).collect();
    Err(vec![match open.as_slice() {
        [] => say(Kind::Error, phrases.none_open),
        [question] => say(Kind::Error, phrases.has_just_changed(question.number, typed)),
        several => {
            let first = several.first().map_or(1, |question| question.number);
            say(Kind::Error, phrases.which_question(&numbers(phrases, several), typed, first))
        }
    }])
}

fn numbers(phrases: &Phrases, questions: &[&Question]) -> String {
    let all: Vec<_> = questions.iter().map(|question| question.number.to_string()).collect();
    match all.split_last() {
        Some((last, others)) if !others.is_empty() => phrases.list(&others.join(", "), last),
        _ => all.concat(),
    }
}

fn decide(ear: &mut Ear, number: u32, yes: bool, whole: bool, line: &str, now: UnixMillis) -> Vec<Act> {
    let phrases = ear.phrases();
    let Some(question) = ear.questions().find(|question| question.number == number) else {
        return vec![say(Kind::Error, NotAnswered::NotOpen.why(phrases))];
    };
    if matches!(question.subject, Subject::Clarification { .. }) {
        return respond(ear, number, without_number(line), now);
    }
    if yes && !whole && question.is_grave() {
        return vec![say(Kind::Error, phrases.too_short(number))];
    }
    let (decision, word) = if yes { (Decision::Accept, phrases.yes) } else { (Decision::Reject, phrases.no) };
    match ear.decide(number, decision, now) {
        Ok(message) => vec![
            say(Kind::Answer, phrases.you_say(word, number)),
            Act::Send { message, question: Some(number) },
        ],
        Err(why) => vec![say(Kind::Error, ear.phrases().question_trouble(number, why.why(ear.phrases())))],
    }
}

fn respond(ear: &mut Ear, number: u32, text: &str, now: UnixMillis) -> Vec<Act> {
    match ear.respond(number, text, now) {
        Ok(message) => vec![
            say(Kind::Answer, ear.phrases().you_answer(number, &crate::plain(text, true))),
            Act::Send { message, question: Some(number) },
        ],
        Err(NotAnswered::NotTaken) => {
            let how = ear.repeat(number, now).and_then(|again| again.text.lines().last().map(str::to_owned));
            vec![say(Kind::Error, ear.phrases().does_not_take(number, &how.unwrap_or_default()))]
        }
        Err(why) => vec![say(Kind::Error, ear.phrases().question_trouble(number, why.why(ear.phrases())))],
    }
}

/// A number alone: 1 is yes and 2 is no, or a choice.
fn digit(
    ear: &mut Ear,
    digit: u32,
    line: &str,
    requests: Option<fn(&str) -> bool>,
    now: UnixMillis,
) -> Vec<Act> {
    if ear.questions().all(|question| question.is_answered) && requests.is_some() {
        return vec![Act::Request(line.trim().to_owned())];
    }
    let number = match target(ear, None, ear.phrases().no, now) {
        Ok(number) => number,
        Err(acts) => return chosen(ear, line.trim(), now).unwrap_or(acts),
    };
    let confirms = ear.questions().any(|question| {
        question.number == number && matches!(question.subject, Subject::Confirmation { .. })
    });
    match digit {
        _ if !confirms => respond(ear, number, line.trim(), now),
        1 => decide(ear, number, true, false, line, now),
        2 => decide(ear, number, false, true, line, now),
        _ => vec![say(Kind::Error, ear.phrases().one_or_two)],
    }
}

fn answer(ear: &mut Ear, question: Option<u32>, text: &str, now: UnixMillis) -> Vec<Act> {
    match question {
        Some(number) if !is_open(ear, number) => match ear.only_question(now).map(|it| it.number) {
            // `answer 5 euro`, with no question 5.
            Some(only) => respond_or_decide(ear, only, &format!("{number} {text}"), now),
            None => target(ear, Some(number), ear.phrases().no, now).err().unwrap_or_default(),
        },
        Some(number) => respond_or_decide(ear, number, text, now),
        None => match target(ear, None, ear.phrases().no, now) {
            Ok(number) => respond_or_decide(ear, number, text, now),
            Err(acts) => chosen(ear, text, now).unwrap_or(acts),
        },
    }
}

fn is_open(ear: &Ear, number: u32) -> bool {
    ear.questions().any(|question| question.number == number)
}

/// With several questions open, words that only one of them has as a choice are for that one.
fn chosen(ear: &mut Ear, text: &str, now: UnixMillis) -> Option<Vec<Act>> {
    let number = ear.only_question_that_offers(text, now)?.number;
    Some(respond(ear, number, text, now))
}

/// `answer yes` is a yes.
fn respond_or_decide(ear: &mut Ear, number: u32, text: &str, now: UnixMillis) -> Vec<Act> {
    if let Typed::Decision { yes, whole, question: None } = Typed::read(text, ear.phrases()) {
        return decide(ear, number, yes, whole, text, now);
    }
    respond(ear, number, text, now)
}

fn other(ear: &mut Ear, text: &str, requests: Option<fn(&str) -> bool>, now: UnixMillis) -> Vec<Act> {
    let takes = |question: &Question| {
        question.takes(&ResponseKind::FreeText) || question.takes(&ResponseKind::MultipleChoice)
    };
    if let Some(number) = ear.only_question(now).filter(|question| takes(question)).map(|it| it.number) {
        return respond(ear, number, text, now);
    }
    if let Some(acts) = chosen(ear, text, now) {
        return acts;
    }
    let open: Vec<_> = ear.questions().filter(|question| !question.is_answered).collect();
    match (open.as_slice(), requests) {
        ([], Some(_)) => vec![Act::Request(text.to_owned())],
        ([], None) => vec![say(Kind::Error, ear.phrases().not_understood)],
        (_, Some(understood)) if !sounds_like_an_answer(text) && understood(text) => {
            vec![Act::Request(text.to_owned())]
        }
        (open, _) => vec![say(Kind::Error, not_an_answer(ear, open, now))],
    }
}

/// What was typed is no answer: how one is given.
fn not_an_answer(ear: &Ear, open: &[&Question], now: UnixMillis) -> String {
    let phrases = ear.phrases();
    if let [question] = open {
        let again = ear.repeat(question.number, now);
        let how = again.as_ref().and_then(|again| again.text.lines().last()).unwrap_or_default();
        return phrases.not_an_answer(how);
    }
    let first = open.first().map_or(1, |question| question.number);
    phrases.not_an_answer_to_several(&numbers(phrases, open), first)
}

/// What is said to whoever stops listening; what is open is named.
pub(super) fn goodbye(ear: &Ear, leaves: bool) -> String {
    let phrases = ear.phrases();
    let mut parts = Vec::new();
    if leaves {
        parts.push(phrases.stopped_listening.to_owned());
        match ear.sessions().count() {
            0 => {}
            1 => parts.push(phrases.agent_goes_on.to_owned()),
            _ => parts.push(phrases.agents_go_on.to_owned()),
        }
    }
    let open: Vec<_> = ear.questions().filter(|question| !question.is_answered).collect();
    match open.as_slice() {
        [] => {}
        [question] => parts.push(phrases.stays_unanswered(question.number)),
        several => parts.push(phrases.stay_unanswered(&numbers(phrases, several))),
    }
    parts.join(" ")
}

fn more_time(ear: &mut Ear, number: u32, now: UnixMillis) -> Vec<Act> {
    match ear.more_time(number, now) {
        Ok(message) => {
            vec![say(Kind::Ask, ear.phrases().more_time_asked), Act::Send { message, question: None }]
        }
        Err(why) => vec![say(Kind::Error, ear.phrases().question_trouble(number, why.why(ear.phrases())))],
    }
}

/// Questions again: the one, or all that are open.
fn again(
    ear: &Ear,
    number: Option<u32>,
    now: UnixMillis,
    what: impl Fn(&Ear, u32, UnixMillis) -> Option<Announcement>,
) -> Vec<Act> {
    let all: Vec<_> = ear
        .questions()
        .filter(|question| number.is_none_or(|number| question.number == number))
        .filter_map(|question| what(ear, question.number, now))
        .map(Act::Say)
        .collect();
    if all.is_empty() {
        return vec![say(Kind::Status, ear.phrases().none_such_open)];
    }
    all
}

fn status(ear: &Ear, lost: bool, now: UnixMillis) -> Vec<Act> {
    let phrases = ear.phrases();
    let mut lines = Vec::new();
    if lost {
        lines.push(phrases.status_lost.to_owned());
    }
    lines.extend(how_things_stand(ear));
    if ear.sessions().next().is_none() {
        lines.push(phrases.nobody_at_work.to_owned());
    }
    let several = ear.questions().nth(1).is_some();
    for question in ear.questions() {
        let left = ear.time_left(question.number, now).unwrap_or_default();
        let number = question.number;
        let stands = if question.is_answered {
            phrases.is_answered(number)
        } else {
            phrases.is_open(number, &question.agent, &left)
        };
        lines.push(if several { format!("{stands} {}", question.what()) } else { stands });
    }
    lines.push(phrases.you_hear(much(phrases, &ear.tastes().verbosity)));
    lines.extend(ear.standing().map(|standing| standing.sentence(phrases)));
    vec![say(Kind::Status, lines.join("\n"))]
}

pub(super) fn how_things_stand(ear: &Ear) -> impl Iterator<Item = String> {
    let phrases = ear.phrases();
    let several = ear.sessions().nth(1).is_some();
    ear.sessions().map(move |session| {
        let doing = if session.doing.is_empty() { phrases.has_not_said } else { &session.doing };
        if several && !session.about.is_empty() && !doing.starts_with(&session.about) {
            let doing = format!("{}. {doing}", phrases.began_with(&session.about));
            return phrases.session_does(session.number, &session.agent, &doing);
        }
        phrases.session_does(session.number, &session.agent, doing)
    })
}

fn much<'a>(phrases: &'a Phrases, verbosity: &'a Verbosity) -> &'a str {
    match verbosity {
        Verbosity::Terse => phrases.terse,
        Verbosity::Normal => phrases.normal,
        Verbosity::Detailed => phrases.detailed,
        other => other.as_str(),
    }
}

fn stop(ear: &mut Ear, which: Which, now: UnixMillis) -> Vec<Act> {
    let phrases = ear.phrases();
    let sessions: Vec<_> = ear
        .sessions()
        .filter(|session| !matches!(which, Which::One(number) if session.number != number))
        .collect();
    match (which, sessions.as_slice()) {
        (Which::One(number), []) => vec![say(Kind::Error, phrases.no_such_session(number))],
        (_, []) => vec![say(Kind::Error, phrases.nobody_at_work)],
        (Which::Unsaid, [_, _, ..]) => {
            let name = |session: &&Session| match session.about.as_str() {
                "" => phrases.session_is(session.number, &session.agent),
                about => phrases.session_is_about(session.number, &session.agent, about),
            };
            let all: Vec<_> = sessions.iter().map(name).collect();
            vec![say(Kind::Error, phrases.which_session(&all.join("; ")))]
        }
        (_, sessions) => {
            let mut acts = Vec::new();
            let named = |session: &&Session| (session.id.clone(), session.agent.clone(), session.number);
            for (id, agent, number) in sessions.iter().map(named).collect::<Vec<_>>() {
                match ear.stop(&id, now) {
                    Ok(message) => {
                        acts.push(say(Kind::Answer, phrases.you_stop(&agent, number)));
                        acts.push(Act::Send { message, question: None });
                    }
                    Err(_) => acts.push(say(Kind::Error, phrases.nothing_stopped)),
                }
            }
            acts
        }
    }
}

fn retune(ear: &Ear, louder: bool) -> Vec<Act> {
    let phrases = ear.phrases();
    let tastes = ear.tastes();
    let verbosity = match (&tastes.verbosity, louder) {
        (Verbosity::Terse, true) | (Verbosity::Detailed, false) => Verbosity::Normal,
        (Verbosity::Terse, false) => return vec![say(Kind::Status, phrases.hears_least)],
        (Verbosity::Detailed, true) => return vec![say(Kind::Status, phrases.hears_all)],
        (_, true) => Verbosity::Detailed,
        (_, false) => Verbosity::Terse,
    };
    let text = phrases.you_will_hear(much(phrases, &verbosity));
    vec![say(Kind::Status, text), Act::Retune(Tastes { verbosity, ..tastes.clone() })]
}

fn help(phrases: &Phrases, around: Around) -> Vec<Act> {
    let mut lines = vec![
        phrases.help_decide,
        phrases.help_answer,
        phrases.help_repeat,
        phrases.help_more_time,
        phrases.help_stop,
        phrases.help_status,
        phrases.help_louder,
        phrases.help_quit,
    ];
    if around.speech {
        lines.extend([phrases.help_hush, phrases.help_pace]);
    }
    if around.requests.is_some() {
        lines.push(phrases.help_requests);
    }
    vec![say(Kind::Help, lines.join("\n"))]
}
