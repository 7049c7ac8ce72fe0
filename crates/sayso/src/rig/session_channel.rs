//! Channels from tools and hooks, which rig runs in any task, to the session that reports them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use rig_core::tool::ContextValue;
use tokio::sync::{mpsc, oneshot};

use crate::bridge::{AnswerSender, Denial};
use crate::consent::Action;
use crate::error::Error;
use crate::session::Session;

/// The id of the session, as rig passes it to tools.
#[derive(rig_core::serde::Serialize, rig_core::serde::Deserialize)]
#[serde(crate = "rig_core::serde")]
pub(super) struct SessionContext(pub(super) String);

impl ContextValue for SessionContext {
    const KEY: &'static str = "sayso.session";
}

/// The channels of all active runs, by session id.
#[derive(Clone, Default)]
pub(super) struct SessionChannels(Arc<Mutex<HashMap<String, RequestSender>>>);

pub(super) type RequestSender = mpsc::UnboundedSender<SessionRequest>;

impl SessionChannels {
    pub(super) fn open(&self, session: &str) -> (SessionChannel, mpsc::UnboundedReceiver<SessionRequest>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        self.lock().insert(session.to_owned(), sender.clone());
        (SessionChannel { channels: self.clone(), session: session.to_owned(), sender }, receiver)
    }

    pub(super) fn get(&self, session: &str) -> Option<RequestSender> {
        self.lock().get(session).cloned()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, RequestSender>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The channel of one session. Dropping it removes it from the active sessions.
pub(super) struct SessionChannel {
    channels: SessionChannels,
    session: String,
    sender: RequestSender,
}

impl SessionChannel {
    pub(super) fn sender(&self) -> RequestSender {
        self.sender.clone()
    }
}

impl Drop for SessionChannel {
    fn drop(&mut self) {
        self.channels.lock().remove(&self.session);
    }
}

/// A request from a tool or a hook to the session.
pub(super) struct SessionRequest {
    kind: RequestKind,
    /// Sends the answer: whether the request is allowed.
    reply: AnswerSender<()>,
    /// Receives how the tool ended. If the sender is dropped, the call is abandoned.
    ended: oneshot::Receiver<ToolEnd>,
}

pub(super) enum RequestKind {
    /// Ask for consent, then announce the call.
    Ask(Box<Action>),
    /// Announce the call.
    Announce(String),
    /// Report a text.
    Note(String),
}

pub(super) enum ToolEnd {
    Done,
    Failed(String),
    TimedOut,
}

/// Sends a request and waits until it is allowed. The returned sender must report how the tool ended.
pub(super) async fn send_request(
    sender: &RequestSender,
    kind: RequestKind,
) -> Result<oneshot::Sender<ToolEnd>, Denial> {
    let (reply, answer) = AnswerSender::channel();
    let (end, ended) = oneshot::channel();
    sender.send(SessionRequest { kind, reply, ended }).map_err(|_| Denial::Abandoned)?;
    answer.await?;
    Ok(end)
}

impl SessionRequest {
    /// Processes the request until the tool has ended.
    pub(super) async fn process(mut self, session: &Session) -> Result<(), Error> {
        let opened = match self.kind {
            RequestKind::Note(text) => {
                let result = session.think(text).await;
                self.reply.send(result.clone().map_err(Denial::Error));
                return result;
            }
            RequestKind::Announce(tool) => session.tool(tool).start().await.map(Ok),
            RequestKind::Ask(action) => tokio::select! {
                opened = session.ask_and_start(*action) => opened,
                // Nobody would make the call, so the question is withdrawn.
                () = self.reply.closed() => return Ok(()),
            },
        };
        let tool = match opened.map_err(Denial::Error).and_then(|opened| opened.map_err(Denial::Refused)) {
            Ok(tool) => tool,
            Err(denial) => {
                self.reply.send(Err(denial));
                return Ok(());
            }
        };
        // If nobody waits for the reply, the sender of `ended` is dropped too, and the call is reported as abandoned.
        self.reply.send(Ok(()));
        match self.ended.await {
            Ok(ToolEnd::Done) => tool.succeed_with_default_summary().await,
            Ok(ToolEnd::Failed(reason)) => tool.fail(reason).await,
            Ok(ToolEnd::TimedOut) => tool.time_out().await,
            Err(_) => {
                drop(tool);
                Ok(())
            }
        }
    }
}
