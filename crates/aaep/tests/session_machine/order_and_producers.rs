//! Sequence numbers, and what belongs to which producer.

use super::*;

#[test]
fn unnumbered_events_count_toward_the_next_sequence_number() {
    let numbered = |second, number, body| SessionEvent { sequence_number: number, ..event_at(second, body) };
    let progress = || SessionEventBody::ProgressUpdated { percent: None, deadline_extension: None };
    for (number, expected) in [(4, Vec::new()), (3, vec!["AAEP-3.4.1-2"]), (5, vec!["AAEP-3.4.1-2"])] {
        let mut session = SessionMachine::new("sess_1");
        let mut findings = Findings::new(ValidationMode::Strict);
        session.apply(&numbered(0, Some(1), SessionEventBody::Started), &mut findings);
        session.apply(&numbered(1, None, progress()), &mut findings);
        session.apply(&numbered(2, None, progress()), &mut findings);
        let _ = findings.take();
        session.apply(&numbered(3, Some(number), progress()), &mut findings);
        let rules: Vec<_> = findings.list().iter().map(|finding| finding.rule.id()).collect();
        assert_eq!(rules, expected, "1, none, none, {number}");
    }
}

#[test]
fn outputs_without_an_id_are_tracked_per_producer() {
    let mut session = started_session();
    apply_ok(&mut session, &by_agent("planner", event_at(1, chunk(None, 0, false))));
    apply_ok(&mut session, &by_agent("payments", event_at(2, chunk(None, 0, false))));
    apply_ok(&mut session, &by_agent("planner", event_at(3, chunk(None, 4, true))));
    apply_ok(&mut session, &by_agent("payments", event_at(4, chunk(None, 4, true))));
}

#[test]
fn open_tools_and_outputs_are_listed_until_they_are_complete() {
    let mut session = started_session();
    apply_ok(&mut session, &event_at(1, invoked("fetch", Some("call_1"))));
    apply_ok(&mut session, &event_at(2, chunk(Some("out_1"), 0, false)));
    let tools: Vec<_> = session.open_tools().map(|open| (open.tool, open.call_id, open.agent_id)).collect();
    assert_eq!(tools, [("fetch", Some("call_1"), "planner")]);
    let outputs: Vec<_> =
        session.open_outputs().map(|open| (open.id, open.next_position, open.agent_id)).collect();
    assert_eq!(outputs, [(Some("out_1"), 4, "planner")]);
    apply_ok(&mut session, &event_at(3, completed("fetch", Some("call_1"))));
    apply_ok(&mut session, &event_at(4, chunk(Some("out_1"), 4, true)));
    assert_eq!((session.open_tools().count(), session.open_outputs().count()), (0, 0));
}

#[test]
fn the_declared_state_belongs_to_the_named_producer() {
    let mut session = started_session();
    apply_ok(&mut session, &by_agent("planner", event_at(1, state_change("idle", "thinking"))));
    apply_ok(&mut session, &by_agent("payments", event_at(2, state_change("idle", "calling_tool"))));
    assert_eq!(session.declared_state_of("planner"), &AgentState::Thinking);
    assert_eq!(session.declared_state_of("payments"), &AgentState::CallingTool);
}

#[test]
fn a_producer_that_requested_a_handoff_is_handing_off() {
    let mut session = started_session();
    apply_ok(&mut session, &event_at(1, state_change("idle", "thinking")));
    apply_ok(&mut session, &event_at(2, SessionEventBody::Handoff));
    assert_eq!(session.state_of("planner"), Some(&AgentState::HandingOff));
}

#[test]
fn output_need_not_be_announced_while_a_tool_runs_in_the_announced_state() {
    for (state, expected) in [("calling_tool", None), ("thinking", Some("AAEP-9.3.1-2"))] {
        let mut session = started_session();
        apply_ok(&mut session, &event_at(1, state_change("idle", state)));
        apply_ok(&mut session, &event_at(2, invoked("fetch", Some("call_1"))));
        let mut findings = Findings::new(ValidationMode::Strict);
        session.apply(&event_at(3, chunk(None, 0, false)), &mut findings);
        let rules: Vec<_> = findings.list().iter().map(|finding| finding.rule.id()).collect();
        assert_eq!(rules, Vec::from_iter(expected), "in the state {state}");
    }
}
