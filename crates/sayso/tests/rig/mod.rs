//! Rig's own loop, against a local endpoint, with a tool that needs consent.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rig_agent::{Agent, AgentBuilder};
use rig_core::providers::openai::OpenAIConfig;
use rig_core::serde_json::{Value, json};
use rig_core::tool::PortableTool;
use sayso::rig::{Adapter, RigError};
use sayso::{HandOff, HandOffOutcome, HandOffTarget, Hub, StopReason};

use crate::support::endpoint::{AfterReply, Endpoint, ScriptedReply, text};
use crate::support::fixture::{HubFixture, HubKind, event_kinds};

#[derive(rig_core::serde::Deserialize)]
#[serde(crate = "rig_core::serde")]
struct Payment {
    to: String,
    euro: u32,
}

/// Sends money and counts its calls.
#[derive(Clone, Default)]
struct SendMoney(Arc<AtomicUsize>);

impl SendMoney {
    fn sent(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl PortableTool for SendMoney {
    const NAME: &'static str = "send";
    type Args = Payment;
    type Output = String;
    type Error = Infallible;

    fn description(&self) -> String {
        "Sends money.".to_owned()
    }

    fn parameters(&self) -> Value {
        json!({"type": "object", "properties": {"to": {"type": "string"}, "euro": {"type": "integer"}}})
    }

    async fn call(&self, payment: Payment) -> Result<String, Infallible> {
        self.0.fetch_add(1, Ordering::SeqCst);
        if payment.to == "nobody" {
            std::future::pending::<()>().await;
        }
        Ok(format!("{} euros were sent to {}.", payment.euro, payment.to))
    }
}

/// A tool that needs no consent.
struct Look;

impl PortableTool for Look {
    const NAME: &'static str = "look";
    type Args = Value;
    type Output = String;
    type Error = std::io::Error;

    fn description(&self) -> String {
        "Looks at the sky.".to_owned()
    }

    fn parameters(&self) -> Value {
        json!({"type": "object"})
    }

    async fn call(&self, arguments: Value) -> Result<String, std::io::Error> {
        if arguments["ask"] == true {
            let session = sayso::current().ok_or_else(|| std::io::Error::other("no session"))?;
            let hand_off = HandOff::new(HandOffTarget::Human, "The sky needs a person.");
            let outcome = session.hand_off(hand_off).await.map_err(std::io::Error::other)?;
            return match outcome {
                HandOffOutcome::Acknowledged { note, .. } => Ok(note.unwrap_or_default()),
                _ => Err(std::io::Error::other("nobody took over")),
            };
        }
        match arguments["blind"].as_bool() {
            Some(true) => Err(std::io::Error::other("it is dark")),
            _ => Ok("It rains.".to_owned()),
        }
    }
}

fn agent(endpoint: &Endpoint, adapter: &Adapter, send: &SendMoney) -> Agent {
    agent_with_timeout(endpoint, adapter, send, Duration::from_mins(2))
}

/// Returns an agent whose `send` tool has this timeout.
fn agent_with_timeout(endpoint: &Endpoint, adapter: &Adapter, send: &SendMoney, timeout: Duration) -> Agent {
    let model = OpenAIConfig::new("sk-test").with_base_url(&endpoint.url).client().chat("test-model");
    let send = adapter
        .require_consent(send.clone())
        .irreversible()
        .says(|payment| format!("Send {} euros to {}.", payment.euro, payment.to))
        .consequence(|_| "The money is gone at once.".to_owned())
        .timeout(timeout);
    AgentBuilder::new(model).tool(send).tool(Look).default_max_turns(4).build()
}

async fn events_until_session_end(fixture: &mut HubFixture) -> Vec<Value> {
    let mut events = Vec::new();
    loop {
        let event = fixture.listener.next_event().await;
        let kind = event["type"].as_str().unwrap().to_owned();
        events.push(event);
        if ["completed", "errored", "cancelled"].iter().any(|end| kind == format!("aaep:agent.session.{end}"))
        {
            return events;
        }
    }
}

fn output(events: &[Value]) -> String {
    events.iter().filter_map(|event| event["chunk"].as_str()).collect()
}

/// Returns the tool result that the model received.
fn tool_result(endpoint: &Endpoint) -> String {
    let requests = endpoint.requests();
    let last = requests[1].last_message().clone();
    assert_eq!(last["role"], "tool", "{last}");
    last["content"].to_string()
}

const PAY_BEN: &str = r#"{"to":"Ben","euro":5}"#;

#[tokio::test]
async fn rigs_loop_runs_a_dangerous_tool_once_on_accept_and_never_on_reject() {
    for (decision, runs) in [("accept", 1), ("reject", 0)] {
        let endpoint = Endpoint::new([
            ScriptedReply::from_tool_call("send", PAY_BEN),
            ScriptedReply::from_text("That was it."),
        ])
        .await;
        let mut fixture = HubFixture::new(HubKind::Embedded).await;
        let (adapter, send) = (Adapter::new(&fixture.hub), SendMoney::default());
        let agent = agent(&endpoint, &adapter, &send);
        let listening = async {
            let question = fixture.listener.decide_next(decision).await;
            assert_eq!(
                (&question["action"], &question["irreversible"]),
                (&json!("Send 5 euros to Ben."), &json!(true))
            );
            events_until_session_end(&mut fixture).await
        };
        let (response, events) = tokio::join!(adapter.prompt(&agent, "Pay Ben."), listening);
        assert_eq!(response.unwrap().output(), "That was it.");
        assert_eq!(send.sent(), runs);
        assert_eq!(output(&events), "That was it.");
        let first_chunk = events.iter().find(|event| event["chunk"].is_string()).unwrap();
        assert_eq!(first_chunk["content_type"], "text/markdown", "models write Markdown");
        let kinds = event_kinds(&events);
        assert_eq!(kinds.contains(&"tool.invoked".to_owned()), runs == 1, "{kinds:?}");
        assert_eq!(kinds.contains(&"tool.completed success".to_owned()), runs == 1, "{kinds:?}");
        assert_eq!(kinds.last().unwrap(), "session.completed");
        let result = tool_result(&endpoint);
        let expected =
            if runs == 1 { "5 euros were sent to Ben." } else { "The person refused. The tool was not run." };
        assert!(result.contains(expected), "{result}");
    }
}

#[tokio::test]
async fn a_tool_that_requires_consent_does_nothing_without_a_session() {
    let endpoint = Endpoint::new([
        ScriptedReply::from_tool_call("send", PAY_BEN),
        ScriptedReply::from_text("Then not."),
    ])
    .await;
    let hub = Hub::embedded().agent("bank").open().unwrap();
    let (adapter, send) = (Adapter::new(&hub), SendMoney::default());
    let agent = agent(&endpoint, &adapter, &send);
    // Rig runs the agent without the adapter, so the call has no session in which to ask.
    let response = agent.prompt("Pay Ben.").stream();
    let items: Vec<_> = futures_util::StreamExt::collect(response).await;
    assert!(items.iter().all(Result::is_ok), "{items:?}");
    assert_eq!(send.sent(), 0);
    assert!(tool_result(&endpoint).contains("Nobody could be asked."), "{}", tool_result(&endpoint));
}

#[tokio::test]
async fn tools_that_need_no_consent_are_reported_too() {
    for (arguments, status) in
        [("{}", "tool.completed success"), (r#"{"blind":true}"#, "tool.completed error")]
    {
        let endpoint = Endpoint::new([
            ScriptedReply::from_tool_call("look", arguments),
            ScriptedReply::from_text("So it is."),
        ])
        .await;
        let mut fixture = HubFixture::new(HubKind::Embedded).await;
        let (adapter, send) = (Adapter::new(&fixture.hub), SendMoney::default());
        let agent = agent(&endpoint, &adapter, &send);
        let (response, events) =
            tokio::join!(adapter.prompt(&agent, "Look."), events_until_session_end(&mut fixture));
        assert_eq!(response.unwrap().output(), "So it is.");
        let mut kinds = event_kinds(&events);
        kinds.dedup();
        let at = kinds.iter().position(|kind| kind == "tool.invoked").expect("the call is announced first");
        assert_eq!(kinds[at + 1], status);
    }
}

#[tokio::test]
async fn an_invalid_call_is_reported_and_not_run() {
    let cases = [
        ("fly", "{}", "does not exist"),
        ("send", "[]", "invalid arguments"),
        ("send", "{", "invalid arguments"),
        ("send", r#"{"to":"Ben"}"#, "invalid arguments"),
    ];
    for (tool, arguments, expected) in cases {
        let endpoint = Endpoint::new([
            ScriptedReply::from_tool_call(tool, arguments),
            ScriptedReply::from_text("I cannot."),
        ])
        .await;
        let mut fixture = HubFixture::new(HubKind::Embedded).await;
        let (adapter, send) = (Adapter::new(&fixture.hub), SendMoney::default());
        let agent = agent(&endpoint, &adapter, &send);
        let (response, events) =
            tokio::join!(adapter.prompt(&agent, "Go."), events_until_session_end(&mut fixture));
        assert_eq!(response.unwrap().output(), "I cannot.", "{tool} {arguments}");
        assert_eq!(send.sent(), 0);
        let mut summaries = events.iter().filter_map(|event| event["summary_normal"].as_str());
        assert!(summaries.any(|summary| summary.contains(expected)), "{events:?}");
        assert!(!event_kinds(&events).contains(&"tool.invoked".to_owned()), "{events:?}");
    }
}

#[tokio::test]
async fn a_hanging_tool_times_out_and_the_loop_continues() {
    let arguments = r#"{"to":"nobody","euro":5}"#;
    let endpoint = Endpoint::new([
        ScriptedReply::from_tool_call("send", arguments),
        ScriptedReply::from_text("It hangs."),
    ])
    .await;
    let mut fixture = HubFixture::new(HubKind::Embedded).await;
    let (adapter, send) = (Adapter::new(&fixture.hub), SendMoney::default());
    let agent = agent_with_timeout(&endpoint, &adapter, &send, Duration::from_millis(200));
    let listening = async {
        fixture.listener.decide_next("accept").await;
        events_until_session_end(&mut fixture).await
    };
    let (response, events) = tokio::join!(adapter.prompt(&agent, "Pay nobody."), listening);
    assert_eq!(response.unwrap().output(), "It hangs.");
    assert!(event_kinds(&events).contains(&"tool.completed timeout".to_owned()), "{events:?}");
}

#[tokio::test]
async fn endpoint_failures_and_endless_tool_calls_are_reported() {
    let truncated = ScriptedReply::stream([text("It is ")]).and_then(AfterReply::Close);
    let unauthorized = ScriptedReply::status(
        401,
        "application/json",
        "",
        r#"{"error":{"message":"Incorrect key sk-test."}}"#,
    );
    for (reply, code) in [
        (truncated, "MODEL_FAILED"),
        (unauthorized, "MODEL_FAILED"),
        (ScriptedReply::from_tool_call("look", "{}"), "MODEL_TOO_MANY_ROUNDS"),
    ] {
        let endpoint = Endpoint::new([reply]).await;
        let mut fixture = HubFixture::new(HubKind::Embedded).await;
        let (adapter, send) = (Adapter::new(&fixture.hub), SendMoney::default());
        let agent = agent(&endpoint, &adapter, &send);
        let (response, events) =
            tokio::join!(adapter.prompt(&agent, "Look."), events_until_session_end(&mut fixture));
        assert!(matches!(response, Err(RigError::Run(_))), "{response:?}");
        assert_eq!(events.last().unwrap()["error_code"], code);
        assert!(events.iter().all(|event| !event.to_string().contains("sk-test")));
    }
}

#[tokio::test]
async fn a_stop_request_ends_rigs_loop() {
    let stalls = ScriptedReply::stream([text("Once upon a time. It was")]).and_then(AfterReply::Stall);
    for (reply, event) in [
        (ScriptedReply::from_tool_call("send", PAY_BEN), "awaiting.confirmation"),
        (stalls, "output.streaming"),
    ] {
        let endpoint = Endpoint::new([reply]).await;
        let mut fixture = HubFixture::new(HubKind::Embedded).await;
        let (adapter, send) = (Adapter::new(&fixture.hub), SendMoney::default());
        let agent = agent(&endpoint, &adapter, &send);
        let stopping = async {
            let events = fixture.listener.events_until(event).await;
            fixture.listener.stop_session(events[0]["session_id"].as_str().unwrap()).await;
            events_until_session_end(&mut fixture).await
        };
        let running = tokio::time::timeout(Duration::from_mins(2), adapter.prompt(&agent, "Pay Ben."));
        let (response, events) = tokio::join!(running, stopping);
        let error = response.expect("the stop is noticed").unwrap_err();
        assert!(matches!(error, RigError::Session(sayso::Error::Stopped(StopReason::Person))), "{error:?}");
        assert_eq!(send.sent(), 0);
        assert_eq!(events.last().unwrap()["cancelled_by"], "user");
    }
}

#[tokio::test]
async fn a_tool_can_hand_off_and_learns_the_outcome() {
    let endpoint = Endpoint::new([
        ScriptedReply::from_tool_call("look", r#"{"ask":true}"#),
        ScriptedReply::from_text("It snows."),
    ])
    .await;
    let mut fixture = HubFixture::new(HubKind::Embedded).await;
    let (adapter, send) = (Adapter::new(&fixture.hub), SendMoney::default());
    let agent = agent(&endpoint, &adapter, &send);
    let listening = async {
        fixture.listener.answer_next_hand_off("acknowledge", Some("I see snow.")).await;
        events_until_session_end(&mut fixture).await
    };
    let (reply, events) = tokio::join!(adapter.prompt(&agent, "What is the weather?"), listening);
    assert!(reply.is_ok(), "{reply:?}");
    assert!(tool_result(&endpoint).contains("I see snow."));
    assert_eq!(output(&events), "It snows.");
}
