//! A recording: many sessions and subscriptions in one stream, in the order in which things were said.
//!
//! Memory grows with what is open. What is over costs at most 16 bytes: one fingerprint for each event id, token and
//! ended session (see [`Fingerprints`]).

mod dialogue;

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault};

pub use crate::fingerprint::Fingerprints;
use crate::fingerprint::Identity;

use crate::message::Message;
use crate::rule::{self, Face, Finding, Findings, Severity};
use crate::session::{self, Body, End, MAX_OPEN, Session, Step, Waiting};
use dialogue::Dialogue;

/// Whether order is judged (`sayso validate --sequence`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sequence {
    /// Of the sessions whose start is in the recording.
    #[default]
    Auto,
    /// Of all sessions; one without a start, or without an end, is a fault.
    Always,
    /// Of none.
    Never,
}

seal::defaults! {
    /// How much may be open at once.
    #[derive(Clone, Copy, Debug)]
    pub struct Limits {
        /// Sessions that are open at once.
        pub open_sessions: usize = 65_536,
        /// Tools, outputs, questions and producers that are open at once in one session.
        pub open_in_session: usize = MAX_OPEN,
    }
}

/// Where something stood: the input, and the line in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The input, counted by the caller.
    pub input: u32,
    /// The line, from 1 on.
    pub line: u64,
}

/// Follows a recording. The hasher makes the fingerprints; bring one with random keys where strangers choose the ids.
#[derive(Debug)]
pub struct Recording<H> {
    sequence: Sequence,
    limits: Limits,
    hasher: H,
    open: HashMap<u64, Tracked, BuildHasherDefault<Identity>>,
    full: bool,
    event_ids: Fingerprints,
    tokens: Fingerprints,
    /// The session of each token, while it is open.
    asked: HashMap<u64, u64, BuildHasherDefault<Identity>>,
    completed: Fingerprints,
    failed: Fingerprints,
    /// Sessions that are not followed.
    passed: Fingerprints,
    dialogue: Dialogue,
    sessions: u64,
}

#[derive(Debug)]
struct Tracked {
    session: Box<Session>,
    begun: Place,
    tokens: Vec<u64>,
}

impl<H: BuildHasher> Recording<H> {
    /// An empty recording.
    pub fn new(sequence: Sequence, limits: Limits, hasher: H) -> Self {
        Self {
            sequence,
            limits,
            hasher,
            open: HashMap::default(),
            full: false,
            event_ids: Fingerprints::default(),
            tokens: Fingerprints::default(),
            asked: HashMap::default(),
            completed: Fingerprints::default(),
            failed: Fingerprints::default(),
            passed: Fingerprints::default(),
            dialogue: Dialogue::default(),
            sessions: 0,
        }
    }

    /// How many different sessions have been seen.
    pub fn sessions(&self) -> u64 {
        self.sessions
    }

    /// The sessions that are open, each with what it is waiting for.
    pub fn waiting(&self) -> impl Iterator<Item = (&Session, Vec<Waiting>)> {
        self.open
            .values()
            .filter(|tracked| tracked.session.is_open())
            .map(|tracked| (&*tracked.session, tracked.session.waiting_for()))
    }

    /// The open sessions that were begun for that one (§A.9, pattern 2).
    pub fn children_of<'a>(&'a self, session_id: &'a str) -> impl Iterator<Item = &'a Session> {
        self.open
            .values()
            .map(|tracked| &*tracked.session)
            .filter(move |session| session.parent() == Some(session_id))
    }

    /// Takes an event.
    pub fn event(&mut self, step: &Step<&str>, place: Place, findings: &mut Findings) {
        let session = self.hasher.hash_one(step.session_id);
        if self.sequence == Sequence::Never {
            if self.completed.insert(session) {
                self.sessions += 1;
            }
            return;
        }
        if let Some(id) = step.event_id
            && !self.event_ids.insert(self.hasher.hash_one((step.agent_id, id)))
        {
            findings.push(rule::EVENT_ID_UNIQUE, "/event_id".to_owned(), format!("{id} was used before"));
            // Delivered twice is lawful on the way (§8.2.4): a receiver takes it once.
            if findings.face() == Face::Receive {
                return;
            }
        }
        self.dialogue.event(step, findings);
        if self.open.contains_key(&session) || self.begin(session, step, place, findings) {
            self.follow(session, step, findings);
        }
    }

    /// An event of a session that is not open; says whether it is now.
    fn begin(&mut self, hash: u64, step: &Step<&str>, place: Place, findings: &mut Findings) -> bool {
        if self.completed.contains(hash) {
            session::after_end(End::Completed, &step.body, findings);
            return false;
        }
        if self.failed.contains(hash) {
            session::after_end(End::Errored, &step.body, findings);
            return false;
        }
        let passed = self.passed.contains(hash);
        if !passed {
            self.sessions += 1;
        }
        let headless = self.sequence == Sequence::Auto && !matches!(step.body, Body::Started);
        if headless || passed && self.sequence == Sequence::Always {
            self.pass(hash, step);
            return false;
        }
        if self.open.len() >= self.limits.open_sessions {
            self.pass(hash, step);
            if !self.full {
                self.full = true;
                let found = format!(
                    "more than {} sessions are open at once; the order of further ones is not judged",
                    self.limits.open_sessions
                );
                findings.push(rule::READABLE, String::new(), found);
            }
            return false;
        }
        let session = if passed { Session::touched(step.session_id) } else { Session::new(step.session_id) };
        let session = Box::new(session.with_max_open(self.limits.open_in_session));
        self.open.insert(hash, Tracked { session, begun: place, tokens: Vec::new() });
        true
    }

    /// Lets an event pass unjudged: its session's start is not in the recording, or too many are open. A fingerprint
    /// is all that is kept, so that sessions without a start cost as little as ended ones.
    fn pass(&mut self, hash: u64, step: &Step<&str>) {
        self.passed.insert(hash);
        if let Some(token) = asked_token(&step.body) {
            self.tokens.insert(self.hasher.hash_one(token));
        }
    }

    /// The next event of an open session.
    fn follow(&mut self, hash: u64, step: &Step<&str>, findings: &mut Findings) {
        let Some(tracked) = self.open.get_mut(&hash) else { return };
        if let Some(token) = asked_token(&step.body) {
            let token_hash = self.hasher.hash_one(token);
            let known_there = tracked.session.knows_token(token);
            if !self.tokens.insert(token_hash) && !known_there {
                let found = format!("{token} was used before, in another session");
                findings.push(rule::TOKEN_NEW, "/reply_token".to_owned(), found);
            }
            self.asked.insert(token_hash, hash);
            tracked.tokens.push(token_hash);
        }
        tracked.session.event(step, findings);
        if let Some(end) = tracked.session.ended() {
            self.forget(hash, end);
        }
    }

    /// An ended session leaves its fingerprint.
    fn forget(&mut self, hash: u64, end: End) {
        if let Some(tracked) = self.open.remove(&hash) {
            for token in tracked.tokens {
                self.asked.remove(&token);
            }
        }
        match end {
            End::Completed => self.completed.insert(hash),
            End::Errored | End::Cancelled => self.failed.insert(hash),
        };
    }

    /// Takes a message that is lawful on its own.
    pub fn message(&mut self, message: &Message, place: Place, findings: &mut Findings) {
        if self.sequence == Sequence::Never {
            return;
        }
        self.dialogue.message(message, place, findings);
        match message {
            Message::ConfirmationReply(reply) => {
                if let Some(session) = self.asked_in(reply.reply_token.as_str(), findings) {
                    session.reply(reply, findings);
                }
            }
            Message::ClarificationReply(reply) => {
                if let Some(session) = self.asked_in(reply.reply_token.as_str(), findings) {
                    session.answer(reply, findings);
                }
            }
            Message::DeadlineExtend(wish) => {
                if let Some(session) = self.asked_in(wish.reply_token.as_str(), findings) {
                    session.extend(wish);
                }
            }
            Message::SessionStop(stop) => {
                let hash = self.hasher.hash_one(stop.session_id.as_str());
                if let Some(tracked) = self.open.get_mut(&hash) {
                    tracked.session.stop();
                }
            }
            _ => {}
        }
    }

    /// Takes note of a reply that is not lawful, by the token that it names.
    pub fn void_reply(&mut self, token: &str) {
        let session = self.asked.get(&self.hasher.hash_one(token));
        if let Some(tracked) = session.and_then(|session| self.open.get_mut(session)) {
            tracked.session.void_reply(token);
        }
    }

    /// The open session in which a token's question was asked. A token that nobody asked with is a fault only where
    /// it could have been another's: while a session that asked is open, or where everything should be in the
    /// recording.
    fn asked_in(&mut self, token: &str, findings: &mut Findings) -> Option<&mut Session> {
        let hash = self.hasher.hash_one(token);
        if let Some(session) = self.asked.get(&hash) {
            return self.open.get_mut(session).map(|tracked| &mut *tracked.session);
        }
        let could_be_wrong = self.sequence == Sequence::Always || !self.asked.is_empty();
        if could_be_wrong && !self.tokens.contains(hash) {
            let found = format!("{token} belongs to no question");
            findings.push(rule::REPLY_TOKEN_KNOWN, "/reply_token".to_owned(), found);
        }
        None
    }

    /// The recording is over: what is still open, and where it began.
    pub fn finish(&mut self) -> Vec<(Place, Finding)> {
        let severity = if self.sequence == Sequence::Always { Severity::Error } else { Severity::Warning };
        let open = self.open.values().filter(|tracked| tracked.session.is_open());
        let mut left: Vec<_> = open
            .map(|Tracked { session, begun, .. }| {
                let waiting: Vec<_> = session.waiting_for().iter().map(ToString::to_string).collect();
                let found =
                    format!("{} is still open, waiting for {}", session.id(), waiting.join(", then "));
                (*begun, Finding { rule: rule::ONE_START_ONE_END, severity, pointer: String::new(), found })
            })
            .collect();
        left.extend(self.dialogue.finish(severity));
        // By the words too: sessions that began on one line come out of the map in any order.
        left.sort_by(|(place, finding), (other, another)| {
            place.cmp(other).then_with(|| finding.found.cmp(&another.found))
        });
        left
    }
}

fn asked_token<'a>(body: &Body<&'a str>) -> Option<&'a str> {
    match body {
        Body::Confirmation(asked) => Some(asked.token),
        Body::Clarification(asked) => Some(asked.token),
        _ => None,
    }
}
