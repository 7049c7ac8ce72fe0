//! The agent loop for endpoints with the chat completions API, with a tool that needs consent.
//!
//! `OPENAI_BASE_URL=http://127.0.0.1:11434/v1 OPENAI_MODEL=llama3.2 cargo run -p sayso --features embedded,openai --example openai`.
//! `OPENAI_API_KEY` is sent if it is set. Without `SAYSO_URL` (and `SAYSO_TOKEN`) nobody is listening, so nobody can be asked.

use std::env;

use sayso::openai::{Arguments, ChatAgent, Tool};
use sayso::{Error, Hub, Risk};

const SCHEMA: &str = r#"{
    "type": "object",
    "properties": {"to": {"type": "string"}, "euro": {"type": "integer"}},
    "required": ["to", "euro"]
}"#;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let hub = match env::var_os("SAYSO_URL") {
        None => Hub::embedded().agent("bank").agent_name("Bank assistant").open()?,
        Some(_) => Hub::from_env().agent_name("Bank assistant").open().await?,
    };

    // The loop passes the tool exactly the arguments that the person agreed to.
    let send = Tool::new("send_money", "Sends money from the person's account.", SCHEMA, send_money)
        .risk(Risk::High)
        .irreversible()
        .says(|call| format!("Send {} euros to {}.", call.display_text("euro"), call.display_text("to")))
        .consequence(|_| "The money leaves your account at once.".to_owned());

    let base = env::var("OPENAI_BASE_URL").unwrap_or_else(|_| "https://api.openai.com/v1".to_owned());
    let model = env::var("OPENAI_MODEL").unwrap_or_else(|_| "gpt-5.2".to_owned());
    let mut agent =
        ChatAgent::new(base).model(model).instructions("You help with money. Be brief.").tool(send);
    if let Ok(key) = env::var("OPENAI_API_KEY") {
        agent = agent.api_key(key);
    }

    let request = env::args().nth(1).unwrap_or_else(|| "Send Ben five euros.".to_owned());
    match agent.run(&hub, request).await {
        Ok(reply) => {
            for call in &reply.calls {
                println!("{}: {}.", call.tool, call.outcome);
            }
            println!("{}", reply.text);
        }
        Err(error) => println!("The request failed: {error}."),
    }
    hub.close().await;
    Ok(())
}

async fn send_money(arguments: Arguments) -> Result<String, std::io::Error> {
    tokio::task::yield_now().await; // Send the payment to the bank here.
    Ok(format!("{} euros were sent to {}.", arguments.display_text("euro"), arguments.display_text("to")))
}
