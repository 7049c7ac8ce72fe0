//! `POST /demo`: requests to the demo agent over HTTP.

use std::borrow::Cow;

use aaep::json::{JsonKind, Tape};
use hub::Principal;
use wire::http::{HttpResponse, StatusCode};

use super::Assistant;

/// Handles a request. The body has the text and optionally the language.
pub(crate) async fn handle_request(assistant: Assistant, principal: Principal, body: String) -> HttpResponse {
    let (text, language) = match parse_body(&body) {
        Ok(request) => request,
        Err(error) => return HttpResponse::problem(StatusCode::BadRequest, error),
    };
    if !principal.role.can_answer() {
        return HttpResponse::problem(StatusCode::Forbidden, "This token does not allow that.");
    }
    match assistant.start_session(text, None, language).await {
        Ok(session) => {
            HttpResponse::new(StatusCode::Created).json(format!("{{\"session_id\":\"{session}\"}}"))
        }
        Err(error) => HttpResponse::problem(StatusCode::ServiceUnavailable, &error),
    }
}

fn parse_body(body: &str) -> Result<(String, Option<String>), &'static str> {
    let mut tape = Tape::default();
    let root = tape.read(body).ok().map(|doc| doc.root()).filter(|root| root.kind() == JsonKind::Object);
    let text = root.and_then(|root| Some(root.member("text")?.text()?.into_owned()));
    let text = text.filter(|text| !text.trim().is_empty());
    let text = text.ok_or("The body must be a JSON object such as {\"text\":\"what's my balance?\"}.")?;
    let Some(language) = root.and_then(|root| root.member("language")) else { return Ok((text, None)) };
    let tag = language.text().map(Cow::into_owned).filter(|tag| aaep::grammar::is_language_tag(tag));
    let tag = tag.ok_or("The language must be a tag, such as {\"language\":\"es\"}.")?;
    Ok((text, Some(tag)))
}
