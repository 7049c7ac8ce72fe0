//! The wires that carry whole messages: WebSocket and Unix socket. There is no way back to a subscription whose connection has
//! ended (C-C17), so each connection is a new one. It begins after the place that the hub told last, where it knows it.

use std::path::Path;

use aaep::json::Tape;
use aaep::message::Message;
use client::{Message as Frame, WebSocket};
use futures_util::{SinkExt, StreamExt};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::address::Wire;
use super::follow::{Asking, Ended, Heard, LONGEST_BLOCK, Lost, SILENCE, goes_on, passes};
use super::{Address, Why, http};

/// One connection, until it is lost.
pub(super) async fn hear(
    to: &Address,
    request: &impl Fn(Asking) -> String,
    asking: &mut Asking,
    tell: &mpsc::Sender<Heard>,
    before: bool,
) -> Ended {
    let request = request(asking.clone());
    let opening = async {
        let mut wire = Connection::open(to).await?;
        wire.say(&request).await?;
        loop {
            match wire.next().await? {
                Some(sign) if sign.is_empty() => {}
                answer => return Ok((wire, answer)),
            }
        }
    };
    let (mut wire, accepted) = match timeout(http::PATIENCE, opening).await {
        Ok(Ok((wire, Some(answer)))) => (wire, answer),
        Ok(Ok((_, None))) => {
            return Ended::NotHeard(Lost::Unreachable(Why::HungUp));
        }
        Ok(Err(lost)) => return Ended::NotHeard(lost),
        Err(_) => return Ended::NotHeard(Lost::Unreachable(Why::Silent)),
    };
    let (subscription, notes, resumed) = match Message::parse(&accepted) {
        Some(Message::SubscriptionAccepted(accepted)) => {
            let resumed = goes_on(&accepted, asking);
            (accepted.subscription_id, accepted.negotiation_notes, resumed)
        }
        Some(Message::SubscriptionRejected(rejected)) if before && passes(&rejected) => {
            return Ended::NotHeard(Lost::Unreachable(Why::refusal(&rejected, None)));
        }
        Some(Message::SubscriptionRejected(rejected)) => {
            return Ended::NotHeard(Lost::Refused(Why::refusal(&rejected, None)));
        }
        _ => return Ended::NotHeard(Lost::Refused(Why::NoHub(None))),
    };
    let gone = || Ended::Heard(Lost::Unreachable(Why::Nobody));
    let terms = Heard::Terms { request, accepted };
    let open = Heard::Open { subscription: Some(subscription), notes, resumed };
    if tell.send(terms).await.is_err() || tell.send(open).await.is_err() {
        return gone();
    }
    loop {
        let next = tokio::select! {
            next = wire.alive() => next,
            () = tell.closed() => return gone(),
        };
        match next {
            Ok(Some(text)) if text.is_empty() => {}
            Ok(Some(text)) => {
                if let Some(place) = place(&text) {
                    asking.after = Some(place);
                    continue;
                }
                if tell.send(Heard::Text(text)).await.is_err() {
                    return gone();
                }
            }
            Ok(None) => {
                return Ended::Heard(Lost::Unreachable(Why::Ended));
            }
            Err(lost) => return Ended::Heard(lost),
        }
    }
}

/// The place that a message tells of, if it does.
fn place(text: &str) -> Option<String> {
    if !text.contains("sayso:place") {
        return None;
    }
    let mut tape = Tape::default();
    let root = tape.read(text).ok()?.root();
    let is_place = root.member("type")?.is("sayso:place");
    is_place.then(|| Some(root.member("last_event_id")?.text()?.into_owned())).flatten()
}

enum Connection {
    Socket(Box<WebSocket>),
    #[cfg(unix)]
    Unix(unix::Lines),
}

impl Connection {
    async fn open(to: &Address) -> Result<Self, Lost> {
        if let Wire::Unix(path) = &to.wire {
            return Self::unix(path).await;
        }
        match to.client.websocket("/aaep/v1/ws", Some("aaep.v1"), LONGEST_BLOCK).await.map_err(Why::from) {
            Ok(socket) => Ok(Self::Socket(Box::new(socket))),
            Err(why @ (Why::TokenWanted | Why::NoHub(_))) => Err(Lost::Refused(why)),
            Err(why) => Err(Lost::Unreachable(why)),
        }
    }

    #[cfg(unix)]
    async fn unix(path: &Path) -> Result<Self, Lost> {
        Ok(Self::Unix(unix::Lines::open(path).await.map_err(unreachable)?))
    }

    #[cfg(not(unix))]
    async fn unix(_: &Path) -> Result<Self, Lost> {
        Err(Lost::Refused(Why::NoUnix))
    }

    async fn say(&mut self, text: &str) -> Result<(), Lost> {
        match self {
            Self::Socket(socket) => {
                socket.send(Frame::text(text)).await.map_err(client::Error::from).map_err(unreachable)
            }
            #[cfg(unix)]
            Self::Unix(lines) => lines.say(text).await.map_err(unreachable),
        }
    }

    /// The next message, from one who gives signs of life. A Unix socket has none: it ends with its other side.
    async fn alive(&mut self) -> Result<Option<String>, Lost> {
        if let Self::Socket(_) = self {
            return timeout(SILENCE, self.next()).await.unwrap_or(Err(Lost::Unreachable(Why::Lifeless)));
        }
        self.next().await
    }

    /// The next message; nothing at the end. A future that is dropped before it is done loses nothing.
    async fn next(&mut self) -> Result<Option<String>, Lost> {
        match self {
            Self::Socket(socket) => match socket.next().await {
                Some(Ok(Frame::Text(text))) => Ok(Some(text.as_str().to_owned())),
                Some(Ok(Frame::Close(_))) | None => Ok(None),
                // An empty word shows that somebody is there; a pong is sent by itself.
                Some(Ok(_)) => Ok(Some(String::new())),
                Some(Err(error)) => Err(unreachable(client::Error::from(error))),
            },
            #[cfg(unix)]
            Self::Unix(lines) => lines.next().await.map_err(unreachable),
        }
    }
}

fn unreachable(error: impl Into<Why>) -> Lost {
    Lost::Unreachable(error.into())
}

#[cfg(unix)]
mod unix {
    use std::path::Path;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::UnixStream;

    use super::{LONGEST_BLOCK, Why};

    pub(super) struct Lines {
        stream: UnixStream,
        bytes: Vec<u8>,
    }

    impl Lines {
        pub(super) async fn open(path: &Path) -> Result<Self, Why> {
            Ok(Self { stream: UnixStream::connect(path).await?, bytes: Vec::new() })
        }

        pub(super) async fn say(&mut self, text: &str) -> Result<(), Why> {
            Ok(self.stream.write_all(format!("{text}\n").as_bytes()).await?)
        }

        pub(super) async fn next(&mut self) -> Result<Option<String>, Why> {
            loop {
                if let Some(end) = self.bytes.iter().position(|byte| *byte == b'\n') {
                    let line: Vec<u8> = self.bytes.drain(..=end).collect();
                    return Ok(Some(String::from_utf8_lossy(&line).trim_end().to_owned()));
                }
                if self.bytes.len() > LONGEST_BLOCK {
                    return Err(Why::TooLong);
                }
                self.bytes.reserve(16 * 1024);
                if self.stream.read_buf(&mut self.bytes).await? == 0 {
                    return Ok(None);
                }
            }
        }
    }
}
