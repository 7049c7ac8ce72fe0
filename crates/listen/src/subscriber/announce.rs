//! Decides whether to announce an event immediately, after a delay, or not at all.

use aaep::SessionId;
use aaep::event::{AgentState, Event, EventType, Payload, StateChanged, Urgency, Verbosity};
use seal::UnixMillis;

use super::observed_session::ObservedSession;
use super::question::ListenerQuestion;
use super::{Subscriber, hub_extension_texts, wording};
use crate::{Announcement, AnnouncementKind, Phrases, sanitize};

/// How long a state must last before it is announced, in milliseconds. Another event of the session cancels the announcement.
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
        match &event.payload {
            Payload::SessionStarted(_) => {
                if let Some(session) = self.session_mut(&session) {
                    session.set_topic(summary_text);
                }
                let agent = self.identify_agent(event).label(phrases);
                let text = wording::join_sentences(&[&phrases.session_started(&agent), summary_text]);
                self.announce(event_announcement(phrases, event, AnnouncementKind::Session, text));
            }
            Payload::SessionCompleted(_) => {
                self.end_session(&session, now);
                let text = wording::join_sentences(&[&phrases.session_completed(&agent), summary_text]);
                self.announce(event_announcement(phrases, event, AnnouncementKind::Session, text));
            }
            Payload::SessionCancelled(cancelled) => {
                self.end_session(&session, now);
                let text = wording::join_sentences(&[
                    &wording::cancelled_text(phrases, &agent, &cancelled.cancelled_by),
                    summary_text,
                ]);
                self.announce(event_announcement(phrases, event, AnnouncementKind::Session, text));
            }
            Payload::SessionErrored(error) => {
                self.end_session(&session, now);
                let hint = error.remediation_hint.as_deref().map(|hint| sanitize(hint, true));
                let failed = phrases.session_failed(&agent);
                let mut parts = vec![failed.as_str(), summary_text, wording::retry_advice(phrases, error)];
                if let Some(hint) = &hint {
                    parts.extend([phrases.remediation_label, hint]);
                }
                let text = wording::join_sentences(&parts);
                self.announce(event_announcement(phrases, event, AnnouncementKind::Error, text));
            }
            Payload::StateChanged(change) => self.announce_state(event, change, summary.as_deref(), now),
            Payload::ProgressUpdated(update) => {
                let text = summary.unwrap_or_else(|| wording::progress_text(phrases, update));
                self.announce_progress(event, text, now);
            }
            Payload::ToolInvoked(call) => {
                let warning = if call.irreversible == Some(true) { phrases.irreversible } else { "" };
                let text = wording::join_sentences(&[summary_text, warning]);
                if let Some(session) = self.session_mut(&session) {
                    session.set_topic(summary_text);
                    session.activity.clone_from(&text);
                }
                self.announce(event_announcement(phrases, event, AnnouncementKind::Tool, text));
            }
            Payload::ToolCompleted(done) => {
                let text = wording::tool_result_text(phrases, done, summary.as_deref());
                self.announce(event_announcement(phrases, event, AnnouncementKind::Tool, text));
            }
            Payload::OutputStreaming(chunk) => {
                let kind = chunk.content_type.as_deref().unwrap_or("text/plain");
                if !kind.starts_with("text/") {
                    if chunk.complete {
                        let text = phrases.sent_data(&agent, &sanitize(kind, true));
                        self.announce(event_announcement(phrases, event, AnnouncementKind::Agent, text));
                    }
                    return;
                }
                let missing = self.session_mut(&session).is_some_and(|session| {
                    session.gap_position.take_if(|at| *at == chunk.position).is_some()
                });
                if missing {
                    self.announce_notice(event, phrases.text_missing);
                }
                let text = sanitize(&chunk.chunk, false);
                if !text.is_empty() {
                    self.announce(event_announcement(phrases, event, AnnouncementKind::Agent, text));
                }
            }
            Payload::AwaitingConfirmation(request) => {
                let question_summary = event.payload.summary(&verbosity);
                self.open_question(
                    ListenerQuestion::from_confirmation(phrases, event, request, question_summary),
                    event,
                    now,
                );
            }
            Payload::AwaitingClarification(request) => {
                self.open_question(ListenerQuestion::from_clarification(phrases, event, request), event, now);
            }
            Payload::HandoffRequested(request) => {
                let reason = sanitize(&request.reason, true);
                let handoff = wording::handoff_text(phrases, &agent, request);
                let summary = if summary_text == reason { "" } else { summary_text };
                let text = wording::join_sentences(&[&handoff, summary, phrases.reason_label, &reason]);
                self.announce(event_announcement(phrases, event, AnnouncementKind::Handoff, text));
            }
            _ => {
                let kind = if event.envelope.event_type.is_critical() {
                    AnnouncementKind::Error
                } else {
                    AnnouncementKind::Notice
                };
                let text = wording::unknown_event_text(phrases, event);
                self.announce(event_announcement(phrases, event, kind, text));
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
        self.handle_question_outcome(event, change, now);
        let agent = wording::agent_name(self.phrases, event);
        let phrases = self.phrases;
        let state_text = wording::state_text(phrases, &agent, &change.to_state);
        let verbosity = self.preferences.verbosity.clone();
        let has_open_question = self.questions.iter().any(|question| question.session_id == *id);
        let Some(session) = self.session_mut(id) else { return };
        session.held_state = None;
        let text = summary.unwrap_or(&state_text).to_owned();
        session.activity = summary.map_or_else(
            || wording::state_text(phrases, phrases.agent_pronoun, &change.to_state),
            str::to_owned,
        );
        let mut announcement = event_announcement(phrases, event, AnnouncementKind::Agent, text.clone());
        if change.from_state == change.to_state && !has_open_question {
            // After a late join or a gap, the hub reports the current state.
            announcement.text = wording::join_sentences(&[&state_text, summary.unwrap_or_default()]);
            return self.announce(announcement);
        }
        // The announcement of a question already implies that the agent is waiting. After a stop, only the end of the session is
        // announced.
        if change.to_state == AgentState::AwaitingInput || session.is_stopping {
            return;
        }
        session.recent_states.retain(|(at, _)| now.millis_since(*at) < STATE_REPEAT_INTERVAL_MS);
        if verbosity != Verbosity::Detailed
            && session.recent_states.iter().any(|(_, earlier)| *earlier == text)
        {
            return;
        }
        let hold_ms = match verbosity {
            Verbosity::Detailed => 0,
            Verbosity::Terse => STATE_HOLD_TERSE_MS,
            _ => STATE_HOLD_MS,
        };
        let due = now
            .saturating_add(hold_ms)
            .min(session.last_announced_at.saturating_add(MAX_STATE_SILENCE_MS))
            .max(now);
        session.held_state = Some((due, announcement));
        if hold_ms == 0 {
            self.announce_due(now);
        }
    }

    fn announce_progress(&mut self, event: &Event, text: String, now: UnixMillis) {
        if text.is_empty() {
            return;
        }
        let interval_ms = match self.preferences.verbosity {
            Verbosity::Detailed => 0,
            Verbosity::Terse => PROGRESS_INTERVAL_TERSE_MS,
            _ => PROGRESS_INTERVAL_MS,
        };
        let mut announcement = event_announcement(self.phrases, event, AnnouncementKind::Progress, text);
        if event.envelope.urgency.is_none() {
            announcement.urgency = Urgency::Background;
        }
        let Some(session) = self.session_mut(&event.envelope.session_id) else { return };
        let is_repeated =
            session.last_progress.as_ref().is_some_and(|(_, earlier)| *earlier == announcement.text);
        let due_at =
            session.last_progress.as_ref().map_or(UnixMillis::MIN, |(at, _)| at.saturating_add(interval_ms));
        session.held_progress = (!is_repeated).then_some((due_at, announcement));
        self.announce_due(now);
    }

    /// Announces everything that is due: states that have lasted long enough, progress, reminders and expired questions.
    pub(super) fn announce_due(&mut self, now: UnixMillis) {
        let mut due = Vec::new();
        for session in &mut self.sessions {
            if let Some((_, announcement)) = session.held_state.take_if(|(at, _)| *at <= now) {
                if session.recent_states.len() >= MAX_RECENT_STATES {
                    session.recent_states.pop_front();
                }
                session.recent_states.push_back((now, announcement.text.clone()));
                due.push(announcement);
            }
            if let Some((_, announcement)) = session.held_progress.take_if(|(at, _)| *at <= now) {
                session.last_progress = Some((now, announcement.text.clone()));
                due.push(announcement);
            }
        }
        for announcement in due {
            self.announce(announcement);
        }
        self.poll_questions(now);
        let is_stale = |session: &ObservedSession| session.stale_at.is_some_and(|until| until <= now);
        while let Some(session) = self.sessions.iter_mut().find(|session| is_stale(session)) {
            session.stale_at = None;
            session.end();
            let text = self.phrases.session_ended_unknown(&session.agent_name);
            let mut over = Announcement::new(AnnouncementKind::Session, text);
            over.session_id = Some(session.id.clone());
            self.announce(over);
        }
    }

    /// Ends a session and closes its questions.
    pub(super) fn end_session(&mut self, id: &SessionId, now: UnixMillis) {
        self.close_session_questions(id, now);
        if let Some(session) = self.session_mut(id) {
            session.end();
        }
    }
}

/// Whether the hub wrote the text of a state change. It did if it marked the text, or if the event reports a question's outcome.
fn is_hub_text(event: &Event) -> bool {
    let Payload::StateChanged(_) = &event.payload else { return false };
    let [text_source, token] = hub_extension_texts(event, ["words", "reply_token"]);
    text_source.as_deref() == Some("hub") || token.is_some()
}

pub(super) fn event_announcement(
    phrases: &Phrases,
    event: &Event,
    kind: AnnouncementKind,
    text: String,
) -> Announcement {
    let urgency = if event.envelope.event_type.is_critical() {
        Urgency::Critical
    } else {
        event.envelope.urgency.clone().unwrap_or(Urgency::Normal)
    };
    let mut announcement = Announcement::new(kind, text);
    announcement.urgency = urgency;
    announcement.language = wording::language(event);
    announcement.quotes = wording::agent_quotes(phrases, event);
    announcement.direction = wording::text_direction(event);
    announcement.session_id = Some(event.envelope.session_id.clone());
    let has_own_urgency = event.envelope.urgency.is_some() && !is_hub_text(event);
    if matches!(event.envelope.event_type, EventType::StateChanged) && !has_own_urgency {
        announcement.urgency = Urgency::Background;
    }
    announcement
}
