//! A dispatcher that runs on the caller's thread. The caller runs the dispatcher and the hub's turn itself, so the reply is ready when
//! the call returns. A background thread receives what the hub sends on its own, and drains the transport at the end.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Context;
use std::time::Instant;

use tokio::sync::{Notify, mpsc};

use super::command_queue::{CommandHandler, WeakCommandQueue};
use super::sessions::PendingReply;
use super::thread::sleep_until;
use super::{Dispatcher, SessionCommand};
use crate::transport::embedded::EmbeddedTransport;

/// A dispatcher for a hub that replies synchronously.
pub(crate) struct InlineDispatcher {
    state: Mutex<InlineState>,
    /// Wakes the background thread when a progress update is held, so that it sends the update in time.
    deadline_changed: Notify,
}

struct InlineState {
    dispatcher: Dispatcher,
    transport: EmbeddedTransport,
}

impl InlineDispatcher {
    pub(crate) fn new(transport: EmbeddedTransport, commands: WeakCommandQueue) -> Arc<Self> {
        Arc::new_cyclic(|this: &Weak<Self>| {
            let dispatcher = Dispatcher::new(commands.with_inline(this.clone()));
            let state = Mutex::new(InlineState { dispatcher, transport });
            Self { state, deadline_changed: Notify::new() }
        })
    }

    /// Runs until no more commands can arrive and everything is sent.
    pub(crate) async fn run(self: Arc<Self>, mut receiver: mpsc::UnboundedReceiver<SessionCommand>) {
        let (mut is_open, mut is_disconnected) = (true, false);
        while is_open || self.lock().dispatcher.has_pending_calls() {
            let deadline = self.lock().dispatcher.next_progress_deadline();
            tokio::select! {
                command = receiver.recv(), if is_open => match command {
                    Some(command) => self.handle(command),
                    None => is_open = false,
                },
                disconnected = self.receive(), if !is_disconnected => is_disconnected = disconnected,
                () = self.deadline_changed.notified() => {}
                () = sleep_until(deadline) => {
                    self.with_dispatcher(|dispatcher, _| dispatcher.send_due_progress(Instant::now()));
                }
            }
            let has_completed_flush = self.lock().dispatcher.has_completed_flush();
            if has_completed_flush {
                self.drain().await;
                self.lock().dispatcher.notify_flushed();
            }
        }
        self.drain().await;
    }

    /// Receives what the hub sends on its own. Returns whether the hub is disconnected.
    async fn receive(&self) -> bool {
        let poll = |context: &mut Context<'_>| {
            self.with_dispatcher(|dispatcher, transport| {
                transport.poll_receive(context).map(|message| match message {
                    Some(message) => dispatcher.receive(message),
                    None => dispatcher.disconnect(),
                })
            })
        };
        std::future::poll_fn(poll).await;
        self.lock().dispatcher.is_disconnected()
    }

    /// Runs a function on the dispatcher, then sends calls and receives the hub's messages until there are no more.
    fn with_dispatcher<R>(&self, work: impl FnOnce(&mut Dispatcher, &mut EmbeddedTransport) -> R) -> R {
        let mut state = self.lock();
        let InlineState { dispatcher, transport } = &mut *state;
        let deadline = dispatcher.next_progress_deadline();
        let result = work(dispatcher, transport);
        let is_deadline_earlier = match (deadline, dispatcher.next_progress_deadline()) {
            (Some(old), Some(new)) => new < old,
            (None, new) => new.is_some(),
            (Some(_), None) => false,
        };
        if is_deadline_earlier {
            self.deadline_changed.notify_one();
        }
        loop {
            dispatcher.send_outgoing(transport);
            match transport.try_receive() {
                Some(message) => dispatcher.receive(message),
                None => break,
            }
        }
        let replies = dispatcher.take_replies();
        drop(state);
        replies.for_each(PendingReply::deliver);
        result
    }

    async fn drain(&self) {
        let drain = self.lock().transport.shutdown_future();
        drain.await;
    }

    /// Locks the state. A poisoned lock is ignored, because the panic concerned only the caller's own command.
    fn lock(&self) -> MutexGuard<'_, InlineState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CommandHandler for InlineDispatcher {
    fn handle(&self, command: SessionCommand) {
        self.with_dispatcher(|dispatcher, _| dispatcher.handle(command));
    }
}
