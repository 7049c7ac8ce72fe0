//! The state machine of one session: which events it accepts and rejects, and which items are pending.

mod calls_and_consent;
mod order_and_producers;

use std::collections::hash_map::DefaultHasher;
use std::hash::BuildHasherDefault;

use aaep::event::{AgentState, Decision};
use aaep::message::{ConfirmationReply, DeadlineExtend, Message, SessionStop};
use aaep::recording::{InputPosition, RecordingChecker, RecordingLimits, SequenceMode};
use aaep::rule::{Findings, ValidationMode};
use aaep::session::{
    Confirmation, DeadlineExtension, PendingItem, ReportedResolution, SessionEnd, SessionEvent,
    SessionEventBody, SessionMachine,
};
use aaep::{ReplyToken, SessionId, SubscriptionId, Timestamp};
use seal::UnixMillis;

const TOKEN: &str = "rpl_4f8a2e7d9c1b6a3f";
/// The timeout of the questions in these tests, in seconds.
const TIMEOUT_SECONDS: u64 = 30;

#[test]
fn a_rejected_event_leaves_the_session_unchanged() {
    let mut session = started_session();
    apply_ok(&mut session, &event_at(1, state_change("idle", "thinking")));
    apply_ok(&mut session, &event_at(2, invoked("fetch", Some("call_1"))));
    let before = format!("{session:?}");
    for (body, rule) in [
        (SessionEventBody::Started, "AAEP-4.1-1"),
        (state_change("dreaming", "thinking"), "AAEP-4.2.1-5"),
        (invoked("fetch", Some("call_1")), "AAEP-4.3.1-4"),
        (completed("another", Some("call_1")), "AAEP-4.3.2-2"),
        (irreversible_call("transfer", None), "AAEP-4.3.1-3"),
        (chunk(None, 5, false), "AAEP-4.3.3-2"),
        (SessionEventBody::Completed, "AAEP-9.3.1-4"),
    ] {
        assert_eq!(broken_rule(&mut session, &event_at(3, body)), rule);
        assert_eq!(format!("{session:?}"), before, "after {rule}");
    }
    assert_eq!(
        broken_rule(
            &mut session,
            &event_at(0, SessionEventBody::ProgressUpdated { percent: None, deadline_extension: None })
        ),
        "AAEP-3.2.5-7"
    );
    assert_eq!(format!("{session:?}"), before);
    apply_ok(&mut session, &event_at(3, completed("fetch", Some("call_1"))));
}

#[test]
fn pending_items_lists_what_is_open() {
    let mut session = SessionMachine::new("sess_1");
    assert_eq!(session.pending_items(), [PendingItem::Start]);
    apply_ok(&mut session, &event_at(0, SessionEventBody::Started));
    assert_eq!(session.pending_items(), [PendingItem::End]);
    apply_ok(&mut session, &event_at(1, question(TOKEN)));
    apply_ok(&mut session, &event_at(2, invoked("fetch", Some("call_1"))));
    apply_ok(&mut session, &event_at(3, chunk(Some("out_1"), 0, false)));
    let answer = PendingItem::Answer {
        token: TOKEN.into(),
        text: "Send the money".into(),
        deadline: Some(moment(31).unix_millis()),
    };
    let tool = PendingItem::Tool { tool: "fetch".into(), call_id: Some("call_1".into()) };
    let output = PendingItem::Output { output_id: Some("out_1".into()) };
    assert_eq!(session.pending_items(), [answer, tool.clone(), output.clone(), PendingItem::End]);
    assert!(has_open_question(&session));

    reply(&mut session, Decision::Accept, 4);
    let notice = PendingItem::ResolutionNotice { token: TOKEN.into() };
    assert_eq!(session.pending_items(), [notice, tool, output, PendingItem::End]);
    assert!(!has_open_question(&session));

    apply_ok(&mut session, &event_at(5, state_change("idle", "writing_output")));
    apply_ok(&mut session, &event_at(6, completed("fetch", Some("call_1"))));
    apply_ok(&mut session, &event_at(7, chunk(Some("out_1"), 4, true)));
    assert_eq!(session.pending_items(), [PendingItem::End]);
    apply_ok(&mut session, &event_at(8, SessionEventBody::Completed));
    assert_eq!(session.pending_items(), []);
    assert_eq!(session.end(), Some(SessionEnd::Completed));
}

#[test]
fn a_question_past_its_deadline_counts_as_refused() {
    let mut session = session_with_question();
    let call = irreversible_call("transfer", None);
    assert_eq!(broken_rule(&mut session, &event_at(29, call.clone())), "AAEP-6.1-1");
    assert_eq!(broken_rule(&mut session, &event_at(31, call)), "AAEP-4.5.3-1");
}

#[test]
fn an_extension_moves_the_deadline() {
    let mut session = session_with_question();
    extend(&mut session, 10, Some(60));
    assert_eq!(deadline(&session), moment(1 + 30 + 60).unix_millis());
    reply(&mut session, Decision::Accept, 80);
    apply_ok(&mut session, &event_at(81, state_change("awaiting_input", "calling_tool")));
    apply_ok(&mut session, &event_at(82, irreversible_call("transfer", None)));
}

#[test]
fn an_extension_without_seconds_adds_the_original_timeout() {
    let mut session = session_with_question();
    extend(&mut session, 10, None);
    assert_eq!(deadline(&session), moment(1 + 30 + 30).unix_millis());
}

#[test]
fn extensions_are_capped_at_ten_times_the_original_timeout() {
    let mut session = session_with_question();
    extend(&mut session, 10, Some(864_000));
    extend(&mut session, 11, None);
    assert_eq!(deadline(&session), moment(1 + 10 * 30).unix_millis());
}

#[test]
fn an_extension_after_the_deadline_has_no_effect() {
    let mut session = session_with_question();
    extend(&mut session, 31, Some(60));
    assert_eq!(deadline(&session), moment(31).unix_millis());
}

#[test]
fn a_stop_refuses_open_questions() {
    let mut session = session_with_question();
    session.apply_stop();
    assert!(!has_open_question(&session));
    assert_eq!(
        session.pending_items(),
        [PendingItem::ResolutionNotice { token: TOKEN.into() }, PendingItem::End]
    );
    assert_eq!(broken_rule(&mut session, &event_at(2, irreversible_call("transfer", None))), "AAEP-4.5.3-1");
    apply_ok(&mut session, &event_at(3, SessionEventBody::Cancelled));
}

#[test]
fn a_stop_in_a_recording_refuses_only_the_questions_of_its_session() {
    let mut recording = recording();
    for session in ["sess_1", "sess_2"] {
        check_ok(&mut recording, &in_session(session, event_at(0, SessionEventBody::Started)));
    }
    check_ok(&mut recording, &in_session("sess_1", event_at(1, question("rpl_aaaaaaaaaaaaaaa1"))));
    check_ok(&mut recording, &in_session("sess_2", event_at(1, question("rpl_aaaaaaaaaaaaaaa2"))));
    let stop = SessionStop::new(SessionId::parse("sess_1").unwrap(), subscription(), moment(2));
    let mut findings = Findings::new(ValidationMode::Strict);
    recording.check_message(&Message::SessionStop(stop), InputPosition::default(), &mut findings);
    assert_eq!(findings.list(), []);
    let mut open_by_session: Vec<_> = recording
        .pending_items()
        .map(|(session, _)| (session.id().to_owned(), has_open_question(session)))
        .collect();
    open_by_session.sort();
    assert_eq!(open_by_session, [("sess_1".to_owned(), false), ("sess_2".to_owned(), true)]);
}

#[test]
fn open_items_beyond_the_limit_are_rejected() {
    let mut session = SessionMachine::new("sess_1").with_max_open(2);
    apply_ok(&mut session, &event_at(0, SessionEventBody::Started));
    apply_ok(&mut session, &event_at(1, invoked("fetch", Some("call_1"))));
    apply_ok(&mut session, &event_at(2, invoked("fetch", Some("call_2"))));
    let third_call = event_at(3, invoked("fetch", Some("call_3")));
    assert_eq!(broken_rule(&mut session, &third_call), "AAEP-3.9-9");
    assert_eq!(session.pending_items().len(), 3, "a rejected event changes nothing");

    let mut findings = Findings::new(ValidationMode::Strict);
    session.apply(&third_call, &mut findings);
    session.apply(&event_at(4, SessionEventBody::Started), &mut findings);
    let rules: Vec<_> = findings.list().iter().map(|finding| finding.rule.id()).collect();
    assert_eq!(
        rules.iter().filter(|rule| **rule == "AAEP-3.9-9").count(),
        1,
        "reported once, then ignored: {rules:?}"
    );
    assert!(!session.is_open());
}

#[test]
fn each_kind_of_open_item_counts_against_the_limit() {
    let tokens = ["rpl_aaaaaaaaaaaaaaa1", "rpl_aaaaaaaaaaaaaaa2"];
    let outputs = ["out_1", "out_2"];
    let agents = ["planner", "payments"];
    for kind in 0..3 {
        let mut session = SessionMachine::new("sess_1").with_max_open(1);
        apply_ok(&mut session, &event_at(0, SessionEventBody::Started));
        let event = |which: usize| match kind {
            0 => event_at(1, question(tokens[which])),
            1 => event_at(1, chunk(Some(outputs[which]), 0, false)),
            _ => by_agent(agents[which], event_at(1, state_change("idle", "thinking"))),
        };
        apply_ok(&mut session, &event(0));
        // The second question is about the same action, which also breaks another rule.
        let findings = session.try_apply(&event(1)).unwrap_err();
        assert!(findings.iter().any(|finding| finding.rule.id() == "AAEP-3.9-9"), "{findings:?}");
    }
}

#[test]
fn each_producer_has_its_own_state_chain() {
    let mut session = started_session();
    apply_ok(&mut session, &by_agent("planner", event_at(1, state_change("idle", "thinking"))));
    apply_ok(&mut session, &by_agent("payments", event_at(2, state_change("idle", "calling_tool"))));
    apply_ok(&mut session, &by_agent("planner", event_at(3, state_change("thinking", "deciding"))));
    assert_eq!(session.state_of("planner"), Some(&AgentState::Deciding));
    assert_eq!(session.state_of("payments"), Some(&AgentState::CallingTool));
    assert_eq!(session.state_of("nobody"), None);
    let wrong_chain = by_agent("payments", event_at(4, state_change("deciding", "idle")));
    assert_eq!(broken_rule(&mut session, &wrong_chain), "AAEP-4.2.1-5");
    let wrong_start = by_agent("third", event_at(4, state_change("thinking", "idle")));
    assert_eq!(broken_rule(&mut session, &wrong_start), "AAEP-4.2.1-4");
}

#[test]
fn a_producer_waits_only_for_its_own_tools() {
    let mut session = started_session();
    apply_ok(&mut session, &by_agent("planner", event_at(1, state_change("idle", "calling_tool"))));
    apply_ok(&mut session, &by_agent("payments", event_at(1, state_change("idle", "calling_tool"))));
    apply_ok(&mut session, &by_agent("payments", event_at(2, invoked("pay", Some("call_1")))));
    apply_ok(&mut session, &by_agent("planner", event_at(3, state_change("calling_tool", "thinking"))));
    let early = by_agent("payments", event_at(4, state_change("calling_tool", "thinking")));
    assert_eq!(broken_rule(&mut session, &early), "AAEP-4.3.2-3");
}

#[test]
fn an_acceptance_is_spent_by_one_call() {
    let mut session = session_with_question();
    reply(&mut session, Decision::Accept, 2);
    apply_ok(&mut session, &event_at(3, state_change("awaiting_input", "calling_tool")));
    apply_ok(&mut session, &event_at(4, irreversible_call("transfer", Some("call_1"))));
    apply_ok(&mut session, &event_at(5, completed("transfer", Some("call_1"))));
    assert_eq!(
        broken_rule(&mut session, &event_at(6, irreversible_call("transfer", Some("call_2")))),
        "AAEP-4.3.1-3"
    );
}

#[test]
fn a_late_acceptance_does_not_permit_the_call() {
    let mut session = session_with_question();
    reply(&mut session, Decision::Accept, 31);
    assert!(has_open_question(&session), "a late reply has no effect");
    // The agent acts before the deadline, but no acceptance arrived in time.
    apply_ok(&mut session, &event_at(20, state_change("awaiting_input", "calling_tool")));
    assert_eq!(broken_rule(&mut session, &event_at(21, irreversible_call("transfer", None))), "AAEP-4.5.3-1");
}

#[test]
fn a_late_reply_cannot_be_reported_as_an_acceptance() {
    let mut session = session_with_question();
    reply(&mut session, Decision::Accept, 31);
    assert_eq!(
        broken_rule(&mut session, &reporting_resolution(40, "calling_tool", "accept", "reply")),
        "AAEP-2.2.14-2"
    );
    apply_ok(&mut session, &reporting_resolution(40, "thinking", "reject", "timeout"));
}

#[test]
fn a_reported_decision_must_match_the_reply() {
    for (decision, reported, rule) in
        [(Decision::Accept, "reject", "AAEP-9.4.1-3"), (Decision::Reject, "accept", "AAEP-4.5.3-1")]
    {
        let mut session = session_with_question();
        reply(&mut session, decision, 2);
        assert_eq!(broken_rule(&mut session, &reporting_resolution(3, "thinking", reported, "reply")), rule);
        assert_eq!(broken_rule(&mut session, &reporting_resolution(40, "thinking", reported, "reply")), rule);
    }
}

#[test]
fn a_refused_call_cannot_be_made_later() {
    let mut session = started_session();
    apply_ok(&mut session, &event_at(1, state_change("idle", "awaiting_input")));
    let mut with_call_id = confirmation(TOKEN);
    with_call_id.call_id = Some("call_7");
    apply_ok(&mut session, &event_at(1, SessionEventBody::Confirmation(Box::new(with_call_id))));
    reply(&mut session, Decision::Reject, 2);
    apply_ok(&mut session, &event_at(3, state_change("awaiting_input", "thinking")));
    apply_ok(&mut session, &event_at(4, state_change("thinking", "calling_tool")));
    assert_eq!(broken_rule(&mut session, &event_at(5, invoked("transfer", Some("call_7")))), "AAEP-4.5.3-1");
    apply_ok(&mut session, &event_at(5, invoked("transfer", Some("call_8"))));
}

#[test]
fn a_huge_timeout_does_not_overflow() {
    let mut session = started_session();
    let mut with_huge_timeout = confirmation(TOKEN);
    with_huge_timeout.timeout_seconds = u64::MAX;
    apply_ok(&mut session, &event_at(1, SessionEventBody::Confirmation(Box::new(with_huge_timeout))));
    extend(&mut session, 2, Some(u64::MAX));
    reply(&mut session, Decision::Accept, 3);
    apply_ok(&mut session, &event_at(4, irreversible_call("transfer", None)));
}

#[test]
fn a_token_cannot_be_reused_in_another_session() {
    let mut recording = recording();
    for session in ["sess_1", "sess_2"] {
        check_ok(&mut recording, &in_session(session, event_at(0, SessionEventBody::Started)));
    }
    check_ok(&mut recording, &in_session("sess_1", event_at(1, question(TOKEN))));
    check_ok(&mut recording, &in_session("sess_1", event_at(2, SessionEventBody::Cancelled)));
    let mut findings = Findings::new(ValidationMode::Strict);
    recording.check_event(
        &in_session("sess_2", event_at(3, question(TOKEN))),
        InputPosition::default(),
        &mut findings,
    );
    let rules: Vec<_> = findings.list().iter().map(|finding| finding.rule.id()).collect();
    assert!(rules.contains(&"AAEP-6.2.2-1"), "{rules:?}");
}

#[test]
fn a_reported_extension_moves_the_deadline() {
    let extension_until = |second, until| {
        let deadline_extension = Some(DeadlineExtension { token: TOKEN, deadline: moment(until) });
        event_at(second, SessionEventBody::ProgressUpdated { percent: None, deadline_extension })
    };
    let deadline = |session: &SessionMachine| session.deadline_of(TOKEN);
    let late_report = reporting_resolution(31, "thinking", "reject", "timeout");
    let mut session = session_with_question();
    apply_ok(&mut session.clone(), &late_report);
    apply_ok(&mut session, &extension_until(3, 91));
    assert_eq!(deadline(&session), Some(moment(91).unix_millis()));
    assert_eq!(broken_rule(&mut session, &late_report), "AAEP-6.4-1", "the deadline has not passed");
    apply_ok(&mut session, &extension_until(4, 5));
    assert_eq!(
        deadline(&session),
        Some(moment(91).unix_millis()),
        "a deadline never moves to an earlier time"
    );
    apply_ok(&mut session, &extension_until(5, 1_000_000));
    assert_eq!(
        deadline(&session),
        Some(moment(1 + 10 * TIMEOUT_SECONDS).unix_millis()),
        "at most ten times the original timeout"
    );
    apply_ok(&mut session, &reporting_resolution(200, "thinking", "accept", "reply"));
    let mut session = session_with_question();
    apply_ok(&mut session, &reporting_resolution(3, "thinking", "reject", "reply"));
    apply_ok(&mut session, &extension_until(4, 91));
    assert_eq!(broken_rule(&mut session, &event_at(5, irreversible_call("transfer", None))), "AAEP-4.5.3-1");
}

#[test]
fn child_sessions_are_listed_while_they_are_open() {
    let mut recording = recording();
    check_ok(&mut recording, &in_session("sess_1", event_at(0, SessionEventBody::Started)));
    for child in ["sess_2", "sess_3"] {
        let mut event = in_session(child, event_at(1, SessionEventBody::Started));
        event.parent_session_id = Some("sess_1");
        check_ok(&mut recording, &event);
    }
    let children = |recording: &TestRecording, parent: &str| {
        let mut ids: Vec<_> = recording.children_of(parent).map(|session| session.id().to_owned()).collect();
        ids.sort();
        ids
    };
    assert_eq!(children(&recording, "sess_1"), ["sess_2", "sess_3"]);
    assert!(children(&recording, "sess_2").is_empty());
    check_ok(&mut recording, &in_session("sess_2", event_at(2, SessionEventBody::Completed)));
    assert_eq!(children(&recording, "sess_1"), ["sess_3"]);
    check_ok(&mut recording, &in_session("sess_1", event_at(3, SessionEventBody::Cancelled)));
    assert_eq!(children(&recording, "sess_1"), ["sess_3"], "a child may outlive its parent");
}

// Helpers that create the events above.

type TestRecording = RecordingChecker<BuildHasherDefault<DefaultHasher>>;

/// Returns the timestamp this many seconds after the start of the session.
fn moment(second: u64) -> Timestamp {
    let start = Timestamp::parse("2026-05-24T14:22:11.000Z").unwrap();
    let millis = start.unix_millis() + i64::try_from(second).unwrap() * 1000;
    Timestamp::from_unix_millis(millis).unwrap()
}

fn event_at(second: u64, body: SessionEventBody<&'static str>) -> SessionEvent<&'static str> {
    SessionEvent {
        event_id: None,
        session_id: "sess_1",
        agent_id: "planner",
        timestamp: Some(moment(second)),
        sequence_number: None,
        parent_session_id: None,
        reported_resolution: None,
        body,
    }
}

fn by_agent(agent: &'static str, event: SessionEvent<&'static str>) -> SessionEvent<&'static str> {
    SessionEvent { agent_id: agent, ..event }
}

fn in_session(session: &'static str, event: SessionEvent<&'static str>) -> SessionEvent<&'static str> {
    SessionEvent { session_id: session, ..event }
}

/// Returns the state change that leaves awaiting_input and reports how the question was resolved.
fn reporting_resolution(
    second: u64,
    to: &'static str,
    decision: &'static str,
    resolved_by: &'static str,
) -> SessionEvent<&'static str> {
    let resolution =
        ReportedResolution { token: TOKEN, decision: Some(decision), resolved_by: Some(resolved_by) };
    SessionEvent {
        reported_resolution: Some(resolution),
        ..event_at(second, state_change("awaiting_input", to))
    }
}

fn state_change(from: &'static str, to: &'static str) -> SessionEventBody<&'static str> {
    SessionEventBody::StateChanged { from: AgentState::parse(from), to: AgentState::parse(to) }
}

fn invoked(tool: &'static str, call: Option<&'static str>) -> SessionEventBody<&'static str> {
    SessionEventBody::ToolInvoked { tool, call_id: call, high_risk: false, irreversible: false, digest: None }
}

fn irreversible_call(tool: &'static str, call: Option<&'static str>) -> SessionEventBody<&'static str> {
    SessionEventBody::ToolInvoked { tool, call_id: call, high_risk: true, irreversible: true, digest: None }
}

fn completed(tool: &'static str, call: Option<&'static str>) -> SessionEventBody<&'static str> {
    SessionEventBody::ToolCompleted { tool, call_id: call }
}

/// Returns a chunk of four characters.
fn chunk(output: Option<&'static str>, position: u64, complete: bool) -> SessionEventBody<&'static str> {
    SessionEventBody::OutputStreaming {
        output_id: output,
        position,
        code_points: 4,
        complete,
        coalesce_hint: None,
    }
}

fn confirmation(token: &'static str) -> Confirmation<&'static str> {
    Confirmation {
        token,
        action: "Send the money",
        timeout_seconds: TIMEOUT_SECONDS,
        accept_by_default: false,
        irreversible: Some(true),
        high_risk: true,
        may_accept: true,
        may_reject: true,
        tool: None,
        call_id: None,
        digest: None,
    }
}

fn question(token: &'static str) -> SessionEventBody<&'static str> {
    SessionEventBody::Confirmation(Box::new(confirmation(token)))
}

fn started_session() -> SessionMachine {
    let mut session = SessionMachine::new("sess_1");
    apply_ok(&mut session, &event_at(0, SessionEventBody::Started));
    session
}

/// Returns a session in which a question was asked at second 1. The question is open until second 31.
fn session_with_question() -> SessionMachine {
    let mut session = started_session();
    apply_ok(&mut session, &event_at(1, state_change("idle", "awaiting_input")));
    apply_ok(&mut session, &event_at(1, question(TOKEN)));
    session
}

fn apply_ok(session: &mut SessionMachine, event: &SessionEvent<&str>) {
    if let Err(findings) = session.try_apply(event) {
        panic!("{:?} was rejected: {findings:#?}", event.body);
    }
}

/// Returns the first rule that a rejected event breaks.
fn broken_rule(session: &mut SessionMachine, event: &SessionEvent<&str>) -> &'static str {
    let findings = session.try_apply(event).expect_err("the event should be rejected");
    let first_error = findings.iter().find(|finding| finding.severity == aaep::rule::Severity::Error);
    first_error.expect("a rejection contains an error").rule.id()
}

fn reply(session: &mut SessionMachine, decision: Decision, second: u64) {
    let reply = ConfirmationReply::new(token(), decision, subscription(), moment(second));
    let mut findings = Findings::new(ValidationMode::Strict);
    session.apply_confirmation_reply(&reply, &mut findings);
    assert!(!findings.has_error(), "{:?}", findings.list());
}

fn extend(session: &mut SessionMachine, second: u64, seconds: Option<u64>) {
    let mut request = DeadlineExtend::new(token(), subscription(), moment(second));
    request.seconds = seconds;
    session.apply_deadline_extension(&request);
}

fn has_open_question(session: &SessionMachine) -> bool {
    session.pending_items().iter().any(|pending| matches!(pending, PendingItem::Answer { .. }))
}

/// Returns the deadline of the open question.
fn deadline(session: &SessionMachine) -> UnixMillis {
    let pending = session.pending_items();
    let Some(PendingItem::Answer { deadline: Some(deadline), .. }) = pending.first() else {
        panic!("no question is open: {pending:?}")
    };
    *deadline
}

fn token() -> ReplyToken {
    ReplyToken::parse(TOKEN).unwrap()
}

fn subscription() -> SubscriptionId {
    SubscriptionId::parse("sub_8a4f2c9d").unwrap()
}

fn recording() -> TestRecording {
    RecordingChecker::new(SequenceMode::Always, RecordingLimits::default(), BuildHasherDefault::default())
}

fn check_ok(recording: &mut TestRecording, event: &SessionEvent<&str>) {
    let mut findings = Findings::new(ValidationMode::Strict);
    recording.check_event(event, InputPosition::default(), &mut findings);
    assert!(!findings.has_error(), "{:?}", findings.list());
}
