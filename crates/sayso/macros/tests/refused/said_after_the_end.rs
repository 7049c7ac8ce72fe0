//! Nothing is said after the end.

async fn too_late(session: sayso::Session) -> Result<(), sayso::Error> {
    session.finish("Done.").await?;
    session.think("One more thing.").await
}

fn main() {}
