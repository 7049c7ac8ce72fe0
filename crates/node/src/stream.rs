//! The messages of a session as they arrive: server-sent events with resumption, and a WebSocket (digest 14.4).
//!
//! A peer sees only settled messages, because a message that is not settled may still be rolled back.

use std::sync::Arc;
use std::time::Duration;

use asp::message::Authenticator;
use asp::state_machine::State;
use asp::{AgentCard, SessionId};
use futures_util::{SinkExt, StreamExt};
use seal::Timestamp;
use seal::json::{JsonWriter, Tape, write_object};
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::{Error, Message};
use wire::{ServiceWebSocket, close_websocket, unix_now};

use crate::NodeError;
use crate::dpop::ProofError;
use crate::node::Node;
use crate::receive::ReceiveReply;
use crate::session::SessionHandle;

/// Number of events that wait for a slow reader before the stream waits for it.
const QUEUED_EVENTS: usize = 16;
/// How long a client has to authenticate on a WebSocket.
const AUTH_TIMEOUT: Duration = Duration::from_secs(10);
/// Interval between heartbeats on a WebSocket.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(15);
/// How long a WebSocket stays open after the end of its session, so that the peer can repeat a message whose acknowledgement
/// was lost.
const END_DELAY: Duration = Duration::from_secs(3);
/// How long writing one frame may take.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum number of frames in a row that are malformed, not expected or beyond the sender's rate. After one more, the
/// connection is closed. A stored message ends the row.
const MAX_FAULTY_FRAMES: u32 = 32;
/// The close code after failed authentication (digest 14.4).
const CLOSE_UNAUTHENTICATED: u16 = 4001;
/// The close code at the end of the session.
const CLOSE_NORMAL: u16 = 1000;
/// The close code when the node stops.
const CLOSE_GOING_AWAY: u16 = 1001;
/// The close code after a frame that is not text.
const CLOSE_UNSUPPORTED_DATA: u16 = 1003;
/// The close code of a peer that sends too much or is no longer accepted.
const CLOSE_POLICY: u16 = 1008;
/// The close code after a frame that is too large.
const CLOSE_TOO_LARGE: u16 = 1009;
/// The close code if the node cannot read the session.
const CLOSE_INTERNAL_ERROR: u16 = 1011;

/// New messages and states of a session.
struct StreamUpdate {
    messages: Vec<String>,
    state: State,
    /// Whether no message will follow.
    is_complete: bool,
}

impl Node {
    /// Starts a stream of server-sent events with the messages after this position in the chain.
    pub(crate) fn stream_events(
        self: &Arc<Self>,
        session: SessionId,
        after: usize,
    ) -> mpsc::Receiver<Vec<u8>> {
        let (sender, receiver) = mpsc::channel(QUEUED_EVENTS);
        let node = self.clone();
        tokio::spawn(async move {
            let _ = node.write_events(session, after, &sender).await;
        });
        receiver
    }

    async fn write_events(
        self: &Arc<Self>,
        session: SessionId,
        mut position: usize,
        sender: &mpsc::Sender<Vec<u8>>,
    ) -> Result<(), NodeError> {
        let handle = self.session(session).await?;
        let mut changes = handle.subscribe();
        let mut last_state = None;
        let mut stopping = std::pin::pin!(self.stopped());
        loop {
            changes.mark_unchanged();
            if !self.accepts(&handle.info.peer) {
                return Ok(());
            }
            let news = self.news(&handle, position).await?;
            for message in &news.messages {
                position += 1;
                let event = format!("event: message\nid: {position}\ndata: {message}\n\n");
                if sender.send(event.into_bytes()).await.is_err() {
                    return Ok(());
                }
            }
            if last_state != Some(news.state) {
                let data = session_state(news.state, last_state);
                let event = format!("event: session_state\ndata: {data}\n\n");
                if sender.send(event.into_bytes()).await.is_err() {
                    return Ok(());
                }
                last_state = Some(news.state);
            }
            if news.is_complete && news.messages.is_empty() {
                return Ok(());
            }
            if !news.messages.is_empty() {
                continue;
            }
            tokio::select! {
                changed = changes.changed() => if changed.is_err() { return Ok(()) },
                () = sender.closed() => return Ok(()),
                () = &mut stopping => return Ok(()),
            }
        }
    }

    /// Returns whether the card of this peer is pinned and not revoked. A reload of the policy can change that.
    fn accepts(&self, peer: &AgentCard) -> bool {
        self.peers().card(peer.agent_id()).is_some()
    }

    /// Returns the settled messages after a position, at most a page, and the state.
    async fn news(&self, handle: &SessionHandle, position: usize) -> Result<StreamUpdate, NodeError> {
        let state = self.lock(handle).await?;
        let settled = state.settled_count();
        let limit = self.config.limits.page_messages.min(settled.saturating_sub(position));
        let transcript = state.participant.record().map(asp::SessionRecord::transcript);
        let messages = transcript.into_iter().flat_map(asp::Transcript::messages);
        Ok(StreamUpdate {
            messages: self
                .config
                .limits
                .page(messages.skip(position).take(limit))
                .map(str::to_owned)
                .collect(),
            state: state.state(),
            is_complete: state.state().is_terminal() && !state.has_undelivered(),
        })
    }

    /// Runs a peer's WebSocket until it ends.
    pub(crate) async fn run_socket(
        self: Arc<Self>,
        session: SessionId,
        url: String,
        mut socket: ServiceWebSocket,
    ) {
        let authenticated =
            tokio::time::timeout(AUTH_TIMEOUT, self.authenticate_socket(session, &url, &mut socket));
        let (peer, position) = match authenticated.await {
            Ok(Ok(authenticated)) => authenticated,
            Ok(Err(frame)) => {
                let _ = write(&mut socket, frame).await;
                return close_websocket(socket, CLOSE_UNAUTHENTICATED, "authentication failed").await;
            }
            Err(_) => {
                return close_websocket(socket, CLOSE_UNAUTHENTICATED, "authentication timed out").await;
            }
        };
        let (code, reason) = self.serve_socket(session, &peer, position, &mut socket).await;
        close_websocket(socket, code, reason).await;
    }

    /// Reads the `auth` frame. Returns the peer and the position after which it wants messages, or the error frame.
    async fn authenticate_socket(
        &self,
        session: SessionId,
        url: &str,
        socket: &mut ServiceWebSocket,
    ) -> Result<(Arc<AgentCard>, usize), String> {
        let refuse = |code: &str, message: &str| self.auth_error(code, message);
        let ReceivedFrame::Text(text) = read(socket).await else {
            return Err(refuse("unauthorized", "no auth frame"));
        };
        let mut tape = Tape::default();
        let doc = tape.read(&text).map_err(|_| refuse("schema_unsupported", "the frame is not JSON"))?;
        let root = doc.root();
        let member = |name: &str| root.member(name).and_then(|value| value.text());
        if member("type").as_deref() != Some("auth") {
            return Err(refuse("unauthorized", "the first frame must have the type auth"));
        }
        let token = member("token").unwrap_or_default();
        let card = self.peers().card_by_token(&token);
        let card = card.ok_or_else(|| refuse("unauthorized", "the card of this agent is not pinned"))?;
        let proof = member("dpopProof").unwrap_or_default();
        self.verifier.verify(&proof, card.dpop_key(), &token, "GET", url, unix_now()).map_err(|error| {
            match error {
                ProofError::UseNonce => refuse("use_dpop_nonce", &error.to_string()),
                _ => refuse("unauthorized", &error.to_string()),
            }
        })?;
        let last = root.member("lastSequence").and_then(|value| value.as_number()?.as_i64()).unwrap_or(0);
        let handle =
            self.session(session).await.map_err(|_| refuse("unauthorized", "there is no such session"))?;
        if handle.info.peer.agent_id() != card.agent_id() {
            return Err(refuse("unauthorized", "there is no such session"));
        }
        let state =
            self.lock(&handle).await.map_err(|_| refuse("capacity_unavailable", "try again later"))?;
        let accepted = write_object(|writer| {
            writer.key("type").text("auth_ok");
            writer.key("sessionId").text(&session.to_string());
            writer.key("state").text(state.state().as_str());
            writer.key("participants").array(|writer| {
                writer.text(handle.info.own.agent_id().as_str());
                writer.text(handle.info.peer.agent_id().as_str());
            });
            writer.key("lastSequence").integer(i64::try_from(state.settled_count()).unwrap_or(i64::MAX));
        });
        drop(state);
        write(socket, accepted).await.map_err(|()| refuse("unauthorized", "the connection is lost"))?;
        Ok((card, usize::try_from(last).unwrap_or(0)))
    }

    fn auth_error(&self, code: &str, message: &str) -> String {
        error(code, message, |writer| writer.key("nonce").text(&self.verifier.nonce(unix_now())))
    }

    async fn serve_socket(
        self: &Arc<Self>,
        session: SessionId,
        peer: &Arc<AgentCard>,
        mut position: usize,
        socket: &mut ServiceWebSocket,
    ) -> (u16, &'static str) {
        let Ok(handle) = self.session(session).await else { return (CLOSE_POLICY, "no such session") };
        let mut changes = handle.subscribe();
        let mut heartbeat = tokio::time::interval(HEARTBEAT_INTERVAL);
        let mut stopping = std::pin::pin!(self.stopped());
        let mut end = std::pin::pin!(tokio::time::sleep(END_DELAY));
        let mut has_ended = false;
        let mut last_state = handle.summary().state;
        let (mut faulty_frames, mut unanswered_heartbeats) = (0, 0_u32);
        loop {
            changes.mark_unchanged();
            if !self.accepts(peer) {
                return (CLOSE_POLICY, "the card of this agent is no longer accepted");
            }
            let Ok(news) = self.news(&handle, position).await else {
                return (CLOSE_INTERNAL_ERROR, "the session cannot be read");
            };
            for message in &news.messages {
                position += 1;
                // The peer does not need its own messages.
                if is_from(message, &handle.info.own) {
                    let frame = write_object(|writer| {
                        writer.key("type").text("message");
                        writer.key("envelope").raw(message);
                    });
                    if write(socket, frame).await.is_err() {
                        return (CLOSE_NORMAL, "");
                    }
                }
            }
            if news.state != last_state {
                let frame = session_state(news.state, Some(last_state));
                if write(socket, frame).await.is_err() {
                    return (CLOSE_NORMAL, "");
                }
                last_state = news.state;
            }
            if !news.messages.is_empty() {
                continue;
            }
            if news.is_complete && !has_ended {
                has_ended = true;
                end.as_mut().reset(tokio::time::Instant::now() + END_DELAY);
            }
            let frame = tokio::select! {
                changed = changes.changed() => {
                    if changed.is_err() { return (CLOSE_NORMAL, "") }
                    continue;
                }
                _ = heartbeat.tick() => {
                    let now = Timestamp::from_unix_millis(unix_now()).map(|at| at.to_string()).unwrap_or_default();
                    let frame = write_object(|writer| {
                        writer.text_members([("type", "heartbeat"), ("timestamp", &*now), ("state", news.state.as_str())]);
                    });
                    if write(socket, frame).await.is_err() { return (CLOSE_NORMAL, "") }
                    unanswered_heartbeats = unanswered_heartbeats.saturating_add(1);
                    continue;
                }
                frame = read(socket) => frame,
                () = &mut end, if has_ended => return (CLOSE_NORMAL, "the session has ended"),
                () = &mut stopping => return (CLOSE_GOING_AWAY, "the node is stopping"),
            };
            let text = match frame {
                ReceivedFrame::Text(text) => text,
                ReceivedFrame::NotText => return (CLOSE_UNSUPPORTED_DATA, "frames must be text"),
                ReceivedFrame::TooLarge => return (CLOSE_TOO_LARGE, "the frame is too large"),
                ReceivedFrame::End => return (CLOSE_NORMAL, ""),
            };
            let reply = match self.handle_frame(session, peer, &text).await {
                FrameReply::Pong => {
                    if unanswered_heartbeats > 0 {
                        unanswered_heartbeats -= 1;
                        continue;
                    }
                    faulty_frames += 1;
                    None
                }
                FrameReply::Stored(ack) => {
                    faulty_frames = 0;
                    Some(ack)
                }
                FrameReply::Refused(error) => Some(error),
                FrameReply::Faulty(error) => {
                    faulty_frames += 1;
                    Some(error)
                }
            };
            if let Some(reply) = reply
                && write(socket, reply).await.is_err()
            {
                return (CLOSE_NORMAL, "");
            }
            if faulty_frames > MAX_FAULTY_FRAMES {
                return (CLOSE_POLICY, "too many faulty frames");
            }
        }
    }

    /// Handles a frame from the peer, and returns the answer.
    async fn handle_frame(
        self: &Arc<Self>,
        session: SessionId,
        peer: &Arc<AgentCard>,
        text: &str,
    ) -> FrameReply {
        let mut tape = Tape::default();
        let Ok(doc) = tape.read(text) else {
            return FrameReply::Faulty(error("schema_unsupported", "the frame is not JSON", |_| {}));
        };
        let kind = doc.root().member("type").and_then(|kind| kind.text());
        let envelope = match kind.as_deref() {
            Some("send") => doc.root().member("envelope").map(|envelope| envelope.source().to_owned()),
            Some("pong") => return FrameReply::Pong,
            _ => None,
        };
        let Some(envelope) = envelope else {
            let reason = "the frame must be send with an envelope, or pong";
            return FrameReply::Faulty(error("schema_unsupported", reason, |_| {}));
        };
        let admitted = {
            let (mut peers, now) = (self.peers(), unix_now());
            let admitted = peers.admit(peer.agent_id(), false, now);
            admitted.and_then(|()| peers.admit_bytes(peer.agent_id(), envelope.len(), now))
        };
        if let Err(limited) = admitted {
            self.counters.rate_limited.add(1);
            return FrameReply::Faulty(error("capacity_unavailable", &limited.to_string(), |writer| {
                let millis = i64::try_from(limited.retry_after_ms).unwrap_or(i64::MAX);
                writer.key("retryAfterMs").integer(millis);
            }));
        }
        match self.receive(peer.clone(), Some(session), &envelope).await {
            Ok(ReceiveReply::Stored { message_id, sequence_number, .. }) => {
                FrameReply::Stored(write_object(|writer| {
                    writer.key("type").text("ack");
                    writer.key("messageId").text(&message_id.to_string());
                    writer.key("sequenceNumber").integer(i64::try_from(sequence_number).unwrap_or(i64::MAX));
                }))
            }
            Ok(ReceiveReply::Refused { refusal, reject }) => {
                FrameReply::Refused(error(refusal.code.as_str(), &refusal.reason, |writer| {
                    if let Some(reject) = &reject {
                        writer.key("reject").text(reject);
                    }
                }))
            }
            Ok(ReceiveReply::Dropped(reason)) => FrameReply::Faulty(error("unauthorized", &reason, |_| {})),
            Err(failure @ NodeError::CatchingUp { retry_after, .. }) => {
                FrameReply::Refused(error("capacity_unavailable", &failure.to_string(), |writer| {
                    let millis = i64::try_from(retry_after.as_millis()).unwrap_or(i64::MAX);
                    writer.key("retryAfterMs").integer(millis);
                }))
            }
            Err(failure @ (NodeError::Storage(_) | NodeError::Stopping | NodeError::LimitReached(_))) => {
                FrameReply::Refused(error("capacity_unavailable", &failure.to_string(), |writer| {
                    writer.key("retryAfterMs").integer(1000);
                }))
            }
            Err(failure) => FrameReply::Refused(error("unspecified", &failure.to_string(), |_| {})),
        }
    }
}

/// The answer to a frame.
enum FrameReply {
    /// The frame needs no answer.
    Pong,
    /// The message is stored.
    Stored(String),
    /// The message is refused, and an honest peer can be the sender.
    Refused(String),
    /// The frame is malformed, its message is not authentic, or the sender exceeds its rate.
    Faulty(String),
}

/// Writes an `error` frame.
fn error(code: &str, message: &str, add_members: impl FnOnce(&mut JsonWriter)) -> String {
    write_object(|writer| {
        writer.text_members([("type", "error"), ("code", code), ("message", message)]);
        add_members(writer);
    })
}

fn session_state(state: State, previous: Option<State>) -> String {
    let now = Timestamp::from_unix_millis(unix_now()).map(|at| at.to_string()).unwrap_or_default();
    write_object(|writer| {
        writer.text_members([("type", "session_state"), ("state", state.as_str()), ("timestamp", &*now)]);
        if let Some(previous) = previous {
            writer.key("previous").text(previous.as_str());
        }
    })
}

fn is_from(message: &str, card: &AgentCard) -> bool {
    Authenticator::default()
        .parse_unauthenticated(message)
        .is_ok_and(|envelope| envelope.sender.agent_id == *card.agent_id())
}

/// The next frame from a peer.
enum ReceivedFrame {
    Text(String),
    NotText,
    TooLarge,
    /// The connection has ended.
    End,
}

/// Reads the next frame.
async fn read(socket: &mut ServiceWebSocket) -> ReceivedFrame {
    loop {
        match socket.next().await {
            Some(Ok(Message::Text(text))) => return ReceivedFrame::Text(text.as_str().to_owned()),
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
            Some(Ok(Message::Binary(_))) => return ReceivedFrame::NotText,
            Some(Err(Error::Capacity(_))) => return ReceivedFrame::TooLarge,
            _ => return ReceivedFrame::End,
        }
    }
}

async fn write(socket: &mut ServiceWebSocket, text: String) -> Result<(), ()> {
    let sent = tokio::time::timeout(WRITE_TIMEOUT, socket.send(Message::Text(text.into()))).await;
    if matches!(sent, Ok(Ok(()))) { Ok(()) } else { Err(()) }
}
