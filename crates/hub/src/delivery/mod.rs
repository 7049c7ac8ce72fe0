//! Delivery queues, and the position of each listener in its queue.
//!
//! Listeners with equal terms receive the same stream. An event is therefore shaped and encoded once for all of them.
//! A [`DeliveryQueue`] holds the frames; a [`Cursor`] is the position of one listener. An idle listener costs only
//! its cursor.
//!
//! A critical frame overtakes everything that a listener has not received yet. Some earlier frames of its session must
//! not arrive after it. The critical frame pulls these frames along: they are delivered just before it. All other
//! frames keep their order. A frame that overtakes others is sent without an id, so that a client that resumes misses
//! nothing.
//!
//! A listener that falls behind gets its own [`Backlog`], which merges waiting frames. A listener that exceeds the
//! backlog's limits is disconnected.

mod backlog;
mod cursor;
mod frame;
mod queue;
#[cfg(test)]
mod tests;

pub use backlog::Backlog;
pub use cursor::{Cursor, NextFrame, position_from_id, position_to_id};
pub(crate) use frame::FrameForm;
pub use frame::{CloseReason, Frame, FrameKind, OrderingClass};
pub use queue::{DeliveryLimits, DeliveryQueue};
