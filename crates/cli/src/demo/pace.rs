//! Lines that do not come from a keyboard: whoever writes them all at once means each for what was said before it.
//!
//! So a line waits until the assistant has done what it was asked before, or has asked something, and all that was told. A
//! person at a keyboard is never kept waiting.

use std::time::Duration;

use aaep::SessionId;
use listen::terminal::Order;
use tokio::sync::{mpsc, oneshot, watch};

use super::stage::Now;

/// For the last words of a session to be told, once the assistant has said them.
const LAST_WORDS: Duration = Duration::from_secs(20);

/// Lines in their turn.
pub(super) struct Pace {
    now: watch::Receiver<Now>,
    orders: mpsc::Sender<Order>,
    /// Sessions that were asked for and not yet told to their end.
    sessions: Vec<SessionId>,
    /// Questions are answered without a person, so no line is an answer.
    alone: bool,
}

impl Pace {
    pub(super) fn new(now: watch::Receiver<Now>, orders: mpsc::Sender<Order>, alone: bool) -> Self {
        Self { now, orders, sessions: Vec::new(), alone }
    }

    /// A session was asked for.
    pub(super) fn begun(&mut self, session: SessionId) {
        self.sessions.push(session);
    }

    /// Waits until the assistant is done, and was told to its last word.
    pub(super) async fn all_told(&mut self) -> Option<()> {
        self.now.wait_for(|now| now.running == 0).await.ok()?;
        self.told().await
    }

    /// Hands on a line when its turn has come, and waits until it has been dealt with; `None` if nobody takes it any more.
    pub(super) async fn hand_on(&mut self, line: String, to: &mpsc::Sender<String>) -> Option<()> {
        self.turn().await?;
        to.send(line).await.ok()?;
        self.dealt_with(to).await
    }

    /// Waits until nothing goes on, or waits for an answer, and that was told.
    async fn turn(&mut self) -> Option<()> {
        let alone = self.alone;
        self.now.wait_for(|now| now.running == if alone { 0 } else { now.open }).await.ok()?;
        self.told().await
    }

    /// Waits until each session was told to its end or to a question that is not answered.
    async fn told(&mut self) -> Option<()> {
        for session in std::mem::take(&mut self.sessions) {
            let (tell, told) = oneshot::channel();
            self.orders.send(Order::TellAfter(session.clone(), tell)).await.ok()?;
            // One that is never told must not hold up the rest.
            if matches!(tokio::time::timeout(LAST_WORDS, told).await, Ok(Ok(false))) {
                self.sessions.push(session);
            }
        }
        Some(())
    }

    /// Waits until all lines that were handed on have been dealt with: the last was taken, and then an order.
    pub(super) async fn dealt_with(&self, to: &mpsc::Sender<String>) -> Option<()> {
        drop(to.reserve().await.ok()?);
        let (tell, told) = oneshot::channel();
        self.orders.send(Order::Tell(tell)).await.ok()?;
        told.await.ok()
    }
}
