//! A tool that is called without asking has no high risk.

async fn sends(session: &sayso::Session) -> Result<(), sayso::Error> {
    session.tool("send").risk(sayso::Risk::High).start().await?.done("Sent.").await
}

fn main() {}
