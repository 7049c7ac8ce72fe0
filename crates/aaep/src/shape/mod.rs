//! Shaping: what one subscription hears of the events of many sessions (§5.3, §5.6).
//!
//! ```text
//!   push ──▶ filters ──▶ words ──▶ text held to a boundary ──▶ held for rate and pace ──▶ pull
//!                          └──────────── critical: in front of everything ────────────────▶
//! ```
//!
//! [`Shaper::push`] takes the events in the order in which they were committed; [`Shaper::pull`] is drained until it
//! says nothing, after every push and when [`Shaper::next_deadline`] has come. Time is an argument: early, late and
//! repeated pulls do no harm.
//!
//! - Filters keep out what is not wanted; critical events pass them (C-C4, C-C5). A question is withheld from those
//!   who cannot answer it (C-C1).
//! - Words: the event says the wanted verbosity where it has such a summary, and the wanted language where it has all
//!   of its text in it. Nothing is left out.
//! - Output is held and cut at the negotiated boundaries; nothing of it is lost, added or reordered.
//! - The rate is smooth: one event, then a pause (C-C22). While it holds events back, text is joined, the last progress
//!   wins, changes of state become one. All else waits in order. An event that waited carries the time of its sending.
//! - A critical event waits for nothing. What tells the session's state goes in front of it; text and progress that are
//!   held follow later (C-C19).
//! - Slow pace and low cognitive load put pauses between announcements, so that more is joined; nothing is dropped
//!   (C-C15).

mod code;
mod cut;
mod gate;
mod held;
mod lane;
mod language;
mod queue;
mod shaper;
mod stops;
#[cfg(test)]
mod tests;
mod text;
mod waiting;
mod wants;
mod words;

pub use held::Out;
pub use language::is_right_to_left;
pub use shaper::Shaper;
pub use wants::{Limits, Wants};
