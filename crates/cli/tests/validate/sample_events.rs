//! Valid events that the tests modify.

/// Returns an event whose id contains `number`. `payload` holds the members after the envelope.
pub(crate) fn event(number: usize, session: &str, event_type: &str, payload: &str) -> String {
    format!(
        r#"{{"@context":"https://aaep-protocol.org/context/v1","aaep_version":"1.0.0","type":"aaep:{event_type}","event_id":"evt_a{number:031x}","session_id":"{session}","timestamp":"2026-06-30T14:22:20.014Z","producer":{{"agent_id":"bank"}},"urgency":"normal","localization_hints":{{"primary_language":"en"}},{payload}}}"#
    )
}

pub(crate) fn started(number: usize, session: &str) -> String {
    event(number, session, "agent.session.started", r#""summary_terse":"Hello.","summary_normal":"I begin.""#)
}

pub(crate) fn thinking(number: usize, session: &str) -> String {
    let payload = r#""from_state":"idle","to_state":"thinking","summary_terse":"Thinking.","summary_normal":"I am thinking.""#;
    event(number, session, "agent.state.changed", payload)
}

pub(crate) fn completed(number: usize, session: &str) -> String {
    event(
        number,
        session,
        "agent.session.completed",
        r#""summary_terse":"Done.","summary_normal":"It is done.""#,
    )
}

/// Returns the three events of a complete session.
pub(crate) fn session(number: usize, session: &str) -> [String; 3] {
    [started(number, session), thinking(number + 1, session), completed(number + 2, session)]
}

/// Returns a complete session as JSON Lines.
pub(crate) fn lines(number: usize, id: &str) -> String {
    session(number, id).map(|event| event + "\n").concat()
}

/// Spreads an event over several lines and keeps the order of its members. Works because no sample text contains
/// braces or a comma before a quote.
pub(crate) fn pretty(event: &str) -> String {
    event.replace('{', "{\n  ").replace('}', "\n}").replace(",\"", ",\n  \"")
}

/// Adds an unknown member, which is one error of rule AAEP-3.5-4.
pub(crate) fn with_unknown_member(event: &str) -> String {
    event.replacen(r#""summary_terse""#, r#""colour":"red","summary_terse""#, 1)
}
