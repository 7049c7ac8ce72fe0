//! A recording: many sessions and subscriptions in one stream, in the order in which they happened.
//!
//! Memory grows with the number of open sessions. In addition, each event id, token and ended
//! session costs one fingerprint of at most 16 bytes (see [`FingerprintSet`]).

mod handshake;

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault};

pub use crate::fingerprint::FingerprintSet;
use crate::fingerprint::IdentityHasher;

use crate::message::Message;
use crate::rule::{self, Finding, Findings, Severity, ValidationMode};
use crate::session::{
    self, DEFAULT_MAX_OPEN, PendingItem, SessionEnd, SessionEvent, SessionEventBody, SessionMachine,
};
use handshake::HandshakeTracker;

/// For which sessions the order of events is checked (`sayso validate --sequence`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SequenceMode {
    /// Checks the sessions whose start is in the recording.
    #[default]
    Auto,
    /// Checks all sessions. A missing start or end is an error.
    Always,
    /// Checks no session.
    Never,
}

seal::defaults! {
    /// Limits on what can be open at the same time.
    #[derive(Clone, Copy, Debug)]
    pub struct RecordingLimits {
        /// The maximum number of sessions that are open at the same time.
        pub max_open_sessions: usize = 65_536,
        /// The maximum number of tools, outputs, questions or producers that are open at the same
        /// time in one session. It applies to each kind separately.
        pub max_open_items_per_session: usize = DEFAULT_MAX_OPEN,
    }
}

/// A position in the inputs: an input and a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct InputPosition {
    /// The index of the input, assigned by the caller.
    pub input: u32,
    /// The line number, starting at 1.
    pub line: u64,
}

/// Checks a recording. The hasher creates the fingerprints. If the ids are untrusted, use a hasher
/// with random keys.
#[derive(Debug)]
pub struct RecordingChecker<H> {
    sequence: SequenceMode,
    limits: RecordingLimits,
    hasher: H,
    open_sessions: HashMap<u64, TrackedSession, BuildHasherDefault<IdentityHasher>>,
    /// Whether the limit on open sessions was exceeded and reported.
    is_full: bool,
    event_ids: FingerprintSet,
    tokens: FingerprintSet,
    /// The session of each token while the session is open.
    session_by_token: HashMap<u64, u64, BuildHasherDefault<IdentityHasher>>,
    completed_sessions: FingerprintSet,
    /// Sessions that failed or were cancelled.
    failed_sessions: FingerprintSet,
    /// Sessions that are not tracked.
    skipped_sessions: FingerprintSet,
    handshakes: HandshakeTracker,
    session_count: u64,
}

#[derive(Debug)]
struct TrackedSession {
    session: Box<SessionMachine>,
    start_position: InputPosition,
    tokens: Vec<u64>,
}

impl<H: BuildHasher> RecordingChecker<H> {
    /// Creates a checker for an empty recording.
    pub fn new(sequence: SequenceMode, limits: RecordingLimits, hasher: H) -> Self {
        Self {
            sequence,
            limits,
            hasher,
            open_sessions: HashMap::default(),
            is_full: false,
            event_ids: FingerprintSet::default(),
            tokens: FingerprintSet::default(),
            session_by_token: HashMap::default(),
            completed_sessions: FingerprintSet::default(),
            failed_sessions: FingerprintSet::default(),
            skipped_sessions: FingerprintSet::default(),
            handshakes: HandshakeTracker::default(),
            session_count: 0,
        }
    }

    /// Returns the number of different sessions in the recording so far.
    pub fn session_count(&self) -> u64 {
        self.session_count
    }

    /// Returns the open sessions with the items that they wait for.
    pub fn pending_items(&self) -> impl Iterator<Item = (&SessionMachine, Vec<PendingItem>)> {
        self.open_sessions
            .values()
            .filter(|tracked| tracked.session.is_open())
            .map(|tracked| (&*tracked.session, tracked.session.pending_items()))
    }

    /// Returns the open child sessions of a session (§A.9, pattern 2).
    pub fn children_of<'a>(&'a self, session_id: &'a str) -> impl Iterator<Item = &'a SessionMachine> {
        self.open_sessions
            .values()
            .map(|tracked| &*tracked.session)
            .filter(move |session| session.parent() == Some(session_id))
    }

    /// Checks an event.
    pub fn check_event(
        &mut self,
        event: &SessionEvent<&str>,
        position: InputPosition,
        findings: &mut Findings,
    ) {
        let session_hash = self.hasher.hash_one(event.session_id);
        if self.sequence == SequenceMode::Never {
            // Here the set is used only to count the sessions.
            if self.completed_sessions.insert(session_hash) {
                self.session_count += 1;
            }
            return;
        }
        if let Some(id) = event.event_id
            && !self.event_ids.insert(self.hasher.hash_one((event.agent_id, id)))
        {
            let found = format!("{id} was used before");
            let is_reported = findings.breaks(rule::EVENT_ID_UNIQUE, "/event_id".to_owned(), found);
            // An event may be delivered twice (§8.2.4), so a receiver ignores the second delivery.
            if is_reported && findings.mode() == ValidationMode::Receive {
                return;
            }
        }
        self.handshakes.check_event(event, findings);
        if self.open_sessions.contains_key(&session_hash)
            || self.start_session(session_hash, event, position, findings)
        {
            self.continue_session(session_hash, event, findings);
        }
    }

    /// Handles an event of a session that is not open. Returns whether it is open now.
    fn start_session(
        &mut self,
        hash: u64,
        event: &SessionEvent<&str>,
        position: InputPosition,
        findings: &mut Findings,
    ) -> bool {
        if self.completed_sessions.contains(hash) {
            session::report_after_end(SessionEnd::Completed, &event.body, findings);
            return false;
        }
        if self.failed_sessions.contains(hash) {
            session::report_after_end(SessionEnd::Errored, &event.body, findings);
            return false;
        }
        let was_skipped = self.skipped_sessions.contains(hash);
        if !was_skipped {
            self.session_count += 1;
        }
        let lacks_start =
            self.sequence == SequenceMode::Auto && !matches!(event.body, SessionEventBody::Started);
        if lacks_start || was_skipped && self.sequence == SequenceMode::Always {
            self.skip_event(hash, event);
            return false;
        }
        if self.open_sessions.len() >= self.limits.max_open_sessions {
            self.skip_event(hash, event);
            if !self.is_full {
                self.is_full = true;
                let found = format!(
                    "more than {} sessions are open at the same time; the order of events in further sessions is not checked",
                    self.limits.max_open_sessions
                );
                findings.push(rule::CHECK_LIMITS, String::new(), found);
            }
            return false;
        }
        let session = if was_skipped {
            SessionMachine::starting_mid_stream(event.session_id)
        } else {
            SessionMachine::new(event.session_id)
        };
        let session = Box::new(session.with_max_open(self.limits.max_open_items_per_session));
        self.open_sessions
            .insert(hash, TrackedSession { session, start_position: position, tokens: Vec::new() });
        true
    }

    /// Skips an event because its session's start is not in the recording, or too many sessions are
    /// open. Only a fingerprint is stored, so such a session costs as little as an ended session.
    fn skip_event(&mut self, hash: u64, event: &SessionEvent<&str>) {
        self.skipped_sessions.insert(hash);
        if let Some(token) = question_token(&event.body) {
            self.tokens.insert(self.hasher.hash_one(token));
        }
    }

    /// Handles the next event of an open session.
    fn continue_session(&mut self, hash: u64, event: &SessionEvent<&str>, findings: &mut Findings) {
        let Some(tracked) = self.open_sessions.get_mut(&hash) else { return };
        if let Some(token) = question_token(&event.body) {
            let token_hash = self.hasher.hash_one(token);
            let is_known_in_session = tracked.session.knows_token(token);
            if !self.tokens.insert(token_hash) && !is_known_in_session {
                let found = format!("{token} was used before, in another session");
                findings.push(rule::TOKEN_NEW, "/reply_token".to_owned(), found);
            }
            self.session_by_token.insert(token_hash, hash);
            tracked.tokens.push(token_hash);
        }
        tracked.session.apply(event, findings);
        if let Some(end) = tracked.session.end() {
            self.forget_session(hash, end);
        }
    }

    /// Removes an ended session and keeps its fingerprint.
    fn forget_session(&mut self, hash: u64, end: SessionEnd) {
        if let Some(tracked) = self.open_sessions.remove(&hash) {
            for token in tracked.tokens {
                self.session_by_token.remove(&token);
            }
        }
        match end {
            SessionEnd::Completed => self.completed_sessions.insert(hash),
            SessionEnd::Errored | SessionEnd::Cancelled => self.failed_sessions.insert(hash),
        };
    }

    /// Checks a message that is valid on its own.
    pub fn check_message(&mut self, message: &Message, position: InputPosition, findings: &mut Findings) {
        if self.sequence == SequenceMode::Never {
            return;
        }
        self.handshakes.check_message(message, position, findings);
        match message {
            Message::ConfirmationReply(reply) => {
                if let Some(session) = self.session_of_token(reply.reply_token.as_str(), findings) {
                    session.apply_confirmation_reply(reply, findings);
                }
            }
            Message::ClarificationReply(reply) => {
                if let Some(session) = self.session_of_token(reply.reply_token.as_str(), findings) {
                    session.apply_clarification_reply(reply, findings);
                }
            }
            Message::DeadlineExtend(request) => {
                if let Some(session) = self.session_of_token(request.reply_token.as_str(), findings) {
                    session.apply_deadline_extension(request);
                }
            }
            Message::SessionStop(stop) => {
                let hash = self.hasher.hash_one(stop.session_id.as_str());
                if let Some(tracked) = self.open_sessions.get_mut(&hash) {
                    tracked.session.apply_stop();
                }
            }
            _ => {}
        }
    }

    /// Records that an invalid reply to this token was received.
    pub fn note_invalid_reply(&mut self, token: &str) {
        let session_hash = self.session_by_token.get(&self.hasher.hash_one(token));
        if let Some(tracked) = session_hash.and_then(|hash| self.open_sessions.get_mut(hash)) {
            tracked.session.note_invalid_reply(token);
        }
    }

    /// Returns the open session that asked a question with this token. An unknown token is an error
    /// only if its question should be in the recording, because a session with questions is open or
    /// because the recording must be complete.
    fn session_of_token(&mut self, token: &str, findings: &mut Findings) -> Option<&mut SessionMachine> {
        let token_hash = self.hasher.hash_one(token);
        if let Some(session_hash) = self.session_by_token.get(&token_hash) {
            return self.open_sessions.get_mut(session_hash).map(|tracked| &mut *tracked.session);
        }
        let should_be_known = self.sequence == SequenceMode::Always || !self.session_by_token.is_empty();
        if should_be_known && !self.tokens.contains(token_hash) {
            let found = format!("{token} belongs to no question");
            findings.push(rule::REPLY_TOKEN_KNOWN, "/reply_token".to_owned(), found);
        }
        None
    }

    /// Ends the recording. Returns a finding for each session that is still open and each handshake
    /// request without an answer, with the position where it started. `findings` determines which rules are checked.
    pub fn finish(&mut self, findings: &Findings) -> Vec<(InputPosition, Finding)> {
        let severity =
            if self.sequence == SequenceMode::Always { Severity::Error } else { Severity::Warning };
        let open = self.open_sessions.values().filter(|tracked| tracked.session.is_open());
        let open = open.map(|TrackedSession { session, start_position, .. }| {
            let waiting: Vec<_> = session.pending_items().iter().map(ToString::to_string).collect();
            let found = format!("{} is still open, waiting for {}", session.id(), waiting.join(", then "));
            (*start_position, rule::ONE_START_ONE_END, found)
        });
        let unfinished = open.chain(self.handshakes.finish()).filter(|(_, rule, _)| findings.checks(*rule));
        let mut unfinished: Vec<_> = unfinished
            .map(|(position, rule, actual)| {
                (position, Finding { rule, severity, pointer: String::new(), actual })
            })
            .collect();
        // Sort by text as well, because the map returns sessions that started on the same line in
        // random order.
        unfinished.sort_by(|(position, finding), (other_position, other_finding)| {
            position.cmp(other_position).then_with(|| finding.actual.cmp(&other_finding.actual))
        });
        unfinished
    }
}

fn question_token<'a>(body: &SessionEventBody<&'a str>) -> Option<&'a str> {
    match body {
        SessionEventBody::Confirmation(question) => Some(question.token),
        SessionEventBody::Clarification(question) => Some(question.token),
        _ => None,
    }
}
