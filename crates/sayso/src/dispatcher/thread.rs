//! The loop of a dispatcher that has its own thread.

use std::time::Instant;

use tokio::sync::mpsc;

use super::sessions::PendingReply;
use super::{Dispatcher, SessionCommand};
use crate::transport::Transport;

/// Runs until no more commands can arrive and everything is sent.
pub(crate) async fn run(
    mut dispatcher: Dispatcher,
    mut transport: impl Transport,
    mut receiver: mpsc::UnboundedReceiver<SessionCommand>,
) {
    let mut is_open = true;
    while is_open || dispatcher.has_pending_calls() {
        let deadline = dispatcher.next_progress_deadline();
        tokio::select! {
            command = receiver.recv(), if is_open => match command {
                Some(command) => dispatcher.handle(command),
                None => is_open = false,
            },
            message = transport.receive(), if !dispatcher.is_disconnected() => match message {
                Some(message) => dispatcher.receive(message),
                None => dispatcher.disconnect(),
            },
            () = sleep_until(deadline) => dispatcher.send_due_progress(Instant::now()),
        }
        dispatcher.send_outgoing(&mut transport);
        dispatcher.take_replies().for_each(PendingReply::deliver);
        if dispatcher.has_completed_flush() {
            transport.drain().await;
            dispatcher.notify_flushed();
        }
    }
    transport.drain().await;
}

/// Waits until a time, or forever.
pub(super) async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
        None => std::future::pending().await,
    }
}
