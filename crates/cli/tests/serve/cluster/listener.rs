//! A listener that hears everything through all faults: it stays connected as long as it can, and otherwise resumes after the
//! last event at another node.

use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use testing::http::EventStream;

use super::campaign::repeat;
use super::*;

/// Longer than a heartbeat of the hub (15 s), so that a stream without a node behind it is noticed.
const READ_TIMEOUT: Duration = Duration::from_secs(40);

const RECONNECT_PAUSE: Duration = Duration::from_millis(200);

/// A listener on a thread of its own. It stops when it is dropped.
pub(super) struct PersistentListener(Arc<ListenerThread>);

#[derive(Default)]
struct ListenerThread {
    is_over: AtomicBool,
    state: Mutex<ListenerRecord>,
}

#[derive(Default)]
struct ListenerRecord {
    /// The ids of the events of each session, in the order in which they arrived.
    sessions: HashMap<String, Vec<String>>,
    ids: HashSet<String>,
    /// Events that have come without a position since the last position, because they have overtaken others.
    without_position: HashSet<String>,
    /// Those of them that may come again, because the listener has resumed.
    repeatable: HashSet<String>,
    twice: Vec<String>,
    resumes: usize,
}

impl PersistentListener {
    /// Subscribes at the first of these nodes. Returns when the stream is open, because only what happens later is delivered.
    pub(super) fn start(clients: Vec<TestClient>) -> Self {
        let subscription = repeat(|| clients[0].subscribe(REPLY_CAPABILITIES));
        let stream = repeat(|| clients[0].open_event_stream(&subscription, None));
        let heard = Arc::<ListenerThread>::default();
        let shared = heard.clone();
        std::thread::spawn(move || shared.listen(stream, &clients, &subscription));
        Self(heard)
    }

    /// Waits until all these events of the session were heard. Asserts that each was heard once, in this order.
    pub(super) fn assert_heard(&self, session: &str, expected: &[String]) {
        let deadline = Instant::now() + 2 * TIMEOUT;
        loop {
            let missed: Vec<usize> = {
                let state = self.0.state.lock().unwrap();
                let events = expected.iter().enumerate();
                events.filter(|(_, id)| !state.ids.contains(*id)).map(|(index, _)| index).collect()
            };
            if missed.is_empty() {
                break;
            }
            let total = expected.len();
            assert!(
                Instant::now() < deadline,
                "the listener missed {missed:?} of {total} events of {session}"
            );
            std::thread::sleep(Duration::from_millis(10));
        }
        let state = self.0.state.lock().unwrap();
        assert!(state.twice.is_empty(), "heard twice: {:?}", state.twice);
        let wanted: HashSet<&String> = expected.iter().collect();
        let heard = state.sessions.get(session).map(Vec::as_slice).unwrap_or_default();
        let heard: Vec<_> = heard.iter().filter(|id| wanted.contains(id)).collect();
        assert_eq!(
            heard,
            expected.iter().collect::<Vec<_>>(),
            "the events of {session} came in another order"
        );
    }

    /// Returns how often the listener has resumed.
    pub(super) fn resumes(&self) -> usize {
        self.0.state.lock().unwrap().resumes
    }
}

impl ListenerRecord {
    fn note_position(&mut self) {
        self.without_position.clear();
        self.repeatable.clear();
    }

    fn note_resume(&mut self) {
        self.resumes += 1;
        self.repeatable.extend(self.without_position.drain());
    }
}

impl Drop for PersistentListener {
    fn drop(&mut self) {
        // The thread notices it with its next line.
        self.0.is_over.store(true, Ordering::SeqCst);
    }
}

impl ListenerThread {
    fn listen(&self, mut stream: EventStream, clients: &[TestClient], subscription: &str) {
        let mut position = String::new();
        let mut node = 0;
        loop {
            stream.set_read_timeout(READ_TIMEOUT);
            let (mut id, mut event) = (None, None);
            while let Ok(Some(line)) = stream.try_next_line() {
                if self.is_over.load(Ordering::SeqCst) {
                    return;
                }
                if let Some(new_id) = line.strip_prefix("id: ") {
                    id = Some(new_id.to_owned());
                } else if let Some(data) = line.strip_prefix("data: ") {
                    // The last line of a lost connection may be incomplete.
                    let Ok(data) = serde_json::from_str::<serde_json::Value>(data) else { break };
                    event = Some(data);
                } else if line.is_empty() {
                    // An empty line ends a block. A block may have an id without an event, or an event without an id.
                    if let Some(event) = event.take() {
                        self.note(&event, id.is_some());
                    }
                    if let Some(id) = id.take() {
                        position = id;
                        self.state.lock().unwrap().note_position();
                    }
                }
            }
            stream = loop {
                if self.is_over.load(Ordering::SeqCst) {
                    return;
                }
                node += 1;
                let client = &clients[node % clients.len()];
                let last_event_id = (!position.is_empty()).then_some(position.as_str());
                let open = || client.open_event_stream(subscription, last_event_id);
                if let Ok(opened) = catch_unwind(AssertUnwindSafe(open)) {
                    break opened;
                }
                std::thread::sleep(RECONNECT_PAUSE);
            };
            self.state.lock().unwrap().note_resume();
        }
    }

    fn note(&self, event: &serde_json::Value, has_position: bool) {
        let (Some(id), Some(session)) = (event["event_id"].as_str(), event["session_id"].as_str()) else {
            return;
        };
        let mut state = self.state.lock().unwrap();
        if state.ids.insert(id.to_owned()) {
            state.sessions.entry(session.to_owned()).or_default().push(id.to_owned());
        } else if !state.repeatable.remove(id) {
            state.twice.push(id.to_owned());
        }
        if !has_position {
            state.without_position.insert(id.to_owned());
        }
    }
}
