//! The timeline of a recording: one entry per item, with its session, lane and a description.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use aaep::check::CheckedDocument;
use aaep::message::Message;
use aaep::rule::{Finding, Severity};
use aaep::session::{SessionEvent, SessionEventBody};
use listen::sanitize;
use seal::UnixMillis;

use crate::output::{capitalize, printable};
use crate::svg_text::truncate;

pub(super) struct TimelineEntry {
    pub(super) line: u64,
    /// Milliseconds since the first event, if the item has a timestamp.
    pub(super) offset_ms: Option<i64>,
    pub(super) session: Option<SessionLabel>,
    pub(super) lane: TimelineLane,
    pub(super) change: LaneChange,
    /// The name of the tool call, output or question that begins, continues or ends.
    pub(super) key: String,
    pub(super) text: String,
    /// A sentence about the outcome of a question, if this entry reports one.
    pub(super) outcome: Option<String>,
    /// The question that this entry resolves.
    pub(super) resolved_question: Option<String>,
    pub(super) violations: Vec<RuleViolation>,
}

/// The label of a session: its number, or its id if there are too many sessions.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct SessionLabel(pub(super) String);

seal::string_enum! {
    pub(super) enum TimelineLane {
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

/// What happens to a tool call, output or question in its lane.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum LaneChange {
    Begins,
    Continues,
    Ends,
    /// It has no duration.
    Instant,
}

pub(super) struct RuleViolation {
    pub(super) is_error: bool,
    pub(super) rule: &'static str,
    pub(super) message: String,
}

impl RuleViolation {
    pub(super) fn from_finding(finding: &Finding) -> Self {
        let location =
            if finding.pointer.is_empty() { String::new() } else { format!("at {}: ", finding.pointer) };
        Self {
            is_error: finding.severity == Severity::Error,
            rule: finding.rule.id(),
            message: truncate(&printable(&format!("{location}{}", finding.message())), MAX_FINDING_CHARS),
        }
    }

    /// Returns the label in front of the violation.
    pub(super) fn severity_label(&self) -> &'static str {
        if self.is_error { "rule broken" } else { "warning" }
    }
}

/// Maximum number of numbered sessions and of tracked questions. Further sessions are named by their ids.
const MAX_TRACKED: usize = 65_536;

/// Maximum length of a finding, because it may quote untrusted text.
const MAX_FINDING_CHARS: usize = 1000;
/// Longer names are shortened and distinguished by a hash.
const MAX_NAME_CHARS: usize = 128;

/// Builds timeline entries. Stores only hashes of untrusted names, so that long names use no more memory than short ones.
#[derive(Default)]
pub(super) struct TimelineBuilder {
    hasher: RandomState,
    started_at: Option<UnixMillis>,
    /// The number of each session, and the hash of its first agent.
    session_numbers: HashMap<u64, (u32, u64)>,
    /// The session of each question, and the question's number.
    questions: HashMap<u64, (SessionLabel, usize)>,
}

impl TimelineBuilder {
    pub(super) fn add_item(
        &mut self,
        line: u64,
        checked: &CheckedDocument<'_>,
        findings: &[Finding],
    ) -> TimelineEntry {
        let mut entry = TimelineEntry {
            line,
            offset_ms: None,
            session: None,
            lane: TimelineLane::Other,
            change: LaneChange::Instant,
            key: String::new(),
            text: String::new(),
            outcome: None,
            resolved_question: None,
            violations: findings.iter().map(RuleViolation::from_finding).collect(),
        };
        match checked {
            CheckedDocument::Event(event) => self.add_event(event, &mut entry),
            CheckedDocument::Message(message) => self.add_message(message, &mut entry),
            CheckedDocument::InvalidReply(token) => {
                entry.lane = TimelineLane::Answer;
                entry.session =
                    self.questions.get(&self.hasher.hash_one(&**token)).map(|(session, _)| session.clone());
                entry.text = format!("An invalid reply to {} has no effect.", self.question_label(token));
            }
            CheckedDocument::EventWithoutSession(_) => {
                "This event has no session.".clone_into(&mut entry.text);
            }
            _ => "This is neither an event nor a message.".clone_into(&mut entry.text),
        }
        entry
    }

    /// Returns the label of the session, and the agent's name if it is not the first agent in the session.
    fn label_session(&mut self, id: &str, agent: &str) -> (SessionLabel, Option<String>) {
        let (hash, agent_hash) = (self.hasher.hash_one(id), self.hasher.hash_one(agent));
        let next = u32::try_from(self.session_numbers.len()).unwrap_or(u32::MAX).saturating_add(1);
        if self.session_numbers.len() < MAX_TRACKED {
            self.session_numbers.entry(hash).or_insert((next, agent_hash));
        }
        match self.session_numbers.get(&hash) {
            Some((number, first_agent_hash)) => (
                SessionLabel(format!("session {number}")),
                (*first_agent_hash != agent_hash).then(|| short_name(agent)),
            ),
            None => (SessionLabel(format!("session {}", short_name(id))), None),
        }
    }

    /// Returns a unique name of bounded length.
    fn short_key(&self, text: &str) -> String {
        if text.len() <= MAX_NAME_CHARS {
            return text.to_owned();
        }
        format!("{} {:x}", truncate(text, MAX_NAME_CHARS), self.hasher.hash_one(text))
    }

    /// Names a question by its number, or by its token if it was not asked in this recording.
    fn question_label(&self, token: &str) -> String {
        match self.questions.get(&self.hasher.hash_one(token)) {
            Some((_, number)) => format!("question {number}"),
            None => format!("question {}", short_name(token)),
        }
    }

    fn add_event(&mut self, event: &SessionEvent<Cow<'_, str>>, entry: &mut TimelineEntry) {
        let at = event.timestamp.map(|at| at.unix_millis());
        entry.offset_ms = at.map(|at| at.millis_since(*self.started_at.get_or_insert(at)));
        let (session, other_agent) = self.label_session(&event.session_id, &event.agent_id);
        entry.session = Some(session.clone());
        let (lane, change, key, text) = classify_event(event);
        (entry.lane, entry.change, entry.key, entry.text) = (lane, change, key, text);
        if let Some(agent) = other_agent {
            entry.text = format!("{} Sent by {agent}.", entry.text);
            if lane == TimelineLane::State {
                entry.key = format!("{}: {agent}", entry.key);
            }
        }
        if lane == TimelineLane::Question {
            let (number, hash) = (self.questions.len() + 1, self.hasher.hash_one(&*entry.key));
            if number <= MAX_TRACKED {
                self.questions.entry(hash).or_insert((session, number));
            }
            entry.text = format!("This is {}. {}", self.question_label(&entry.key), entry.text);
        }
        entry.key = self.short_key(&entry.key);
        if let Some(resolution) = &event.reported_resolution {
            let token = resolution.token.to_string();
            let decision_text = resolution.decision.as_deref().map_or_else(
                || "answered".to_owned(),
                |decision| if decision == "accept" { "accepted".to_owned() } else { "rejected".to_owned() },
            );
            let by = resolution
                .resolved_by
                .as_deref()
                .map_or_else(String::new, |by| format!(" (resolved by {})", short_name(by)));
            let label = capitalize(&self.question_label(&token));
            entry.outcome = Some(format!("{label} was {decision_text}{by}."));
            entry.resolved_question = Some(self.short_key(&token));
        }
    }

    fn add_message(&mut self, message: &Message, entry: &mut TimelineEntry) {
        let timestamp = match message {
            Message::ConfirmationReply(reply) => Some(&reply.timestamp),
            Message::ClarificationReply(reply) => Some(&reply.timestamp),
            Message::DeadlineExtend(extension) => Some(&extension.timestamp),
            Message::SessionStop(stop) => Some(&stop.timestamp),
            _ => None,
        };
        let first = self.started_at;
        entry.offset_ms = timestamp.zip(first).map(|(at, first)| at.unix_millis().millis_since(first));
        let (lane, token, text) = match message {
            Message::ConfirmationReply(reply) => {
                let text = format!(
                    "{} was answered: {}.",
                    capitalize(&self.question_label(reply.reply_token.as_str())),
                    short_name(reply.decision.as_str())
                );
                (TimelineLane::Answer, Some(reply.reply_token.as_str()), text)
            }
            Message::ClarificationReply(reply) => {
                let token = reply.reply_token.as_str();
                let label = capitalize(&self.question_label(token));
                (TimelineLane::Answer, Some(token), format!("{label} was answered."))
            }
            Message::DeadlineExtend(extension) => {
                let token = extension.reply_token.as_str();
                (
                    TimelineLane::Answer,
                    None,
                    format!("More time is requested for {}.", self.question_label(token)),
                )
            }
            Message::SessionStop(stop) => (
                TimelineLane::Answer,
                None,
                format!("The person stops the session {}.", short_name(stop.session_id.as_str())),
            ),
            Message::SubscriptionClose(close) => {
                let reason = close.reason_code.as_deref().unwrap_or("no reason given");
                (TimelineLane::Listener, None, format!("The subscription ends: {}.", short_name(reason)))
            }
            other => (TimelineLane::Listener, None, format!("A {} message.", other.message_type().as_str())),
        };
        entry.lane = lane;
        entry.text = text;
        if let Some(token) = token {
            entry.session =
                self.questions.get(&self.hasher.hash_one(token)).map(|(session, _)| session.clone());
            entry.resolved_question = Some(self.short_key(token));
        }
    }
}

/// Classifies an event. Returns its lane, the change in that lane, the name of the tool call, output or question, and a
/// description.
fn classify_event(event: &SessionEvent<Cow<'_, str>>) -> (TimelineLane, LaneChange, String, String) {
    let simple = |lane, change, text: &str| (lane, change, String::new(), text.to_owned());
    let ended = |how: &str| {
        (TimelineLane::Session, LaneChange::Ends, how.to_owned(), format!("The session ends: {how}."))
    };
    match &event.body {
        SessionEventBody::Started => (
            TimelineLane::Session,
            LaneChange::Begins,
            "started".to_owned(),
            "The session starts.".to_owned(),
        ),
        SessionEventBody::Completed => ended("completed"),
        SessionEventBody::Errored => ended("errored"),
        SessionEventBody::Cancelled => ended("cancelled"),
        SessionEventBody::StateChanged { from, to } => {
            let text = format!("From {} to {}.", short_name(from.as_str()), short_name(to.as_str()));
            (TimelineLane::State, LaneChange::Instant, to.to_string(), text)
        }
        SessionEventBody::ProgressUpdated { deadline_extension: Some(_), .. } => {
            simple(TimelineLane::Progress, LaneChange::Instant, "The person has more time to answer.")
        }
        SessionEventBody::ProgressUpdated { percent: Some(percent), .. } => {
            (TimelineLane::Progress, LaneChange::Instant, String::new(), format!("{percent:.0} percent."))
        }
        SessionEventBody::ProgressUpdated { percent: None, .. } => {
            simple(TimelineLane::Progress, LaneChange::Instant, "The agent reports progress.")
        }
        SessionEventBody::ToolInvoked { tool, call_id: call, high_risk, irreversible, .. } => {
            let mut text = format!("{} is called.", tool_name(tool, call.as_deref()));
            if *high_risk {
                text += " High risk.";
            }
            if *irreversible {
                text += " This cannot be undone.";
            }
            (TimelineLane::Tool, LaneChange::Begins, tool_key(tool, call.as_deref()), text)
        }
        SessionEventBody::ToolCompleted { tool, call_id: call } => {
            let text = format!("{} has ended.", tool_name(tool, call.as_deref()));
            (TimelineLane::Tool, LaneChange::Ends, tool_key(tool, call.as_deref()), text)
        }
        SessionEventBody::OutputStreaming {
            output_id: output,
            position,
            code_points: length,
            complete,
            ..
        } => {
            let name = output.as_deref().unwrap_or("the output");
            let end = position.saturating_add(*length);
            let completion = if *complete { " The output is complete." } else { "" };
            let text = format!("{}, characters {position} to {end}.{completion}", short_name(name));
            let change = match (*complete, *position) {
                (true, _) => LaneChange::Ends,
                (false, 0) => LaneChange::Begins,
                _ => LaneChange::Continues,
            };
            (TimelineLane::Output, change, name.to_owned(), text)
        }
        SessionEventBody::Confirmation(question) => {
            let warning = if question.irreversible == Some(true) { " This cannot be undone." } else { "" };
            let text = format!(
                "Permission requested: {}{warning} Time to answer: {} seconds.",
                to_sentence(&question.action),
                question.timeout_seconds
            );
            (TimelineLane::Question, LaneChange::Begins, question.token.to_string(), text)
        }
        SessionEventBody::Clarification(question) => {
            let text = format!(
                "The agent asks: {} Time to answer: {} seconds.",
                to_sentence(&question.question),
                question.timeout_seconds
            );
            (TimelineLane::Question, LaneChange::Begins, question.token.to_string(), text)
        }
        SessionEventBody::Handoff => {
            simple(TimelineLane::Handoff, LaneChange::Instant, "The agent hands over to someone else.")
        }
        _ => simple(TimelineLane::Other, LaneChange::Instant, "An event of an extension."),
    }
}

fn tool_key(tool: &str, call: Option<&str>) -> String {
    call.unwrap_or(tool).to_owned()
}

fn tool_name(tool: &str, call: Option<&str>) -> String {
    match call {
        Some(call) => format!("{} ({})", short_name(tool), short_name(call)),
        None => short_name(tool),
    }
}

/// Formats an untrusted name as one short line.
pub(super) fn short_name(text: &str) -> String {
    truncate(&sanitize(text, true), 60)
}

/// Formats untrusted text as one line that ends with punctuation.
fn to_sentence(text: &str) -> String {
    let mut text = truncate(&sanitize(text, true), 200);
    if text.chars().next_back().is_some_and(char::is_alphanumeric) {
        text.push('.');
    }
    text
}

/// Formats the time since the start of the recording.
pub(super) fn format_offset(offset_ms: Option<i64>) -> String {
    let Some(offset_ms) = offset_ms else { return "no timestamp".to_owned() };
    let (sign, millis) = (if offset_ms < 0 { "-" } else { "" }, offset_ms.unsigned_abs());
    let (seconds, millis) = (millis / 1000, millis % 1000);
    format!("{sign}{}:{:02}:{:02}.{millis:03}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}
