//! Delivery over a WebSocket: one connection per session, on which each message is acknowledged.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use asp::{AgentCard, SessionId};
use client::{HttpClient, Message, WebSocket};
use futures_util::{SinkExt, StreamExt};
use seal::json::{JsonValue, Tape, write_object};
use wire::unix_now;

use crate::dpop::ProofCreator;
use crate::peer_client::{DeliveryAnswer, PeerError};

/// The open connections, by session.
pub(crate) struct PeerSockets {
    /// Maximum size of a frame from a peer: a message and the JSON around it.
    max_frame_bytes: usize,
    idle: Mutex<HashMap<SessionId, WebSocket>>,
    nonces: Mutex<HashMap<String, String>>,
}

impl std::fmt::Debug for PeerSockets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PeerSockets")
    }
}

impl PeerSockets {
    pub(crate) fn new(max_frame_bytes: usize) -> Self {
        Self { max_frame_bytes, idle: Mutex::default(), nonces: Mutex::default() }
    }

    /// Delivers a message on the session's connection, and opens one if there is none.
    pub(crate) async fn deliver(
        &self,
        proofs: &ProofCreator,
        client: &HttpClient,
        peer: &AgentCard,
        session: SessionId,
        text: &str,
    ) -> Result<DeliveryAnswer, PeerError> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).remove(&session);
        let mut socket = match idle {
            Some(socket) => socket,
            None => self.open(proofs, client, peer, session).await?,
        };
        let frame = write_object(|writer| {
            writer.key("type").text("send");
            writer.key("envelope").raw(text);
        });
        socket
            .send(Message::Text(frame.into()))
            .await
            .map_err(|error| PeerError::Connection(error.into()))?;
        loop {
            let text = next_text(&mut socket).await?;
            let mut tape = Tape::default();
            let doc = tape.read(&text).map_err(|_| PeerError::InvalidAnswer(0))?;
            let root = doc.root();
            let answer = match member(&root, "type").as_deref() {
                Some("ack") => DeliveryAnswer::Stored,
                Some("error") => read_error(&root)?,
                // The peer also delivers its messages and states itself.
                _ => continue,
            };
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).insert(session, socket);
            return Ok(answer);
        }
    }

    /// Closes the connection of a session.
    pub(crate) fn close(&self, session: SessionId) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).remove(&session);
    }

    /// Opens and authenticates a connection. If the peer asks for another nonce, tries once more.
    async fn open(
        &self,
        proofs: &ProofCreator,
        client: &HttpClient,
        peer: &AgentCard,
        session: SessionId,
    ) -> Result<WebSocket, PeerError> {
        let base = peer.endpoint();
        let path = format!("/v1/asp/sessions/{session}/ws");
        let url = format!("{base}{path}");
        for _ in 0..2 {
            let nonce = self.nonces.lock().unwrap_or_else(PoisonError::into_inner).get(&base).cloned();
            let proof = proofs.create("GET", &url, nonce, unix_now()).ok_or(PeerError::NoProof)?;
            let mut socket = client.open_websocket(&path, None, self.max_frame_bytes).await?;
            let auth = write_object(|writer| {
                writer.text_members([("type", "auth"), ("token", proofs.token()), ("dpopProof", &proof)]);
                writer.key("lastSequence").integer(i64::MAX >> 11);
            });
            socket
                .send(Message::Text(auth.into()))
                .await
                .map_err(|error| PeerError::Connection(error.into()))?;
            let text = next_text(&mut socket).await?;
            let mut tape = Tape::default();
            let doc = tape.read(&text).map_err(|_| PeerError::InvalidAnswer(0))?;
            let root = doc.root();
            if member(&root, "type").as_deref() == Some("auth_ok") {
                return Ok(socket);
            }
            if let Some(nonce) = member(&root, "nonce") {
                self.nonces.lock().unwrap_or_else(PoisonError::into_inner).insert(base.clone(), nonce);
            }
        }
        Err(PeerError::InvalidAnswer(401))
    }
}

fn read_error(root: &JsonValue<'_>) -> Result<DeliveryAnswer, PeerError> {
    if let Some(reject) = member(root, "reject") {
        return Ok(DeliveryAnswer::Refused { reject });
    }
    if let Some(millis) = root.member("retryAfterMs").and_then(|value| value.as_number()?.as_i64()) {
        return Err(PeerError::Busy(Some(Duration::from_millis(u64::try_from(millis).unwrap_or(0)))));
    }
    Ok(DeliveryAnswer::Rejected {
        code: member(root, "code").unwrap_or_default(),
        reason: member(root, "message").unwrap_or_default(),
        is_final: true,
    })
}

fn member(value: &JsonValue<'_>, name: &str) -> Option<String> {
    Some(value.member(name)?.text()?.into_owned())
}

async fn next_text(socket: &mut WebSocket) -> Result<String, PeerError> {
    loop {
        match socket.next().await {
            Some(Ok(Message::Text(text))) => return Ok(text.as_str().to_owned()),
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
            Some(Err(error)) => return Err(PeerError::Connection(error.into())),
            _ => return Err(PeerError::InvalidAnswer(0)),
        }
    }
}
