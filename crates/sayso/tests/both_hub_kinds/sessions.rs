//! Sessions: events, consent, tools, output and endings.

use std::convert::Infallible;
use std::time::Duration;

use sayso::{
    Action, Answer, CallError, ClarificationAnswer, ClarificationRequest, ConsentMismatch, Error,
    EventOptions, HandOff, HandOffTarget, JsonText, ProgressUpdate, ResolvedBy, Session, StopReason,
};
use seal::jws::verify_detached;
use serde_json::json;

use crate::support::fixture::{HubFixture, TestListener, event_kinds};

pub(crate) fn payment_action() -> Action {
    Action::new("send", r#"{"to":"Ben","amount":"5.00"}"#)
        .says("Send 5 euros to Ben.")
        .consequence("The money is gone at once.")
        .irreversible()
}

async fn ask_and_decide(
    session: &Session,
    listener: &mut TestListener,
    decision: &str,
) -> Result<Answer, Error> {
    tokio::join!(session.ask(payment_action()), listener.decide_next(decision)).0
}

async fn ask_and_grant(session: &Session, listener: &mut TestListener) -> sayso::Granted {
    match ask_and_decide(session, listener, "accept").await.unwrap() {
        Answer::Granted(granted) => granted,
        Answer::Refused(refusal) => panic!("{refusal}"),
    }
}

pub(crate) async fn a_session_reports_its_events_and_states(mut fixture: HubFixture) {
    let session = fixture.session().await;
    session.think("Looking for Ben.").await.unwrap();
    session.decide("Which of two Bens.").await.unwrap();
    session.progress(ProgressUpdate::new("Half done.").percent(50.0)).await.unwrap();
    let found = session.tool("find").says("Finding Ben.").run(async { Ok::<_, Infallible>("Ben") }).await;
    assert_eq!(found.unwrap(), "Ben");
    session.output("Ben is ").await.unwrap();
    session.output("found.").await.unwrap();
    session.finish_output().await.unwrap();
    session.announce_hand_off(HandOff::new(HandOffTarget::Human, "Only a human may pay.")).await.unwrap();
    session.finish("Ben is found.").await.unwrap();
    let events = fixture.listener.events_until("session.completed").await;
    let mut kinds = event_kinds(&events);
    // The listener's capabilities decide how the output is split.
    kinds.dedup();
    let expected = [
        "thinking",
        "deciding",
        "progress.updated",
        "calling_tool",
        "tool.invoked",
        "tool.completed success",
        "thinking",
        "writing_output",
        "output.streaming",
        "thinking",
        "handing_off",
        "handoff.requested",
        "session.completed",
    ];
    assert_eq!(kinds, expected);
    let chunks: String = events.iter().filter_map(|event| event["chunk"].as_str()).collect();
    assert_eq!(chunks, "Ben is found.");
    assert_eq!(events.last().unwrap()["tool_invocations_count"], 1);
}

pub(crate) async fn an_acceptance_allows_exactly_one_call(mut fixture: HubFixture) {
    let session = fixture.session().await;
    let granted = ask_and_grant(&session, &mut fixture.listener).await;
    assert_eq!((granted.tool(), granted.arguments()), ("send", r#"{"to":"Ben","amount":"5.00"}"#));
    let sent = session.call(granted, async |arguments| Ok::<_, Infallible>(arguments)).await.unwrap();
    assert_eq!(sent, r#"{"to":"Ben","amount":"5.00"}"#);
    session.finish("Sent.").await.unwrap();
    let events = fixture.listener.events_until("session.completed").await;
    let invoked = events.iter().find(|event| event["type"] == "aaep:agent.tool.invoked").unwrap();
    assert_eq!((&invoked["irreversible"], &invoked["risk_level"]), (&json!(true), &json!("high")));
    assert!(event_kinds(&events).contains(&"tool.completed success".to_owned()));
}

pub(crate) async fn a_rejection_allows_no_call(mut fixture: HubFixture) {
    let session = fixture.session().await;
    match ask_and_decide(&session, &mut fixture.listener, "reject").await.unwrap() {
        Answer::Refused(refusal) => assert_eq!(refusal.by, ResolvedBy::Reply),
        Answer::Granted(granted) => panic!("{granted:?}"),
    }
    session.cancel("Nothing was sent.").await.unwrap();
    let kinds = event_kinds(&fixture.listener.events_until("session.cancelled").await);
    assert!(!kinds.contains(&"tool.invoked".to_owned()), "{kinds:?}");
}

pub(crate) async fn an_answer_has_a_receipt_that_others_can_verify(mut fixture: HubFixture) {
    let session = fixture.session().await;
    for decision in ["accept", "reject"] {
        let answer = ask_and_decide(&session, &mut fixture.listener, decision).await.unwrap();
        let (receipt, signature) = (answer.receipt().unwrap(), answer.receipt_signature().unwrap());
        let members: serde_json::Value = serde_json::from_str(receipt).unwrap();
        assert_eq!((&members["decision"], &members["by"]), (&decision.into(), &"reply".into()), "{receipt}");
        assert!(verify_detached(signature, receipt.as_bytes(), &fixture.receipt_key).is_ok());
        assert!(verify_detached(signature, receipt.to_uppercase().as_bytes(), &fixture.receipt_key).is_err());
        let (part, part_signature) = match &answer {
            Answer::Granted(granted) => (granted.receipt(), granted.receipt_signature()),
            Answer::Refused(refusal) => (refusal.receipt(), refusal.receipt_signature()),
        };
        assert_eq!((part, part_signature), (Some(receipt), Some(signature)));
    }
}

pub(crate) async fn consent_is_bound_to_its_session(mut fixture: HubFixture) {
    let (one, other) = (fixture.session().await, fixture.session().await);
    let granted = ask_and_grant(&one, &mut fixture.listener).await;
    let called = other.call(granted, async |_| -> Result<(), Infallible> { panic!("it must not run") }).await;
    assert!(
        matches!(called, Err(CallError::Session(Error::ConsentMismatch(ConsentMismatch::OtherSession)))),
        "{called:?}"
    );
}

pub(crate) async fn consent_is_bound_to_its_action(mut fixture: HubFixture) {
    let session = fixture.session().await;
    let granted = ask_and_grant(&session, &mut fixture.listener).await;
    // The same arguments in another notation.
    let granted = granted.verify_call("send", r#"{ "amount": "5.00", "to": "Ben" }"#).unwrap();
    let other = granted.verify_call("send", r#"{"to":"Ben","amount":"5000.00"}"#);
    assert_eq!(other.err(), Some(Error::ConsentMismatch(ConsentMismatch::OtherAction)));
}

pub(crate) async fn a_rule_violation_is_refused_with_the_rule_id(mut fixture: HubFixture) {
    let session = fixture.session().await;
    let tool = session.tool("look").start().await.unwrap();
    // A state change out of `calling_tool` is not allowed while the tool runs.
    let refused = session.think("Meanwhile.").await.unwrap_err();
    assert_eq!(refused.rule_ids().collect::<Vec<_>>(), ["AAEP-4.3.2-3"]);
    tool.succeed("Seen.").await.unwrap();
    session.think("Afterwards.").await.unwrap();
    // A question without texts is refused.
    let refused = session.ask(Action::new("send", "{}")).await.unwrap_err();
    assert!(refused.rule_ids().count() > 0, "{refused}");
    let refused = session.ask(Action::new("send", "{").says("Send.").consequence("Gone.")).await;
    assert!(matches!(refused, Err(Error::Malformed(_))), "{refused:?}");
    session.finish("Done.").await.unwrap();
    let kinds = event_kinds(&fixture.listener.events_until("session.completed").await);
    assert_eq!(
        kinds,
        [
            "calling_tool",
            "tool.invoked",
            "tool.completed success",
            "thinking",
            "thinking",
            "session.completed"
        ]
    );
}

pub(crate) async fn deeply_nested_values_are_refused(mut fixture: HubFixture) {
    let deeply_nested = || JsonText::json(format!("{}1{}", r#"{"a":"#.repeat(65), "}".repeat(65)));
    let options = EventOptions::new().extension("x", "https://example.org/x", deeply_nested());
    let refused = fixture.hub.session("Pay Ben.").options(options).start().await;
    assert!(matches!(refused, Err(Error::Malformed(_))), "{refused:?}");
    let session = fixture.session().await;
    let hand_off =
        HandOff::new(HandOffTarget::EscalationQueue, "It is stuck.").packaged_context(deeply_nested());
    let refused = session.announce_hand_off(hand_off).await;
    assert!(matches!(refused, Err(Error::Malformed(_))), "{refused:?}");
    let question = payment_action().extra_context(deeply_nested());
    let refused = session.ask(question).await;
    assert!(matches!(refused, Err(Error::Malformed(_))), "{refused:?}");
    session.finish("Done.").await.unwrap();
    assert_eq!(event_kinds(&fixture.listener.events_until("session.completed").await), ["session.completed"]);
}

pub(crate) async fn an_invalid_final_summary_still_ends_the_session(mut fixture: HubFixture) {
    let session = fixture.session().await;
    let refused = session.finish("").await.unwrap_err();
    assert!(refused.rule_ids().count() > 0, "{refused}");
    let last = fixture.listener.next_event().await;
    assert_eq!(last["error_code"], "FINAL_EVENT_REJECTED");
}

pub(crate) async fn a_dropped_session_ends_with_an_error(mut fixture: HubFixture) {
    let session = fixture.session().await;
    session.output("Ben is ").await.unwrap();
    drop(session);
    let events = fixture.listener.events_until("session.errored").await;
    let last_chunk = events.iter().rfind(|event| event["chunk"].is_string()).unwrap();
    assert_eq!(last_chunk["complete"], true);
    assert_eq!(events.last().unwrap()["error_code"], "AGENT_LEFT");
}

pub(crate) async fn an_unused_grant_is_reported_when_the_session_is_dropped(mut fixture: HubFixture) {
    let unused_note = "An action was approved, but the agent never reported doing it, so it is not known whether it was done.";
    for is_used in [false, true] {
        let session = fixture.session().await;
        let answering = async {
            let question = fixture.listener.events_until("awaiting.confirmation").await.pop().unwrap();
            fixture.listener.decide(&question, "accept").await;
        };
        let (answer, ()) = tokio::join!(session.ask(payment_action()), answering);
        let Answer::Granted(granted) = answer.unwrap() else { panic!("refused") };
        if is_used {
            session.start_call(granted).await.unwrap().succeed("Sent.").await.unwrap();
        }
        drop(session);
        let last = fixture.listener.events_until("session.errored").await.pop().unwrap();
        let summary = last["summary_normal"].as_str().unwrap();
        assert!(summary.starts_with("The agent stopped in the middle of its work"), "{summary}");
        assert_eq!(summary.ends_with(unused_note), !is_used, "{summary}");
    }
}

pub(crate) async fn a_panic_of_the_agent_is_reported(mut fixture: HubFixture) {
    let session = fixture.session().await;
    let agent = tokio::spawn(async move {
        let _tool = session.tool("look").start().await.unwrap();
        panic!("on purpose");
    });
    assert!(agent.await.unwrap_err().is_panic());
    let events = fixture.listener.events_until("session.errored").await;
    let expected = ["calling_tool", "tool.invoked", "tool.completed timeout", "thinking", "session.errored"];
    assert_eq!(event_kinds(&events), expected);
    assert_eq!(events.last().unwrap()["error_code"], "AGENT_PANICKED");
}

pub(crate) async fn a_cancelled_future_closes_its_tool_call(mut fixture: HubFixture) {
    let session = fixture.session().await;
    let (start_sender, started) = tokio::sync::oneshot::channel();
    let forever = session.tool("look").run(async move {
        let _ = start_sender.send(());
        std::future::pending::<Result<(), Infallible>>().await
    });
    tokio::select! {
        _ = forever => panic!("it does not end"),
        _ = started => {}
    }
    // The session itself continues.
    session.think("Giving up on it.").await.unwrap();
    session.finish("Done.").await.unwrap();
    let kinds = event_kinds(&fixture.listener.events_until("session.completed").await);
    let expected = [
        "calling_tool",
        "tool.invoked",
        "tool.completed timeout",
        "thinking",
        "thinking",
        "session.completed",
    ];
    assert_eq!(kinds, expected);
}

pub(crate) async fn a_failed_tool_and_a_timed_out_tool_are_reported(mut fixture: HubFixture) {
    let session = fixture.session().await;
    let failed = session.tool("look").run(async { Err::<(), _>("password: hunter2 is wrong") }).await;
    assert_eq!(failed, Err(CallError::Tool("password: hunter2 is wrong")));
    let slow = session.tool("look").timeout(Duration::from_millis(1));
    let slow = slow.run(std::future::pending::<Result<(), Infallible>>()).await;
    assert_eq!(slow, Err(CallError::TimedOut));
    session.fail("It could not be seen.").await.unwrap();
    let events = fixture.listener.events_until("session.errored").await;
    let ended: Vec<_> = events.iter().filter(|event| event["status"].is_string()).collect();
    assert_eq!(ended[0]["error_message"], "password: [redacted] is wrong");
    assert_eq!((&ended[0]["status"], &ended[1]["status"]), (&json!("error"), &json!("timeout")));
}

pub(crate) async fn tools_run_concurrently(mut fixture: HubFixture) {
    let session = fixture.session().await;
    let (left, right) = tokio::join!(session.tool("left").start(), session.tool("right").start());
    let (left, right) = (left.unwrap(), right.unwrap());
    left.succeed("Left.").await.unwrap();
    right.succeed("Right.").await.unwrap();
    session.finish("Both.").await.unwrap();
    let kinds = event_kinds(&fixture.listener.events_until("session.completed").await);
    let expected = [
        "calling_tool",
        "tool.invoked",
        "tool.invoked",
        "tool.completed success",
        "tool.completed success",
        "thinking",
        "session.completed",
    ];
    assert_eq!(kinds, expected);
}

pub(crate) async fn a_stop_request_reaches_the_agent(mut fixture: HubFixture) {
    let session = fixture.session().await;
    let working = session.tool("look").run(std::future::pending::<Result<(), Infallible>>());
    let stopping = async {
        fixture.listener.events_until("tool.invoked").await;
        fixture.listener.stop_session(session.id()).await;
    };
    let (worked, ()) = tokio::join!(working, stopping);
    assert_eq!(worked, Err(CallError::Session(Error::Stopped(StopReason::Person))));
    assert_eq!(session.stopped().await, StopReason::Person);
    assert_eq!(session.think("On.").await, Err(Error::Stopped(StopReason::Person)));
    drop(session);
    let events = fixture.listener.events_until("session.cancelled").await;
    assert_eq!(events.last().unwrap()["cancelled_by"], "user");
}

pub(crate) async fn a_stop_request_ends_an_open_question(mut fixture: HubFixture) {
    let session = fixture.session().await;
    let stopping = async {
        fixture.listener.events_until("awaiting.confirmation").await;
        fixture.listener.stop_session(session.id()).await;
    };
    let (answer, ()) = tokio::join!(session.ask(payment_action()), stopping);
    assert_eq!(answer.err(), Some(Error::Stopped(StopReason::Person)));
}

pub(crate) async fn clarifications_return_the_answer(mut fixture: HubFixture) {
    let session = fixture.session().await;
    let request = ClarificationRequest::new("Which Ben?").choice("a", "Ben Adams").choice("o", "Ben Okri");
    let (answer, ()) = tokio::join!(session.clarify(request), fixture.listener.clarify_next(json!("o")));
    assert_eq!(answer, Ok(ClarificationAnswer::Text("o".to_owned())));
    let request = ClarificationRequest::new("Are you sure?").accept_yes_no();
    let (answer, ()) = tokio::join!(session.clarify(request), fixture.listener.clarify_next(json!(true)));
    assert_eq!(answer, Ok(ClarificationAnswer::YesNo(true)));
    session.finish("Understood.").await.unwrap();
}

pub(crate) async fn the_agent_can_work_while_a_question_is_open(mut fixture: HubFixture) {
    let session = fixture.session().await;
    let meanwhile = async {
        fixture.listener.events_until("awaiting.confirmation").await;
        session.think("Looking at other things.").await.unwrap();
        session.tool("look").run(async { Ok::<_, Infallible>(()) }).await.unwrap();
        let kinds = event_kinds(&fixture.listener.events_until("tool.completed").await);
        // A state change would mean that the question is resolved, so the thought is reported as progress.
        assert_eq!(kinds, ["progress.updated", "tool.invoked", "tool.completed success"]);
        fixture.listener.stop_session(session.id()).await;
    };
    let (answer, ()) = tokio::join!(session.ask(payment_action()), meanwhile);
    assert_eq!(answer.err(), Some(Error::Stopped(StopReason::Person)));
}

pub(crate) async fn output_is_completed_before_the_next_activity(mut fixture: HubFixture) {
    let session = fixture.session().await;
    session.output("Looking").await.unwrap();
    session.tool("look").run(async { Ok::<_, Infallible>(()) }).await.unwrap();
    session.output("Seen").await.unwrap();
    session.finish("Done.").await.unwrap();
    let events = fixture.listener.events_until("session.completed").await;
    let mut outputs = vec![String::new()];
    for event in events.iter().filter(|event| event["chunk"].is_string()) {
        outputs.last_mut().unwrap().push_str(event["chunk"].as_str().unwrap());
        if event["complete"] == true {
            outputs.push(String::new());
        }
    }
    assert_eq!(outputs, ["Looking", "Seen", ""]);
}

pub(crate) async fn an_oversized_text_is_refused_but_a_long_output_is_not(mut fixture: HubFixture) {
    let session = fixture.session().await;
    let refused = session.think("a".repeat(2 * 1024 * 1024)).await.unwrap_err();
    assert!(matches!(refused, Error::LimitReached(_) | Error::RuleViolations(_)), "{refused:?}");
    let long = "word".repeat(20_000);
    let agent = async {
        session.output(long.as_str()).await.unwrap();
        session.finish("Done.").await.unwrap();
    };
    let ((), events) = tokio::join!(agent, fixture.listener.events_until("session.completed"));
    let length: usize = events.iter().filter_map(|event| event["chunk"].as_str()).map(str::len).sum();
    assert_eq!(length, long.len());
}

/// §4.2.2: of quick updates that differ by less than five percent, only the last is sent, before anything else.
pub(crate) async fn quick_progress_is_merged_and_its_last_update_is_sent(mut fixture: HubFixture) {
    let builder = fixture.hub.session("Read the letters.").progress_interval(Duration::from_hours(1));
    let session = builder.start().await.unwrap();
    let read = |step| ProgressUpdate::new("Reading the letters.").step(step, 100);
    for step in [1, 2, 3, 4, 50, 51, 52] {
        session.progress(read(step)).await.unwrap();
    }
    // Other words, or no number, are never merged.
    session.progress(ProgressUpdate::new("Sorting the letters.").step(53, 100)).await.unwrap();
    session.progress(ProgressUpdate::new("Nearly done.")).await.unwrap();
    session.progress(read(98)).await.unwrap();
    session.progress(read(99)).await.unwrap();
    session.tool("sort").run(async { Ok::<_, Infallible>(()) }).await.unwrap();
    session.progress(read(97)).await.unwrap();
    session.finish("Two bills.").await.unwrap();
    let events = fixture.listener.events_until("session.completed").await;
    let reported: Vec<_> = events
        .iter()
        .filter_map(|event| match event["type"].as_str().unwrap() {
            "aaep:agent.progress.updated" => {
                Some(event["progress"]["step"].as_u64().map_or("?".to_owned(), |step| step.to_string()))
            }
            "aaep:agent.tool.invoked" => Some("tool".to_owned()),
            _ => None,
        })
        .collect();
    // The end of the session sends the last one.
    assert_eq!(reported, ["1", "50", "52", "53", "?", "98", "99", "tool", "97"]);
}

pub(crate) async fn held_progress_is_sent_when_its_time_is_over(mut fixture: HubFixture) {
    let session = fixture.hub.session("Read.").progress_interval(Duration::from_millis(20));
    let session = session.start().await.unwrap();
    for step in [1, 2, 3] {
        session.progress(ProgressUpdate::new("Reading.").step(step, 100)).await.unwrap();
    }
    // Nothing else is reported.
    while fixture.listener.next_event().await["progress"]["step"] != 3 {}
    session.finish("Read.").await.unwrap();
}

pub(crate) async fn closing_the_hub_sends_held_progress(mut fixture: HubFixture) {
    let session = fixture.hub.session("Read.").progress_interval(Duration::from_hours(1));
    let session = session.start().await.unwrap();
    for step in [1, 2] {
        session.progress(ProgressUpdate::new("Reading.").step(step, 100)).await.unwrap();
    }
    fixture.hub.clone().close().await;
    while fixture.listener.next_event().await["progress"]["step"] != 2 {}
    session.finish("Read.").await.unwrap();
}
