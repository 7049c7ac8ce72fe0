//! `POST /messages` and `POST /sessions`: what a client of the dialect says, on its own.

use std::sync::Arc;

use aaep::json::Writer;
use hub::Principal;
use hub::command::{Command, SubscriberMessage};

use super::words::{self, Words};
use super::{Compat, bare};
use crate::http::{Response, Status};
use crate::server::Server;

/// `POST /messages`: everything that is JSON is taken.
pub(super) async fn message(
    server: &Server,
    compat: &Arc<Compat>,
    body: &[u8],
    who: &Principal,
) -> Result<Response, Response> {
    let text = text(body)?;
    let words = words::read(&text).ok_or_else(|| bad("The body is not JSON."))?;
    let bridge = &server.bridge;
    match words {
        Words::Request { text, user } => return start(compat, text, user, who).await,
        Words::Terms => {
            let handover = bare::terms(bridge, who, &text).await;
            hand(compat, who, handover).await;
        }
        Words::OtherTerms => {
            if let Some(handover) = bare::other_terms(bridge, who, &text).await {
                hand(compat, who, handover).await;
            }
        }
        Words::Close => {
            bridge.ask(who.clone(), Command::Say { message: SubscriberMessage::parse(&text) }).await;
        }
        Words::Reply { token } => {
            let subscription = compat.replier(who, token.as_deref());
            bare::reply(bridge, who, subscription, text).await;
        }
    }
    Ok(Response::new(Status::Ok).json(r#"{"status":"received"}"#))
}

/// `POST /sessions`
pub(super) async fn session(
    compat: &Arc<Compat>,
    body: &[u8],
    who: &Principal,
) -> Result<Response, Response> {
    let text = text(body)?;
    let (said, user) =
        words::session(&text).ok_or_else(|| bad("user_message is a text that says something."))?;
    start(compat, said, user, who).await
}

/// A session is started, once somebody hears it.
async fn start(
    compat: &Compat,
    text: String,
    user: Option<String>,
    who: &Principal,
) -> Result<Response, Response> {
    compat.ear(who).await;
    let session = compat.start(who, text, user).await?;
    let mut writer = Writer::default();
    writer.open_object();
    for (name, text) in [("status", "started"), ("session_id", &session)] {
        writer.key(name).text(text);
    }
    writer.close_object();
    Ok(Response::new(Status::Created).json(writer.finish()))
}

/// The answer goes to the stream of who asked. Where there is none, nobody can have these terms either.
async fn hand(compat: &Compat, who: &Principal, handover: super::Handover) {
    if let Some(stream) = compat.newest(who) {
        let _ = stream.send(handover).await;
    }
}

fn text(body: &[u8]) -> Result<String, Response> {
    String::from_utf8(body.to_vec()).map_err(|_| bad("The body is not UTF-8."))
}

fn bad(why: &str) -> Response {
    Response::problem(Status::BadRequest, why)
}
