//! One who listens: reads, stalls, vanishes, returns; and what he has heard, judged.

use std::collections::{HashMap, HashSet};
use std::hash::RandomState;
use std::sync::Arc;

use aaep::check::{Checked, Validator};
use aaep::json::Tape;
use aaep::recording::{Limits, Place, Recording, Sequence};
use aaep::rule::{Face, Findings, Severity};
use hub::delivery::{Cursor, Frame, Lane, Next};
use hub::{LaneId, ListenerId, Principal};
use seal::UnixMillis;

use crate::simulation::cast::AT_RATE;
use crate::support::text_of;

pub(crate) struct Ear {
    pub(crate) who: Principal,
    pub(crate) capabilities: usize,
    pub(crate) subscription: Option<String>,
    pub(crate) line: Option<Line>,
    pub(crate) lost_at: UnixMillis,
    /// It has said that it closes its subscription.
    pub(crate) closes: bool,
    pub(crate) stalls: bool,
    /// Reads all that there is, always. Others hear criticals before what came first, and so out of order.
    pub(crate) is_prompt: bool,
    /// The last id, as a browser remembers it: of an event, or of a mark.
    pub(crate) last: Option<String>,
    /// Every id, and whether it is on no disk.
    pub(crate) ids: HashSet<String>,
    /// All that it should have heard comes after this position.
    pub(crate) whole_from: Option<u64>,
    recording: Recording<RandomState>,
    pub(crate) heard: usize,
    /// Where it joined: the last that it had, the end, and how much it was told.
    pub(crate) joined: Vec<(Option<String>, u64, usize)>,
    pub(crate) story: Vec<String>,
}

/// A connection.
pub(crate) struct Line {
    pub(crate) id: ListenerId,
    pub(crate) lane: LaneId,
    pub(crate) cursor: Cursor,
    /// What was heard on it.
    ids: HashSet<String>,
    /// Criticals on the lane that it has not been given: the session, and whether it is a question.
    urgent: HashMap<String, (String, bool)>,
    own: HashSet<String>,
}

impl Ear {
    pub(crate) fn new(who: Principal, capabilities: usize, is_prompt: bool) -> Self {
        Self {
            who,
            capabilities,
            subscription: None,
            line: None,
            lost_at: UnixMillis::default(),
            closes: false,
            stalls: false,
            is_prompt,
            last: None,
            ids: HashSet::new(),
            whole_from: None,
            recording: recording(),
            heard: 0,
            joined: Vec::new(),
            story: Vec::new(),
        }
    }

    pub(crate) fn joins(
        &mut self,
        id: ListenerId,
        lane: LaneId,
        shared: &Lane,
        own: Vec<Arc<Frame>>,
        from: Option<u64>,
        end: u64,
    ) {
        let mut cursor = Cursor::at_end(shared).from(from);
        self.joined.push((self.last.clone(), end, own.len()));
        let own_ids = own.iter().filter_map(|frame| id_of(frame)).collect();
        let gap = own.iter().any(|frame| frame.json().contains("sayso:gap")) || self.last.is_none();
        for frame in own {
            cursor.give(frame);
        }
        if gap || self.whole_from.is_none() {
            self.begin_again(end);
        }
        self.line =
            Some(Line { id, lane, cursor, ids: HashSet::new(), urgent: HashMap::new(), own: own_ids });
    }

    /// There is a gap, and it knows: what comes from now on is a story of its own.
    pub(crate) fn begin_again(&mut self, end: u64) {
        self.whole_from = Some(end);
        self.last = None;
        self.recording = recording();
        self.story.clear();
    }

    pub(crate) fn pushed(&mut self, frame: &Frame) {
        let (Some(line), Some(id)) = (&mut self.line, id_of(frame)) else { return };
        if frame.critical {
            let json = frame.json();
            let asks = json.contains("agent.awaiting.") || json.contains(r#""to_state":"awaiting_input""#);
            line.urgent.insert(id, (text_of(json, "session_id"), asks));
        }
    }

    /// Reads up to so many frames; says whether it has fallen too far behind.
    pub(crate) fn reads(&mut self, most: usize, lanes: &HashMap<LaneId, Lane>) -> bool {
        for _ in 0..most {
            let Some(line) = &mut self.line else { return false };
            let Some(lane) = lanes.get(&line.lane) else { return false };
            match line.cursor.take(lane) {
                Next::Frame(frame) => self.hears(&frame),
                Next::Nothing => return false,
                Next::TooSlow => return true,
            }
        }
        false
    }

    fn hears(&mut self, frame: &Frame) {
        self.last = frame.id().map(str::to_owned).or(self.last.take());
        let (Some(line), Some(id)) = (&mut self.line, id_of(frame)) else { return };
        line.urgent.remove(&id);
        let session = text_of(frame.json(), "session_id");
        if !frame.critical && !line.own.contains(&id) {
            // A critical takes with it what its own session said before; a question no text.
            let text = frame.json().contains("agent.output.") || frame.json().contains("agent.progress.");
            let leads = line.urgent.values().any(|(of, asks)| *of == session && !(*asks && text));
            let waits = !leads && !line.urgent.is_empty();
            assert!(!waits, "{:?} waits behind {}", line.urgent, frame.json());
        }
        assert!(line.ids.insert(id.clone()), "heard twice on one connection: {}", frame.json());
        if self.ids.insert(id) {
            self.heard += 1;
            self.judge(frame.json());
        }
    }

    fn judge(&mut self, json: &str) {
        // What a rate held carries the time of its sending, which what follows after a return may be before.
        if !self.is_prompt || self.capabilities >= AT_RATE {
            return;
        }
        self.story.push(json.to_owned());
        let mut tape = Tape::default();
        let doc = tape.read(json).unwrap();
        let mut findings = Findings::new(Face::Receive);
        let Checked::Event(step) = Validator::new().check(&doc, &mut findings) else {
            panic!("no event: {json}");
        };
        self.recording.event(&step.borrow(), Place::default(), &mut findings);
        // Who is not asked does not hear questions, and cannot know what was accepted (C-C1).
        let asked = self.who.role.answers() && self.capabilities < 2;
        // Text that was held for more events than are looked back at has no beginning after a return.
        // Text that was held until a tool began takes back the state that the tool implies (C-B7).
        let excused = |rule: &str| {
            !asked && rule == "AAEP-4.3.1-3"
                || self.joined.len() > 1 && rule == "AAEP-4.3.3-2"
                || rule == "AAEP-4.3.2-3"
        };
        let mut errors = findings.take();
        errors.retain(|one| one.severity == Severity::Error && !excused(one.rule.id()));
        let session = text_of(json, "session_id");
        let story = || {
            let of = self.story.iter().filter(|one| one.contains(&session)).cloned();
            of.collect::<Vec<_>>().join("\n")
        };
        assert!(errors.is_empty(), "{errors:?}\n{}", story());
    }
}

fn recording() -> Recording<RandomState> {
    Recording::new(Sequence::Auto, Limits::default(), RandomState::new())
}

pub(crate) fn id_of(frame: &Frame) -> Option<String> {
    let json = frame.json();
    json.contains(r#""event_id":""#).then(|| text_of(json, "event_id"))
}
