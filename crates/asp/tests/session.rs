//! The session without a transcript, with time as an argument.
//!
//! - [`session_harness`]: a session with a clock, and the messages of two agents.
//! - [`timers`]: when each timer starts, expires, pauses and stops (D9).
//! - [`endings`]: which side fulfilled or broke the agreement, and which side gets the escrow (D4, D5, D7).
//! - [`escalations`]: what is preserved during an escalation (D9).
//! - [`refusals`]: a refused message changes nothing (D6).

#![allow(clippy::needless_pass_by_value, reason = "owned bodies keep the calls short")]

mod answer_constraints;
mod endings;
mod escalations;
mod refusals;
mod session_harness;
mod timers;
