//! An agent that is a tower service, with one layer more: each request is a session, and the tools inside ask through it.
//!
//! `cargo run -p sayso --features embedded,tower --example middleware` has a hub of its own, to which nobody listens: so nobody can be
//! asked, and that means no. With `SAYSO_URL` (and `SAYSO_TOKEN`) it speaks to a `sayso serve`.

use std::time::Duration;
use std::{env, io};

use sayso::middleware::{Ending, HeardLayer, InWords};
use sayso::{CallError, Error, Hub, SessionBuilder};
use tower::{ServiceBuilder, ServiceExt, service_fn};

#[sayso::tool(
    irreversible,
    action = "Delete {count} old messages from {folder}.",
    consequence = "Nobody can bring them back."
)]
async fn delete(folder: &str, count: u32) -> io::Result<u32> {
    tokio::task::yield_now().await; // This is where the messages would be deleted.
    Ok(count)
}

/// The agent as it was before: from a request to an answer.
async fn agent(request: String) -> Result<String, CallError<io::Error>> {
    let folder = if request.contains("spam") { "spam" } else { "inbox" };
    let count = delete(folder, 17).await?;
    Ok(format!("{count} messages are gone."))
}

/// What is heard of it.
struct Postman;

impl InWords<String, String, CallError<io::Error>> for Postman {
    fn begin(&self, hub: &Hub, request: &String) -> SessionBuilder {
        hub.session(request).says("Tidying up your mail.")
    }

    fn ending(&self, outcome: Result<&String, &CallError<io::Error>>) -> Ending {
        match outcome {
            Ok(said) => Ending::Finished(said.as_str().into()),
            Err(CallError::Refused(why)) => Ending::Cancelled(format!("Nothing was deleted: {why}.").into()),
            Err(why) => Ending::Failed(why.to_string().into()),
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let hub = match env::var("SAYSO_URL") {
        Err(_) => Hub::embedded().agent("postman").open()?,
        Ok(url) => match env::var("SAYSO_TOKEN") {
            Ok(token) => Hub::connect(url).token(token).open().await?,
            Err(_) => Hub::connect(url).open().await?,
        },
    };
    let service = ServiceBuilder::new()
        .timeout(Duration::from_mins(10))
        .layer(HeardLayer::new(hub.clone(), Postman))
        .service(service_fn(agent));
    match service.oneshot("Empty my spam folder.".to_owned()).await {
        Ok(said) => println!("{said}"),
        Err(why) => println!("Nothing was deleted: {why}."),
    }
    hub.close().await;
    Ok(())
}
