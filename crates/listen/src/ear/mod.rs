//! The core of a listener: events in, announcements and questions out.
//!
//! - `question`: what is open; `answer`: what the person says to it.
//! - `track`: what is known of a session, and how far its outputs were heard.
//! - `words`: the sentences.
//! - `seen`: ids, so that nothing is said twice.

mod answer;
mod question;
mod seen;
#[cfg(test)]
mod tests;
mod track;
mod words;

use std::collections::VecDeque;
use std::sync::Arc;

use aaep::event::{Event, EventType, Payload, StateChanged, Urgency, Verbosity};
use aaep::json::{Kind as JsonKind, Tape};
use aaep::message::{Boundary, EventFilters, Message};
use aaep::shape::{self, Shaper, Wants};
use aaep::{SessionId, SubscriptionId};

pub use answer::NotAnswered;
pub use question::{Question, Subject};
pub use track::Session;

use crate::{Announcement, Kind, Limits, plain};
use seen::Seen;

/// What a person wants to hear.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tastes {
    /// How much.
    pub verbosity: Verbosity,
    /// In which languages, the dearest first.
    pub languages: Vec<String>,
    /// At most so many events in a second, where the producer does not see to that.
    pub rate: Option<u64>,
}

impl Default for Tastes {
    fn default() -> Self {
        Self { verbosity: Verbosity::Normal, languages: vec!["en".to_owned()], rate: None }
    }
}

/// Hears events and messages, and says what a person should be told of them, each thing once.
///
/// Give it everything that comes, in the order in which it comes, with [`hear`](Self::hear); then drain
/// [`next`](Self::next). Do the same, without hearing, when [`next_deadline`](Self::next_deadline) has come. Neither calling too
/// early nor too late nor twice does harm. Time is in milliseconds since 1970.
///
/// ```
/// use listen::{Ear, Limits, Tastes};
/// let mut ear = Ear::new(Tastes::default(), Limits::default());
/// ear.hear(r#"{"@context":"https://aaep-protocol.org/context/v1","type":"aaep:agent.tool.invoked",
///   "event_id":"evt_1","session_id":"sess_1","timestamp":"2026-05-24T14:22:11.342Z",
///   "producer":{"agent_id":"bank"},"tool":"fetch_balance","summary_normal":"Looking up the balance."}"#, 0);
/// let said = ear.next(0).unwrap();
/// assert_eq!(said.lines().collect::<Vec<_>>(), ["tool: Looking up the balance."]);
/// assert!(ear.next(0).is_none());
/// ```
#[derive(Debug)]
pub struct Ear {
    tastes: Tastes,
    limits: Limits,
    shaper: Shaper<Event>,
    seen: Seen,
    sessions: Vec<Session>,
    sessions_known: u32,
    questions: Vec<Question>,
    questions_known: u32,
    /// Tokens of questions that are closed.
    closed: Seen,
    /// When a question was last closed by something else than this person's answer.
    surprised: Option<i64>,
    subscription: Option<SubscriptionId>,
    /// The session of the latest announcement.
    spoke: Option<SessionId>,
    out: VecDeque<Announcement>,
}

/// A change of state is said if it has lasted so long, and nothing else told of it.
const STATE_LASTS: i64 = 4000;
/// The same, for who wants to hear little.
const STATE_LASTS_TERSE: i64 = 15_000;
/// A session that changes its state all the time is not silent for longer.
const STATE_SILENCE: i64 = 20_000;
/// The same words about a state are not said again before so long.
const STATE_AGAIN: i64 = 10_000;
/// So many texts about states are remembered for that.
const STATES: usize = 4;
/// Between two announcements of progress.
const PROGRESS: i64 = 5000;
const PROGRESS_TERSE: i64 = 30_000;
/// After its deadline, a question is held to be over, should the producer not say so.
const OVERDUE: i64 = 5000;

impl Ear {
    /// Begins with nothing heard.
    pub fn new(tastes: Tastes, limits: Limits) -> Self {
        let shaper = Shaper::new(Arc::new(wants(&tastes)), shape::Limits::default()).trusting();
        Self {
            shaper,
            seen: Seen::new(limits.ids),
            closed: Seen::new(limits.ids),
            tastes,
            limits,
            sessions: Vec::new(),
            sessions_known: 0,
            questions: Vec::new(),
            questions_known: 0,
            surprised: None,
            subscription: None,
            spoke: None,
            out: VecDeque::new(),
        }
    }

    /// What the person wants to hear.
    pub fn tastes(&self) -> &Tastes {
        &self.tastes
    }

    /// Takes other wishes, for all that comes from now on.
    pub fn set_tastes(&mut self, tastes: Tastes) {
        self.shaper.renegotiate(Arc::new(wants(&tastes)));
        self.tastes = tastes;
    }

    /// The subscription by which it is heard, and for which answers are given.
    pub fn subscribe(&mut self, subscription: SubscriptionId) {
        self.subscription = Some(subscription);
    }

    /// The sessions that go on, in the order in which they were heard first.
    pub fn sessions(&self) -> impl Iterator<Item = &Session> {
        self.sessions.iter().filter(|session| !session.ended)
    }

    /// Whether a session was heard to its end.
    pub fn has_ended(&self, id: &SessionId) -> bool {
        self.sessions.iter().any(|session| session.id == *id && session.ended)
    }

    /// The questions that can be answered, the oldest first.
    pub fn questions(&self) -> impl Iterator<Item = &Question> {
        self.questions.iter()
    }

    /// Takes one event or message, as JSON.
    pub fn hear(&mut self, text: &str, now: i64) {
        let mut tape = Tape::default();
        let Some(doc) = tape.read(text).ok().filter(|doc| doc.root().kind() == JsonKind::Object) else {
            return self
                .say(Announcement::own(Kind::Error, "Something came that is no event; it was left out."));
        };
        let kind = doc.root().member("type").and_then(|kind| kind.text()).unwrap_or_default();
        if kind == "sayso:gap" {
            return self.say(Announcement::own(
                Kind::Notice,
                "Some of what was said while you were away is not kept any more. What holds now follows.",
            ));
        }
        if let Some(event) = Event::read(&doc) {
            self.hear_event(event, now);
        } else if let Some(message) = Message::parse(text) {
            self.hear_message(&message);
        } else {
            let kind = if kind.is_empty() { "unknown".to_owned() } else { plain(&kind, true) };
            let text = format!("Something of the type {kind} came that could not be understood.");
            self.say(Announcement::own(Kind::Error, text));
        }
    }

    /// The next thing to be said; drain it until there is none.
    pub fn next(&mut self, now: i64) -> Option<Announcement> {
        if self.out.is_empty() {
            self.drain(now);
            self.wake(now);
        }
        let mut next = self.out.pop_front()?;
        self.introduce(&mut next, now);
        Some(next)
    }

    /// When there may be something to say, should nothing else come.
    pub fn next_deadline(&self) -> Option<i64> {
        if !self.out.is_empty() {
            return Some(i64::MIN);
        }
        let held = self
            .sessions
            .iter()
            .flat_map(|session| session.held_state.iter().chain(&session.held_progress).map(|(due, _)| *due));
        let questions = self.questions.iter().flat_map(|question| {
            question.reminders.first().copied().into_iter().chain([question.deadline.saturating_add(OVERDUE)])
        });
        held.chain(questions).chain(self.shaper.next_deadline()).min()
    }

    fn say(&mut self, announcement: Announcement) {
        self.out.push_back(announcement);
    }

    /// Where several sessions speak, one that was not the last to speak says which it is.
    fn introduce(&mut self, next: &mut Announcement, now: i64) {
        let Some(id) = &next.session else { return };
        if let Some(session) = self.sessions.iter_mut().find(|session| session.id == *id) {
            session.spoke = now;
        }
        let others = self.sessions.iter().filter(|session| !session.ended && session.id != *id).count();
        if others > 0
            && self.spoke.as_ref() != Some(id)
            && let Some(session) = self.sessions.iter().find(|session| session.id == *id)
        {
            next.text.insert_str(0, &format!("In session {}: ", session.number));
        }
        self.spoke = Some(id.clone());
    }

    fn hear_message(&mut self, message: &Message) {
        if let Message::SubscriptionClose(close) = message {
            let why = match close.reason_code.as_deref() {
                Some("slow_consumer") => {
                    "More came than could be taken here, so the hub has let go.".to_owned()
                }
                Some("producer_shutdown") => "The hub is stopping.".to_owned(),
                Some("replaced") => "Another connection listens in place of this one now.".to_owned(),
                Some(other) => format!("The hub has ended the subscription: {}.", plain(other, true)),
                None => "The hub has ended the subscription.".to_owned(),
            };
            self.say(Announcement::own(Kind::Notice, why));
        }
    }

    fn hear_event(&mut self, mut event: Event, now: i64) {
        if !self.seen.insert(event.envelope.event_id.as_str()) {
            return;
        }
        let index = self.session_of(&event, now);
        let agent = event.envelope.producer.agent_id.clone();
        let outputs = self.limits.outputs;
        let mut missing = false;
        let mut disorder = false;
        if let Some(session) = self.sessions.get_mut(index) {
            session.heard = now;
            if let Some(number) = event.envelope.sequence_number {
                let earlier = session.sequence.is_some_and(|latest| number <= latest);
                disorder = earlier && !session.told_disorder;
                session.told_disorder |= earlier;
                session.sequence = session.sequence.max(Some(number));
            }
            if let Payload::OutputStreaming(chunk) = &mut event.payload {
                let (repeated, gap) = session.fresh(&agent, chunk, outputs);
                missing = gap;
                if repeated > 0 {
                    chunk.position += u64::try_from(chunk.chunk.chars().count()).unwrap_or(0);
                    chunk.chunk.drain(..repeated);
                    chunk.position -= u64::try_from(chunk.chunk.chars().count()).unwrap_or(0);
                }
            }
        }
        if disorder || missing {
            let what = if missing {
                "Some words are missing here; they did not arrive."
            } else {
                "Events of this session came in the wrong order."
            };
            self.drain(now);
            let mut notice = Announcement::own(Kind::Notice, what);
            notice.session = Some(event.envelope.session_id.clone());
            self.say(notice);
        }
        self.shaper.push(&Arc::new(event));
        self.drain(now);
    }

    /// What the shaper lets go, in words.
    fn drain(&mut self, now: i64) {
        while let Some(out) = self.shaper.pull(now) {
            self.tell(out.event(), now);
        }
    }

    /// The place of an event's session, which is made known if it is new.
    fn session_of(&mut self, event: &Event, now: i64) -> usize {
        let id = &event.envelope.session_id;
        if let Some(at) = self.sessions.iter().position(|session| session.id == *id) {
            return at;
        }
        if self.sessions.len() >= self.limits.sessions {
            let asks = |id: &SessionId| self.questions.iter().any(|question| question.session == *id);
            let oldest = (0..self.sessions.len())
                .filter_map(|at| self.sessions.get(at).map(|session| (at, session)))
                .min_by_key(|(_, session)| (!session.ended, asks(&session.id), session.heard));
            if let Some((at, _)) = oldest {
                self.sessions.remove(at);
            }
        }
        self.sessions_known += 1;
        self.sessions.push(Session::new(self.sessions_known, event, now));
        self.sessions.len() - 1
    }

    fn session(&mut self, id: &SessionId) -> Option<&mut Session> {
        self.sessions.iter_mut().find(|session| session.id == *id)
    }

    /// One event that was shaped, in words.
    fn tell(&mut self, event: &Event, now: i64) {
        let verbosity = self.tastes.verbosity.clone();
        let session = event.envelope.session_id.clone();
        let agent = words::agent(event);
        let said = words::said(&event.payload, &verbosity);
        let said_text = said.as_deref().unwrap_or_default();
        if !matches!(event.payload, Payload::ProgressUpdated(_) | Payload::StateChanged(_))
            && let Some(session) = self.session(&session)
        {
            // It tells more of what the agent does than the state would.
            session.held_state = None;
        }
        match &event.payload {
            Payload::SessionStarted(_) => {
                let text = words::sentences(&[&format!("{agent} has begun."), said_text]);
                self.say(spoken(event, Kind::Session, text));
            }
            Payload::SessionCompleted(_) => {
                self.end(&session, now);
                let text = words::sentences(&[&format!("{agent} is done."), said_text]);
                self.say(spoken(event, Kind::Session, text));
            }
            Payload::SessionCancelled(cancelled) => {
                self.end(&session, now);
                let text = words::sentences(&[&words::cancelled(&agent, &cancelled.cancelled_by), said_text]);
                self.say(spoken(event, Kind::Session, text));
            }
            Payload::SessionErrored(error) => {
                self.end(&session, now);
                let hint = error.remediation_hint.as_deref().map(|hint| plain(hint, true));
                let failed = format!("{agent} has failed.");
                let mut parts = vec![failed.as_str(), said_text, words::errored(error)];
                if let Some(hint) = &hint {
                    parts.extend(["What you can do:", hint]);
                }
                let text = words::sentences(&parts);
                self.say(spoken(event, Kind::Error, text));
            }
            Payload::StateChanged(change) => self.tell_state(event, change, said, now),
            Payload::ProgressUpdated(update) => {
                let text = said.unwrap_or_else(|| words::progress(update));
                self.tell_progress(event, text, now);
            }
            Payload::ToolInvoked(call) => {
                let warning = if call.irreversible == Some(true) { "This can never be undone." } else { "" };
                let text = words::sentences(&[said_text, warning]);
                if let Some(session) = self.session(&session) {
                    session.doing.clone_from(&text);
                }
                self.say(spoken(event, Kind::Tool, text));
            }
            Payload::ToolCompleted(done) => {
                let text = words::tool_done(done, said.as_deref());
                self.say(spoken(event, Kind::Tool, text));
            }
            Payload::OutputStreaming(chunk) => {
                let kind = chunk.content_type.as_deref().unwrap_or("text/plain");
                if !kind.starts_with("text/") {
                    if chunk.complete {
                        let text = format!("{agent} has sent data of the type {}.", plain(kind, true));
                        self.say(spoken(event, Kind::Agent, text));
                    }
                    return;
                }
                let text = plain(&chunk.chunk, false);
                if !text.is_empty() {
                    self.say(spoken(event, Kind::Agent, text));
                }
            }
            Payload::AwaitingConfirmation(asked) => {
                let summary = words::summary(&event.payload, &verbosity);
                self.open(Question::confirmation(event, asked, summary), event, now);
            }
            Payload::AwaitingClarification(asked) => {
                self.open(Question::clarification(event, asked), event, now)
            }
            Payload::HandoffRequested(request) => {
                let reason = plain(&request.reason, true);
                let handing = words::handoff(&agent, request);
                let said = if said_text == reason { "" } else { said_text };
                let text = words::sentences(&[&handing, said, "The reason:", &reason]);
                self.say(spoken(event, Kind::Handoff, text));
            }
            _ => {
                let kind = if event.envelope.event_type.is_critical() { Kind::Error } else { Kind::Notice };
                let text = words::unknown(event);
                self.say(spoken(event, kind, text));
            }
        }
    }

    /// A change of state: how a question was settled, what holds after a gap, or what the agent does now.
    fn tell_state(&mut self, event: &Event, change: &StateChanged, said: Option<String>, now: i64) {
        let id = &event.envelope.session_id;
        self.settle(event, change, now);
        let agent = words::agent(event);
        let state = words::state(&change.to_state);
        let doing = format!("{agent} {state}.");
        let verbosity = self.tastes.verbosity.clone();
        let asked = self.questions.iter().any(|question| question.session == *id);
        let Some(session) = self.session(id) else { return };
        session.held_state = None;
        let text = said.clone().unwrap_or_else(|| doing.clone());
        session.doing = said.clone().unwrap_or_else(|| format!("It {state}."));
        let mut announcement = spoken(event, Kind::Agent, text.clone());
        if change.from_state == change.to_state && !asked {
            // Who joins late, or comes back after a gap, is told how things stand.
            announcement.text = words::sentences(&[&doing, said.as_deref().unwrap_or_default()]);
            return self.say(announcement);
        }
        if change.to_state == "awaiting_input" {
            // The question itself says so.
            return;
        }
        session.said_states.retain(|(at, _)| now.saturating_sub(*at) < STATE_AGAIN);
        if session.said_states.iter().any(|(_, earlier)| *earlier == text) {
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

    fn tell_progress(&mut self, event: &Event, text: String, now: i64) {
        if text.is_empty() {
            return;
        }
        let pause = match self.tastes.verbosity {
            Verbosity::Detailed => 0,
            Verbosity::Terse => PROGRESS_TERSE,
            _ => PROGRESS,
        };
        let asks = self.questions.iter().any(|question| question.session == event.envelope.session_id);
        if asks && reminds(&text) {
            // The hub reminds of the time that is left; here that is said in the words of the question.
            return;
        }
        let mut announcement = spoken(event, Kind::Progress, text);
        if event.envelope.urgency.is_none() {
            announcement.urgency = Urgency::Background;
        }
        let Some(session) = self.session(&event.envelope.session_id) else { return };
        let same = session.said_progress.as_ref().is_some_and(|(_, earlier)| *earlier == announcement.text);
        let from = session.said_progress.as_ref().map_or(i64::MIN, |(at, _)| at.saturating_add(pause));
        session.held_progress = (!same).then_some((from, announcement));
        self.wake(now);
    }

    /// What is due: states that have lasted, progress, reminders, questions that are over.
    fn wake(&mut self, now: i64) {
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
    }

    /// A session is over, and with it what it asked.
    fn end(&mut self, id: &SessionId, now: i64) {
        self.withdraw_all(id, now);
        if let Some(session) = self.session(id) {
            session.ended = true;
            session.held_state = None;
            session.held_progress = None;
        }
    }
}

/// What is asked of the shaper: everything, in the person's words, text in sentences.
fn wants(tastes: &Tastes) -> Wants {
    let mut filters = EventFilters::new();
    filters.include = Some(vec!["*".to_owned()]);
    Wants {
        verbosity: tastes.verbosity.clone(),
        languages: tastes.languages.clone(),
        boundaries: vec![Boundary::Sentence, Boundary::Completion],
        filters,
        rate: tastes.rate,
        confirmations: true,
        clarifications: true,
        ..Wants::default()
    }
}

/// Whether progress is the hub's reminder of a question's time, which has no other sign than its words.
fn reminds(text: &str) -> bool {
    let count = text.strip_suffix(" seconds are left to answer.");
    count.is_some_and(|count| !count.is_empty() && count.bytes().all(|byte| byte.is_ascii_digit()))
}

/// An announcement of an event.
fn spoken(event: &Event, kind: Kind, text: String) -> Announcement {
    let urgency = if event.envelope.event_type.is_critical() {
        Urgency::Critical
    } else {
        event.envelope.urgency.clone().unwrap_or(Urgency::Normal)
    };
    let mut announcement = Announcement::own(kind, text);
    announcement.urgency = urgency;
    announcement.language = words::language(event);
    announcement.direction = words::direction(event);
    announcement.session = Some(event.envelope.session_id.clone());
    if matches!(event.envelope.event_type, EventType::StateChanged) && event.envelope.urgency.is_none() {
        announcement.urgency = Urgency::Background;
    }
    announcement
}
