//! What goes wrong on the agent's side or on the person's, and what the other side gets to know of it.

use std::convert::Infallible;
use std::time::Duration;

use sayso::{Answer, By, CallError, Error, Question, Stop};

use crate::both::behaviours::sending;
use crate::support::stage::{Person, Stage, told};

/// What a tool may come back with.
const FIFTY_MEGABYTES: usize = 50 * 1024 * 1024;

pub(crate) async fn a_question_that_nobody_waits_for_is_taken_back(mut stage: Stage) {
    let session = stage.session().await;
    for clarify in [false, true] {
        let kind = if clarify { "awaiting.clarification" } else { "awaiting.confirmation" };
        let asks = async {
            if clarify {
                drop(session.clarify(Question::new("Which Ben?")).await);
            } else {
                drop(session.ask(sending()).await);
            }
        };
        let asked = tokio::select! {
            () = asks => panic!("nobody has answered"),
            asked = stage.person.hears_until(kind) => asked.last().unwrap().clone(),
        };
        let resolved = stage.person.hears_until("state.changed").await.pop().unwrap();
        assert_eq!(resolved["extensions"]["sayso"]["by"], "cancelled");
        assert_eq!(resolved["to_state"], "thinking");
        // A yes that comes too late is none, and the session goes on.
        stage.person.answers(&asked, "accept").await;
    }
    session.think("Going on without.").await.unwrap();
    session.finish("Done.").await.unwrap();
    let heard = stage.person.hears_until("session.completed").await;
    // The person may hear that the question is gone before the agent does, whose words are no state until then.
    assert!(
        matches!(told(&heard).first().map(String::as_str), Some("thinking" | "progress.updated")),
        "{heard:?}"
    );
    assert_eq!((heard.len(), &heard[0]["summary_normal"]), (2, &"Going on without.".into()));
}

pub(crate) async fn a_question_that_was_never_sent_is_never_heard(mut stage: Stage) {
    let session = stage.session().await;
    {
        let mut asks = Box::pin(session.ask(sending()));
        // Ordered, and dropped before the hub can have answered; it is asked and taken back, or not asked at all.
        let now = std::task::Context::from_waker(std::task::Waker::noop()).waker().clone();
        let _ = asks.as_mut().poll(&mut std::task::Context::from_waker(&now));
    }
    session.finish("Done.").await.unwrap();
    let heard = stage.person.hears_until("session.completed").await;
    let asked = heard.iter().filter(|event| event["reply_token"].is_string()).count();
    let settled = heard.iter().filter(|event| event["extensions"]["sayso"]["by"] == "cancelled").count();
    assert_eq!(asked, settled, "{:?}", told(&heard));
}

pub(crate) async fn of_two_answers_one_counts(mut stage: Stage) {
    let mut other = Person::listen(&stage.address()).await;
    let session = stage.session().await;
    let both = async {
        let asked = stage.person.hears_until("awaiting.confirmation").await.pop().unwrap();
        other.hears_until("awaiting.confirmation").await;
        tokio::join!(stage.person.answers(&asked, "reject"), other.answers(&asked, "accept"));
        let one = stage.person.hears_until("state.changed").await.pop().unwrap();
        let two = other.hears_until("state.changed").await.pop().unwrap();
        assert_eq!(one["extensions"]["sayso"], two["extensions"]["sayso"]);
        one["extensions"]["sayso"]["decision"].clone()
    };
    let (answer, told) = tokio::join!(session.ask(sending()), both);
    match answer.unwrap() {
        Answer::Granted(_) => assert_eq!(told, "accept"),
        Answer::Refused(why) => assert_eq!((why.by, told), (By::Reply, "reject".into())),
    }
}

pub(crate) async fn a_tool_that_returns_after_the_end_is_told_so(mut stage: Stage) {
    let session = stage.session().await;
    let tool = session.tool("look").start().await.unwrap();
    stage.person.hears_until("tool.invoked").await;
    stage.person.stops(session.id()).await;
    assert_eq!(session.stopped().await, Stop::Person);
    assert_eq!(tool.done("Seen.").await, Err(Error::Stopped(Stop::Person)));
    let heard = told(&stage.person.hears_until("session.cancelled").await);
    assert_eq!(heard, ["tool.completed error", "session.cancelled"]);
}

pub(crate) async fn a_tool_that_comes_back_with_too_much_is_closed_in_plain_words(mut stage: Stage) {
    let session = stage.session().await;
    let long = "word ".repeat(FIFTY_MEGABYTES / 5);
    let tool = session.tool("read").start().await.unwrap();
    let refused = tool.done(long.as_str()).await.unwrap_err();
    assert!(matches!(refused, Error::TooMuch(_) | Error::Unlawful(_)), "{refused:?}");
    let failed = session.tool("read").run(async { Err::<(), _>(long.clone()) }).await;
    assert_eq!(failed, Err(CallError::Tool(long.clone())));
    // What it gives to the agent is the agent's own.
    let given = session.tool("read").run(async { Ok::<_, Infallible>(long.clone()) }).await;
    assert_eq!(given.map(|long| long.len()), Ok(FIFTY_MEGABYTES));
    session.finish("Done.").await.unwrap();
    let heard = stage.person.hears_until("session.completed").await;
    let ended: Vec<_> = heard.iter().filter_map(|event| event["status"].as_str()).collect();
    assert_eq!(ended, ["error", "error", "success"]);
    assert!(heard.iter().all(|event| event.to_string().len() < 16 * 1024));
}

pub(crate) async fn a_tool_that_never_returns_is_given_up(mut stage: Stage) {
    let session = stage.session().await;
    let call = session.tool("look").within(Duration::from_millis(1));
    let ended = call.run(std::future::pending::<Result<(), Infallible>>()).await;
    assert_eq!(ended, Err(CallError::TimedOut));
    drop(session);
    let heard = told(&stage.person.hears_until("session.errored").await);
    assert!(heard.contains(&"tool.completed timeout".to_owned()), "{heard:?}");
}

pub(crate) async fn bytes_are_text_however_they_are_cut_and_whatever_they_are(mut stage: Stage) {
    let session = stage.session().await;
    for piece in [&b"Caf\xC3"[..], b"\xA9 ", b"\xFF\xFE and ", b"\xF0\x9F", b"\x98\x80", b" and \xE2\x82"] {
        session.output_bytes(piece).await.unwrap();
    }
    session.finish("Done.").await.unwrap();
    let heard = stage.person.hears_until("session.completed").await;
    let chunks: String = heard.iter().filter_map(|event| event["chunk"].as_str()).collect();
    assert_eq!(chunks, "Caf\u{e9} \u{FFFD}\u{FFFD} and \u{1F600} and \u{FFFD}");
}
