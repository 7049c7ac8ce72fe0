//! The WebSocket that keeps the node's sessions with the hub alive.
//!
//! The hub ends a session whose agent is silent for some minutes, but a negotiation can be silent for hours. A session that an
//! open WebSocket follows stays open. The socket also reports why a session has ended.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use client::{Backoff, HttpClient, Message, WebSocket};
use futures_util::{SinkExt, StreamExt};
use seal::json::{JsonValue, Tape, write_object};
use tokio::sync::Notify;

/// Maximum size of a message from the hub, in bytes.
const MAX_MESSAGE_BYTES: usize = 1024 * 1024;
/// The delays between connection attempts.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(500), Duration::from_secs(30));
/// How long to wait for the reason why a session has ended.
const REASON_TIMEOUT: Duration = Duration::from_secs(2);

/// Follows sessions of the hub.
#[derive(Debug)]
pub(super) struct HubSocket {
    shared: Arc<SharedState>,
    task: Mutex<Option<tokio::task::AbortHandle>>,
}

#[derive(Debug)]
struct SharedState {
    http: HttpClient,
    sessions: Mutex<HashMap<String, FollowedSession>>,
    /// A session was added.
    added: Notify,
    /// A session has ended.
    ended: Notify,
}

#[derive(Debug, Default)]
struct FollowedSession {
    /// Whether the current connection follows it.
    is_sent: bool,
    /// Why it has ended, as in `session.stopped`.
    end_reason: Option<String>,
}

impl HubSocket {
    pub(super) fn new(http: HttpClient) -> Self {
        let shared =
            SharedState { http, sessions: Mutex::default(), added: Notify::new(), ended: Notify::new() };
        Self { shared: Arc::new(shared), task: Mutex::new(None) }
    }

    /// Keeps a session alive.
    pub(super) fn follow(&self, session: &str) {
        self.shared.sessions().entry(session.to_owned()).or_default();
        self.shared.added.notify_one();
        let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        if task.as_ref().is_none_or(tokio::task::AbortHandle::is_finished) {
            *task = Some(tokio::spawn(run(self.shared.clone())).abort_handle());
        }
    }

    /// Forgets a session.
    pub(super) fn unfollow(&self, session: &str) {
        self.shared.sessions().remove(session);
    }

    /// Returns why a session has ended, if the hub says so.
    pub(super) async fn end_reason(&self, session: &str) -> Option<String> {
        self.follow(session);
        let known = async {
            loop {
                let ended = self.shared.ended.notified();
                let reason =
                    self.shared.sessions().get(session).and_then(|session| session.end_reason.clone());
                if reason.is_some() {
                    return reason;
                }
                ended.await;
            }
        };
        tokio::time::timeout(REASON_TIMEOUT, known).await.ok().flatten()
    }
}

impl Drop for HubSocket {
    fn drop(&mut self) {
        if let Some(task) = self.task.get_mut().unwrap_or_else(PoisonError::into_inner) {
            task.abort();
        }
    }
}

impl SharedState {
    fn sessions(&self) -> MutexGuard<'_, HashMap<String, FollowedSession>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the calls that make the connection follow all sessions that it does not follow yet.
    fn take_calls(&self) -> Vec<Message> {
        let mut sessions = self.sessions();
        let new = sessions.iter_mut().filter(|(_, session)| !session.is_sent && session.end_reason.is_none());
        new.map(|(id, session)| {
            session.is_sent = true;
            Message::text(write_object(|writer| {
                writer.text_members([("jsonrpc", "2.0"), ("id", &**id), ("method", "session.follow")]);
                writer.key("params").object(|writer| writer.key("session_id").text(id));
            }))
        })
        .collect()
    }

    /// Handles a message from the hub.
    fn handle(&self, text: &str) {
        let mut tape = Tape::default();
        let Ok(doc) = tape.read(text) else { return };
        let root = doc.root();
        if !root.member("method").is_some_and(|method| method.is_text("session.stopped")) {
            return;
        }
        let text = |value: &JsonValue<'_>, name| Some(value.member(name)?.text()?.into_owned());
        let Some(params) = root.member("params") else { return };
        let (Some(id), Some(reason)) = (text(&params, "session_id"), text(&params, "reason")) else { return };
        if let Some(session) = self.sessions().get_mut(&id) {
            session.end_reason = Some(reason);
        }
        self.ended.notify_waiters();
    }
}

async fn run(shared: Arc<SharedState>) {
    let mut backoff = BACKOFF;
    loop {
        let opened = shared.http.open_websocket("/agent/v1/ws", Some("sayso.agent.v1"), MAX_MESSAGE_BYTES);
        match tokio::time::timeout(super::hub_client::ANSWER_TIMEOUT, opened).await {
            Ok(Ok(socket)) => {
                backoff = BACKOFF;
                shared.sessions().values_mut().for_each(|session| session.is_sent = false);
                serve(&shared, socket).await;
            }
            Ok(Err(error)) => {
                tracing::debug!(target: "sayso::log", kind = "asp.hub_socket_failed", %error);
            }
            Err(_) => {}
        }
        tokio::time::sleep(backoff.delay()).await;
        backoff.grow();
    }
}

/// Follows the sessions on one connection until it ends.
async fn serve(shared: &SharedState, mut socket: WebSocket) {
    loop {
        for call in shared.take_calls() {
            if socket.send(call).await.is_err() {
                return;
            }
        }
        tokio::select! {
            () = shared.added.notified() => {}
            message = socket.next() => match message {
                Some(Ok(Message::Text(text))) => shared.handle(&text),
                Some(Ok(_)) => {}
                _ => return,
            },
        }
    }
}
