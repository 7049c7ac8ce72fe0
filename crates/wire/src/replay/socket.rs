//! Replays a recording on a WebSocket, with one message per frame (§B.2).

use aaep::message::Message;
use futures_util::{SinkExt, StreamExt};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message as Frame;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

use super::Replay;
use super::routes::{new_player, rejected_json};

/// The subprotocol (§B.2.1).
pub(super) const SUBPROTOCOL: &str = "aaep.v1";

pub(super) async fn run(replay: &Replay, accept: &str, mut stream: TcpStream, read_ahead: Vec<u8>) {
    let limits = replay.limits;
    let head = format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\nSec-WebSocket-Protocol: {SUBPROTOCOL}\r\n\r\n"
    );
    if stream.write_all(head.as_bytes()).await.is_err() {
        return;
    }
    let max_size = Some(limits.requests.body_bytes);
    let config = WebSocketConfig::default().max_message_size(max_size).max_frame_size(max_size);
    let mut socket =
        WebSocketStream::from_partially_read(stream, read_ahead, Role::Server, Some(config)).await;
    let deadline = Instant::now() + limits.requests.head_timeout;
    let request = loop {
        match timeout_at(deadline, socket.next()).await {
            Ok(Some(Ok(Frame::Text(text)))) => match Message::parse(&text) {
                Some(Message::SubscriptionRequest(request)) => break request,
                _ => return,
            },
            Ok(Some(Ok(Frame::Ping(_) | Frame::Pong(_)))) => {}
            _ => return,
        }
    };
    let (id, subscription, accepted) = match replay.subscribe(&request) {
        Ok(subscribed) => subscribed,
        Err(rejected) => {
            let _ = timeout(limits.write_timeout, socket.send(Frame::text(rejected_json(rejected)))).await;
            let _ = timeout(limits.write_timeout, socket.close(None)).await;
            return;
        }
    };
    let mut outgoing = Some(accepted);
    let Ok(mut player) = new_player(replay, &subscription, None).await else { return };
    loop {
        if let Some(text) = outgoing.take() {
            let result = timeout(limits.write_timeout, socket.send(Frame::text(text))).await;
            if !matches!(result, Ok(Ok(()))) {
                break;
            }
        }
        tokio::select! {
            received = socket.next() => match received {
                Some(Ok(Frame::Text(text))) => match Message::parse(&text) {
                    Some(Message::SubscriptionRenegotiate(renegotiation)) if renegotiation.subscription_id == id => {
                        outgoing = match replay.renegotiate(&renegotiation) {
                            Some(Ok(accepted)) => Some(accepted),
                            Some(Err(rejected)) => Some(rejected_json(rejected)),
                            None => None,
                        };
                    }
                    Some(Message::SubscriptionClose(close)) if close.subscription_id == id => break,
                    _ => {}
                },
                Some(Ok(Frame::Close(_)) | Err(_)) | None => break,
                Some(Ok(_)) => {}
            },
            (_, json) = player.next() => outgoing = Some(json),
            () = tokio::time::sleep(limits.heartbeat_interval) => {
                let ping = socket.send(Frame::Ping(Vec::new().into()));
                if !matches!(timeout(limits.write_timeout, ping).await, Ok(Ok(()))) {
                    break;
                }
            }
        }
    }
    // A subscription on a WebSocket cannot be resumed (C-C17).
    replay.lock_subscriptions().remove(&id);
    let _ = timeout(limits.requests.head_timeout, socket.close(None)).await;
}
