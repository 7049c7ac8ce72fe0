//! Ended sessions: a list of them, and an LRU cache. Rebuilding a session means verifying all its messages again.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use asp::SessionId;

use crate::session::SessionHandle;

/// Maximum size of the messages of all cached sessions together, in bytes.
const MAX_BYTES: usize = 64 * 1024 * 1024;

/// The most recently used ended sessions.
#[derive(Debug, Default)]
pub(crate) struct EndedSessionCache {
    sessions: HashMap<SessionId, (Arc<SessionHandle>, usize)>,
    /// The most recently used session is at the end.
    order: VecDeque<SessionId>,
    bytes: usize,
}

impl EndedSessionCache {
    /// Returns a session, if it is cached.
    pub(crate) fn get(&mut self, id: SessionId) -> Option<Arc<SessionHandle>> {
        let (handle, _) = self.sessions.get(&id)?;
        self.order.retain(|other| *other != id);
        self.order.push_back(id);
        Some(handle.clone())
    }

    /// Adds a session, and evicts the least recently used ones above the limits. `bytes` is the size of its messages.
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

/// The ended sessions, in the order in which they ended.
#[derive(Debug, Default)]
pub(crate) struct EndedSessionList {
    /// Each session with its entry, as JSON. The latest is at the end.
    entries: VecDeque<(SessionId, String)>,
}

impl EndedSessionList {
    /// Adds a session, and removes the oldest one above the limit.
    pub(crate) fn push(&mut self, id: SessionId, summary: String, max_sessions: usize) {
        self.entries.push_back((id, summary));
        while self.entries.len() > max_sessions {
            self.entries.pop_front();
        }
    }

    /// Returns the entries of the latest sessions, or of those that ended before this one, the latest first. After an unknown one,
    /// nothing follows.
    pub(crate) fn page(&self, before: Option<SessionId>, limit: usize) -> impl Iterator<Item = &str> {
        let end = match before {
            None => self.entries.len(),
            Some(before) => self.entries.iter().position(|(id, _)| *id == before).unwrap_or(0),
        };
        self.entries.range(..end).rev().take(limit).map(|(_, summary)| summary.as_str())
    }
}
