//! Deletes old records, one step at a time.

use super::{Core, TurnContext};
use journal::Retention;
use seal::UnixMillis;

/// Pause between two steps of a trim, in milliseconds, so that requests can run in between.
const TRIM_STEP_PAUSE_MS: i64 = 20;

impl Core {
    /// Returns when the next trim is due; `None` if everything is kept forever.
    pub(super) fn next_trim(&self) -> Option<UnixMillis> {
        let Retention {
            max_event_age_ms: events,
            max_decision_age_ms: decisions,
            max_idempotency_key_age_ms: idempotency_keys,
            max_idempotency_keys_per_principal: keys_per_principal,
            max_bytes: bytes,
            ..
        } = self.limits.retention;
        let keeps_all = events.is_none()
            && decisions.is_none()
            && idempotency_keys.is_none()
            && keys_per_principal.is_none()
            && bytes.is_none();
        (!keeps_all).then_some(self.next_trim_at)
    }

    /// Runs one step if it is due. A failed trim deletes nothing and is repeated at the next interval.
    pub(super) fn trim(&mut self, context: &TurnContext) {
        if self.next_trim().is_none_or(|at| at > context.now) {
            return;
        }
        let mut pause = self.limits.trim_interval_ms;
        if let Ok(trimmed) = self.journal.trim(&self.limits.retention, context.now) {
            self.trimmed_up_to = trimmed.trimmed_up_to.get();
            if trimmed.has_more {
                pause = pause.min(TRIM_STEP_PAUSE_MS);
            }
        }
        self.next_trim_at = context.now.saturating_add(pause.max(1));
    }
}
