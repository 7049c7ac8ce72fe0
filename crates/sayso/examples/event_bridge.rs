//! A framework that publishes events. It does not know sayso; a function maps its events to steps.
//!
//! `cargo run -p sayso --features embedded --example event_bridge` uses a hub of its own without listeners. Nobody can be asked, which
//! counts as a no. With `SAYSO_URL` (and `SAYSO_TOKEN`) it connects to a `sayso serve`.

use std::env;

use futures_util::stream;
use sayso::bridge::{AgentStep, AnswerSender, Denial, EventBridge, UnconfirmedCall};
use sayso::{Action, Error, Hub};
use tokio::sync::{mpsc, oneshot};

type PermissionSender = oneshot::Sender<Result<(), Denial>>;

/// An event of the framework. Before the framework runs a tool, it waits for permission or a denial.
enum FrameworkEvent {
    Requested(&'static str),
    ToolCalled { id: u32, tool: &'static str, input: String, permission_sender: PermissionSender },
    ToolReturned { id: u32, output: &'static str },
    Chunk(String),
    Finished(String),
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let hub = match env::var_os("SAYSO_URL") {
        None => Hub::embedded().agent("mail").agent_name("Mail assistant").open()?,
        Some(_) => Hub::from_env().agent_name("Mail assistant").open().await?,
    };
    let (sender, mut events) = mpsc::channel(64);
    let events = stream::poll_fn(move |context| events.poll_recv(context));
    let bridge = EventBridge::new().run(events, |event| [map_event(event, &hub)]);
    let (report, output) = tokio::join!(bridge, run_framework(sender));
    println!("{}", output.unwrap_or_else(|| format!("The request failed: {:?}.", report.ending)));
    hub.close().await;
    Ok(())
}

/// Maps one event of the framework to a step.
fn map_event(event: FrameworkEvent, hub: &Hub) -> AgentStep {
    match event {
        FrameworkEvent::Requested(request) => AgentStep::start(hub.session(request)),
        FrameworkEvent::ToolCalled { id, tool, input, permission_sender } => {
            // The framework gets permission after the call was announced.
            let reply = AnswerSender::callback(|answer| drop(permission_sender.send(answer.map(drop))));
            if tool == "addresses" {
                let call = UnconfirmedCall::new(tool).says("Collecting the addresses.");
                return AgentStep::announced_tool(id.to_string(), call, reply);
            }
            let action = Action::new(tool, input).says("Send your mail to everybody in the company.");
            AgentStep::ask(id.to_string(), action.consequence("It cannot be recalled.").irreversible(), reply)
        }
        FrameworkEvent::ToolReturned { id, output } => AgentStep::tool_succeeded(id.to_string(), output),
        FrameworkEvent::Chunk(text) => AgentStep::output(text),
        FrameworkEvent::Finished(output) => AgentStep::finish(output),
    }
}

/// A framework with a stream of events. It stops when the receiver is dropped.
async fn run_framework(sender: mpsc::Sender<FrameworkEvent>) -> Option<String> {
    sender.send(FrameworkEvent::Requested("Tell everybody about the party.")).await.ok()?;
    let mut output = "The mail is sent.".to_owned();
    for (id, tool, result) in [(1, "addresses", "There are 312."), (2, "send", "It is sent.")] {
        let (permission_sender, answer) = oneshot::channel();
        let call = FrameworkEvent::ToolCalled { id, tool, input: "{}".to_owned(), permission_sender };
        sender.send(call).await.ok()?;
        match answer.await.ok()? {
            // Run the tool here.
            Ok(()) => sender.send(FrameworkEvent::ToolReturned { id, output: result }).await.ok()?,
            Err(denial) => output = format!("Nothing was sent: {denial}."),
        }
    }
    sender.send(FrameworkEvent::Chunk(output.clone())).await.ok()?;
    sender.send(FrameworkEvent::Finished(output.clone())).await.ok()?;
    Some(output)
}
