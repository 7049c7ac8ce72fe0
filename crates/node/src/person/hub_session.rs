//! The hub's session that belongs to an ASP session, and the events that wait to be announced in it.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use seal::json::write_object;

use super::phrases::LocalizedText;

/// Maximum number of events that wait for the hub. If there are more, the oldest are dropped, and the person is told that
/// something is missing.
const MAX_WAITING: usize = 64;

/// The hub's session of an ASP session.
#[derive(Debug)]
pub(crate) struct HubSession {
    queue: Mutex<NarrationQueue>,
    /// Locked while something is sent to the hub, so that everything arrives in order.
    pub(crate) state: tokio::sync::Mutex<HubSessionState>,
}

/// The state of the hub's session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct HubSessionState {
    /// The id of the hub's session, unless it has not begun or has ended.
    pub(crate) id: Option<String>,
    /// How many sessions of the hub were started for the ASP session.
    pub(crate) started_count: u32,
    /// Whether the person stopped it. If so, nothing more is announced or asked.
    pub(crate) is_stopped: bool,
    /// Whether the end of the ASP session was announced.
    pub(crate) is_ended: bool,
}

#[derive(Debug, Default)]
struct NarrationQueue {
    waiting: VecDeque<NarrationEvent>,
    has_missed: bool,
    /// Whether a task sends the waiting events.
    is_sending: bool,
}

/// Something for a person to hear.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NarrationEvent {
    /// Identifies the event, so that it is heard once even if it is sent again after a restart.
    pub(crate) key: String,
    pub(crate) kind: EventKind,
    pub(crate) text: LocalizedText,
}

/// The kind of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum EventKind {
    /// A step of the negotiation.
    Progress { percent: Option<u8> },
    /// The end of a call to which the person said yes.
    CallEnded { tool: &'static str, call_id: String, is_done: bool },
    /// The session has ended as it should.
    Completed,
    /// The session has failed.
    Failed,
}

impl NarrationEvent {
    /// Returns the event as the hub's API expects it.
    pub(crate) fn to_json(&self) -> String {
        write_object(|writer| {
            match &self.kind {
                EventKind::Progress { percent } => {
                    writer.key("type").text("aaep:agent.progress.updated");
                    writer.key("progress").object(|writer| match percent {
                        Some(percent) => writer.key("percent").integer(i64::from(*percent)),
                        // The same text as the summary, because only the summary is translated.
                        None => writer.key("description").text(self.text.primary()),
                    });
                }
                EventKind::CallEnded { tool, call_id, is_done } => writer.text_members([
                    ("type", "aaep:agent.tool.completed"),
                    ("tool", tool),
                    ("tool_call_id", call_id),
                    ("status", if *is_done { "success" } else { "error" }),
                ]),
                EventKind::Completed => writer.key("type").text("aaep:agent.session.completed"),
                EventKind::Failed => writer
                    .text_members([("type", "aaep:agent.session.errored"), ("error_category", "permanent")]),
            }
            self.text.write(writer, "summary_normal");
        })
    }

    /// Returns whether the hub's session ends with this event.
    pub(crate) fn is_last(&self) -> bool {
        matches!(self.kind, EventKind::Completed | EventKind::Failed)
    }
}

impl HubSession {
    pub(crate) fn new(state: HubSessionState) -> Self {
        Self { queue: Mutex::default(), state: tokio::sync::Mutex::new(state) }
    }

    /// Adds an event. Returns whether the caller must start a task that sends it.
    pub(crate) fn push(&self, event: NarrationEvent) -> bool {
        let mut queue = self.queue();
        if queue.waiting.len() >= MAX_WAITING {
            queue.waiting.pop_front();
            queue.has_missed = true;
        }
        queue.waiting.push_back(event);
        !std::mem::replace(&mut queue.is_sending, true)
    }

    /// Returns whether the caller must start a task that sends the waiting events.
    pub(crate) fn start_sending(&self) -> bool {
        !std::mem::replace(&mut self.queue().is_sending, true)
    }

    /// Returns the event to send next. Something that was dropped is reported first.
    pub(crate) fn next(&self) -> Option<NarrationEvent> {
        let queue = self.queue();
        let next = queue.waiting.front()?;
        if !queue.has_missed {
            return Some(next.clone());
        }
        let text = LocalizedText::new(|phrases| phrases.some_events_not_reported().to_owned());
        Some(NarrationEvent {
            key: format!("missed-{}", next.key),
            kind: EventKind::Progress { percent: None },
            text,
        })
    }

    /// Removes an event that was sent.
    pub(crate) fn remove(&self, key: &str) {
        let mut queue = self.queue();
        if key.starts_with("missed-") {
            queue.has_missed = false;
        } else if queue.waiting.front().is_some_and(|event| event.key == key) {
            queue.waiting.pop_front();
        }
    }

    /// Drops all events.
    pub(crate) fn clear(&self) {
        let mut queue = self.queue();
        queue.waiting.clear();
        queue.has_missed = false;
    }

    /// Ends the sending task, unless an event was added in the meantime.
    pub(crate) fn finish_sending(&self) -> bool {
        let mut queue = self.queue();
        queue.is_sending = !queue.waiting.is_empty();
        !queue.is_sending
    }

    /// Returns whether the last event of the session waits.
    pub(crate) fn is_ending(&self) -> bool {
        self.queue().waiting.back().is_some_and(NarrationEvent::is_last)
    }

    fn queue(&self) -> MutexGuard<'_, NarrationQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(number: usize) -> NarrationEvent {
        let text = LocalizedText::new(|_| number.to_string());
        NarrationEvent { key: number.to_string(), kind: EventKind::Progress { percent: None }, text }
    }

    #[test]
    fn events_wait_in_order_and_a_dropped_one_is_reported() {
        let session = HubSession::new(HubSessionState::default());
        assert!(session.push(event(0)), "the first event starts the task");
        assert!((1..=MAX_WAITING).all(|number| !session.push(event(number))));
        let mut keys = Vec::new();
        while let Some(next) = session.next() {
            session.remove(&next.key);
            keys.push(next.key);
        }
        let expected: Vec<_> =
            std::iter::once("missed-1".to_owned()).chain((1..=MAX_WAITING).map(|n| n.to_string())).collect();
        assert_eq!(keys, expected);
        assert!(session.finish_sending());
        assert!(session.push(event(0)), "the next event starts the task again");
    }
}
