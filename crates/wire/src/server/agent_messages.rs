//! The queue of replies and notices for an agent connection, in the order in which the hub sends them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use hub::command::{AgentNotice, HubReply, RequestId};

/// A message from the hub to an agent connection.
#[derive(Debug)]
pub enum AgentMessage {
    /// The reply to the command that was submitted with this id.
    Reply(RequestId, HubReply),
    /// An unsolicited notice about a session.
    Notice(AgentNotice),
}

/// A queue that is shared by the hub and the connection.
#[derive(Clone, Debug)]
pub(super) struct AgentMessageQueue(Arc<Mutex<AgentMessageQueueState>>);

#[derive(Debug)]
struct AgentMessageQueueState {
    messages: VecDeque<AgentMessage>,
    /// Maximum number of queued messages.
    capacity: usize,
    is_open: bool,
    waker: Option<Waker>,
}

impl AgentMessageQueue {
    pub(super) fn new(capacity: usize) -> Self {
        Self(Arc::new(Mutex::new(AgentMessageQueueState {
            messages: VecDeque::new(),
            capacity,
            is_open: true,
            waker: None,
        })))
    }

    /// Appends a message and wakes the waiting task. If the queue is full, closes the queue and returns `false`.
    pub(super) fn push_and_wake(&self, message: AgentMessage) -> bool {
        let mut queue = self.lock();
        let was_accepted = queue.push(message);
        let waker = queue.waker.take();
        drop(queue);
        if let Some(waker) = waker {
            waker.wake();
        }
        was_accepted
    }

    /// Appends a message without waking a task, for a caller that takes it itself after the turn. If the queue is full, closes
    /// the queue and returns `false`.
    pub(super) fn push_silently(&self, message: AgentMessage) -> bool {
        self.lock().push(message)
    }

    /// Takes the next message, if there is one.
    pub(super) fn pop(&self) -> Option<AgentMessage> {
        self.lock().messages.pop_front()
    }

    /// Takes the next message, or registers the task to be woken when there is one. Returns `Ready(None)` when the queue is
    /// closed and empty.
    pub(super) fn poll_pop(&self, context: &mut Context<'_>) -> Poll<Option<AgentMessage>> {
        let mut queue = self.lock();
        match queue.messages.pop_front() {
            Some(message) => Poll::Ready(Some(message)),
            None if !queue.is_open => Poll::Ready(None),
            None => {
                match &mut queue.waker {
                    Some(waker) => waker.clone_from(context.waker()),
                    none => *none = Some(context.waker().clone()),
                }
                Poll::Pending
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, AgentMessageQueueState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AgentMessageQueueState {
    fn push(&mut self, message: AgentMessage) -> bool {
        self.is_open &= self.messages.len() < self.capacity;
        if self.is_open {
            self.messages.push_back(message);
        }
        self.is_open
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;

    struct WakeCounter(AtomicUsize);

    impl Wake for WakeCounter {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn reply(number: u64) -> AgentMessage {
        AgentMessage::Reply(RequestId(number), HubReply::Done)
    }

    fn number(message: &Poll<Option<AgentMessage>>) -> Option<u64> {
        match message {
            Poll::Ready(Some(AgentMessage::Reply(RequestId(number), _))) => Some(*number),
            _ => None,
        }
    }

    #[test]
    fn messages_are_taken_in_order_and_push_silently_does_not_wake_the_task() {
        let counter = Arc::new(WakeCounter(AtomicUsize::new(0)));
        let waker = Waker::from(counter.clone());
        let mut context = Context::from_waker(&waker);
        let queue = AgentMessageQueue::new(8);
        assert!(queue.poll_pop(&mut context).is_pending());
        assert!(queue.push_silently(reply(1)));
        assert_eq!(counter.0.load(Ordering::Relaxed), 0);
        assert!(queue.push_and_wake(reply(2)));
        assert_eq!(counter.0.load(Ordering::Relaxed), 1);
        assert_eq!(number(&queue.poll_pop(&mut context)), Some(1));
        assert_eq!(number(&Poll::Ready(queue.pop())), Some(2));
    }

    #[test]
    fn a_full_queue_is_closed() {
        let queue = AgentMessageQueue::new(2);
        assert!(queue.push_and_wake(reply(1)) && queue.push_and_wake(reply(2)));
        assert!(!queue.push_and_wake(reply(3)));
        let mut context = Context::from_waker(Waker::noop());
        assert_eq!(number(&queue.poll_pop(&mut context)), Some(1));
        assert!(!queue.push_and_wake(reply(4)));
        assert_eq!(number(&queue.poll_pop(&mut context)), Some(2));
        assert!(matches!(queue.poll_pop(&mut context), Poll::Ready(None)));
    }
}
