//! One connection to a replay. Handles its requests one after the other until it ends or becomes a stream.

use aaep::SubscriptionId;
use aaep::message::{Message, SubscriptionRejected};
use hub::delivery::Frame;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::player::Player;
use super::{Replay, ReplaySubscription, socket};
use crate::http::{HttpResponse, Method, QueryString, ReadError, RequestHead, RequestReader, StatusCode};
use crate::http_server::{
    SSE_RESPONSE_HEAD, check_origin, reject_token_in_query, wait_for_disconnect, write_with_timeout,
};
use crate::message_transport::websocket;
use crate::sse;

pub(super) async fn run(replay: &Replay, mut stream: TcpStream) {
    let time_limit = replay.limits.requests.response_timeout;
    let mut reader = RequestReader::new(replay.limits.requests);
    loop {
        let (head, body) = match reader.next(&mut stream).await {
            Ok(request) => request,
            Err(ReadError::Closed) => return,
            Err(ReadError::Rejected(response)) => {
                write_with_timeout(&mut stream, &response.to_bytes(false, false), time_limit).await;
                return;
            }
        };
        let response = match handle_request(replay, &head, &body) {
            ReplayOutcome::Response(response) => response,
            ReplayOutcome::EventStream(id, last_event_id) => {
                return stream_events(replay, stream, &id, last_event_id).await;
            }
            ReplayOutcome::WebSocket(accept) => {
                return socket::run(replay, &accept, stream, reader.buffer).await;
            }
        };
        let bytes = response.to_bytes(head.keep_alive, head.method == Method::Head);
        if !write_with_timeout(&mut stream, &bytes, time_limit).await || !head.keep_alive {
            return;
        }
    }
}

enum ReplayOutcome {
    Response(HttpResponse),
    /// The subscription, and the id of the last event that the listener has received.
    EventStream(SubscriptionId, Option<String>),
    /// The value of `Sec-WebSocket-Accept`.
    WebSocket(String),
}

fn handle_request(replay: &Replay, head: &RequestHead, body: &[u8]) -> ReplayOutcome {
    let problem = |status, title: &str| ReplayOutcome::Response(HttpResponse::problem(status, title));
    if let Err(response) =
        check_origin(&replay.hosts, false, false, head).and_then(|()| reject_token_in_query(head))
    {
        return ReplayOutcome::Response(response);
    }
    match (head.method, head.path.as_str()) {
        (Method::Post, "/aaep/v1/subscriptions") => ReplayOutcome::Response(subscribe(replay, body)),
        (Method::Post, "/aaep/v1/replies") => ReplayOutcome::Response(handle_message(replay, body)),
        (Method::Get, "/aaep/v1/events") => open_event_stream(replay, head),
        (Method::Get, "/aaep/v1/ws") => match websocket::accept_key(head) {
            Err(response) => ReplayOutcome::Response(response),
            Ok(_) if !head.list_contains("sec-websocket-protocol", socket::SUBPROTOCOL) => {
                problem(StatusCode::BadRequest, "The subprotocol must be aaep.v1.")
            }
            Ok(accept) => ReplayOutcome::WebSocket(accept),
        },
        (_, "/aaep/v1/subscriptions" | "/aaep/v1/replies" | "/aaep/v1/events" | "/aaep/v1/ws") => {
            problem(StatusCode::MethodNotAllowed, "Method not allowed.")
        }
        _ => problem(StatusCode::NotFound, "Not found. This server only plays a recording."),
    }
}

fn subscribe(replay: &Replay, body: &[u8]) -> HttpResponse {
    let Some(Message::SubscriptionRequest(request)) = parse_message(body) else {
        return HttpResponse::problem(StatusCode::BadRequest, "The body must be a subscription.request.");
    };
    match replay.subscribe(&request) {
        Ok((id, _, accepted)) => HttpResponse::new(StatusCode::Created)
            .json(accepted)
            .header("Location", &format!("/aaep/v1/events?subscription_id={id}")),
        Err(rejected) => HttpResponse::new(StatusCode::Conflict).json(rejected_json(rejected)),
    }
}

/// Handles a listener's message. A reply has no effect and gets the same response as on a hub (C-D1).
fn handle_message(replay: &Replay, body: &[u8]) -> HttpResponse {
    let mut tape = aaep::json::Tape::default();
    if std::str::from_utf8(body).ok().is_none_or(|text| tape.read(text).is_err()) {
        return HttpResponse::new(StatusCode::BadRequest);
    }
    match parse_message(body) {
        Some(Message::SubscriptionRenegotiate(request)) => match replay.renegotiate(&request) {
            Some(Ok(accepted)) => HttpResponse::new(StatusCode::Ok).json(accepted),
            Some(Err(rejected)) => HttpResponse::new(StatusCode::Conflict).json(rejected_json(rejected)),
            None => HttpResponse::new(StatusCode::NoContent),
        },
        Some(Message::SubscriptionClose(close)) => {
            replay.lock_subscriptions().remove(&close.subscription_id);
            HttpResponse::new(StatusCode::NoContent)
        }
        _ => HttpResponse::new(StatusCode::NoContent),
    }
}

fn open_event_stream(replay: &Replay, head: &RequestHead) -> ReplayOutcome {
    let query = match QueryString::parse(head.query.as_deref(), &["subscription_id", "last_event_id"]) {
        Ok(query) => query,
        Err(error) => {
            return ReplayOutcome::Response(HttpResponse::problem(
                StatusCode::BadRequest,
                &format!("{error}."),
            ));
        }
    };
    let id = query.get("subscription_id").and_then(|id| SubscriptionId::parse(id).ok());
    let Some(id) = id.filter(|id| replay.lock_subscriptions().contains_key(id)) else {
        return ReplayOutcome::Response(HttpResponse::problem(StatusCode::NotFound, "Unknown subscription."));
    };
    let last_event_id = head.header("last-event-id").or_else(|| query.get("last_event_id"));
    ReplayOutcome::EventStream(id, last_event_id.map(str::to_owned))
}

/// Streams the recording until the listener disconnects.
async fn stream_events(
    replay: &Replay,
    stream: TcpStream,
    id: &SubscriptionId,
    last_event_id: Option<String>,
) {
    let Some(subscription) = replay.lock_subscriptions().get(id).cloned() else { return };
    let (mut reader, mut writer) = stream.into_split();
    if !write_with_timeout(&mut writer, SSE_RESPONSE_HEAD, replay.limits.write_timeout).await {
        return;
    }
    let playing = async {
        let Ok(mut player) = new_player(replay, &subscription, last_event_id.as_deref()).await else {
            return;
        };
        loop {
            let frame = match timeout(replay.limits.heartbeat_interval, player.next()).await {
                Ok((id, json)) => Frame::event(&id, &json, 0, false),
                Err(_) => Frame::heartbeat(),
            };
            if !write_with_timeout(&mut writer, sse::frame_bytes(&frame), replay.limits.write_timeout).await {
                return;
            }
        }
    };
    tokio::select! {
        () = playing => {}
        () = wait_for_disconnect(&mut reader) => {}
    }
    let _ = writer.shutdown().await;
}

pub(super) async fn new_player<'r>(
    replay: &'r Replay,
    subscription: &ReplaySubscription,
    last_event_id: Option<&str>,
) -> std::io::Result<Player<'r>> {
    let shaping_terms = subscription.shaping_terms.subscribe();
    match last_event_id {
        Some(last_event_id) => Player::resume_after(&replay.source, shaping_terms, last_event_id).await,
        None => Player::new(&replay.source, shaping_terms),
    }
}

fn parse_message(body: &[u8]) -> Option<Message> {
    Message::parse(std::str::from_utf8(body).ok()?)
}

pub(super) fn rejected_json(rejected: SubscriptionRejected) -> String {
    Message::SubscriptionRejected(rejected).to_json()
}
