//! The connection is lost, and back.

use seal::UnixMillis;

use super::Ear;

/// So long after a gap it is waited for what still holds.
pub(super) const UNSURE: i64 = 3000;
/// What is set aside is due by no clock.
const NEVER: UnixMillis = UnixMillis::MAX;

impl Ear {
    /// The connection is lost: what was to be said of states and progress, should it last, is set aside. Nobody knows whether it
    /// does.
    pub fn set_aside(&mut self) {
        self.all_held_due(NEVER);
    }

    /// The connection is back, and all that was said meanwhile was heard: what is still held by now holds, and is said.
    pub fn let_go(&mut self, now: UnixMillis) {
        self.all_held_due(now);
    }

    /// What was said meanwhile is lost, and what holds follows: sessions and questions that are not told again are over.
    pub fn begin_anew(&mut self, now: UnixMillis) {
        let until = Some(now.saturating_add(UNSURE));
        for session in self.sessions.iter_mut().filter(|session| !session.ended) {
            session.unsure = until;
            session.hold_nothing();
        }
        for question in &mut self.questions {
            question.unsure = until;
        }
    }

    fn all_held_due(&mut self, at: UnixMillis) {
        for session in &mut self.sessions {
            for (due, _) in session.held_state.iter_mut().chain(&mut session.held_progress) {
                *due = at;
            }
        }
    }
}
