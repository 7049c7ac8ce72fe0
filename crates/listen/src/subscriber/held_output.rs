//! Holds the text of outputs at terse verbosity, because the agent may sum it up when it is done (`output_summary`).

use aaep::SessionId;
use aaep::event::Verbosity;
use seal::UnixMillis;

use super::{ObservedSession, Subscriber};
use crate::{Announcement, AnnouncementText};

/// How long the text of a complete output is held for its summary, in milliseconds.
pub(super) const SUMMARY_WAIT_MS: i64 = 2000;
/// How long the text of an output that is not complete is held, in milliseconds.
pub(super) const MAX_OUTPUT_HOLD_MS: i64 = 60_000;
/// Maximum number of bytes of text that are held per session. Beyond it, the text is announced.
pub(super) const MAX_HELD_OUTPUT_BYTES: usize = 16 * 1024;

/// Text of a session that is not announced yet.
#[derive(Clone, Debug, Default)]
pub(super) struct HeldOutput {
    announcements: Vec<Announcement>,
    /// When the text is announced if nothing else happens.
    due_at: Option<UnixMillis>,
}

impl HeldOutput {
    pub(super) fn due_at(&self) -> Option<UnixMillis> {
        self.due_at
    }

    /// Takes all text.
    pub(super) fn take(&mut self) -> Vec<Announcement> {
        std::mem::take(self).announcements
    }

    fn len(&self) -> usize {
        self.announcements.iter().map(|announcement| announcement.text.len()).sum()
    }
}

impl Subscriber {
    /// Announces a text of an output, or holds it.
    pub(super) fn announce_output(&mut self, text: Announcement) {
        let holds = self.preferences.verbosity == Verbosity::Terse;
        match text.session_id.clone().and_then(|id| self.session_mut(&id)).filter(|_| holds) {
            Some(session) => session.held_output.announcements.push(text),
            None => self.announce(text),
        }
    }

    /// Sets how long the held text of a session waits for a summary. Announces the text if it is too long.
    pub(super) fn schedule_held_output(&mut self, id: &SessionId, is_complete: bool, now: UnixMillis) {
        let Some(session) = self.session_mut(id) else { return };
        let held = &mut session.held_output;
        if held.announcements.is_empty() {
            return;
        }
        if held.len() > MAX_HELD_OUTPUT_BYTES {
            return self.release_output(id);
        }
        held.due_at = if is_complete {
            Some(now.saturating_add(SUMMARY_WAIT_MS))
        } else {
            held.due_at.or(Some(now.saturating_add(MAX_OUTPUT_HOLD_MS)))
        };
    }

    /// Announces the held text of a session.
    pub(super) fn release_output(&mut self, id: &SessionId) {
        let held = self.session_mut(id).map(|session| session.held_output.take()).unwrap_or_default();
        self.pending_announcements.extend(held);
    }

    /// Announces the held text of the sessions for which this is true.
    pub(super) fn release_outputs(&mut self, is_released: impl Fn(&ObservedSession) -> bool) {
        for session in self.sessions.iter_mut().filter(|session| is_released(session)) {
            self.pending_announcements.extend(session.held_output.take());
        }
    }

    /// Takes the held text of a session whose agent summed it up.
    pub(super) fn take_unspoken_output(&mut self, id: &SessionId) -> Option<AnnouncementText> {
        let held = self.session_mut(id)?.held_output.take();
        let lines: Vec<_> = held.into_iter().map(|announcement| announcement.text).collect();
        (!lines.is_empty()).then(|| AnnouncementText::from_lines(&lines))
    }
}
