//! What happens in a recording, one moment an item: who, in which lane, in plain words.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use aaep::check::Checked;
use aaep::message::Message;
use aaep::rule::{Finding, Severity};
use aaep::session::{Body, Step};
use listen::plain;
use seal::UnixMillis;

use crate::picture::short;
use crate::print::printable;

pub(super) struct Moment {
    pub(super) line: u64,
    /// Milliseconds since the first event, where it says when.
    pub(super) at: Option<i64>,
    pub(super) session: Option<Who>,
    pub(super) lane: Lane,
    pub(super) turn: Turn,
    /// What begins, goes on or ends, by name.
    pub(super) key: String,
    pub(super) text: String,
    /// What becomes of a question with it.
    pub(super) outcome: Option<String>,
    /// A question that is resolved with it.
    pub(super) resolves: Option<String>,
    pub(super) broken: Vec<Broken>,
}

/// A session: by its number, or by its id where there are too many.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Who(pub(super) String);

seal::word_enum! {
    pub(super) enum Lane word {
        Session "session",
        State "state",
        Progress "progress",
        Tool "tool",
        Output "output",
        Question "question",
        Answer "answer",
        Handoff "handoff",
        Listener "listener",
        Other "other",
    }
}

/// What becomes of a thing in its lane.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    Begins,
    GoesOn,
    Ends,
    /// It has no length.
    Happens,
}

pub(super) struct Broken {
    pub(super) is_error: bool,
    pub(super) rule: &'static str,
    pub(super) words: String,
}

impl Broken {
    pub(super) fn of(finding: &Finding) -> Self {
        let place =
            if finding.pointer.is_empty() { String::new() } else { format!("at {}: ", finding.pointer) };
        Self {
            is_error: finding.severity == Severity::Error,
            rule: finding.rule.id(),
            words: short(&printable(&format!("{place}{}", finding.message())), LONGEST_RULE),
        }
    }

    /// What stands in front of it.
    pub(super) fn word(&self) -> &'static str {
        if self.is_error { "rule broken" } else { "warning" }
    }
}

/// Sessions beyond this are called by their ids, and questions beyond it are not found again.
const MOST: usize = 65_536;

/// What is found may quote a stranger, who may say much.
const LONGEST_RULE: usize = 1000;
/// Names that are longer are told apart by their fingerprints.
const LONGEST_NAME: usize = 128;

/// Tells moments apart. Of strangers' names it keeps fingerprints, so that long ones cost no more than short ones.
#[derive(Default)]
pub(super) struct Story {
    hasher: RandomState,
    first: Option<UnixMillis>,
    /// The number of each session, and the agent that was heard there first.
    numbers: HashMap<u64, (u32, u64)>,
    /// The session of each question, and its number.
    asked: HashMap<u64, (Who, usize)>,
}

impl Story {
    pub(super) fn moment(&mut self, line: u64, checked: &Checked<'_>, findings: &[Finding]) -> Moment {
        let mut moment = Moment {
            line,
            at: None,
            session: None,
            lane: Lane::Other,
            turn: Turn::Happens,
            key: String::new(),
            text: String::new(),
            outcome: None,
            resolves: None,
            broken: findings.iter().map(Broken::of).collect(),
        };
        match checked {
            Checked::Event(step) => self.event(step, &mut moment),
            Checked::Message(message) => self.message(message, &mut moment),
            Checked::VoidReply(token) => {
                moment.lane = Lane::Answer;
                moment.session = self.asked.get(&self.hasher.hash_one(&**token)).map(|(who, _)| who.clone());
                moment.text = format!("A reply to {} that has no effect.", self.question(token));
            }
            Checked::Unplaced(_) => "An event that names no session.".clone_into(&mut moment.text),
            _ => "Something that is neither an event nor a message.".clone_into(&mut moment.text),
        }
        moment
    }

    /// The session; and the agent, where it is another than the session's first.
    fn who(&mut self, id: &str, agent: &str) -> (Who, Option<String>) {
        let (print, from) = (self.hasher.hash_one(id), self.hasher.hash_one(agent));
        let next = u32::try_from(self.numbers.len()).unwrap_or(u32::MAX).saturating_add(1);
        if self.numbers.len() < MOST {
            self.numbers.entry(print).or_insert((next, from));
        }
        match self.numbers.get(&print) {
            Some((number, first)) => {
                (Who(format!("session {number}")), (*first != from).then(|| name(agent)))
            }
            None => (Who(format!("session {}", name(id))), None),
        }
    }

    /// A name by which things are told apart, and not too long.
    fn short_key(&self, text: &str) -> String {
        if text.len() <= LONGEST_NAME {
            return text.to_owned();
        }
        format!("{} {:x}", short(text, LONGEST_NAME), self.hasher.hash_one(text))
    }

    /// A question by its number, or by its token where it was not asked here.
    fn question(&self, token: &str) -> String {
        match self.asked.get(&self.hasher.hash_one(token)) {
            Some((_, number)) => format!("question {number}"),
            None => format!("question {}", name(token)),
        }
    }

    fn event(&mut self, step: &Step<Cow<'_, str>>, moment: &mut Moment) {
        let at = step.at.map(|at| at.unix_millis());
        moment.at = at.map(|at| at.millis_since(*self.first.get_or_insert(at)));
        let (who, other) = self.who(&step.session_id, &step.agent_id);
        moment.session = Some(who.clone());
        let (lane, turn, key, text) = happens(step);
        (moment.lane, moment.turn, moment.key, moment.text) = (lane, turn, key, text);
        if let Some(agent) = other {
            moment.text = format!("{} This is said by {agent}.", moment.text);
            if lane == Lane::State {
                moment.key = format!("{}: {agent}", moment.key);
            }
        }
        if lane == Lane::Question {
            let (number, print) = (self.asked.len() + 1, self.hasher.hash_one(&*moment.key));
            if number <= MOST {
                self.asked.entry(print).or_insert((who, number));
            }
            moment.text = format!("This is {}. {}", self.question(&moment.key), moment.text);
        }
        moment.key = self.short_key(&moment.key);
        if let Some(resolution) = &step.resolution {
            let token = resolution.token.to_string();
            let what = resolution.decision.as_deref().map_or_else(
                || "answered".to_owned(),
                |decision| if decision == "accept" { "accepted".to_owned() } else { "rejected".to_owned() },
            );
            let by = resolution.by.as_deref().map_or_else(String::new, |by| format!(", by {}", name(by)));
            let mut outcome = format!("{} is {what}{by}.", self.question(&token));
            if let Some(first) = outcome.get_mut(..1) {
                first.make_ascii_uppercase();
            }
            moment.outcome = Some(outcome);
            moment.resolves = Some(self.short_key(&token));
        }
    }

    fn message(&mut self, message: &Message, moment: &mut Moment) {
        let said = match message {
            Message::ConfirmationReply(reply) => Some(&reply.timestamp),
            Message::ClarificationReply(reply) => Some(&reply.timestamp),
            Message::DeadlineExtend(wish) => Some(&wish.timestamp),
            Message::SessionStop(stop) => Some(&stop.timestamp),
            _ => None,
        };
        let first = self.first;
        moment.at = said.zip(first).map(|(at, first)| at.unix_millis().millis_since(first));
        let (lane, token, text) = match message {
            Message::ConfirmationReply(reply) => {
                let text = format!(
                    "The reply to {} is {}.",
                    self.question(reply.reply_token.as_str()),
                    name(reply.decision.as_str())
                );
                (Lane::Answer, Some(reply.reply_token.as_str()), text)
            }
            Message::ClarificationReply(reply) => {
                let token = reply.reply_token.as_str();
                (Lane::Answer, Some(token), format!("A reply to {}.", self.question(token)))
            }
            Message::DeadlineExtend(wish) => {
                let token = wish.reply_token.as_str();
                (Lane::Answer, None, format!("More time is asked for to answer {}.", self.question(token)))
            }
            Message::SessionStop(stop) => {
                (Lane::Answer, None, format!("The person stops {}.", name(stop.session_id.as_str())))
            }
            Message::SubscriptionClose(close) => {
                let why = close.reason_code.as_deref().unwrap_or("no reason is given");
                (Lane::Listener, None, format!("The subscription ends: {}.", name(why)))
            }
            other => (Lane::Listener, None, format!("A {} message.", other.message_type().as_str())),
        };
        moment.lane = lane;
        moment.text = text;
        if let Some(token) = token {
            moment.session = self.asked.get(&self.hasher.hash_one(token)).map(|(who, _)| who.clone());
            moment.resolves = Some(self.short_key(token));
        }
    }
}

/// In which lane an event belongs, what it does there and to what, in words.
fn happens(step: &Step<Cow<'_, str>>) -> (Lane, Turn, String, String) {
    let simple = |lane, turn, text: &str| (lane, turn, String::new(), text.to_owned());
    let ended = |how: &str| (Lane::Session, Turn::Ends, how.to_owned(), format!("It ends: {how}."));
    match &step.body {
        Body::Started => (Lane::Session, Turn::Begins, "begun".to_owned(), "It begins.".to_owned()),
        Body::Completed => ended("completed"),
        Body::Errored => ended("errored"),
        Body::Cancelled => ended("cancelled"),
        Body::State { from, to } => {
            let text = format!("From {} to {}.", name(from.as_str()), name(to.as_str()));
            (Lane::State, Turn::Happens, to.to_string(), text)
        }
        Body::Progress { more_time: Some(_), .. } => {
            simple(Lane::Progress, Turn::Happens, "The person has more time to answer.")
        }
        Body::Progress { percent: Some(percent), .. } => {
            (Lane::Progress, Turn::Happens, String::new(), format!("It is at {percent:.0} percent."))
        }
        Body::Progress { percent: None, .. } => simple(Lane::Progress, Turn::Happens, "It goes on."),
        Body::ToolInvoked { tool, call, high_risk, irreversible, .. } => {
            let mut text = format!("{} is called.", tool_name(tool, call.as_deref()));
            if *high_risk {
                text += " The risk is high.";
            }
            if *irreversible {
                text += " It can never be undone.";
            }
            (Lane::Tool, Turn::Begins, tool_key(tool, call.as_deref()), text)
        }
        Body::ToolCompleted { tool, call } => {
            let text = format!("{} has ended.", tool_name(tool, call.as_deref()));
            (Lane::Tool, Turn::Ends, tool_key(tool, call.as_deref()), text)
        }
        Body::Output { output, position, length, complete, .. } => {
            let which = output.as_deref().unwrap_or("the output");
            let end = position.saturating_add(*length);
            let all = if *complete { " That is all of it." } else { "" };
            let text = format!("{}, characters {position} to {end}.{all}", name(which));
            let turn = match (*complete, *position) {
                (true, _) => Turn::Ends,
                (false, 0) => Turn::Begins,
                _ => Turn::GoesOn,
            };
            (Lane::Output, turn, which.to_owned(), text)
        }
        Body::Confirmation(asked) => {
            let warning = if asked.irreversible == Some(true) { " It can never be undone." } else { "" };
            let text = format!(
                "May this be done: {}{warning} There are {} seconds to answer.",
                sentence(&asked.action),
                asked.timeout_seconds
            );
            (Lane::Question, Turn::Begins, asked.token.to_string(), text)
        }
        Body::Clarification(asked) => {
            let text = format!(
                "What was meant: {} There are {} seconds to answer.",
                sentence(&asked.question),
                asked.timeout_seconds
            );
            (Lane::Question, Turn::Begins, asked.token.to_string(), text)
        }
        Body::Handoff => simple(Lane::Handoff, Turn::Happens, "Somebody else has to go on."),
        _ => simple(Lane::Other, Turn::Happens, "An event of an extension."),
    }
}

fn tool_key(tool: &str, call: Option<&str>) -> String {
    call.unwrap_or(tool).to_owned()
}

fn tool_name(tool: &str, call: Option<&str>) -> String {
    match call {
        Some(call) => format!("{} ({})", name(tool), name(call)),
        None => name(tool),
    }
}

/// A stranger's name in one line, and not too long.
pub(super) fn name(text: &str) -> String {
    short(&plain(text, true), 60)
}

/// A stranger's words in one line, with an end.
fn sentence(text: &str) -> String {
    let mut text = short(&plain(text, true), 200);
    if text.chars().next_back().is_some_and(char::is_alphanumeric) {
        text.push('.');
    }
    text
}

/// Time since the beginning of the recording.
pub(super) fn clock(at: Option<i64>) -> String {
    let Some(at) = at else { return "no time".to_owned() };
    let (sign, millis) = (if at < 0 { "-" } else { "" }, at.unsigned_abs());
    let (seconds, millis) = (millis / 1000, millis % 1000);
    format!("{sign}{}:{:02}:{:02}.{millis:03}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}
