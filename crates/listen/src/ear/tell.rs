//! What is said of each event: at once, if it lasts, or not at all.

use aaep::SessionId;
use aaep::event::{Event, EventType, Payload, State, StateChanged, Urgency, Verbosity};
use seal::UnixMillis;

use super::question::Question;
use super::track::Session;
use super::{Ear, hub_texts, words};
use crate::{Announcement, Kind, Phrases, plain};

/// A change of state is said if it has lasted so long, and nothing else told of it.
pub(super) const STATE_LASTS: i64 = 4000;
/// The same, for who wants to hear little.
pub(super) const STATE_LASTS_TERSE: i64 = 15_000;
/// A session that changes its state all the time is not silent for longer.
pub(super) const STATE_SILENCE: i64 = 20_000;
/// The same words about a state are not said again before so long.
pub(super) const STATE_AGAIN: i64 = 10_000;
/// So many texts about states are remembered for that.
pub(super) const STATES: usize = 4;
/// Between two announcements of progress.
pub(super) const PROGRESS: i64 = 5000;
pub(super) const PROGRESS_TERSE: i64 = 30_000;

impl Ear {
    /// One event that was shaped, in words.
    pub(super) fn tell(&mut self, event: &Event, now: UnixMillis) {
        let phrases = self.phrases;
        let verbosity = self.tastes.verbosity.clone();
        let session = event.envelope.session_id.clone();
        let agent = words::agent(self.phrases, event);
        // What the hub says of a state is for who has no words of their own for it.
        let said = words::said(&event.payload, &verbosity).filter(|_| !hubs_words(event));
        let said_text = said.as_deref().unwrap_or_default();
        if !matches!(event.payload, Payload::ProgressUpdated(_) | Payload::StateChanged(_))
            && let Some(session) = self.session(&session)
        {
            // It tells more of what the agent does than the state would.
            session.held_state = None;
        }
        match &event.payload {
            Payload::SessionStarted(_) => {
                if let Some(session) = self.session(&session) {
                    session.is_about(said_text);
                }
                let text = words::sentences(&[&phrases.session_began(&agent), said_text]);
                self.say(spoken(phrases, event, Kind::Session, text));
            }
            Payload::SessionCompleted(_) => {
                self.end(&session, now);
                let text = words::sentences(&[&phrases.session_done(&agent), said_text]);
                self.say(spoken(phrases, event, Kind::Session, text));
            }
            Payload::SessionCancelled(cancelled) => {
                self.end(&session, now);
                let text = words::sentences(&[
                    &words::cancelled(phrases, &agent, &cancelled.cancelled_by),
                    said_text,
                ]);
                self.say(spoken(phrases, event, Kind::Session, text));
            }
            Payload::SessionErrored(error) => {
                self.end(&session, now);
                let hint = error.remediation_hint.as_deref().map(|hint| plain(hint, true));
                let failed = phrases.session_failed(&agent);
                let mut parts = vec![failed.as_str(), said_text, words::errored(phrases, error)];
                if let Some(hint) = &hint {
                    parts.extend([phrases.what_you_can_do, hint]);
                }
                let text = words::sentences(&parts);
                self.say(spoken(phrases, event, Kind::Error, text));
            }
            Payload::StateChanged(change) => self.tell_state(event, change, said.as_deref(), now),
            Payload::ProgressUpdated(update) => {
                let text = said.unwrap_or_else(|| words::progress(phrases, update));
                self.tell_progress(event, text, now);
            }
            Payload::ToolInvoked(call) => {
                let warning = if call.irreversible == Some(true) { phrases.never_undone } else { "" };
                let text = words::sentences(&[said_text, warning]);
                if let Some(session) = self.session(&session) {
                    session.is_about(said_text);
                    session.doing.clone_from(&text);
                }
                self.say(spoken(phrases, event, Kind::Tool, text));
            }
            Payload::ToolCompleted(done) => {
                let text = words::tool_done(phrases, done, said.as_deref());
                self.say(spoken(phrases, event, Kind::Tool, text));
            }
            Payload::OutputStreaming(chunk) => {
                let kind = chunk.content_type.as_deref().unwrap_or("text/plain");
                if !kind.starts_with("text/") {
                    if chunk.complete {
                        let text = phrases.sent_data(&agent, &plain(kind, true));
                        self.say(spoken(phrases, event, Kind::Agent, text));
                    }
                    return;
                }
                let missing = self
                    .session(&session)
                    .is_some_and(|session| session.missing_at.take_if(|at| *at == chunk.position).is_some());
                if missing {
                    self.notice(event, phrases.words_missing);
                }
                let text = plain(&chunk.chunk, false);
                if !text.is_empty() {
                    self.say(spoken(phrases, event, Kind::Agent, text));
                }
            }
            Payload::AwaitingConfirmation(asked) => {
                let summary = event.payload.summary(&verbosity);
                self.open(Question::confirmation(phrases, event, asked, summary), event, now);
            }
            Payload::AwaitingClarification(asked) => {
                self.open(Question::clarification(phrases, event, asked), event, now);
            }
            Payload::HandoffRequested(request) => {
                let reason = plain(&request.reason, true);
                let handing = words::handoff(phrases, &agent, request);
                let said = if said_text == reason { "" } else { said_text };
                let text = words::sentences(&[&handing, said, phrases.the_reason, &reason]);
                self.say(spoken(phrases, event, Kind::Handoff, text));
            }
            _ => {
                let kind = if event.envelope.event_type.is_critical() { Kind::Error } else { Kind::Notice };
                let text = words::unknown(phrases, event);
                self.say(spoken(phrases, event, kind, text));
            }
        }
    }

    /// A change of state: how a question was settled, what holds after a gap, or what the agent does now.
    fn tell_state(&mut self, event: &Event, change: &StateChanged, said: Option<&str>, now: UnixMillis) {
        let id = &event.envelope.session_id;
        self.settle(event, change, now);
        let agent = words::agent(self.phrases, event);
        let phrases = self.phrases;
        let doing = words::state(phrases, &agent, &change.to_state);
        let verbosity = self.tastes.verbosity.clone();
        let asked = self.questions.iter().any(|question| question.session == *id);
        let Some(session) = self.session(id) else { return };
        session.held_state = None;
        let text = said.unwrap_or(&doing).to_owned();
        session.doing =
            said.map_or_else(|| words::state(phrases, phrases.it, &change.to_state), str::to_owned);
        let mut announcement = spoken(phrases, event, Kind::Agent, text.clone());
        if change.from_state == change.to_state && !asked {
            // Who joins late, or comes back after a gap, is told how things stand.
            announcement.text = words::sentences(&[&doing, said.unwrap_or_default()]);
            return self.say(announcement);
        }
        // The question itself says so; and of who was stopped only the end is told.
        if change.to_state == State::AwaitingInput || session.stopping {
            return;
        }
        session.said_states.retain(|(at, _)| now.millis_since(*at) < STATE_AGAIN);
        if verbosity != Verbosity::Detailed && session.said_states.iter().any(|(_, earlier)| *earlier == text)
        {
            return;
        }
        let lasts = match verbosity {
            Verbosity::Detailed => 0,
            Verbosity::Terse => STATE_LASTS_TERSE,
            _ => STATE_LASTS,
        };
        let due = now.saturating_add(lasts).min(session.spoke.saturating_add(STATE_SILENCE)).max(now);
        session.held_state = Some((due, announcement));
        if lasts == 0 {
            self.wake(now);
        }
    }

    fn tell_progress(&mut self, event: &Event, text: String, now: UnixMillis) {
        if text.is_empty() {
            return;
        }
        let pause = match self.tastes.verbosity {
            Verbosity::Detailed => 0,
            Verbosity::Terse => PROGRESS_TERSE,
            _ => PROGRESS,
        };
        let mut announcement = spoken(self.phrases, event, Kind::Progress, text);
        if event.envelope.urgency.is_none() {
            announcement.urgency = Urgency::Background;
        }
        let Some(session) = self.session(&event.envelope.session_id) else { return };
        let same = session.said_progress.as_ref().is_some_and(|(_, earlier)| *earlier == announcement.text);
        let from = session.said_progress.as_ref().map_or(UnixMillis::MIN, |(at, _)| at.saturating_add(pause));
        session.held_progress = (!same).then_some((from, announcement));
        self.wake(now);
    }

    /// What is due: states that have lasted, progress, reminders, questions that are over.
    pub(super) fn wake(&mut self, now: UnixMillis) {
        let mut due = Vec::new();
        for session in &mut self.sessions {
            if let Some((_, announcement)) = session.held_state.take_if(|(at, _)| *at <= now) {
                if session.said_states.len() >= STATES {
                    session.said_states.pop_front();
                }
                session.said_states.push_back((now, announcement.text.clone()));
                due.push(announcement);
            }
            if let Some((_, announcement)) = session.held_progress.take_if(|(at, _)| *at <= now) {
                session.said_progress = Some((now, announcement.text.clone()));
                due.push(announcement);
            }
        }
        for announcement in due {
            self.say(announcement);
        }
        self.wake_questions(now);
        let unsure = |session: &Session| session.unsure.is_some_and(|until| until <= now);
        while let Some(session) = self.sessions.iter_mut().find(|session| unsure(session)) {
            session.unsure = None;
            session.end();
            let text = self.phrases.session_over(&session.agent);
            let mut over = Announcement::own(Kind::Session, text);
            over.session = Some(session.id.clone());
            self.say(over);
        }
    }

    /// A session is over, and with it what it asked.
    pub(super) fn end(&mut self, id: &SessionId, now: UnixMillis) {
        self.withdraw_all(id, now);
        if let Some(session) = self.session(id) {
            session.end();
        }
    }
}

/// Whether the words of a change of state are the hub's: it says so, or tells how a question was resolved.
fn hubs_words(event: &Event) -> bool {
    let Payload::StateChanged(_) = &event.payload else { return false };
    let [words, token] = hub_texts(event, ["words", "reply_token"]);
    words.as_deref() == Some("hub") || token.is_some()
}

pub(super) fn spoken(phrases: &Phrases, event: &Event, kind: Kind, text: String) -> Announcement {
    let urgency = if event.envelope.event_type.is_critical() {
        Urgency::Critical
    } else {
        event.envelope.urgency.clone().unwrap_or(Urgency::Normal)
    };
    let mut announcement = Announcement::own(kind, text);
    announcement.urgency = urgency;
    announcement.language = words::language(event);
    announcement.quotes = words::quotes(phrases, event);
    announcement.direction = words::direction(event);
    announcement.session = Some(event.envelope.session_id.clone());
    let urges = event.envelope.urgency.is_some() && !hubs_words(event);
    if matches!(event.envelope.event_type, EventType::StateChanged) && !urges {
        announcement.urgency = Urgency::Background;
    }
    announcement
}
