//! A grant can be spent only once.

async fn twice(session: sayso::Session, granted: sayso::Granted) -> Result<(), sayso::Error> {
    session.start_call(granted).await?.succeed("Once.").await?;
    session.start_call(granted).await?.succeed("Twice.").await
}

fn main() {}
