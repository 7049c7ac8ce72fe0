//! Catches up after a reconnect: introduces the missed events or announces that there were none, then lists the questions that
//! are still open.

use std::time::Duration;

use aaep::json::Tape;
use seal::UnixMillis;
use tokio::time::Instant;

use super::input_handler::session_status_lines;
use crate::{Announcement, AnnouncementKind, ListenerQuestion, Phrases, Subscriber};

/// Catching up ends when nothing has arrived for this long.
const QUIET_PERIOD: Duration = Duration::from_millis(1500);
/// The maximum time for catching up.
const MAX_CATCH_UP: Duration = Duration::from_secs(5);
/// Maximum number of questions that are listed individually.
const MAX_LISTED_QUESTIONS: usize = 3;

/// The catch-up phase after a reconnect.
#[derive(Debug)]
pub(super) struct CatchUp {
    /// Whether no event was lost.
    resumed: bool,
    /// The questions that were open before the connection was lost.
    questions_before: Vec<u32>,
    has_received: bool,
    /// Whether the introduction was announced.
    is_introduced: bool,
    quiet_at: Instant,
    deadline: Instant,
}

impl CatchUp {
    pub(super) fn new(resumed: bool, subscriber: &Subscriber) -> Self {
        let open =
            subscriber.questions().filter(|question| !question.is_answered).map(|question| question.number);
        let now = Instant::now();
        Self {
            resumed,
            questions_before: open.collect(),
            has_received: false,
            is_introduced: false,
            quiet_at: now + QUIET_PERIOD,
            deadline: now + MAX_CATCH_UP,
        }
    }

    /// Records a received message.
    pub(super) fn receive(&mut self, text: &str) {
        self.has_received = true;
        self.quiet_at = Instant::now() + QUIET_PERIOD;
        let mut tape = Tape::default();
        let is_gap =
            tape.read(text).ok().and_then(|doc| Some(doc.root().member("type")?.is_text("sayso:gap")));
        // The announcement of a gap introduces what follows.
        self.is_introduced |= is_gap == Some(true);
    }

    pub(super) fn has_received(&self) -> bool {
        self.has_received
    }

    /// Returns the introduction to the missed events once. Returns `None` afterwards, or if a gap was announced.
    pub(super) fn take_introduction(&mut self, phrases: &Phrases) -> Option<Announcement> {
        let text = if self.resumed { phrases.missed_events_follow } else { phrases.current_status_follows };
        (!std::mem::replace(&mut self.is_introduced, true))
            .then(|| Announcement::new(AnnouncementKind::Notice, text))
    }

    /// Returns when catching up is finished if nothing more arrives.
    pub(super) fn due_at(&self) -> Instant {
        self.quiet_at.min(self.deadline)
    }

    /// Returns the closing announcements: that nothing was missed, or the current status, and the questions that are still open.
    pub(super) fn finish(self, subscriber: &Subscriber, now: UnixMillis) -> Vec<Announcement> {
        let phrases = subscriber.phrases();
        let still_open = self.still_open_announcements(subscriber, now);
        let mut announcements = Vec::new();
        if !self.is_introduced {
            let text = match (self.resumed, self.has_received) {
                (true, _) => phrases.nothing_missed,
                (false, false) => phrases.no_agent_working,
                (false, true) => phrases.current_status_follows,
            };
            announcements.push(Announcement::new(AnnouncementKind::Notice, text));
        } else if !self.resumed && subscriber.sessions().next().is_none() {
            announcements.push(Announcement::new(AnnouncementKind::Notice, phrases.no_agent_working));
        }
        // Announces the status of the open sessions, unless a question is open: the question says more.
        if !self.is_introduced && !self.resumed && self.has_received && still_open.is_empty() {
            announcements.extend(
                session_status_lines(subscriber, now)
                    .map(|text| Announcement::new(AnnouncementKind::Status, text)),
            );
        }
        announcements.extend(still_open);
        announcements
    }

    /// Returns announcements of the questions that were open before the loss and still are.
    fn still_open_announcements(&self, subscriber: &Subscriber, now: UnixMillis) -> Vec<Announcement> {
        open_question_notes(subscriber, |number| self.questions_before.contains(&number), now)
    }
}

/// Returns announcements that some questions are still open.
pub(super) fn open_question_notes(
    subscriber: &Subscriber,
    is_included: impl Fn(u32) -> bool,
    now: UnixMillis,
) -> Vec<Announcement> {
    let phrases = subscriber.phrases();
    let still_open: Vec<&ListenerQuestion> = subscriber
        .questions()
        .filter(|question| !question.is_answered && question.is_known_open() && is_included(question.number))
        .collect();
    if still_open.len() > MAX_LISTED_QUESTIONS {
        return vec![Announcement::new(AnnouncementKind::Ask, phrases.several_still_open(still_open.len()))];
    }
    // These announcements carry no question number, because `--auto` would answer the question again.
    let announcements = still_open.into_iter().map(|question| {
        let remaining = subscriber.time_left_text(question.number, now).unwrap_or_default();
        Announcement::new(
            AnnouncementKind::Ask,
            phrases.still_open(question.number, &question.agent_name, &remaining),
        )
    });
    announcements.collect()
}
