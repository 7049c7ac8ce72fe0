//! One session, step by step: what is admitted, what is refused, and what it is waiting for.

use std::collections::hash_map::DefaultHasher;
use std::hash::BuildHasherDefault;

use aaep::event::{Decision, State};
use aaep::message::{ConfirmationReply, DeadlineExtend, Message, SessionStop};
use aaep::recording::{Limits, Place, Recording, Sequence};
use aaep::rule::{Face, Findings};
use aaep::session::{Body, Confirmation, End, MoreTime, Resolution, Session, Step, Waiting};
use aaep::{ReplyToken, SessionId, SubscriptionId, Timestamp};
use seal::UnixMillis;

const TOKEN: &str = "rpl_4f8a2e7d9c1b6a3f";
/// How long a question stays open here, in seconds.
const TIMEOUT: u64 = 30;

#[test]
fn a_refused_step_leaves_the_session_as_it_was() {
    let mut session = started();
    take(&mut session, &at(1, state("idle", "thinking")));
    take(&mut session, &at(2, invoked("fetch", Some("call_1"))));
    let before = format!("{session:?}");
    for (body, rule) in [
        (Body::Started, "AAEP-4.1-1"),
        (state("dreaming", "thinking"), "AAEP-4.2.1-5"),
        (invoked("fetch", Some("call_1")), "AAEP-4.3.1-4"),
        (completed("another", Some("call_1")), "AAEP-4.3.2-2"),
        (irreversible("transfer", None), "AAEP-4.3.1-3"),
        (chunk(None, 5, false), "AAEP-4.3.3-2"),
        (Body::Completed, "AAEP-9.3.1-4"),
    ] {
        assert_eq!(refusal(&mut session, &at(3, body)), rule);
        assert_eq!(format!("{session:?}"), before, "after {rule}");
    }
    assert_eq!(
        refusal(&mut session, &at(0, Body::Progress { percent: None, more_time: None })),
        "AAEP-3.2.5-7"
    );
    assert_eq!(format!("{session:?}"), before);
    take(&mut session, &at(3, completed("fetch", Some("call_1"))));
}

#[test]
fn waiting_for_names_what_is_open() {
    let mut session = Session::new("sess_1");
    assert_eq!(session.waiting_for(), [Waiting::Start]);
    take(&mut session, &at(0, Body::Started));
    assert_eq!(session.waiting_for(), [Waiting::End]);
    take(&mut session, &at(1, question(TOKEN)));
    take(&mut session, &at(2, invoked("fetch", Some("call_1"))));
    take(&mut session, &at(3, chunk(Some("out_1"), 0, false)));
    let answer = Waiting::Answer {
        token: TOKEN.into(),
        about: "Send the money".into(),
        deadline: Some(moment(31).unix_millis()),
    };
    let tool = Waiting::Tool { tool: "fetch".into(), call: Some("call_1".into()) };
    let output = Waiting::Output { id: Some("out_1".into()) };
    assert_eq!(session.waiting_for(), [answer, tool.clone(), output.clone(), Waiting::End]);
    assert!(is_asking(&session));

    reply(&mut session, Decision::Accept, 4);
    let follow_up = Waiting::FollowUp { token: TOKEN.into() };
    assert_eq!(session.waiting_for(), [follow_up, tool, output, Waiting::End]);
    assert!(!is_asking(&session));

    take(&mut session, &at(5, state("idle", "writing_output")));
    take(&mut session, &at(6, completed("fetch", Some("call_1"))));
    take(&mut session, &at(7, chunk(Some("out_1"), 4, true)));
    assert_eq!(session.waiting_for(), [Waiting::End]);
    take(&mut session, &at(8, Body::Completed));
    assert_eq!(session.waiting_for(), []);
    assert_eq!(session.ended(), Some(End::Completed));
}

#[test]
fn a_question_whose_time_is_over_is_refused() {
    let mut session = asking();
    let act = irreversible("transfer", None);
    assert_eq!(refusal(&mut session, &at(29, act.clone())), "AAEP-6.1-1");
    assert_eq!(refusal(&mut session, &at(31, act)), "AAEP-4.5.3-1");
}

#[test]
fn more_time_moves_the_deadline() {
    let mut session = asking();
    extend(&mut session, 10, Some(60));
    assert_eq!(deadline(&session), moment(1 + 30 + 60).unix_millis());
    reply(&mut session, Decision::Accept, 80);
    take(&mut session, &at(81, state("awaiting_input", "calling_tool")));
    take(&mut session, &at(82, irreversible("transfer", None)));
}

#[test]
fn more_time_without_a_number_is_the_first_timeout_again() {
    let mut session = asking();
    extend(&mut session, 10, None);
    assert_eq!(deadline(&session), moment(1 + 30 + 30).unix_millis());
}

#[test]
fn more_time_ends_at_ten_times_the_first() {
    let mut session = asking();
    extend(&mut session, 10, Some(864_000));
    extend(&mut session, 11, None);
    assert_eq!(deadline(&session), moment(1 + 10 * 30).unix_millis());
}

#[test]
fn more_time_cannot_be_had_when_it_is_over() {
    let mut session = asking();
    extend(&mut session, 31, Some(60));
    assert_eq!(deadline(&session), moment(31).unix_millis());
}

#[test]
fn a_stop_refuses_what_is_open() {
    let mut session = asking();
    session.stop();
    assert!(!is_asking(&session));
    assert_eq!(session.waiting_for(), [Waiting::FollowUp { token: TOKEN.into() }, Waiting::End]);
    assert_eq!(refusal(&mut session, &at(2, irreversible("transfer", None))), "AAEP-4.5.3-1");
    take(&mut session, &at(3, Body::Cancelled));
}

#[test]
fn a_stop_in_a_recording_refuses_the_questions_of_its_session_alone() {
    let mut recording = recording();
    for session in ["sess_1", "sess_2"] {
        play(&mut recording, &of(session, at(0, Body::Started)));
    }
    play(&mut recording, &of("sess_1", at(1, question("rpl_aaaaaaaaaaaaaaa1"))));
    play(&mut recording, &of("sess_2", at(1, question("rpl_aaaaaaaaaaaaaaa2"))));
    let stop = SessionStop::new(SessionId::parse("sess_1").unwrap(), subscription(), moment(2));
    let mut findings = Findings::new(Face::Strict);
    recording.message(&Message::SessionStop(stop), Place::default(), &mut findings);
    assert_eq!(findings.list(), []);
    let mut open: Vec<_> = recording.waiting().map(|(it, _)| (it.id().to_owned(), is_asking(it))).collect();
    open.sort();
    assert_eq!(open, [("sess_1".to_owned(), false), ("sess_2".to_owned(), true)]);
}

#[test]
fn more_open_things_than_the_limit_are_not_followed() {
    let mut session = Session::new("sess_1").with_max_open(2);
    take(&mut session, &at(0, Body::Started));
    take(&mut session, &at(1, invoked("fetch", Some("call_1"))));
    take(&mut session, &at(2, invoked("fetch", Some("call_2"))));
    let third = at(3, invoked("fetch", Some("call_3")));
    assert_eq!(refusal(&mut session, &third), "AAEP-3.9-9");
    assert_eq!(session.waiting_for().len(), 3, "a refused step changes nothing");

    let mut findings = Findings::new(Face::Strict);
    session.event(&third, &mut findings);
    session.event(&at(4, Body::Started), &mut findings);
    let rules: Vec<_> = findings.list().iter().map(|finding| finding.rule.id()).collect();
    assert_eq!(
        rules.iter().filter(|rule| **rule == "AAEP-3.9-9").count(),
        1,
        "told once, then left alone: {rules:?}"
    );
    assert!(!session.is_open());
}

#[test]
fn each_kind_of_open_thing_counts_against_the_limit() {
    let tokens = ["rpl_aaaaaaaaaaaaaaa1", "rpl_aaaaaaaaaaaaaaa2"];
    let outputs = ["out_1", "out_2"];
    let agents = ["planner", "payments"];
    for kind in 0..3 {
        let mut session = Session::new("sess_1").with_max_open(1);
        take(&mut session, &at(0, Body::Started));
        let step = |which: usize| match kind {
            0 => at(1, question(tokens[which])),
            1 => at(1, chunk(Some(outputs[which]), 0, false)),
            _ => by(agents[which], at(1, state("idle", "thinking"))),
        };
        take(&mut session, &step(0));
        // The second question is about the same action, which is a fault of its own.
        let found = session.admit(&step(1)).unwrap_err();
        assert!(found.iter().any(|finding| finding.rule.id() == "AAEP-3.9-9"), "{found:?}");
    }
}

#[test]
fn two_producers_have_chains_of_their_own() {
    let mut session = started();
    take(&mut session, &by("planner", at(1, state("idle", "thinking"))));
    take(&mut session, &by("payments", at(2, state("idle", "calling_tool"))));
    take(&mut session, &by("planner", at(3, state("thinking", "deciding"))));
    assert_eq!(session.state_of("planner"), Some(&State::Deciding));
    assert_eq!(session.state_of("payments"), Some(&State::CallingTool));
    assert_eq!(session.state_of("nobody"), None);
    let stolen = by("payments", at(4, state("deciding", "idle")));
    assert_eq!(refusal(&mut session, &stolen), "AAEP-4.2.1-5");
    let late = by("third", at(4, state("thinking", "idle")));
    assert_eq!(refusal(&mut session, &late), "AAEP-4.2.1-4");
}

#[test]
fn a_producer_waits_for_its_own_tools_alone() {
    let mut session = started();
    take(&mut session, &by("planner", at(1, state("idle", "calling_tool"))));
    take(&mut session, &by("payments", at(1, state("idle", "calling_tool"))));
    take(&mut session, &by("payments", at(2, invoked("pay", Some("call_1")))));
    take(&mut session, &by("planner", at(3, state("calling_tool", "thinking"))));
    let early = by("payments", at(4, state("calling_tool", "thinking")));
    assert_eq!(refusal(&mut session, &early), "AAEP-4.3.2-3");
}

#[test]
fn an_acceptance_is_spent_by_one_call() {
    let mut session = asking();
    reply(&mut session, Decision::Accept, 2);
    take(&mut session, &at(3, state("awaiting_input", "calling_tool")));
    take(&mut session, &at(4, irreversible("transfer", Some("call_1"))));
    take(&mut session, &at(5, completed("transfer", Some("call_1"))));
    assert_eq!(refusal(&mut session, &at(6, irreversible("transfer", Some("call_2")))), "AAEP-4.3.1-3");
}

#[test]
fn a_reply_that_came_too_late_is_no_reason_to_go_on() {
    let mut session = asking();
    reply(&mut session, Decision::Accept, 31);
    assert!(is_asking(&session), "it has no effect");
    take(&mut session, &at(20, state("awaiting_input", "calling_tool")));
    assert_eq!(refusal(&mut session, &at(21, irreversible("transfer", None))), "AAEP-4.5.3-1");
}

#[test]
fn a_late_reply_cannot_be_told_as_an_acceptance() {
    let mut session = asking();
    reply(&mut session, Decision::Accept, 31);
    assert_eq!(refusal(&mut session, &telling(40, "calling_tool", "accept", "reply")), "AAEP-2.2.14-2");
    take(&mut session, &telling(40, "thinking", "reject", "timeout"));
}

#[test]
fn what_is_told_of_a_reply_is_what_was_replied() {
    for (decision, told, rule) in
        [(Decision::Accept, "reject", "AAEP-9.4.1-3"), (Decision::Reject, "accept", "AAEP-4.5.3-1")]
    {
        let mut session = asking();
        reply(&mut session, decision, 2);
        assert_eq!(refusal(&mut session, &telling(3, "thinking", told, "reply")), rule);
        assert_eq!(refusal(&mut session, &telling(40, "thinking", told, "reply")), rule);
    }
}

#[test]
fn a_refused_call_is_not_made_later_either() {
    let mut session = started();
    take(&mut session, &at(1, state("idle", "awaiting_input")));
    let mut asked = confirmation(TOKEN);
    asked.call = Some("call_7");
    take(&mut session, &at(1, Body::Confirmation(Box::new(asked))));
    reply(&mut session, Decision::Reject, 2);
    take(&mut session, &at(3, state("awaiting_input", "thinking")));
    take(&mut session, &at(4, state("thinking", "calling_tool")));
    assert_eq!(refusal(&mut session, &at(5, invoked("transfer", Some("call_7")))), "AAEP-4.5.3-1");
    take(&mut session, &at(5, invoked("transfer", Some("call_8"))));
}

#[test]
fn a_timeout_beyond_all_time_does_no_harm() {
    let mut session = started();
    let mut asked = confirmation(TOKEN);
    asked.timeout_seconds = u64::MAX;
    take(&mut session, &at(1, Body::Confirmation(Box::new(asked))));
    extend(&mut session, 2, Some(u64::MAX));
    reply(&mut session, Decision::Accept, 3);
    take(&mut session, &at(4, irreversible("transfer", None)));
}

#[test]
fn a_token_is_never_used_in_another_session_either() {
    let mut recording = recording();
    for session in ["sess_1", "sess_2"] {
        play(&mut recording, &of(session, at(0, Body::Started)));
    }
    play(&mut recording, &of("sess_1", at(1, question(TOKEN))));
    play(&mut recording, &of("sess_1", at(2, Body::Cancelled)));
    let mut findings = Findings::new(Face::Strict);
    recording.event(&of("sess_2", at(3, question(TOKEN))), Place::default(), &mut findings);
    let rules: Vec<_> = findings.list().iter().map(|finding| finding.rule.id()).collect();
    assert!(rules.contains(&"AAEP-6.2.2-1"), "{rules:?}");
}

#[test]
fn more_time_that_an_event_tells_moves_the_deadline() {
    let more_time = |second, until| {
        let more_time = Some(MoreTime { token: TOKEN, deadline: moment(until) });
        at(second, Body::Progress { percent: None, more_time })
    };
    let deadline = |session: &Session| session.deadline_of(TOKEN);
    let late = telling(31, "thinking", "reject", "timeout");
    let mut session = asking();
    take(&mut session.clone(), &late);
    take(&mut session, &more_time(3, 91));
    assert_eq!(deadline(&session), Some(moment(91).unix_millis()));
    assert_eq!(refusal(&mut session, &late), "AAEP-6.4-1", "its time is not over");
    take(&mut session, &more_time(4, 5));
    assert_eq!(deadline(&session), Some(moment(91).unix_millis()), "never earlier");
    take(&mut session, &more_time(5, 1_000_000));
    assert_eq!(deadline(&session), Some(moment(1 + 10 * TIMEOUT).unix_millis()), "ten times at most");
    take(&mut session, &telling(200, "thinking", "accept", "reply"));
    let mut session = asking();
    take(&mut session, &telling(3, "thinking", "reject", "reply"));
    take(&mut session, &more_time(4, 91));
    assert_eq!(refusal(&mut session, &at(5, irreversible("transfer", None))), "AAEP-4.5.3-1");
}

#[test]
fn linked_sessions_are_found_while_they_are_open() {
    let mut recording = recording();
    play(&mut recording, &of("sess_1", at(0, Body::Started)));
    for child in ["sess_2", "sess_3"] {
        let mut step = of(child, at(1, Body::Started));
        step.parent = Some("sess_1");
        play(&mut recording, &step);
    }
    let children = |recording: &Sessions, parent: &str| {
        let mut ids: Vec<_> = recording.children_of(parent).map(|session| session.id().to_owned()).collect();
        ids.sort();
        ids
    };
    assert_eq!(children(&recording, "sess_1"), ["sess_2", "sess_3"]);
    assert!(children(&recording, "sess_2").is_empty());
    play(&mut recording, &of("sess_2", at(2, Body::Completed)));
    assert_eq!(children(&recording, "sess_1"), ["sess_3"]);
    play(&mut recording, &of("sess_1", at(3, Body::Cancelled)));
    assert_eq!(children(&recording, "sess_1"), ["sess_3"], "a child may outlive its parent");
}

// How the steps above are made.

type Sessions = Recording<BuildHasherDefault<DefaultHasher>>;

/// A moment of a session, in seconds from its start.
fn moment(second: u64) -> Timestamp {
    let start = Timestamp::parse("2026-05-24T14:22:11.000Z").unwrap();
    let millis = start.unix_millis() + i64::try_from(second).unwrap() * 1000;
    Timestamp::from_unix_millis(millis).unwrap()
}

fn at(second: u64, body: Body<&'static str>) -> Step<&'static str> {
    Step {
        event_id: None,
        session_id: "sess_1",
        agent_id: "planner",
        at: Some(moment(second)),
        sequence_number: None,
        parent: None,
        resolution: None,
        body,
    }
}

fn by(agent: &'static str, step: Step<&'static str>) -> Step<&'static str> {
    Step { agent_id: agent, ..step }
}

fn of(session: &'static str, step: Step<&'static str>) -> Step<&'static str> {
    Step { session_id: session, ..step }
}

/// The change of state that leaves awaiting_input and says how the question was resolved.
fn telling(second: u64, to: &'static str, decision: &'static str, by: &'static str) -> Step<&'static str> {
    let resolution = Resolution { token: TOKEN, decision: Some(decision), by: Some(by) };
    Step { resolution: Some(resolution), ..at(second, state("awaiting_input", to)) }
}

fn state(from: &'static str, to: &'static str) -> Body<&'static str> {
    Body::State { from: State::of(from), to: State::of(to) }
}

fn invoked(tool: &'static str, call: Option<&'static str>) -> Body<&'static str> {
    Body::ToolInvoked { tool, call, high_risk: false, irreversible: false, digest: None }
}

fn irreversible(tool: &'static str, call: Option<&'static str>) -> Body<&'static str> {
    Body::ToolInvoked { tool, call, high_risk: true, irreversible: true, digest: None }
}

fn completed(tool: &'static str, call: Option<&'static str>) -> Body<&'static str> {
    Body::ToolCompleted { tool, call }
}

/// A chunk of four characters.
fn chunk(output: Option<&'static str>, position: u64, complete: bool) -> Body<&'static str> {
    Body::Output { output, position, length: 4, complete, hint: None }
}

fn confirmation(token: &'static str) -> Confirmation<&'static str> {
    Confirmation {
        token,
        action: "Send the money",
        timeout_seconds: TIMEOUT,
        accept_by_default: false,
        irreversible: Some(true),
        may_accept: true,
        may_reject: true,
        tool: None,
        call: None,
        digest: None,
    }
}

fn question(token: &'static str) -> Body<&'static str> {
    Body::Confirmation(Box::new(confirmation(token)))
}

fn started() -> Session {
    let mut session = Session::new("sess_1");
    take(&mut session, &at(0, Body::Started));
    session
}

/// A session in which a question was asked at second 1, open until second 31.
fn asking() -> Session {
    let mut session = started();
    take(&mut session, &at(1, state("idle", "awaiting_input")));
    take(&mut session, &at(1, question(TOKEN)));
    session
}

fn take(session: &mut Session, step: &Step<&str>) {
    if let Err(found) = session.admit(step) {
        panic!("{:?} was refused: {found:#?}", step.body);
    }
}

/// The first rule that a refused step breaks.
fn refusal(session: &mut Session, step: &Step<&str>) -> &'static str {
    let found = session.admit(step).expect_err("it should be refused");
    let error = found.iter().find(|finding| finding.severity == aaep::rule::Severity::Error);
    error.expect("a refusal has an error").rule.id()
}

fn reply(session: &mut Session, decision: Decision, second: u64) {
    let reply = ConfirmationReply::new(token(), decision, subscription(), moment(second));
    let mut findings = Findings::new(Face::Strict);
    session.reply(&reply, &mut findings);
    assert!(!findings.has_error(), "{:?}", findings.list());
}

fn extend(session: &mut Session, second: u64, seconds: Option<u64>) {
    let mut wish = DeadlineExtend::new(token(), subscription(), moment(second));
    wish.seconds = seconds;
    session.extend(&wish);
}

fn is_asking(session: &Session) -> bool {
    session.waiting_for().iter().any(|waiting| matches!(waiting, Waiting::Answer { .. }))
}

/// When the question's time is over.
fn deadline(session: &Session) -> UnixMillis {
    let waiting = session.waiting_for();
    let Some(Waiting::Answer { deadline: Some(deadline), .. }) = waiting.first() else {
        panic!("no question is open: {waiting:?}")
    };
    *deadline
}

fn token() -> ReplyToken {
    ReplyToken::parse(TOKEN).unwrap()
}

fn subscription() -> SubscriptionId {
    SubscriptionId::parse("sub_8a4f2c9d").unwrap()
}

fn recording() -> Sessions {
    Recording::new(Sequence::Always, Limits::default(), BuildHasherDefault::default())
}

fn play(recording: &mut Sessions, step: &Step<&str>) {
    let mut findings = Findings::new(Face::Strict);
    recording.event(step, Place::default(), &mut findings);
    assert!(!findings.has_error(), "{:?}", findings.list());
}
