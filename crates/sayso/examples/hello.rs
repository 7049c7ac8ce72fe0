//! The shortest agent that asks for consent. Run `cargo run --release -- demo --listen 127.0.0.1:8787` in one terminal to listen and
//! answer, and `cargo run -p sayso --example hello` in another.

#[sayso::tool(
    irreversible,
    action = "Send {amount} euros to {to}.",
    consequence = "The money leaves your account at once.",
    done = "{amount} euros are on their way to {to}."
)]
async fn send(session: &sayso::Session, to: &str, amount: u32) -> Result<u32, std::io::Error> {
    Ok(amount)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), sayso::Error> {
    let hub = sayso::Hub::from_env().agent_name("Bank assistant").open().await?;
    let session = hub.session("Pay Ben.").start().await?;
    match send(&session, "Ben", 5).await {
        Ok(amount) => session.finish(format!("{amount} euros are on their way to Ben.")).await?,
        Err(_) => session.cancel("Nothing was sent.").await?,
    }
    hub.close().await;
    Ok(())
}
