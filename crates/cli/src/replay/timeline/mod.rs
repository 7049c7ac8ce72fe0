//! The timeline of a recording: one entry per item, with its session, agent, lane, result and a description.

mod description;
mod names;
mod texts;

use std::borrow::Cow;

use aaep::check::CheckedDocument;
use aaep::event::Decision;
use aaep::json::JsonValue;
use aaep::message::{ClarificationResponse, Message};
use aaep::rule::{Finding, Severity};
use aaep::session::{ReportedResolution, SessionEvent};
use listen::sanitize;
use seal::{Timestamp, UnixMillis};

use crate::output::{capitalize, printable};
use crate::svg_text::truncate;
use description::{EventDescription, describe_event};
use names::NameRegistry;
use texts::DocumentTexts;
pub(super) use texts::{format_duration, format_offset, short_name};

pub(super) struct TimelineEntry {
    pub(super) line: u64,
    /// Milliseconds since the first event, if the item has a timestamp.
    pub(super) offset_ms: Option<i64>,
    /// The time since the previous item of the session, if it is a long wait.
    pub(super) wait_ms: Option<i64>,
    pub(super) session: Option<SessionLabel>,
    /// The session that this entry's session is a part of.
    pub(super) parent: Option<SessionLabel>,
    /// The producer of the event.
    pub(super) agent: Option<String>,
    pub(super) lane: TimelineLane,
    pub(super) change: LaneChange,
    /// Identifies the tool call, output, question or hand-off that begins, continues or ends. For a state, the previous state.
    pub(super) key: String,
    /// The name of the tool, output or question; the new state; or how the session ended.
    pub(super) label: String,
    pub(super) text: String,
    /// How the tool call, output or session ended.
    pub(super) result: Option<StepResult>,
    /// The text of an output chunk, with its white space, for joining it with the next chunk.
    pub(super) chunk: Option<String>,
    /// The question or hand-off that this entry resolves.
    pub(super) resolution: Option<ShownResolution>,
    pub(super) violations: Vec<RuleViolation>,
}

/// The end of a question or hand-off.
pub(super) struct ShownResolution {
    pub(super) key: String,
    pub(super) result: StepResult,
    /// The outcome in a few words, such as `rejected (timeout)`.
    pub(super) outcome: String,
    /// A sentence about the outcome, unless the entry's text says it already.
    pub(super) sentence: Option<String>,
}

/// How a tool call, output, question, hand-off or session ended. Each looks different in the diagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StepResult {
    Succeeded,
    Failed,
    TimedOut,
    /// A person said no.
    Refused,
    /// Cancelled, withdrawn, or nobody could be asked.
    Stopped,
}

/// The label of a session: its number, or its id if there are too many sessions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
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

/// The change that a tool call, output or question makes to its lane.
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

/// A pause of at least this length between two items of a session is pointed out, in milliseconds.
pub(super) const LONG_WAIT_MS: i64 = 5000;

/// Maximum length of a finding, because it may quote untrusted text.
const MAX_FINDING_CHARS: usize = 1000;
/// Builds timeline entries.
#[derive(Default)]
pub(super) struct TimelineBuilder {
    started_at: Option<UnixMillis>,
    names: NameRegistry,
}

impl TimelineBuilder {
    /// Adds an item. `document` is the item as JSON, for its texts.
    pub(super) fn add_item(
        &mut self,
        line: u64,
        checked: &CheckedDocument<'_>,
        document: Option<JsonValue<'_>>,
        findings: &[Finding],
    ) -> TimelineEntry {
        let mut entry = TimelineEntry {
            line,
            offset_ms: None,
            wait_ms: None,
            session: None,
            parent: None,
            agent: None,
            lane: TimelineLane::Other,
            change: LaneChange::Instant,
            key: String::new(),
            label: String::new(),
            text: String::new(),
            result: None,
            chunk: None,
            resolution: None,
            violations: findings.iter().map(RuleViolation::from_finding).collect(),
        };
        let texts = DocumentTexts(document);
        match checked {
            CheckedDocument::Event(event) => self.add_event(event, texts, &mut entry),
            CheckedDocument::Message(message) => self.add_message(message, texts, &mut entry),
            CheckedDocument::InvalidReply(token) => {
                entry.lane = TimelineLane::Answer;
                entry.session = self.names.question(token).map(|question| question.session.clone());
                entry.text =
                    format!("An invalid reply to {} has no effect.", self.names.question_label(token));
            }
            CheckedDocument::EventWithoutSession(_) => {
                let kind =
                    texts.text("type").map(|kind| format!(": {}", short_name(&kind))).unwrap_or_default();
                entry.text = join([Some(format!("This event has no session{kind}.")), texts.summary()]);
            }
            _ => {
                let kind = texts.text("type").map(|kind| format!(" Its type is {}.", short_name(&kind)));
                entry.text =
                    format!("This is neither an event nor a valid message.{}", kind.unwrap_or_default());
            }
        }
        entry
    }

    fn add_event(
        &mut self,
        event: &SessionEvent<Cow<'_, str>>,
        texts: DocumentTexts<'_>,
        entry: &mut TimelineEntry,
    ) {
        let at = event.timestamp.map(|at| at.unix_millis());
        entry.offset_ms = at.map(|at| at.millis_since(*self.started_at.get_or_insert(at)));
        let session_hash = self.names.session_hash(&event.session_id);
        let session = self.names.track_session(&event.session_id, &event.agent_id);
        entry.wait_ms = self.names.note_time(session_hash, entry.offset_ms);
        let (agent, introduction) = self.names.label_agent(session_hash, &event.agent_id, texts);
        entry.agent = Some(agent);
        entry.parent = event.parent_session_id.as_deref().map(|parent| self.names.label_session(parent));
        let described = describe_event(event, texts);
        let EventDescription { lane, change, key, label, result, sentences } = described;
        (entry.lane, entry.change, entry.label, entry.result) = (lane, change, label, result);
        entry.key = self.names.short_key(&key);
        if lane == TimelineLane::Output {
            entry.chunk = texts.raw_text("chunk");
        }
        let name = self.names.name_question(lane, change, &key, &session, session_hash);
        if let Some(name) = &name {
            entry.label = join([Some(name.clone()), Some(entry.label.clone())]);
        }
        let is_start = lane == TimelineLane::Session && change == LaneChange::Begins;
        let parent =
            entry.parent.as_ref().filter(|_| is_start).map(|parent| format!("It is a part of {}.", parent.0));
        let introduction = introduction
            .map(|name| if is_start { format!("Agent: {name}.") } else { format!("Another agent: {name}.") })
            .filter(|_| is_start || !self.names.is_first_agent(session_hash, &event.agent_id));
        let (before, after) = if is_start { (None, introduction) } else { (introduction, None) };
        let name = name.map(|name| format!("This is {name}."));
        let mut all = vec![before, name];
        let mut sentences = sentences.into_iter().map(Some);
        all.extend(sentences.next());
        all.extend([parent, after]);
        all.extend(sentences);
        entry.text = join(all);
        entry.session = Some(session);
        if let Some(resolution) = &event.reported_resolution {
            entry.resolution = Some(self.question_resolution(resolution));
        } else if lane != TimelineLane::Handoff {
            entry.resolution = self.handoff_resolution(texts.hub_notes().object("handoff"));
        }
    }

    fn add_message(&mut self, message: &Message, texts: DocumentTexts<'_>, entry: &mut TimelineEntry) {
        let (timestamp, token) = match message {
            Message::ConfirmationReply(reply) => (Some(reply.timestamp), Some(&reply.reply_token)),
            Message::ClarificationReply(reply) => (Some(reply.timestamp), Some(&reply.reply_token)),
            Message::DeadlineExtend(extension) => (Some(extension.timestamp), Some(&extension.reply_token)),
            Message::HandoffAcknowledge(reply) => (Some(reply.timestamp), Some(&reply.reply_token)),
            Message::HandoffReject(reply) => (Some(reply.timestamp), Some(&reply.reply_token)),
            Message::SessionStop(stop) => (Some(stop.timestamp), None),
            _ => (None, None),
        };
        entry.offset_ms = self.offset_of(timestamp);
        let token = token.map(aaep::ReplyToken::as_str);
        let question = token.and_then(|token| self.names.question(token));
        let mut session_hash = question.map(|question| question.session_hash);
        entry.session = question.map(|question| question.session.clone());
        let label = token.map(|token| self.names.question_label(token)).unwrap_or_default();
        let mut resolve = |result, outcome: String| {
            let key = self.names.short_key(token.unwrap_or_default());
            entry.resolution = Some(ShownResolution { key, result, outcome, sentence: None });
        };
        let note = texts.quoted("note").map(|note| format!(" {note}")).unwrap_or_default();
        let (lane, text) = match message {
            Message::ConfirmationReply(reply) => {
                let decision = short_name(reply.decision.as_str());
                let (result, outcome) = match &reply.decision {
                    Decision::Accept => (StepResult::Succeeded, "accepted".to_owned()),
                    Decision::Reject => (StepResult::Refused, "rejected".to_owned()),
                    _ => (StepResult::Refused, format!("answered: {decision}")),
                };
                resolve(result, outcome);
                let reason = texts.quoted("decision_rationale").map(|reason| format!(" Reason: {reason}"));
                let text =
                    format!("{} was answered: {decision}.{}", capitalize(&label), reason.unwrap_or_default());
                (TimelineLane::Answer, text)
            }
            Message::ClarificationReply(reply) => {
                resolve(StepResult::Succeeded, "answered".to_owned());
                let response = match &reply.response {
                    ClarificationResponse::Text(text) => format!("“{}”", sanitize(text, true)),
                    ClarificationResponse::YesNo(true) => "yes.".to_owned(),
                    ClarificationResponse::YesNo(false) => "no.".to_owned(),
                    ClarificationResponse::Number(number) => format!("{number}."),
                };
                (TimelineLane::Answer, format!("{} was answered: {response}", capitalize(&label)))
            }
            Message::DeadlineExtend(extension) => {
                let seconds = extension.seconds.map(|seconds| format!(": {seconds} s")).unwrap_or_default();
                (TimelineLane::Answer, format!("More time is requested for {label}{seconds}."))
            }
            Message::HandoffAcknowledge(_) => {
                (TimelineLane::Answer, format!("Somebody wants to take over {label}.{note}"))
            }
            Message::HandoffReject(_) => (TimelineLane::Answer, format!("Somebody declines {label}.{note}")),
            Message::SessionStop(stop) => {
                let session = self.names.label_session(stop.session_id.as_str());
                let text = format!("A person stops {}.", session.0);
                session_hash = Some(self.names.session_hash(stop.session_id.as_str()));
                entry.session = session_hash.filter(|hash| self.names.is_tracked(*hash)).map(|_| session);
                (TimelineLane::Answer, text)
            }
            Message::SubscriptionClose(close) => {
                let reason = close.reason_code.as_deref().unwrap_or("no reason given");
                (TimelineLane::Listener, format!("The subscription ends: {}.", short_name(reason)))
            }
            other => (TimelineLane::Listener, format!("A {} message.", other.message_type().as_str())),
        };
        (entry.lane, entry.text) = (lane, text);
        entry.wait_ms = session_hash.and_then(|session| self.names.note_time(session, entry.offset_ms));
    }

    fn offset_of(&self, timestamp: Option<Timestamp>) -> Option<i64> {
        Some(timestamp?.unix_millis().millis_since(self.started_at?))
    }

    fn question_resolution(&self, resolution: &ReportedResolution<Cow<'_, str>>) -> ShownResolution {
        let decision = match resolution.decision.as_deref() {
            Some("accept") => "accepted",
            Some(_) => "rejected",
            None => "answered",
        };
        let by = resolution.resolved_by.as_deref();
        let result = match (by, resolution.decision.as_deref()) {
            (Some("timeout"), _) => StepResult::TimedOut,
            (Some("closure" | "unreachable" | "cancelled"), _) => StepResult::Stopped,
            (_, Some("accept") | None) => StepResult::Succeeded,
            _ => StepResult::Refused,
        };
        let outcome = match (by, resolution.decision.is_some()) {
            (None | Some("reply"), _) => decision.to_owned(),
            (Some(by), true) => format!("{decision} ({})", short_name(by)),
            (Some(by), false) => format!("not answered ({})", short_name(by)),
        };
        let label = capitalize(&self.names.question_label(&resolution.token));
        let sentence = format!("{label} was {outcome}.");
        ShownResolution {
            key: self.names.short_key(&resolution.token),
            result,
            outcome,
            sentence: Some(sentence),
        }
    }

    /// Reads the outcome of a hand-off, which the hub reports in `extensions.sayso.handoff`.
    fn handoff_resolution(&self, handoff: DocumentTexts<'_>) -> Option<ShownResolution> {
        let (token, outcome) = (handoff.raw_text("reply_token")?, handoff.text("outcome")?);
        let (result, outcome) = match &*outcome {
            "acknowledged" => (StepResult::Succeeded, "taken over".to_owned()),
            "rejected" => (StepResult::Refused, "rejected".to_owned()),
            "timeout" => (StepResult::TimedOut, "not taken in time".to_owned()),
            "unreachable" => (StepResult::Stopped, "unreachable: nobody could take it".to_owned()),
            other => (StepResult::Stopped, short_name(other)),
        };
        let label = match self.names.question(&token) {
            Some(question) => capitalize(&question.name),
            None => format!("Hand-off {}", short_name(&token)),
        };
        let sentence = join([Some(format!("{label}: {outcome}.")), handoff.quoted("note")]);
        Some(ShownResolution { key: self.names.short_key(&token), result, outcome, sentence: Some(sentence) })
    }
}

/// Joins the sentences that are not empty.
fn join(sentences: impl IntoIterator<Item = Option<String>>) -> String {
    let sentences: Vec<_> = sentences.into_iter().flatten().filter(|text| !text.is_empty()).collect();
    sentences.join(" ")
}
