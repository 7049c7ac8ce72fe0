//! The chat completions loop, tested against a local endpoint with scripted replies.

mod conforming_endpoints;
mod faulty_endpoints;
mod tools;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use sayso::Risk;
use sayso::openai::{Arguments, ChatAgent, ChatError, ChatReply, Tool};
use serde_json::Value;

use crate::support::endpoint::Endpoint;
use crate::support::fixture::{HubFixture, HubKind};

const KEY: &str = "sk-test-0123456789abcdef";

/// Returns an agent that uses this endpoint.
fn agent(endpoint: &Endpoint) -> ChatAgent {
    ChatAgent::new(&endpoint.url).model("test-model").api_key(KEY).instructions("Be brief.")
}

/// Returns a tool that sends money and counts its calls.
fn send_money_tool(sent: &Arc<AtomicUsize>) -> Tool {
    let sent = sent.clone();
    let schema = r#"{"type":"object","properties":{"to":{"type":"string"},"euro":{"type":"integer"}}}"#;
    Tool::new("send", "Sends money.", schema, move |arguments: Arguments| {
        let sent = sent.clone();
        async move {
            sent.fetch_add(1, Ordering::SeqCst);
            Ok::<_, String>(format!("Sent to {}.", arguments.display_text("to")))
        }
    })
    .risk(Risk::High)
    .irreversible()
    .says(|call| format!("Send {} euros to {}.", call.display_text("euro"), call.display_text("to")))
    .consequence(|_| "The money is gone at once.".to_owned())
}

/// Runs one request. Returns its result and the events up to the end of the session.
async fn run_and_listen(
    agent: &ChatAgent,
    fixture: &mut HubFixture,
) -> (Result<ChatReply, ChatError>, Vec<Value>) {
    let hub = fixture.hub.clone();
    let (result, events) = tokio::join!(agent.run(&hub, "Pay Ben."), events_until_session_end(fixture));
    (result, events)
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

async fn embedded_fixture() -> HubFixture {
    HubFixture::new(HubKind::Embedded).await
}

fn output(events: &[Value]) -> String {
    events.iter().filter_map(|event| event["chunk"].as_str()).collect()
}

/// Checks that no event contains the API key.
fn assert_key_is_hidden(events: &[Value]) {
    for event in events {
        assert!(!event.to_string().contains(KEY), "{event}");
    }
}
