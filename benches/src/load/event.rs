//! The test events, as an agent sends them and as a listener gets them. They contain a stamp, the time of sending. Stamps have
//! a fixed length, so all events of one kind have the same length.

/// Precedes the stamp of an event.
pub const EVENT_STAMP_PREFIX: &str = "event@";
/// Precedes the stamp of a question.
pub const QUESTION_STAMP_PREFIX: &str = "asked@";
/// Number of digits of a stamp.
pub(super) const STAMP_DIGITS: usize = 12;

/// Returns an event as an agent sends it. For a slow listener, the hub may replace it with a newer one.
pub fn event(stamp: u64) -> String {
    format!(
        r#"{{"type":"aaep:agent.progress.updated","progress":{{"percent":42.5,"description":"Reading the letter {EVENT_STAMP_PREFIX}{stamp:012} now."}},"summary_normal":"Reading the second of five letters in your inbox."}}"#
    )
}

/// Returns an event that is never merged, because it has an extension. Therefore each one must be delivered.
pub fn uncoalescable_event() -> String {
    let event_json = event(0);
    let rest = event_json.strip_prefix('{').unwrap_or(&event_json).strip_suffix('}').unwrap_or(&event_json);
    format!(
        r#"{{"@context":["https://aaep-protocol.org/context/v1","urn:bench:v1"],{rest},"extensions":{{"bench":{{"n":1}}}}}}"#
    )
}

/// Returns a question as an agent sends it.
pub fn question(stamp: u64) -> String {
    format!(
        r#"{{"action":"Send 5 euros to Ben {QUESTION_STAMP_PREFIX}{stamp:012}.","consequence":"It cannot be undone.","irreversible":true,"risk_level":"high","timeout_seconds":120,"default_decision":"reject","summary_normal":"May I send 5 euros to Ben?"}}"#
    )
}

const ID: &str = "evt_01a1dfc043440c364d5c4bd4339da857";

/// Returns [`uncoalescable_event`] with the envelope that the hub adds.
pub fn enveloped_uncoalescable_event() -> String {
    let event_json = uncoalescable_event();
    let payload =
        event_json.split_once(r#""aaep:agent.progress.updated","#).map_or("", |(_, payload)| payload);
    format!(
        r#"{{"@context":["https://aaep-protocol.org/context/v1","urn:bench:v1"],"aaep_version":"1.0.0","type":"aaep:agent.progress.updated","event_id":"{ID}","session_id":"sess_01a1dfc043367aa40dd694e82ae3e0ce","timestamp":"2026-11-15T15:08:01.732Z","producer":{{"agent_id":"local"}},"localization_hints":{{"primary_language":"en"}},{payload}"#
    )
}

/// Returns the size of this event's frame in bytes.
pub fn frame_len() -> usize {
    ::hub::delivery::Frame::event(ID, &enveloped_uncoalescable_event(), 1, false).size()
}
