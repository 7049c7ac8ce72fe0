//! The way to the desk.

use std::sync::{Arc, Weak};

use aaep::SessionId;
use tokio::sync::{mpsc, oneshot};

use super::{Order, Started};
use crate::error::{Error, TooMuch, Unreachable};
use crate::line::Reply;
use crate::member::Document;
use crate::redact::Cleaner;
use crate::track::Intent;

/// The way to the desk.
#[derive(Clone)]
pub(crate) struct Orders {
    /// To the desk's thread, which ends when nobody has this any more.
    inbox: mpsc::UnboundedSender<Order>,
    /// The desk itself, where it can be gone to.
    here: Option<Arc<dyn Take>>,
}

/// A desk that takes orders where they are given.
pub(crate) trait Take: Send + Sync {
    fn take(&self, order: Order);
}

/// For the desk itself, which ends when nobody else can order anything.
#[derive(Clone)]
pub(crate) struct WeakOrders {
    inbox: mpsc::WeakUnboundedSender<Order>,
    here: Option<Weak<dyn Take>>,
}

impl Orders {
    /// A channel for a desk's inbox.
    pub(crate) fn channel() -> (Self, mpsc::UnboundedReceiver<Order>) {
        let (inbox, orders) = mpsc::unbounded_channel();
        (Self { inbox, here: None }, orders)
    }

    /// The same for a desk that is here.
    #[cfg(feature = "embedded")]
    pub(crate) fn with(self, here: Arc<dyn Take>) -> Self {
        Self { here: Some(here), ..self }
    }

    /// Orders; who waits for something learns from the end of its channel that the desk is gone.
    pub(crate) fn order(&self, order: Order) {
        match &self.here {
            // What takes time is done by the thread, and without it nothing is.
            Some(here) if !matches!(order, Order::Settle(_)) && !self.inbox.is_closed() => here.take(order),
            _ => drop(self.inbox.send(order)),
        }
    }

    /// Says something in a session and waits for what comes of it. A future that is dropped takes nothing back.
    pub(crate) async fn say(&self, session: &SessionId, intent: Intent) -> Result<Reply, Error> {
        fits(intent.len())?;
        let (reply, answer) = oneshot::channel();
        self.order(Order::Do { session: session.clone(), intent, reply: Some(reply) });
        answer.await.unwrap_or_else(|_| Err(gone()))
    }

    pub(crate) async fn start(&self, body: Document, cleaner: Cleaner) -> Result<Started, Error> {
        fits(body.source().len())?;
        let (reply, answer) = oneshot::channel();
        self.order(Order::Start { body, cleaner, reply });
        answer.await.unwrap_or_else(|_| Err(gone()))
    }

    pub(crate) fn downgrade(&self) -> WeakOrders {
        WeakOrders { inbox: self.inbox.downgrade(), here: self.here.as_ref().map(Arc::downgrade) }
    }
}

impl WeakOrders {
    /// The same for a desk that is here.
    #[cfg(feature = "embedded")]
    pub(crate) fn with(self, here: Weak<dyn Take>) -> Self {
        Self { here: Some(here), ..self }
    }

    pub(super) fn upgrade(&self) -> Option<Orders> {
        let here = match &self.here {
            None => None,
            Some(here) => Some(here.upgrade()?),
        };
        Some(Orders { inbox: self.inbox.upgrade()?, here })
    }
}

impl std::fmt::Debug for Orders {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the way to the desk")
    }
}

/// The longest event that any hub takes, in bytes (§3.7).
pub(crate) const LONGEST: usize = 1024 * 1024;

/// What is longer goes nowhere.
fn fits(bytes: usize) -> Result<(), Error> {
    if bytes <= LONGEST {
        return Ok(());
    }
    Err(Error::TooMuch(TooMuch::Bytes { bytes, most: LONGEST }))
}

pub(crate) fn gone() -> Error {
    Error::Unreachable(Unreachable::ThreadEnded)
}
