//! Nothing can be reported after the end of a session.

async fn too_late(session: sayso::Session) -> Result<(), sayso::Error> {
    session.finish("Done.").await?;
    session.think("One more thing.").await
}

fn main() {}
