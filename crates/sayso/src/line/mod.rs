//! The way to a hub: calls go in with a number, answers with that number come out, and between them what the hub tells of
//! sessions without being asked. An answer comes before whatever is told because of its call.
//!
//! - `client`: over a WebSocket to a `sayso serve`.
//! - `embedded`: to a hub in this process.

#[cfg(feature = "client")]
pub(crate) mod client;
#[cfg(feature = "embedded")]
pub(crate) mod embedded;

use std::future::Future;
use std::sync::Arc;

use crate::Error;
use crate::track::OutputForm;

/// Names a call.
pub(crate) type Number = u64;

/// A way to a hub.
pub(crate) trait Line: Send + 'static {
    /// Says something; it is answered under this number.
    fn say(&mut self, number: Number, call: Call);

    /// A session is over: it is not followed any more.
    fn forget(&mut self, session: &str);

    /// What is told next; `None` when nothing will be told any more. A future that is dropped loses nothing.
    fn told(&mut self) -> impl Future<Output = Option<Told>> + Send;

    /// Nothing more will be said; returns when all that was is where it should be.
    fn farewell(&mut self) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }
}

/// What the hub is asked to do.
#[derive(Clone, Debug)]
pub(crate) enum Call {
    Start {
        body: String,
    },
    Events {
        session: String,
        events: Vec<String>,
    },
    Output {
        session: String,
        output_id: String,
        text: String,
        form: Option<Arc<OutputForm>>,
        complete: bool,
        stays: bool,
    },
    Ask {
        session: String,
        body: String,
        clarify: bool,
    },
    Withdraw {
        session: String,
        token: String,
    },
}

/// What the hub tells.
#[derive(Debug)]
pub(crate) enum Told {
    Answer(Number, Result<String, Error>),
    /// A question is resolved; `outcome` is JSON.
    Resolved {
        token: String,
        outcome: String,
    },
    /// A session is over, and not by what was said here.
    Stopped {
        session: String,
        reason: String,
    },
}
