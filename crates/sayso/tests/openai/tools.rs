//! Tools: consent is requested where it is required, and every call is reported.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use sayso::openai::{Arguments, ChatError, LoopLimits, Tool, ToolOutcome};
use sayso::{ConsentRefusal, HandOff, HandOffOutcome, HandOffTarget, ResolvedBy, StopReason};
use serde_json::json;

use crate::openai::{
    agent, embedded_fixture, events_until_session_end, output, run_and_listen, send_money_tool,
};
use crate::support::endpoint::{AfterReply, Endpoint, ScriptedReply, delta, finish, text};
use crate::support::fixture::{HubFixture, HubKind, event_kinds};

/// A time limit that is long enough on any machine.
const TEST_TIMEOUT: Duration = Duration::from_mins(2);

const ARGUMENTS: &str = r#"{"to":"Ben","euro":5}"#;

#[tokio::test]
async fn arguments_are_read_by_name_and_type() {
    let json = r#"{"to":"Ben","euro":5,"now":true}"#;
    let endpoint = Endpoint::new([
        ScriptedReply::from_tool_call("look", json),
        ScriptedReply::from_text("That was it."),
    ])
    .await;
    let look = move |arguments: Arguments| async move {
        assert_eq!(arguments.json(), json);
        assert_eq!((arguments.text("to").as_deref(), arguments.text("euro")), (Some("Ben"), None));
        assert_eq!((arguments.number("euro"), arguments.boolean("now")), (Some(5.0), Some(true)));
        assert_eq!(["to", "euro", "why"].map(|name| arguments.display_text(name)), ["Ben", "5", "nothing"]);
        Ok::<_, String>("seen")
    };
    let tool = Tool::new("look", "Looks at its arguments.", r#"{"type":"object"}"#, look);
    let (reply, _) = run_and_listen(&agent(&endpoint).tool(tool), &mut embedded_fixture().await).await;
    assert_eq!(reply.unwrap().calls[0].outcome, ToolOutcome::Succeeded);
}

#[tokio::test]
async fn a_dangerous_tool_runs_once_on_accept_and_never_on_reject() {
    let cases = [HubKind::Embedded, HubKind::Remote]
        .into_iter()
        .flat_map(|kind| [(kind, "accept", 1), (kind, "reject", 0)]);
    for (kind, decision, runs) in cases {
        let endpoint = Endpoint::new([
            ScriptedReply::from_tool_call("send", ARGUMENTS),
            ScriptedReply::from_text("That was it."),
        ])
        .await;
        let mut fixture = HubFixture::new(kind).await;
        let sent = Arc::new(AtomicUsize::new(0));
        let agent = agent(&endpoint).tool(send_money_tool(&sent));
        let hub = fixture.hub.clone();
        let listening = async {
            let question = fixture.listener.decide_next(decision).await;
            assert_eq!(question["action"], "Send 5 euros to Ben.");
            assert_eq!(question["consequence"], "The money is gone at once.");
            assert_eq!((&question["risk_level"], &question["irreversible"]), (&json!("high"), &json!(true)));
            events_until_session_end(&mut fixture).await
        };
        let (reply, events) = tokio::join!(agent.run(&hub, "Pay Ben."), listening);
        let reply = reply.unwrap();
        assert_eq!((reply.text.as_str(), reply.rounds), ("That was it.", 2));
        assert_eq!(sent.load(Ordering::SeqCst), runs);
        assert_eq!(event_kinds(&events).contains(&"tool.invoked".to_owned()), runs == 1, "{events:?}");
        assert_eq!(output(&events), "That was it.");
        let requests = endpoint.requests();
        let tool_message = requests[1].last_message();
        assert_eq!((&tool_message["role"], &tool_message["tool_call_id"]), (&json!("tool"), &json!("c1")));
        let content = tool_message["content"].as_str().unwrap();
        if runs == 1 {
            assert_eq!(content, "Sent to Ben.");
            assert_eq!(reply.calls[0].outcome, ToolOutcome::Succeeded);
        } else {
            assert!(content.starts_with("The person refused. The tool was not run."), "{content}");
            assert!(matches!(
                reply.calls[0].outcome,
                ToolOutcome::Refused(ConsentRefusal { by: ResolvedBy::Reply, .. })
            ));
        }
        let assistant_message = &requests[1].body["messages"][2];
        assert_eq!(
            assistant_message["tool_calls"][0]["function"],
            json!({"name": "send", "arguments": ARGUMENTS})
        );
        assert_eq!(
            requests[0].body["tools"][0]["function"]["parameters"]["properties"]["to"]["type"],
            "string"
        );
    }
}

#[tokio::test]
async fn without_a_listener_consent_is_refused() {
    let endpoint = Endpoint::new([
        ScriptedReply::from_tool_call("send", ARGUMENTS),
        ScriptedReply::from_text("Then not."),
    ])
    .await;
    let hub = sayso::Hub::embedded().agent("bank").open().unwrap();
    let sent = Arc::new(AtomicUsize::new(0));
    let reply = agent(&endpoint).tool(send_money_tool(&sent)).run(&hub, "Pay Ben.").await.unwrap();
    assert!(matches!(
        reply.calls[0].outcome,
        ToolOutcome::Refused(ConsentRefusal { by: ResolvedBy::Unreachable, .. })
    ));
    assert_eq!(sent.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn fragmented_tool_calls_are_assembled() {
    let call_delta = |index: usize, more: serde_json::Value| {
        let mut call = json!({ "index": index });
        call.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        delta(&json!({ "tool_calls": [call] }))
    };
    let reply = ScriptedReply::stream([
        call_delta(0, json!({"id": "a", "type": "function", "function": {"name": "look", "arguments": ""}})),
        call_delta(1, json!({"id": "b", "function": {"name": "look"}})),
        call_delta(0, json!({"function": {"arguments": "{\"where\":\"Os"}})),
        call_delta(1, json!({"function": {"arguments": "{\"where\":\"Lag"}})),
        call_delta(0, json!({"function": {"arguments": "lo\"}"}})),
        call_delta(1, json!({"id": null, "function": {"name": null, "arguments": "os\"}"}})),
        finish("tool_calls"),
    ])
    .with_done_marker()
    .split_every(5);
    let endpoint = Endpoint::new([reply, ScriptedReply::from_text("Seen.")]).await;
    let mut fixture = embedded_fixture().await;
    let look = |arguments: Arguments| async move {
        Ok::<_, String>(format!("rain in {}", arguments.display_text("where")))
    };
    let look = Tool::new("look", "Looks at the sky.", r#"{"type":"object"}"#, look)
        .says(|call| format!("Looking at the sky over {}.", call.display_text("where")));
    let (reply, events) = run_and_listen(&agent(&endpoint).tool(look), &mut fixture).await;
    assert_eq!(reply.unwrap().calls.len(), 2);
    let messages = endpoint.requests()[1].body["messages"].clone();
    assert_eq!(
        (&messages[3]["tool_call_id"], &messages[3]["content"]),
        (&json!("a"), &json!("rain in Oslo"))
    );
    assert_eq!(
        (&messages[4]["tool_call_id"], &messages[4]["content"]),
        (&json!("b"), &json!("rain in Lagos"))
    );
    let invoked: Vec<_> = events.iter().filter(|event| event["type"] == "aaep:agent.tool.invoked").collect();
    assert_eq!(invoked[0]["summary_normal"], "Looking at the sky over Oslo.");
}

#[tokio::test]
async fn a_call_of_an_unknown_tool_is_reported_to_listeners_and_the_model() {
    let endpoint = Endpoint::new([
        ScriptedReply::from_tool_call("fly to the moon", "{}"),
        ScriptedReply::from_text("I cannot."),
    ])
    .await;
    let mut fixture = embedded_fixture().await;
    let (reply, events) = run_and_listen(&agent(&endpoint), &mut fixture).await;
    assert_eq!(reply.unwrap().calls[0].outcome, ToolOutcome::UnknownTool);
    let mut summaries = events.iter().filter_map(|event| event["summary_normal"].as_str());
    assert!(
        summaries.any(|summary| summary.contains("fly to the moon") && summary.contains("does not exist"))
    );
    assert!(!event_kinds(&events).contains(&"tool.invoked".to_owned()));
    assert!(
        endpoint.requests()[1].last_message()["content"]
            .as_str()
            .unwrap()
            .starts_with("There is no tool called")
    );
}

#[tokio::test]
async fn invalid_arguments_run_nothing() {
    for bad in ["{", "[]", "5", r#""to""#, r#"{"to":"Ben","to":"Eve"}"#, r#"{"euro":9007199254740993}"#] {
        let endpoint =
            Endpoint::new([ScriptedReply::from_tool_call("send", bad), ScriptedReply::from_text("Sorry.")])
                .await;
        let mut fixture = embedded_fixture().await;
        let sent = Arc::new(AtomicUsize::new(0));
        let (reply, events) =
            run_and_listen(&agent(&endpoint).tool(send_money_tool(&sent)), &mut fixture).await;
        let reply = reply.unwrap();
        assert!(matches!(reply.calls[0].outcome, ToolOutcome::InvalidArguments(_)), "{bad}: {reply:?}");
        assert_eq!(sent.load(Ordering::SeqCst), 0);
        let mut summaries = events.iter().filter_map(|event| event["summary_normal"].as_str());
        assert!(summaries.any(|summary| summary.contains("invalid arguments. Nothing was done")), "{bad}");
        assert!(
            endpoint.requests()[1].last_message()["content"]
                .as_str()
                .unwrap()
                .contains("The arguments are invalid")
        );
    }
}

/// Runs a tool once and checks the reported status. Returns its outcome and the content that the model receives.
async fn run_tool_once(tool: Tool, status: &str) -> (ToolOutcome, String) {
    let endpoint =
        Endpoint::new([ScriptedReply::from_tool_call("odd", "{}"), ScriptedReply::from_text("So be it.")])
            .await;
    let mut fixture = embedded_fixture().await;
    let (reply, events) = run_and_listen(&agent(&endpoint).tool(tool), &mut fixture).await;
    let statuses: Vec<_> = events.iter().filter_map(|event| event["status"].as_str()).collect();
    assert_eq!(statuses, [status]);
    let content = endpoint.requests()[1].last_message()["content"].as_str().unwrap().to_owned();
    (reply.unwrap().calls.remove(0).outcome, content)
}

const ANY_OBJECT: &str = r#"{"type":"object"}"#;

#[tokio::test]
async fn tool_failures_and_a_large_result_are_reported() {
    let fails = Tool::new("odd", "", ANY_OBJECT, async |_| Err::<String, _>("no such account"));
    assert_eq!(run_tool_once(fails, "error").await.0, ToolOutcome::Failed("no such account".to_owned()));
    let breaks = Tool::new("odd", "", ANY_OBJECT, |_| async {
        assert!(std::env::args().count() == 0, "on purpose");
        Ok::<_, String>("never")
    });
    assert_eq!(run_tool_once(breaks, "error").await.0, ToolOutcome::Panicked);
    let hangs = Tool::new("odd", "", ANY_OBJECT, |_| std::future::pending::<Result<String, String>>());
    let (outcome, content) = run_tool_once(hangs.timeout(Duration::from_millis(1)), "timeout").await;
    assert_eq!(
        (outcome, content.as_str()),
        (ToolOutcome::TimedOut, "The tool did not work: it took too long.")
    );
    let not_text = Tool::new("odd", "", ANY_OBJECT, async |_| Ok::<_, String>(vec![0xff_u8, 0xfe]));
    assert_eq!(
        run_tool_once(not_text, "error").await.0,
        ToolOutcome::Failed("its result is not text".to_owned())
    );
    let large = Tool::new("odd", "", ANY_OBJECT, async |_| Ok::<_, String>("é".repeat(25_000_000)));
    let (outcome, content) = run_tool_once(large, "success").await;
    assert_eq!(outcome, ToolOutcome::Succeeded);
    assert!(
        content.len() < 70_000 && content.ends_with("[Truncated: this is the beginning of 50000000 bytes.]")
    );
}

#[tokio::test]
async fn a_call_whose_question_is_too_long_is_not_run() {
    let arguments = json!({"to": "x".repeat(100_000), "euro": 5}).to_string();
    let endpoint = Endpoint::new([
        ScriptedReply::from_tool_call("send", &arguments),
        ScriptedReply::from_text("Sorry."),
    ])
    .await;
    let mut fixture = embedded_fixture().await;
    let sent = Arc::new(AtomicUsize::new(0));
    let (reply, _) = run_and_listen(&agent(&endpoint).tool(send_money_tool(&sent)), &mut fixture).await;
    assert!(matches!(reply.unwrap().calls[0].outcome, ToolOutcome::NotAnnounced(_)));
    assert_eq!(sent.load(Ordering::SeqCst), 0);
}

/// Sends a signal when it is dropped.
struct DropSignal(tokio::sync::mpsc::UnboundedSender<()>);

impl Drop for DropSignal {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

#[tokio::test]
async fn a_stop_request_ends_the_loop_at_any_point() {
    let (dropped_sender, mut dropped) = tokio::sync::mpsc::unbounded_channel();
    let hangs = Tool::new("odd", "", ANY_OBJECT, move |_| {
        let signal = DropSignal(dropped_sender.clone());
        async move {
            let _signal = signal;
            std::future::pending::<Result<String, String>>().await
        }
    });
    // Only the stop can end the loop before the test times out.
    let hour = Duration::from_hours(1);
    let limits = LoopLimits { tool_timeout: hour, stall_timeout: hour, ..LoopLimits::default() };
    let stalls = ScriptedReply::stream([text("Once upon a time. It was")]).and_then(AfterReply::Stall);
    for (reply, event) in
        [(ScriptedReply::from_tool_call("odd", "{}"), "tool.invoked"), (stalls, "output.streaming")]
    {
        let endpoint = Endpoint::new([reply]).await;
        let mut fixture = embedded_fixture().await;
        let agent = agent(&endpoint).tool(hangs.clone()).limits(limits.clone());
        let hub = fixture.hub.clone();
        let stopping = async {
            let events = fixture.listener.events_until(event).await;
            let session = events[0]["session_id"].as_str().unwrap().to_owned();
            fixture.listener.stop_session(&session).await;
            events_until_session_end(&mut fixture).await
        };
        let running = tokio::time::timeout(TEST_TIMEOUT, agent.run(&hub, "Pay Ben."));
        let (reply, events) = tokio::join!(running, stopping);
        let error = reply.expect("the stop is noticed").unwrap_err();
        assert_eq!(error, ChatError::Session(sayso::Error::Stopped(StopReason::Person)));
        assert_eq!(events.last().unwrap()["cancelled_by"], "user");
    }
    tokio::time::timeout(TEST_TIMEOUT, dropped.recv()).await.expect("the tool is dropped");
}

#[tokio::test]
async fn tool_names_may_be_repeated_or_split() {
    let call_delta = |name: &str, arguments: &str| {
        delta(
            &json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": name, "arguments": arguments}}]}),
        )
    };
    let repeated = [call_delta("look", "{"), call_delta("look", "}"), finish("tool_calls")];
    let split = [call_delta("lo", "{"), call_delta("ok", "}"), finish("tool_calls")];
    for events in [repeated, split] {
        let endpoint = Endpoint::new([
            ScriptedReply::stream(events).with_done_marker(),
            ScriptedReply::from_text("Seen."),
        ])
        .await;
        let mut fixture = embedded_fixture().await;
        let look = Tool::new("look", "Looks.", ANY_OBJECT, async |_| Ok::<_, String>("rain"));
        let (reply, _) = run_and_listen(&agent(&endpoint).tool(look), &mut fixture).await;
        assert_eq!(reply.unwrap().calls[0].outcome, ToolOutcome::Succeeded);
    }
}

#[tokio::test]
async fn a_tool_can_hand_off_and_learns_the_outcome() {
    let endpoint = Endpoint::new([
        ScriptedReply::from_tool_call("escalate", "{}"),
        ScriptedReply::from_text("Ada will call you."),
    ])
    .await;
    let escalate = |_: Arguments| async {
        let session = sayso::current().ok_or("no session")?;
        let hand_off = HandOff::new(HandOffTarget::Human, "The refund needs a person.");
        match session.hand_off(hand_off).await {
            Ok(HandOffOutcome::Acknowledged { note, .. }) => Ok(note.unwrap_or_default()),
            other => Err(format!("{other:?}")),
        }
    };
    let tool = Tool::new("escalate", "Asks a person.", r#"{"type":"object"}"#, escalate);
    let mut fixture = embedded_fixture().await;
    let (agent, hub) = (agent(&endpoint).tool(tool), fixture.hub.clone());
    let listening = async {
        fixture.listener.answer_next_hand_off("acknowledge", Some("I will call.")).await;
        events_until_session_end(&mut fixture).await
    };
    let (reply, events) = tokio::join!(agent.run(&hub, "Refund my order."), listening);
    assert_eq!(reply.unwrap().calls[0].outcome, ToolOutcome::Succeeded);
    assert_eq!(endpoint.requests()[1].last_message()["content"], "I will call.");
    assert_eq!(output(&events), "Ada will call you.");
}
