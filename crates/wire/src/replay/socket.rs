//! A recording on a WebSocket: a message a frame (§B.2).

use aaep::message::Message;
use futures_util::{SinkExt, StreamExt};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message as Frame;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

use super::Replay;
use super::routes::{player, refusal};

/// The subprotocol (§B.2.1).
pub(super) const PROTOCOL: &str = "aaep.v1";

pub(super) async fn run(replay: &Replay, accept: &str, mut stream: TcpStream, read: Vec<u8>) {
    let limits = replay.limits;
    let head = format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\nSec-WebSocket-Protocol: {PROTOCOL}\r\n\r\n"
    );
    if stream.write_all(head.as_bytes()).await.is_err() {
        return;
    }
    let most = Some(limits.requests.body_bytes);
    let config = WebSocketConfig::default().max_message_size(most).max_frame_size(most);
    let mut socket = WebSocketStream::from_partially_read(stream, read, Role::Server, Some(config)).await;
    let until = Instant::now() + limits.requests.head_time;
    let request = loop {
        match timeout_at(until, socket.next()).await {
            Ok(Some(Ok(Frame::Text(text)))) => match Message::parse(&text) {
                Some(Message::SubscriptionRequest(request)) => break request,
                _ => return,
            },
            Ok(Some(Ok(Frame::Ping(_) | Frame::Pong(_)))) => {}
            _ => return,
        }
    };
    let (id, subscription, accepted) = match replay.subscribe(&request) {
        Ok(made) => made,
        Err(rejected) => {
            let _ = timeout(limits.write_time, socket.send(Frame::text(refusal(rejected)))).await;
            let _ = timeout(limits.write_time, socket.close(None)).await;
            return;
        }
    };
    let mut said = Some(accepted);
    let Ok(mut player) = player(replay, &subscription, None).await else { return };
    loop {
        if let Some(text) = said.take() {
            let sent = timeout(limits.write_time, socket.send(Frame::text(text))).await;
            if !matches!(sent, Ok(Ok(()))) {
                break;
            }
        }
        tokio::select! {
            heard = socket.next() => match heard {
                Some(Ok(Frame::Text(text))) => match Message::parse(&text) {
                    Some(Message::SubscriptionRenegotiate(wish)) if wish.subscription_id == id => {
                        said = match replay.renegotiate(&wish) {
                            Some(Ok(accepted)) => Some(accepted),
                            Some(Err(rejected)) => Some(refusal(rejected)),
                            None => None,
                        };
                    }
                    Some(Message::SubscriptionClose(close)) if close.subscription_id == id => break,
                    _ => {}
                },
                Some(Ok(Frame::Close(_)) | Err(_)) | None => break,
                Some(Ok(_)) => {}
            },
            (_, json) = player.next() => said = Some(json),
            () = tokio::time::sleep(limits.alive) => {
                let ping = socket.send(Frame::Ping(Vec::new().into()));
                if !matches!(timeout(limits.write_time, ping).await, Ok(Ok(()))) {
                    break;
                }
            }
        }
    }
    // There is no way back to it (C-C17).
    replay.known().remove(&id);
    let _ = timeout(limits.requests.head_time, socket.close(None)).await;
}
