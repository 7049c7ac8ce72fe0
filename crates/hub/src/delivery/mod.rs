//! Delivery: lanes of frames, and where each listener is in one.
//!
//! Listeners with equal terms hear the same stream, so an event is shaped once for all of them, and a wire encodes it once: a [`Lane`] holds
//! the frames, a [`Cursor`] says how far one listener has come. An idle listener costs its cursor. A critical frame goes
//! before everything that a listener has not been given yet, and takes with it what its session had said before and would
//! be a lie after it; all else keeps its order. What overtakes goes without an id, so that a client resumes from where it lacks nothing. A listener that
//! falls behind gets a [`Backlog`] of its own, in which what waits is joined; beyond that it is let go.

mod backlog;
mod cursor;
mod frame;
mod lane;
#[cfg(test)]
mod tests;

pub use backlog::Backlog;
pub use cursor::{Cursor, Next, id_place, place_id};
pub use frame::{Frame, FrameKind, Part, Reason};
pub use lane::{Lane, LaneLimits};
