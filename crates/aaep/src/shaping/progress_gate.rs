//! Merges quick successive progress updates of a session (§4.2.2).

use std::collections::{HashMap, VecDeque};

use seal::UnixMillis;

use super::held_event::{HeldEvent, MergeKind};
use crate::event::{Event, Payload};
use crate::id::SessionId;

/// How long an update that says little more than the one before it is held.
const PAUSE_MILLIS: i64 = 1000;
/// The difference in percent from which an update is sent at once.
const PERCENT_STEP: f64 = 5.0;

/// Holds an update for up to a second if its session has just sent another one and it differs from that by less than five percent. The
/// next update replaces it. An update with other words, the last one, and any other event of the session end the wait.
#[derive(Clone, Debug)]
pub(super) struct ProgressGate<T> {
    sessions: HashMap<SessionId, RecentProgress<T>>,
    /// The pauses, in the order in which they end. A pause is outdated if its session has another one.
    pauses: VecDeque<(UnixMillis, SessionId)>,
    /// The sessions whose update is sent at the next pull. Their pauses start then.
    sent_sessions: Vec<SessionId>,
    held_count: usize,
}

/// The last update that a session has sent, and a later one that is held.
#[derive(Clone, Debug)]
struct RecentProgress<T> {
    percent: Option<f64>,
    words: String,
    pause_until: Option<UnixMillis>,
    held: Option<HeldEvent<T>>,
}

impl<T> Default for ProgressGate<T> {
    fn default() -> Self {
        Self { sessions: HashMap::new(), pauses: VecDeque::new(), sent_sessions: Vec::new(), held_count: 0 }
    }
}

impl<T: AsRef<Event>> ProgressGate<T> {
    /// Returns whether no session has sent an update in the last second.
    pub(super) fn is_idle(&self) -> bool {
        self.sessions.is_empty()
    }

    pub(super) fn held_count(&self) -> usize {
        self.held_count
    }

    pub(super) fn held(&self) -> impl Iterator<Item = &HeldEvent<T>> {
        self.sessions.values().filter_map(|recent| recent.held.as_ref())
    }

    /// Adds an event. Returns the events that must be sent now: an update that was held, and the event, unless it is held.
    pub(super) fn push(&mut self, event: HeldEvent<T>) -> [Option<HeldEvent<T>>; 2] {
        let session = &event.outgoing.event().envelope.session_id;
        if event.kind != MergeKind::Progress {
            return [self.release(&session.clone()), Some(event)];
        }
        let (percent, words) = (percent(event.outgoing.event()), words(event.outgoing.event()));
        let Some(recent) = self.sessions.get_mut(session) else {
            self.sent_sessions.push(session.clone());
            let recent = RecentProgress { percent, words, pause_until: None, held: None };
            self.sessions.insert(session.clone(), recent);
            return [None, Some(event)];
        };
        let mut event = event;
        let held = recent.held.take();
        self.held_count -= usize::from(held.is_some());
        // An update of the same agent with the same words replaces the one that is held.
        if recent.words == words {
            if let Some(held) = held {
                event.first_log_position = held.first_log_position;
            }
            if !says_more(recent.percent, percent) {
                recent.held = Some(event);
                self.held_count += 1;
                return [None, None];
            }
            self.start_pause(&event, percent, words);
            return [None, Some(event)];
        }
        self.start_pause(&event, percent, words);
        [held, Some(event)]
    }

    /// Returns the update of a session that is held.
    pub(super) fn release(&mut self, session: &SessionId) -> Option<HeldEvent<T>> {
        let held = self.sessions.get_mut(session)?.held.take();
        self.held_count -= usize::from(held.is_some());
        held
    }

    /// Starts the pauses after the updates that are sent now. Call it at each pull.
    pub(super) fn start_pauses(&mut self, now: UnixMillis) {
        for session in self.sent_sessions.drain(..) {
            if let Some(recent) = self.sessions.get_mut(&session) {
                let until = now.saturating_add(PAUSE_MILLIS);
                recent.pause_until = Some(until);
                self.pauses.push_back((until, session));
            }
        }
    }

    /// Returns the next update whose pause is over.
    pub(super) fn pull(&mut self, now: UnixMillis) -> Option<HeldEvent<T>> {
        while let Some((_, session)) = self.pauses.pop_front_if(|(until, _)| *until <= now) {
            let Some(recent) = self.sessions.get_mut(&session) else { continue };
            if recent.pause_until.is_none_or(|until| until > now) {
                continue;
            }
            let Some(mut held) = recent.held.take() else {
                self.sessions.remove(&session);
                continue;
            };
            self.held_count -= 1;
            held.was_delayed = true;
            let (percent, words) = (percent(held.outgoing.event()), words(held.outgoing.event()));
            self.start_pause(&held, percent, words);
            self.start_pauses(now);
            return Some(held);
        }
        None
    }

    /// Returns when the first update that is held must be sent.
    pub(super) fn next_deadline(&self) -> Option<UnixMillis> {
        if self.held_count == 0 {
            return None;
        }
        let is_current = |(until, session): &&(UnixMillis, SessionId)| {
            let recent = self.sessions.get(session);
            recent.is_some_and(|recent| recent.held.is_some() && recent.pause_until == Some(*until))
        };
        self.pauses.iter().find(is_current).map(|(until, _)| *until)
    }

    /// Remembers an update that is sent at the next pull.
    fn start_pause(&mut self, event: &HeldEvent<T>, percent: Option<f64>, words: String) {
        let session = &event.outgoing.event().envelope.session_id;
        let recent = RecentProgress { percent, words, pause_until: None, held: None };
        self.sessions.insert(session.clone(), recent);
        self.sent_sessions.push(session.clone());
    }
}

/// Whether an update is five percent further than the one before it, or the last one.
fn says_more(before: Option<f64>, percent: Option<f64>) -> bool {
    match (before, percent) {
        (_, Some(percent)) if percent >= 100.0 => true,
        (Some(before), Some(percent)) => (percent - before).abs() >= PERCENT_STEP,
        (None, None) => false,
        _ => true,
    }
}

/// Returns how far the agent is.
#[allow(clippy::cast_precision_loss, reason = "a percentage needs no more than 53 bits")]
fn percent(event: &Event) -> Option<f64> {
    let Payload::ProgressUpdated(update) = &event.payload else { return None };
    let progress = &update.progress;
    let of_steps = || Some(progress.step? as f64 * 100.0 / progress.total_steps? as f64);
    progress.percent.or_else(of_steps)
}

/// Returns the words of an update without its numbers, and its agent.
fn words(event: &Event) -> String {
    let Payload::ProgressUpdated(update) = &event.payload else { return String::new() };
    let mut words = event.envelope.producer.agent_id.clone();
    let description = [update.progress.description.as_deref()];
    for text in description.into_iter().chain(event.payload.summaries()) {
        words.push('\n');
        words.extend(text.unwrap_or_default().chars().filter(|c| !c.is_numeric()));
    }
    words
}
