//! The way to the demo's assistant: whoever runs the hub brings it, and it takes wishes one after the other.

use hub::Principal;
use tokio::sync::{mpsc, oneshot};

use crate::http::{Response, Status};

/// What somebody wants the demo's assistant to do.
#[derive(Debug)]
pub struct Wish {
    /// In the person's own words.
    pub text: String,
    /// Who wants it, if that was said.
    pub user: Option<String>,
    /// The language to answer in, as a tag; else that of the words.
    pub language: Option<String>,
    /// Takes the id of the session that began, or why none did.
    pub begun: oneshot::Sender<Result<String, String>>,
}

/// Asks the assistant; the id of the session that began.
pub(crate) async fn ask(
    demo: Option<&mpsc::Sender<Wish>>,
    who: &Principal,
    text: String,
    user: Option<String>,
    language: Option<String>,
) -> Result<String, Response> {
    if !who.role.answers() {
        return Err(Response::problem(Status::Forbidden, "This token is not for that."));
    }
    let nobody = || Response::problem(Status::Unavailable, "There is no assistant here to ask.");
    let (begun, session) = oneshot::channel();
    let Some(demo) = demo else { return Err(nobody()) };
    demo.send(Wish { text, user, language, begun }).await.map_err(|_| nobody())?;
    let session = session.await.map_err(|_| nobody())?;
    session.map_err(|why| Response::problem(Status::Unavailable, &why))
}
