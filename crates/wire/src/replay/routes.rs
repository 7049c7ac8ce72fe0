//! One connection to a recording: requests one after the other, until it becomes a stream or ends.

use aaep::SubscriptionId;
use aaep::message::{Message, SubscriptionRejected};
use hub::delivery::Frame;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::player::Player;
use super::{Replay, Subscription, socket};
use crate::http::{Head, Method, Query, RequestReader, Response, Status, Unread};
use crate::listener::websocket;
use crate::server::{STREAM_HEAD, check_origin, hung_up, no_token, written};
use crate::sse;

pub(super) async fn run(replay: &Replay, mut stream: TcpStream) {
    let patience = replay.limits.requests.answer_time;
    let mut reader = RequestReader::new(replay.limits.requests);
    loop {
        let (head, body) = match reader.next(&mut stream).await {
            Ok(request) => request,
            Err(Unread::Ended) => return,
            Err(Unread::Refused(response)) => {
                written(&mut stream, &response.to_bytes(false, false), patience).await;
                return;
            }
        };
        let response = match answer(replay, &head, &body) {
            Reply::Whole(response) => response,
            Reply::Stream(id, last) => return play(replay, stream, &id, last).await,
            Reply::Socket(accept) => return socket::run(replay, &accept, stream, reader.rest).await,
        };
        let bytes = response.to_bytes(head.keep_alive, head.method == Method::Head);
        if !written(&mut stream, &bytes, patience).await || !head.keep_alive {
            return;
        }
    }
}

enum Reply {
    Whole(Response),
    Stream(SubscriptionId, Option<String>),
    Socket(String),
}

fn answer(replay: &Replay, head: &Head, body: &[u8]) -> Reply {
    let problem = |status, why: &str| Reply::Whole(Response::problem(status, why));
    if let Err(refused) = check_origin(&replay.hosts, false, head).and_then(|()| no_token(head)) {
        return Reply::Whole(refused);
    }
    match (head.method, head.path.as_str()) {
        (Method::Post, "/aaep/v1/subscriptions") => Reply::Whole(subscribe(replay, body)),
        (Method::Post, "/aaep/v1/replies") => Reply::Whole(replies(replay, body)),
        (Method::Get, "/aaep/v1/events") => stream(replay, head),
        (Method::Get, "/aaep/v1/ws") => match websocket::accept_key(head) {
            Err(response) => Reply::Whole(response),
            Ok(_) if !head.lists("sec-websocket-protocol", socket::PROTOCOL) => {
                problem(Status::BadRequest, "The subprotocol here is aaep.v1.")
            }
            Ok(accept) => Reply::Socket(accept),
        },
        (_, "/aaep/v1/subscriptions" | "/aaep/v1/replies" | "/aaep/v1/events" | "/aaep/v1/ws") => {
            problem(Status::MethodNotAllowed, "This address takes another method.")
        }
        _ => problem(Status::NotFound, "This is a recording; there is nothing else here."),
    }
}

fn subscribe(replay: &Replay, body: &[u8]) -> Response {
    let Some(Message::SubscriptionRequest(request)) = message(body) else {
        return Response::problem(Status::BadRequest, "A subscription.request is wanted here.");
    };
    match replay.subscribe(&request) {
        Ok((id, _, accepted)) => Response::new(Status::Created)
            .json(accepted)
            .header("Location", &format!("/aaep/v1/events?subscription_id={id}")),
        Err(rejected) => Response::new(Status::Conflict).json(refusal(rejected)),
    }
}

/// What a listener says. Of a reply nothing comes, and as from a hub, nothing is said of it (C-D1).
fn replies(replay: &Replay, body: &[u8]) -> Response {
    let mut tape = aaep::json::Tape::default();
    if std::str::from_utf8(body).ok().is_none_or(|text| tape.read(text).is_err()) {
        return Response::new(Status::BadRequest);
    }
    match message(body) {
        Some(Message::SubscriptionRenegotiate(wish)) => match replay.renegotiate(&wish) {
            Some(Ok(accepted)) => Response::new(Status::Ok).json(accepted),
            Some(Err(rejected)) => Response::new(Status::Conflict).json(refusal(rejected)),
            None => Response::new(Status::NoContent),
        },
        Some(Message::SubscriptionClose(close)) => {
            replay.known().remove(&close.subscription_id);
            Response::new(Status::NoContent)
        }
        _ => Response::new(Status::NoContent),
    }
}

fn stream(replay: &Replay, head: &Head) -> Reply {
    let query = match Query::parse(head.query.as_deref(), &["subscription_id", "last_event_id"]) {
        Ok(query) => query,
        Err(why) => return Reply::Whole(Response::problem(Status::BadRequest, &format!("{why}."))),
    };
    let id = query.get("subscription_id").and_then(|id| SubscriptionId::parse(id).ok());
    let Some(id) = id.filter(|id| replay.known().contains_key(id)) else {
        return Reply::Whole(Response::problem(Status::NotFound, "There is no such subscription."));
    };
    let last = head.header("last-event-id").or_else(|| query.get("last_event_id"));
    Reply::Stream(id, last.map(str::to_owned))
}

/// The recording as a stream, until the listener goes.
async fn play(replay: &Replay, stream: TcpStream, id: &SubscriptionId, last: Option<String>) {
    let Some(subscription) = replay.known().get(id).cloned() else { return };
    let (mut reader, mut writer) = stream.into_split();
    if !written(&mut writer, STREAM_HEAD, replay.limits.write_time).await {
        return;
    }
    let playing = async {
        let Ok(mut player) = player(replay, &subscription, last.as_deref()).await else { return };
        loop {
            let block = match timeout(replay.limits.alive, player.next()).await {
                Ok((id, json)) => Frame::event(&id, &json, 0, false),
                Err(_) => Frame::heartbeat(),
            };
            if !written(&mut writer, sse::bytes(&block), replay.limits.write_time).await {
                return;
            }
        }
    };
    tokio::select! {
        () = playing => {}
        () = hung_up(&mut reader) => {}
    }
    let _ = writer.shutdown().await;
}

pub(super) async fn player<'r>(
    replay: &'r Replay,
    subscription: &Subscription,
    last: Option<&str>,
) -> std::io::Result<Player<'r>> {
    let wants = subscription.wants.subscribe();
    match last {
        Some(last) => Player::after(&replay.recording, wants, last).await,
        None => Player::new(&replay.recording, wants),
    }
}

fn message(body: &[u8]) -> Option<Message> {
    Message::parse(std::str::from_utf8(body).ok()?)
}

pub(super) fn refusal(rejected: SubscriptionRejected) -> String {
    Message::SubscriptionRejected(rejected).to_json()
}
