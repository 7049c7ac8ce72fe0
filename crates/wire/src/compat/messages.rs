//! `POST /messages` and `POST /sessions`.

use std::sync::Arc;

use aaep::json::JsonWriter;
use hub::Principal;
use hub::command::{HubCommand, SubscriberMessage};

use super::message_parser::{self, CompatMessage};
use super::{Compat, SubscriptionResponse, implicit_subscription};
use crate::http::{HttpResponse, StatusCode};
use crate::server::Server;

/// Handles `POST /messages`, which accepts any JSON.
pub(super) async fn post_message(
    server: &Server,
    compat: &Arc<Compat>,
    body: &[u8],
    principal: &Principal,
) -> Result<HttpResponse, HttpResponse> {
    let text = utf8_body(body)?;
    let message = message_parser::parse(&text).ok_or_else(|| bad_request("The body is not JSON."))?;
    let hub = &server.hub;
    match message {
        CompatMessage::UserInput { text, user_id } => {
            return start_session(compat, text, user_id, principal).await;
        }
        CompatMessage::Subscribe => {
            let response = implicit_subscription::subscribe(hub, principal, &text).await;
            send_to_newest_stream(compat, principal, response).await;
        }
        CompatMessage::Renegotiate => {
            if let Some(response) = implicit_subscription::renegotiate(hub, principal, &text).await {
                send_to_newest_stream(compat, principal, response).await;
            }
        }
        CompatMessage::Close => {
            hub.ask(principal.clone(), HubCommand::SendMessage { message: SubscriberMessage::parse(&text) })
                .await;
        }
        CompatMessage::Reply { token } => {
            let subscription = compat.subscription_for_reply(principal, token.as_deref());
            implicit_subscription::send_reply(hub, principal, subscription, text).await;
        }
    }
    Ok(HttpResponse::new(StatusCode::Ok).json(r#"{"status":"received"}"#))
}

/// Handles `POST /sessions`.
pub(super) async fn post_session(
    compat: &Arc<Compat>,
    body: &[u8],
    principal: &Principal,
) -> Result<HttpResponse, HttpResponse> {
    let text = utf8_body(body)?;
    let (request_text, user_id) = message_parser::parse_session_request(&text)
        .ok_or_else(|| bad_request("user_message must be non-empty text."))?;
    start_session(compat, request_text, user_id, principal).await
}

/// Starts a session, after waiting for the client's stream.
async fn start_session(
    compat: &Compat,
    text: String,
    user_id: Option<String>,
    principal: &Principal,
) -> Result<HttpResponse, HttpResponse> {
    compat.wait_for_stream(principal).await;
    let session = compat.start_session(principal, text, user_id).await?;
    let mut writer = JsonWriter::default();
    writer.open_object();
    for (name, text) in [("status", "started"), ("session_id", &session)] {
        writer.key(name).text(text);
    }
    writer.close_object();
    Ok(HttpResponse::new(StatusCode::Created).json(writer.finish()))
}

/// Sends a subscription response to the client's newest stream. If the client has no stream, the response is dropped.
async fn send_to_newest_stream(compat: &Compat, principal: &Principal, response: SubscriptionResponse) {
    if let Some(stream) = compat.newest_stream(principal) {
        let _ = stream.send(response).await;
    }
}

fn utf8_body(body: &[u8]) -> Result<String, HttpResponse> {
    String::from_utf8(body.to_vec()).map_err(|_| bad_request("The body is not UTF-8."))
}

fn bad_request(title: &str) -> HttpResponse {
    HttpResponse::problem(StatusCode::BadRequest, title)
}
