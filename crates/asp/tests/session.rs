//! Whole lives of a session, told with time as an argument.
//!
//! - [`life`]: a session, its clock, and what two agents say.
//! - [`clocks`]: what runs out, when, and what does not (D9).
//! - [`endings`]: who kept and who broke what, and where the money goes (D4, D5, D7).
//! - [`escalations`]: what is preserved while somebody outside decides (D10).
//! - [`refusals`]: a message that is not taken changes nothing (D6).

#![allow(clippy::needless_pass_by_value, reason = "what is said is said once")]

mod clocks;
mod endings;
mod escalations;
mod life;
mod refusals;
