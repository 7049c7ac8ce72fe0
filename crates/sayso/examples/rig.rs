//! A rig agent that runs rig's own agent loop, with a tool that needs consent.
//!
//! `OPENAI_BASE_URL=http://127.0.0.1:11434/v1 OPENAI_API_KEY=none OPENAI_MODEL=llama3.2 cargo run -p sayso --features rig-http
//! --example rig`. For `https://` enable rig-core's feature `rustls` too. Without `SAYSO_URL`, the hub runs in this process
//! without listeners, so every payment is refused.

use std::convert::Infallible;
use std::env;

use rig_agent::AgentBuilder;
use rig_core::providers::openai::OpenAI;
use rig_core::serde::Deserialize;
use rig_core::serde_json::{Value, json};
use rig_core::tool::PortableTool;
use sayso::Hub;
use sayso::rig::Adapter;

#[derive(Deserialize)]
#[serde(crate = "rig_core::serde")]
struct Payment {
    to: String,
    euro: u32,
}

struct SendMoney;

impl PortableTool for SendMoney {
    const NAME: &'static str = "send_money";
    type Args = Payment;
    type Output = String;
    type Error = Infallible;

    fn description(&self) -> String {
        "Sends money from the person's account.".to_owned()
    }

    fn parameters(&self) -> Value {
        let members = json!({"to": {"type": "string"}, "euro": {"type": "integer"}});
        json!({"type": "object", "properties": members, "required": ["to", "euro"]})
    }

    async fn call(&self, payment: Payment) -> Result<String, Infallible> {
        Ok(format!("{} euros were sent to {}.", payment.euro, payment.to))
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let hub = match env::var_os("SAYSO_URL") {
        None => Hub::embedded().agent("bank").agent_name("Bank assistant").open()?,
        Some(_) => Hub::from_env().agent_name("Bank assistant").open().await?,
    };
    let adapter = Adapter::new(&hub);
    // The tool asks first, however rig calls it.
    let send = adapter
        .require_consent(SendMoney)
        .irreversible()
        .says(|payment| format!("Send {} euros to {}.", payment.euro, payment.to))
        .consequence(|_| "The money leaves your account at once.".to_owned());

    let model = env::var("OPENAI_MODEL").unwrap_or_else(|_| "gpt-5.2".to_owned());
    let model = OpenAI::from_env()?.chat(model);
    let agent =
        AgentBuilder::new(model).preamble("You help with money.").tool(send).default_max_turns(8).build();
    match adapter.prompt(&agent, "Send Ben five euros.").await {
        Ok(response) => println!("{}", response.output()),
        Err(error) => println!("The request failed: {error}."),
    }
    hub.close().await;
    Ok(())
}
