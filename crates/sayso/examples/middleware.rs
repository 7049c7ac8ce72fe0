//! An agent that is a tower service, with a layer that makes each request a session. The tools inside ask through that session.
//!
//! `cargo run -p sayso --features embedded,tower --example middleware` uses a hub of its own without listeners. Nobody can be asked,
//! which counts as a no. With `SAYSO_URL` (and `SAYSO_TOKEN`) it connects to a `sayso serve`.

use std::time::Duration;
use std::{env, io};

use sayso::middleware::{DescribeRequest, SessionEnding, SessionLayer};
use sayso::{CallError, Error, Hub, SessionBuilder};
use tower::{ServiceBuilder, ServiceExt, service_fn};

#[sayso::tool(
    irreversible,
    action = "Delete {count} old messages from {folder}.",
    consequence = "They cannot be restored."
)]
async fn delete(folder: &str, count: u32) -> io::Result<u32> {
    tokio::task::yield_now().await; // Delete the messages here.
    Ok(count)
}

/// The existing agent: it turns a request into an answer.
async fn agent(request: String) -> Result<String, CallError<io::Error>> {
    let folder = if request.contains("spam") { "spam" } else { "inbox" };
    let count = delete(folder, 17).await?;
    Ok(format!("{count} messages were deleted."))
}

/// Describes the agent's sessions to listeners.
struct MailDescriber;

impl DescribeRequest<String, String, CallError<io::Error>> for MailDescriber {
    fn session_for(&self, hub: &Hub, request: &String) -> SessionBuilder {
        hub.session(request).says("Tidying up your mail.")
    }

    fn ending(&self, outcome: Result<&String, &CallError<io::Error>>) -> SessionEnding {
        match outcome {
            Ok(answer) => SessionEnding::Finished(answer.as_str().into()),
            Err(CallError::Refused(refusal)) => {
                SessionEnding::Cancelled(format!("Nothing was deleted: {refusal}.").into())
            }
            Err(error) => SessionEnding::Failed(error.to_string().into()),
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let hub = match env::var_os("SAYSO_URL") {
        None => Hub::embedded().agent("postman").agent_name("Mail cleaner").open()?,
        Some(_) => Hub::from_env().agent_name("Mail cleaner").open().await?,
    };
    let service = ServiceBuilder::new()
        .timeout(Duration::from_mins(10))
        .layer(SessionLayer::new(hub.clone(), MailDescriber))
        .service(service_fn(agent));
    match service.oneshot("Empty my spam folder.".to_owned()).await {
        Ok(answer) => println!("{answer}"),
        Err(error) => println!("The request failed: {error}."),
    }
    hub.close().await;
    Ok(())
}
