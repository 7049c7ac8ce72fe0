//! Handles a lost connection and the recovery after it.

use seal::UnixMillis;

use super::Subscriber;

/// The time after a gap in which the producer must report open sessions and questions again, in milliseconds.
pub(super) const GAP_RECOVERY_WINDOW_MS: i64 = 3000;
/// A due time that never comes, for suspended announcements.
const NEVER: UnixMillis = UnixMillis::MAX;

impl Subscriber {
    /// Suspends held announcements about states and progress while the connection is lost, because they may no longer be true.
    pub fn suspend_held(&mut self) {
        self.set_held_due(NEVER);
    }

    /// Releases held announcements after the connection returned and all missed events were received.
    pub fn release_held(&mut self, now: UnixMillis) {
        self.set_held_due(now);
    }

    /// Starts recovery after lost events: sessions and questions that are not reported again within the window count as ended.
    pub fn begin_gap_recovery(&mut self, now: UnixMillis) {
        let stale_at = Some(now.saturating_add(GAP_RECOVERY_WINDOW_MS));
        for session in self.sessions.iter_mut().filter(|session| !session.is_ended) {
            session.stale_at = stale_at;
            session.discard_held();
        }
        for question in &mut self.questions {
            question.stale_at = stale_at;
        }
    }

    /// Ends the recovery: everything that is still open was reported again, so the remaining sessions and questions count as ended now.
    pub fn finish_gap_recovery(&mut self, now: UnixMillis) {
        let stale = self.sessions.iter_mut().map(|session| &mut session.stale_at);
        for stale_at in
            stale.chain(self.questions.iter_mut().map(|question| &mut question.stale_at)).flatten()
        {
            *stale_at = now;
        }
    }

    fn set_held_due(&mut self, at: UnixMillis) {
        for session in &mut self.sessions {
            for (due, _) in session.held_state.iter_mut().chain(&mut session.held_progress) {
                *due = at;
            }
        }
    }
}
