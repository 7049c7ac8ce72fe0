//! The callbacks, for frameworks that call a handler at each step.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use sayso::bridge::{BridgeEnding, BridgeFault, BridgeReport, Denial, UnconfirmedCall};
use sayso::callbacks::{
    CALLBACK_QUEUE_CAPACITY, Callbacks, SessionReporter, SessionReporterBuilder, ToolPlan,
};
use sayso::{Action, Error, HandOff, HandOffOutcome, HandOffTarget, ResolvedBy, StopReason};
use tokio::task::JoinHandle;

use crate::support::fixture::{HubFixture, TestListener, event_kinds};

/// Requires consent for `send` and for no other tool.
fn plan(tool: &str, input: &str) -> ToolPlan {
    if tool == "send" {
        let action =
            Action::new(tool, input).says("Send 5 euros to Ben.").consequence("The money is gone at once.");
        action.irreversible().into()
    } else {
        UnconfirmedCall::new(tool).says(format!("Using {tool}.")).into()
    }
}

const TO_BEN: &str = r#"{"to":"Ben","amount":"5.00"}"#;

fn open_reporter(fixture: &HubFixture) -> (SessionReporter, JoinHandle<BridgeReport>) {
    let (reporter, running) = SessionReporterBuilder::new(&fixture.hub).plan_calls(plan).open();
    (reporter, tokio::spawn(running))
}

/// Starts a chain with the run id `c` and returns its reporter.
async fn start_chain(fixture: &mut HubFixture) -> (SessionReporter, JoinHandle<BridgeReport>) {
    let (reporter, running) = open_reporter(fixture);
    reporter.on_chain_start("c", "Pay Ben.").unwrap();
    let event = fixture.listener.next_event().await;
    assert_eq!(
        (&event["type"], &event["request_text"]),
        (&"aaep:agent.session.started".into(), &"Pay Ben.".into())
    );
    (reporter, running)
}

async fn assert_clean_end(running: JoinHandle<BridgeReport>) {
    let report = running.await.unwrap();
    assert_eq!((report.ending, report.faults), (BridgeEnding::ByAgent, vec![]));
}

pub(crate) async fn each_callback_emits_its_event(mut fixture: HubFixture) {
    let (reporter, running) = start_chain(&mut fixture).await;
    reporter.on_llm_start("m", "You are a bank.").unwrap();
    assert!(reporter.on_tool_start("t", "find", "Ben").await.unwrap().arguments().is_none());
    reporter.on_tool_end("t", "found").unwrap();
    let _ = reporter.on_tool_start("u", "look", "Ben").await.unwrap();
    reporter.on_tool_error("u", "He is not there.").unwrap();
    for token in ["Ben ", "is ", "away."] {
        reporter.on_llm_new_token("m", token).unwrap();
    }
    reporter.on_chain_end("c", "Ben is away.").unwrap();
    assert_clean_end(running).await;
    let events = fixture.listener.events_until("session.completed").await;
    let mut kinds = event_kinds(&events);
    kinds.dedup();
    let expected = [
        "thinking",
        "calling_tool",
        "tool.invoked",
        "tool.completed success",
        "thinking",
        "calling_tool",
        "tool.invoked",
        "tool.completed error",
        "thinking",
        "writing_output",
        "output.streaming",
        "thinking",
        "session.completed",
    ];
    assert_eq!(kinds, expected);
    let failed = events.iter().find(|event| event["status"] == "error").unwrap();
    assert_eq!(failed["error_message"], "He is not there.");
    let chunks: String = events.iter().filter_map(|event| event["chunk"].as_str()).collect();
    assert_eq!(chunks, "Ben is away.");
    let first_chunk = events.iter().find(|event| event["chunk"].is_string()).unwrap();
    assert_eq!(first_chunk["content_type"], "text/markdown", "models write Markdown");
    assert_eq!(events.last().unwrap()["summary_normal"], "Ben is away.");
    assert!(!format!("{events:?}").contains("You are a bank"), "listeners never receive a prompt");
}

pub(crate) async fn an_acceptance_grants_permission_after_the_call_is_announced(mut fixture: HubFixture) {
    let (reporter, running) = start_chain(&mut fixture).await;
    let has_run = Arc::<AtomicBool>::default();
    let framework = async {
        let permission = reporter.on_tool_start("t", "send", TO_BEN).await.unwrap();
        has_run.store(true, Ordering::SeqCst);
        assert_eq!(permission.arguments(), Some(TO_BEN));
    };
    let answering = async {
        let question = fixture.listener.events_until("awaiting.confirmation").await.pop().unwrap();
        assert!(!has_run.load(Ordering::SeqCst), "nobody has answered");
        fixture.listener.decide(&question, "accept").await;
        fixture.listener.events_until("tool.invoked").await;
    };
    tokio::join!(framework, answering);
    reporter.on_tool_end("t", "sent").unwrap();
    reporter.on_chain_end("c", "Sent.").unwrap();
    assert_clean_end(running).await;
    let kinds = event_kinds(&fixture.listener.events_until("session.completed").await);
    assert_eq!(kinds, ["tool.completed success", "thinking", "session.completed"]);
}

pub(crate) async fn a_rejected_tool_does_not_run(mut fixture: HubFixture) {
    let (reporter, running) = start_chain(&mut fixture).await;
    let (permission, _) =
        tokio::join!(reporter.on_tool_start("t", "send", TO_BEN), fixture.listener.decide_next("reject"));
    assert!(matches!(permission, Err(Denial::Refused(refusal)) if refusal.by == ResolvedBy::Reply));
    // The framework reports the end of the tool anyway.
    reporter.on_tool_end("t", "sent").unwrap();
    reporter.on_chain_end("c", "Nothing was sent.").unwrap();
    let report = running.await.unwrap();
    assert_eq!(report.faults, [BridgeFault::EndedWithoutPermission("t".to_owned())]);
    let kinds = event_kinds(&fixture.listener.events_until("session.completed").await);
    assert!(!kinds.iter().any(|kind| kind.starts_with("tool.")), "{kinds:?}");
}

pub(crate) async fn an_unknown_tool_requires_consent(mut fixture: HubFixture) {
    let (reporter, running) = SessionReporterBuilder::new(&fixture.hub).open();
    let running = tokio::spawn(running);
    reporter.on_chain_start("c", "Launch it.").unwrap();
    let (permission, question) = tokio::join!(
        reporter.on_tool_start("t", "launch", "not JSON"),
        fixture.listener.decide_next("accept")
    );
    assert_eq!(permission.unwrap().arguments(), Some(r#""not JSON""#));
    assert_eq!(
        (&question["risk_level"], &question["action"]),
        (&"high".into(), &"Use launch with: not JSON".into())
    );
    reporter.on_tool_end("t", "").unwrap();
    reporter.on_chain_end("c", "Launched.").unwrap();
    assert_clean_end(running).await;
}

pub(crate) async fn a_thread_without_a_runtime_can_wait_for_permission(mut fixture: HubFixture) {
    let (reporter, running) = start_chain(&mut fixture).await;
    // This thread has no async runtime.
    let framework = std::thread::spawn(move || {
        reporter.on_llm_start("m", "").unwrap();
        let permission = reporter.on_tool_start("t", "send", TO_BEN).wait();
        assert!(permission.is_ok());
        reporter.on_tool_end("t", "").unwrap();
        reporter.on_chain_end("c", "Sent.").unwrap();
    });
    fixture.listener.decide_next("accept").await;
    let kinds = event_kinds(&fixture.listener.events_until("session.completed").await);
    assert!(kinds.contains(&"tool.completed success".to_owned()), "{kinds:?}");
    assert_clean_end(running).await;
    framework.join().unwrap();
}

pub(crate) async fn unmatched_ends_are_faults_and_emit_no_events(mut fixture: HubFixture) {
    let reported = Arc::<Mutex<Vec<String>>>::default();
    let faults = reported.clone();
    let builder = SessionReporterBuilder::new(&fixture.hub).plan_calls(plan);
    let (reporter, running) =
        builder.on_fault(move |fault| faults.lock().unwrap().push(fault.to_string())).open();
    let running = tokio::spawn(running);
    reporter.on_chain_start("c", "Pay Ben.").unwrap();
    reporter.on_tool_end("never", "").unwrap();
    reporter.on_tool_error("neither", "").unwrap();
    let _ = reporter.on_tool_start("t", "look", "").await.unwrap();
    let again = reporter.on_tool_start("t", "look", "").await;
    assert_eq!(again.unwrap_err(), Denial::Abandoned);
    reporter.on_tool_end("t", "").unwrap();
    reporter.on_tool_end("t", "").unwrap();
    reporter.on_tool_error("t", "").unwrap();
    reporter.on_chain_start("c", "Pay Ben.").unwrap();
    reporter.on_chain_end("other", "Done.").unwrap();
    // A run id may be reused after its run has ended.
    let _ = reporter.on_tool_start("t", "look", "").await.unwrap();
    reporter.on_tool_end("t", "").unwrap();
    reporter.on_chain_end("c", "Done.").unwrap();
    let report = running.await.unwrap();
    assert_eq!(report.ending, BridgeEnding::ByAgent);
    let fault = |fault: fn(String) -> BridgeFault, run: &str| fault(run.to_owned());
    let expected = [
        fault(BridgeFault::NeverStarted, "never"),
        fault(BridgeFault::NeverStarted, "neither"),
        fault(BridgeFault::DuplicateRun, "t"),
        fault(BridgeFault::AlreadyEnded, "t"),
        fault(BridgeFault::AlreadyEnded, "t"),
        fault(BridgeFault::DuplicateRun, "c"),
        fault(BridgeFault::NeverStarted, "other"),
    ];
    assert_eq!(report.faults, expected);
    assert_eq!(*reported.lock().unwrap(), expected.map(|fault| fault.to_string()));
    let kinds = event_kinds(&fixture.listener.events_until("session.completed").await);
    let tool_call = ["calling_tool", "tool.invoked", "tool.completed success", "thinking"];
    let expected = [&["session.started"][..], &tool_call, &tool_call, &["session.completed"]].concat();
    assert_eq!(kinds, expected);
}

pub(crate) async fn an_unfinished_tool_is_closed_with_the_session(mut fixture: HubFixture) {
    let (reporter, running) = start_chain(&mut fixture).await;
    let _ = reporter.on_tool_start("t", "look", "").await.unwrap();
    reporter.on_chain_end("c", "Done.").unwrap();
    let report = running.await.unwrap();
    assert_eq!(
        (report.ending, report.faults),
        (BridgeEnding::ByAgent, vec![BridgeFault::NeverEnded("t".to_owned())])
    );
    let events = fixture.listener.events_until("session.completed").await;
    let closed = events.iter().find(|event| event["status"] == "timeout").unwrap();
    assert!(closed["error_message"].as_str().unwrap().contains("its outcome is unknown"), "{closed}");
}

pub(crate) async fn callbacks_after_the_end_are_refused(mut fixture: HubFixture) {
    let (reporter, running) = start_chain(&mut fixture).await;
    // Callbacks that arrive before the session has ended are accepted and reported as faults.
    reporter.on_chain_end("c", "Done.").unwrap();
    reporter.on_chain_end("c", "Done again.").unwrap();
    reporter.on_llm_new_token("m", "More.").unwrap();
    let report = running.await.unwrap();
    assert_eq!(report.faults, [BridgeFault::AfterEnd("finish"), BridgeFault::AfterEnd("output")]);
    assert_eq!(reporter.on_tool_end("t", ""), Err(Error::Stopped(StopReason::Other)));
    let permission = reporter.on_tool_start("t", "look", "").await;
    assert_eq!(permission.unwrap_err(), Denial::Error(Error::Stopped(StopReason::Other)));
    assert_eq!(reporter.wait_for_end().await, StopReason::Other);
    assert_eq!(fixture.listener.next_event().await["summary_normal"], "Done.");
}

pub(crate) async fn callbacks_before_the_start_are_faults(mut fixture: HubFixture) {
    let (reporter, running) = open_reporter(&fixture);
    reporter.on_llm_start("m", "").unwrap();
    assert_eq!(reporter.on_tool_start("t", "look", "").await.unwrap_err(), Denial::Abandoned);
    reporter.on_chain_end("c", "Done.").unwrap();
    reporter.on_chain_start("c", "Pay Ben.").unwrap();
    reporter.on_chain_end("c", "Done.").unwrap();
    let report = running.await.unwrap();
    let never = BridgeFault::NeverStarted("c".to_owned());
    assert_eq!(report.faults, [BridgeFault::BeforeStart("think"), BridgeFault::BeforeStart("tool"), never]);
    let kinds = event_kinds(&fixture.listener.events_until("session.completed").await);
    assert_eq!(kinds, ["session.started", "session.completed"]);
}

pub(crate) async fn nested_chains_are_not_reported(mut fixture: HubFixture) {
    let (reporter, running) = start_chain(&mut fixture).await;
    reporter.on_chain_start("inner", "A part of it.").unwrap();
    reporter.on_chain_start("more", "A part of that.").unwrap();
    reporter.on_chain_error("more", "It failed.").unwrap();
    reporter.on_chain_end("inner", "Done.").unwrap();
    reporter.on_chain_end("c", "All done.").unwrap();
    assert_clean_end(running).await;
    assert_eq!(fixture.listener.next_event().await["summary_normal"], "All done.");
}

pub(crate) async fn a_model_run_inside_a_tool_is_reported_as_progress_and_each_model_has_its_own_output(
    mut fixture: HubFixture,
) {
    let (reporter, running) = start_chain(&mut fixture).await;
    let _ = reporter.on_tool_start("t", "look", "").await.unwrap();
    reporter.on_llm_start("m", "").unwrap();
    reporter.on_tool_end("t", "").unwrap();
    reporter.on_llm_new_token("m", "One.").unwrap();
    reporter.on_llm_new_token("n", "Two.").unwrap();
    reporter.on_chain_end("c", "Done.").unwrap();
    assert_clean_end(running).await;
    let events = fixture.listener.events_until("session.completed").await;
    let kinds = event_kinds(&events);
    assert_eq!(&kinds[..4], ["calling_tool", "tool.invoked", "progress.updated", "tool.completed success"]);
    let mut outputs: Vec<_> = events.iter().filter_map(|event| event["output_id"].as_str()).collect();
    outputs.dedup();
    assert_eq!(outputs.len(), 2, "{outputs:?}");
}

pub(crate) async fn a_failed_chain_is_reported(mut fixture: HubFixture) {
    let (reporter, running) = start_chain(&mut fixture).await;
    reporter.on_chain_error("c", "The model is away; its password: hunter2 was wrong.").unwrap();
    assert_clean_end(running).await;
    let last = fixture.listener.next_event().await;
    assert_eq!(last["type"], "aaep:agent.session.errored");
    assert_eq!(last["summary_normal"], "The model is away; its password: [redacted] was wrong.");
}

pub(crate) async fn dropping_the_reporter_ends_its_session(mut fixture: HubFixture) {
    let (reporter, running) = start_chain(&mut fixture).await;
    let _ = reporter.on_tool_start("t", "look", "").await.unwrap();
    drop(reporter);
    let report = running.await.unwrap();
    assert_eq!(
        (report.ending, report.faults),
        (BridgeEnding::StreamEnded, vec![BridgeFault::NeverEnded("t".to_owned())])
    );
    let events = fixture.listener.events_until("session.errored").await;
    assert_eq!(events.last().unwrap()["error_code"], "AGENT_LEFT");
}

pub(crate) async fn a_stop_request_reaches_the_framework(mut fixture: HubFixture) {
    let (reporter, running) = open_reporter(&fixture);
    reporter.on_chain_start("c", "Pay Ben.").unwrap();
    let session = fixture.listener.next_event().await["session_id"].as_str().unwrap().to_owned();
    let permission = reporter.on_tool_start("t", "send", TO_BEN);
    fixture.listener.events_until("awaiting.confirmation").await;
    fixture.listener.stop_session(&session).await;
    assert!(permission.await.is_err());
    assert_eq!(reporter.wait_for_end().await, StopReason::Person);
    assert_eq!(running.await.unwrap().ending, BridgeEnding::Stopped(StopReason::Person));
    assert_eq!(reporter.on_llm_new_token("m", "More."), Err(Error::Stopped(StopReason::Person)));
    let events = fixture.listener.events_until("session.cancelled").await;
    assert_eq!(events.last().unwrap()["cancelled_by"], "user");
}

pub(crate) async fn a_question_nobody_waits_for_is_withdrawn(mut fixture: HubFixture) {
    let (reporter, running) = start_chain(&mut fixture).await;
    let permission = reporter.on_tool_start("t", "send", TO_BEN);
    let question = fixture.listener.events_until("awaiting.confirmation").await.pop().unwrap();
    drop(permission);
    // The question is withdrawn, and listeners are informed. An accept then has no effect.
    let withdrawal = fixture.listener.events_until("state.changed").await.pop().unwrap();
    assert_eq!(withdrawal["extensions"]["sayso"]["by"], "cancelled");
    fixture.listener.decide(&question, "accept").await;
    reporter.on_chain_end("c", "Given up.").unwrap();
    let report = running.await.unwrap();
    assert_eq!(report.faults, [BridgeFault::AnswerAbandoned("t".to_owned())]);
    let kinds = event_kinds(&fixture.listener.events_until("session.completed").await);
    assert_eq!(kinds, ["session.completed"]);
}

pub(crate) async fn a_tool_result_is_announced_only_through_its_description(mut fixture: HubFixture) {
    for (has_description, expected) in [(true, "2 were found."), (false, "Find has finished.")] {
        let mut builder = SessionReporterBuilder::new(&fixture.hub).plan_calls(plan);
        if has_description {
            builder =
                builder.describe_results(|output| format!("{} were found.", output.lines().count()).into());
        }
        let (reporter, running) = builder.open();
        let running = tokio::spawn(running);
        reporter.on_chain_start("c", "Find them.").unwrap();
        let _ = reporter.on_tool_start("t", "find", "").await.unwrap();
        reporter.on_tool_end("t", "a\nb\n").unwrap();
        reporter.on_chain_end("c", "Found.").unwrap();
        assert_clean_end(running).await;
        let events = fixture.listener.events_until("session.completed").await;
        let ended = events.iter().find(|event| event["status"] == "success").unwrap();
        assert_eq!(ended["summary_normal"], expected);
    }
}

pub(crate) async fn long_and_empty_texts_are_accepted(mut fixture: HubFixture) {
    let long = "long ".repeat(100_000);
    for text in [long.as_str(), "", " "] {
        let (reporter, running) = open_reporter(&fixture);
        reporter.on_chain_start("c", text).unwrap();
        let permission = reporter.on_tool_start("t", "look", text).await;
        let _ = permission.unwrap();
        reporter.on_tool_error("t", text).unwrap();
        reporter.on_chain_end("c", text).unwrap();
        assert_clean_end(running).await;
        fixture.listener.events_until("session.completed").await;
    }
}

#[tokio::test]
async fn callbacks_beyond_the_queue_capacity_are_refused() {
    let hub = sayso::Hub::embedded().open().unwrap();
    let (reporter, running) = SessionReporterBuilder::new(&hub).open();
    for _ in 0..CALLBACK_QUEUE_CAPACITY {
        reporter.on_llm_new_token("m", "a").unwrap();
    }
    assert!(matches!(reporter.on_llm_new_token("m", "a"), Err(Error::LimitReached(_))));
    assert!(matches!(
        reporter.on_tool_start("t", "look", "").await,
        Err(Denial::Error(Error::LimitReached(_)))
    ));
    drop(running);
    assert_eq!(reporter.on_llm_start("m", ""), Err(Error::Stopped(StopReason::Other)));
}

#[tokio::test]
async fn an_accepted_call_that_cannot_be_announced_is_denied() {
    let limits = hub::HubLimits { open_items_per_session: 1, ..hub::HubLimits::default() };
    let hub = sayso::Hub::embedded().listen("127.0.0.1:0").limits(limits).open().unwrap();
    let mut listener = TestListener::listen(&hub.address().unwrap().to_string()).await;
    // The accepted call is never announced.
    listener.ignore_rule("AAEP-4.5.3-2");
    let (reporter, running) = SessionReporterBuilder::new(&hub).plan_calls(plan).open();
    let running = tokio::spawn(running);
    reporter.on_chain_start("c", "Pay Ben.").unwrap();
    let permission = reporter.on_tool_start("t", "send", TO_BEN);
    let question = listener.events_until("awaiting.confirmation").await.pop().unwrap();
    // In the meantime, another tool runs, and the limit allows no second one.
    let _ = reporter.on_tool_start("u", "look", "").await.unwrap();
    listener.decide(&question, "accept").await;
    let denied = permission.await.unwrap_err();
    assert!(matches!(denied, Denial::Error(Error::RuleViolations(_))), "{denied:?}");
    reporter.on_tool_end("u", "").unwrap();
    reporter.on_chain_end("c", "Nothing was sent.").unwrap();
    let report = running.await.unwrap();
    assert!(matches!(report.faults[..], [BridgeFault::Rejected { step: "tool", .. }]), "{report:?}");
    let events = listener.events_until("session.completed").await;
    assert!(!events.iter().any(|event| event["tool"] == "send" && event["status"].is_string()), "{events:?}");
}

pub(crate) async fn the_outcome_of_a_hand_off_reaches_the_framework(mut fixture: HubFixture) {
    let (reporter, running) = start_chain(&mut fixture).await;
    for (kind, note) in [("acknowledge", "I have it."), ("reject", "Not mine.")] {
        let outcome = reporter.hand_off(HandOff::new(HandOffTarget::Human, "The refund needs a person."));
        fixture.listener.answer_next_hand_off(kind, Some(note)).await;
        let outcome = outcome.await.unwrap();
        assert!(format!("{outcome:?}").contains(note), "{outcome:?}");
        assert_eq!(matches!(outcome, HandOffOutcome::Acknowledged { .. }), kind == "acknowledge");
    }
    reporter.on_chain_end("c", "Somebody else pays.").unwrap();
    assert_clean_end(running).await;
    let late = reporter.hand_off(HandOff::new(HandOffTarget::Human, "Too late."));
    assert!(matches!(late.await, Err(Denial::Error(Error::Stopped(_)))));
}
