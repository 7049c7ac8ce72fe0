//! Messages to the hub on the open connection of a message transport.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{mpsc, oneshot};

use super::ConnectionError;

/// Maximum number of messages that wait to be written.
const QUEUE_CAPACITY: usize = 16;

/// A message, and where to report whether it was written.
#[derive(Debug)]
pub(super) struct OutgoingMessage {
    pub(super) text: String,
    pub(super) outcome: oneshot::Sender<Result<(), ConnectionError>>,
}

/// The queue of the open connection, if there is one. All clones share the same queue.
#[derive(Clone, Debug, Default)]
pub(super) struct OutgoingSlot(Arc<Mutex<Option<mpsc::Sender<OutgoingMessage>>>>);

impl OutgoingSlot {
    /// Opens the queue. It is closed when the guard is dropped.
    pub(super) fn open(&self) -> (mpsc::Receiver<OutgoingMessage>, OutgoingGuard) {
        let (sender, queue) = mpsc::channel(QUEUE_CAPACITY);
        *self.lock() = Some(sender);
        (queue, OutgoingGuard(self.clone()))
    }

    /// Sends a message and waits until it is written.
    pub(super) async fn send(&self, text: &str) -> Result<(), ConnectionError> {
        let sender = self.lock().clone().ok_or(ConnectionError::NotConnected)?;
        let (outcome, written) = oneshot::channel();
        let message = OutgoingMessage { text: text.to_owned(), outcome };
        sender.send(message).await.map_err(|_| ConnectionError::NotConnected)?;
        written.await.unwrap_or(Err(ConnectionError::ConnectionReset))
    }

    /// Waits until the open connection has ended, if there is one.
    #[cfg(feature = "grpc")]
    pub(super) async fn closed(&self) {
        let sender = self.lock().clone();
        if let Some(sender) = sender {
            sender.closed().await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<mpsc::Sender<OutgoingMessage>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Closes the queue when it is dropped.
#[derive(Debug)]
pub(super) struct OutgoingGuard(OutgoingSlot);

impl Drop for OutgoingGuard {
    fn drop(&mut self) {
        *self.0.lock() = None;
    }
}
