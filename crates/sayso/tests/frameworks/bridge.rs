//! The event bridge, for frameworks that publish a stream of events.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{self, Stream, StreamExt};
use sayso::bridge::{
    AgentStep, AnswerSender, BridgeEnding, BridgeFault, BridgeReport, Denial, EventBridge, UnconfirmedCall,
};
use sayso::{
    Action, ClarificationAnswer, ClarificationRequest, Error, HandOff, HandOffOutcome, HandOffTarget,
    ProgressUpdate, StateChange, StopReason,
};
use serde_json::json;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::support::fixture::{HubFixture, event_kinds};

fn send_action(to: &str) -> Action {
    Action::new("send", format!(r#"{{"to":"{to}"}}"#))
        .says(format!("Send 5 euros to {to}."))
        .consequence("The money is gone at once.")
        .irreversible()
}

/// Starts a bridge on a session that has already started. The framework's events are the steps themselves.
async fn start_bridge(
    fixture: &mut HubFixture,
    configure: fn(EventBridge) -> EventBridge,
) -> (mpsc::UnboundedSender<AgentStep>, JoinHandle<BridgeReport>) {
    let bridge = configure(EventBridge::with_session(fixture.session().await));
    let (steps, mut queue) = mpsc::unbounded_channel();
    let queue = stream::poll_fn(move |context| queue.poll_recv(context));
    (steps, tokio::spawn(bridge.run(queue, |step| [step])))
}

/// Runs a complete list of steps on a session that has already started.
async fn run_steps<const N: usize>(fixture: &mut HubFixture, steps: [AgentStep; N]) -> BridgeReport {
    EventBridge::with_session(fixture.session().await).run(stream::iter([steps]), |steps| steps).await
}

pub(crate) async fn a_stream_of_steps_is_reported(mut fixture: HubFixture) {
    let hub = fixture.hub.clone();
    let steps = [
        AgentStep::start(hub.session("Pay Ben.").state("searching", "Searching.")),
        AgentStep::change_state(StateChange::custom("searching")),
        AgentStep::think("Looking for Ben."),
        AgentStep::decide("Which of two Bens."),
        AgentStep::progress(ProgressUpdate::new("Half done.").percent(50.0)),
        AgentStep::tool(
            "1",
            UnconfirmedCall::new("find").says("Finding Ben.").args_summary("Ben").medium_risk(),
        ),
        AgentStep::tool_succeeded("1", "Ben is found."),
        AgentStep::tool("2", UnconfirmedCall::new("find")),
        AgentStep::tool_failed("2", "He is away."),
        AgentStep::tool("3", UnconfirmedCall::new("find")),
        AgentStep::tool_timed_out("3"),
        AgentStep::output("Ben "),
        AgentStep::output("is found."),
        AgentStep::finish_output(),
        AgentStep::hand_off(HandOff::new(HandOffTarget::Human, "Only a human may pay.")),
        AgentStep::cancel("Somebody else is taking over."),
    ];
    let report = EventBridge::new().run(stream::iter(steps), Some).await;
    assert_eq!((report.ending, report.faults), (BridgeEnding::ByAgent, vec![]));
    let events = fixture.listener.events_until("session.cancelled").await;
    let mut kinds = event_kinds(&events);
    kinds.dedup();
    let tool_call_kinds =
        |status: &str| ["calling_tool", "tool.invoked", status, "thinking"].map(str::to_owned);
    let mut expected = ["session.started", "searching", "thinking", "deciding", "progress.updated"]
        .map(str::to_owned)
        .to_vec();
    expected.extend(
        ["success", "error", "timeout"]
            .iter()
            .flat_map(|status| tool_call_kinds(&format!("tool.completed {status}"))),
    );
    let rest = [
        "writing_output",
        "output.streaming",
        "thinking",
        "handing_off",
        "handoff.requested",
        "session.cancelled",
    ];
    expected.extend(rest.map(str::to_owned));
    assert_eq!(kinds, expected);
    let invoked = events.iter().find(|event| event["type"] == "aaep:agent.tool.invoked").unwrap();
    assert_eq!((&invoked["risk_level"], &invoked["args_summary"]), (&json!("medium"), &json!("Ben")));
}

pub(crate) async fn decisions_are_returned_to_the_framework(mut fixture: HubFixture) {
    for decision in ["accept", "reject"] {
        let (steps, running) = start_bridge(&mut fixture, |bridge| bridge).await;
        let (answer_sender, mut answers) = mpsc::unbounded_channel();
        let sender = AnswerSender::callback(move |answer| answer_sender.send(answer).unwrap());
        steps.send(AgentStep::ask("1", send_action("Ben"), sender)).unwrap();
        fixture.listener.decide_next(decision).await;
        let answer = answers.recv().await.unwrap();
        assert_eq!(answer.is_ok(), decision == "accept");
        if let Ok(permission) = answer {
            assert_eq!(permission.arguments(), Some(r#"{"to":"Ben"}"#));
            steps.send(AgentStep::tool_succeeded("1", "Sent.")).unwrap();
        }
        steps.send(AgentStep::finish("Done.")).unwrap();
        let report = running.await.unwrap();
        assert_eq!((report.ending, report.faults), (BridgeEnding::ByAgent, vec![]));
        let kinds = event_kinds(&fixture.listener.events_until("session.completed").await);
        assert_eq!(kinds.contains(&"tool.completed success".to_owned()), decision == "accept", "{kinds:?}");
    }
}

pub(crate) async fn concurrent_questions_get_their_own_answers(mut fixture: HubFixture) {
    let (steps, running) = start_bridge(&mut fixture, |bridge| bridge).await;
    let ((to_ben, ben), (to_ada, ada)) = (AnswerSender::channel(), AnswerSender::channel());
    steps.send(AgentStep::ask("1", send_action("Ben"), to_ben)).unwrap();
    steps.send(AgentStep::ask("2", send_action("Ada"), to_ada)).unwrap();
    let first = fixture.listener.events_until("awaiting.confirmation").await.pop().unwrap();
    let second = fixture.listener.events_until("awaiting.confirmation").await.pop().unwrap();
    assert_eq!(first["action"], "Send 5 euros to Ben.");
    fixture.listener.decide(&second, "accept").await;
    assert_eq!(ada.await.unwrap().arguments(), Some(r#"{"to":"Ada"}"#));
    fixture.listener.decide(&first, "reject").await;
    assert!(matches!(ben.await, Err(Denial::Refused(_))));
    steps.send(AgentStep::tool_succeeded("2", "Sent.")).unwrap();
    steps.send(AgentStep::finish("Done.")).unwrap();
    let report = running.await.unwrap();
    assert_eq!((report.ending, report.faults), (BridgeEnding::ByAgent, vec![]));
    fixture.listener.events_until("session.completed").await;
}

pub(crate) async fn clarification_answers_are_returned_to_the_framework(mut fixture: HubFixture) {
    let (steps, running) = start_bridge(&mut fixture, |bridge| bridge).await;
    let (sender, answer) = AnswerSender::channel();
    steps.send(AgentStep::clarify(ClarificationRequest::new("Which Ben?"), sender)).unwrap();
    fixture.listener.clarify_next(json!("Ben Okri")).await;
    assert_eq!(answer.await, Ok(ClarificationAnswer::Text("Ben Okri".to_owned())));
    steps.send(AgentStep::finish("Done.")).unwrap();
    assert_eq!(running.await.unwrap().faults, []);
}

pub(crate) async fn the_outcome_of_a_hand_off_is_returned_to_the_framework(mut fixture: HubFixture) {
    let (steps, running) = start_bridge(&mut fixture, |bridge| bridge).await;
    let (sender, outcome) = AnswerSender::channel();
    let hand_off = HandOff::new(HandOffTarget::Human, "The refund needs a person.");
    steps.send(AgentStep::hand_off_and_wait(hand_off, sender)).unwrap();
    fixture.listener.answer_next_hand_off("acknowledge", Some("I have it.")).await;
    let Ok(HandOffOutcome::Acknowledged { note, .. }) = outcome.await else { panic!("nobody took over") };
    assert_eq!(note.as_deref(), Some("I have it."));
    steps.send(AgentStep::finish("Done.")).unwrap();
    assert_eq!(running.await.unwrap().faults, []);
}

pub(crate) async fn a_stalled_stream_ends_the_session_with_an_error(mut fixture: HubFixture) {
    let (steps, running) =
        start_bridge(&mut fixture, |bridge| bridge.idle_timeout(Duration::from_millis(50))).await;
    steps.send(AgentStep::tool("1", UnconfirmedCall::new("look"))).unwrap();
    let report = running.await.unwrap();
    assert_eq!(
        (report.ending, report.faults),
        (BridgeEnding::Stalled, vec![BridgeFault::NeverEnded("1".to_owned())])
    );
    assert!(steps.is_closed(), "the bridge no longer accepts steps");
    let events = fixture.listener.events_until("session.errored").await;
    let expected = ["calling_tool", "tool.invoked", "tool.completed timeout", "thinking", "session.errored"];
    assert_eq!(event_kinds(&events), expected);
    assert_eq!(events.last().unwrap()["error_code"], "AGENT_LEFT");
}

pub(crate) async fn the_idle_timeout_is_paused_while_a_question_is_open(mut fixture: HubFixture) {
    let (steps, running) =
        start_bridge(&mut fixture, |bridge| bridge.idle_timeout(Duration::from_millis(50))).await;
    let (sender, answer) = AnswerSender::channel();
    steps.send(AgentStep::ask("1", send_action("Ben"), sender)).unwrap();
    let question = fixture.listener.events_until("awaiting.confirmation").await.pop().unwrap();
    // In the meantime, another bridge reaches its longer idle timeout. This one does not, because its question is open.
    let mut other =
        fixture.hub.session("Something else.").start().await.map(EventBridge::with_session).unwrap();
    other = other.idle_timeout(Duration::from_millis(100));
    assert_eq!(
        other.run(stream::pending::<Infallible>(), |_| [AgentStep::think("Never.")]).await.ending,
        BridgeEnding::Stalled
    );
    fixture.listener.decide(&question, "accept").await;
    let _ = answer.await.unwrap();
    assert_eq!(running.await.unwrap().ending, BridgeEnding::Stalled);
}

pub(crate) async fn an_early_end_of_the_stream_ends_the_session_with_an_error(mut fixture: HubFixture) {
    let report = run_steps(
        &mut fixture,
        [AgentStep::tool("1", UnconfirmedCall::new("look")), AgentStep::output("Ben is ")],
    )
    .await;
    assert_eq!(report.ending, BridgeEnding::StreamEnded);
    assert!(report.faults.contains(&BridgeFault::NeverEnded("1".to_owned())), "{report:?}");
    let events = fixture.listener.events_until("session.errored").await;
    assert_eq!(events.last().unwrap()["error_code"], "AGENT_LEFT");
}

pub(crate) async fn a_stream_error_is_reported_with_its_reason(mut fixture: HubFixture) {
    let events = stream::iter([Ok("Ben is "), Err("the socket is closed"), Ok("never")]);
    let report = EventBridge::with_session(fixture.session().await)
        .run(events, |event| {
            [match event {
                Ok(text) => AgentStep::output(text),
                Err(error) => AgentStep::fail(format!("The model is gone: {error}.")),
            }]
        })
        .await;
    assert_eq!(
        (report.ending, report.faults),
        (BridgeEnding::ByAgent, vec![BridgeFault::AfterEnd("output")])
    );
    let events = fixture.listener.events_until("session.errored").await;
    assert_eq!(events.last().unwrap()["summary_normal"], "The model is gone: the socket is closed.");
    let last_chunk = events.iter().rfind(|event| event["chunk"].is_string()).unwrap();
    assert_eq!(last_chunk["complete"], true);
}

pub(crate) async fn an_out_of_order_step_is_refused_and_the_rest_continues(mut fixture: HubFixture) {
    let steps = [
        AgentStep::tool("1", UnconfirmedCall::new("look")),
        // A state change out of `calling_tool` is not allowed while the tool runs.
        AgentStep::think("Meanwhile."),
        AgentStep::tool_succeeded("1", "Seen."),
        AgentStep::tool_succeeded("1", "Seen."),
        AgentStep::start(fixture.hub.session("Again.")),
        AgentStep::think("Afterwards."),
        AgentStep::finish("Done."),
    ];
    let report = run_steps(&mut fixture, steps).await;
    let [refused, ended_twice, started_twice] = &report.faults[..] else { panic!("{report:?}") };
    assert_eq!(refused.rule_ids().collect::<Vec<_>>(), ["AAEP-4.3.2-3"]);
    assert_eq!(
        (ended_twice, started_twice),
        (&BridgeFault::AlreadyEnded("1".to_owned()), &BridgeFault::AlreadyStarted)
    );
    let kinds = event_kinds(&fixture.listener.events_until("session.completed").await);
    let tool_call = ["calling_tool", "tool.invoked", "tool.completed success", "thinking"];
    assert_eq!(kinds, [&tool_call[..], &["thinking", "session.completed"]].concat());
}

pub(crate) async fn output_bytes_may_be_split_anywhere(mut fixture: HubFixture) {
    let mut steps: Vec<_> =
        "na\u{ef}ve \u{1f600}.".bytes().map(|byte| AgentStep::output_bytes([byte])).collect();
    steps.extend([
        AgentStep::finish_output(),
        AgentStep::output_bytes(*b"a\xffb\xc3"),
        AgentStep::finish("Done."),
    ]);
    let report =
        EventBridge::with_session(fixture.session().await).run(stream::iter(steps), |step| [step]).await;
    assert_eq!(report.faults, []);
    let events = fixture.listener.events_until("session.completed").await;
    let chunks: String = events.iter().filter_map(|event| event["chunk"].as_str()).collect();
    assert_eq!(chunks, "na\u{ef}ve \u{1f600}.a\u{fffd}b\u{fffd}");
}

pub(crate) async fn a_stop_request_drops_the_stream(mut fixture: HubFixture) {
    let alive = Arc::new(());
    let session = fixture.session().await;
    let id = session.id().to_owned();
    let guard = alive.clone();
    let events = stream::pending::<AgentStep>().map(move |step| (guard.clone(), step).1);
    let running = tokio::spawn(run_stream(session, events));
    fixture.listener.stop_session(&id).await;
    let report = tokio::time::timeout(Duration::from_mins(2), running).await.expect("the bridge stops");
    assert_eq!(report.unwrap().ending, BridgeEnding::Stopped(StopReason::Person));
    assert_eq!(Arc::strong_count(&alive), 1);
}

async fn run_stream(session: sayso::Session, events: impl Stream<Item = AgentStep>) -> BridgeReport {
    EventBridge::with_session(session).run(events, |step| [step]).await
}

pub(crate) async fn steps_after_the_end_are_faults(mut fixture: HubFixture) {
    let (sender, answer) = AnswerSender::channel();
    let (answer_sender, mut answers) = mpsc::unbounded_channel();
    let callback = AnswerSender::callback(move |answer| answer_sender.send(answer).unwrap());
    let (first, second) =
        (AgentStep::ask("1", send_action("Ben"), sender), AgentStep::ask("2", send_action("Ada"), callback));
    let report =
        run_steps(&mut fixture, [AgentStep::finish("Done."), AgentStep::finish("Again."), first, second])
            .await;
    assert_eq!(
        report.faults,
        [BridgeFault::AfterEnd("finish"), BridgeFault::AfterEnd("ask"), BridgeFault::AfterEnd("ask")]
    );
    assert_eq!(answer.await.unwrap_err(), Denial::Abandoned);
    assert_eq!(answers.recv().await.unwrap().unwrap_err(), Denial::Abandoned);
    assert_eq!(fixture.listener.next_event().await["summary_normal"], "Done.");
}

pub(crate) async fn a_failed_start_is_reported(fixture: HubFixture) {
    let (sender, answer) = AnswerSender::channel();
    let steps = [AgentStep::start(fixture.hub.session("")), AgentStep::ask("1", send_action("Ben"), sender)];
    let report = EventBridge::new().run(stream::iter(steps), |step| [step]).await;
    assert!(matches!(report.ending, BridgeEnding::StartFailed(Error::RuleViolations(_))), "{report:?}");
    assert_eq!(report.faults, [BridgeFault::BeforeStart("ask")]);
    assert_eq!(answer.await.unwrap_err(), Denial::Abandoned);
}

pub(crate) async fn a_panic_in_the_mapping_is_reported(mut fixture: HubFixture) {
    let bridge = EventBridge::with_session(fixture.session().await);
    let panics = |()| -> [AgentStep; 1] { panic!("on purpose") };
    let running = tokio::spawn(bridge.run(stream::iter([()]), panics));
    assert!(running.await.unwrap_err().is_panic());
    assert_eq!(fixture.listener.next_event().await["error_code"], "AGENT_PANICKED");
}

pub(crate) async fn the_end_of_a_session_withdraws_its_open_question(mut fixture: HubFixture) {
    let (steps, running) = start_bridge(&mut fixture, |bridge| bridge).await;
    let (sender, answer) = AnswerSender::channel();
    steps.send(AgentStep::ask("1", send_action("Ben"), sender)).unwrap();
    fixture.listener.events_until("awaiting.confirmation").await;
    steps.send(AgentStep::finish("Never mind.")).unwrap();
    assert!(answer.await.is_err());
    let report = running.await.unwrap();
    assert_eq!((report.ending, report.faults), (BridgeEnding::ByAgent, vec![]));
    let kinds = event_kinds(&fixture.listener.events_until("session.completed").await);
    assert!(!kinds.contains(&"tool.invoked".to_owned()), "{kinds:?}");
}

pub(crate) async fn an_abandoned_question_during_output_does_not_keep_the_tool_open(mut fixture: HubFixture) {
    let (steps, running) = start_bridge(&mut fixture, |bridge| bridge).await;
    let (sender, answer) = AnswerSender::channel();
    steps.send(AgentStep::tool("1", UnconfirmedCall::new("look"))).unwrap();
    steps.send(AgentStep::ask("2", send_action("Ben"), sender)).unwrap();
    fixture.listener.events_until("awaiting.confirmation").await;
    // The output starts while the question is open. Its end cannot be reported while the tool runs.
    steps.send(AgentStep::output("Ben is ")).unwrap();
    steps.send(AgentStep::progress(ProgressUpdate::new("The output was written."))).unwrap();
    fixture.listener.events_until("progress.updated").await;
    drop(answer);
    fixture.listener.events_until("state.changed").await;
    let (sender, answer) = AnswerSender::channel();
    steps.send(AgentStep::ask("2", send_action("Ben"), sender)).unwrap();
    drop(steps);
    assert_eq!(running.await.unwrap().ending, BridgeEnding::StreamEnded);
    assert!(answer.await.is_err());
    let kinds = event_kinds(&fixture.listener.events_until("session.errored").await);
    assert!(kinds.contains(&"tool.completed timeout".to_owned()), "{kinds:?}");
}
