//! A tool call without consent cannot be high-risk.

async fn send(session: &sayso::Session) -> Result<(), sayso::Error> {
    session.tool("send").risk(sayso::Risk::High).start().await?.succeed("Sent.").await
}

fn main() {}
