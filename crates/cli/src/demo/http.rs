//! `POST /demo`: the assistant asked over HTTP.

use std::borrow::Cow;

use aaep::json::{Kind, Tape};
use hub::Principal;
use wire::http::{Response, Status};

use super::Assistant;

/// Asks the assistant; the body says what is wanted, and in which language.
pub(crate) async fn answer(assistant: Assistant, who: Principal, body: String) -> Response {
    let (text, language) = match read(&body) {
        Ok(wanted) => wanted,
        Err(why) => return Response::problem(Status::BadRequest, why),
    };
    if !who.role.answers() {
        return Response::problem(Status::Forbidden, "This token is not for that.");
    }
    match assistant.ask(text, None, language).await {
        Ok(session) => Response::new(Status::Created).json(format!("{{\"session_id\":\"{session}\"}}")),
        Err(why) => Response::problem(Status::Unavailable, &why),
    }
}

fn read(body: &str) -> Result<(String, Option<String>), &'static str> {
    let mut tape = Tape::default();
    let root = tape.read(body).ok().map(|doc| doc.root()).filter(|root| root.kind() == Kind::Object);
    let text = root.and_then(|root| Some(root.member("text")?.text()?.into_owned()));
    let text = text.filter(|text| !text.trim().is_empty());
    let text = text.ok_or("The body says what is wanted: {\"text\":…}.")?;
    let Some(language) = root.and_then(|root| root.member("language")) else { return Ok((text, None)) };
    let tag = language.text().map(Cow::into_owned).filter(|tag| aaep::form::is_language_tag(tag));
    let tag = tag.ok_or("The language is a tag, like {\"language\":\"es\"}.")?;
    Ok((text, Some(tag)))
}
