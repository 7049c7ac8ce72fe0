//! The deadlines of all sessions, in order.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use asp::SessionId;
use seal::UnixMillis;
use tokio::sync::Notify;
use wire::unix_now;

/// Maximum time between two readings of the clock, which bounds the effect of a clock jump or a suspended machine.
const MAX_SLEEP: Duration = Duration::from_secs(30);

/// The next deadline of each session.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    deadlines: Mutex<Deadlines>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Deadlines {
    by_time: BTreeSet<(UnixMillis, SessionId)>,
    by_session: HashMap<SessionId, UnixMillis>,
}

impl Timers {
    /// Replaces the deadline of a session. `None` removes it.
    pub(crate) fn set(&self, session: SessionId, deadline: Option<UnixMillis>) {
        let mut deadlines = self.deadlines.lock().unwrap_or_else(PoisonError::into_inner);
        if deadlines.by_session.get(&session).copied() == deadline {
            return;
        }
        if let Some(old) = deadlines.by_session.remove(&session) {
            deadlines.by_time.remove(&(old, session));
        }
        if let Some(deadline) = deadline {
            deadlines.by_session.insert(session, deadline);
            deadlines.by_time.insert((deadline, session));
        }
        drop(deadlines);
        self.changed.notify_one();
    }

    /// Waits for the next deadline, and returns all sessions whose deadline has passed. Their deadlines are removed.
    pub(crate) async fn next_expired(&self) -> Vec<SessionId> {
        loop {
            let next = {
                let mut deadlines = self.deadlines.lock().unwrap_or_else(PoisonError::into_inner);
                let expired = deadlines.take_expired(unix_now());
                if !expired.is_empty() {
                    return expired;
                }
                deadlines.by_time.first().map(|(at, _)| *at)
            };
            let sleep = next.map_or(MAX_SLEEP, |at| {
                let millis = u64::try_from(at.millis_since(unix_now())).unwrap_or(0);
                Duration::from_millis(millis).min(MAX_SLEEP)
            });
            tokio::select! {
                () = self.changed.notified() => {}
                () = tokio::time::sleep(sleep) => {}
            }
        }
    }
}

impl Deadlines {
    fn take_expired(&mut self, now: UnixMillis) -> Vec<SessionId> {
        let mut expired = Vec::new();
        while let Some((at, session)) = self.by_time.first().copied()
            && at <= now
        {
            self.by_time.pop_first();
            self.by_session.remove(&session);
            expired.push(session);
        }
        expired
    }
}
