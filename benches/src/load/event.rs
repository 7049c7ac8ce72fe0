//! What is said: one event, as an agent sends it and as a listener gets it. Stamps are of one length, so events are too.

/// Before the stamp of an event.
pub const FLOOD: &str = "flood@";
/// Before the stamp of a question.
pub const ASKED: &str = "asked@";
/// Digits of a stamp.
pub(super) const STAMP: usize = 12;

/// An event, as an agent sends it; while it waits for a slow listener, the next takes its place.
pub fn event(stamp: u64) -> String {
    format!(
        r#"{{"type":"aaep:agent.progress.updated","progress":{{"percent":42.5,"description":"Reading the letter {FLOOD}{stamp:012} now."}},"summary_normal":"Reading the second of five letters in your inbox."}}"#
    )
}

/// One whose like is never joined, so that each must be delivered: an extension would be lost.
pub fn lasting() -> String {
    let said = event(0);
    let rest = said.strip_prefix('{').unwrap_or(&said).strip_suffix('}').unwrap_or(&said);
    format!(
        r#"{{"@context":["https://aaep-protocol.org/context/v1","urn:bench:v1"],{rest},"extensions":{{"bench":{{"n":1}}}}}}"#
    )
}

/// A question, as an agent sends it.
pub fn question(stamp: u64) -> String {
    format!(
        r#"{{"action":"Send 5 euro to Ben {ASKED}{stamp:012}.","consequence":"It cannot be undone.","irreversible":true,"risk_level":"high","timeout_seconds":120,"default_decision":"reject","summary_normal":"May I send 5 euro to Ben?"}}"#
    )
}

const ID: &str = "evt_01a1dfc043440c364d5c4bd4339da857";

/// The event with the envelope that the hub gives it.
pub fn whole() -> String {
    let said = lasting();
    let payload = said.split_once(r#""aaep:agent.progress.updated","#).map_or("", |(_, payload)| payload);
    format!(
        r#"{{"@context":["https://aaep-protocol.org/context/v1","urn:bench:v1"],"aaep_version":"1.0.0","type":"aaep:agent.progress.updated","event_id":"{ID}","session_id":"sess_01a1dfc043367aa40dd694e82ae3e0ce","timestamp":"2026-11-15T15:08:01.732Z","producer":{{"agent_id":"local"}},"localization_hints":{{"primary_language":"en"}},{payload}"#
    )
}

/// The bytes of the event's frame.
pub fn framed() -> usize {
    ::hub::delivery::Frame::event(ID, &whole(), 1, false).size()
}
