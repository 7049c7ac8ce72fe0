//! Rig's own loop, against a local endpoint, with a tool that needs consent.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rig_agent::{Agent, AgentBuilder};
use rig_core::providers::openai::OpenAIConfig;
use rig_core::serde_json::{Value, json};
use rig_core::tool::PortableTool;
use sayso::rig::{Adapter, Error};
use sayso::{Hub, Stop};

use crate::support::endpoint::{Endpoint, Reply, Then, text};
use crate::support::stage::{Kind, Stage, told};

#[derive(rig_core::serde::Deserialize)]
#[serde(crate = "rig_core::serde")]
struct Payment {
    to: String,
    euro: u32,
}

/// Sends money, and counts how often.
#[derive(Clone, Default)]
struct Send(Arc<AtomicUsize>);

impl Send {
    fn sent(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl PortableTool for Send {
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
        Ok(format!("{} euro were sent to {}.", payment.euro, payment.to))
    }
}

/// Looks at the sky; needs no consent.
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
        match arguments["blind"].as_bool() {
            Some(true) => Err(std::io::Error::other("it is dark")),
            _ => Ok("It rains.".to_owned()),
        }
    }
}

fn agent(endpoint: &Endpoint, adapter: &Adapter, send: &Send) -> Agent {
    agent_within(endpoint, adapter, send, Duration::from_mins(2))
}

/// One whose tool may take so long.
fn agent_within(endpoint: &Endpoint, adapter: &Adapter, send: &Send, time: Duration) -> Agent {
    let model = OpenAIConfig::new("sk-test").with_base_url(&endpoint.url).client().chat("test-model");
    let send = adapter
        .asks(send.clone())
        .irreversible()
        .says(|payment| format!("Send {} euro to {}.", payment.euro, payment.to))
        .consequence(|_| "The money is gone at once.".to_owned())
        .within(time);
    AgentBuilder::new(model).tool(send).tool(Look).default_max_turns(4).build()
}

async fn until_the_end(stage: &mut Stage) -> Vec<Value> {
    let mut heard = Vec::new();
    loop {
        let event = stage.person.hears().await;
        let kind = event["type"].as_str().unwrap().to_owned();
        heard.push(event);
        if ["completed", "errored", "cancelled"].iter().any(|end| kind == format!("aaep:agent.session.{end}"))
        {
            return heard;
        }
    }
}

fn output(heard: &[Value]) -> String {
    heard.iter().filter_map(|event| event["chunk"].as_str()).collect()
}

/// What the model was told of its call.
fn result(endpoint: &Endpoint) -> String {
    let asked = endpoint.asked();
    let last = asked[1].last().clone();
    assert_eq!(last["role"], "tool", "{last}");
    last["content"].to_string()
}

const PAY_BEN: &str = r#"{"to":"Ben","euro":5}"#;

#[tokio::test]
async fn rigs_loop_runs_a_dangerous_tool_once_on_a_yes_and_never_on_a_no() {
    for (decision, runs) in [("accept", 1), ("reject", 0)] {
        let endpoint = Endpoint::new([Reply::calls("send", PAY_BEN), Reply::says("That was it.")]).await;
        let mut stage = Stage::new(Kind::Embedded).await;
        let (adapter, send) = (Adapter::new(&stage.hub), Send::default());
        let agent = agent(&endpoint, &adapter, &send);
        let listening = async {
            let asked = stage.person.decides(decision).await;
            assert_eq!(
                (&asked["action"], &asked["irreversible"]),
                (&json!("Send 5 euro to Ben."), &json!(true))
            );
            until_the_end(&mut stage).await
        };
        let (response, heard) = tokio::join!(adapter.prompt(&agent, "Pay Ben."), listening);
        assert_eq!(response.unwrap().output(), "That was it.");
        assert_eq!(send.sent(), runs);
        assert_eq!(output(&heard), "That was it.");
        let kinds = told(&heard);
        assert_eq!(kinds.contains(&"tool.invoked".to_owned()), runs == 1, "{kinds:?}");
        assert_eq!(kinds.contains(&"tool.completed success".to_owned()), runs == 1, "{kinds:?}");
        assert_eq!(kinds.last().unwrap(), "session.completed");
        let result = result(&endpoint);
        let expected =
            if runs == 1 { "5 euro were sent to Ben." } else { "The person refused. The tool was not run." };
        assert!(result.contains(expected), "{result}");
    }
}

#[tokio::test]
async fn a_tool_that_asks_does_nothing_without_a_session() {
    let endpoint = Endpoint::new([Reply::calls("send", PAY_BEN), Reply::says("Then not.")]).await;
    let hub = Hub::embedded().agent("bank").open().unwrap();
    let (adapter, send) = (Adapter::new(&hub), Send::default());
    let agent = agent(&endpoint, &adapter, &send);
    // Rig alone, which nobody hears.
    let response = agent.prompt("Pay Ben.").stream();
    let items: Vec<_> = futures_util::StreamExt::collect(response).await;
    assert!(items.iter().all(Result::is_ok), "{items:?}");
    assert_eq!(send.sent(), 0);
    assert!(result(&endpoint).contains("Nobody could be asked."), "{}", result(&endpoint));
}

#[tokio::test]
async fn tools_that_need_no_consent_are_told_too() {
    for (arguments, status) in
        [("{}", "tool.completed success"), (r#"{"blind":true}"#, "tool.completed error")]
    {
        let endpoint = Endpoint::new([Reply::calls("look", arguments), Reply::says("So it is.")]).await;
        let mut stage = Stage::new(Kind::Embedded).await;
        let (adapter, send) = (Adapter::new(&stage.hub), Send::default());
        let agent = agent(&endpoint, &adapter, &send);
        let (response, heard) = tokio::join!(adapter.prompt(&agent, "Look."), until_the_end(&mut stage));
        assert_eq!(response.unwrap().output(), "So it is.");
        let mut kinds = told(&heard);
        kinds.dedup();
        let at = kinds.iter().position(|kind| kind == "tool.invoked").expect("it is told before");
        assert_eq!(kinds[at + 1], status);
    }
}

#[tokio::test]
async fn what_cannot_be_called_is_told_and_not_done() {
    let cases = [
        ("fly", "{}", "does not have"),
        ("send", "[]", "cannot be used"),
        ("send", "{", "cannot be used"),
        ("send", r#"{"to":"Ben"}"#, "cannot be used"),
    ];
    for (tool, arguments, says) in cases {
        let endpoint = Endpoint::new([Reply::calls(tool, arguments), Reply::says("I cannot.")]).await;
        let mut stage = Stage::new(Kind::Embedded).await;
        let (adapter, send) = (Adapter::new(&stage.hub), Send::default());
        let agent = agent(&endpoint, &adapter, &send);
        let (response, heard) = tokio::join!(adapter.prompt(&agent, "Go."), until_the_end(&mut stage));
        assert_eq!(response.unwrap().output(), "I cannot.", "{tool} {arguments}");
        assert_eq!(send.sent(), 0);
        let mut all = heard.iter().filter_map(|event| event["summary_normal"].as_str());
        assert!(all.any(|said| said.contains(says)), "{heard:?}");
        assert!(!told(&heard).contains(&"tool.invoked".to_owned()), "{heard:?}");
    }
}

#[tokio::test]
async fn a_tool_that_hangs_is_told_and_the_loop_goes_on() {
    let arguments = r#"{"to":"nobody","euro":5}"#;
    let endpoint = Endpoint::new([Reply::calls("send", arguments), Reply::says("It hangs.")]).await;
    let mut stage = Stage::new(Kind::Embedded).await;
    let (adapter, send) = (Adapter::new(&stage.hub), Send::default());
    let agent = agent_within(&endpoint, &adapter, &send, Duration::from_millis(200));
    let listening = async {
        stage.person.decides("accept").await;
        until_the_end(&mut stage).await
    };
    let (response, heard) = tokio::join!(adapter.prompt(&agent, "Pay nobody."), listening);
    assert_eq!(response.unwrap().output(), "It hangs.");
    assert!(told(&heard).contains(&"tool.completed timeout".to_owned()), "{heard:?}");
}

#[tokio::test]
async fn an_endpoint_that_fails_and_a_model_that_never_stops_are_told() {
    let cut = Reply::stream([text("It is ")]).then(Then::Close);
    let wrong =
        Reply::status(401, "application/json", "", r#"{"error":{"message":"Incorrect key sk-test."}}"#);
    for (reply, code) in [
        (cut, "MODEL_FAILED"),
        (wrong, "MODEL_FAILED"),
        (Reply::calls("look", "{}"), "MODEL_TOO_MANY_ROUNDS"),
    ] {
        let endpoint = Endpoint::new([reply]).await;
        let mut stage = Stage::new(Kind::Embedded).await;
        let (adapter, send) = (Adapter::new(&stage.hub), Send::default());
        let agent = agent(&endpoint, &adapter, &send);
        let (response, heard) = tokio::join!(adapter.prompt(&agent, "Look."), until_the_end(&mut stage));
        assert!(matches!(response, Err(Error::Run(_))), "{response:?}");
        assert_eq!(heard.last().unwrap()["error_code"], code);
        assert!(heard.iter().all(|event| !event.to_string().contains("sk-test")));
    }
}

#[tokio::test]
async fn the_persons_stop_ends_rigs_loop() {
    let stalls = Reply::stream([text("Once upon a time. It was")]).then(Then::Stall);
    for (reply, wait) in
        [(Reply::calls("send", PAY_BEN), "awaiting.confirmation"), (stalls, "output.streaming")]
    {
        let endpoint = Endpoint::new([reply]).await;
        let mut stage = Stage::new(Kind::Embedded).await;
        let (adapter, send) = (Adapter::new(&stage.hub), Send::default());
        let agent = agent(&endpoint, &adapter, &send);
        let stopping = async {
            let heard = stage.person.hears_until(wait).await;
            stage.person.stops(heard[0]["session_id"].as_str().unwrap()).await;
            until_the_end(&mut stage).await
        };
        let running = tokio::time::timeout(Duration::from_mins(2), adapter.prompt(&agent, "Pay Ben."));
        let (response, heard) = tokio::join!(running, stopping);
        let error = response.expect("the stop is noticed").unwrap_err();
        assert!(matches!(error, Error::Session(sayso::Error::Stopped(Stop::Person))), "{error:?}");
        assert_eq!(send.sent(), 0);
        assert_eq!(heard.last().unwrap()["cancelled_by"], "user");
    }
}
