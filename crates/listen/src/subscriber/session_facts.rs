//! Facts from the agent's events that are not announced. `details` and `tools` read them.

use std::collections::BTreeMap;

use aaep::SessionId;
use aaep::event::{Event, Payload, Producer, ToolCompleted, ToolInvoked};
use aaep::json::Tape;
use seal::UnixMillis;

use super::question_call::describe_items;
use super::{ObservedSession, Subscriber, wording};
use crate::announcement_text::TextPart::{Agent, Composed, Sayso};
use crate::{Announcement, AnnouncementKind, AnnouncementText, Phrases, sanitize};

/// Maximum length of a text that `details` or `tools` reads, in characters. A longer one is cut.
pub(super) const MAX_FACT_CHARS: usize = 4000;
/// Maximum number of each of these that a session remembers: agents, tools with a description, open calls.
const MAX_REMEMBERED: usize = 256;

/// A fact about a session, in the order in which `details` reads them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fact {
    Request,
    Agent,
    Call,
    HandOff,
    End,
    Output,
}

/// The facts about one session. All texts are sanitized.
#[derive(Clone, Debug, Default)]
pub(super) struct SessionFacts {
    /// One text per fact; facts about agents also have the agent's id.
    texts: BTreeMap<(Fact, String), AnnouncementText>,
    tools: Vec<String>,
    /// Tools and what they do.
    descriptions: Vec<(String, String)>,
    /// The open calls whose duration was estimated: the id or else the tool, and the estimate in milliseconds.
    open_calls: Vec<(String, u64)>,
    /// When the agent expects to be done.
    expected_end: Option<UnixMillis>,
}

impl SessionFacts {
    /// Records the facts in an event.
    pub(super) fn record(&mut self, phrases: &Phrases, event: &Event, now: UnixMillis) {
        self.record_producer(phrases, &event.envelope.producer);
        let mut has_ended = false;
        match &event.payload {
            Payload::SessionStarted(started) => {
                let by = started.requested_by.as_deref().map(|by| by.strip_prefix("user:").unwrap_or(by));
                self.set(
                    Fact::Request,
                    &labelled(&[
                        (phrases.request_label, short_text(started.request_text.as_deref())),
                        (phrases.requested_by_label, short_text(by)),
                    ]),
                );
                self.tools = started.tools_available.iter().flatten().map(|tool| code_words(tool)).collect();
                self.expect_end_in(started.expected_duration_ms, now);
            }
            Payload::ProgressUpdated(update) if update.eta_ms.is_some() => {
                self.expect_end_in(update.eta_ms, now);
            }
            Payload::ToolInvoked(call) => self.record_call(phrases, call),
            Payload::SessionCompleted(done) => {
                has_ended = true;
                let result = labelled(&[
                    (phrases.result_label, short_text(done.output_summary.as_deref())),
                    (phrases.result_place_label, uri_place(done.result_uri.as_deref())),
                ]);
                let totals = totals_text(phrases, done.duration_ms, done.tool_invocations_count);
                self.set(Fact::End, &wording::join_sentences(&[Composed(&result), Sayso(&totals)]));
            }
            Payload::SessionErrored(error) => {
                has_ended = true;
                let code = short_text(error.error_code.as_deref());
                let help = uri_place(error.error_uri.as_deref());
                let end = labelled(&[(phrases.error_code_label, code), (phrases.help_place_label, help)]);
                self.set(Fact::End, &end);
            }
            Payload::SessionCancelled(cancelled) => {
                has_ended = true;
                let reason = cancelled.cancellation_reason.as_deref().map(code_words).unwrap_or_default();
                let partial = short_text(cancelled.partial_result.as_deref());
                let end =
                    labelled(&[(phrases.reason_label, reason), (phrases.partial_result_label, partial)]);
                self.set(Fact::End, &end);
            }
            Payload::HandoffRequested(request) => {
                let context =
                    request.packaged_context.as_ref().map(|context| describe_json(context.as_str()));
                let target = uri_place(request.target_uri.as_deref());
                self.set(
                    Fact::HandOff,
                    &labelled(&[
                        (phrases.handoff_target_label, target),
                        (phrases.handoff_context_label, context.unwrap_or_default()),
                    ]),
                );
            }
            _ => {}
        }
        if has_ended {
            self.expected_end = None;
        }
    }

    /// Records text that was not announced, because the agent summed it up.
    pub(super) fn record_unspoken_output(&mut self, phrases: &Phrases, text: &AnnouncementText) {
        self.set(Fact::Output, &wording::join_sentences(&[Sayso(phrases.full_text_label), Composed(text)]));
    }

    /// Ends a call. Returns the estimate of its duration in milliseconds, if the agent gave one.
    pub(super) fn finish_call(&mut self, done: &ToolCompleted) -> Option<u64> {
        let key = done.tool_call_id.as_ref().map_or_else(|| done.tool.as_str(), |id| id.as_str());
        let index = self.open_calls.iter().position(|(open, _)| open == key)?;
        Some(self.open_calls.remove(index).1)
    }

    fn record_producer(&mut self, phrases: &Phrases, producer: &Producer) {
        let is_full = self.texts.len() >= MAX_REMEMBERED;
        let key = (Fact::Agent, producer.agent_id.clone());
        if is_full || self.texts.contains_key(&key) {
            return;
        }
        let about = labelled(&[
            (phrases.version_label, short_text(producer.agent_version.as_deref())),
            (phrases.model_label, short_text(producer.model.as_deref())),
            (phrases.manifest_label, uri_place(producer.manifest_uri.as_deref())),
        ]);
        self.texts.insert(key, about);
    }

    fn record_call(&mut self, phrases: &Phrases, call: &ToolInvoked) {
        let tool = code_words(call.tool.as_str());
        let description = short_text(call.description.as_deref());
        if !description.is_empty()
            && self.descriptions.len() < MAX_REMEMBERED
            && !self.descriptions.iter().any(|(known, _)| *known == tool)
        {
            self.descriptions.push((tool.clone(), description.clone()));
        }
        if let Some(expected) = call.expected_duration_ms {
            let key = call.tool_call_id.as_ref().map_or_else(|| call.tool.as_str(), |id| id.as_str());
            self.open_calls.retain(|(open, _)| open != key);
            if self.open_calls.len() < MAX_REMEMBERED {
                self.open_calls.push((key.to_owned(), expected));
            }
        }
        let arguments = short_text(call.args_summary.as_deref());
        let call = labelled(&[
            (phrases.last_tool_label, tool),
            ("", description),
            (phrases.arguments_label, arguments),
        ]);
        self.set(Fact::Call, &call);
    }

    fn expect_end_in(&mut self, millis: Option<u64>, now: UnixMillis) {
        self.expected_end = millis.and_then(|millis| Some(now.saturating_add(i64::try_from(millis).ok()?)));
    }

    fn set(&mut self, fact: Fact, text: &AnnouncementText) {
        if !text.is_empty() {
            self.texts.insert((fact, String::new()), text.clone());
        }
    }
}

impl Subscriber {
    /// Returns the sentence about the time that an agent still needs, if it gave an estimate that is not over. While the agent waits for
    /// an answer, the estimate could be mistaken for the time to answer, so there is none.
    pub(crate) fn expected_time_left(&self, session: &ObservedSession, now: UnixMillis) -> Option<String> {
        if self.questions.iter().any(|question| question.session_id == session.id) {
            return None;
        }
        let left = session.facts.expected_end?.millis_since(now);
        (left >= 1000).then(|| self.phrases.about_left(&wording::duration_text(self.phrases, left)))
    }

    /// Returns everything that agents said about their sessions: about the one with this number, or about all that have not ended,
    /// or else about the latest one. `None` if there is none.
    pub fn session_details(&self, number: Option<u32>, now: UnixMillis) -> Option<Announcement> {
        let mut text = AnnouncementText::default();
        let described = self.sessions_to_describe(number);
        let has_facts = |session: &&ObservedSession| {
            !session.is_ended || session.facts.texts.values().any(|line| !line.is_empty())
        };
        if !described.is_empty() && !described.iter().any(has_facts) {
            return Some(Announcement::new(AnnouncementKind::Status, self.phrases.nothing_to_add));
        }
        for session in described {
            let activity = if session.is_ended { "" } else { session.activity.as_str() };
            let activity = if activity.is_empty() && !session.is_ended {
                self.phrases.activity_unknown
            } else {
                activity
            };
            let label = self.phrases.session_activity(session.number, &session.agent_name, activity);
            text.push_line(&label.trim_end().into());
            for line in session.facts.texts.values().filter(|line| !line.is_empty()) {
                text.push_line(line);
            }
            if let Some(left) = self.expected_time_left(session, now) {
                text.push_line(&left.into());
            }
        }
        (!text.is_empty()).then(|| Announcement::new(AnnouncementKind::Status, text))
    }

    /// Returns the tools of an agent and what they do: of the session with this number, or of all that have not ended, or else of
    /// the latest one.
    pub fn tools(&self, number: Option<u32>) -> Announcement {
        let mut text = AnnouncementText::default();
        for session in self.sessions_to_describe(number) {
            let facts = &session.facts;
            let described = facts.descriptions.iter().map(|(tool, _)| tool);
            let others: Vec<_> = described.filter(|tool| !facts.tools.contains(tool)).collect();
            let names: Vec<_> = facts.tools.iter().chain(others).map(String::as_str).collect();
            if names.is_empty() {
                text.push_line(&self.phrases.tools_unknown(&session.agent_name).into());
                continue;
            }
            let label = self.phrases.tools_label(&session.agent_name);
            text.push_line(&wording::join_sentences(&[Sayso(&label), Agent(&names.join(", "))]));
            for (tool, description) in &facts.descriptions {
                text.push_line(&wording::join_sentences(&[Agent(&format!("{tool}: {description}"))]));
            }
        }
        if text.is_empty() {
            text = match number {
                Some(number) => self.phrases.session_not_running(number).into(),
                None => self.phrases.no_agent_working.into(),
            };
        }
        Announcement::new(AnnouncementKind::Status, text)
    }

    /// Returns what is known about the agents of a session: version, model and manifest.
    pub(super) fn agent_facts(&self, id: &SessionId) -> Vec<AnnouncementText> {
        let session = self.sessions.iter().find(|session| session.id == *id);
        let texts = session.into_iter().flat_map(|session| &session.facts.texts);
        let about_agents = texts.filter(|((fact, _), text)| *fact == Fact::Agent && !text.is_empty());
        about_agents.map(|(_, text)| text.clone()).collect()
    }

    fn sessions_to_describe(&self, number: Option<u32>) -> Vec<&ObservedSession> {
        let chosen: Vec<_> = match number {
            Some(number) => self.sessions.iter().filter(|session| session.number == number).collect(),
            None => self.sessions().collect(),
        };
        if chosen.is_empty() && number.is_none() {
            return self.sessions.iter().max_by_key(|session| session.last_event_at).into_iter().collect();
        }
        chosen
    }
}

/// Returns how long a session took and how many tools it used, if the agent reports it.
pub(super) fn totals_text(phrases: &Phrases, duration_ms: Option<u64>, tool_count: Option<u64>) -> String {
    let took = duration_ms.and_then(|millis| i64::try_from(millis).ok()).filter(|millis| *millis >= 1000);
    let took = took.map(|millis| phrases.took(&wording::duration_text(phrases, millis)));
    let used = tool_count.and_then(|count| i64::try_from(count).ok()).filter(|count| *count > 0);
    let used = used.map(|count| phrases.used_tools(count));
    [took, used].into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// Joins an agent's texts, each after its label. A label without a text is left out.
pub(super) fn labelled(texts: &[(&str, String)]) -> AnnouncementText {
    let given = texts.iter().filter(|(_, text)| !text.is_empty());
    let parts: Vec<_> = given.flat_map(|(label, text)| [Sayso(label), Agent(text)]).collect();
    wording::join_sentences(&parts)
}

/// Returns the part of a URI that a person can listen to: the host, the number or address of `tel:` and `mailto:`, or else the last
/// part of the path. Empty without a URI.
pub(super) fn uri_place(uri: Option<&str>) -> String {
    let Some((scheme, rest)) = uri.and_then(|uri| uri.split_once(':')) else { return String::new() };
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let place = match rest.strip_prefix("//").map(|rest| rest.split_once('/').unwrap_or((rest, ""))) {
        Some(("", path)) => last_segment(path),
        Some((authority, _)) => {
            // What precedes an @ could look like another host.
            let host = authority.rsplit('@').next().unwrap_or_default();
            let is_port = |(_, port): &(&str, &str)| port.chars().all(|c| c.is_ascii_digit());
            host.rsplit_once(':').filter(is_port).map_or(host, |(host, _)| host)
        }
        None if matches!(scheme, "tel" | "mailto" | "sip") => rest,
        None => last_segment(rest),
    };
    sanitize(place, true).chars().take(MAX_PLACE_CHARS).collect()
}

/// Maximum length of the spoken part of a URI, in characters.
const MAX_PLACE_CHARS: usize = 80;

fn last_segment(path: &str) -> &str {
    path.trim_end_matches('/').rsplit(['/', ':']).next().unwrap_or_default()
}

/// Describes a JSON value in words.
pub(super) fn describe_json(json: &str) -> String {
    let text = Tape::default().read(json).map(|doc| describe_items(&doc.root())).unwrap_or_default();
    cut(&text)
}

/// Returns the words of a tool's name or of a reason code.
fn code_words(name: &str) -> String {
    sanitize(name, true).replace('_', " ")
}

pub(super) fn short_text(text: Option<&str>) -> String {
    text.map(|text| cut(&sanitize(text, true))).unwrap_or_default()
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_FACT_CHARS) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}
