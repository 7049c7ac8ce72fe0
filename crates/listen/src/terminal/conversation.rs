//! What is done with what a person types.

use aaep::event::{Decision, ResponseKind, Verbosity};

use super::typed::{Typed, Which};
use crate::{Announcement, Ear, Kind, NotAnswered, Question, Subject, Tastes};

/// What follows from a line.
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
    /// Somebody takes what is neither a command nor an answer.
    pub(super) requests: bool,
    /// Somebody speaks.
    pub(super) speech: bool,
    /// There is a hub, which stops agents and gives more time; a producer by itself does neither.
    pub(super) hub: bool,
}

/// Takes one line.
pub(super) fn take(ear: &mut Ear, line: &str, around: Around, now: i64) -> Vec<Act> {
    let requests = around.requests;
    match Typed::read(line) {
        Typed::MoreTime(_) | Typed::Stop(_) if !around.hub => {
            vec![say(Kind::Error, "This agent has no hub, which alone could do that. Nothing was sent.")]
        }
        Typed::Nothing => nothing(ear, now),
        Typed::Decision { yes, whole, question } => {
            match target(ear, question, if yes { "yes" } else { "no" }, now) {
                Ok(number) => decide(ear, number, yes, whole, line, now),
                Err(acts) => acts,
            }
        }
        Typed::Number(number) => digit(ear, number, line, requests, now),
        Typed::Answer { question, text } => answer(ear, question, text, line, requests, now),
        Typed::MoreTime(question) => match target(ear, question, "more time", now) {
            Ok(number) => more_time(ear, number, now),
            Err(acts) => acts,
        },
        Typed::Details(question) => again(ear, question, now, Ear::details),
        Typed::Repeat(question) => again(ear, question, now, Ear::repeat),
        Typed::Status => status(ear, now),
        Typed::Stop(which) => stop(ear, which, now),
        Typed::Quieter => retune(ear, false),
        Typed::Louder => retune(ear, true),
        Typed::Hush => vec![Act::Hush],
        Typed::Pace { faster } => vec![Act::Pace { faster }],
        Typed::Quit => vec![Act::Quit],
        Typed::Help => help(around),
        Typed::Other(text) => other(ear, text, requests, now),
    }
}

fn say(kind: Kind, text: impl Into<String>) -> Act {
    Act::Say(Announcement::own(kind, text))
}

/// Enter alone answers nothing.
fn nothing(ear: &Ear, now: i64) -> Vec<Act> {
    let open: Vec<_> = ear.questions().filter(|question| !question.is_answered).collect();
    match open.as_slice() {
        [] => Vec::new(),
        [question] => {
            let left = ear.time_left(question.number, now).unwrap_or_default();
            vec![say(
                Kind::Ask,
                format!(
                    "Enter alone answers nothing. Question {} is open for {left}; type repeat to hear it.",
                    question.number
                ),
            )]
        }
        several => {
            vec![say(
                Kind::Ask,
                format!(
                    "Enter alone answers nothing. {} questions are open: {}.",
                    several.len(),
                    numbers(several)
                ),
            )]
        }
    }
}

/// The question that is meant; else what to say.
fn target(ear: &Ear, number: Option<u32>, typed: &str, now: i64) -> Result<u32, Vec<Act>> {
    if let Some(number) = number {
        return match ear.questions().find(|question| question.number == number) {
            Some(_) => Ok(number),
            None => Err(vec![say(Kind::Error, format!("Question {number} is not open. Nothing was sent."))]),
        };
    }
    if let Some(question) = ear.only_question(now) {
        return Ok(question.number);
    }
    let open: Vec<_> = ear.questions().filter(|question| !question.is_answered).collect();
    Err(vec![match open.as_slice() {
        [] => say(Kind::Error, "No question is open. Nothing was sent."),
        [question] => {
            let number = question.number;
            say(
                Kind::Error,
                format!(
                    "What is open has just changed, so nothing was sent. Question {number} is open; put its number behind it, like: {typed} {number}."
                ),
            )
        }
        several => say(
            Kind::Error,
            format!(
                "Which question do you mean? Nothing was sent. Open are {}. Put the number behind it, like: {typed} {}.",
                numbers(several),
                several.first().map_or(1, |question| question.number)
            ),
        ),
    }])
}

fn numbers(questions: &[&Question]) -> String {
    let all: Vec<_> = questions.iter().map(|question| question.number.to_string()).collect();
    match all.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} and {last}", others.join(", ")),
        _ => all.concat(),
    }
}

fn decide(ear: &mut Ear, number: u32, yes: bool, whole: bool, line: &str, now: i64) -> Vec<Act> {
    let Some(question) = ear.questions().find(|question| question.number == number) else {
        return vec![say(Kind::Error, NotAnswered::NotOpen.to_string())];
    };
    if matches!(question.subject, Subject::Clarification { .. }) {
        let word = line.split_whitespace().find(|word| word.parse::<u32>().is_err()).unwrap_or(line);
        return respond(ear, number, word, now);
    }
    if yes && !whole && question.is_grave() {
        return vec![say(
            Kind::Error,
            format!(
                "This cannot be undone, or could do harm, so a short answer is not enough. Nothing was sent. Type the whole word accept to allow question {number}, or no to refuse it."
            ),
        )];
    }
    let (decision, word) = if yes { (Decision::Accept, "yes") } else { (Decision::Reject, "no") };
    match ear.decide(number, decision, now) {
        Ok(message) => vec![
            say(Kind::Answer, format!("You say {word} to question {number}.")),
            Act::Send { message, question: Some(number) },
        ],
        Err(why) => vec![say(Kind::Error, format!("Question {number}: {why}"))],
    }
}

fn respond(ear: &mut Ear, number: u32, text: &str, now: i64) -> Vec<Act> {
    match ear.respond(number, text, now) {
        Ok(message) => vec![
            say(Kind::Answer, format!("You answer question {number}: {}", crate::plain(text, true))),
            Act::Send { message, question: Some(number) },
        ],
        Err(NotAnswered::NotTaken) => {
            let how = ear.repeat(number, now).and_then(|again| again.text.lines().last().map(str::to_owned));
            vec![say(
                Kind::Error,
                format!("Question {number} does not take that. {}", how.unwrap_or_default()),
            )]
        }
        Err(why) => vec![say(Kind::Error, format!("Question {number}: {why}"))],
    }
}

/// A number alone: 1 is yes and 2 is no, or a choice.
fn digit(ear: &mut Ear, digit: u32, line: &str, requests: bool, now: i64) -> Vec<Act> {
    if ear.questions().all(|question| question.is_answered) && requests {
        return vec![Act::Request(line.trim().to_owned())];
    }
    let number = match target(ear, None, "no", now) {
        Ok(number) => number,
        Err(acts) => return acts,
    };
    let confirms = ear.questions().any(|question| {
        question.number == number && matches!(question.subject, Subject::Confirmation { .. })
    });
    match digit {
        _ if !confirms => respond(ear, number, line.trim(), now),
        1 => decide(ear, number, true, false, line, now),
        2 => decide(ear, number, false, true, line, now),
        _ => vec![say(Kind::Error, "Type 1 for yes or 2 for no. Nothing was sent.")],
    }
}

fn answer(
    ear: &mut Ear,
    question: Option<u32>,
    text: &str,
    line: &str,
    requests: bool,
    now: i64,
) -> Vec<Act> {
    let open = |ear: &Ear, number: u32| ear.questions().any(|question| question.number == number);
    let explicit = line.trim().get(..6).is_some_and(|word| word.eq_ignore_ascii_case("answer"));
    match question {
        // A line that only begins with a number is an answer if that question is open.
        Some(number) if !explicit && !open(ear, number) => other(ear, line.trim(), requests, now),
        Some(number) if explicit && !open(ear, number) => match ear.only_question(now).map(|it| it.number) {
            // `answer 5 euro`, with no question 5.
            Some(only) => respond_or_decide(ear, only, &format!("{number} {text}"), now),
            None => target(ear, Some(number), "no", now).err().unwrap_or_default(),
        },
        Some(number) => respond_or_decide(ear, number, text, now),
        None => match target(ear, None, "no", now) {
            Ok(number) => respond_or_decide(ear, number, text, now),
            Err(acts) => acts,
        },
    }
}

/// `answer yes` is a yes.
fn respond_or_decide(ear: &mut Ear, number: u32, text: &str, now: i64) -> Vec<Act> {
    if let Typed::Decision { yes, whole, question: None } = Typed::read(text) {
        return decide(ear, number, yes, whole, text, now);
    }
    respond(ear, number, text, now)
}

fn other(ear: &mut Ear, text: &str, requests: bool, now: i64) -> Vec<Act> {
    let takes = |question: &Question| {
        question.takes(&ResponseKind::FreeText) || question.takes(&ResponseKind::MultipleChoice)
    };
    if let Some(number) = ear.only_question(now).filter(|question| takes(question)).map(|it| it.number) {
        return respond(ear, number, text, now);
    }
    if requests {
        return vec![Act::Request(text.to_owned())];
    }
    let open = ear.questions().any(|question| !question.is_answered);
    vec![say(
        Kind::Error,
        if open {
            "That was not understood, and nothing was sent. Type yes or no, repeat to hear the question, or help."
        } else {
            "That was not understood. Type help for what you can type."
        },
    )]
}

fn more_time(ear: &mut Ear, number: u32, now: i64) -> Vec<Act> {
    match ear.more_time(number, now) {
        Ok(message) => {
            let left = ear.time_left(number, now).unwrap_or_default();
            vec![
                say(
                    Kind::Ask,
                    format!("You asked for more time. Question {number} now stays open for {left}."),
                ),
                Act::Send { message, question: None },
            ]
        }
        Err(why) => vec![say(Kind::Error, format!("Question {number}: {why}"))],
    }
}

/// Questions again: the one, or all that are open.
fn again(
    ear: &Ear,
    number: Option<u32>,
    now: i64,
    what: impl Fn(&Ear, u32, i64) -> Option<Announcement>,
) -> Vec<Act> {
    let all: Vec<_> = ear
        .questions()
        .filter(|question| number.is_none_or(|number| question.number == number))
        .filter_map(|question| what(ear, question.number, now))
        .map(Act::Say)
        .collect();
    if all.is_empty() {
        return vec![say(Kind::Status, "No such question is open.")];
    }
    all
}

fn status(ear: &Ear, now: i64) -> Vec<Act> {
    let mut lines = Vec::new();
    for session in ear.sessions() {
        let doing = if session.doing.is_empty() { "It has not said what it does." } else { &session.doing };
        lines.push(format!("Session {}, {}. {doing}", session.number, session.agent));
    }
    if lines.is_empty() {
        lines.push("No agent is at work.".to_owned());
    }
    for question in ear.questions() {
        let left = ear.time_left(question.number, now).unwrap_or_default();
        let number = question.number;
        lines.push(if question.is_answered {
            format!("Question {number} is answered; what becomes of it is not known yet.")
        } else {
            format!("Question {number} from {} is open for {left}.", question.agent)
        });
    }
    lines.push(format!("You hear {} texts.", ear.tastes().verbosity));
    vec![say(Kind::Status, lines.join("\n"))]
}

fn stop(ear: &Ear, which: Which, now: i64) -> Vec<Act> {
    let sessions: Vec<_> = ear
        .sessions()
        .filter(|session| !matches!(which, Which::One(number) if session.number != number))
        .collect();
    match (which, sessions.as_slice()) {
        (Which::One(number), []) => vec![say(Kind::Error, format!("There is no session {number} at work."))],
        (_, []) => vec![say(Kind::Error, "No agent is at work.")],
        (Which::Unsaid, [_, _, ..]) => {
            let all: Vec<_> =
                sessions.iter().map(|session| format!("{} is {}", session.number, session.agent)).collect();
            vec![say(
                Kind::Error,
                format!(
                    "Which one? {}. Type stop and the number, or stop all. Nothing was stopped.",
                    all.join(", ")
                ),
            )]
        }
        (_, sessions) => {
            let mut acts = Vec::new();
            for session in sessions {
                match ear.stop(&session.id, now) {
                    Ok(message) => {
                        acts.push(say(
                            Kind::Answer,
                            format!("You stop {}, session {}.", session.agent, session.number),
                        ));
                        acts.push(Act::Send { message, question: None });
                    }
                    Err(_) => acts.push(say(Kind::Error, "There is no connection, so nothing was stopped.")),
                }
            }
            acts
        }
    }
}

fn retune(ear: &Ear, louder: bool) -> Vec<Act> {
    let tastes = ear.tastes();
    let verbosity = match (&tastes.verbosity, louder) {
        (Verbosity::Terse, true) | (Verbosity::Detailed, false) => Verbosity::Normal,
        (Verbosity::Terse, false) => return vec![say(Kind::Status, "You hear the least there is already.")],
        (Verbosity::Detailed, true) => return vec![say(Kind::Status, "You hear all there is already.")],
        (_, true) => Verbosity::Detailed,
        (_, false) => Verbosity::Terse,
    };
    let text = format!("From now on you hear {verbosity} texts.");
    vec![say(Kind::Status, text), Act::Retune(Tastes { verbosity, ..tastes.clone() })]
}

fn help(around: Around) -> Vec<Act> {
    let mut lines = vec![
        "yes or accept, no or reject: answers the open question. With several open, put its number behind: yes 2.",
        "answer and some words: answers a question that wants words. answer 2 and some words: answers question 2.",
        "repeat: says the open questions again. details: says all that is known of them.",
        "more time: gives a question as much time again.",
        "stop: stops the agent. With several at work, put the session's number behind: stop 2.",
        "status: says who is at work and what is open.",
        "quieter, louder: less or more is said.",
        "quit: ends listening.",
    ];
    if around.speech {
        lines
            .push("Enter alone: stops what is being said. hush: stops what waits, too, unless it is urgent.");
        lines.push("faster, slower: changes the pace of speech.");
    }
    if around.requests {
        lines.push("Anything else is taken for what you want the assistant to do.");
    }
    vec![say(Kind::Help, lines.join("\n"))]
}
