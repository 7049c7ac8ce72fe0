//! An index of a shard's live rows in the owner's memory, so that a commit needs no reads.
//!
//! Only the owner writes, and every commit checks the ownership, so the index cannot be out of date when a commit
//! succeeds. It holds open sessions, undecided questions, unspent decisions and subscriptions, but no ended sessions, no
//! events and no idempotency keys. The unique indices of the database detect duplicates of those.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::Position;

#[derive(Debug, Default)]
pub(super) struct LiveIndex {
    /// Open sessions by id.
    pub(super) sessions: HashMap<Arc<str>, LiveSession>,
    /// Undecided questions, and decided but unspent questions of open sessions, by token.
    pub(super) questions: HashMap<Arc<str>, LiveQuestion>,
    /// Open subscriptions by id.
    pub(super) subscriptions: HashMap<Arc<str>, LiveSubscription>,
    pub(super) counters: ShardCounters,
}

/// The counters in the row of the shard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ShardCounters {
    pub(super) commit_number: i64,
    pub(super) last_position: Position,
    pub(super) trimmed_up_to: Position,
    /// The number of the session that was opened last.
    pub(super) last_session: i64,
    /// The size of all ids, records and bodies, in bytes.
    pub(super) stored_bytes: i64,
}

#[derive(Debug)]
pub(super) struct LiveSession {
    pub(super) number: i64,
    /// Number of undecided questions.
    pub(super) undecided: usize,
    /// The tokens of its questions in the index.
    pub(super) tokens: HashSet<Arc<str>>,
}

#[derive(Debug)]
pub(super) struct LiveQuestion {
    pub(super) session: Arc<str>,
    pub(super) is_decided: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct LiveSubscription {
    pub(super) cursor: Position,
    /// The size of its id, its principal and its record.
    pub(super) bytes: i64,
    /// The size of its record.
    pub(super) record_bytes: i64,
}

impl LiveIndex {
    pub(super) fn add_session(&mut self, id: &str, number: i64) {
        let session = LiveSession { number, undecided: 0, tokens: HashSet::new() };
        self.sessions.insert(id.into(), session);
    }

    /// Adds a question of an open session.
    pub(super) fn add_question(&mut self, token: &str, session: &str, is_decided: bool) {
        let Some((id, live)) = self.sessions.get_key_value(session) else { return };
        let (id, mut undecided, token) = (id.clone(), live.undecided, Arc::<str>::from(token));
        undecided += usize::from(!is_decided);
        if let Some(live) = self.sessions.get_mut(session) {
            live.undecided = undecided;
            live.tokens.insert(token.clone());
        }
        self.questions.insert(token, LiveQuestion { session: id, is_decided });
    }

    pub(super) fn decide_question(&mut self, token: &str) {
        let Some(question) = self.questions.get_mut(token) else { return };
        if !std::mem::replace(&mut question.is_decided, true)
            && let Some(session) = self.sessions.get_mut(&question.session)
        {
            session.undecided -= 1;
        }
    }

    /// Removes a question whose decision was spent.
    pub(super) fn remove_question(&mut self, token: &str) {
        self.decide_question(token);
        if let Some(question) = self.questions.remove(token)
            && let Some(session) = self.sessions.get_mut(&question.session)
        {
            session.tokens.remove(token);
        }
    }

    /// Removes an ended session with its questions.
    pub(super) fn remove_session(&mut self, id: &str) {
        if let Some(session) = self.sessions.remove(id) {
            for token in session.tokens {
                self.questions.remove(&token);
            }
        }
    }
}
