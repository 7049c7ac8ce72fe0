//! Decides whether to announce an event immediately, after a delay, or not at all.

use aaep::SessionId;
use aaep::event::{
    AgentState, Event, EventType, Payload, RiskLevel, StateChanged, ToolStatus, Urgency, Verbosity,
};
use seal::UnixMillis;

use super::observed_session::ObservedSession;
use super::question::ListenerQuestion;
use super::session_facts::{labelled, short_text, totals_text, uri_place};
use super::{Subscriber, hub_extension_texts, wording};
use crate::announcement_text::TextPart::{Agent, Composed, Sayso};
use crate::{Announcement, AnnouncementKind, AnnouncementText, Phrases, sanitize};

/// How long a state must last before it is announced, in milliseconds. Any other event of the session, except progress, cancels the
/// announcement.
pub(super) const STATE_HOLD_MS: i64 = 4000;
/// [`STATE_HOLD_MS`] at terse verbosity.
pub(super) const STATE_HOLD_TERSE_MS: i64 = 15_000;
/// Maximum time without an announcement about a session whose state keeps changing, in milliseconds.
pub(super) const MAX_STATE_SILENCE_MS: i64 = 20_000;
/// Minimum time before the same text about a state is announced again, in milliseconds.
pub(super) const STATE_REPEAT_INTERVAL_MS: i64 = 10_000;
/// Number of recent state texts remembered to avoid repeating them.
pub(super) const MAX_RECENT_STATES: usize = 4;
/// Minimum time between two progress announcements, in milliseconds.
pub(super) const PROGRESS_INTERVAL_MS: i64 = 5000;
/// [`PROGRESS_INTERVAL_MS`] at terse verbosity.
pub(super) const PROGRESS_INTERVAL_TERSE_MS: i64 = 30_000;

impl Subscriber {
    /// Announces one shaped event.
    pub(super) fn announce_event(&mut self, event: &Event, now: UnixMillis) {
        let phrases = self.phrases;
        let verbosity = self.preferences.verbosity.clone();
        let session = event.envelope.session_id.clone();
        let agent = wording::agent_name(self.phrases, event);
        // The hub's text about a state is for listeners that have no text of their own.
        let summary = wording::summary_line(&event.payload, &verbosity).filter(|_| !is_hub_text(event));
        let summary_text = summary.as_deref().unwrap_or_default();
        if !matches!(event.payload, Payload::ProgressUpdated(_) | Payload::StateChanged(_))
            && let Some(session) = self.session_mut(&session)
        {
            // This event says more about the agent's activity than its state does.
            session.held_state = None;
        }
        let is_terse = verbosity == Verbosity::Terse;
        let is_detailed = verbosity == Verbosity::Detailed;
        if let Some(session) = self.session_mut(&session) {
            session.facts.record(phrases, event, now);
        }
        match &event.payload {
            Payload::OutputStreaming(_)
            | Payload::StateChanged(_)
            | Payload::ProgressUpdated(_)
            | Payload::SessionCompleted(_) => {}
            _ => self.release_output(&session),
        }
        match &event.payload {
            Payload::SessionStarted(started) => {
                if let Some(session) = self.session_mut(&session) {
                    session.set_topic(summary_text);
                }
                let agent = self.identify_agent(event).label(phrases);
                let number = self.session_mut(&session).map_or(0, |session| session.number);
                let is_only = self.sessions().all(|other| other.id == session);
                let duration = wording::about_text(phrases, started.expected_duration_ms, &verbosity);
                let started = match self.parent_number(&session) {
                    Some(parent) => phrases.session_started_in(&agent, parent),
                    None if is_only => phrases.session_started(&agent),
                    None => phrases.session_started_as(&agent, number),
                };
                let text = wording::join_sentences(&[Sayso(&started), Agent(summary_text), Sayso(&duration)]);
                self.announce(event_announcement(event, AnnouncementKind::Session, text));
            }
            Payload::SessionCompleted(done) => {
                let output_summary = short_text(done.output_summary.as_deref());
                let is_output_withheld =
                    !output_summary.is_empty() && self.move_held_output_to_details(&session, phrases);
                self.release_output(&session);
                let has_output = self.session_mut(&session).is_some_and(|session| session.has_output);
                self.end_session(&session, now);
                // If the result was already heard as text, its summary is not announced.
                let is_result_new =
                    (is_output_withheld || !has_output) && !summary_text.contains(&output_summary);
                let place = uri_place(done.result_uri.as_deref());
                let extra = labelled(&[
                    (phrases.result_label, if is_result_new { output_summary } else { String::new() }),
                    (phrases.result_place_label, if is_terse { String::new() } else { place }),
                ]);
                let totals = totals_text(phrases, done.duration_ms, done.tool_invocations_count);
                let text = wording::join_sentences(&[
                    Sayso(&phrases.session_completed(&agent)),
                    Agent(summary_text),
                    Composed(&extra),
                    Sayso(if is_detailed { &totals } else { "" }),
                ]);
                self.announce(event_announcement(event, AnnouncementKind::Session, text));
            }
            Payload::SessionCancelled(cancelled) => {
                let [ended_by] = hub_extension_texts(event, ["ended_by"]);
                let is_ended_by_person = self.has_hub && ended_by.as_deref() == Some("user");
                let is_own_stop = is_ended_by_person
                    && self.session_mut(&session).is_some_and(|session| session.is_stopping);
                // The hub wrote the text. The stop of the session is announced below.
                let summary_text = if is_ended_by_person {
                    wording::after_stop_text(phrases, summary_text)
                } else {
                    summary_text
                };
                if is_own_stop {
                    self.drop_session_questions(&session, now);
                }
                self.end_session(&session, now);
                // The person who stopped the agent has heard that already.
                if is_own_stop && summary_text.is_empty() {
                    return;
                }
                let partial = short_text(cancelled.partial_result.as_deref());
                let is_partial_said = is_terse || summary_text.contains(&partial);
                let partial = labelled(&[(
                    phrases.partial_result_label,
                    if is_partial_said { String::new() } else { partial },
                )]);
                let cancelled =
                    wording::cancelled_text(phrases, &agent, &cancelled.cancelled_by, is_ended_by_person);
                let text =
                    wording::join_sentences(&[Sayso(&cancelled), Agent(summary_text), Composed(&partial)]);
                self.announce(event_announcement(event, AnnouncementKind::Session, text));
            }
            Payload::SessionErrored(error) => {
                self.end_session(&session, now);
                let hint = error.remediation_hint.as_deref().map(|hint| sanitize(hint, true));
                let failed = phrases.session_failed(&agent);
                let advice = wording::retry_advice(phrases, error);
                let mut parts = vec![Sayso(&failed), Agent(summary_text), Sayso(advice)];
                if let Some(hint) = &hint {
                    parts.extend([Sayso(phrases.remediation_label), Agent(hint)]);
                }
                let code = if is_detailed { short_text(error.error_code.as_deref()) } else { String::new() };
                let place = if is_terse { String::new() } else { uri_place(error.error_uri.as_deref()) };
                let extra = labelled(&[(phrases.error_code_label, code), (phrases.help_place_label, place)]);
                parts.push(Composed(&extra));
                let text = wording::join_sentences(&parts);
                self.announce(event_announcement(event, AnnouncementKind::Error, text));
            }
            Payload::StateChanged(change) => self.announce_state(event, change, summary.as_deref(), now),
            Payload::ProgressUpdated(update) => {
                let text = wording::progress_text(phrases, update, summary_text, &verbosity);
                self.announce_progress(event, text, now);
            }
            Payload::ToolInvoked(call) => {
                let accepted = self.session_mut(&session).and_then(|session| session.accepted_call.take());
                let is_accepted = accepted.is_some_and(|accepted| accepted.is_of_tool(call.tool.as_str()));
                let text = wording::call_text(phrases, call, summary_text, &verbosity, is_accepted);
                let is_risky = call.irreversible == Some(true) || call.risk_level == Some(RiskLevel::High);
                if let Some(session) = self.session_mut(&session) {
                    session.set_topic(summary_text);
                    session.activity = text.to_string();
                }
                let mut announcement = event_announcement(event, AnnouncementKind::Tool, text);
                announcement.is_step = !is_risky;
                self.announce(announcement);
            }
            // After a stop, the hub ends the open tool calls.
            Payload::ToolCompleted(done)
                if done.status == ToolStatus::Timeout
                    && self.session_mut(&session).is_some_and(|session| session.is_stopping) => {}
            Payload::ToolCompleted(done) => {
                let expected_ms =
                    self.session_mut(&session).and_then(|session| session.facts.finish_call(done));
                let result = wording::tool_result_text(phrases, done, summary.as_deref());
                let duration =
                    wording::call_duration_text(phrases, done.duration_ms, expected_ms, &verbosity);
                let text = wording::join_sentences(&[Composed(&result), Sayso(&duration)]);
                let mut announcement = event_announcement(event, AnnouncementKind::Tool, text);
                announcement.is_step = done.status == ToolStatus::Success;
                self.announce(announcement);
            }
            Payload::OutputStreaming(chunk) => {
                let content_type = chunk.content_type.as_deref().unwrap_or("text/plain");
                if !content_type.starts_with("text/") {
                    if chunk.complete {
                        let text = phrases.sent_data(&agent, &sanitize(content_type, true));
                        self.announce(event_announcement(event, AnnouncementKind::Agent, text));
                    }
                    return;
                }
                let is_after_gap = self.session_mut(&session).is_some_and(|session| {
                    session.gap_position.take_if(|at| *at == chunk.position).is_some()
                });
                if is_after_gap {
                    let mut notice = Announcement::new(AnnouncementKind::Notice, phrases.text_missing);
                    notice.session_id = Some(session.clone());
                    self.announce_output(notice);
                }
                let text = AnnouncementText::from_agent(sanitize(&chunk.chunk, false));
                if !text.is_empty() {
                    if let Some(session) = self.session_mut(&session) {
                        session.has_output = true;
                    }
                    self.announce_output(event_announcement(event, AnnouncementKind::Agent, text));
                }
                self.schedule_held_output(&session, chunk.complete, now);
            }
            Payload::AwaitingConfirmation(request) => {
                self.open_question(ListenerQuestion::from_confirmation(phrases, event, request), event, now);
            }
            Payload::AwaitingClarification(request) => {
                self.open_question(ListenerQuestion::from_clarification(phrases, event, request), event, now);
            }
            Payload::HandoffRequested(request) => {
                self.announce_handoff(event, request, summary_text, now);
            }
            _ => {
                let kind = if event.envelope.event_type.is_critical() {
                    AnnouncementKind::Error
                } else {
                    AnnouncementKind::Notice
                };
                let text = wording::unknown_event_text(phrases, event);
                self.announce(event_announcement(event, kind, text));
            }
        }
    }

    /// Handles a change of state: the outcome of a question, the status after a gap, or a new activity of the agent.
    fn announce_state(
        &mut self,
        event: &Event,
        change: &StateChanged,
        summary: Option<&str>,
        now: UnixMillis,
    ) {
        let id = &event.envelope.session_id;
        if self.handle_handoff_outcome(event) {
            if let Some(session) = self.session_mut(id) {
                session.held_state = None;
                summary.unwrap_or_default().clone_into(&mut session.activity);
            }
            return;
        }
        self.handle_question_outcome(event, change, now);
        let agent = wording::agent_name(self.phrases, event);
        let phrases = self.phrases;
        let own_words = match summary {
            None => wording::own_state_words(event, change, &self.preferences.languages),
            Some(_) => None,
        };
        let summary = summary.or(own_words.as_ref().map(|(_, words)| words.as_str()));
        let state_text = wording::state_text(phrases, &agent, &change.to_state);
        let verbosity = self.preferences.verbosity.clone();
        let has_open_question = self.questions.iter().any(|question| question.session_id == *id);
        // The name of an agent's own state says less than the agent's words for it.
        let has_own_name = matches!(change.to_state, AgentState::Other(_));
        let [about] = hub_extension_texts(event, ["about"]).map(|about| {
            about.filter(|_| self.has_hub).map(|about| sanitize(&about, true)).unwrap_or_default()
        });
        let Some(session) = self.session_mut(id) else { return };
        session.held_state = None;
        let text = summary.map_or_else(|| state_text.as_str().into(), AnnouncementText::from_agent);
        session.activity = summary.map_or_else(
            || wording::state_text(phrases, phrases.agent_pronoun, &change.to_state),
            str::to_owned,
        );
        let duration = wording::about_text(phrases, change.expected_duration_ms, &verbosity);
        let spoken = wording::join_sentences(&[Composed(&text), Sayso(&duration)]);
        let mut announcement = event_announcement(event, AnnouncementKind::Agent, spoken);
        announcement.is_step = true;
        if let Some((language, _)) = &own_words {
            announcement.language = Some(language.as_str().into());
        }
        if change.from_state == change.to_state && !has_open_question {
            // After a late join or a gap, the hub reports the current state. A late joiner also hears what the session is about.
            announcement.is_step = false;
            if !has_own_name || summary.is_none() {
                announcement.text =
                    wording::join_sentences(&[Sayso(&state_text), Agent(summary.unwrap_or_default())]);
            }
            if session.topic.is_empty() && !about.is_empty() {
                session.set_topic(&about);
                let label = Sayso(phrases.session_topic_label);
                announcement.text =
                    wording::join_sentences(&[Composed(&announcement.text), label, Agent(&session.topic)]);
            }
            return self.announce(announcement);
        }
        // The announcement of a question already implies that the agent is waiting. After a stop, changes of state are not
        // announced.
        if change.to_state == AgentState::AwaitingInput || session.is_stopping {
            return;
        }
        session.recent_states.retain(|(at, _)| now.millis_since(*at) < STATE_REPEAT_INTERVAL_MS);
        if verbosity != Verbosity::Detailed
            && session.recent_states.iter().any(|(_, earlier)| announcement.text == earlier.as_str())
        {
            return;
        }
        let hold_ms = match verbosity {
            Verbosity::Detailed => 0,
            Verbosity::Terse => STATE_HOLD_TERSE_MS,
            _ => STATE_HOLD_MS,
        };
        let due_at = now
            .saturating_add(hold_ms)
            .min(session.last_announced_at.saturating_add(MAX_STATE_SILENCE_MS))
            .max(now);
        session.held_state = Some((due_at, announcement));
        if hold_ms == 0 {
            self.announce_due(now);
        }
    }

    fn announce_progress(&mut self, event: &Event, text: AnnouncementText, now: UnixMillis) {
        if text.is_empty() {
            return;
        }
        let interval_ms = match self.preferences.verbosity {
            Verbosity::Detailed => 0,
            Verbosity::Terse => PROGRESS_INTERVAL_TERSE_MS,
            _ => PROGRESS_INTERVAL_MS,
        };
        let mut announcement = event_announcement(event, AnnouncementKind::Progress, text);
        announcement.is_step = true;
        if event.envelope.urgency.is_none() {
            announcement.urgency = Urgency::Background;
        }
        let Some(session) = self.session_mut(&event.envelope.session_id) else { return };
        let is_repeated =
            session.last_progress.as_ref().is_some_and(|(_, earlier)| announcement.text == earlier.as_str());
        let due_at =
            session.last_progress.as_ref().map_or(UnixMillis::MIN, |(at, _)| at.saturating_add(interval_ms));
        session.held_progress = (!is_repeated).then_some((due_at, announcement));
        self.announce_due(now);
    }

    /// Announces everything that is due: states that have lasted long enough, progress, reminders and expired questions.
    pub(super) fn announce_due(&mut self, now: UnixMillis) {
        self.release_outputs(|session| session.held_output.due_at().is_some_and(|at| at <= now));
        let mut due = Vec::new();
        for session in &mut self.sessions {
            if let Some((_, announcement)) = session.held_state.take_if(|(at, _)| *at <= now) {
                if session.recent_states.len() >= MAX_RECENT_STATES {
                    session.recent_states.pop_front();
                }
                session.recent_states.push_back((now, announcement.text.to_string()));
                due.push(announcement);
            }
            if let Some((_, announcement)) = session.held_progress.take_if(|(at, _)| *at <= now) {
                session.last_progress = Some((now, announcement.text.to_string()));
                due.push(announcement);
            }
        }
        for announcement in due {
            self.announce(announcement);
        }
        self.poll_questions(now);
        let is_stale = |session: &ObservedSession| session.stale_at.is_some_and(|at| at <= now);
        while let Some(session) = self.sessions.iter_mut().find(|session| is_stale(session)) {
            session.stale_at = None;
            session.end();
            let text = self.phrases.session_ended_unknown(&session.agent_name);
            let mut announcement = Announcement::new(AnnouncementKind::Session, text);
            announcement.session_id = Some(session.id.clone());
            self.announce(announcement);
        }
    }

    /// Moves the held text of a session to `details`, because the agent summed it up. Returns whether there was any.
    fn move_held_output_to_details(&mut self, id: &SessionId, phrases: &Phrases) -> bool {
        let Some(text) = self.take_unspoken_output(id) else { return false };
        if let Some(session) = self.session_mut(id) {
            session.facts.record_unspoken_output(phrases, &text);
        }
        true
    }

    /// Ends a session and closes its questions.
    pub(super) fn end_session(&mut self, id: &SessionId, now: UnixMillis) {
        self.close_session_questions(id, now);
        self.close_session_handoffs(id);
        if let Some(session) = self.session_mut(id) {
            session.end();
        }
    }
}

/// Whether the hub wrote the text of a state change. It did if it marked the text, or if the event reports a question's outcome.
fn is_hub_text(event: &Event) -> bool {
    let Payload::StateChanged(_) = &event.payload else { return false };
    let [text_by, token] = hub_extension_texts(event, ["text_by", "reply_token"]);
    text_by.as_deref() == Some("hub") || token.is_some()
}

pub(super) fn event_announcement(
    event: &Event,
    kind: AnnouncementKind,
    text: impl Into<AnnouncementText>,
) -> Announcement {
    let urgency = if event.envelope.event_type.is_critical() {
        Urgency::Critical
    } else {
        event.envelope.urgency.clone().unwrap_or(Urgency::Normal)
    };
    let mut announcement = Announcement::new(kind, text);
    announcement.urgency = urgency;
    announcement.language = wording::language(event);
    announcement.direction = wording::text_direction(event);
    announcement.session_id = Some(event.envelope.session_id.clone());
    announcement.link = wording::link(&event.payload).map(Into::into);
    announcement.agent_id = Some(event.envelope.producer.agent_id.as_str().into());
    let has_own_urgency = event.envelope.urgency.is_some() && !is_hub_text(event);
    if matches!(event.envelope.event_type, EventType::StateChanged) && !has_own_urgency {
        announcement.urgency = Urgency::Background;
    }
    announcement
}
