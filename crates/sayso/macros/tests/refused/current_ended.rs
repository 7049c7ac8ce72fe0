//! A session that is carried along is ended by its owner.

async fn ends() -> Result<(), sayso::Error> {
    match sayso::current() {
        Some(session) => session.finish("Done.").await,
        None => Ok(()),
    }
}

fn main() {}
