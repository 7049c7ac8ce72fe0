//! Failures on the agent's or the listener's side, and how the other side learns of them.

use std::convert::Infallible;
use std::time::Duration;

use sayso::{Answer, CallError, ClarificationRequest, Error, ResolvedBy, StopReason};

use crate::both_hub_kinds::sessions::payment_action;
use crate::support::fixture::{HubFixture, TestListener, event_kinds};

/// The size of an oversized tool result.
const FIFTY_MEGABYTES: usize = 50 * 1024 * 1024;

pub(crate) async fn an_abandoned_question_is_withdrawn(mut fixture: HubFixture) {
    let session = fixture.session().await;
    for is_clarification in [false, true] {
        let kind = if is_clarification { "awaiting.clarification" } else { "awaiting.confirmation" };
        let asking = async {
            if is_clarification {
                drop(session.clarify(ClarificationRequest::new("Which Ben?")).await);
            } else {
                drop(session.ask(payment_action()).await);
            }
        };
        let question = tokio::select! {
            () = asking => panic!("nobody has answered"),
            events = fixture.listener.events_until(kind) => events.last().unwrap().clone(),
        };
        let resolved = fixture.listener.events_until("state.changed").await.pop().unwrap();
        assert_eq!(resolved["extensions"]["sayso"]["by"], "cancelled");
        assert_eq!(resolved["to_state"], "thinking");
        // An accept that comes too late has no effect, and the session continues.
        fixture.listener.decide(&question, "accept").await;
    }
    session.think("Going on without.").await.unwrap();
    session.finish("Done.").await.unwrap();
    let events = fixture.listener.events_until("session.completed").await;
    // The listener may learn before the agent that the question was withdrawn. Until the agent knows,
    // `think` sends a `progress.updated` instead of a state change.
    assert!(
        matches!(event_kinds(&events).first().map(String::as_str), Some("thinking" | "progress.updated")),
        "{events:?}"
    );
    assert_eq!((events.len(), &events[0]["summary_normal"]), (2, &"Going on without.".into()));
}

pub(crate) async fn a_question_dropped_before_it_is_sent_does_not_stay_open(mut fixture: HubFixture) {
    let session = fixture.session().await;
    {
        let mut asking = Box::pin(session.ask(payment_action()));
        // The future is dropped before the hub can answer. The question is asked and withdrawn, or not asked at all.
        let waker = std::task::Context::from_waker(std::task::Waker::noop()).waker().clone();
        let _ = asking.as_mut().poll(&mut std::task::Context::from_waker(&waker));
    }
    session.finish("Done.").await.unwrap();
    let events = fixture.listener.events_until("session.completed").await;
    let asked_count = events.iter().filter(|event| event["reply_token"].is_string()).count();
    let cancelled_count =
        events.iter().filter(|event| event["extensions"]["sayso"]["by"] == "cancelled").count();
    assert_eq!(asked_count, cancelled_count, "{:?}", event_kinds(&events));
}

pub(crate) async fn only_one_of_two_answers_counts(mut fixture: HubFixture) {
    let mut other = TestListener::listen(&fixture.address()).await;
    let session = fixture.session().await;
    let answering = async {
        let question = fixture.listener.events_until("awaiting.confirmation").await.pop().unwrap();
        other.events_until("awaiting.confirmation").await;
        tokio::join!(fixture.listener.decide(&question, "reject"), other.decide(&question, "accept"));
        let one = fixture.listener.events_until("state.changed").await.pop().unwrap();
        let two = other.events_until("state.changed").await.pop().unwrap();
        assert_eq!(one["extensions"]["sayso"], two["extensions"]["sayso"]);
        one["extensions"]["sayso"]["decision"].clone()
    };
    let (answer, decision) = tokio::join!(session.ask(payment_action()), answering);
    match answer.unwrap() {
        Answer::Granted(_) => assert_eq!(decision, "accept"),
        Answer::Refused(refusal) => assert_eq!((refusal.by, decision), (ResolvedBy::Reply, "reject".into())),
    }
}

pub(crate) async fn a_tool_result_after_the_end_is_an_error(mut fixture: HubFixture) {
    let session = fixture.session().await;
    let tool = session.tool("look").start().await.unwrap();
    fixture.listener.events_until("tool.invoked").await;
    fixture.listener.stop_session(session.id()).await;
    assert_eq!(session.stopped().await, StopReason::Person);
    assert_eq!(tool.succeed("Seen.").await, Err(Error::Stopped(StopReason::Person)));
    let kinds = event_kinds(&fixture.listener.events_until("session.cancelled").await);
    assert_eq!(kinds, ["tool.completed timeout", "session.cancelled"]);
}

pub(crate) async fn listeners_do_not_receive_an_oversized_tool_result(mut fixture: HubFixture) {
    let session = fixture.session().await;
    let long = "word ".repeat(FIFTY_MEGABYTES / 5);
    let tool = session.tool("read").start().await.unwrap();
    let refused = tool.succeed(long.as_str()).await.unwrap_err();
    assert!(matches!(refused, Error::LimitReached(_) | Error::RuleViolations(_)), "{refused:?}");
    let failed = session.tool("read").run(async { Err::<(), _>(long.clone()) }).await;
    assert_eq!(failed, Err(CallError::Tool(long.clone())));
    // The limit does not apply to the value that the agent receives.
    let returned = session.tool("read").run(async { Ok::<_, Infallible>(long.clone()) }).await;
    assert_eq!(returned.map(|long| long.len()), Ok(FIFTY_MEGABYTES));
    session.finish("Done.").await.unwrap();
    let events = fixture.listener.events_until("session.completed").await;
    let statuses: Vec<_> = events.iter().filter_map(|event| event["status"].as_str()).collect();
    assert_eq!(statuses, ["timeout", "error", "success"]);
    assert!(events.iter().all(|event| event.to_string().len() < 16 * 1024));
}

pub(crate) async fn a_tool_that_never_returns_times_out(mut fixture: HubFixture) {
    let session = fixture.session().await;
    let call = session.tool("look").timeout(Duration::from_millis(1));
    let ended = call.run(std::future::pending::<Result<(), Infallible>>()).await;
    assert_eq!(ended, Err(CallError::TimedOut));
    drop(session);
    let kinds = event_kinds(&fixture.listener.events_until("session.errored").await);
    assert!(kinds.contains(&"tool.completed timeout".to_owned()), "{kinds:?}");
}

pub(crate) async fn output_bytes_are_decoded_across_chunks(mut fixture: HubFixture) {
    let session = fixture.session().await;
    for piece in [&b"Caf\xC3"[..], b"\xA9 ", b"\xFF\xFE and ", b"\xF0\x9F", b"\x98\x80", b" and \xE2\x82"] {
        session.output_bytes(piece).await.unwrap();
    }
    session.finish("Done.").await.unwrap();
    let events = fixture.listener.events_until("session.completed").await;
    let chunks: String = events.iter().filter_map(|event| event["chunk"].as_str()).collect();
    assert_eq!(chunks, "Caf\u{e9} \u{FFFD}\u{FFFD} and \u{1F600} and \u{FFFD}");
}
