//! A session with an open tool call cannot be ended.

async fn too_early(session: sayso::Session) -> Result<(), sayso::Error> {
    let tool = session.tool("weather").start().await?;
    session.finish("Done.").await?;
    tool.succeed("It is raining.").await
}

fn main() {}
