//! Paces input that does not come from a keyboard. A pipe may deliver all lines at the same time, but each line assumes that the
//! previous lines have already been handled.
//!
//! Therefore a line waits until the agent has finished the earlier requests or asked a question, and all announcements have been
//! printed. Input from a keyboard never waits.

use std::time::Duration;

use aaep::SessionId;
use listen::terminal::TerminalCommand;
use tokio::sync::{mpsc, oneshot, watch};

use super::activity::Activity;

/// How long to wait until everything that a session sent has been announced.
const ANNOUNCE_TIMEOUT: Duration = Duration::from_secs(20);

/// Forwards each input line after the previous lines have been handled.
pub(super) struct InputPacer {
    activity: watch::Receiver<Activity>,
    terminal_commands: mpsc::Sender<TerminalCommand>,
    /// Requested sessions whose end has not been announced yet.
    sessions: Vec<SessionId>,
    /// Whether questions are answered automatically, so that no line is an answer.
    is_auto_answered: bool,
}

impl InputPacer {
    pub(super) fn new(
        activity: watch::Receiver<Activity>,
        terminal_commands: mpsc::Sender<TerminalCommand>,
        is_auto_answered: bool,
    ) -> Self {
        Self { activity, terminal_commands, sessions: Vec::new(), is_auto_answered }
    }

    /// Adds a requested session.
    pub(super) fn track_session(&mut self, session: SessionId) {
        self.sessions.push(session);
    }

    /// Waits until the agent is idle and everything has been announced.
    pub(super) async fn wait_until_idle(&mut self) -> Option<()> {
        self.activity.wait_for(|activity| activity.running_sessions == 0).await.ok()?;
        // The listener may not have heard yet that the last question was withdrawn.
        for session in std::mem::take(&mut self.sessions) {
            let (sender, receiver) = oneshot::channel();
            let command = TerminalCommand::NotifyAfterSessionEnd(session, sender);
            self.terminal_commands.send(command).await.ok()?;
            let _ = tokio::time::timeout(ANNOUNCE_TIMEOUT, receiver).await;
        }
        Some(())
    }

    /// Waits until the line can be forwarded, forwards it, and waits until it has been processed. Returns `None` if the
    /// listener has ended.
    pub(super) async fn forward_line(&mut self, line: String, input: &mpsc::Sender<String>) -> Option<()> {
        self.wait_until_ready().await?;
        input.send(line).await.ok()?;
        self.flush(input).await
    }

    /// Waits until no session is running or every running session waits for an answer, and until everything has been
    /// announced.
    async fn wait_until_ready(&mut self) -> Option<()> {
        let is_auto_answered = self.is_auto_answered;
        self.activity
            .wait_for(|activity| {
                activity.running_sessions == if is_auto_answered { 0 } else { activity.open_questions }
            })
            .await
            .ok()?;
        self.wait_until_announced().await
    }

    /// Waits until everything that each session sent has been announced, up to its end or to an open question.
    async fn wait_until_announced(&mut self) -> Option<()> {
        for session in std::mem::take(&mut self.sessions) {
            let (sender, receiver) = oneshot::channel();
            self.terminal_commands
                .send(TerminalCommand::NotifyAfterSession(session.clone(), sender))
                .await
                .ok()?;
            // After the timeout, the session is no longer tracked, so that it does not block the others.
            if matches!(tokio::time::timeout(ANNOUNCE_TIMEOUT, receiver).await, Ok(Ok(false))) {
                self.sessions.push(session);
            }
        }
        Some(())
    }

    /// Waits until all forwarded lines have been processed. That is the case when the channel is empty and the listener has
    /// answered a command that was sent afterwards.
    pub(super) async fn flush(&self, input: &mpsc::Sender<String>) -> Option<()> {
        drop(input.reserve().await.ok()?);
        let (sender, receiver) = oneshot::channel();
        self.terminal_commands.send(TerminalCommand::NotifyProcessed(sender)).await.ok()?;
        receiver.await.ok()
    }
}
