//! The loop for chat completions, against a local endpoint that does everything that one can do.

mod faults;
mod lawful;
mod tools;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use sayso::Risk;
use sayso::openai::{Agent, Arguments, Error, Reply, Tool};
use serde_json::Value;

use crate::support::endpoint::Endpoint;
use crate::support::stage::{Kind, Stage};

const KEY: &str = "sk-test-0123456789abcdef";

/// An agent at this endpoint.
fn agent(endpoint: &Endpoint) -> Agent {
    Agent::new(&endpoint.url).model("test-model").key(KEY).instructions("Be brief.")
}

/// Sends money, and counts how often.
fn sending(sent: &Arc<AtomicUsize>) -> Tool {
    let sent = sent.clone();
    let schema = r#"{"type":"object","properties":{"to":{"type":"string"},"euro":{"type":"integer"}}}"#;
    Tool::new("send", "Sends money.", schema, move |arguments: Arguments| {
        let sent = sent.clone();
        async move {
            sent.fetch_add(1, Ordering::SeqCst);
            Ok::<_, String>(format!("Sent to {}.", arguments.words("to")))
        }
    })
    .risk(Risk::High)
    .irreversible()
    .says(|call| format!("Send {} euro to {}.", call.words("euro"), call.words("to")))
    .consequence(|_| "The money is gone at once.".to_owned())
}

/// Runs one request, and gives what came of it and what was heard up to the session's end.
async fn heard(agent: &Agent, stage: &mut Stage) -> (Result<Reply, Error>, Vec<Value>) {
    let hub = stage.hub.clone();
    let (came, heard) = tokio::join!(agent.run(&hub, "Pay Ben."), until_the_end(stage));
    (came, heard)
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

async fn stage() -> Stage {
    Stage::new(Kind::Embedded).await
}

fn output(heard: &[Value]) -> String {
    heard.iter().filter_map(|event| event["chunk"].as_str()).collect()
}

/// Nothing that was heard has the key in it.
fn is_kept_secret(heard: &[Value]) {
    for event in heard {
        assert!(!event.to_string().contains(KEY), "{event}");
    }
}
