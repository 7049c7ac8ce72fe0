//! A ready loop for any endpoint that speaks chat completions, with a tool that needs a yes.
//!
//! `OPENAI_BASE_URL=http://127.0.0.1:11434/v1 OPENAI_MODEL=llama3.2 cargo run -p sayso --features embedded,openai --example openai`.
//! `OPENAI_API_KEY` is sent if it is set. Without `SAYSO_URL` (and `SAYSO_TOKEN`) nobody listens, so nobody can be asked.

use std::env;

use sayso::openai::{Agent, Arguments, Tool};
use sayso::{Error, Hub, Risk};

const SCHEMA: &str = r#"{
    "type": "object",
    "properties": {"to": {"type": "string"}, "euro": {"type": "integer"}},
    "required": ["to", "euro"]
}"#;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let hub = match env::var("SAYSO_URL") {
        Err(_) => Hub::embedded().agent("bank").open()?,
        Ok(url) => {
            let connect = Hub::connect(url);
            match env::var("SAYSO_TOKEN") {
                Ok(token) => connect.token(token).open().await?,
                Err(_) => connect.open().await?,
            }
        }
    };

    // It can neither be forgotten to ask, nor be asked for one thing and do another: the loop does both with one value.
    let send = Tool::new("send_money", "Sends money from the person's account.", SCHEMA, send_money)
        .risk(Risk::High)
        .irreversible()
        .says(|call| format!("Send {} euro to {}.", call.words("euro"), call.words("to")))
        .consequence(|_| "The money is gone at once.".to_owned());

    let base = env::var("OPENAI_BASE_URL").unwrap_or_else(|_| "https://api.openai.com/v1".to_owned());
    let model = env::var("OPENAI_MODEL").unwrap_or_else(|_| "gpt-5.2".to_owned());
    let mut agent = Agent::new(base).model(model).instructions("You help with money. Be brief.").tool(send);
    if let Ok(key) = env::var("OPENAI_API_KEY") {
        agent = agent.key(key);
    }

    let request = env::args().nth(1).unwrap_or_else(|| "Send Ben five euro.".to_owned());
    match agent.run(&hub, request).await {
        Ok(reply) => {
            for call in &reply.calls {
                println!("{}: {}.", call.tool, call.outcome);
            }
            println!("{}", reply.text);
        }
        Err(error) => println!("There is no answer: {error}."),
    }
    hub.close().await;
    Ok(())
}

async fn send_money(arguments: Arguments) -> Result<String, std::io::Error> {
    tokio::task::yield_now().await; // This is where the bank would be asked.
    Ok(format!("{} euro were sent to {}.", arguments.words("euro"), arguments.words("to")))
}
