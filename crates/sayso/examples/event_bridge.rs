//! A framework that publishes events: it knows nothing of sayso; a mapping function says what its events mean.
//!
//! `cargo run -p sayso --features embedded --example event_bridge` has a hub of its own, to which nobody listens: so nobody can be asked, and
//! that means no. With `SAYSO_URL` (and `SAYSO_TOKEN`) it speaks to a `sayso serve`.

use std::env;

use futures_util::stream;
use sayso::bridge::{Bridge, Reply, Step, Unasked};
use sayso::{Action, Error, Hub};
use tokio::sync::{mpsc, oneshot};

/// What the framework publishes. Before a tool runs it waits for a go-ahead, or for the reason why there is none.
enum Event {
    Asked(&'static str),
    Calls { id: u32, tool: &'static str, input: String, may: oneshot::Sender<Result<(), String>> },
    Returned { id: u32, output: &'static str },
    Chunk(String),
    Over(String),
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let hub = match env::var("SAYSO_URL") {
        Err(_) => Hub::embedded().agent("mail").open()?,
        Ok(url) => {
            let connect = Hub::connect(url);
            match env::var("SAYSO_TOKEN") {
                Ok(token) => connect.token(token).open().await?,
                Err(_) => connect.open().await?,
            }
        }
    };
    let (publish, mut events) = mpsc::channel(64);
    let events = stream::poll_fn(move |context| events.poll_recv(context));
    let bridge = Bridge::new().run(events, |event| [means(event, &hub)]);
    let (report, said) = tokio::join!(bridge, framework(publish));
    println!("{}", said.unwrap_or_else(|| format!("It came to nothing: {:?}.", report.ending)));
    hub.close().await;
    Ok(())
}

/// The mapping: one event of the framework in the words of the protocol.
fn means(event: Event, hub: &Hub) -> Step {
    match event {
        Event::Asked(request) => Step::start(hub.session(request)),
        Event::Calls { id, tool, input, may } => {
            // The framework is told when listeners have been.
            let reply =
                Reply::call(|verdict| drop(may.send(verdict.map(drop).map_err(|why| why.to_string()))));
            if tool == "addresses" {
                let call = Unasked::new(tool).says("Collecting the addresses.");
                return Step::gated(id.to_string(), call, reply);
            }
            let action = Action::new(tool, input).says("Send your mail to everybody in the company.");
            Step::ask(id.to_string(), action.consequence("It cannot be called back.").irreversible(), reply)
        }
        Event::Returned { id, output } => Step::done(id.to_string(), output),
        Event::Chunk(text) => Step::output(text),
        Event::Over(said) => Step::finish(said),
    }
}

/// Any framework with a stream of events; none is left when nobody takes them.
async fn framework(publish: mpsc::Sender<Event>) -> Option<String> {
    publish.send(Event::Asked("Tell everybody about the party.")).await.ok()?;
    let mut said = "The mail is sent.".to_owned();
    for (id, tool, output) in [(1, "addresses", "There are 312."), (2, "send", "It is sent.")] {
        let (may, answer) = oneshot::channel();
        publish.send(Event::Calls { id, tool, input: "{}".to_owned(), may }).await.ok()?;
        match answer.await.ok()? {
            Ok(()) => publish.send(Event::Returned { id, output }).await.ok()?, // This is where the tool would run.
            Err(why) => said = format!("Nothing was sent: {why}."),
        }
    }
    publish.send(Event::Chunk(said.clone())).await.ok()?;
    publish.send(Event::Over(said.clone())).await.ok()?;
    Some(said)
}
