//! From tools and hooks, which rig runs where it likes, to the session that hears of them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use rig_core::tool::ContextValue;
use tokio::sync::{mpsc, oneshot};

use crate::bridge::{Denied, Reply};
use crate::consent::Action;
use crate::error::Error;
use crate::session::Session;

/// The session of a run, as rig carries it to tools: its name only.
#[derive(rig_core::serde::Serialize, rig_core::serde::Deserialize)]
#[serde(crate = "rig_core::serde")]
pub(super) struct Slot(pub(super) String);

impl ContextValue for Slot {
    const KEY: &'static str = "sayso.session";
}

/// The runs that are being driven, by the names of their sessions.
#[derive(Clone, Default)]
pub(super) struct Lines(Arc<Mutex<HashMap<String, Orders>>>);

pub(super) type Orders = mpsc::UnboundedSender<Order>;

impl Lines {
    pub(super) fn open(&self, session: &str) -> (Line, mpsc::UnboundedReceiver<Order>) {
        let (orders, inbox) = mpsc::unbounded_channel();
        self.lock().insert(session.to_owned(), orders.clone());
        (Line { lines: self.clone(), session: session.to_owned(), orders }, inbox)
    }

    pub(super) fn of(&self, session: &str) -> Option<Orders> {
        self.lock().get(session).cloned()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Orders>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A run's line is there as long as the run is driven.
pub(super) struct Line {
    lines: Lines,
    session: String,
    orders: Orders,
}

impl Line {
    pub(super) fn orders(&self) -> Orders {
        self.orders.clone()
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.lines.lock().remove(&self.session);
    }
}

/// What a tool or a hook wants of the session.
pub(super) struct Order {
    wish: Wish,
    /// Whether it may be.
    reply: Reply<()>,
    /// How it ended; who drops this says nothing any more.
    ended: oneshot::Receiver<Ended>,
}

pub(super) enum Wish {
    /// To be asked for, and to run.
    Ask(Box<Action>),
    /// To run.
    Tell(String),
    /// To have something said.
    Note(String),
}

pub(super) enum Ended {
    Done,
    Failed(String),
    TimedOut,
}

/// Orders something, and waits whether it may be; what it gives is to be told how it ended.
pub(super) async fn order(orders: &Orders, wish: Wish) -> Result<oneshot::Sender<Ended>, Denied> {
    let (reply, gate) = Reply::gate();
    let (end, ended) = oneshot::channel();
    orders.send(Order { wish, reply, ended }).map_err(|_| Denied::Left)?;
    gate.await?;
    Ok(end)
}

impl Order {
    /// Does it, up to its end.
    pub(super) async fn done(mut self, session: &Session) -> Result<(), Error> {
        let opened = match self.wish {
            Wish::Note(words) => {
                let said = session.think(words).await;
                self.reply.tell(said.clone().map_err(Denied::Error));
                return said;
            }
            Wish::Tell(tool) => session.tool(tool).start().await.map(Ok),
            Wish::Ask(action) => tokio::select! {
                opened = session.ask_and_begin(*action) => opened,
                // Nobody would make the call any more: the question is taken back.
                () = self.reply.left() => return Ok(()),
            },
        };
        let tool = match opened.map_err(Denied::Error).and_then(|opened| opened.map_err(Denied::Refused)) {
            Ok(tool) => tool,
            Err(denied) => {
                self.reply.tell(Err(denied));
                return Ok(());
            }
        };
        // Who does not wait any more drops the other half of `ended` too, and the tool is told as left.
        self.reply.tell(Ok(()));
        match self.ended.await {
            Ok(Ended::Done) => tool.plainly_done().await,
            Ok(Ended::Failed(why)) => tool.failed(why).await,
            Ok(Ended::TimedOut) => tool.timed_out().await,
            Err(_) => {
                drop(tool);
                Ok(())
            }
        }
    }
}
