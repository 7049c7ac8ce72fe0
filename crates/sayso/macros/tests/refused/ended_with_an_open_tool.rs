//! A session with an open tool is not ended.

async fn too_early(session: sayso::Session) -> Result<(), sayso::Error> {
    let tool = session.tool("weather").start().await?;
    session.finish("Done.").await?;
    tool.done("It rains.").await
}

fn main() {}
