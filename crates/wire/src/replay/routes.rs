//! One connection to a recording: requests one after the other, until it becomes a stream or ends.

use aaep::SubscriptionId;
use aaep::message::{Message, SubscriptionRejected};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::player::Player;
use super::{Replay, Subscription, socket};
use crate::http::{Chunks, Framing, Head, Method, Query, Response, Status};
use crate::listener::websocket;
use crate::server::{STREAM_HEAD, hung_up, written};

pub(super) async fn run(replay: &Replay, mut stream: TcpStream) {
    let mut bytes = Vec::new();
    loop {
        let request = timeout(replay.limits.patience, read(replay, &mut stream, &mut bytes)).await;
        let Ok(Some(request)) = request else { return };
        let (head, body) = match request {
            Ok(request) => request,
            Err(response) => {
                let _ =
                    written(&mut stream, &response.to_bytes(false, false), replay.limits.write_time).await;
                return;
            }
        };
        let response = match answer(replay, &head, &body) {
            Reply::Whole(response) => response,
            Reply::Stream(id, last) => return play(replay, stream, &id, last).await,
            Reply::Socket(accept) => return socket::run(replay, &accept, stream, bytes).await,
        };
        let head_only = head.method == Method::Head;
        let told =
            written(&mut stream, &response.to_bytes(head.keep_alive, head_only), replay.limits.write_time)
                .await;
        if !told || !head.keep_alive {
            return;
        }
    }
}

/// A request and its body; nothing if the connection ends.
async fn read(
    replay: &Replay,
    stream: &mut TcpStream,
    bytes: &mut Vec<u8>,
) -> Option<Result<(Head, Vec<u8>), Response>> {
    let bad = |why: &str| Some(Err(Response::problem(Status::BadRequest, why)));
    let head = loop {
        match Head::parse(bytes) {
            Ok(Some((head, used))) => {
                bytes.drain(..used);
                break head;
            }
            Ok(None) if bytes.len() > replay.limits.head_bytes => {
                let why = "The request's head is too long.";
                return Some(Err(Response::problem(Status::HeadTooLarge, why)));
            }
            Ok(None) => {}
            Err(why) => return bad(&format!("{why}.")),
        }
        if stream.read_buf(bytes).await.unwrap_or(0) == 0 {
            return None;
        }
    };
    let too_large = || Some(Err(Response::problem(Status::ContentTooLarge, "The message is too long.")));
    let most = replay.limits.message_bytes;
    let (mut body, mut chunks) = (Vec::new(), Chunks::default());
    loop {
        match head.framing {
            Framing::None => return Some(Ok((head, body))),
            Framing::Length(length) => {
                let Some(length) = usize::try_from(length).ok().filter(|length| *length <= most) else {
                    return too_large();
                };
                if bytes.len() >= length {
                    body = bytes.drain(..length).collect();
                    return Some(Ok((head, body)));
                }
            }
            Framing::Chunked => {
                let Ok(took) = chunks.take(bytes, &mut body) else {
                    return bad("The body is not chunked as it says.");
                };
                bytes.drain(..took);
                if body.len() > most {
                    return too_large();
                }
                if chunks.is_done() {
                    return Some(Ok((head, body)));
                }
            }
        }
        if stream.read_buf(bytes).await.unwrap_or(0) == 0 {
            return None;
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
    let own = |host: &str| replay.hosts.iter().any(|own| own.eq_ignore_ascii_case(host));
    if !head.header("host").is_some_and(own) {
        return problem(Status::MisdirectedRequest, "This is not the host of that name.");
    }
    if head.header("origin").is_some_and(|origin| !origin.strip_prefix("http://").is_some_and(own)) {
        return problem(Status::Forbidden, "Pages of another origin are not let in.");
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
                Ok((id, json)) => format!("event: aaep.event\nid: {id}\ndata: {json}\n\n"),
                Err(_) => ": the recording is still here\n\n".to_owned(),
            };
            if !written(&mut writer, block.as_bytes(), replay.limits.write_time).await {
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
