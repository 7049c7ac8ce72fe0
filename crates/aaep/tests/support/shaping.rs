//! What a subscription hears, and when.

use std::sync::Arc;

use aaep::Received;
use aaep::event::{Event, OutputStreaming, Payload};
use aaep::shape::{Limits, Out, Shaper, Wants};
use seal::UnixMillis;
use serde_json::{Map, Value, json};

use super::scribe::CORE_CONTEXT;

pub(crate) type Committed = Arc<Received<Event>>;

/// Something that was heard: when, and whether it left together with what was pushed at that moment.
#[derive(Clone, Debug)]
pub(crate) struct Heard {
    pub(crate) at: UnixMillis,
    pub(crate) out: Out<Received<Event>>,
}

impl Heard {
    pub(crate) fn event(&self) -> &Event {
        self.out.event()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.event().to_json()).unwrap()
    }

    pub(crate) fn name(&self) -> &str {
        self.event().envelope.event_type.as_str().trim_start_matches("aaep:agent.")
    }

    pub(crate) fn chunk(&self) -> Option<&OutputStreaming> {
        match &self.event().payload {
            Payload::OutputStreaming(chunk) => Some(chunk),
            _ => None,
        }
    }
}

/// A listener with a clock of its own: it pulls after every push and at every deadline.
pub(crate) struct Listener {
    pub(crate) shaper: Shaper<Received<Event>>,
    pub(crate) heard: Vec<Heard>,
    pub(crate) now: UnixMillis,
}

impl Listener {
    pub(crate) fn new(wants: Wants) -> Self {
        Self::within(wants, Limits::default())
    }

    pub(crate) fn within(wants: Wants, limits: Limits) -> Self {
        Self { shaper: Shaper::new(Arc::new(wants), limits), heard: Vec::new(), now: UnixMillis::new(0) }
    }

    pub(crate) fn push(&mut self, event: &Committed) {
        self.shaper.push(event);
        self.drain();
    }

    fn drain(&mut self) {
        while let Some(out) = self.shaper.pull(self.now) {
            self.heard.push(Heard { at: self.now, out });
        }
    }

    /// Lets time pass, with every deadline on the way.
    pub(crate) fn until(&mut self, now: UnixMillis) {
        while let Some(at) = self.shaper.next_deadline().filter(|at| *at <= now) {
            assert!(at > self.now, "a deadline that has come left something behind");
            self.now = at;
            let before = self.heard.len();
            self.drain();
            assert!(self.heard.len() > before, "nothing left at the deadline {at}");
        }
        self.now = now;
        self.drain();
    }

    /// Lets all time pass that anything waits for.
    pub(crate) fn finish(&mut self) {
        while let Some(at) = self.shaper.next_deadline() {
            self.until(at);
        }
    }

    pub(crate) fn names(&self) -> Vec<&str> {
        self.heard.iter().map(Heard::name).collect()
    }

    /// The chunks that were heard, with their hints.
    pub(crate) fn chunks(&self) -> Vec<(String, u64, String, bool)> {
        self.heard
            .iter()
            .filter_map(Heard::chunk)
            .map(|chunk| {
                let hint = chunk.coalesce_hint.as_ref().map_or("", |hint| hint.as_str()).to_owned();
                (chunk.chunk.clone(), chunk.position, hint, chunk.complete)
            })
            .collect()
    }

    pub(crate) fn texts(&self) -> Vec<String> {
        self.heard.iter().map(|heard| heard.event().to_json()).collect()
    }
}

/// A fixed morning, in milliseconds since 1970.
pub(crate) const START: UnixMillis = UnixMillis::new(1_779_616_800_000);

/// Writes events of sessions, one after the other.
#[derive(Default)]
pub(crate) struct Agent {
    written: u64,
    pub(crate) position: u64,
}

impl Agent {
    /// An event at so many milliseconds after the start.
    pub(crate) fn says(&mut self, at: UnixMillis, session: &str, name: &str, payload: Value) -> Committed {
        self.written += 1;
        let critical =
            ["session.errored", "awaiting.confirmation", "awaiting.clarification", "handoff.requested"];
        let time = aaep::Timestamp::from_unix_millis(START + at.get()).unwrap();
        let mut all = Map::new();
        let head = json!({
            "@context": CORE_CONTEXT,
            "aaep_version": "1.0.0",
            "type": format!("aaep:agent.{name}"),
            "event_id": format!("evt_{:032x}", u128::from(self.written).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835)),
            "session_id": session,
            "timestamp": time.to_string(),
            "producer": { "agent_id": "planner" },
            "urgency": if critical.contains(&name) { "critical" } else { "normal" },
            "localization_hints": { "primary_language": "en", "text_direction": "ltr" },
        });
        for part in [head, payload] {
            for (name, value) in part.as_object().unwrap() {
                all.insert(name.clone(), value.clone());
            }
        }
        Arc::new(Received::<Event>::parse(Value::Object(all).to_string()).unwrap())
    }

    pub(crate) fn chunk(&mut self, at: UnixMillis, session: &str, text: &str, complete: bool) -> Committed {
        let hint = if complete { "completion" } else { "none" };
        let payload = json!({
            "chunk": text, "position": self.position, "complete": complete, "coalesce_hint": hint,
            "output_id": "out_1",
        });
        self.position += u64::try_from(text.chars().count()).unwrap();
        self.says(at, session, "output.streaming", payload)
    }

    pub(crate) fn state(&mut self, at: UnixMillis, session: &str, from: &str, to: &str) -> Committed {
        let payload = json!({ "from_state": from, "to_state": to, "summary_normal": "Going on." });
        self.says(at, session, "state.changed", payload)
    }

    pub(crate) fn tool(&mut self, at: UnixMillis, session: &str) -> Committed {
        self.says(at, session, "tool.invoked", json!({ "tool": "search", "summary_normal": "Searching." }))
    }

    pub(crate) fn progress(&mut self, at: UnixMillis, session: &str, percent: u64) -> Committed {
        let payload = json!({ "progress": { "percent": percent }, "summary_normal": "Going on." });
        self.says(at, session, "progress.updated", payload)
    }

    pub(crate) fn question(&mut self, at: UnixMillis, session: &str) -> Committed {
        let payload = json!({
            "action": "Send 500 euros.", "consequence": "The money is gone.", "reply_token": format!("rpl_{:032x}", 77),
            "timeout_seconds": 60, "default_decision": "reject", "summary_normal": "May I send 500 euros?",
        });
        self.says(at, session, "awaiting.confirmation", payload)
    }

    pub(crate) fn started(&mut self, at: UnixMillis, session: &str) -> Committed {
        self.says(at, session, "session.started", json!({ "summary_normal": "Starting." }))
    }
}
