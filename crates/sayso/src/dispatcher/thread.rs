//! The loop of a dispatcher that has its own thread.

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
        tokio::select! {
            command = receiver.recv(), if is_open => match command {
                Some(command) => dispatcher.handle(command),
                None => is_open = false,
            },
            message = transport.receive(), if !dispatcher.is_disconnected() => match message {
                Some(message) => dispatcher.receive(message),
                None => dispatcher.disconnect(),
            },
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
