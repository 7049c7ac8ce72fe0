//! Events that nothing is wrong with, to be spoiled by the tests.

/// An event of the numbered id; `payload` are the members after the envelope.
pub(crate) fn event(number: usize, session: &str, name: &str, payload: &str) -> String {
    format!(
        r#"{{"@context":"https://aaep-protocol.org/context/v1","aaep_version":"1.0.0","type":"aaep:{name}","event_id":"evt_a{number:031x}","session_id":"{session}","timestamp":"2026-06-30T14:22:20.014Z","producer":{{"agent_id":"bank"}},"urgency":"normal","localization_hints":{{"primary_language":"en"}},{payload}}}"#
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

/// A whole session, an event each.
pub(crate) fn session(number: usize, session: &str) -> [String; 3] {
    [started(number, session), thinking(number + 1, session), completed(number + 2, session)]
}

/// A whole session in JSON Lines.
pub(crate) fn lines(number: usize, id: &str) -> String {
    session(number, id).map(|event| event + "\n").concat()
}

/// The event over several lines, its members in their order. No text of ours has brackets or a comma before a quote.
pub(crate) fn pretty(event: &str) -> String {
    event.replace('{', "{\n  ").replace('}', "\n}").replace(",\"", ",\n  \"")
}

/// The event with a member that is none of its type: one error, of rule AAEP-3.5-4.
pub(crate) fn with_stray(event: &str) -> String {
    event.replacen(r#""summary_terse""#, r#""colour":"red","summary_terse""#, 1)
}
