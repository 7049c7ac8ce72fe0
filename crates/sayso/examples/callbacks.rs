//! A framework that calls back: it knows nothing of sayso, and calls a handler at each step of its own loop.
//!
//! `cargo run -p sayso --features embedded --example callbacks` has a hub of its own, to which nobody listens: so nobody can be asked, and that
//! means no. With `SAYSO_URL` (and `SAYSO_TOKEN`) it speaks to a `sayso serve`.

use std::env;

use sayso::bridge::Unasked;
use sayso::callbacks::{Callbacks, Narration, Plan};
use sayso::{Action, Error, Hub};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let hub = match env::var("SAYSO_URL") {
        Err(_) => Hub::embedded().agent("shop").open()?,
        Ok(url) => {
            let connect = Hub::connect(url);
            match env::var("SAYSO_TOKEN") {
                Ok(token) => connect.token(token).open().await?,
                Err(_) => connect.open().await?,
            }
        }
    };
    // The narrator goes to the framework; the telling runs beside it.
    let (narrator, telling) = Narration::on(&hub).tools(plan).open();
    let telling = tokio::spawn(telling);
    match framework(&narrator, "Order a new kettle.").await {
        Ok(said) => println!("{said}"),
        Err(error) => println!("It came to nothing: {error}."),
    }
    drop(narrator);
    for fault in telling.await.map(|report| report.faults).unwrap_or_default() {
        eprintln!("The framework did something wrong: {fault}.");
    }
    hub.close().await;
    Ok(())
}

/// Which tools need a yes, and in which words it is asked for. A tool that is not known here is asked for too.
fn plan(tool: &str, input: &str) -> Plan {
    match tool {
        "search" => Unasked::new(tool).says("Searching the shop for kettles.").into(),
        "order" => Action::new(tool, input)
            .says("Order the blue kettle for 30 euro.")
            .consequence("The shop charges your card at once.")
            .irreversible()
            .into(),
        _ => Plan::unknown(tool, input),
    }
}

/// Any framework that has callbacks. It looks at one answer only: whether a tool may run.
async fn framework(handler: &dyn Callbacks, request: &str) -> Result<String, Error> {
    handler.on_chain_start("chain", request)?;
    handler.on_llm_start("model", "You are a shopping assistant.")?;
    let mut said = "The blue kettle is ordered.".to_owned();
    for (run, tool, input) in [("run-1", "search", r#""kettle""#), ("run-2", "order", r#"{"kettle":"blue"}"#)]
    {
        match handler.on_tool_start(run, tool, input).await {
            Ok(_allowed) => handler.on_tool_end(run, "a blue kettle")?, // This is where the tool would run.
            Err(why) => said = format!("Nothing was ordered: {why}."),
        }
    }
    for token in said.split_inclusive(' ') {
        handler.on_llm_new_token("model", token)?;
    }
    handler.on_chain_end("chain", &said)?;
    Ok(said)
}
