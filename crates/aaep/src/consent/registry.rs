//! The registry of questions. It tracks committed, staged and retired questions.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{BuildHasher, BuildHasherDefault};

use seal::UnixMillis;

use crate::check::Validator;
use crate::fingerprint::{FingerprintSet, IdentityHasher};
use crate::id::{ReplyToken, SessionId};

use super::subscriptions::SubscriptionTable;
use super::{Question, QuestionStatus, StagedChange};

seal::defaults! {
    /// Limits on open and resolved questions.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct ConsentLimits {
        /// The maximum number of open questions in one session.
        pub max_open_per_session: usize = 16,
        /// The maximum number of open questions of one agent.
        pub max_open_per_agent: usize = 64,
        /// The maximum number of open questions in total.
        pub max_open_total: usize = 4096,
        /// The maximum number of resolved questions that an open session keeps in full. Older
        /// questions are reduced to a 64-bit fingerprint and can no longer permit a call.
        pub max_resolved_per_session: usize = 64,
        /// How long after the answer an accepted question permits its call, in milliseconds.
        pub max_consent_age_ms: i64 = 600_000,
    }
}

type QuestionsByFingerprint = HashMap<u64, Question, BuildHasherDefault<IdentityHasher>>;

/// The questions of a hub, their answers, and the actions that the answers permit. See
/// [the module](super) for an overview of the methods.
///
/// Questions are found by a fingerprint of their token. Use a hasher with random keys, so nobody
/// can predict which tokens collide. The cost of a lookup is the same for known and unknown tokens.
#[derive(Clone, Debug)]
pub struct QuestionRegistry<H> {
    pub(super) limits: ConsentLimits,
    hasher: H,
    pub(super) validator: Validator,
    pub(super) subscriptions: SubscriptionTable,
    /// The questions of sessions that have not ended.
    by_fingerprint: QuestionsByFingerprint,
    /// The questions with staged changes, by fingerprint.
    staged: BTreeMap<u64, StagedQuestion>,
    /// Sessions that end when their staged change is committed.
    ending: BTreeSet<SessionId>,
    /// The questions of each session in the order in which they were asked.
    sessions: BTreeMap<SessionId, Vec<u64>>,
    /// The open questions by the time at which they next need attention.
    due: BTreeSet<(UnixMillis, u64)>,
    /// Fingerprints of retired tokens, ended sessions and closed subscriptions.
    retired: FingerprintSet,
}

/// A question with a staged change.
#[derive(Clone, Debug, PartialEq)]
struct StagedQuestion {
    /// The question after the change.
    latest_state: Question,
    /// The number of staged changes. A second change can be staged only if it ends the session.
    count: usize,
}

/// Compares the content, not the hasher.
impl<H> PartialEq for QuestionRegistry<H> {
    fn eq(&self, other: &Self) -> bool {
        self.limits == other.limits
            && self.subscriptions == other.subscriptions
            && self.by_fingerprint == other.by_fingerprint
            && self.staged == other.staged
            && self.ending == other.ending
            && self.sessions == other.sessions
            && self.due == other.due
            && self.retired == other.retired
    }
}

impl<H: BuildHasher> QuestionRegistry<H> {
    /// Creates an empty registry.
    pub fn new(limits: ConsentLimits, hasher: H) -> Self {
        Self {
            limits,
            hasher,
            validator: Validator::new(),
            subscriptions: SubscriptionTable::default(),
            by_fingerprint: QuestionsByFingerprint::default(),
            staged: BTreeMap::new(),
            ending: BTreeSet::new(),
            sessions: BTreeMap::new(),
            due: BTreeSet::new(),
            retired: FingerprintSet::default(),
        }
    }

    /// Rebuilds the registry from the questions of all open sessions, in the order in which they
    /// were asked.
    ///
    /// This resolves no question. Expired questions get their default at the next
    /// [`handle_deadlines`](Self::handle_deadlines). Connections do not survive a restart, so an
    /// open question waits `window_ms` milliseconds for a listener to return or join.
    pub fn restore(
        limits: ConsentLimits,
        hasher: H,
        questions: impl IntoIterator<Item = Question>,
        now: UnixMillis,
        window_ms: i64,
    ) -> Self {
        let mut registry = Self::new(limits, hasher);
        for mut question in questions {
            if question.is_open() {
                question.grace_until = Some(now.saturating_add(window_ms.max(0)));
            }
            registry.insert(question);
        }
        registry
    }

    /// Marks a session as ended after a restart, and its tokens as used, to the extent that the journal
    /// still has them. Without this call, replies to its tokens are reported as unknown instead of already
    /// resolved.
    pub fn restore_ended_session(
        &mut self,
        session: &SessionId,
        tokens: impl IntoIterator<Item = ReplyToken>,
    ) {
        self.forget_session(session);
        for token in tokens {
            self.retire(self.fingerprint(token.as_str()));
        }
    }

    /// Applies a staged change. Call it after the journal has stored the change. Commit changes in
    /// the order in which they were staged.
    pub fn commit(&mut self, change: StagedChange) {
        self.unstage(&change);
        for question in change.questions {
            self.insert(question);
        }
        if let Some(session) = change.ended_session {
            self.forget_session(&session);
        }
    }

    /// Discards a staged change that could not be stored.
    #[allow(clippy::needless_pass_by_value, reason = "an abandoned change must not be committed later")]
    pub fn abandon(&mut self, change: StagedChange) {
        self.unstage(&change);
    }

    /// Returns the committed question with this token; `None` after its session ended.
    pub fn question(&self, token: &ReplyToken) -> Option<&Question> {
        self.find(token).1
    }

    /// Returns all questions by session, in the order in which they were asked.
    pub fn questions(&self) -> impl Iterator<Item = &Question> {
        self.sessions.values().flatten().filter_map(|fingerprint| self.by_fingerprint.get(fingerprint))
    }

    /// Returns the questions of a session in the order in which they were asked, for a late joiner.
    pub fn session_questions<'b>(
        &'b self,
        session: &SessionId,
    ) -> impl Iterator<Item = &'b Question> + use<'b, H> {
        let list = self.sessions.get(session).map_or(&[][..], Vec::as_slice);
        list.iter().filter_map(|fingerprint| self.by_fingerprint.get(fingerprint))
    }

    /// Returns whether a session has ended.
    pub fn is_session_ended(&self, session: &SessionId) -> bool {
        self.retired.contains(self.fingerprint(session.as_str()))
    }

    /// Returns whether a session has ended, or will end with a staged change.
    pub(super) fn is_ending(&self, session: &SessionId) -> bool {
        self.is_session_ended(session) || self.ending.contains(session)
    }

    /// Returns when [`handle_deadlines`](Self::handle_deadlines) must be called next.
    pub fn next_deadline(&self) -> Option<UnixMillis> {
        let due = self.due.iter().find(|(_, fingerprint)| !self.staged.contains_key(fingerprint));
        due.map(|(at, _)| *at).into_iter().chain(self.subscriptions.next_expiry()).min()
    }

    pub(super) fn fingerprint(&self, name: &str) -> u64 {
        self.hasher.hash_one(name)
    }

    /// Returns a token's fingerprint, and its question if it is committed. The cost is the same for
    /// known and unknown tokens.
    pub(super) fn find(&self, token: &ReplyToken) -> (u64, Option<&Question>) {
        let fingerprint = self.fingerprint(token.as_str());
        (fingerprint, self.by_fingerprint.get(&fingerprint).filter(|question| question.token == *token))
    }

    pub(super) fn is_retired(&self, fingerprint: u64) -> bool {
        self.retired.contains(fingerprint)
    }

    pub(super) fn has_staged_change(&self, fingerprint: u64) -> bool {
        self.staged.contains_key(&fingerprint)
    }

    pub(super) fn is_unused_token(&self, token: &ReplyToken) -> bool {
        let fingerprint = self.fingerprint(token.as_str());
        !self.by_fingerprint.contains_key(&fingerprint)
            && !self.has_staged_change(fingerprint)
            && !self.is_retired(fingerprint)
    }

    /// Returns the open questions without staged changes.
    pub(super) fn open_questions(&self) -> impl Iterator<Item = &Question> {
        let unstaged = self.due.iter().filter(|(_, fingerprint)| !self.staged.contains_key(fingerprint));
        unstaged.filter_map(|(_, fingerprint)| self.by_fingerprint.get(fingerprint))
    }

    /// Returns the open questions, and the questions that a staged change will open.
    pub(super) fn open_or_staged(&self) -> impl Iterator<Item = &Question> {
        let committed = self.due.iter().filter_map(|(_, fingerprint)| self.by_fingerprint.get(fingerprint));
        let new =
            self.staged.iter().filter(|(fingerprint, _)| !self.by_fingerprint.contains_key(fingerprint));
        committed.chain(new.map(|(_, staged)| &staged.latest_state))
    }

    /// Returns the questions of a session as they will be after all staged changes.
    pub(super) fn latest_in_session(&self, session: &SessionId) -> impl Iterator<Item = &Question> {
        let list = self.sessions.get(session).map_or(&[][..], Vec::as_slice);
        let committed = list.iter().filter(|fingerprint| !self.staged.contains_key(fingerprint));
        let staged = self.staged.values().map(|staged| &staged.latest_state);
        committed
            .filter_map(|fingerprint| self.by_fingerprint.get(fingerprint))
            .chain(staged.filter(move |question| question.session_id == *session))
    }

    /// Records a change as staged.
    pub(super) fn stage(&mut self, change: StagedChange) -> StagedChange {
        for question in &change.questions {
            let fingerprint = self.fingerprint(question.token.as_str());
            let count = self.staged.get(&fingerprint).map_or(0, |staged| staged.count);
            self.staged
                .insert(fingerprint, StagedQuestion { latest_state: question.clone(), count: count + 1 });
        }
        self.ending.extend(change.ended_session.clone());
        change
    }

    fn unstage(&mut self, change: &StagedChange) {
        for question in &change.questions {
            let fingerprint = self.fingerprint(question.token.as_str());
            match self.staged.get_mut(&fingerprint) {
                Some(staged) if staged.count > 1 => staged.count -= 1,
                _ => drop(self.staged.remove(&fingerprint)),
            }
        }
        if let Some(session) = &change.ended_session {
            self.ending.remove(session);
        }
    }

    /// Marks a fingerprint as retired.
    pub(super) fn retire(&mut self, fingerprint: u64) {
        self.retired.insert(fingerprint);
    }

    fn insert(&mut self, question: Question) {
        let fingerprint = self.fingerprint(question.token.as_str());
        if self.is_session_ended(&question.session_id) {
            self.retired.insert(fingerprint);
            return;
        }
        if let Some(due) = self.by_fingerprint.get(&fingerprint).and_then(Question::due_at) {
            self.due.remove(&(due, fingerprint));
        }
        self.due.extend(question.due_at().map(|due| (due, fingerprint)));
        let session = question.session_id.clone();
        if self.by_fingerprint.insert(fingerprint, question).is_none() {
            self.sessions.entry(session.clone()).or_default().push(fingerprint);
        }
        self.evict_resolved(&session);
    }

    /// Removes the oldest resolved question of a session that has too many. A question that can
    /// still permit a call is removed only if there is no other candidate.
    fn evict_resolved(&mut self, session: &SessionId) {
        let Some(list) = self.sessions.get_mut(session) else { return };
        let status = |fingerprint: &u64| self.by_fingerprint.get(fingerprint).map(|question| question.status);
        let resolved_count =
            list.iter().filter(|fingerprint| status(fingerprint) != Some(QuestionStatus::Open)).count();
        if resolved_count <= self.limits.max_resolved_per_session {
            return;
        }
        let is_removable = |fingerprint: &u64| {
            !matches!(status(fingerprint), Some(QuestionStatus::Open | QuestionStatus::Accepted { .. }))
        };
        let oldest = list.iter().position(is_removable);
        let oldest = oldest.or_else(|| {
            list.iter().position(|fingerprint| status(fingerprint) != Some(QuestionStatus::Open))
        });
        if let Some(index) = oldest {
            let fingerprint = list.remove(index);
            self.by_fingerprint.remove(&fingerprint);
            self.retired.insert(fingerprint);
        }
    }

    /// Removes an ended session and keeps only its fingerprint and those of its questions.
    fn forget_session(&mut self, session: &SessionId) {
        self.retired.insert(self.fingerprint(session.as_str()));
        for fingerprint in self.sessions.remove(session).unwrap_or_default() {
            if let Some(due) = self.by_fingerprint.remove(&fingerprint).as_ref().and_then(Question::due_at) {
                self.due.remove(&(due, fingerprint));
            }
            self.retired.insert(fingerprint);
        }
    }
}
