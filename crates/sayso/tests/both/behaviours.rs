//! What an author can rely on.

use std::convert::Infallible;
use std::time::Duration;

use sayso::{
    Action, Answer, Bound, By, CallError, Clarified, Error, EventOptions, HandOff, NotGranted, Progress,
    Question, Session, Stop, Target,
};
use serde_json::json;

use crate::support::stage::{Person, Stage, told};

pub(crate) fn sending() -> Action {
    Action::new("send", r#"{"to":"Ben","amount":"5.00"}"#)
        .says("Send 5 euro to Ben.")
        .consequence("The money is gone at once.")
        .irreversible()
}

async fn asked(session: &Session, person: &mut Person, decision: &str) -> Result<Answer, Error> {
    tokio::join!(session.ask(sending()), person.decides(decision)).0
}

async fn granted(session: &Session, person: &mut Person) -> sayso::Granted {
    match asked(session, person, "accept").await.unwrap() {
        Answer::Granted(granted) => granted,
        Answer::Refused(why) => panic!("{why}"),
    }
}

pub(crate) async fn a_session_is_told_with_its_states(mut stage: Stage) {
    let session = stage.session().await;
    session.think("Looking for Ben.").await.unwrap();
    session.decide("Which of two Bens.").await.unwrap();
    session.progress(Progress::says("Half done.").percent(50.0)).await.unwrap();
    let found = session.tool("find").says("Finding Ben.").run(async { Ok::<_, Infallible>("Ben") }).await;
    assert_eq!(found.unwrap(), "Ben");
    session.output("Ben is ").await.unwrap();
    session.output("found.").await.unwrap();
    session.output_done().await.unwrap();
    session.hand_off(HandOff::to(Target::Human, "Only a human may pay.")).await.unwrap();
    session.finish("Ben is found.").await.unwrap();
    let heard = stage.person.hears_until("session.completed").await;
    let mut kinds = told(&heard);
    // How the output is cut is the listener's to say.
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
    let chunks: String = heard.iter().filter_map(|event| event["chunk"].as_str()).collect();
    assert_eq!(chunks, "Ben is found.");
    assert_eq!(heard.last().unwrap()["tool_invocations_count"], 1);
}

pub(crate) async fn a_yes_allows_exactly_one_call(mut stage: Stage) {
    let session = stage.session().await;
    let granted = granted(&session, &mut stage.person).await;
    assert_eq!((granted.tool(), granted.arguments()), ("send", r#"{"to":"Ben","amount":"5.00"}"#));
    let sent = session.call(granted, async |arguments| Ok::<_, Infallible>(arguments)).await.unwrap();
    assert_eq!(sent, r#"{"to":"Ben","amount":"5.00"}"#);
    session.finish("Sent.").await.unwrap();
    let heard = stage.person.hears_until("session.completed").await;
    let invoked = heard.iter().find(|event| event["type"] == "aaep:agent.tool.invoked").unwrap();
    assert_eq!((&invoked["irreversible"], &invoked["risk_level"]), (&json!(true), &json!("high")));
    assert!(told(&heard).contains(&"tool.completed success".to_owned()));
}

pub(crate) async fn a_no_allows_nothing(mut stage: Stage) {
    let session = stage.session().await;
    match asked(&session, &mut stage.person, "reject").await.unwrap() {
        Answer::Refused(why) => assert_eq!(why.by, By::Reply),
        Answer::Granted(granted) => panic!("{granted:?}"),
    }
    session.cancel("Nothing was sent.").await.unwrap();
    let heard = told(&stage.person.hears_until("session.cancelled").await);
    assert!(!heard.contains(&"tool.invoked".to_owned()), "{heard:?}");
}

pub(crate) async fn consent_is_for_its_session(mut stage: Stage) {
    let (one, other) = (stage.session().await, stage.session().await);
    let granted = granted(&one, &mut stage.person).await;
    let called = other.call(granted, async |_| -> Result<(), Infallible> { panic!("it must not run") }).await;
    assert!(
        matches!(called, Err(CallError::Session(Error::NotGranted(NotGranted::OtherSession)))),
        "{called:?}"
    );
}

pub(crate) async fn consent_is_for_its_action(mut stage: Stage) {
    let session = stage.session().await;
    let granted = granted(&session, &mut stage.person).await;
    // The same, written otherwise.
    let granted = granted.only_for("send", r#"{ "amount": "5.00", "to": "Ben" }"#).unwrap();
    let other = granted.only_for("send", r#"{"to":"Ben","amount":"5000.00"}"#);
    assert_eq!(other.err(), Some(Error::NotGranted(NotGranted::OtherAction)));
}

pub(crate) async fn what_breaks_a_rule_is_refused_by_its_id(mut stage: Stage) {
    let session = stage.session().await;
    let tool = session.tool("look").start().await.unwrap();
    // The state after a tool is not shown while the tool runs.
    let refused = session.think("Meanwhile.").await.unwrap_err();
    assert_eq!(refused.rules().collect::<Vec<_>>(), ["AAEP-4.3.2-3"]);
    tool.done("Seen.").await.unwrap();
    session.think("Afterwards.").await.unwrap();
    // A question without words is none.
    let refused = session.ask(Action::new("send", "{}")).await.unwrap_err();
    assert!(refused.rules().count() > 0, "{refused}");
    let refused = session.ask(Action::new("send", "{").says("Send.").consequence("Gone.")).await;
    assert!(matches!(refused, Err(Error::Malformed(_))), "{refused:?}");
    session.finish("Done.").await.unwrap();
    let heard = told(&stage.person.hears_until("session.completed").await);
    assert_eq!(
        heard,
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

pub(crate) async fn what_is_nested_too_deep_is_refused_whole(mut stage: Stage) {
    let deep = || Bound::json(format!("{}1{}", r#"{"a":"#.repeat(65), "}".repeat(65)));
    let options = EventOptions::new().extension("x", "https://example.org/x", deep());
    let refused = stage.hub.session("Pay Ben.").options(options).start().await;
    assert!(matches!(refused, Err(Error::Malformed(_))), "{refused:?}");
    let session = stage.session().await;
    let hand_off = HandOff::to(Target::EscalationQueue, "It is stuck.").packaged_context(deep());
    let refused = session.hand_off(hand_off).await;
    assert!(matches!(refused, Err(Error::Malformed(_))), "{refused:?}");
    let question = sending().extra_context(deep());
    let refused = session.ask(question).await;
    assert!(matches!(refused, Err(Error::Malformed(_))), "{refused:?}");
    session.finish("Done.").await.unwrap();
    assert_eq!(told(&stage.person.hears_until("session.completed").await), ["session.completed"]);
}

pub(crate) async fn a_last_word_that_breaks_a_rule_ends_the_session_all_the_same(mut stage: Stage) {
    let session = stage.session().await;
    let refused = session.finish("").await.unwrap_err();
    assert!(refused.rules().count() > 0, "{refused}");
    let last = stage.person.hears().await;
    assert_eq!(last["error_code"], "LAST_WORD_REFUSED");
}

pub(crate) async fn a_dropped_session_is_closed_honestly(mut stage: Stage) {
    let session = stage.session().await;
    session.output("Ben is ").await.unwrap();
    drop(session);
    let heard = stage.person.hears_until("session.errored").await;
    let last_chunk = heard.iter().rfind(|event| event["chunk"].is_string()).unwrap();
    assert_eq!(last_chunk["complete"], true);
    assert_eq!(heard.last().unwrap()["error_code"], "AGENT_LEFT");
}

pub(crate) async fn of_a_yes_that_was_not_used_it_is_told_so(mut stage: Stage) {
    let unused =
        "It had a yes and never said that it used it, so nothing is known to have been done with it.";
    for uses in [false, true] {
        let session = stage.session().await;
        let answers = async {
            let asked = stage.person.hears_until("awaiting.confirmation").await.pop().unwrap();
            stage.person.answers(&asked, "accept").await;
        };
        let (answer, ()) = tokio::join!(session.ask(sending()), answers);
        let Answer::Granted(granted) = answer.unwrap() else { panic!("refused") };
        if uses {
            session.begin(granted).await.unwrap().done("Sent.").await.unwrap();
        }
        drop(session);
        let last = stage.person.hears_until("session.errored").await.pop().unwrap();
        let said = last["summary_normal"].as_str().unwrap();
        assert!(said.starts_with("The agent stopped in the middle of its work"), "{said}");
        assert_eq!(said.ends_with(unused), !uses, "{said}");
    }
}

pub(crate) async fn a_panic_is_told(mut stage: Stage) {
    let session = stage.session().await;
    let agent = tokio::spawn(async move {
        let _tool = session.tool("look").start().await.unwrap();
        panic!("on purpose");
    });
    assert!(agent.await.unwrap_err().is_panic());
    let heard = stage.person.hears_until("session.errored").await;
    let expected = ["calling_tool", "tool.invoked", "tool.completed error", "thinking", "session.errored"];
    assert_eq!(told(&heard), expected);
    assert_eq!(heard.last().unwrap()["error_code"], "AGENT_PANICKED");
}

pub(crate) async fn a_cancelled_future_closes_its_tool(mut stage: Stage) {
    let session = stage.session().await;
    let (runs, running) = tokio::sync::oneshot::channel();
    let forever = session.tool("look").run(async move {
        let _ = runs.send(());
        std::future::pending::<Result<(), Infallible>>().await
    });
    tokio::select! {
        _ = forever => panic!("it does not end"),
        _ = running => {}
    }
    // The session itself goes on.
    session.think("Giving up on it.").await.unwrap();
    session.finish("Done.").await.unwrap();
    let heard = told(&stage.person.hears_until("session.completed").await);
    let expected =
        ["calling_tool", "tool.invoked", "tool.completed error", "thinking", "thinking", "session.completed"];
    assert_eq!(heard, expected);
}

pub(crate) async fn a_tool_that_fails_or_is_slow_is_told(mut stage: Stage) {
    let session = stage.session().await;
    let failed = session.tool("look").run(async { Err::<(), _>("password: hunter2 is wrong") }).await;
    assert_eq!(failed, Err(CallError::Tool("password: hunter2 is wrong")));
    let slow = session.tool("look").within(Duration::from_millis(1));
    let slow = slow.run(std::future::pending::<Result<(), Infallible>>()).await;
    assert_eq!(slow, Err(CallError::TimedOut));
    session.fail("It could not be seen.").await.unwrap();
    let heard = stage.person.hears_until("session.errored").await;
    let ended: Vec<_> = heard.iter().filter(|event| event["status"].is_string()).collect();
    assert_eq!(ended[0]["error_message"], "password: [redacted] is wrong");
    assert_eq!((&ended[0]["status"], &ended[1]["status"]), (&json!("error"), &json!("timeout")));
}

pub(crate) async fn tools_run_side_by_side(mut stage: Stage) {
    let session = stage.session().await;
    let (left, right) = tokio::join!(session.tool("left").start(), session.tool("right").start());
    let (left, right) = (left.unwrap(), right.unwrap());
    left.done("Left.").await.unwrap();
    right.done("Right.").await.unwrap();
    session.finish("Both.").await.unwrap();
    let heard = told(&stage.person.hears_until("session.completed").await);
    let expected = [
        "calling_tool",
        "tool.invoked",
        "tool.invoked",
        "tool.completed success",
        "tool.completed success",
        "thinking",
        "session.completed",
    ];
    assert_eq!(heard, expected);
}

pub(crate) async fn the_persons_stop_reaches_the_agent(mut stage: Stage) {
    let session = stage.session().await;
    let working = session.tool("look").run(std::future::pending::<Result<(), Infallible>>());
    let stopping = async {
        stage.person.hears_until("tool.invoked").await;
        stage.person.stops(session.id()).await;
    };
    let (worked, ()) = tokio::join!(working, stopping);
    assert_eq!(worked, Err(CallError::Session(Error::Stopped(Stop::Person))));
    assert_eq!(session.stopped().await, Stop::Person);
    assert_eq!(session.think("On.").await, Err(Error::Stopped(Stop::Person)));
    drop(session);
    let heard = stage.person.hears_until("session.cancelled").await;
    assert_eq!(heard.last().unwrap()["cancelled_by"], "user");
}

pub(crate) async fn a_stop_ends_a_question(mut stage: Stage) {
    let session = stage.session().await;
    let stopping = async {
        stage.person.hears_until("awaiting.confirmation").await;
        stage.person.stops(session.id()).await;
    };
    let (answer, ()) = tokio::join!(session.ask(sending()), stopping);
    assert_eq!(answer.err(), Some(Error::Stopped(Stop::Person)));
}

pub(crate) async fn what_was_meant_is_asked(mut stage: Stage) {
    let session = stage.session().await;
    let which = Question::new("Which Ben?").choice("a", "Ben Adams").choice("o", "Ben Okri");
    let (meant, ()) = tokio::join!(session.clarify(which), stage.person.explains(json!("o")));
    assert_eq!(meant, Ok(Clarified::Text("o".to_owned())));
    let sure = Question::new("Are you sure?").yes_or_no();
    let (meant, ()) = tokio::join!(session.clarify(sure), stage.person.explains(json!(true)));
    assert_eq!(meant, Ok(Clarified::YesNo(true)));
    session.finish("Understood.").await.unwrap();
}

pub(crate) async fn work_goes_on_while_a_person_is_asked(mut stage: Stage) {
    let session = stage.session().await;
    let meanwhile = async {
        stage.person.hears_until("awaiting.confirmation").await;
        session.think("Looking at other things.").await.unwrap();
        session.tool("look").run(async { Ok::<_, Infallible>(()) }).await.unwrap();
        let heard = told(&stage.person.hears_until("tool.completed").await);
        // To show another state would be to say that the question is resolved.
        assert_eq!(heard, ["progress.updated", "tool.invoked", "tool.completed success"]);
        stage.person.stops(session.id()).await;
    };
    let (answer, ()) = tokio::join!(session.ask(sending()), meanwhile);
    assert_eq!(answer.err(), Some(Error::Stopped(Stop::Person)));
}

pub(crate) async fn output_is_whole_when_the_agent_goes_on(mut stage: Stage) {
    let session = stage.session().await;
    session.output("Looking").await.unwrap();
    session.tool("look").run(async { Ok::<_, Infallible>(()) }).await.unwrap();
    session.output("Seen").await.unwrap();
    session.finish("Done.").await.unwrap();
    let heard = stage.person.hears_until("session.completed").await;
    let mut outputs = vec![String::new()];
    for event in heard.iter().filter(|event| event["chunk"].is_string()) {
        outputs.last_mut().unwrap().push_str(event["chunk"].as_str().unwrap());
        if event["complete"] == true {
            outputs.push(String::new());
        }
    }
    assert_eq!(outputs, ["Looking", "Seen", ""]);
}

pub(crate) async fn what_is_too_much_is_refused_and_a_long_output_is_not(mut stage: Stage) {
    let session = stage.session().await;
    let refused = session.think("a".repeat(2 * 1024 * 1024)).await.unwrap_err();
    assert!(matches!(refused, Error::TooMuch(_) | Error::Unlawful(_)), "{refused:?}");
    let long = "word".repeat(20_000);
    let says = async {
        session.output(long.as_str()).await.unwrap();
        session.finish("Done.").await.unwrap();
    };
    let ((), heard) = tokio::join!(says, stage.person.hears_until("session.completed"));
    let length: usize = heard.iter().filter_map(|event| event["chunk"].as_str()).map(str::len).sum();
    assert_eq!(length, long.len());
}
