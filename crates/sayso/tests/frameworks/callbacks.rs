//! What the author of a callback-style framework can rely on.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use sayso::bridge::{Denied, Ending, Fault, Report, Unasked};
use sayso::callbacks::{Callbacks, Narration, Narrator, Plan, QUEUE};
use sayso::{Action, By, Error, Stop};
use tokio::task::JoinHandle;

use crate::support::stage::{Person, Stage, told};

/// `send` is asked for, everything else is not.
fn plan(tool: &str, input: &str) -> Plan {
    if tool == "send" {
        let action =
            Action::new(tool, input).says("Send 5 euro to Ben.").consequence("The money is gone at once.");
        action.irreversible().into()
    } else {
        Unasked::new(tool).says(format!("Using {tool}.")).into()
    }
}

const TO_BEN: &str = r#"{"to":"Ben","amount":"5.00"}"#;

fn narrator(stage: &Stage) -> (Narrator, JoinHandle<Report>) {
    let (narrator, telling) = Narration::on(&stage.hub).tools(plan).open();
    (narrator, tokio::spawn(telling))
}

/// A narrator of a chain that has started, as `c`.
async fn started(stage: &mut Stage) -> (Narrator, JoinHandle<Report>) {
    let (narrator, telling) = narrator(stage);
    narrator.on_chain_start("c", "Pay Ben.").unwrap();
    let heard = stage.person.hears().await;
    assert_eq!(
        (&heard["type"], &heard["request_text"]),
        (&"aaep:agent.session.started".into(), &"Pay Ben.".into())
    );
    (narrator, telling)
}

async fn clean(telling: JoinHandle<Report>) {
    let report = telling.await.unwrap();
    assert_eq!((report.ending, report.faults), (Ending::AsSaid, vec![]));
}

pub(crate) async fn each_callback_is_its_event(mut stage: Stage) {
    let (narrator, telling) = started(&mut stage).await;
    narrator.on_llm_start("m", "You are a bank.").unwrap();
    assert!(narrator.on_tool_start("t", "find", "Ben").await.unwrap().arguments().is_none());
    narrator.on_tool_end("t", "found").unwrap();
    let _ = narrator.on_tool_start("u", "look", "Ben").await.unwrap();
    narrator.on_tool_error("u", "He is not there.").unwrap();
    for token in ["Ben ", "is ", "away."] {
        narrator.on_llm_new_token("m", token).unwrap();
    }
    narrator.on_chain_end("c", "Ben is away.").unwrap();
    clean(telling).await;
    let heard = stage.person.hears_until("session.completed").await;
    let mut kinds = told(&heard);
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
    let failed = heard.iter().find(|event| event["status"] == "error").unwrap();
    assert_eq!(failed["error_message"], "He is not there.");
    let chunks: String = heard.iter().filter_map(|event| event["chunk"].as_str()).collect();
    assert_eq!(chunks, "Ben is away.");
    assert_eq!(heard.last().unwrap()["summary_normal"], "Ben is away.");
    assert!(!format!("{heard:?}").contains("You are a bank"), "a prompt is not for the person's ears");
}

pub(crate) async fn a_yes_opens_the_gate_after_the_call_was_told(mut stage: Stage) {
    let (narrator, telling) = started(&mut stage).await;
    let ran = Arc::<AtomicBool>::default();
    let framework = async {
        let allowed = narrator.on_tool_start("t", "send", TO_BEN).await.unwrap();
        ran.store(true, Ordering::SeqCst);
        assert_eq!(allowed.arguments(), Some(TO_BEN));
    };
    let person = async {
        let asked = stage.person.hears_until("awaiting.confirmation").await.pop().unwrap();
        assert!(!ran.load(Ordering::SeqCst), "nobody has answered");
        stage.person.answers(&asked, "accept").await;
        stage.person.hears_until("tool.invoked").await;
    };
    tokio::join!(framework, person);
    narrator.on_tool_end("t", "sent").unwrap();
    narrator.on_chain_end("c", "Sent.").unwrap();
    clean(telling).await;
    let heard = told(&stage.person.hears_until("session.completed").await);
    assert_eq!(heard, ["tool.completed success", "thinking", "session.completed"]);
}

pub(crate) async fn a_veto_keeps_the_tool_from_running(mut stage: Stage) {
    let (narrator, telling) = started(&mut stage).await;
    let (gate, _) = tokio::join!(narrator.on_tool_start("t", "send", TO_BEN), stage.person.decides("reject"));
    assert!(matches!(gate, Err(Denied::Refused(why)) if why.by == By::Reply));
    // The framework says all the same that it has ended.
    narrator.on_tool_end("t", "sent").unwrap();
    narrator.on_chain_end("c", "Nothing was sent.").unwrap();
    let report = telling.await.unwrap();
    assert_eq!(report.faults, [Fault::NotAllowed("t".to_owned())]);
    let heard = told(&stage.person.hears_until("session.completed").await);
    assert!(!heard.iter().any(|kind| kind.starts_with("tool.")), "{heard:?}");
}

pub(crate) async fn a_tool_of_which_nothing_is_known_is_asked_for(mut stage: Stage) {
    let (narrator, telling) = Narration::on(&stage.hub).open();
    let telling = tokio::spawn(telling);
    narrator.on_chain_start("c", "Launch it.").unwrap();
    let (gate, asked) =
        tokio::join!(narrator.on_tool_start("t", "launch", "not JSON"), stage.person.decides("accept"));
    assert_eq!(gate.unwrap().arguments(), Some(r#""not JSON""#));
    assert_eq!(
        (&asked["risk_level"], &asked["action"]),
        (&"high".into(), &"Use launch with: not JSON".into())
    );
    narrator.on_tool_end("t", "").unwrap();
    narrator.on_chain_end("c", "Launched.").unwrap();
    clean(telling).await;
}

pub(crate) async fn a_plain_thread_waits_at_the_gate(mut stage: Stage) {
    let (narrator, telling) = started(&mut stage).await;
    // No runtime here.
    let framework = std::thread::spawn(move || {
        narrator.on_llm_start("m", "").unwrap();
        let allowed = narrator.on_tool_start("t", "send", TO_BEN).wait();
        assert!(allowed.is_ok());
        narrator.on_tool_end("t", "").unwrap();
        narrator.on_chain_end("c", "Sent.").unwrap();
    });
    stage.person.decides("accept").await;
    let heard = told(&stage.person.hears_until("session.completed").await);
    assert!(heard.contains(&"tool.completed success".to_owned()), "{heard:?}");
    clean(telling).await;
    framework.join().unwrap();
}

pub(crate) async fn ends_that_are_wrong_are_faults_and_are_not_told(mut stage: Stage) {
    let at_once = Arc::<Mutex<Vec<String>>>::default();
    let told_at_once = at_once.clone();
    let narration = Narration::on(&stage.hub).tools(plan);
    let (narrator, telling) =
        narration.on_fault(move |fault| told_at_once.lock().unwrap().push(fault.to_string())).open();
    let telling = tokio::spawn(telling);
    narrator.on_chain_start("c", "Pay Ben.").unwrap();
    narrator.on_tool_end("never", "").unwrap();
    narrator.on_tool_error("neither", "").unwrap();
    let _ = narrator.on_tool_start("t", "look", "").await.unwrap();
    let again = narrator.on_tool_start("t", "look", "").await;
    assert_eq!(again.unwrap_err(), Denied::Left);
    narrator.on_tool_end("t", "").unwrap();
    narrator.on_tool_end("t", "").unwrap();
    narrator.on_tool_error("t", "").unwrap();
    narrator.on_chain_start("c", "Pay Ben.").unwrap();
    narrator.on_chain_end("other", "Done.").unwrap();
    // A name may be used again when its run is over.
    let _ = narrator.on_tool_start("t", "look", "").await.unwrap();
    narrator.on_tool_end("t", "").unwrap();
    narrator.on_chain_end("c", "Done.").unwrap();
    let report = telling.await.unwrap();
    assert_eq!(report.ending, Ending::AsSaid);
    let named = |fault: fn(String) -> Fault, run: &str| fault(run.to_owned());
    let expected = [
        named(Fault::NeverStarted, "never"),
        named(Fault::NeverStarted, "neither"),
        named(Fault::SameRun, "t"),
        named(Fault::EndedAgain, "t"),
        named(Fault::EndedAgain, "t"),
        named(Fault::SameRun, "c"),
        named(Fault::NeverStarted, "other"),
    ];
    assert_eq!(report.faults, expected);
    assert_eq!(*at_once.lock().unwrap(), expected.map(|fault| fault.to_string()));
    let heard = told(&stage.person.hears_until("session.completed").await);
    let one = ["calling_tool", "tool.invoked", "tool.completed success", "thinking"];
    let expected = [&["session.started"][..], &one, &one, &["session.completed"]].concat();
    assert_eq!(heard, expected);
}

pub(crate) async fn a_tool_that_never_ends_is_closed_with_the_session(mut stage: Stage) {
    let (narrator, telling) = started(&mut stage).await;
    let _ = narrator.on_tool_start("t", "look", "").await.unwrap();
    narrator.on_chain_end("c", "Done.").unwrap();
    let report = telling.await.unwrap();
    assert_eq!((report.ending, report.faults), (Ending::AsSaid, vec![Fault::NeverEnded("t".to_owned())]));
    let heard = stage.person.hears_until("session.completed").await;
    let closed = heard.iter().find(|event| event["status"] == "error").unwrap();
    assert!(closed["error_message"].as_str().unwrap().contains("is not known"), "{closed}");
}

pub(crate) async fn nothing_is_taken_after_the_end(mut stage: Stage) {
    let (narrator, telling) = started(&mut stage).await;
    // What is handed over in one go is there before the end is told.
    narrator.on_chain_end("c", "Done.").unwrap();
    narrator.on_chain_end("c", "Done again.").unwrap();
    narrator.on_llm_new_token("m", "More.").unwrap();
    let report = telling.await.unwrap();
    assert_eq!(report.faults, [Fault::AfterEnd("finish"), Fault::AfterEnd("output")]);
    assert_eq!(narrator.on_tool_end("t", ""), Err(Error::Stopped(Stop::Other)));
    let gate = narrator.on_tool_start("t", "look", "").await;
    assert_eq!(gate.unwrap_err(), Denied::Error(Error::Stopped(Stop::Other)));
    assert_eq!(narrator.stopped().await, Stop::Other);
    assert_eq!(stage.person.hears().await["summary_normal"], "Done.");
}

pub(crate) async fn nothing_is_told_before_the_start(mut stage: Stage) {
    let (narrator, telling) = narrator(&stage);
    narrator.on_llm_start("m", "").unwrap();
    assert_eq!(narrator.on_tool_start("t", "look", "").await.unwrap_err(), Denied::Left);
    narrator.on_chain_end("c", "Done.").unwrap();
    narrator.on_chain_start("c", "Pay Ben.").unwrap();
    narrator.on_chain_end("c", "Done.").unwrap();
    let report = telling.await.unwrap();
    let never = Fault::NeverStarted("c".to_owned());
    assert_eq!(report.faults, [Fault::BeforeStart("think"), Fault::BeforeStart("tool"), never]);
    let heard = told(&stage.person.hears_until("session.completed").await);
    assert_eq!(heard, ["session.started", "session.completed"]);
}

pub(crate) async fn a_chain_inside_the_chain_is_not_told(mut stage: Stage) {
    let (narrator, telling) = started(&mut stage).await;
    narrator.on_chain_start("inner", "A part of it.").unwrap();
    narrator.on_chain_start("more", "A part of that.").unwrap();
    narrator.on_chain_error("more", "It failed.").unwrap();
    narrator.on_chain_end("inner", "Done.").unwrap();
    narrator.on_chain_end("c", "All done.").unwrap();
    clean(telling).await;
    assert_eq!(stage.person.hears().await["summary_normal"], "All done.");
}

pub(crate) async fn a_model_inside_a_tool_is_progress_and_two_models_are_two_outputs(mut stage: Stage) {
    let (narrator, telling) = started(&mut stage).await;
    let _ = narrator.on_tool_start("t", "look", "").await.unwrap();
    narrator.on_llm_start("m", "").unwrap();
    narrator.on_tool_end("t", "").unwrap();
    narrator.on_llm_new_token("m", "One.").unwrap();
    narrator.on_llm_new_token("n", "Two.").unwrap();
    narrator.on_chain_end("c", "Done.").unwrap();
    clean(telling).await;
    let heard = stage.person.hears_until("session.completed").await;
    let kinds = told(&heard);
    assert_eq!(&kinds[..4], ["calling_tool", "tool.invoked", "progress.updated", "tool.completed success"]);
    let mut outputs: Vec<_> = heard.iter().filter_map(|event| event["output_id"].as_str()).collect();
    outputs.dedup();
    assert_eq!(outputs.len(), 2, "{outputs:?}");
}

pub(crate) async fn a_chain_that_fails_is_told(mut stage: Stage) {
    let (narrator, telling) = started(&mut stage).await;
    narrator.on_chain_error("c", "The model is away; its password: hunter2 was wrong.").unwrap();
    clean(telling).await;
    let last = stage.person.hears().await;
    assert_eq!(last["type"], "aaep:agent.session.errored");
    assert_eq!(last["summary_normal"], "The model is away; its password: [redacted] was wrong.");
}

pub(crate) async fn a_narrator_that_is_dropped_ends_its_session(mut stage: Stage) {
    let (narrator, telling) = started(&mut stage).await;
    let _ = narrator.on_tool_start("t", "look", "").await.unwrap();
    drop(narrator);
    let report = telling.await.unwrap();
    assert_eq!((report.ending, report.faults), (Ending::Early, vec![Fault::NeverEnded("t".to_owned())]));
    let heard = stage.person.hears_until("session.errored").await;
    assert_eq!(heard.last().unwrap()["error_code"], "AGENT_LEFT");
}

pub(crate) async fn the_persons_stop_is_told_to_the_framework(mut stage: Stage) {
    let (narrator, telling) = narrator(&stage);
    narrator.on_chain_start("c", "Pay Ben.").unwrap();
    let session = stage.person.hears().await["session_id"].as_str().unwrap().to_owned();
    let gate = narrator.on_tool_start("t", "send", TO_BEN);
    stage.person.hears_until("awaiting.confirmation").await;
    stage.person.stops(&session).await;
    assert!(gate.await.is_err());
    assert_eq!(narrator.stopped().await, Stop::Person);
    assert_eq!(telling.await.unwrap().ending, Ending::Stopped(Stop::Person));
    assert_eq!(narrator.on_llm_new_token("m", "More."), Err(Error::Stopped(Stop::Person)));
    let heard = stage.person.hears_until("session.cancelled").await;
    assert_eq!(heard.last().unwrap()["cancelled_by"], "user");
}

pub(crate) async fn a_gate_that_nobody_waits_at_stays_shut(mut stage: Stage) {
    let (narrator, telling) = started(&mut stage).await;
    let gate = narrator.on_tool_start("t", "send", TO_BEN);
    let asked = stage.person.hears_until("awaiting.confirmation").await.pop().unwrap();
    drop(gate);
    // The question is taken back, and listeners hear it; a yes has no effect then.
    let back = stage.person.hears_until("state.changed").await.pop().unwrap();
    assert_eq!(back["extensions"]["sayso"]["by"], "cancelled");
    stage.person.answers(&asked, "accept").await;
    narrator.on_chain_end("c", "Given up.").unwrap();
    let report = telling.await.unwrap();
    assert_eq!(report.faults, [Fault::NobodyWaited("t".to_owned())]);
    let heard = told(&stage.person.hears_until("session.completed").await);
    assert_eq!(heard, ["session.completed"]);
}

pub(crate) async fn a_tools_output_is_told_in_the_authors_words_or_not_at_all(mut stage: Stage) {
    for (tells, words) in [(true, "2 were found."), (false, "Find is done.")] {
        let mut narration = Narration::on(&stage.hub).tools(plan);
        if tells {
            narration = narration.results(|output| format!("{} were found.", output.lines().count()).into());
        }
        let (narrator, telling) = narration.open();
        let telling = tokio::spawn(telling);
        narrator.on_chain_start("c", "Find them.").unwrap();
        let _ = narrator.on_tool_start("t", "find", "").await.unwrap();
        narrator.on_tool_end("t", "a\nb\n").unwrap();
        narrator.on_chain_end("c", "Found.").unwrap();
        clean(telling).await;
        let heard = stage.person.hears_until("session.completed").await;
        let ended = heard.iter().find(|event| event["status"] == "success").unwrap();
        assert_eq!(ended["summary_normal"], words);
    }
}

pub(crate) async fn long_and_empty_words_are_told(mut stage: Stage) {
    let long = "long ".repeat(100_000);
    for words in [long.as_str(), "", " "] {
        let (narrator, telling) = narrator(&stage);
        narrator.on_chain_start("c", words).unwrap();
        let gate = narrator.on_tool_start("t", "look", words).await;
        let _ = gate.unwrap();
        narrator.on_tool_error("t", words).unwrap();
        narrator.on_chain_end("c", words).unwrap();
        clean(telling).await;
        stage.person.hears_until("session.completed").await;
    }
}

#[tokio::test]
async fn callbacks_that_nobody_tells_are_refused_in_the_end() {
    let hub = sayso::Hub::embedded().open().unwrap();
    let (narrator, telling) = Narration::on(&hub).open();
    for _ in 0..QUEUE {
        narrator.on_llm_new_token("m", "a").unwrap();
    }
    assert!(matches!(narrator.on_llm_new_token("m", "a"), Err(Error::TooMuch(_))));
    assert!(matches!(narrator.on_tool_start("t", "look", "").await, Err(Denied::Error(Error::TooMuch(_)))));
    drop(telling);
    assert_eq!(narrator.on_llm_start("m", ""), Err(Error::Stopped(Stop::Other)));
}

#[tokio::test]
async fn a_yes_to_a_call_that_cannot_be_told_does_not_open_the_gate() {
    let limits = hub::Limits { open_in_session: 1, ..hub::Limits::default() };
    let hub = sayso::Hub::embedded().listen("127.0.0.1:0").limits(limits).open().unwrap();
    let mut person = Person::listen(&hub.address().unwrap().to_string()).await;
    let (narrator, telling) = Narration::on(&hub).tools(plan).open();
    let telling = tokio::spawn(telling);
    narrator.on_chain_start("c", "Pay Ben.").unwrap();
    let gate = narrator.on_tool_start("t", "send", TO_BEN);
    let asked = person.hears_until("awaiting.confirmation").await.pop().unwrap();
    // Another tool runs meanwhile, and no second one may.
    let _ = narrator.on_tool_start("u", "look", "").await.unwrap();
    person.answers(&asked, "accept").await;
    let denied = gate.await.unwrap_err();
    assert!(matches!(denied, Denied::Error(Error::Unlawful(_))), "{denied:?}");
    narrator.on_tool_end("u", "").unwrap();
    narrator.on_chain_end("c", "Nothing was sent.").unwrap();
    let report = telling.await.unwrap();
    assert!(matches!(report.faults[..], [Fault::Refused { step: "tool", .. }]), "{report:?}");
    let heard = person.hears_until("session.completed").await;
    assert!(!heard.iter().any(|event| event["tool"] == "send" && event["status"].is_string()), "{heard:?}");
}
