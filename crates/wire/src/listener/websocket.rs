//! WebSocket (§B.2): one message a frame.

use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use hub::Principal;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};

use super::flow::closing;
use super::{Ear, Ending, FAREWELL, Heard, Manners, Mouth, Word, hang_up, listen};
use crate::http::{Framing, Head, Response, Status};
use crate::observe::Wire;
use crate::server::Server;

/// The subprotocol (§B.2.1); without it there is no understanding (C-E7).
const PROTOCOL: &str = "aaep.v1";

/// A request to become a WebSocket that was found good.
#[derive(Debug)]
pub(crate) struct Upgrade {
    who: Principal,
    accept: String,
}

impl Upgrade {
    /// Reads the request.
    pub(crate) fn asked(head: &Head, who: Principal) -> Result<Self, Response> {
        let accept = accept_key(head)?;
        if !head.lists("sec-websocket-protocol", PROTOCOL) {
            return Err(Response::problem(Status::BadRequest, "The subprotocol here is aaep.v1."));
        }
        Ok(Self { who, accept })
    }
}

/// The key that accepts a request for a WebSocket (RFC 6455 §4.2.1).
pub(crate) fn accept_key(head: &Head) -> Result<String, Response> {
    let has = |name: &str, word: &str| {
        head.header(name)
            .is_some_and(|value| value.split(',').any(|part| part.trim().eq_ignore_ascii_case(word)))
    };
    if !has("upgrade", "websocket") || !has("connection", "upgrade") {
        return Err(upgrade_required("This address is for WebSocket."));
    }
    if head.header("sec-websocket-version") != Some("13") {
        return Err(upgrade_required("WebSocket is spoken in version 13."));
    }
    let bad = |why| Err(Response::problem(Status::BadRequest, why));
    let Some(key) = head.header("sec-websocket-key").filter(|key| is_key(key)) else {
        return bad("Sec-WebSocket-Key is 16 bytes in Base64.");
    };
    if head.framing != Framing::None {
        return bad("A request for a WebSocket has no body.");
    }
    Ok(derive_accept_key(key.as_bytes()))
}

fn upgrade_required(why: &str) -> Response {
    Response::problem(Status::UpgradeRequired, why)
        .header("Upgrade", "websocket")
        .header("Sec-WebSocket-Version", "13")
}

fn is_key(key: &str) -> bool {
    let letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/';
    key.strip_suffix("==").is_some_and(|rest| rest.len() == 22 && rest.bytes().all(letter))
}

/// Answers a request with that key; the connection is a WebSocket from here on. `read` is what came after the head.
pub(crate) async fn switch<S: AsyncRead + AsyncWrite + Send + Unpin>(
    server: &Server,
    accept: &str,
    protocol: Option<&str>,
    mut stream: S,
    read: Vec<u8>,
) -> Option<WebSocketStream<S>> {
    let protocol = protocol.map(|name| format!("Sec-WebSocket-Protocol: {name}\r\n")).unwrap_or_default();
    let head = format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n{protocol}\r\n"
    );
    let say = async {
        stream.write_all(head.as_bytes()).await?;
        stream.flush().await
    };
    if !timeout(FAREWELL, say).await.is_ok_and(|said| said.is_ok()) {
        return None;
    }
    let most = Some(server.limits.websocket_bytes);
    let config = WebSocketConfig::default()
        .max_message_size(most)
        .max_frame_size(most)
        .read_buffer_size(8 * 1024)
        .write_buffer_size(0);
    Some(WebSocketStream::from_partially_read(stream, read, Role::Server, Some(config)).await)
}

/// A listener's WebSocket, until it ends.
pub(crate) async fn run(
    server: &Server,
    upgrade: Upgrade,
    stream: impl AsyncRead + AsyncWrite + Send + Unpin,
    read: Vec<u8>,
) {
    let Upgrade { who, accept } = upgrade;
    let Some(socket) = switch(server, &accept, Some(PROTOCOL), stream, read).await else { return };
    let (mut mouth, mut ear) = socket.split();
    let manners = Manners {
        first: Some(server.limits.head_time),
        ping: Some(server.limits.ping_time),
        malformed: Some(server.limits.malformed),
        patience: server.limits.message_time,
    };
    let _here = server.bridge.observe().listens(Wire::WebSocket);
    tokio::select! {
        _ = listen(&server.bridge, &who, &manners, &mut ear, &mut mouth) => {}
        // Who is told so by the hub has heard it before.
        () = async { server.dismissed(&who).await; tokio::time::sleep(FAREWELL).await } => {}
    }
    if let Ok(socket) = ear.reunite(mouth) {
        hang_up(socket.into_inner()).await;
    }
}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Ear for SplitStream<WebSocketStream<S>> {
    async fn hear(&mut self) -> Heard {
        match self.next().await {
            Some(Ok(Message::Text(text))) => Heard::Message { text: text.as_str().to_owned(), to: None },
            // C-E8
            Some(Ok(Message::Binary(bytes))) => match String::from_utf8(bytes.into()) {
                Ok(text) => Heard::Message { text, to: None },
                Err(_) => Heard::Malformed,
            },
            Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => Heard::Alive,
            Some(Err(Error::Capacity(_))) => Heard::End(Ending::TooLarge),
            Some(Err(Error::Protocol(_) | Error::Utf8(_))) => Heard::End(Ending::Broken),
            Some(Ok(Message::Close(_)) | Err(_)) | None => Heard::End(Ending::Gone),
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Mouth for SplitSink<WebSocketStream<S>, Message> {
    async fn say(&mut self, word: Word) -> bool {
        let message = match word {
            Word::Event(frame) => Message::text(frame.json()),
            Word::Answer { json, .. } => Message::text(json),
            Word::Aside(text) => Message::text(text),
            Word::Ping => Message::Ping(Vec::new().into()),
            Word::Refused { .. } => return true,
            // The other side's close is answered by what lies in the buffer already.
            Word::End { ending: Ending::Gone, .. } => return self.close().await.is_ok(),
            Word::End { ending, subscription } => {
                // Who ends it without being asked says why in a message, as on every wire.
                let told =
                    matches!(ending, Ending::Slow | Ending::Stopping | Ending::Replaced | Ending::Dismissed);
                if let Some(subscription) = subscription.filter(|_| told)
                    && self.send(Message::text(closing(&subscription, ending))).await.is_err()
                {
                    return false;
                }
                let (code, reason) = (code(ending).into(), ending.reason().1.into());
                Message::Close(Some(CloseFrame { code, reason }))
            }
        };
        self.send(message).await.is_ok()
    }
}

/// §B.2.4; what concerns the transport alone has the codes of RFC 6455.
fn code(ending: Ending) -> u16 {
    match ending {
        Ending::Over | Ending::Replaced => 4000,
        Ending::Rejected => 4001,
        Ending::Unauthenticated | Ending::Dismissed => 4002,
        Ending::Denied => 4003,
        Ending::Violation | Ending::Slow => 4004,
        Ending::Closed => 4005,
        Ending::TooLarge => 1009,
        Ending::Broken => 1002,
        Ending::Silent | Ending::Stopping | Ending::Gone => 1001,
    }
}
