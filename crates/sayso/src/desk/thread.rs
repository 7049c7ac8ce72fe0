//! The desk on a thread of its own.

use tokio::sync::mpsc;

use super::sessions::Answered;
use super::{Desk, Order};
use crate::line::Line;

/// Until nobody can order anything and all is said.
pub(crate) async fn run(mut desk: Desk, mut line: impl Line, mut inbox: mpsc::UnboundedReceiver<Order>) {
    let mut open = true;
    while open || desk.expects() {
        tokio::select! {
            order = inbox.recv(), if open => match order {
                Some(order) => desk.take(order),
                None => open = false,
            },
            told = line.told(), if !desk.is_lost() => match told {
                Some(told) => desk.hear(told),
                None => desk.lose(),
            },
        }
        desk.speak(&mut line);
        desk.answers().for_each(Answered::tell);
        if desk.is_settled() {
            line.farewell().await;
            desk.settle();
        }
    }
    line.farewell().await;
}
