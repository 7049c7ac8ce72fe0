//! The desk where orders are given: whoever orders takes the desk's part and the hub's turn himself, and has the answer when
//! that is done. A thread does what nobody orders: it hears what the hub tells by itself, and says farewell.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Context;

use tokio::sync::mpsc;

use super::orders::{Take, WeakOrders};
use super::sessions::Answered;
use super::{Desk, Order};
use crate::line::embedded::Embedded;

/// A desk for a hub that answers on the spot.
pub(crate) struct Here(Mutex<Counter>);

struct Counter {
    desk: Desk,
    line: Embedded,
}

impl Here {
    pub(crate) fn new(line: Embedded, orders: WeakOrders) -> Arc<Self> {
        Arc::new_cyclic(|here: &Weak<Self>| {
            let desk = Desk::new(orders.with(here.clone()));
            Self(Mutex::new(Counter { desk, line }))
        })
    }

    /// Until nobody can order anything and all is said.
    pub(crate) async fn run(self: Arc<Self>, mut inbox: mpsc::UnboundedReceiver<Order>) {
        let (mut open, mut lost) = (true, false);
        while open || self.lock().desk.expects() {
            tokio::select! {
                order = inbox.recv(), if open => match order {
                    Some(order) => self.take(order),
                    None => open = false,
                },
                over = self.hear(), if !lost => lost = over,
            }
            let settled = self.lock().desk.is_settled();
            if settled {
                self.farewell().await;
                self.lock().desk.settle();
            }
        }
        self.farewell().await;
    }

    /// Hears what the hub tells by itself; whether it will tell nothing any more.
    async fn hear(&self) -> bool {
        let heard = |context: &mut Context<'_>| {
            self.work(|desk, line| {
                line.poll_told(context).map(|told| match told {
                    Some(told) => desk.hear(told),
                    None => desk.lose(),
                })
            })
        };
        std::future::poll_fn(heard).await;
        self.lock().desk.is_lost()
    }

    /// Does something at the desk, and all that follows from it.
    fn work<R>(&self, what: impl FnOnce(&mut Desk, &mut Embedded) -> R) -> R {
        let mut counter = self.lock();
        let Counter { desk, line } = &mut *counter;
        let done = what(desk, line);
        loop {
            desk.speak(line);
            match line.at_hand() {
                Some(told) => desk.hear(told),
                None => break,
            }
        }
        let answers = desk.answers();
        drop(counter);
        answers.for_each(Answered::tell);
        done
    }

    async fn farewell(&self) {
        let farewell = self.lock().line.parting();
        farewell.await;
    }

    /// Whoever broke down at the desk did so over his own order.
    fn lock(&self) -> MutexGuard<'_, Counter> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Take for Here {
    fn take(&self, order: Order) {
        self.work(|desk, _| desk.take(order));
    }
}
