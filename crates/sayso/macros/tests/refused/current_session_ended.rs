//! Only the owner of a session can end it.

async fn end_current_session() -> Result<(), sayso::Error> {
    match sayso::current() {
        Some(session) => session.finish("Done.").await,
        None => Ok(()),
    }
}

fn main() {}
