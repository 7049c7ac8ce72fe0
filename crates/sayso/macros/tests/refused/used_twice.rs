//! A consent is spent once.

async fn twice(session: sayso::Session, granted: sayso::Granted) -> Result<(), sayso::Error> {
    session.begin(granted).await?.done("Once.").await?;
    session.begin(granted).await?.done("Twice.").await
}

fn main() {}
