//! A test listener that records what a subscription receives, and when.

use std::sync::Arc;

use aaep::ParsedDocument;
use aaep::event::{Event, OutputStreaming, Payload};
use aaep::shaping::{OutgoingEvent, Shaper, ShaperLimits, ShapingTerms};
use seal::UnixMillis;
use serde_json::{Map, Value, json};

use super::event_writer::CORE_CONTEXT;

pub(crate) type SharedEvent = Arc<ParsedDocument<Event>>;

/// An event that was delivered, and when.
#[derive(Clone, Debug)]
pub(crate) struct DeliveredEvent {
    pub(crate) at: UnixMillis,
    pub(crate) outgoing: OutgoingEvent<ParsedDocument<Event>>,
}

impl DeliveredEvent {
    pub(crate) fn event(&self) -> &Event {
        self.outgoing.event()
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

/// A listener with its own clock. It pulls after every push and at every deadline.
pub(crate) struct ShapingListener {
    pub(crate) shaper: Shaper<ParsedDocument<Event>>,
    pub(crate) delivered: Vec<DeliveredEvent>,
    pub(crate) now: UnixMillis,
}

impl ShapingListener {
    pub(crate) fn new(terms: ShapingTerms) -> Self {
        Self::with_limits(terms, ShaperLimits::default())
    }

    pub(crate) fn with_limits(terms: ShapingTerms, limits: ShaperLimits) -> Self {
        Self { shaper: Shaper::new(Arc::new(terms), limits), delivered: Vec::new(), now: UnixMillis::new(0) }
    }

    pub(crate) fn push(&mut self, event: &SharedEvent) {
        self.shaper.push(event);
        self.drain();
    }

    fn drain(&mut self) {
        while let Some(outgoing) = self.shaper.pull(self.now) {
            self.delivered.push(DeliveredEvent { at: self.now, outgoing });
        }
    }

    /// Advances the clock, and stops at every deadline on the way.
    pub(crate) fn advance_to(&mut self, now: UnixMillis) {
        while let Some(at) = self.shaper.next_deadline().filter(|at| *at <= now) {
            assert!(at > self.now, "an event is still held after its deadline");
            self.now = at;
            let before = self.delivered.len();
            self.drain();
            assert!(self.delivered.len() > before, "nothing was sent at the deadline {at}");
        }
        self.now = now;
        self.drain();
    }

    /// Advances the clock until everything is delivered.
    pub(crate) fn finish(&mut self) {
        while let Some(at) = self.shaper.next_deadline() {
            self.advance_to(at);
        }
    }

    pub(crate) fn names(&self) -> Vec<&str> {
        self.delivered.iter().map(DeliveredEvent::name).collect()
    }

    /// Returns the delivered chunks as (text, position, hint, complete).
    pub(crate) fn chunks(&self) -> Vec<(String, u64, String, bool)> {
        self.delivered
            .iter()
            .filter_map(DeliveredEvent::chunk)
            .map(|chunk| {
                let hint = chunk.coalesce_hint.as_ref().map_or("", |hint| hint.as_str()).to_owned();
                (chunk.chunk.clone(), chunk.position, hint, chunk.complete)
            })
            .collect()
    }

    pub(crate) fn texts(&self) -> Vec<String> {
        self.delivered.iter().map(|delivered| delivered.event().to_json()).collect()
    }
}

/// The fixed start time, in milliseconds since 1970.
pub(crate) const START: UnixMillis = UnixMillis::new(1_779_616_800_000);

/// Writes the events of sessions in order.
#[derive(Default)]
pub(crate) struct SampleAgent {
    events_written: u64,
    pub(crate) position: u64,
}

impl SampleAgent {
    /// Returns an event `offset_ms` after [`START`].
    pub(crate) fn event(&mut self, offset_ms: i64, session: &str, name: &str, payload: Value) -> SharedEvent {
        self.events_written += 1;
        let critical_types =
            ["session.errored", "awaiting.confirmation", "awaiting.clarification", "handoff.requested"];
        let time = aaep::Timestamp::from_unix_millis(START + offset_ms).unwrap();
        let mut members = Map::new();
        let envelope = json!({
            "@context": CORE_CONTEXT,
            "aaep_version": "1.0.0",
            "type": format!("aaep:agent.{name}"),
            "event_id": format!("evt_{:032x}", u128::from(self.events_written).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835)),
            "session_id": session,
            "timestamp": time.to_string(),
            "producer": { "agent_id": "planner" },
            "urgency": if critical_types.contains(&name) { "critical" } else { "normal" },
            "localization_hints": { "primary_language": "en", "text_direction": "ltr" },
        });
        for part in [envelope, payload] {
            for (name, value) in part.as_object().unwrap() {
                members.insert(name.clone(), value.clone());
            }
        }
        Arc::new(ParsedDocument::<Event>::parse(Value::Object(members).to_string()).unwrap())
    }

    pub(crate) fn chunk(&mut self, offset_ms: i64, session: &str, text: &str, complete: bool) -> SharedEvent {
        let hint = if complete { "completion" } else { "none" };
        let payload = json!({
            "chunk": text, "position": self.position, "complete": complete, "coalesce_hint": hint,
            "output_id": "out_1",
        });
        self.position += u64::try_from(text.chars().count()).unwrap();
        self.event(offset_ms, session, "output.streaming", payload)
    }

    pub(crate) fn state(&mut self, offset_ms: i64, session: &str, from: &str, to: &str) -> SharedEvent {
        let payload = json!({ "from_state": from, "to_state": to, "summary_normal": "Continuing." });
        self.event(offset_ms, session, "state.changed", payload)
    }

    pub(crate) fn tool(&mut self, offset_ms: i64, session: &str) -> SharedEvent {
        self.event(
            offset_ms,
            session,
            "tool.invoked",
            json!({ "tool": "search", "summary_normal": "Searching." }),
        )
    }

    pub(crate) fn progress(&mut self, offset_ms: i64, session: &str, percent: u64) -> SharedEvent {
        let payload = json!({ "progress": { "percent": percent }, "summary_normal": "Continuing." });
        self.event(offset_ms, session, "progress.updated", payload)
    }

    pub(crate) fn question(&mut self, offset_ms: i64, session: &str) -> SharedEvent {
        let payload = json!({
            "action": "Send 500 euros.", "consequence": "The money is gone.", "reply_token": format!("rpl_{:032x}", 77),
            "timeout_seconds": 60, "default_decision": "reject", "summary_normal": "May I send 500 euros?",
        });
        self.event(offset_ms, session, "awaiting.confirmation", payload)
    }

    pub(crate) fn started(&mut self, offset_ms: i64, session: &str) -> SharedEvent {
        self.event(offset_ms, session, "session.started", json!({ "summary_normal": "Starting." }))
    }
}
