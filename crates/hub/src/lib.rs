//! The hub: any number of sessions and subscriptions between agents and those who listen to them.
//!
//! - [`Core`]: requests in, answers and frames out, a turn at a time; stores before it tells.
//! - [`Engine`]: who takes its turns: a thread, or whoever asks.
//! - [`Limits`]: how much it takes on.
//! - [`command`]: what the hub is asked, and what it answers.
//! - [`delivery`]: lanes of frames, and where each listener is in one.
//! - [`Principal`]: who is there, and what he may do.
//! - [`watch`]: what an operator may know: numbers and notes.

pub mod command;
mod compose;
mod core;
pub mod delivery;
mod engine;
mod limits;
mod principal;
mod reply;
mod scope;
pub mod watch;
mod write;

pub use core::Core;
pub use engine::Engine;
pub use limits::Limits;
pub use principal::{Principal, Role};
pub use scope::{BadScope, Scope};
pub use watch::Counters;

/// Names a stream of one shape, shared by all who want just that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LaneId(pub u64);

/// Names a connection on which an agent speaks and is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LineId(pub u64);

/// Names a connection that listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ListenerId(pub u64);
