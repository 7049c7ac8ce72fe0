//! The dispatcher, which sends the commands of all sessions of a hub.
//!
//! Sessions send commands. Each session has at most one call in flight; the others wait in order. The dispatcher,
//! not the agent's futures, records what is open in a session, as soon as the hub has replied. It can therefore always end a session
//! correctly, even if the agent drops its futures.
//!
//! - `progress_merger`: merges quick progress updates.
//! - `sessions`: the dispatcher itself. Commands and hub messages go in, calls and replies come out.
//! - `thread`: runs the dispatcher on a thread of its own, for hubs that reply asynchronously.
//! - `inline`: runs the dispatcher on the caller's thread, for a hub in this process that replies synchronously.
//! - `command_queue`: sends commands to either.

mod command_queue;
#[cfg(feature = "embedded")]
mod inline;
mod progress_merger;
mod sessions;
mod thread;

use std::sync::Arc;
use std::time::Instant;

use aaep::SessionId;
use tokio::sync::{oneshot, watch};

#[cfg(feature = "client")]
pub(crate) use command_queue::dispatcher_gone;
pub(crate) use command_queue::{CommandQueue, MAX_EVENT_BYTES};
#[cfg(feature = "embedded")]
pub(crate) use inline::InlineDispatcher;
pub(crate) use progress_merger::ProgressMark;
pub(crate) use sessions::Dispatcher;
pub(crate) use thread::run;

use crate::abandon::AbandonReason;
use crate::error::{Error, StopReason};
use crate::member::Document;
use crate::redact::CountingRedactor;
use crate::session_state::{FinalEvent, Intent};
use crate::transport::CallReply;

/// The channel for the result of a command: the hub's reply or, for a question, its outcome.
pub(crate) type ReplySender = oneshot::Sender<Result<CallReply, Error>>;

type StartReplySender = oneshot::Sender<Result<OpenSession, Error>>;

/// Identifies a speaker: a session, and the producer that speaks in it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SpeakerKey {
    pub(crate) session: SessionId,
    /// The id of the producer; `None` for the main producer, which ends the session.
    pub(crate) producer: Option<Arc<str>>,
}

impl SpeakerKey {
    pub(crate) fn main(session: SessionId) -> Self {
        Self { session, producer: None }
    }
}

/// A command to the dispatcher.
pub(crate) enum SessionCommand {
    /// Starts a session.
    Start { body: Document, redactor: CountingRedactor, reply: StartReplySender },
    /// Joins a session that another agent started.
    Join { session: SessionId, body: Document, redactor: CountingRedactor, reply: StartReplySender },
    /// Invites another agent to a session.
    Invite { session: SessionId, body: Document, reply: ReplySender },
    /// Reports or asks something in a session.
    Submit { session: SpeakerKey, intent: Intent, reply: Option<ReplySender> },
    /// Withdraws the questions of a session whose answers nobody is waiting for.
    Withdraw { session: SpeakerKey },
    /// Waits until all earlier commands are done. The channel then receives a message.
    Flush(oneshot::Sender<()>),
}

/// A started session. Dropping it ends the session, or what one of its producers has left open.
pub(crate) struct OpenSession {
    pub(crate) key: SpeakerKey,
    pub(crate) stop: watch::Receiver<Option<StopReason>>,
    pub(crate) commands: CommandQueue,
    pub(crate) started_at: Instant,
    /// Whether the agent has ended the session or is about to.
    pub(crate) is_ended: bool,
}

impl Drop for OpenSession {
    fn drop(&mut self) {
        if self.is_ended {
            return;
        }
        let intent = if self.key.producer.is_some() { Intent::Leave } else { abandon_intent() };
        self.commands.send(SessionCommand::Submit { session: self.key.clone(), intent, reply: None });
    }
}

/// Withdraws a question when the caller stops waiting.
pub(crate) struct QuestionGuard<'s>(pub(crate) &'s OpenSession);

impl Drop for QuestionGuard<'_> {
    fn drop(&mut self) {
        self.0.commands.send(SessionCommand::Withdraw { session: self.0.key.clone() });
    }
}

/// Returns the intent that ends a session after its agent abandoned it.
fn abandon_intent() -> Intent {
    let reason = if std::thread::panicking() { AbandonReason::Panicked } else { AbandonReason::Dropped };
    Intent::End { final_event: FinalEvent::Abandoned(reason), open_tool_summary: ABANDONED_TOOL_SUMMARY }
}

/// The text for a tool call that the agent abandoned.
pub(crate) const ABANDONED_TOOL_SUMMARY: &str =
    "The agent did not wait for the tool to finish, so its outcome is unknown.";
