//! Sessions that have ended, kept for a while, because rebuilding one verifies every message of it again.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use asp::SessionId;

use crate::session::SessionHandle;

/// Maximum size of the messages of all kept sessions together, in bytes.
const MAX_BYTES: usize = 64 * 1024 * 1024;

/// The ended sessions that were used last.
#[derive(Debug, Default)]
pub(crate) struct EndedSessions {
    sessions: HashMap<SessionId, (Arc<SessionHandle>, usize)>,
    /// The session that was used last is at the end.
    order: VecDeque<SessionId>,
    bytes: usize,
}

impl EndedSessions {
    /// Returns a session, if it is kept.
    pub(crate) fn get(&mut self, id: SessionId) -> Option<Arc<SessionHandle>> {
        let (handle, _) = self.sessions.get(&id)?;
        self.order.retain(|other| *other != id);
        self.order.push_back(id);
        Some(handle.clone())
    }

    /// Keeps a session, and drops those that were not used for the longest time if there are too many. `bytes` is the size of
    /// its messages.
    pub(crate) fn insert(&mut self, handle: Arc<SessionHandle>, bytes: usize, max_sessions: usize) {
        let id = handle.info.id;
        self.remove(id);
        if bytes > MAX_BYTES {
            return;
        }
        self.bytes += bytes;
        self.sessions.insert(id, (handle, bytes));
        self.order.push_back(id);
        while self.sessions.len() > max_sessions || self.bytes > MAX_BYTES {
            let Some(oldest) = self.order.front().copied() else { return };
            self.remove(oldest);
        }
    }

    fn remove(&mut self, id: SessionId) {
        if let Some((_, bytes)) = self.sessions.remove(&id) {
            self.bytes -= bytes;
            self.order.retain(|other| *other != id);
        }
    }
}
