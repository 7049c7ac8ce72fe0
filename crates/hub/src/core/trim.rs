//! Forgetting what is over, a step at a time.

use super::{Core, TurnContext};
use journal::Retention;
use seal::UnixMillis;

/// Between two steps of one trim, in milliseconds: whoever speaks meanwhile goes first.
const PAUSE: i64 = 20;

impl Core {
    /// When there is next something to look at; never, if everything is kept.
    pub(super) fn next_trim(&self) -> Option<UnixMillis> {
        let Retention { events, decisions, keys, bytes, .. } = self.limits.retention;
        let keeps_all = events.is_none() && decisions.is_none() && keys.is_none() && bytes.is_none();
        (!keeps_all).then_some(self.trims_at)
    }

    /// Takes one step, if it is time. A trim that fails has forgotten nothing, and is tried again in its time.
    pub(super) fn trim(&mut self, context: &TurnContext) {
        if self.next_trim().is_none_or(|at| at > context.now) {
            return;
        }
        let mut pause = self.limits.trim_every;
        if let Ok(done) = self.journal.trim(&self.limits.retention, context.now) {
            self.floor = done.floor.get();
            if done.more {
                pause = pause.min(PAUSE);
            }
        }
        self.trims_at = context.now.saturating_add(pause.max(1));
    }
}
