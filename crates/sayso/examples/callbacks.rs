//! A framework with callbacks. It does not know sayso; it calls a handler at each step of its own loop.
//!
//! `cargo run -p sayso --features embedded --example callbacks` uses a hub of its own without listeners. Nobody can be asked, which
//! counts as a no. With `SAYSO_URL` (and `SAYSO_TOKEN`) it connects to a `sayso serve`.

use std::env;

use sayso::bridge::UnconfirmedCall;
use sayso::callbacks::{Callbacks, SessionReporterBuilder, ToolPlan};
use sayso::{Action, Error, Hub};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let hub = match env::var_os("SAYSO_URL") {
        None => Hub::embedded().agent("shop").agent_name("Shopping assistant").open()?,
        Some(_) => Hub::from_env().agent_name("Shopping assistant").open().await?,
    };
    // The framework gets the reporter; the task runs beside it.
    let (reporter, task) = SessionReporterBuilder::new(&hub).plan_calls(plan).open();
    let task = tokio::spawn(task);
    match run_framework(&reporter, "Order a new kettle.").await {
        Ok(output) => println!("{output}"),
        Err(error) => println!("The request failed: {error}."),
    }
    drop(reporter);
    for fault in task.await.map(|report| report.faults).unwrap_or_default() {
        eprintln!("A callback was not reported: {fault}.");
    }
    hub.close().await;
    Ok(())
}

/// Decides whether a tool call needs consent, and which texts describe it. A call of an unknown tool needs consent too.
fn plan(tool: &str, input: &str) -> ToolPlan {
    match tool {
        "search" => UnconfirmedCall::new(tool).says("Searching the shop for kettles.").into(),
        "order" => Action::new(tool, input)
            .says("Order the blue kettle for 30 euros.")
            .consequence("The shop charges your card at once.")
            .irreversible()
            .into(),
        _ => ToolPlan::unknown(tool, input),
    }
}

/// A framework with callbacks. Before it runs a tool, it waits for permission.
async fn run_framework(handler: &dyn Callbacks, request: &str) -> Result<String, Error> {
    handler.on_chain_start("chain", request)?;
    handler.on_llm_start("model", "You are a shopping assistant.")?;
    let mut output = "The blue kettle is ordered.".to_owned();
    for (run, tool, input) in [("run-1", "search", r#""kettle""#), ("run-2", "order", r#"{"kettle":"blue"}"#)]
    {
        match handler.on_tool_start(run, tool, input).await {
            Ok(_permission) => handler.on_tool_end(run, "a blue kettle")?, // Run the tool here.
            Err(denial) => output = format!("Nothing was ordered: {denial}."),
        }
    }
    for token in output.split_inclusive(' ') {
        handler.on_llm_new_token("model", token)?;
    }
    handler.on_chain_end("chain", &output)?;
    Ok(output)
}
