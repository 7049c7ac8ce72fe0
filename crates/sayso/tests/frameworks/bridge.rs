//! What the author of a framework that publishes its events can rely on.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{self, Stream, StreamExt};
use sayso::bridge::{Bridge, Denied, Ending, Fault, Reply, Report, Step, Unasked};
use sayso::{Action, Clarified, Error, HandOff, Progress, Question, Stop, Target};
use serde_json::json;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::support::stage::{Stage, told};

fn sending(to: &str) -> Action {
    Action::new("send", format!(r#"{{"to":"{to}"}}"#))
        .says(format!("Send 5 euro to {to}."))
        .consequence("The money is gone at once.")
        .irreversible()
}

/// A bridge whose events are steps already, on a session that has started.
async fn bridged(
    stage: &mut Stage,
    bridge: fn(Bridge) -> Bridge,
) -> (mpsc::UnboundedSender<Step>, JoinHandle<Report>) {
    let bridge = bridge(Bridge::of(stage.session().await));
    let (steps, mut queue) = mpsc::unbounded_channel();
    let queue = stream::poll_fn(move |context| queue.poll_recv(context));
    (steps, tokio::spawn(bridge.run(queue, |step| [step])))
}

/// The same for steps that are all there.
async fn whole<const N: usize>(stage: &mut Stage, steps: [Step; N]) -> Report {
    Bridge::of(stage.session().await).run(stream::iter([steps]), |steps| steps).await
}

pub(crate) async fn a_stream_is_told(mut stage: Stage) {
    let hub = stage.hub.clone();
    let steps = [
        Step::start(hub.session("Pay Ben.")),
        Step::think("Looking for Ben."),
        Step::decide("Which of two Bens."),
        Step::progress(Progress::says("Half done.").percent(50.0)),
        Step::tool("1", Unasked::new("find").says("Finding Ben.").with("Ben").medium_risk()),
        Step::done("1", "Ben is found."),
        Step::tool("2", Unasked::new("find")),
        Step::failed("2", "He is away."),
        Step::tool("3", Unasked::new("find")),
        Step::timed_out("3"),
        Step::output("Ben "),
        Step::output("is found."),
        Step::output_done(),
        Step::hand_off(HandOff::to(Target::Human, "Only a human may pay.")),
        Step::cancel("Somebody else goes on."),
    ];
    let report = Bridge::new().run(stream::iter(steps), Some).await;
    assert_eq!((report.ending, report.faults), (Ending::AsSaid, vec![]));
    let heard = stage.person.hears_until("session.cancelled").await;
    let mut kinds = told(&heard);
    kinds.dedup();
    let ended = |status: &str| ["calling_tool", "tool.invoked", status, "thinking"].map(str::to_owned);
    let mut expected =
        ["session.started", "thinking", "deciding", "progress.updated"].map(str::to_owned).to_vec();
    expected.extend(
        ["success", "error", "timeout"].iter().flat_map(|status| ended(&format!("tool.completed {status}"))),
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
    let invoked = heard.iter().find(|event| event["type"] == "aaep:agent.tool.invoked").unwrap();
    assert_eq!((&invoked["risk_level"], &invoked["args_summary"]), (&json!("medium"), &json!("Ben")));
}

pub(crate) async fn a_yes_and_a_no_go_back_to_the_native_side(mut stage: Stage) {
    for decision in ["accept", "reject"] {
        let (steps, running) = bridged(&mut stage, |bridge| bridge).await;
        let (tell, mut told_native) = mpsc::unbounded_channel();
        let reply = Reply::call(move |verdict| tell.send(verdict).unwrap());
        steps.send(Step::ask("1", sending("Ben"), reply)).unwrap();
        stage.person.decides(decision).await;
        let verdict = told_native.recv().await.unwrap();
        assert_eq!(verdict.is_ok(), decision == "accept");
        if let Ok(allowed) = verdict {
            assert_eq!(allowed.arguments(), Some(r#"{"to":"Ben"}"#));
            steps.send(Step::done("1", "Sent.")).unwrap();
        }
        steps.send(Step::finish("Done.")).unwrap();
        let report = running.await.unwrap();
        assert_eq!((report.ending, report.faults), (Ending::AsSaid, vec![]));
        let heard = told(&stage.person.hears_until("session.completed").await);
        assert_eq!(heard.contains(&"tool.completed success".to_owned()), decision == "accept", "{heard:?}");
    }
}

pub(crate) async fn two_questions_at_once_have_their_own_answers(mut stage: Stage) {
    let (steps, running) = bridged(&mut stage, |bridge| bridge).await;
    let ((to_ben, ben), (to_ada, ada)) = (Reply::gate(), Reply::gate());
    steps.send(Step::ask("1", sending("Ben"), to_ben)).unwrap();
    steps.send(Step::ask("2", sending("Ada"), to_ada)).unwrap();
    let first = stage.person.hears_until("awaiting.confirmation").await.pop().unwrap();
    let second = stage.person.hears_until("awaiting.confirmation").await.pop().unwrap();
    assert_eq!(first["action"], "Send 5 euro to Ben.");
    stage.person.answers(&second, "accept").await;
    assert_eq!(ada.await.unwrap().arguments(), Some(r#"{"to":"Ada"}"#));
    stage.person.answers(&first, "reject").await;
    assert!(matches!(ben.await, Err(Denied::Refused(_))));
    steps.send(Step::done("2", "Sent.")).unwrap();
    steps.send(Step::finish("Done.")).unwrap();
    let report = running.await.unwrap();
    assert_eq!((report.ending, report.faults), (Ending::AsSaid, vec![]));
    stage.person.hears_until("session.completed").await;
}

pub(crate) async fn what_was_meant_goes_back_to_the_native_side(mut stage: Stage) {
    let (steps, running) = bridged(&mut stage, |bridge| bridge).await;
    let (reply, gate) = Reply::gate();
    steps.send(Step::clarify(Question::new("Which Ben?"), reply)).unwrap();
    stage.person.explains(json!("Ben Okri")).await;
    assert_eq!(gate.await, Ok(Clarified::Text("Ben Okri".to_owned())));
    steps.send(Step::finish("Done.")).unwrap();
    assert_eq!(running.await.unwrap().faults, []);
}

pub(crate) async fn a_stream_that_stalls_is_closed_honestly(mut stage: Stage) {
    let (steps, running) = bridged(&mut stage, |bridge| bridge.silence(Duration::from_millis(50))).await;
    steps.send(Step::tool("1", Unasked::new("look"))).unwrap();
    let report = running.await.unwrap();
    assert_eq!((report.ending, report.faults), (Ending::Stalled, vec![Fault::NeverEnded("1".to_owned())]));
    assert!(steps.is_closed(), "nobody takes it any more");
    let heard = stage.person.hears_until("session.errored").await;
    let expected = ["calling_tool", "tool.invoked", "tool.completed error", "thinking", "session.errored"];
    assert_eq!(told(&heard), expected);
    assert_eq!(heard.last().unwrap()["error_code"], "AGENT_LEFT");
}

pub(crate) async fn the_clock_stands_still_while_a_person_is_asked(mut stage: Stage) {
    let (steps, running) = bridged(&mut stage, |bridge| bridge.silence(Duration::from_millis(50))).await;
    let (reply, gate) = Reply::gate();
    steps.send(Step::ask("1", sending("Ben"), reply)).unwrap();
    let asked = stage.person.hears_until("awaiting.confirmation").await.pop().unwrap();
    // The silence that is allowed passes on another bridge, and not on this one.
    let mut other = stage.hub.session("Something else.").start().await.map(Bridge::of).unwrap();
    other = other.silence(Duration::from_millis(100));
    assert_eq!(
        other.run(stream::pending::<Infallible>(), |_| [Step::think("Never.")]).await.ending,
        Ending::Stalled
    );
    stage.person.answers(&asked, "accept").await;
    let _ = gate.await.unwrap();
    assert_eq!(running.await.unwrap().ending, Ending::Stalled);
}

pub(crate) async fn a_stream_that_ends_early_is_closed_honestly(mut stage: Stage) {
    let report = whole(&mut stage, [Step::tool("1", Unasked::new("look")), Step::output("Ben is ")]).await;
    assert_eq!(report.ending, Ending::Early);
    assert!(report.faults.contains(&Fault::NeverEnded("1".to_owned())), "{report:?}");
    let heard = stage.person.hears_until("session.errored").await;
    assert_eq!(heard.last().unwrap()["error_code"], "AGENT_LEFT");
}

pub(crate) async fn a_stream_that_errs_says_why(mut stage: Stage) {
    let native = stream::iter([Ok("Ben is "), Err("the socket is closed"), Ok("never")]);
    let report = Bridge::of(stage.session().await)
        .run(native, |event| {
            [match event {
                Ok(text) => Step::output(text),
                Err(why) => Step::fail(format!("The model is gone: {why}.")),
            }]
        })
        .await;
    assert_eq!((report.ending, report.faults), (Ending::AsSaid, vec![Fault::AfterEnd("output")]));
    let heard = stage.person.hears_until("session.errored").await;
    assert_eq!(heard.last().unwrap()["summary_normal"], "The model is gone: the socket is closed.");
    let last_chunk = heard.iter().rfind(|event| event["chunk"].is_string()).unwrap();
    assert_eq!(last_chunk["complete"], true);
}

pub(crate) async fn a_wrong_order_has_its_rule_and_the_rest_goes_on(mut stage: Stage) {
    let steps = [
        Step::tool("1", Unasked::new("look")),
        // The state after a tool is not shown while the tool runs.
        Step::think("Meanwhile."),
        Step::done("1", "Seen."),
        Step::done("1", "Seen."),
        Step::start(stage.hub.session("Again.")),
        Step::think("Afterwards."),
        Step::finish("Done."),
    ];
    let report = whole(&mut stage, steps).await;
    let [refused, twice, again] = &report.faults[..] else { panic!("{report:?}") };
    assert_eq!(refused.rules().collect::<Vec<_>>(), ["AAEP-4.3.2-3"]);
    assert_eq!((twice, again), (&Fault::EndedAgain("1".to_owned()), &Fault::StartedAgain));
    let heard = told(&stage.person.hears_until("session.completed").await);
    let one = ["calling_tool", "tool.invoked", "tool.completed success", "thinking"];
    assert_eq!(heard, [&one[..], &["thinking", "session.completed"]].concat());
}

pub(crate) async fn bytes_may_be_cut_anywhere(mut stage: Stage) {
    let mut steps: Vec<_> = "na\u{ef}ve \u{1f600}.".bytes().map(|byte| Step::bytes([byte])).collect();
    steps.extend([Step::output_done(), Step::bytes(*b"a\xffb\xc3"), Step::finish("Done.")]);
    let report = Bridge::of(stage.session().await).run(stream::iter(steps), |step| [step]).await;
    assert_eq!(report.faults, []);
    let heard = stage.person.hears_until("session.completed").await;
    let chunks: String = heard.iter().filter_map(|event| event["chunk"].as_str()).collect();
    assert_eq!(chunks, "na\u{ef}ve \u{1f600}.a\u{fffd}b\u{fffd}");
}

pub(crate) async fn the_persons_stop_drops_the_stream(mut stage: Stage) {
    let alive = Arc::new(());
    let session = stage.session().await;
    let id = session.id().to_owned();
    let held = alive.clone();
    let native = stream::pending::<Step>().map(move |step| (held.clone(), step).1);
    let running = tokio::spawn(run(session, native));
    stage.person.stops(&id).await;
    let report = tokio::time::timeout(Duration::from_mins(2), running).await.expect("it is stopped");
    assert_eq!(report.unwrap().ending, Ending::Stopped(Stop::Person));
    assert_eq!(Arc::strong_count(&alive), 1);
}

async fn run(session: sayso::Session, native: impl Stream<Item = Step>) -> Report {
    Bridge::of(session).run(native, |step| [step]).await
}

pub(crate) async fn steps_after_the_end_are_faults(mut stage: Stage) {
    let (reply, gate) = Reply::gate();
    let (tell, mut told_native) = mpsc::unbounded_channel();
    let called = Reply::call(move |verdict| tell.send(verdict).unwrap());
    let (first, second) = (Step::ask("1", sending("Ben"), reply), Step::ask("2", sending("Ada"), called));
    let report = whole(&mut stage, [Step::finish("Done."), Step::finish("Again."), first, second]).await;
    assert_eq!(report.faults, [Fault::AfterEnd("finish"), Fault::AfterEnd("ask"), Fault::AfterEnd("ask")]);
    assert_eq!(gate.await.unwrap_err(), Denied::Left);
    assert_eq!(told_native.recv().await.unwrap().unwrap_err(), Denied::Left);
    assert_eq!(stage.person.hears().await["summary_normal"], "Done.");
}

pub(crate) async fn a_session_that_cannot_start_is_told(stage: Stage) {
    let (reply, gate) = Reply::gate();
    let steps = [Step::start(stage.hub.session("")), Step::ask("1", sending("Ben"), reply)];
    let report = Bridge::new().run(stream::iter(steps), |step| [step]).await;
    assert!(matches!(report.ending, Ending::NotStarted(Error::Unlawful(_))), "{report:?}");
    assert_eq!(report.faults, [Fault::BeforeStart("ask")]);
    assert_eq!(gate.await.unwrap_err(), Denied::Left);
}

pub(crate) async fn a_panic_while_mapping_is_told(mut stage: Stage) {
    let bridge = Bridge::of(stage.session().await);
    let panics = |()| -> [Step; 1] { panic!("on purpose") };
    let running = tokio::spawn(bridge.run(stream::iter([()]), panics));
    assert!(running.await.unwrap_err().is_panic());
    assert_eq!(stage.person.hears().await["error_code"], "AGENT_PANICKED");
}

pub(crate) async fn a_question_is_not_left_open_by_the_end(mut stage: Stage) {
    let (steps, running) = bridged(&mut stage, |bridge| bridge).await;
    let (reply, gate) = Reply::gate();
    steps.send(Step::ask("1", sending("Ben"), reply)).unwrap();
    stage.person.hears_until("awaiting.confirmation").await;
    steps.send(Step::finish("Never mind.")).unwrap();
    assert!(gate.await.is_err());
    let report = running.await.unwrap();
    assert_eq!((report.ending, report.faults), (Ending::AsSaid, vec![]));
    let heard = told(&stage.person.hears_until("session.completed").await);
    assert!(!heard.contains(&"tool.invoked".to_owned()), "{heard:?}");
}

pub(crate) async fn a_question_that_was_left_behind_an_output_does_not_keep_the_tool_open(mut stage: Stage) {
    let (steps, running) = bridged(&mut stage, |bridge| bridge).await;
    let (reply, gate) = Reply::gate();
    steps.send(Step::tool("1", Unasked::new("look"))).unwrap();
    steps.send(Step::ask("2", sending("Ben"), reply)).unwrap();
    stage.person.hears_until("awaiting.confirmation").await;
    // While the person is asked there is an output; its end cannot be told while the tool runs.
    steps.send(Step::output("Ben is ")).unwrap();
    steps.send(Step::progress(Progress::says("It is said."))).unwrap();
    stage.person.hears_until("progress.updated").await;
    drop(gate);
    stage.person.hears_until("state.changed").await;
    let (reply, gate) = Reply::gate();
    steps.send(Step::ask("2", sending("Ben"), reply)).unwrap();
    drop(steps);
    assert_eq!(running.await.unwrap().ending, Ending::Early);
    assert!(gate.await.is_err());
    let heard = told(&stage.person.hears_until("session.errored").await);
    assert!(heard.contains(&"tool.completed error".to_owned()), "{heard:?}");
}
