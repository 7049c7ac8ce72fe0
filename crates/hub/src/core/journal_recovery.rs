//! Recovery of the journal after a failed write, for example because the disk is full.

use super::{Core, TurnContext, WRITE_RETRY_BACKOFF_MS};
use crate::command::TurnOutput;
use crate::owned_entry::OwnedEntry;
use crate::telemetry::LogEvent;

impl Core {
    /// After a failed write, tests whether the journal accepts writes again, even if no request needs one.
    pub(super) fn probe_journal(&mut self, context: &TurnContext, outputs: &mut Vec<TurnOutput>) {
        if !self.last_write_failed || self.needs_rebuild || context.now < self.retry_at {
            return;
        }
        // This entry is only a record; it does not change the state that a restart restores.
        let result = "write probe".to_owned();
        let probe = OwnedEntry::ReplyAttempted { at: context.now, principal: "".into(), result };
        if self.journal.commit(&[probe.as_entry()]).is_ok() {
            self.last_write_failed = false;
            outputs.push(TurnOutput::Log(LogEvent::WritesRecovered));
        } else {
            self.retry_at = context.now.saturating_add(WRITE_RETRY_BACKOFF_MS);
        }
    }
}
