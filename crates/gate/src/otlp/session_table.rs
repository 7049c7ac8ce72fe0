//! Tracks which session a report belongs to, and which reports were received before. Uses no clock and no I/O.
//!
//! Spans arrive late, repeatedly and in any order, often a child before its parent. A report belongs to the session of its
//! conversation. If it names none, it belongs to the session of its trace. As soon as one report names both, the trace leads to the
//! conversation's session.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::report::Report;

/// Maximum number of traces that lead to one session. Reports of further traces are found by their conversation.
const MAX_KEYS_PER_SESSION: usize = 1024;

/// The key by which a session is found. Each token has its own sessions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum SessionKey {
    Conversation(Arc<str>, String),
    Trace(Arc<str>, [u8; 16]),
}

/// Names an open session of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct SessionNumber(u64);

/// The open sessions. `S` is what the hub needs to know about one.
#[derive(Debug)]
pub(super) struct SessionTable<S> {
    last_number: u64,
    keys: HashMap<SessionKey, SessionNumber>,
    sessions: HashMap<SessionNumber, ReportSession<S>>,
}

#[derive(Debug)]
struct ReportSession<S> {
    owner: Arc<str>,
    value: S,
    last_report: Instant,
    keys: Vec<SessionKey>,
}

impl<S> Default for SessionTable<S> {
    fn default() -> Self {
        Self { last_number: 0, keys: HashMap::new(), sessions: HashMap::new() }
    }
}

impl<S> SessionTable<S> {
    /// Returns the number of open sessions.
    pub(super) fn len(&self) -> usize {
        self.sessions.len()
    }

    /// Finds the session of a report, and remembers what else leads to it.
    pub(super) fn find(
        &mut self,
        owner: &Arc<str>,
        report: &Report,
        now: Instant,
    ) -> Option<(SessionNumber, &S)> {
        let keys = keys_of(owner, report);
        let number = keys.iter().find_map(|key| self.keys.get(key).copied())?;
        self.add_keys(number, keys);
        let session = self.sessions.get_mut(&number)?;
        session.last_report = now;
        Some((number, &session.value))
    }

    /// Adds the session of a report.
    pub(super) fn insert(&mut self, owner: &Arc<str>, report: &Report, value: S, now: Instant) {
        self.last_number += 1;
        let number = SessionNumber(self.last_number);
        let session = ReportSession { owner: owner.clone(), value, last_report: now, keys: Vec::new() };
        self.sessions.insert(number, session);
        self.add_keys(number, keys_of(owner, report));
    }

    /// Removes a session.
    pub(super) fn remove(&mut self, number: SessionNumber) -> Option<S> {
        let session = self.sessions.remove(&number)?;
        for key in session.keys {
            if self.keys.get(&key) == Some(&number) {
                self.keys.remove(&key);
            }
        }
        Some(session.value)
    }

    /// Returns the session to end before `owner` gets one more: of the owner that then has the most sessions, the one without
    /// a report for the longest time. So an owner with many sessions ends its own and not those of others.
    pub(super) fn quietest_of_largest(&self, owner: &Arc<str>) -> Option<SessionNumber> {
        let mut counts: HashMap<&Arc<str>, usize> = HashMap::from([(owner, 1)]);
        for session in self.sessions.values() {
            *counts.entry(&session.owner).or_default() += 1;
        }
        let most = counts.values().copied().max()?;
        self.sessions
            .iter()
            .filter(|(_, session)| counts.get(&session.owner) == Some(&most))
            .min_by_key(|(number, session)| (session.last_report, **number))
            .map(|(number, _)| *number)
    }

    /// Returns the sessions without a report for this time.
    pub(super) fn quiet(&self, time: Duration, now: Instant) -> Vec<SessionNumber> {
        let is_quiet =
            |session: &ReportSession<S>| now.saturating_duration_since(session.last_report) >= time;
        self.sessions.iter().filter(|(_, session)| is_quiet(session)).map(|(number, _)| *number).collect()
    }

    /// Removes and returns all sessions.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = S> {
        self.keys.clear();
        self.sessions.drain().map(|(_, session)| session.value)
    }

    fn add_keys(&mut self, number: SessionNumber, keys: Vec<SessionKey>) {
        let Some(session) = self.sessions.get_mut(&number) else { return };
        for key in keys {
            if self.keys.get(&key) == Some(&number) || session.keys.len() >= MAX_KEYS_PER_SESSION {
                continue;
            }
            self.keys.insert(key.clone(), number);
            session.keys.push(key);
        }
    }
}

/// Returns the keys of a report, the most specific one first.
fn keys_of(owner: &Arc<str>, report: &Report) -> Vec<SessionKey> {
    let conversation = report.conversation.clone().map(|id| SessionKey::Conversation(owner.clone(), id));
    conversation.into_iter().chain([SessionKey::Trace(owner.clone(), report.trace_id)]).collect()
}

/// The reports that were received, up to a number. The oldest are forgotten first.
#[derive(Debug)]
pub(super) struct SeenReports {
    known: HashSet<(Arc<str>, [u8; 16])>,
    order: VecDeque<(Arc<str>, [u8; 16])>,
    max: usize,
}

impl SeenReports {
    pub(super) fn new(max: usize) -> Self {
        Self { known: HashSet::new(), order: VecDeque::new(), max }
    }

    pub(super) fn contains(&self, owner: &Arc<str>, identity: [u8; 16]) -> bool {
        self.known.contains(&(owner.clone(), identity))
    }

    pub(super) fn insert(&mut self, owner: &Arc<str>, identity: [u8; 16]) {
        if self.known.insert((owner.clone(), identity)) {
            self.order.push_back((owner.clone(), identity));
        }
        while self.order.len() > self.max
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::report::ReportContent;
    use super::*;

    fn report(trace: u8, conversation: Option<&str>) -> Report {
        Report {
            identity: [0; 16],
            trace_id: [trace; 16],
            span_id: [1; 8],
            conversation: conversation.map(str::to_owned),
            agent: None,
            ended_at: 0,
            duration_ms: None,
            content: ReportContent::Output(String::new()),
        }
    }

    #[test]
    fn a_trace_leads_to_its_conversation_whichever_report_comes_first() {
        let (owner, now) = (Arc::from("a"), Instant::now());
        let mut table = SessionTable::default();
        // A child without the conversation comes before its parent.
        table.insert(&owner, &report(1, None), "first", now);
        assert_eq!(
            table.find(&owner, &report(1, Some("c")), now).map(|(_, session)| *session),
            Some("first")
        );
        assert_eq!(
            table.find(&owner, &report(2, Some("c")), now).map(|(_, session)| *session),
            Some("first")
        );
        assert_eq!(table.find(&owner, &report(2, None), now).map(|(_, session)| *session), Some("first"));
        assert!(table.find(&owner, &report(3, Some("d")), now).is_none());
        assert!(table.find(&Arc::from("b"), &report(1, Some("c")), now).is_none());
    }

    #[test]
    fn quiet_sessions_are_found_and_removed_with_everything_that_leads_to_them() {
        let (owner, now) = (Arc::from("a"), Instant::now());
        let mut table = SessionTable::default();
        table.insert(&owner, &report(1, Some("c")), "old", now);
        let later = now + Duration::from_secs(10);
        table.insert(&owner, &report(2, None), "new", later);
        assert_eq!(table.quiet(Duration::from_secs(20), later), []);
        let quiet = table.quiet(Duration::from_secs(10), later);
        assert_eq!((quiet.len(), table.quietest_of_largest(&owner)), (1, quiet.first().copied()));
        assert_eq!(table.remove(quiet[0]), Some("old"));
        assert!(table.find(&owner, &report(1, Some("c")), later).is_none());
        assert_eq!(table.drain().collect::<Vec<_>>(), ["new"]);
        assert_eq!(table.len(), 0);
    }

    #[test]
    fn an_owner_with_many_sessions_ends_its_own() {
        let (few, many, now) = (Arc::from("few"), Arc::from("many"), Instant::now());
        let mut table = SessionTable::default();
        table.insert(&few, &report(1, None), "few", now);
        for trace in 2..5 {
            table.insert(&many, &report(trace, None), "many", now + Duration::from_secs(u64::from(trace)));
        }
        let owner_of = |table: &SessionTable<&'static str>, owner| {
            let number = table.quietest_of_largest(owner).unwrap();
            (number, table.sessions[&number].owner.clone())
        };
        let (number, owner) = owner_of(&table, &many);
        assert_eq!((&*owner, table.remove(number)), ("many", Some("many")));
        let other = Arc::from("other");
        assert_ne!(table.remove(table.quietest_of_largest(&other).unwrap()), Some("few"));
    }

    #[test]
    fn a_bounded_number_of_reports_is_remembered_and_owners_are_kept_apart() {
        let owner: Arc<str> = Arc::from("a");
        let mut seen = SeenReports::new(2);
        for number in [1, 2, 2, 3] {
            seen.insert(&owner, [number; 16]);
        }
        assert!(!seen.contains(&owner, [1; 16]));
        assert!(seen.contains(&owner, [2; 16]) && seen.contains(&owner, [3; 16]));
        assert!(!seen.contains(&Arc::from("b"), [3; 16]));
    }
}
