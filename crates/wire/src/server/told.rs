//! What is told on a line, in the hub's own order, until it is taken.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use hub::command::{Notice, Reply, RequestId};

/// What is told on a line.
#[derive(Debug)]
pub enum Told {
    /// An answer, to what was asked under this name.
    Answer(RequestId, Reply),
    /// Something that nobody asked for.
    Notice(Notice),
}

/// Both ends of it: who tells, and who takes.
#[derive(Clone, Debug)]
pub(super) struct Untaken(Arc<Mutex<Queue>>);

#[derive(Debug)]
struct Queue {
    told: VecDeque<Told>,
    /// No more waits.
    most: usize,
    open: bool,
    waker: Option<Waker>,
}

impl Untaken {
    pub(super) fn new(most: usize) -> Self {
        Self(Arc::new(Mutex::new(Queue { told: VecDeque::new(), most, open: true, waker: None })))
    }

    /// Tells, and wakes who waits for it. One that does not take what it is told is told no more: `false`.
    pub(super) fn tell(&self, told: Told) -> bool {
        let mut queue = self.lock();
        let takes = queue.push(told);
        let waker = queue.waker.take();
        drop(queue);
        if let Some(waker) = waker {
            waker.wake();
        }
        takes
    }

    /// Tells somebody who will look by itself when the turn is over.
    pub(super) fn leave(&self, told: Told) -> bool {
        self.lock().push(told)
    }

    /// What is there.
    pub(super) fn take(&self) -> Option<Told> {
        self.lock().told.pop_front()
    }

    /// What is there, or comes next; `None` when nothing will be told any more.
    pub(super) fn poll(&self, context: &mut Context<'_>) -> Poll<Option<Told>> {
        let mut queue = self.lock();
        match queue.told.pop_front() {
            Some(told) => Poll::Ready(Some(told)),
            None if !queue.open => Poll::Ready(None),
            None => {
                match &mut queue.waker {
                    Some(waker) => waker.clone_from(context.waker()),
                    none => *none = Some(context.waker().clone()),
                }
                Poll::Pending
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    fn push(&mut self, told: Told) -> bool {
        self.open &= self.told.len() < self.most;
        if self.open {
            self.told.push_back(told);
        }
        self.open
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;

    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn answer(number: u64) -> Told {
        Told::Answer(RequestId(number), Reply::Done)
    }

    fn number(told: &Poll<Option<Told>>) -> Option<u64> {
        match told {
            Poll::Ready(Some(Told::Answer(RequestId(number), _))) => Some(*number),
            _ => None,
        }
    }

    #[test]
    fn it_is_taken_in_order_and_only_telling_wakes() {
        let count = Arc::new(Count(AtomicUsize::new(0)));
        let waker = Waker::from(count.clone());
        let mut context = Context::from_waker(&waker);
        let untaken = Untaken::new(8);
        assert!(untaken.poll(&mut context).is_pending());
        assert!(untaken.leave(answer(1)));
        assert_eq!(count.0.load(Ordering::Relaxed), 0);
        assert!(untaken.tell(answer(2)));
        assert_eq!(count.0.load(Ordering::Relaxed), 1);
        assert_eq!(number(&untaken.poll(&mut context)), Some(1));
        assert_eq!(number(&Poll::Ready(untaken.take())), Some(2));
    }

    #[test]
    fn who_takes_nothing_is_told_no_more() {
        let untaken = Untaken::new(2);
        assert!(untaken.tell(answer(1)) && untaken.tell(answer(2)));
        assert!(!untaken.tell(answer(3)));
        let mut context = Context::from_waker(Waker::noop());
        assert_eq!(number(&untaken.poll(&mut context)), Some(1));
        assert!(!untaken.tell(answer(4)));
        assert_eq!(number(&untaken.poll(&mut context)), Some(2));
        assert!(matches!(untaken.poll(&mut context), Poll::Ready(None)));
    }
}
