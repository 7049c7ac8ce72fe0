//! Trust, rate limits and the circuit breaker (D25, D26).
//!
//! - [`events`]: events for the tests, and random histories.
//! - [`growth`]: what raises and lowers a score.
//! - [`decay`]: what time does to a score.
//! - [`endorsements`]: who can endorse whom, and how much it counts.
//! - [`history`]: replay, order, bounds and stored events.
//! - [`reports`]: the explanation of a score.
//! - [`parameters`]: which parameters are refused.
//! - [`limits`]: rate limits and the circuit breaker.

mod decay;
mod endorsements;
mod events;
mod growth;
mod history;
mod limits;
mod parameters;
mod reports;
