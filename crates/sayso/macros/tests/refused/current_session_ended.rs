//! Only the owner of a session can end it.

async fn ends() -> Result<(), sayso::Error> {
    match sayso::current() {
        Some(session) => session.finish("Done.").await,
        None => Ok(()),
    }
}

fn main() {}
