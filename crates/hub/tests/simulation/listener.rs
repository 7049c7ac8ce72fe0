//! A simulated listener that reads, stalls, disconnects and reconnects, and checks what it receives.

use std::collections::{HashMap, HashSet};
use std::hash::RandomState;
use std::sync::Arc;

use aaep::check::{CheckedDocument, Validator};
use aaep::json::Tape;
use aaep::recording::{InputPosition, RecordingChecker, RecordingLimits, SequenceMode};
use aaep::rule::{Findings, Severity, ValidationMode};
use hub::delivery::{Cursor, DeliveryQueue, Frame, NextFrame};
use hub::{DeliveryGroupId, ListenerId, Principal};
use seal::UnixMillis;

use crate::simulation::actors::{ANSWERING_CAPABILITIES, FIRST_RATE_LIMITED};
use crate::support::text_member;

pub(crate) struct SimulatedListener {
    pub(crate) principal: Principal,
    /// Index into `CAPABILITIES`.
    pub(crate) capabilities_index: usize,
    pub(crate) subscription: Option<String>,
    pub(crate) connection: Option<SimulatedConnection>,
    pub(crate) lost_at: UnixMillis,
    /// Whether it has sent a `subscription.close`.
    pub(crate) is_closing: bool,
    pub(crate) is_stalled: bool,
    /// Whether it always reads everything. Other listeners receive critical events early and thus out of order.
    pub(crate) reads_immediately: bool,
    /// The last received id, of an event or a resume position, as a browser remembers it.
    pub(crate) last_id: Option<String>,
    /// The ids of all events it received.
    pub(crate) ids: HashSet<String>,
    /// The listener must receive every event after this position.
    pub(crate) complete_from: Option<u64>,
    recording: RecordingChecker<RandomState>,
    pub(crate) received: usize,
    /// For each attach: the last id, the end of the log, and the number of private frames.
    pub(crate) attaches: Vec<(Option<String>, u64, usize)>,
    pub(crate) history: Vec<String>,
}

/// A connection of the listener.
pub(crate) struct SimulatedConnection {
    pub(crate) id: ListenerId,
    pub(crate) group: DeliveryGroupId,
    pub(crate) cursor: Cursor,
    /// The ids of the events received on this connection.
    ids: HashSet<String>,
    /// Critical frames that were queued but not delivered yet, by event id: the session, and whether it is a question.
    pending_criticals: HashMap<String, (String, bool)>,
    private_ids: HashSet<String>,
}

impl SimulatedListener {
    pub(crate) fn new(principal: Principal, capabilities_index: usize, reads_immediately: bool) -> Self {
        Self {
            principal,
            capabilities_index,
            subscription: None,
            connection: None,
            lost_at: UnixMillis::default(),
            is_closing: false,
            is_stalled: false,
            reads_immediately,
            last_id: None,
            ids: HashSet::new(),
            complete_from: None,
            recording: recording(),
            received: 0,
            attaches: Vec::new(),
            history: Vec::new(),
        }
    }

    pub(crate) fn attach(
        &mut self,
        id: ListenerId,
        group: DeliveryGroupId,
        queue: &DeliveryQueue,
        private_frames: Vec<Arc<Frame>>,
        from: Option<u64>,
        end: u64,
    ) {
        let mut cursor = Cursor::at_end(queue).with_origin(from);
        self.attaches.push((self.last_id.clone(), end, private_frames.len()));
        let private_ids = private_frames.iter().filter_map(|frame| id_of(frame)).collect();
        let has_gap =
            private_frames.iter().any(|frame| frame.json().contains("sayso:gap")) || self.last_id.is_none();
        for frame in private_frames {
            cursor.push_private(frame);
        }
        if has_gap || self.complete_from.is_none() {
            self.restart_after_gap(end);
        }
        self.connection = Some(SimulatedConnection {
            id,
            group,
            cursor,
            ids: HashSet::new(),
            pending_criticals: HashMap::new(),
            private_ids,
        });
    }

    /// Starts a new recording after a gap that the listener knows about.
    pub(crate) fn restart_after_gap(&mut self, end: u64) {
        self.complete_from = Some(end);
        self.last_id = None;
        self.recording = recording();
        self.history.clear();
    }

    pub(crate) fn record_critical(&mut self, frame: &Frame) {
        let (Some(connection), Some(id)) = (&mut self.connection, id_of(frame)) else { return };
        if frame.is_critical {
            let json = frame.json();
            let is_question =
                json.contains("agent.awaiting.") || json.contains(r#""to_state":"awaiting_input""#);
            connection.pending_criticals.insert(id, (text_member(json, "session_id"), is_question));
        }
    }

    /// Reads up to `max_frames` frames. Returns whether the listener has fallen too far behind.
    pub(crate) fn read_frames(
        &mut self,
        max_frames: usize,
        queues: &HashMap<DeliveryGroupId, DeliveryQueue>,
    ) -> bool {
        for _ in 0..max_frames {
            let Some(connection) = &mut self.connection else { return false };
            let Some(queue) = queues.get(&connection.group) else { return false };
            match connection.cursor.take(queue) {
                NextFrame::Frame(frame) => self.receive(&frame),
                NextFrame::Empty => return false,
                NextFrame::Lagged => return true,
            }
        }
        false
    }

    fn receive(&mut self, frame: &Frame) {
        self.last_id = frame.id().map(str::to_owned).or(self.last_id.take());
        let (Some(connection), Some(id)) = (&mut self.connection, id_of(frame)) else { return };
        connection.pending_criticals.remove(&id);
        let session = text_member(frame.json(), "session_id");
        if !frame.is_critical && !connection.private_ids.contains(&id) {
            // A critical frame pulls along the earlier frames of its session; a question pulls along no text.
            let is_text = frame.json().contains("agent.output.") || frame.json().contains("agent.progress.");
            let pulls_along = connection.pending_criticals.values().any(|(critical_session, is_question)| {
                *critical_session == session && !(*is_question && is_text)
            });
            let must_wait = !pulls_along && !connection.pending_criticals.is_empty();
            assert!(!must_wait, "{:?} waits behind {}", connection.pending_criticals, frame.json());
        }
        assert!(connection.ids.insert(id.clone()), "received twice on one connection: {}", frame.json());
        if self.ids.insert(id) {
            self.received += 1;
            self.check_rules(frame.json());
        }
    }

    fn check_rules(&mut self, json: &str) {
        // If a rate limit holds an event back, its timestamp is the time at which it is sent. After a reconnect, later
        // events may have earlier timestamps.
        if !self.reads_immediately || self.capabilities_index >= FIRST_RATE_LIMITED {
            return;
        }
        self.history.push(json.to_owned());
        let mut tape = Tape::default();
        let doc = tape.read(json).unwrap();
        let mut findings = Findings::new(ValidationMode::Receive);
        let CheckedDocument::Event(step) = Validator::new().check(&doc, &mut findings) else {
            panic!("not an event: {json}");
        };
        self.recording.check_event(&step.borrow(), InputPosition::default(), &mut findings);
        let receives_questions =
            self.principal.role.can_answer() && ANSWERING_CAPABILITIES.contains(&self.capabilities_index);
        let is_excused = |rule: &str| match rule {
            // A listener that receives no questions cannot know what was accepted (C-C1).
            "AAEP-4.3.1-3" => !receives_questions,
            // If text is held while more events pass than are replayed after a reconnect, its start is missing.
            "AAEP-4.3.3-2" => self.attaches.len() > 1,
            // Text that was held until after `tool.invoked` implies that the agent writes again (C-B7), so the call
            // seems to be over before `tool.completed`.
            "AAEP-4.3.2-3" => true,
            _ => false,
        };
        let mut errors = findings.take();
        errors.retain(|finding| finding.severity == Severity::Error && !is_excused(finding.rule.id()));
        let session = text_member(json, "session_id");
        let session_history = || {
            let session_events = self.history.iter().filter(|event| event.contains(&session)).cloned();
            session_events.collect::<Vec<_>>().join("\n")
        };
        assert!(errors.is_empty(), "{errors:?}\n{}", session_history());
    }
}

fn recording() -> RecordingChecker<RandomState> {
    RecordingChecker::new(SequenceMode::Auto, RecordingLimits::default(), RandomState::new())
}

pub(crate) fn id_of(frame: &Frame) -> Option<String> {
    let json = frame.json();
    json.contains(r#""event_id":""#).then(|| text_member(json, "event_id"))
}
