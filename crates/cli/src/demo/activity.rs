//! Tracks the activity of the demo agent, so that `sayso demo` knows when the agent is idle.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::watch;

/// The number of running sessions and of open questions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Activity {
    pub(super) running_sessions: usize,
    pub(super) open_questions: usize,
}

/// Grace period after a question's timeout, before the agent withdraws the question.
const WITHDRAW_GRACE: Duration = Duration::from_secs(2);

/// Tracks what the agent is doing, and holds the answer timeout.
#[derive(Debug)]
pub(super) struct ActivityTracker {
    activity: watch::Sender<Activity>,
    answer_timeout_secs: AtomicU64,
    is_unattended: watch::Sender<bool>,
}

impl ActivityTracker {
    pub(super) fn new(answer_timeout: Duration) -> Self {
        Self {
            activity: watch::Sender::default(),
            answer_timeout_secs: AtomicU64::new(answer_timeout.as_secs()),
            is_unattended: watch::Sender::default(),
        }
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<Activity> {
        self.activity.subscribe()
    }

    /// Counts a session as running until the guard is dropped.
    pub(super) fn track_session(&self) -> impl Drop + '_ {
        self.activity.send_modify(|activity| activity.running_sessions += 1);
        ActivityGuard(self, |activity| activity.running_sessions -= 1)
    }

    /// Counts a question as open until the guard is dropped.
    pub(super) fn track_question(&self) -> impl Drop + '_ {
        self.activity.send_modify(|activity| activity.open_questions += 1);
        ActivityGuard(self, |activity| activity.open_questions -= 1)
    }

    /// Returns how long a person has to answer.
    pub(super) fn answer_timeout(&self) -> Duration {
        Duration::from_secs(self.answer_timeout_secs.load(Ordering::Relaxed))
    }

    /// Records that nobody can type an answer any more. From now on, questions time out after `answer_timeout`.
    pub(super) fn set_unattended(&self, answer_timeout: Duration) {
        self.answer_timeout_secs.store(answer_timeout.as_secs(), Ordering::Relaxed);
        self.is_unattended.send_replace(true);
    }

    /// Waits until nobody can answer any more, then waits for the answer timeout plus a grace period.
    pub(super) async fn wait_for_unattended_timeout(&self) {
        let mut is_unattended = self.is_unattended.subscribe();
        if is_unattended.wait_for(|is_unattended| *is_unattended).await.is_err() {
            return std::future::pending().await;
        }
        tokio::time::sleep(self.answer_timeout() + WITHDRAW_GRACE).await;
    }
}

struct ActivityGuard<'s>(&'s ActivityTracker, fn(&mut Activity));

impl Drop for ActivityGuard<'_> {
    fn drop(&mut self) {
        self.0.activity.send_modify(self.1);
    }
}
