//! Shaping: selects, merges and delays the events of many sessions for one subscription (§5.3,
//! §5.6).
//!
//! ```text
//!   push ──▶ filters ──▶ localization ──▶ text up to a boundary ──▶ rate and pace ──▶ pull
//!                             └──────────── critical: before everything else ─────────▶
//! ```
//!
//! [`Shaper::push`] takes the events in commit order. Call [`Shaper::pull`] until it returns nothing, after every push
//! and at [`Shaper::next_deadline`]. Time is an argument; early, late and repeated pulls are harmless.
//!
//! - Filters remove unwanted events, but never critical ones (C-C4, C-C5). A question is withheld
//!   from subscribers that cannot answer it (C-C1).
//! - Localization selects the requested verbosity if the event has a summary for it, and the
//!   requested language if the event has all of its text in that language. No text is removed.
//! - Output is held and split at the negotiated boundaries; no text is lost, added or reordered.
//! - The rate is smooth: each event is followed by a pause (C-C22). During the pause, text is
//!   joined, only the latest progress is kept, and state changes are merged. All other events wait
//!   in order. The timestamp of a delayed event becomes the time at which it is sent.
//! - A critical event never waits. Held events about the session's state are sent before it. Held
//!   text and progress may follow later (C-C19).
//! - Slow pace and low cognitive load add pauses between announcements, so more events are merged,
//!   but none are dropped (C-C15).

mod abbreviations;
mod code_spans;
mod held_event;
mod held_text;
mod localization;
mod queue;
mod rate_limiter;
mod scheduling;
mod session_buffer;
mod shaper;
mod shaping_terms;
#[cfg(test)]
mod tests;
mod text_boundaries;
mod text_direction;

pub use held_event::OutgoingEvent;
pub use localization::localize;
pub use shaper::Shaper;
pub use shaping_terms::{ShaperLimits, ShapingTerms};
pub use text_direction::is_right_to_left;
