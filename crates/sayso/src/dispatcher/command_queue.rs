//! The queue of commands to the dispatcher.

use std::sync::{Arc, Weak};

use aaep::SessionId;
use tokio::sync::{mpsc, oneshot};

use super::{OpenSession, SessionCommand, SpeakerKey};
use crate::error::{Error, LimitReached, UnreachableReason};
use crate::member::Document;
use crate::redact::CountingRedactor;
use crate::session_state::Intent;
use crate::transport::CallReply;

/// The sending side of the dispatcher's command queue.
#[derive(Clone)]
pub(crate) struct CommandQueue {
    /// Sends to the dispatcher's thread, which ends when the last sender is dropped.
    sender: mpsc::UnboundedSender<SessionCommand>,
    /// The dispatcher itself, if commands are handled on the caller's thread.
    inline: Option<Arc<dyn CommandHandler>>,
}

/// A dispatcher that handles commands on the caller's thread.
pub(crate) trait CommandHandler: Send + Sync {
    fn handle(&self, command: SessionCommand);
}

/// A queue handle for the dispatcher itself. It does not keep the dispatcher running.
#[derive(Clone)]
pub(crate) struct WeakCommandQueue {
    sender: mpsc::WeakUnboundedSender<SessionCommand>,
    inline: Option<Weak<dyn CommandHandler>>,
}

impl CommandQueue {
    /// Creates a queue and its receiver.
    pub(crate) fn channel() -> (Self, mpsc::UnboundedReceiver<SessionCommand>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (Self { sender, inline: None }, receiver)
    }

    /// Adds a dispatcher that runs on the caller's thread.
    #[cfg(feature = "embedded")]
    pub(crate) fn with_inline(self, handler: Arc<dyn CommandHandler>) -> Self {
        Self { inline: Some(handler), ..self }
    }

    /// Sends a command. If the dispatcher has ended, the command's reply channel is closed.
    pub(crate) fn send(&self, command: SessionCommand) {
        match &self.inline {
            // `Flush` takes time, so the thread handles it. If the thread has ended, nothing is handled.
            Some(handler) if !matches!(command, SessionCommand::Flush(_)) && !self.sender.is_closed() => {
                handler.handle(command);
            }
            _ => drop(self.sender.send(command)),
        }
    }

    /// Submits an intent and waits for its result. Dropping the future does not cancel the intent.
    pub(crate) async fn send_intent(&self, session: &SpeakerKey, intent: Intent) -> Result<CallReply, Error> {
        check_size(intent.len())?;
        let (reply, result) = oneshot::channel();
        self.send(SessionCommand::Submit { session: session.clone(), intent, reply: Some(reply) });
        result.await.unwrap_or_else(|_| Err(dispatcher_gone()))
    }

    pub(crate) async fn start(
        &self,
        body: Document,
        redactor: CountingRedactor,
    ) -> Result<OpenSession, Error> {
        check_size(body.source().len())?;
        let (reply, result) = oneshot::channel();
        self.send(SessionCommand::Start { body, redactor, reply });
        result.await.unwrap_or_else(|_| Err(dispatcher_gone()))
    }

    pub(crate) async fn join(
        &self,
        session: SessionId,
        body: Document,
        redactor: CountingRedactor,
    ) -> Result<OpenSession, Error> {
        check_size(body.source().len())?;
        let (reply, result) = oneshot::channel();
        self.send(SessionCommand::Join { session, body, redactor, reply });
        result.await.unwrap_or_else(|_| Err(dispatcher_gone()))
    }

    pub(crate) async fn invite(&self, session: SessionId, body: Document) -> Result<CallReply, Error> {
        check_size(body.source().len())?;
        let (reply, result) = oneshot::channel();
        self.send(SessionCommand::Invite { session, body, reply });
        result.await.unwrap_or_else(|_| Err(dispatcher_gone()))
    }

    pub(crate) fn downgrade(&self) -> WeakCommandQueue {
        WeakCommandQueue { sender: self.sender.downgrade(), inline: self.inline.as_ref().map(Arc::downgrade) }
    }
}

impl WeakCommandQueue {
    /// Adds a dispatcher that runs on the caller's thread.
    #[cfg(feature = "embedded")]
    pub(crate) fn with_inline(self, handler: Weak<dyn CommandHandler>) -> Self {
        Self { inline: Some(handler), ..self }
    }

    pub(super) fn upgrade(&self) -> Option<CommandQueue> {
        let handler = match &self.inline {
            None => None,
            Some(handler) => Some(handler.upgrade()?),
        };
        Some(CommandQueue { sender: self.sender.upgrade()?, inline: handler })
    }
}

impl std::fmt::Debug for CommandQueue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CommandQueue")
    }
}

/// The maximum size of an event that is sent, in bytes. By default a hub accepts 1 MiB, plus 64 KiB for the envelope.
pub(crate) const MAX_EVENT_BYTES: usize = 1024 * 1024;

/// Rejects events above the maximum size.
fn check_size(bytes: usize) -> Result<(), Error> {
    if bytes <= MAX_EVENT_BYTES {
        return Ok(());
    }
    Err(Error::LimitReached(LimitReached::Bytes { bytes, max_bytes: MAX_EVENT_BYTES }))
}

pub(crate) fn dispatcher_gone() -> Error {
    Error::Unreachable(UnreachableReason::ThreadEnded)
}
