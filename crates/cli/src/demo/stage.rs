//! How things stand with the assistant, for who stands beside it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::watch;

/// What the assistant is at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Now {
    pub(super) running: usize,
    pub(super) open: usize,
}

/// By so much a question's own time is over before it is withdrawn.
const GRACE: Duration = Duration::from_secs(2);

/// Where the assistant says what it is at, and learns how long people have for an answer.
#[derive(Debug)]
pub(super) struct Stage {
    now: watch::Sender<Now>,
    seconds: AtomicU64,
    left: watch::Sender<bool>,
}

impl Stage {
    pub(super) fn new(time: Duration) -> Self {
        Self {
            now: watch::Sender::default(),
            seconds: AtomicU64::new(time.as_secs()),
            left: watch::Sender::default(),
        }
    }

    pub(super) fn now(&self) -> watch::Receiver<Now> {
        self.now.subscribe()
    }

    /// A session goes on until this is dropped.
    pub(super) fn session(&self) -> impl Drop + '_ {
        self.now.send_modify(|now| now.running += 1);
        Until(self, |now| now.running -= 1)
    }

    /// A question is open until this is dropped.
    pub(super) fn question(&self) -> impl Drop + '_ {
        self.now.send_modify(|now| now.open += 1);
        Until(self, |now| now.open -= 1)
    }

    /// How long a person has for an answer.
    pub(super) fn time(&self) -> Duration {
        Duration::from_secs(self.seconds.load(Ordering::Relaxed))
    }

    /// Nobody is left who could type an answer: what is asked from now on has that long, and so has what is open.
    pub(super) fn leave(&self, time: Duration) {
        self.seconds.store(time.as_secs(), Ordering::Relaxed);
        self.left.send_replace(true);
    }

    /// Waits until nobody is left, and then a little longer than a question has whose own time ends it.
    pub(super) async fn all_left(&self) {
        let mut left = self.left.subscribe();
        if left.wait_for(|left| *left).await.is_err() {
            return std::future::pending().await;
        }
        tokio::time::sleep(self.time() + GRACE).await;
    }
}

struct Until<'s>(&'s Stage, fn(&mut Now));

impl Drop for Until<'_> {
    fn drop(&mut self) {
        self.0.now.send_modify(self.1);
    }
}
