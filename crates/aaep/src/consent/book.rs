//! The book of questions: where they stand, what is pending, and what is gone.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{BuildHasher, BuildHasherDefault};

use seal::UnixMillis;

use crate::check::Validator;
use crate::fingerprint::{Fingerprints, Identity};
use crate::id::{ReplyToken, SessionId};

use super::subscriptions::Subscriptions;
use super::{Decided, Question, Status};

seal::defaults! {
    /// How much may be open, and how much is kept.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Limits {
        /// Questions that are open in one session.
        pub open_in_session: usize = 16,
        /// Questions of one agent that are open.
        pub open_of_agent: usize = 64,
        /// Questions that are open in all.
        pub open_in_all: usize = 4096,
        /// Resolved questions that a live session keeps whole; of older ones only 64 bits stay, and no call can be made on
        /// them.
        pub resolved_in_session: usize = 64,
    }
}

type ByToken = HashMap<u64, Question, BuildHasherDefault<Identity>>;

/// The open questions of one hub, their answers, and what may be done on them. See [the module](super) for its calls.
///
/// Questions are found by a fingerprint of their token, which the hasher makes: bring one with random keys, so that
/// looking up a token that exists costs the same as one that does not, and nobody can tell which tokens share a place.
#[derive(Clone, Debug)]
pub struct Questions<H> {
    pub(super) limits: Limits,
    hasher: H,
    pub(super) validator: Validator,
    pub(super) subscriptions: Subscriptions,
    /// The questions of sessions that are not over.
    known: ByToken,
    /// What was decided and not committed.
    pending: BTreeMap<u64, Pending>,
    /// Sessions that are over once that is committed.
    ending: BTreeSet<SessionId>,
    /// The questions of each session, in the order in which they were asked.
    sessions: BTreeMap<SessionId, Vec<u64>>,
    /// The open questions, by the time at which something is to be done about them.
    due: BTreeSet<(UnixMillis, u64)>,
    /// Tokens that are of no more use, sessions that are over, and subscriptions that are closed.
    gone: Fingerprints,
}

/// A question about which something was decided that is not committed.
#[derive(Clone, Debug, PartialEq)]
struct Pending {
    /// How it will stand.
    latest: Question,
    /// How many decisions wait: only the end of its session is decided about a question that is pending.
    count: usize,
}

/// Whether they hold the same; how fingerprints are made is no part of it.
impl<H> PartialEq for Questions<H> {
    fn eq(&self, other: &Self) -> bool {
        self.limits == other.limits
            && self.subscriptions == other.subscriptions
            && self.known == other.known
            && self.pending == other.pending
            && self.ending == other.ending
            && self.sessions == other.sessions
            && self.due == other.due
            && self.gone == other.gone
    }
}

impl<H: BuildHasher> Questions<H> {
    /// An empty book.
    pub fn new(limits: Limits, hasher: H) -> Self {
        Self {
            limits,
            hasher,
            validator: Validator::new(),
            subscriptions: Subscriptions::default(),
            known: ByToken::default(),
            pending: BTreeMap::new(),
            ending: BTreeSet::new(),
            sessions: BTreeMap::new(),
            due: BTreeSet::new(),
            gone: Fingerprints::default(),
        }
    }

    /// Makes the book again from the questions of all sessions that are not over, in the order in which they were asked.
    ///
    /// Nothing is decided here: what is over by now takes its default at the next [`wake`](Self::wake). The listeners
    /// are gone with the connections; an open question waits `window` milliseconds for one to come back or join.
    pub fn restore(
        limits: Limits,
        hasher: H,
        questions: impl IntoIterator<Item = Question>,
        now: UnixMillis,
        window: i64,
    ) -> Self {
        let mut book = Self::new(limits, hasher);
        for mut question in questions {
            if question.is_open() {
                question.grace = Some(now.saturating_add(window.max(0)));
            }
            book.put(question);
        }
        book
    }

    /// After a restart: a session that is over, and the tokens of its questions, as far as the journal still has them.
    /// Without it they are as dead, but unknown rather than used.
    pub fn restore_over(&mut self, session: &SessionId, tokens: impl IntoIterator<Item = ReplyToken>) {
        self.forget(session);
        for token in tokens {
            self.bury(self.fingerprint(token.as_str()));
        }
    }

    /// Makes what was decided hold. Call it once the journal has it; what is decided first is committed first.
    pub fn commit(&mut self, decided: Decided) {
        self.release(&decided);
        for question in decided.questions {
            self.put(question);
        }
        if let Some(session) = decided.over {
            self.forget(&session);
        }
    }

    /// Takes back what was decided, because it could not be written down. It never was.
    #[allow(clippy::needless_pass_by_value, reason = "what is abandoned cannot be committed after all")]
    pub fn abandon(&mut self, decided: Decided) {
        self.release(&decided);
    }

    /// The question of that token, as it is committed; nothing once its session is over.
    pub fn question(&self, token: &ReplyToken) -> Option<&Question> {
        self.find(token).1
    }

    /// All questions that the book holds whole, session by session, in the order in which they were asked.
    pub fn questions(&self) -> impl Iterator<Item = &Question> {
        self.sessions.values().flatten().filter_map(|fingerprint| self.known.get(fingerprint))
    }

    /// The questions of a session, in the order in which they were asked: what a late joiner is told of (digest,
    /// section 19).
    pub fn of_session<'b>(&'b self, session: &SessionId) -> impl Iterator<Item = &'b Question> + use<'b, H> {
        let list = self.sessions.get(session).map_or(&[][..], Vec::as_slice);
        list.iter().filter_map(|fingerprint| self.known.get(fingerprint))
    }

    /// Whether a session is over.
    pub fn is_over(&self, session: &SessionId) -> bool {
        self.gone.contains(self.fingerprint(session.as_str()))
    }

    /// Whether a session is over, or will be when all is committed.
    pub(super) fn is_ending(&self, session: &SessionId) -> bool {
        self.is_over(session) || self.ending.contains(session)
    }

    /// When [`wake`](Self::wake) has something to do.
    pub fn next_deadline(&self) -> Option<UnixMillis> {
        let due = self.due.iter().find(|(_, fingerprint)| !self.pending.contains_key(fingerprint));
        due.map(|(at, _)| *at).into_iter().chain(self.subscriptions.next_closure()).min()
    }

    pub(super) fn fingerprint(&self, name: &str) -> u64 {
        self.hasher.hash_one(name)
    }

    /// Where a token is, with the same work whether it is there or not.
    pub(super) fn find(&self, token: &ReplyToken) -> (u64, Option<&Question>) {
        let fingerprint = self.fingerprint(token.as_str());
        (fingerprint, self.known.get(&fingerprint).filter(|question| question.token == *token))
    }

    pub(super) fn is_gone(&self, fingerprint: u64) -> bool {
        self.gone.contains(fingerprint)
    }

    pub(super) fn is_pending(&self, fingerprint: u64) -> bool {
        self.pending.contains_key(&fingerprint)
    }

    pub(super) fn is_new(&self, token: &ReplyToken) -> bool {
        let fingerprint = self.fingerprint(token.as_str());
        !self.known.contains_key(&fingerprint) && !self.is_pending(fingerprint) && !self.is_gone(fingerprint)
    }

    /// The open questions about which nothing is pending.
    pub(super) fn open(&self) -> impl Iterator<Item = &Question> {
        let free = self.due.iter().filter(|(_, fingerprint)| !self.pending.contains_key(fingerprint));
        free.filter_map(|(_, fingerprint)| self.known.get(fingerprint))
    }

    /// Whatever is open, or is about to be.
    pub(super) fn open_or_pending(&self) -> impl Iterator<Item = &Question> {
        let committed = self.due.iter().filter_map(|(_, fingerprint)| self.known.get(fingerprint));
        let new = self.pending.iter().filter(|(fingerprint, _)| !self.known.contains_key(fingerprint));
        committed.chain(new.map(|(_, pending)| &pending.latest))
    }

    /// The questions of a session, as they will stand when all is committed.
    pub(super) fn latest_of(&self, session: &SessionId) -> impl Iterator<Item = &Question> {
        let list = self.sessions.get(session).map_or(&[][..], Vec::as_slice);
        let committed = list.iter().filter(|fingerprint| !self.pending.contains_key(fingerprint));
        let pending = self.pending.values().map(|pending| &pending.latest);
        committed
            .filter_map(|fingerprint| self.known.get(fingerprint))
            .chain(pending.filter(move |question| question.session == *session))
    }

    /// What is decided is pending from now on.
    pub(super) fn hold(&mut self, decided: Decided) -> Decided {
        for question in &decided.questions {
            let fingerprint = self.fingerprint(question.token.as_str());
            let count = self.pending.get(&fingerprint).map_or(0, |pending| pending.count);
            self.pending.insert(fingerprint, Pending { latest: question.clone(), count: count + 1 });
        }
        self.ending.extend(decided.over.clone());
        decided
    }

    fn release(&mut self, decided: &Decided) {
        for question in &decided.questions {
            let fingerprint = self.fingerprint(question.token.as_str());
            match self.pending.get_mut(&fingerprint) {
                Some(pending) if pending.count > 1 => pending.count -= 1,
                _ => drop(self.pending.remove(&fingerprint)),
            }
        }
        if let Some(session) = &decided.over {
            self.ending.remove(session);
        }
    }

    /// Remembers that something is of no more use.
    pub(super) fn bury(&mut self, fingerprint: u64) {
        self.gone.insert(fingerprint);
    }

    fn put(&mut self, question: Question) {
        let fingerprint = self.fingerprint(question.token.as_str());
        if self.is_over(&question.session) {
            self.gone.insert(fingerprint);
            return;
        }
        if let Some(due) = self.known.get(&fingerprint).and_then(Question::due) {
            self.due.remove(&(due, fingerprint));
        }
        self.due.extend(question.due().map(|due| (due, fingerprint)));
        let session = question.session.clone();
        if self.known.insert(fingerprint, question).is_none() {
            self.sessions.entry(session.clone()).or_default().push(fingerprint);
        }
        self.trim(&session);
    }

    /// Lets go of the oldest resolved question of a session that has too many; of one on which a call could still be
    /// made, only if there is no other.
    fn trim(&mut self, session: &SessionId) {
        let Some(list) = self.sessions.get_mut(session) else { return };
        let status = |fingerprint: &u64| self.known.get(fingerprint).map(|question| question.status);
        let resolved = list.iter().filter(|one| status(one) != Some(Status::Open)).count();
        if resolved <= self.limits.resolved_in_session {
            return;
        }
        let useless = |one: &u64| !matches!(status(one), Some(Status::Open | Status::Accepted { .. }));
        let oldest = list.iter().position(useless);
        let oldest = oldest.or_else(|| list.iter().position(|one| status(one) != Some(Status::Open)));
        if let Some(at) = oldest {
            let fingerprint = list.remove(at);
            self.known.remove(&fingerprint);
            self.gone.insert(fingerprint);
        }
    }

    /// A session is over: of its questions only fingerprints stay.
    fn forget(&mut self, session: &SessionId) {
        self.gone.insert(self.fingerprint(session.as_str()));
        for fingerprint in self.sessions.remove(session).unwrap_or_default() {
            if let Some(due) = self.known.remove(&fingerprint).as_ref().and_then(Question::due) {
                self.due.remove(&(due, fingerprint));
            }
            self.gone.insert(fingerprint);
        }
    }
}
